"""Why tuning without privacy leaks
================================

A hyperparameter is one number, and yet it tells who was in the data. After figure 1 of Papernot &
Steinke (ICLR 2022): two clouds of records, a linear support vector machine, and eight outliers that
are there or not. The weight of the hinge loss is tuned as usual, by accuracy, and only the best
weight is published.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from sklearn.svm import LinearSVC

from sklearn_dpsearch.privacy import GaussianDP, best_of, calibrate, for_group

WEIGHTS = np.geomspace(1e-4, 10, 11)  # of the hinge loss: the parameter C
OUTLIER, OUTLIERS = (7.9, 8.0), 8


def records(rng: np.random.Generator, with_outliers: bool) -> tuple[np.ndarray, np.ndarray]:
    """65 and 20 records, and perhaps the outliers, which carry the label of the 65."""
    X = np.concatenate(
        [rng.normal((6.2, 0.9), (0.6, 2.2), (65, 2)), rng.normal((7.6, 5.4), (2.4, 2.2), (20, 2))]
    )
    y = np.repeat([-1, 1], (65, 20))
    if with_outliers:
        X, y = np.vstack([X, np.tile(OUTLIER, (OUTLIERS, 1))]), np.append(y, np.full(OUTLIERS, -1))
    return X, y


def accuracies(seed: int, with_outliers: bool) -> np.ndarray:
    """Accuracy on the records, weight by weight."""
    X, y = records(np.random.default_rng(seed), with_outliers)
    return np.array(
        [
            LinearSVC(C=weight, max_iter=2000, tol=1e-3, random_state=0).fit(X, y).score(X, y)
            for weight in WEIGHTS
        ]
    )


# %%
# With the outliers the curve turns; without them it rises. So the best weight is a witness.
curves = {
    outliers: np.array([accuracies(seed, outliers) for seed in range(100)])
    for outliers in (False, True)
}
figure, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
for outliers, name in ((False, "without the outliers"), (True, "with the outliers")):
    ax.plot(WEIGHTS, curves[outliers].mean(axis=0), "o-", label=name)
ax.set(xscale="log", xlabel="weight of the hinge loss", ylabel="accuracy")
ax.legend()

# %%
# The attack: a small best weight says that the outliers are there. Its rule is made on the first
# half of the data sets and tried on the other half.
best = {outliers: WEIGHTS[curve.argmax(axis=1)] for outliers, curve in curves.items()}


def advantage(limit: float, part: slice) -> float:
    """True positive rate minus false positive rate."""
    return float(np.mean(best[True][part] <= limit) - np.mean(best[False][part] <= limit))


limit = max(WEIGHTS, key=lambda weight: advantage(weight, slice(0, 50)))
print(
    f"best weight at most {limit:.2g}: true minus false positive rate "
    f"{advantage(limit, slice(50, None)):.2f}"
)

# %%
# A search that is private as a whole has a bound on this for every attack, and on all that it
# releases: the winning parameters, their score, and the model. Here for one record, and for eight
# together.
one_run = GaussianDP(mu=calibrate(lambda mu: best_of(GaussianDP(mu=mu), 20), 1.0, 1e-5))
search = best_of(one_run, 20)
print("a search with ε = 1 in total, any attack at all")
for records_together in (1, OUTLIERS):
    print(
        f"on {records_together} records: at most "
        f"{for_group(search, records_together).advantage():.3f}"
    )
