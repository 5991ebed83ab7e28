"""Does a search pay at the same total ε? Digits: the default net against the best of about 20 candidates.

    python examples/benchmarks/nets_search.py            # 2 repetitions, about 4 candidates
    python examples/benchmarks/nets_search.py --full     # 20 of each

Every row spends ε = 3 at δ = 1e-5 in total, the search included. "A good guess" are the defaults of DPMLPClassifier, in
whose choice this data set had a part; "a bad guess" is a learning rate that would suit training without privacy.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import loguniform
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.nets import DPMLPClassifier

EPSILON, DELTA = 3.0, 1e-5
NET = DPMLPClassifier(classes=range(10), bounds_X=(0, 16))
SPACE = {
    "learning_rate_factor": loguniform(0.25, 4.0),
    "hidden_layer_sizes": [(32,), (64,), (128,)],
    "sample_rate": loguniform(0.02, 0.1),
}


def one_fit(**parameters: Any) -> Any:
    """A net that spends everything on itself."""
    return clone(NET).set_params(target_epsilon=EPSILON, target_delta=DELTA, **parameters)


def search(n_iter: int) -> Any:
    """Everything is spent on the search."""
    return DPRandomSearchCV(NET, SPACE, n_iter=n_iter, epsilon=EPSILON, delta=DELTA)


ROWS: dict[str, Callable[[int], Any]] = {
    "a good guess (defaults)": lambda n_iter: one_fit(),
    "a bad guess (learning rate 0.01)": lambda n_iter: one_fit(learning_rate_init=0.01),
    "search": search,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true")
    repetitions, n_iter = (20, 20) if parser.parse_args().full else (2, 4)
    X, y = load_digits(return_X_y=True)
    print(f"total epsilon = {EPSILON:g} at delta = {DELTA:g}, {repetitions} repetitions, {n_iter} candidates expected")
    for name, make in ROWS.items():
        scores, start = [], time.perf_counter()
        for i in range(repetitions):
            X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=i)
            scores.append(make(n_iter).fit(X_train, y_train).score(X_test, y_test))
        error = np.std(scores, ddof=1) / repetitions**0.5
        seconds = (time.perf_counter() - start) / repetitions
        print(f"{name:34} test accuracy {np.mean(scores):.3f} ± {error:.3f}   {seconds:.1f} s a fit")


if __name__ == "__main__":
    main()
