"""A classifier under a total budget
=================================

Tune it on real data, and see what the whole search cost.

.. code-block:: bash

    python examples/quickstart/breast_cancer.py [--repeat 20]

Scikit-learn's breast cancer data: 569 patients, 30 measurements of cell nuclei. The upper end of
each measurement's range is a round number, chosen without these patients; nothing else is public.
It needs no optional library.
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy.stats import loguniform
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.boosting import DPGradientBoostingClassifier
from sklearn_dpsearch.privacy import Geometric, compose
from sklearn_dpsearch.report import schema_report

EPSILON, DELTA = 3.0, 1e-5
MEAN_RUNS = 20

#: The worst value of a measurement that a cell nucleus on a slide can have, in the units of the
#: data.
SCHEMA = {
    "radius": (0, 50),
    "texture": (0, 60),
    "perimeter": (0, 300),
    "area": (0, 5000),
    "smoothness": (0, 0.3),
    "compactness": (0, 1.2),
    "concavity": (0, 1.5),
    "concave points": (0, 0.4),
    "symmetry": (0, 0.8),
    "fractal dimension": (0, 0.3),
}
WORST = slice(20, 30)  # where the data has these ten


def private_search() -> DPRandomSearchCV:
    return DPRandomSearchCV(
        DPGradientBoostingClassifier(SCHEMA, classes=[0, 1]),
        {"learning_rate": loguniform(0.03, 1.0), "max_iter": [25, 50, 100, 200, 400]},
        n_iter=Geometric(MEAN_RUNS),
        epsilon=EPSILON,
        delta=DELTA,
    )


def main(repeat: int) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X[:, WORST], y, random_state=0)
    search = private_search().fit(X_train, y_train)

    spent, winner = search.privacy_spent_, search.best_params_
    one_training = search.best_estimator_.privacy_guarantee()
    composed = compose(*[one_training] * MEAN_RUNS)
    print(
        f"winning parameters          {winner['max_iter']} rounds at a rate of "
        f"{winner['learning_rate']:.3g}"
    )
    print(f"accuracy on untouched data  {search.score(X_test, y_test):.3f}")
    print(
        f"the whole search cost       epsilon = {spent.epsilon:.3f}  ({spent.bound}, "
        f"{spent.neighboring} neighbours)"
    )
    print(
        f"composing {MEAN_RUNS} trainings      epsilon = {composed.epsilon_at(DELTA):.3f}  "
        f"(without their scores)"
    )
    print(
        f"what most people report     epsilon = {one_training.epsilon_at(DELTA):.3f}  (one "
        f"training: false)"
    )
    for text in spent.assumptions:
        print(f"assumes: {text}")
    # what did not fit the schema, at a price of its own
    print(schema_report(X_train, SCHEMA, epsilon=1.0))
    if repeat > 1:  # a simulation: on real data every fit would spend the budget again
        scores = [
            private_search().fit(X_train, y_train).score(X_test, y_test) for _ in range(repeat)
        ]
        print(
            f"accuracy over {repeat} fits: mean {np.mean(scores):.3f}, standard deviation "
            f"{np.std(scores, ddof=1):.3f}"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--repeat", type=int, default=1, help="number of fits for the mean accuracy"
    )
    main(parser.parse_args().repeat)
