"""Differentially private gradient boosting for tables, on cells drawn without the records.

``DPGradientBoostingClassifier``, ``DPGradientBoostingRegressor``, which need neither PyTorch nor
diffprivlib.
"""

from ._estimators import DPGradientBoostingClassifier, DPGradientBoostingRegressor

__all__ = ["DPGradientBoostingClassifier", "DPGradientBoostingRegressor"]
