"""Differentially private neural networks for scikit-learn.

Ready-made for data frames: ``DPTabularClassifier``, ``DPTabularRegressor``. For arrays:
``DPLogisticRegression``, ``DPLinearRegression``, ``DPMLPClassifier``, ``DPMLPRegressor``. With a
module of your own: ``DPNeuralNetClassifier``, ``DPNeuralNetBinaryClassifier``,
``DPNeuralNetMultiLabelClassifier``, ``DPNeuralNetRegressor`` (skorch). All train with DP-SGD, state
their guarantee from their arguments alone, and can be searched by every search of this library.
``OpacusNet`` is a mixin for skorch nets that train with Opacus.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..errors import missing_name

if TYPE_CHECKING:
    from ._estimators.array_estimators import (
        DPLinearRegression,
        DPLogisticRegression,
        DPMLPClassifier,
        DPMLPRegressor,
    )
    from ._estimators.frame_estimators import DPTabularClassifier, DPTabularRegressor
    from ._estimators.skorch_nets import (
        DPNeuralNetBinaryClassifier,
        DPNeuralNetClassifier,
        DPNeuralNetMultiLabelClassifier,
        DPNeuralNetRegressor,
    )
    from ._opacus_net import OpacusNet

__all__ = [
    "DPLinearRegression", "DPLogisticRegression", "DPMLPClassifier", "DPMLPRegressor",
    "DPNeuralNetBinaryClassifier", "DPNeuralNetClassifier", "DPNeuralNetMultiLabelClassifier",
    "DPNeuralNetRegressor", "DPTabularClassifier", "DPTabularRegressor", "OpacusNet",
]  # fmt: skip
#: Module of each name that is no skorch net, imported on demand: searches and users of diffprivlib
#: need no torch.
_NAMES = {
    "_estimators.array_estimators": (
        "DPLinearRegression DPLogisticRegression DPMLPClassifier DPMLPRegressor"
    ),
    "_estimators.frame_estimators": "DPTabularClassifier DPTabularRegressor",
    "_opacus_net": "OpacusNet",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise missing_name(__name__, name)
    try:
        module = _MODULES.get(name, "_estimators.skorch_nets")
        return getattr(import_module(f".{module}", __name__), name)
    except ModuleNotFoundError as error:
        if error.name in ("torch", "skorch", "opacus"):
            raise ModuleNotFoundError(
                f"{name} needs {error.name}, which is not installed: pip install -e '.[nets]' in a "
                f"clone.",
                name=error.name,
            ) from None
        raise


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
