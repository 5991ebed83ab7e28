"""Tune on a subset
================

Tune on a random fifth of the records, train on the rest: one search on real data, and what it
costs.
"""

from __future__ import annotations

from scipy.stats import loguniform
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from sklearn_dpsearch import DPRandomSearchCV, DPSubsetSearchCV
from sklearn_dpsearch.nets import DPLogisticRegression

DELTA = 1e-5
SPACE = {"learning_rate_factor": loguniform(0.25, 4.0), "momentum": [0.0, 0.5, 0.9]}


def rounded(parameters: dict[str, float]) -> str:
    return ", ".join(f"{name} = {value:.3g}" for name, value in parameters.items())


# %%
# What it would cost: before any data is touched.
X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
net = DPLogisticRegression(classes=range(10), bounds_X=(0, 16), noise_multiplier=2.0)
single = net.privacy_guarantee().epsilon_at(DELTA)
print(f"one training run                       epsilon = {single:.3f}")
search_on_all = (
    DPRandomSearchCV(net, SPACE, n_iter=15, delta=DELTA).privacy_cost(len(X_train)).epsilon
)
print(f"about 15 candidates on all records     epsilon = {search_on_all:.3f}")
for train_on in ("rest", "all"):
    search = DPSubsetSearchCV(
        net, SPACE, n_iter=15, subset_fraction=0.2, train_on=train_on, delta=DELTA
    )
    total = search.privacy_cost(len(X_train)).epsilon
    print(f"the same on a fifth, then train on {train_on:4}  epsilon = {total:.3f}")

# %%
# The search itself, for a total of ε = 2.
net.set_params(noise_multiplier=None)  # the search makes the noise, so that the total is 2
best = DPSubsetSearchCV(net, SPACE, n_iter=15, subset_fraction=0.2, epsilon=2.0, delta=DELTA)
best.fit(X_train, y_train)
print(
    f"winner on the subset     {rounded(best.best_params_)}, private score {best.best_score_:.2f}"
)
print(f"trained on the rest with {rounded(best.final_params_)}")
print(
    f"accuracy on untouched data {best.score(X_test, y_test):.3f}; the whole cost "
    f"{best.privacy_spent_!r}"
)
for sentence in best.privacy_spent_.assumptions:
    print(f"assumes: {sentence}")
