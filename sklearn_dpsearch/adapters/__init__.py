"""Guarantee of one training run of an estimator."""

from __future__ import annotations

from copy import copy

from ..privacy import UnknownGuaranteeError
from ._adapter import Adapter, Estimator, PrivateEstimator, ProtocolAdapter, TrainingRun
from ._declared_guarantee import Declared, DeclaredAdapter
from ._diffprivlib import DiffprivlibAdapter
from ._foreign_skorch_nets import SkorchAdapter
from ._interpret import InterpretAdapter
from ._opacus import OpacusAdapter
from ._pipelines import CompositeAdapter
from ._refused_estimators import COUNTERPARTS

__all__ = ["Adapter", "PrivateEstimator", "TrainingRun", "adapter_for", "training_run"]

ANY_MODEL = (
    "a net of sklearn_dpsearch.nets, boosting of sklearn_dpsearch.boosting, a diffprivlib model or "
    "InterpretML's DPExplainableBoostingClassifier"
)


def adapter_for(estimator: Estimator, declared: Declared | None = None) -> Adapter:
    """Find the adapter that vouches for an estimator; the caller's own declaration comes first.

    Parameters
    ----------
    estimator : estimator
        Not fitted; its type and parameters are looked at.
    declared : Guarantee or callable, optional
        The caller's word: a guarantee, or (estimator, n_samples) ↦ guarantee.

    Returns
    -------
    Adapter
        What knows this type of estimator.

    Raises
    ------
    UnknownGuaranteeError
        If nothing is known about this type of estimator.
    """
    if declared is not None:
        return DeclaredAdapter(declared, MODEL_ADAPTERS)
    for adapter in ADAPTERS:
        if adapter.recognises(estimator):
            return copy(adapter)  # which may keep the adapters of parts
    name = type(estimator).__name__
    if name == "Pipeline" and type(estimator).__module__.startswith("imblearn."):
        raise UnknownGuaranteeError(
            "Found the Pipeline of imblearn, whose samplers change how often a record counts; "
            "scikit-learn's Pipeline is needed: from sklearn.pipeline import Pipeline. "
            "class_weight={label: weight} of our models has weights that are public constants."
        )
    raise UnknownGuaranteeError(
        f"{name} has no known training guarantee. Use {COUNTERPARTS.get(name, ANY_MODEL)}, give it "
        "a method privacy_guarantee(n_samples) or a dp_event, or declare what one fit promises, "
        "e.g. guarantee=PureDP(epsilon=1.0). (A subclass may have changed fit, so it is not "
        f"recognised by its parent's name; found {type(estimator).__module__}.{name}.)"
    )


def training_run(
    estimator: Estimator, n_samples: int | None = None, declared: Declared | None = None
) -> TrainingRun:
    """Compute the guarantee of one ``fit`` of ``estimator`` as configured. No data is touched.

    Parameters
    ----------
    estimator : estimator
        Not fitted; its type and parameters are looked at.
    n_samples : int, optional
        Number of records, where the guarantee depends on it.
    declared : Guarantee or callable, optional
        The caller's word: a guarantee, or (estimator, n_samples) ↦ guarantee.

    Returns
    -------
    TrainingRun
        The guarantee, and what it rests on.

    Examples
    --------
    >>> from sklearn_dpsearch.privacy import PureDP
    >>> from sklearn.svm import SVC
    >>> training_run(SVC(), declared=PureDP(epsilon=1.0)).guarantee
    PureDP(neighboring='add_remove', epsilon=1.0)
    """
    return adapter_for(estimator, declared).training_run(estimator, n_samples)


LIBRARIES: tuple[Adapter, ...] = (DiffprivlibAdapter(), InterpretAdapter())
PROTOCOL = ProtocolAdapter()

#: Adapters of models without parts, for a declared guarantee.
MODEL_ADAPTERS: tuple[Adapter, ...] = (*LIBRARIES, SkorchAdapter(declared=True), PROTOCOL)

#: Adapters of compositions, and of nets of others.
COMPOSED: tuple[Adapter, ...] = (CompositeAdapter(adapter_for), SkorchAdapter(), OpacusAdapter())
#: Adapters in the order of asking; each recognises exact types only.
ADAPTERS: tuple[Adapter, ...] = (*LIBRARIES, *COMPOSED, PROTOCOL)
