"""The adapter of estimators that state their mechanism as an event of ``dp_accounting``, as JAX Privacy does."""

from __future__ import annotations

from typing import Any

from ..errors import UnknownGuaranteeError
from ..privacy._types import Neighboring
from ..privacy.interop import from_event
from .adapter import Estimator, TrainingRun
from .protocol import ProtocolAdapter, only_inherits

#: Relation by the name of the member of ``dp_accounting.NeighboringRelation``.
RELATIONS: dict[str, Neighboring] = {"ADD_OR_REMOVE_ONE": "add_remove", "REPLACE_SPECIAL": "zero_out"}


class DpEventAdapter(ProtocolAdapter):
    """Anything with ``dp_event``, an event or a method that returns one, and with ``neighboring_relation``.

    The event is that of one ``fit`` as configured. An estimator with a method ``privacy_guarantee`` is asked for that
    instead. Further facts are stated as for ``ProtocolAdapter``.
    """

    def recognises(self, estimator: object) -> bool:
        return hasattr(estimator, "dp_event") and not only_inherits(estimator, "dp_event")

    def training_run(self, estimator: Estimator, n_samples: int | None) -> TrainingRun:
        name, stated = type(estimator).__name__, getattr(estimator, "dp_event", None)
        event = stated() if callable(stated) else stated
        guarantee = from_event(event, _relation(estimator))
        return TrainingRun(guarantee=guarantee, assumptions=(f"{name} states its own event: {event!r}.",))


def _relation(estimator: Any) -> Neighboring:
    stated = getattr(estimator, "neighboring_relation", None)
    relation = RELATIONS.get(getattr(stated, "name", ""))
    if relation is None:
        raise UnknownGuaranteeError(
            f"Found neighboring_relation={stated!r} in {type(estimator).__name__}, which states a dp_event; "
            "dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE or REPLACE_SPECIAL is needed as an attribute. Under "
            "another relation give the estimator a method privacy_guarantee(n_samples)."
        )
    return relation
