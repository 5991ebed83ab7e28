"""What one run costs, its model and private score together, and what a search over such runs costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..privacy import Guarantee, compose, envelope, mixture
from .validation import Exposure

#: What one training promises; or number of trainings ↦ what those of one and the same candidate promise together.
TrainingGuarantee = Guarantee | Callable[[int], Guarantee]


def exposure_guarantee(training: TrainingGuarantee, scoring: Guarantee | None, exposure: Exposure) -> Guarantee:
    """What one run promises to a record that is used in this way.

    A record that only trains or only validates pays for that alone. One that does both pays for the composition.
    """
    scorings = [scoring] * exposure.scorings if scoring is not None else []
    if isinstance(training, Guarantee):
        return compose(*[training] * exposure.trainings, *scorings)
    return compose(*([training(exposure.trainings)] if exposure.trainings else []), *scorings)


def run_guarantee(training: TrainingGuarantee, scoring: Guarantee | None, exposures: Sequence[Exposure]) -> Guarantee:
    """What one run, training and score together, promises to every record (docs/theory/scoring.md, "Uses").

    Held-out records are touched by the score alone. So the run promises, at each ε, the worse of both guarantees, and
    a score that is as private as the training is free.

    Parameters
    ----------
    training : Guarantee or callable
        What one training promises, or number of trainings ↦ what those of one candidate promise together.
    scoring : Guarantee or None
        What one score promises; None if scores are free.
    exposures : sequence of Exposure
        All the ways in which one run may use one record.

    Returns
    -------
    Guarantee
        Of one run.
    """
    return envelope([exposure_guarantee(training, scoring, exposure) for exposure in _used(exposures)])


def search_guarantee(
    training: TrainingGuarantee,
    scoring: Guarantee | None,
    exposures: Sequence[Exposure],
    search: Callable[[Guarantee], Guarantee],
) -> Guarantee:
    """What a search over runs promises.

    Where a secret coin of the record's own decides how it is used, the divergences of the searches average over it
    (joint convexity); otherwise the worst use counts.

    Parameters
    ----------
    training : Guarantee or callable
        What one training promises, or number of trainings ↦ what those of one candidate promise together.
    scoring : Guarantee or None
        What one score promises; None if scores are free.
    exposures : sequence of Exposure
        All the ways in which one run may use one record.
    search : callable
        Guarantee of one run ↦ guarantee of the search, such as ``partial(best_of, count=10)``.

    Returns
    -------
    Guarantee
        Of the search.
    """
    ways = _used(exposures)
    if any(exposure.probability is None for exposure in ways):
        return search(run_guarantee(training, scoring, ways))
    guarantees = [search(exposure_guarantee(training, scoring, exposure)) for exposure in ways]
    return mixture(guarantees, [float(exposure.probability or 0.0) for exposure in ways])


def _used(exposures: Sequence[Exposure]) -> list[Exposure]:
    """The exposures under which a record is used at all."""
    return [exposure for exposure in exposures if exposure.trainings or exposure.scorings]
