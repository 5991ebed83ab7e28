"""A classifier under a total budget
=================================

Tune it on real data, and see what the whole search cost.

.. code-block:: bash

    python examples/quickstart/breast_cancer.py [--repeat 20]

Scikit-learn's breast cancer data: 569 patients, 30 measurements of cell nuclei. The upper end of each measurement's
range is a round number, chosen without these patients; nothing else is public.

The model is diffprivlib's logistic regression where diffprivlib is installed, and otherwise this library's boosting,
which needs nothing beside the library and runs on every scikit-learn from 1.6 on.
"""

from __future__ import annotations

import argparse
from importlib.util import find_spec

import numpy as np
from scipy.stats import loguniform
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.boosting import DPGradientBoostingClassifier
from sklearn_dpsearch.privacy import Geometric, PureDP, compose

TOTAL_EPSILON = 3.0
MEAN_RUNS = 20

# The worst value of radius, texture, perimeter, area, smoothness, compactness, concavity, concave points, symmetry and
# fractal dimension that a cell nucleus on a slide can have, in the units of the data.
WORST = slice(20, 30)
LARGEST = np.array([50, 60, 300, 5000, 0.3, 1.2, 1.5, 0.4, 0.8, 0.3])


def worst(X):
    """The ten features that are used."""
    return np.asarray(X)[:, WORST]


def to_unit_ball(X):
    """Each record on its own: ten features in units of their public range, a constant as intercept, norm at most 1."""
    scaled = np.clip(worst(X) / LARGEST, 0, 1) - 0.3
    rows = 1.5 * np.column_stack([scaled, np.full(len(scaled), 0.5)])
    return rows / np.maximum(1, np.linalg.norm(rows, axis=1, keepdims=True))


def private_search() -> DPRandomSearchCV:
    if find_spec("diffprivlib"):
        return search_with_diffprivlib()
    schema = {f"worst {number}": (0, largest) for number, largest in enumerate(LARGEST)}
    model = make_pipeline(FunctionTransformer(worst), DPGradientBoostingClassifier(schema, classes=[0, 1]))
    return DPRandomSearchCV(
        model,
        {"dpgradientboostingclassifier__learning_rate": loguniform(0.03, 1.0)},
        n_iter=Geometric(MEAN_RUNS),
        epsilon=TOTAL_EPSILON,
        delta=1e-5,
    )


def search_with_diffprivlib() -> DPRandomSearchCV:
    from diffprivlib.models import LogisticRegression

    model = make_pipeline(
        FunctionTransformer(to_unit_ball),
        LogisticRegression(data_norm=1.0, fit_intercept=False),
    )
    return DPRandomSearchCV(
        model,
        {"logisticregression__C": loguniform(1e-2, 1e2)},
        n_iter=Geometric(MEAN_RUNS),
        epsilon=TOTAL_EPSILON,
    )


def main(repeat: int) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    search = private_search().fit(X_train, y_train)

    spent = search.privacy_spent_
    model = search.best_estimator_[-1]
    one_run = PureDP(epsilon=model.epsilon) if find_spec("diffprivlib") else model.privacy_guarantee(len(X_train))
    composed = compose(*[one_run] * MEAN_RUNS).epsilon_at(spent.delta)
    winner = ", ".join(f"{name.rpartition('__')[2]} = {value:.3g}" for name, value in search.best_params_.items())
    usual = one_run.epsilon_at(spent.delta)
    print(f"winning parameters          {winner}")
    print(f"accuracy on untouched data  {search.score(X_test, y_test):.3f}")
    print(f"the whole search cost       epsilon = {spent.epsilon:.3f}  ({spent.bound}, {spent.neighboring} neighbours)")
    print(f"composing {MEAN_RUNS} runs instead   epsilon = {composed:.3f}")
    print(f"what most people report     epsilon = {usual:.3f}  (one run: false, the search read the data too)")
    for text in spent.assumptions:
        print(f"assumes: {text}")
    if repeat > 1:  # a simulation: on real data every fit would spend the budget again
        scores = [private_search().fit(X_train, y_train).score(X_test, y_test) for _ in range(repeat)]
        print(
            f"accuracy over {repeat} fits: mean {np.mean(scores):.3f}, standard deviation {np.std(scores, ddof=1):.3f}"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeat", type=int, default=1, help="number of fits for the mean accuracy")
    main(parser.parse_args().repeat)
