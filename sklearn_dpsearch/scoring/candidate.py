"""One run of a search: a model and its private score together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..privacy import CountLaw, Guarantee, best_of, compose, envelope, mixture
from .validation import Exposure

#: What one training promises, or number of trainings ↦ what those of one and the same candidate promise together.
Training = Guarantee | Callable[[int], Guarantee]


def exposed(training: Training, scoring: Guarantee | None, exposure: Exposure) -> Guarantee:
    """What one run costs a record that is used like this.

    A record that only trains or only validates pays for that alone; one that does both pays for the composition.
    """
    scorings = [scoring] * exposure.scorings if scoring is not None else []
    if isinstance(training, Guarantee):
        return compose(*[training] * exposure.trainings, *scorings)
    return compose(*([training(exposure.trainings)] if exposure.trainings else []), *scorings)


def candidate(training: Training, scoring: Guarantee | None, exposures: Sequence[Exposure]) -> Guarantee:
    """What one run, training and score together, promises to every record (docs/theory/scoring.md, "Uses").

    Held-out records are touched by the score alone: the worse of both guarantees at each ε holds, and a score as
    private as the training is free.

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
    return envelope([exposed(training, scoring, one) for one in _used(exposures)])


def best_candidate(
    training: Training, scoring: Guarantee | None, exposures: Sequence[Exposure], count: CountLaw
) -> Guarantee:
    """What the best of K runs promises.

    Parameters
    ----------
    training : Guarantee or callable
        What one training promises, or number of trainings ↦ what those of one candidate promise together.
    scoring : Guarantee or None
        What one score promises; None if scores are free.
    exposures : sequence of Exposure
        All the ways in which one run may use one record.
    count : CountLaw
        Law of K.

    Returns
    -------
    Guarantee
        Of the search.
    """
    return searched(training, scoring, exposures, lambda one_run: best_of(one_run, count))


def searched(
    training: Training,
    scoring: Guarantee | None,
    exposures: Sequence[Exposure],
    search: Callable[[Guarantee], Guarantee],
) -> Guarantee:
    """What a search promises, given what it makes of one run's guarantee.

    Where a secret coin of the record's own decides how it is used, the divergences of the searches average over it
    (joint convexity); otherwise the worst use counts.
    """
    used = _used(exposures)
    if any(one.probability is None for one in used):
        return search(candidate(training, scoring, used))
    return mixture(
        [search(exposed(training, scoring, one)) for one in used], [float(one.probability or 0.0) for one in used]
    )


def _used(exposures: Sequence[Exposure]) -> list[Exposure]:
    return [one for one in exposures if one.trainings or one.scorings]
