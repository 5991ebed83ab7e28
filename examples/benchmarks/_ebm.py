"""DP-EBM on the columns of a schema. Needs ``interpret-core``."""

from __future__ import annotations

from typing import Any

import numpy as np
from interpret.privacy import DPExplainableBoostingClassifier
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from sklearn_dpsearch.preprocessing import Schema


def coded(schema: Schema, **parameters: Any) -> Pipeline:
    """DP-EBM on numbers, 0 where one is missing, and on codes of categories, −1 for those that the
    schema lacks."""
    lists = {name: stated for name, stated in schema.items() if isinstance(stated, list)}
    numbers = [name for name in schema if name not in lists]
    codes = OrdinalEncoder(
        categories=list(lists.values()),
        handle_unknown="use_encoded_value",
        unknown_value=-1,
        encoded_missing_value=-1,
    )
    filled = SimpleImputer(strategy="constant", fill_value=0, keep_empty_features=True)
    columns = ColumnTransformer([("numbers", filled, numbers), ("codes", codes, list(lists))])
    bounds = [*map(schema.bounds, numbers), *((-1, len(values) - 1) for values in lists.values())]
    model = DPExplainableBoostingClassifier(
        feature_types=["continuous"] * len(bounds), privacy_bounds=np.array(bounds, float), n_jobs=1
    )
    return make_pipeline(columns, model.set_params(**parameters))
