"""Cost of one run, its model and private score together, and of a search over such runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..privacy import Guarantee, compose, envelope, mixture
from .validation import Exposure

#: Guarantee of one training; or number of trainings ↦ joint guarantee of those of one candidate.
TrainingGuarantee = Guarantee | Callable[[int], Guarantee]


def exposure_guarantee(training: TrainingGuarantee, scoring: Guarantee | None, exposure: Exposure) -> Guarantee:
    """Guarantee of one run for a record that is used in this way.

    A record that only trains or only validates pays for this use alone. A record with both uses pays the composition.
    """
    scorings = [scoring] * exposure.scorings if scoring is not None else []
    if isinstance(training, Guarantee):
        return compose(*[training] * exposure.trainings, *scorings)
    return compose(*([training(exposure.trainings)] if exposure.trainings else []), *scorings)


def run_guarantee(training: TrainingGuarantee, scoring: Guarantee | None, exposures: Sequence[Exposure]) -> Guarantee:
    """Guarantee of one run, training and score together, for every record (docs/theory/scoring.md, "Uses").

    Only the score reads held-out records. So the guarantee of the run is, at each ε, the worse of both guarantees, and
    a score that is as private as the training is free.

    Parameters
    ----------
    training : Guarantee or callable
        Guarantee of one training, or number of trainings ↦ joint guarantee of those of one candidate.
    scoring : Guarantee or None
        Guarantee of one score; None if scores are free.
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
    """Guarantee of a search over runs.

    If each record's use is drawn in secret, the divergences of the searches are averaged (joint convexity);
    otherwise the worst use counts.

    Parameters
    ----------
    training : Guarantee or callable
        Guarantee of one training, or number of trainings ↦ joint guarantee of those of one candidate.
    scoring : Guarantee or None
        Guarantee of one score; None if scores are free.
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
