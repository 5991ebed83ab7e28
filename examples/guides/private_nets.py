"""Private nets on a table
=======================

One fit, a search over hyperparameters, and what each costs.
"""

from __future__ import annotations

from scipy.stats import loguniform
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.nets import DPMLPClassifier

EPSILON, DELTA = 3.0, 1e-5
SPACE = {
    # of a step size that is derived from noise, steps and records
    "learning_rate_factor": loguniform(0.25, 4.0),
    "hidden_layer_sizes": [(32,), (64,), (128,)],
    # every candidate's noise is calibrated to one Gaussian target
    "sample_rate": loguniform(0.02, 0.1),
}

# %%
# One fit at all defaults: the step size is derived from noise, steps and records.
X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
# public constants: the labels, the range of a pixel
net = DPMLPClassifier(classes=range(10), bounds_X=(0, 16))

default = net.set_params(target_epsilon=EPSILON, target_delta=DELTA).fit(X_train, y_train)
print(
    f"one fit at its defaults      accuracy {default.score(X_test, y_test):.3f}   "
    f"{default.privacy_spent_!r}"
)

# %%
# A search with the same total, over what the defaults cannot know.
untuned = net.set_params(target_epsilon=None, target_delta=None)
search = DPRandomSearchCV(untuned, SPACE, n_iter=20, epsilon=EPSILON, delta=DELTA).fit(
    X_train, y_train
)
print(
    f"best of about 20 candidates  accuracy {search.score(X_test, y_test):.3f}   "
    f"{search.privacy_spent_!r}"
)
print(f"winning parameters           {search.best_params_}")
for sentence in search.privacy_spent_.assumptions:
    print(f"assumes: {sentence}")
