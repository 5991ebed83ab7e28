"""Guarantee of one run of a random candidate from a space."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

from sklearn.base import clone

from ...adapters import TrainingRun
from ...privacy import Guarantee, PrivacyError, PureDP, compose, envelope, mixture
from .._records import with_parameters
from .families import Families
from .space import Space, configured, listed, shared_parameters, size_of

#: Parameters that matter, and their values.
Axes: TypeAlias = dict[str, list[Any]]
#: Most points of a finite space for which guarantees are looked up one by one.
MOST_POINTS = 20_000


def space_guarantee(
    families: Families, space: Space, settings: Mapping[str, Any]
) -> SpaceGuarantee:
    """Guarantee of a space, with parameters of the estimator that set the noise."""
    return guarantee_by_noise(families, space, settings)()


def guarantee_by_noise(
    families: Families, space: Space, settings: Mapping[str, Any]
) -> Callable[..., SpaceGuarantee]:
    """Make the function noise ↦ guarantee of a space: candidates are made once, for all levels.

    The estimator of a guarantee is good until the next call.

    Parameters
    ----------
    families : Families
    space : Space
    settings : mapping
        Parameters of the estimator that set the noise, without an argument of the function; the
        argument sets the same parameters.
    """
    estimator = with_parameters(clone(families.estimator), settings)
    axes = [_axes_of(families, estimator, dictionary) for dictionary in space.dictionaries]
    models = _models_at(estimator, axes)

    def guarantee(changed: Mapping[str, Any] | None = None) -> SpaceGuarantee:
        for model in (estimator, *itertools.chain(*models)):
            with_parameters(model, changed or {})
        return SpaceGuarantee(
            families=families,
            estimator=estimator,
            settings=changed or settings,
            space=space,
            axes=axes,
            runs=[list(map(families.training_run, part)) for part in models],
        )

    return guarantee


@dataclass(frozen=True, kw_only=True)
class SpaceGuarantee:
    """Guarantee of one run of a random candidate, at one level of noise.

    Over finitely many points the distribution of the draw is known, and profiles average exactly
    (``mixture``). For a distribution of an ``epsilon`` the largest value of its support counts.
    Other parameters must not change the guarantee, which is looked up for every drawn candidate
    before any data is read.

    Parameters
    ----------
    families : Families
        How candidates are trained.
    estimator : estimator
        With its noise set.
    settings : mapping
        Parameters of the estimator that set the noise.
    space : Space
        With noise set in the estimators that candidates put in.
    axes : list of dict
        For each dictionary of the space the parameters that matter, and their values.
    runs : list of lists of TrainingRun
        One for each point of each dictionary.
    """

    families: Families
    estimator: Any
    settings: Mapping[str, Any]
    space: Space
    axes: list[Axes]
    runs: list[list[TrainingRun]]

    @property
    def one_run(self) -> Guarantee:
        """Guarantee of training one random candidate."""
        return self.trained(1)

    def one_run_on(self, n_samples: int) -> Guarantee:
        """Guarantee of training one random candidate on fewer records than planned."""
        training_run = partial(self.families.training_run, n_samples=n_samples)
        runs = [list(map(training_run, part)) for part in _models_at(self.estimator, self.axes)]
        return replace(self, runs=runs).one_run

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
        """Composition of trainings: each point of a finite space, a given number of times."""
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
        runs = itertools.chain(*self.runs)
        return tuple(dict.fromkeys(text for run in runs for text in run.assumptions))

    def check(self, which: int, candidate: Mapping[str, Any]) -> None:
        """Raise unless a candidate from the dictionary ``which`` keeps its point's guarantee."""
        planned = self.runs[which][0].guarantee
        if len(self.runs[which]) > 1:
            axes = self.axes[which].items()
            point = {name: candidate[name] if len(axis) > 1 else axis[0] for name, axis in axes}
            planned = self.promise_of(self.configured(point))
        model = self.configured(candidate)
        if not self.keeps(model, planned):
            raise PrivacyError(
                f"A candidate ({dict(candidate)!r}) promises {self.promise_of(model)!r}, which is "
                "not what the search was planned with. A parameter drawn from a distribution "
                "changes the guarantee: give it as a list of values, or declare a guarantee that "
                "covers all candidates, e.g. guarantee=PureDP(epsilon=1.0)."
            )

    def check_covered(self, candidate: Mapping[str, Any]) -> None:
        """Raise unless a caller's candidate keeps some point's guarantee: ``worst`` covers it."""
        model = self.configured(candidate)
        if not self.keeps(model, *self._weighted()):
            raise PrivacyError(
                f"A candidate ({dict(candidate)!r}) promises {self.promise_of(model)!r}, which no "
                "point of param_distributions does. Add its values there, or leave the parameters "
                "that change the guarantee alone."
            )

    def promise_of(self, model: Any) -> Guarantee:
        """Guarantee of training a model."""
        return self.families.training_run(model).guarantee

    def keeps(self, model: Any, *planned: Guarantee) -> bool:
        """Return whether training a model keeps a planned guarantee, or a smaller pure one."""
        guarantee = self.promise_of(model)
        if guarantee in planned or not isinstance(guarantee, PureDP):
            return guarantee in planned
        pure = [other for other in planned if isinstance(other, PureDP)]
        similar = [other for other in pure if other.neighboring == guarantee.neighboring]
        return any(guarantee.epsilon <= other.epsilon for other in similar)

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


def _models_at(estimator: Any, axes: Sequence[Mapping[str, list[Any]]]) -> list[list[Any]]:
    """A candidate at each point of each dictionary at which the guarantee may differ."""
    points = [[dict(zip(a, values)) for values in itertools.product(*a.values())] for a in axes]
    return [[configured(estimator, point) for point in part] for part in points]


def _axes_of(families: Families, estimator: Any, dictionary: Mapping[str, Any]) -> Axes:
    """The parameters on which the guarantee depends, and their values to look up."""
    model = configured(estimator, shared_parameters(dictionary))
    matters = families.adapter.privacy_parameters(model)
    if matters is None:
        names = sorted(listed(dictionary))
    else:
        several = set(dictionary) - set(shared_parameters(dictionary))
        replaced = {name for name in several if any(p.startswith(name + "__") for p in matters)}
        owners = tuple(f"{owner}__" for owner in replaced)
        below = {name for name in dictionary if name.startswith(owners)}
        names = sorted(set(dictionary).intersection(matters) | replaced | below)
    axes = {name: _values_to_look_up(name, dictionary[name]) for name in names}
    # parameters without effect on the guarantee need not be multiplied out
    if size_of(axes) > MOST_POINTS:
        plain = families.training_run(configured(estimator, {})).guarantee

        # one parameter alone; ``check`` refuses drawn candidates missed here
        def changes(name: str, value: Any) -> bool:
            return families.training_run(configured(estimator, {name: value})).guarantee != plain

        axes = {name: axis for name, axis in axes.items() if any(changes(name, v) for v in axis)}
    if size_of(axes) > MOST_POINTS:
        raise PrivacyError(
            f"The guarantee may differ between {size_of(axes)} candidates; at most {MOST_POINTS} "
            f"are looked up. Use fewer values for {sorted(axes)}, or declare a guarantee that "
            "covers all candidates, e.g. guarantee=PureDP(epsilon=1.0)."
        )
    return axes


def _values_to_look_up(name: str, values: Any) -> list[Any]:
    """Listed values of a parameter, or the upper end of a distribution of an ``epsilon``."""
    if not hasattr(values, "rvs"):
        return list(values)
    upper = math.inf
    if name.rpartition("__")[2] == "epsilon" and hasattr(values, "support"):
        upper = values.support()[1]
    if not math.isfinite(upper):
        raise PrivacyError(
            f"Parameter {name!r} changes the guarantee and is drawn from a distribution without a "
            "known upper end. Give a list of values, a distribution with a bounded support "
            "(scipy.stats), or declare guarantee= for all candidates."
        )
    return [float(upper)]
