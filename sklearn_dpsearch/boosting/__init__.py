"""Differentially private gradient boosting for tables, on cells that are drawn without looking at the records.

``DPGradientBoostingClassifier``, ``DPGradientBoostingRegressor``, which need neither PyTorch nor diffprivlib;
``to_onnx``.
"""

from .estimators import DPGradientBoostingClassifier, DPGradientBoostingRegressor
from .onnx_export import to_onnx

__all__ = ["DPGradientBoostingClassifier", "DPGradientBoostingRegressor", "to_onnx"]
