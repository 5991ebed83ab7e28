"""Guarantee of one run of a random candidate from a space."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...adapters import Adapter, TrainingRun
from ...privacy import (
    Guarantee,
    PrivacyError,
    PureDP,
    as_replace_one,
    as_zero_out,
    compose,
    envelope,
    mixture,
)
from ...privacy._types import Neighboring
from .._records import with_parameters
from .space import Space, configured, shared_parameters, size_of

#: Most points of a finite space for which guarantees are looked up one by one.
MOST_POINTS = 20_000


PUBLIC_SIZE = (
    "A guarantee about adding or removing a record is stated for blanking one in its place "
    "(zero_out): the number of records is public, and training ignores a blank record as it "
    "ignores one that is not there."
)


def with_public_size(run: TrainingRun) -> TrainingRun:
    """State a guarantee under a relation for which the number of records is public."""
    if run.guarantee.neighboring != "add_remove":
        return run
    return TrainingRun(
        guarantee=as_zero_out(run.guarantee), assumptions=(*run.assumptions, PUBLIC_SIZE)
    )


@dataclass(frozen=True)
class Training:
    """Guarantee of one training.

    Parameters
    ----------
    adapter : Adapter
    n_samples : int or None
    relation : {"zero_out", "replace_one"}, optional
        Under "replace_one" everything is stated under it, even where single candidates promise
        another relation.
    planned : int or None
        Number of records for which rates and numbers of steps are fixed, whatever number a training
        gets.
    """

    adapter: Adapter
    n_samples: int | None
    relation: Neighboring | None = None
    planned: int | None = None

    def __call__(self, model: Any) -> TrainingRun:
        if self.planned not in (None, self.n_samples):
            self.adapter.for_records(model, self.planned)
        run = with_public_size(self.adapter.training_run(model, self.n_samples))
        return (
            replace(run, guarantee=as_replace_one(run.guarantee))
            if self.relation == "replace_one"
            else run
        )


class Points:
    """Candidates of a space among which the guarantee may differ, made once, whatever noise is
    tried on them.

    Parameters
    ----------
    estimator : estimator
        With noise set.
    space : Space
    training : Training
    """

    def __init__(self, estimator: Any, space: Space, training: Training) -> None:
        self.estimator, self.space, self.training = estimator, space, training
        self.axes = [self._axes_of(dictionary) for dictionary in space.dictionaries]
        self.models = [
            [
                configured(estimator, dict(zip(axes, values)))
                for values in itertools.product(*axes.values())
            ]
            for axes in self.axes
        ]

    def promises(
        self, settings: Mapping[str, Any] | None = None, n_samples: int | None = None
    ) -> SpaceGuarantee:
        """Guarantee of one run of a random candidate; with other values of the noise, or for fewer
        records."""
        training = (
            self.training if n_samples is None else replace(self.training, n_samples=n_samples)
        )
        for model in (self.estimator, *itertools.chain(*self.models)):
            with_parameters(model, settings or {})
        runs = [[training(model) for model in models] for models in self.models]
        return SpaceGuarantee(self.estimator, self.space, training, self.axes, runs)

    def _axes_of(self, dictionary: Mapping[str, Any]) -> dict[str, list[Any]]:
        """The parameters on which the guarantee depends, and their values (the upper end of a
        distribution)."""
        names = _privacy_parameters_in(
            self.training.adapter,
            configured(self.estimator, shared_parameters(dictionary)),
            dictionary,
        )
        axes = {name: list(_values_to_look_up(name, dictionary[name])) for name in names}
        # parameters without effect on the guarantee need not be multiplied out
        if size_of(axes) > MOST_POINTS:
            axes = {name: axis for name, axis in axes.items() if self._matters(name, axis)}
        if size_of(axes) > MOST_POINTS:
            raise PrivacyError(
                f"The guarantee may differ between {size_of(axes)} candidates; at most "
                f"{MOST_POINTS} are looked up. Use fewer values for {sorted(axes)}, or declare a "
                "guarantee that covers all candidates, e.g. guarantee=PureDP(epsilon=1.0)."
            )
        return axes

    def _matters(self, name: str, axis: Sequence[Any]) -> bool:
        """Return whether one parameter alone changes the guarantee; ``check`` refuses drawn
        candidates missed here."""
        plain = self.training(configured(self.estimator, {})).guarantee
        return any(
            self.training(configured(self.estimator, {name: value})).guarantee != plain
            for value in axis
        )


@dataclass(frozen=True)
class SpaceGuarantee:
    """Guarantee of one run of a random candidate.

    Over finitely many points the distribution of the draw is known, and profiles average exactly
    (``mixture``). For a distribution of an ``epsilon`` the largest value of its support counts.
    Other parameters must not change the guarantee, which is looked up for every drawn candidate
    before any data is read.

    Parameters
    ----------
    estimator, space, training
        As for ``Points``.
    axes : list of dict
        For each dictionary of the space the parameters that matter, and their values.
    runs : list of lists of TrainingRun
        One for each point of each dictionary.
    """

    estimator: Any
    space: Space
    training: Training
    axes: list[dict[str, list[Any]]]
    runs: list[list[TrainingRun]]

    @property
    def one_run(self) -> Guarantee:
        """Guarantee of training one random candidate."""
        return self.trained(1)

    def trained(self, times: int) -> Guarantee:
        """Guarantee of training one random candidate a given number of times.

        All trainings are of the same candidate: first its trainings compose, then the candidates
        average. Composing the average would mean a new candidate for every training, and understate
        the loss.
        """
        weighted = self._weighted()
        together = [promise if times == 1 else compose(*[promise] * times) for promise in weighted]
        return mixture(together, list(weighted.values()))

    def each_once(self, times: int = 1) -> Guarantee:
        """Guarantee of training each point of a finite space a given number of times: their
        composition."""
        promises = [
            run.guarantee
            for dictionary, runs in zip(self.space.dictionaries, self.runs)
            for run in runs
            for _ in range(size_of(dictionary) // len(runs))  # other parameters do not matter to it
        ]
        return compose(*promises * times)

    @property
    def worst(self) -> Guarantee:
        """Guarantee of training any one candidate: the worst case."""
        return envelope(list(self._weighted()))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions of all candidates' training runs."""
        return tuple(
            dict.fromkeys(text for runs in self.runs for run in runs for text in run.assumptions)
        )

    def check(self, which: int, candidate: Mapping[str, Any]) -> None:
        """Raise unless a candidate from the dictionary ``which`` keeps the planned guarantee of its
        point."""
        guarantee, planned = (
            self.training(self.configured(candidate)).guarantee,
            self.runs[which][0].guarantee,
        )
        if len(self.runs[which]) > 1:
            point = {
                name: candidate[name] if len(axis) > 1 else axis[0]
                for name, axis in self.axes[which].items()
            }
            planned = self.training(self.configured(point)).guarantee
        if guarantee == planned or _is_no_larger(guarantee, planned):
            return
        raise PrivacyError(
            f"A candidate ({dict(candidate)!r}) promises {guarantee!r}, which is not what the search "
            "was planned with. A parameter drawn from a distribution changes the guarantee: give "
            "it as a list of values, or declare a guarantee that covers all candidates, e.g. "
            "guarantee=PureDP(epsilon=1.0)."
        )

    def check_covered(self, candidate: Mapping[str, Any]) -> None:
        """Raise unless a caller's candidate keeps the guarantee of some planned point: ``worst``
        then covers it."""
        guarantee = self.training(self.configured(candidate)).guarantee
        if not any(
            guarantee == planned or _is_no_larger(guarantee, planned)
            for planned in self._weighted()
        ):
            raise PrivacyError(
                f"A candidate ({dict(candidate)!r}) promises {guarantee!r}, which no point of "
                "param_distributions does. Add its values there, or leave the parameters that "
                "change the guarantee alone."
            )

    def keeps(self, model: Any, planned: Guarantee) -> bool:
        """Return whether training ``model`` keeps a planned guarantee, or has a smaller loss."""
        guarantee = self.training(model).guarantee
        return guarantee == planned or _is_no_larger(guarantee, planned)

    def counts_records(self, model: Any) -> bool:
        """Return whether training may use the number of its records, blank ones included."""
        return (
            self.training.adapter.training_run(model, self.training.n_samples).guarantee.neighboring
            != "add_remove"
        )

    def configured(self, parameters: Mapping[str, Any]) -> Any:
        """An unfitted estimator with these parameters."""
        return configured(self.estimator, parameters)

    def _weighted(self) -> dict[Guarantee, float]:
        """Possible guarantees of a candidate, each with its probability."""
        weights: dict[Guarantee, float] = {}
        for runs, share in zip(self.runs, self.space.probabilities):
            for run in runs:
                weights[run.guarantee] = weights.get(run.guarantee, 0.0) + 1.0 / len(runs) * share
        return weights


def _privacy_parameters_in(
    adapter: Adapter, estimator: Any, dictionary: Mapping[str, Any]
) -> list[str]:
    """The searched parameters on which the guarantee depends."""
    matters = adapter.privacy_parameters(estimator)
    if matters is None:
        return [name for name in sorted(dictionary) if not hasattr(dictionary[name], "rvs")]
    several = set(dictionary) - set(shared_parameters(dictionary))
    replaced = {name for name in several if any(inner.startswith(name + "__") for inner in matters)}
    below = {
        name for name in dictionary if any(name.startswith(owner + "__") for owner in replaced)
    }
    return sorted({name for name in dictionary if name in matters} | replaced | below)


def _values_to_look_up(name: str, values: Any) -> Iterator[Any]:
    if not hasattr(values, "rvs"):
        yield from values
        return
    upper = (
        values.support()[1]
        if name.rpartition("__")[2] == "epsilon" and hasattr(values, "support")
        else math.inf
    )
    if not math.isfinite(upper):
        raise PrivacyError(
            f"Parameter {name!r} changes the guarantee and is drawn from a distribution without a "
            "known upper end. Give a list of values, a distribution with a bounded support "
            "(scipy.stats), or declare guarantee= for all candidates."
        )
    yield float(upper)


def _is_no_larger(guarantee: Guarantee, planned: Guarantee) -> bool:
    """Return whether a pure guarantee is no larger than the planned pure one."""
    if not (isinstance(guarantee, PureDP) and isinstance(planned, PureDP)):
        return False
    return guarantee.neighboring == planned.neighboring and guarantee.epsilon <= planned.epsilon
