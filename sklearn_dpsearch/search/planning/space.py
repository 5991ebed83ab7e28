"""The space of candidates: drawing with replacement, and guarantees of its points."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from ...adapters import Adapter, TrainingRun
from ...privacy import Guarantee, PrivacyError, PureDP, as_replace_one, compose, envelope, mixture
from ...privacy._types import Neighboring
from .._records import with_parameters
from .._types import Distributions
from .first_look import refuse_pairwise
from .keywords import unknown_parameter

#: Most points of a finite space for which guarantees are looked up one by one.
MOST_POINTS = 20_000
#: Most combinations of estimators that candidates put into steps.
MOST_FAMILIES = 1000


@dataclass(frozen=True)
class Space:
    """A list of dictionaries: name ↦ list of values, or distribution with a method ``rvs``.

    Candidates are independent and drawn with replacement: first a dictionary, then each of its parameters.

    Parameters
    ----------
    dictionaries : tuple of mapping
    weights : tuple of int, optional
        Dictionaries are drawn in these proportions; uniformly by default.
    """

    dictionaries: tuple[Mapping[str, Any], ...]
    weights: tuple[int, ...] = ()

    @classmethod
    def of(cls, distributions: Distributions | Space, parameter: str = "param_distributions") -> Space:
        """Check and wrap the value of this parameter of the search; a ``Space`` is returned as it is."""
        if isinstance(distributions, Space):
            return distributions
        given = [distributions] if isinstance(distributions, Mapping) else distributions
        if not isinstance(given, Sequence) or isinstance(given, str) or not all(isinstance(d, Mapping) for d in given):
            raise TypeError(
                f"Found {parameter}={distributions!r}; a dict of lists, or a list of such dicts, is needed."
            )
        if not given:
            raise ValueError(
                f"Found {parameter}=[]; at least one dict of lists is needed. Give {parameter}={{}} for one candidate."
            )
        for dictionary in given:
            for name, values in dictionary.items():
                _check_values(name, values, parameter)
        return cls(tuple({name: _listed(values) for name, values in d.items()} for d in given))

    @property
    def names(self) -> list[str]:
        """Every parameter that a candidate may set."""
        return sorted({name for dictionary in self.dictionaries for name in dictionary})

    @property
    def probabilities(self) -> list[float]:
        """Probability of each dictionary."""
        return [weight / sum(self._weights) for weight in self._weights]

    @property
    def _weights(self) -> tuple[int, ...]:
        return self.weights or (1,) * len(self.dictionaries)

    def by_family(self) -> Space:
        """Equivalent space with one dictionary for each combination of estimators that candidates put in."""
        split = [_by_parts(dictionary) for dictionary in self.dictionaries]
        if all(len(families) == 1 for families in split):
            return self
        shares = math.lcm(*(len(families) for families in split))
        weights = [own * shares // len(families) for own, families in zip(self._weights, split) for _ in families]
        return Space(tuple(itertools.chain(*split)), tuple(weights))

    def draw(self, rng: np.random.RandomState) -> tuple[int, dict[str, Any]]:
        """Index of a dictionary, and one candidate from it."""
        which = int(np.searchsorted(np.cumsum(self._weights), rng.randint(sum(self._weights)), side="right"))
        return which, self.draw_from(which, rng)

    def draw_from(self, which: int, rng: np.random.RandomState) -> dict[str, Any]:
        """One candidate from a dictionary."""
        dictionary = self.dictionaries[which]
        return {name: _draw(dictionary[name], rng) for name in sorted(dictionary)}

    def check_names(self, estimator: Any) -> None:
        """Raise for an unknown name, before any data is read."""
        known = estimator.get_params(deep=True)
        nested = [
            name
            for dictionary in self.dictionaries
            for values in dictionary.values()
            if not hasattr(values, "rvs")
            for value in values
            if hasattr(value, "get_params")
            for name in value.get_params()
        ]
        for name in self.names:
            tail = name.rpartition("__")[2]
            if name not in known and tail not in nested and not accepts(estimator, name):
                raise ValueError(unknown_parameter(name, estimator))

    def check_values(self, estimator: Any) -> None:
        """Raise for a listed word or estimator that no candidate may have, drawn or not."""
        for dictionary in self.dictionaries:
            for name, values in dictionary.items():
                for value in () if hasattr(values, "rvs") else values:
                    known = isinstance(value, (str, os.PathLike)) or hasattr(value, "get_params")
                    if known or "callbacks" in name.split("__"):
                        for owner in _owners(dictionary, name):
                            configured(estimator, {**owner, name: value})


def configured(estimator: Any, parameters: Mapping[str, Any]) -> Any:
    """Make an unfitted estimator with parameters; raise if it would see other candidates or compare records."""
    model = with_parameters(clone(estimator), {name: _cloned(value) for name, value in parameters.items()})
    refuse_callbacks(model)
    refuse_checkpoints(model)
    refuse_pairwise(model)
    return model


def is_part(values: Any) -> bool:
    """Return whether the values of a parameter are estimators, or words in their place."""
    return not hasattr(values, "rvs") and any(hasattr(value, "get_params") for value in values)


def shared(dictionary: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters that all candidates of a dictionary share, without parameters of parts that differ."""
    one = {name for name, values in dictionary.items() if not hasattr(values, "rvs") and len(values) == 1}
    return {
        name: dictionary[name][0]
        for name in dictionary
        if name in one and all(owner in one or not name.startswith(f"{owner}__") for owner in dictionary)
    }


def _by_parts(dictionary: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Split a dictionary: one for each combination of the estimators that its candidates put in."""
    parts = [name for name, values in dictionary.items() if is_part(values)]
    number = math.prod(len(dictionary[name]) for name in parts)
    if number > MOST_FAMILIES:
        raise PrivacyError(
            f"Found {number} combinations of estimators in {sorted(parts)}; at most {MOST_FAMILIES} are looked up. "
            "Give fewer, or vary their parameters instead."
        )
    combinations = itertools.product(*(dictionary[name] for name in parts))
    return [{**dictionary, **{name: [value] for name, value in zip(parts, values)}} for values in combinations]


def _owners(dictionary: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Replaced parts of a candidate to which a parameter may belong."""
    above = [owner for owner in dictionary if name.startswith(f"{owner}__") and not hasattr(dictionary[owner], "rvs")]
    owners = [dict(zip(above, values)) for values in itertools.product(*(dictionary[owner] for owner in above))]
    return [owner for owner in owners if all(_has(part, name, prefix) for prefix, part in owner.items())]


def _has(part: Any, name: str, prefix: str) -> bool:
    return hasattr(part, "get_params") and name.removeprefix(f"{prefix}__") in part.get_params()


def accepts(estimator: Any, name: str) -> bool:
    """Return whether an estimator takes a parameter that it does not list (skorch's ``module__…`` and the like)."""
    owner, _, _ = name.partition("__")
    if owner == name or (f"{owner}__" in name and type(estimator).set_params is BaseEstimator.set_params):
        return False
    try:
        clone(estimator).set_params(**{name: None})
    except (ValueError, TypeError, AttributeError):
        return False
    return True


def _check_values(name: Any, values: Any, parameter: str) -> None:
    if not isinstance(name, str):
        raise TypeError(
            f"Found {name!r} ({type(name).__name__}) as a name in {parameter}; a string is needed, the name of a "
            "parameter of the estimator. Write e.g. {'C': [0.1, 1.0]}."
        )
    if hasattr(values, "rvs"):
        return
    wrong = isinstance(values, (str, Iterator, Mapping)) or not isinstance(values, (Iterable, np.ndarray))
    if wrong or getattr(values, "ndim", 1) > 1:
        raise TypeError(
            f"Found {values!r} for {name!r} in {parameter}; a list of values"
            f"{' or a distribution with a method rvs' * (parameter != 'param_grid')} is needed. Write e.g. "
            f"{{{name!r}: [{'...' if isinstance(values, (Iterator, Mapping)) else repr(values)}]}}."
        )
    if len(_listed(values)) == 0:
        raise ValueError(
            f"Found an empty list for {name!r} in {parameter}: the space is empty. Give at least one value, or leave "
            f"{name!r} out."
        )


def _listed(values: Any) -> Any:
    return values if hasattr(values, "rvs") else list(values)


def _draw(values: Any, rng: np.random.RandomState) -> Any:
    return values.rvs(random_state=rng) if hasattr(values, "rvs") else values[rng.randint(len(values))]


class SpaceGuarantee:
    """Guarantee of one run of a random candidate.

    Over finitely many points the distribution of the draw is known, and profiles average exactly (``mixture``). For a
    distribution of an ``epsilon`` the largest value of its support counts. Other parameters must not change the
    guarantee, which is looked up for every drawn candidate before any data is read.

    Parameters
    ----------
    adapter : Adapter
    estimator : estimator
    space : Space
    n_samples : int or None
    relation : {"add_remove", "zero_out", "replace_one"}, optional
        Under "replace_one" everything is stated under it, even where single candidates promise another relation.
    """

    def __init__(
        self,
        adapter: Adapter,
        estimator: Any,
        space: Space,
        n_samples: int | None,
        relation: Neighboring | None = None,
    ) -> None:
        self.adapter, self.estimator, self.n_samples, self.relation = adapter, estimator, n_samples, relation
        self.probabilities = space.probabilities
        self.dictionaries = space.dictionaries
        self.axes = [self._axes_of(dictionary) for dictionary in space.dictionaries]
        self.points = [self._of_axes(axes) for axes in self.axes]

    @property
    def one_run(self) -> Guarantee:
        """Guarantee of training one random candidate."""
        return self.trained(1)

    def trained(self, times: int) -> Guarantee:
        """Guarantee of training one random candidate a given number of times.

        All trainings are of the same candidate: first its trainings compose, then the candidates average. Composing
        the average would mean a new candidate for every training, and understate the loss.
        """
        weighted = self._weighted()
        together = [promise if times == 1 else compose(*[promise] * times) for promise in weighted]
        return mixture(together, list(weighted.values()))

    def each_once(self, times: int = 1) -> Guarantee:
        """Guarantee of training each point of a finite space a given number of times: their composition."""
        promises = [
            run.guarantee
            for dictionary, points in zip(self.dictionaries, self.points)
            for run, _ in points
            for _ in range(_size(dictionary) // len(points))  # points that differ in other parameters promise the same
        ]
        return compose(*promises * times)

    @property
    def worst(self) -> Guarantee:
        """Guarantee of training any one candidate: the worst case."""
        return envelope(list(self._weighted()))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions of all candidates' training runs."""
        return tuple(dict.fromkeys(text for runs in self.points for run, _ in runs for text in run.assumptions))

    def check(self, which: int, candidate: Mapping[str, Any]) -> None:
        """Raise unless a candidate from the dictionary ``which`` keeps the planned guarantee of its point."""
        point = {name: candidate[name] if len(axis) > 1 else axis[0] for name, axis in self.axes[which].items()}
        found, planned = self._run_of(candidate).guarantee, self._run_of(point).guarantee
        if found == planned or _covered(found, planned):
            return
        raise PrivacyError(
            f"A candidate ({dict(candidate)!r}) promises {found!r}, which is not what the search was planned with. A "
            "parameter drawn from a distribution changes the guarantee: give it as a list of values, or declare a "
            "guarantee that covers all candidates, e.g. guarantee=PureDP(epsilon=1.0)."
        )

    def check_covered(self, candidate: Mapping[str, Any]) -> None:
        """Raise unless a caller's candidate keeps the guarantee of some planned point: ``worst`` then covers it."""
        found = self._run_of(candidate).guarantee
        if not any(found == planned or _covered(found, planned) for planned in self._weighted()):
            raise PrivacyError(
                f"A candidate ({dict(candidate)!r}) promises {found!r}, which no point of param_distributions does. "
                "Add its values there, or leave the parameters that change the guarantee alone."
            )

    def keeps(self, candidate: Mapping[str, Any], model: Any) -> bool:
        """Return whether training ``model`` keeps the planned guarantee of the candidate, or a smaller loss."""
        found, planned = self._run(model).guarantee, self._run_of(candidate).guarantee
        return found == planned or _covered(found, planned)

    def _weighted(self) -> dict[Guarantee, float]:
        """Possible guarantees of a candidate, each with its probability."""
        found: dict[Guarantee, float] = {}
        for points, share in zip(self.points, self.probabilities):
            for run, weight in points:
                found[run.guarantee] = found.get(run.guarantee, 0.0) + weight * share
        return found

    def _axes_of(self, dictionary: Mapping[str, Any]) -> dict[str, list[Any]]:
        """The parameters on which the guarantee depends, and their values (the upper end of a distribution)."""
        names = _relevant(self.adapter, self.configured(shared(dictionary)), dictionary)
        axes = {name: list(_values(name, dictionary[name])) for name in names}
        if _size(axes) > MOST_POINTS:  # parameters without effect on the guarantee need not be multiplied out
            axes = {name: axis for name, axis in axes.items() if self._matters(name, axis)}
        if _size(axes) > MOST_POINTS:
            raise PrivacyError(
                f"The guarantee may differ between {_size(axes)} candidates; at most {MOST_POINTS} are looked up. Use "
                f"fewer values for {sorted(axes)}, or declare a guarantee that covers all candidates, e.g. "
                "guarantee=PureDP(epsilon=1.0)."
            )
        return axes

    def _of_axes(self, axes: Mapping[str, list[Any]]) -> list[tuple[TrainingRun, float]]:
        """Guarantee of every point, and the point's probability."""
        points = [dict(zip(axes, values)) for values in itertools.product(*axes.values())]
        return [(self._run_of(point), 1.0 / len(points)) for point in points]

    def _matters(self, name: str, axis: Sequence[Any]) -> bool:
        """Return whether one parameter alone changes the guarantee; ``check`` refuses drawn candidates missed here."""
        return any(self._run_of({name: value}).guarantee != self._run_of({}).guarantee for value in axis)

    def configured(self, parameters: Mapping[str, Any]) -> Any:
        """An unfitted estimator with these parameters."""
        return configured(self.estimator, parameters)

    def _run_of(self, parameters: Mapping[str, Any]) -> TrainingRun:
        return self._run(self.configured(parameters))

    def _run(self, model: Any) -> TrainingRun:
        run = self.adapter.training_run(model, self.n_samples)
        return replace(run, guarantee=as_replace_one(run.guarantee)) if self.relation == "replace_one" else run


def refuse_callbacks(estimator: Any) -> None:
    """Raise for callbacks of scikit-learn, which would see every candidate; copies of an estimator keep them."""
    for name, part in {"": estimator, **estimator.get_params(deep=True)}.items():
        if getattr(part, "_skl_callbacks", None):
            raise PrivacyError(
                f"Found callbacks on {name or 'the estimator'} ({type(part).__name__}): they would see every "
                "candidate, and how many there are. Remove them with set_callbacks()."
            )
        if getattr(part, "writes_files", False):
            raise PrivacyError(
                f"Found a TrainEndCheckpoint on {name or 'the estimator'} ({type(part).__name__}): it would write "
                "every candidate to files, and so how many there are. Remove it, and save best_estimator_."
            )


def refuse_checkpoints(estimator: Any) -> None:
    """Raise for training checkpoints: losers would stay on disk, and candidates in one folder would share noise."""
    for name, part in {"": estimator, **estimator.get_params(deep=True)}.items():
        folder = getattr(part, "checkpoint", None)
        if folder is not None and hasattr(part, "privacy_guarantee"):
            raise PrivacyError(
                f"Found checkpoint={str(folder)!r} on {name or 'the estimator'} ({type(part).__name__}); a checkpoint "
                "is for one training of one net, and candidates would leave there what they hold, and how many there "
                "are. Set checkpoint=None; a checkpoint of the search keeps these trainings too."
            )


def _relevant(adapter: Adapter, estimator: Any, dictionary: Mapping[str, Any]) -> list[str]:
    """The searched parameters on which the guarantee depends."""
    matters = adapter.privacy_parameters(estimator)
    if matters is None:
        return [name for name in sorted(dictionary) if not hasattr(dictionary[name], "rvs")]
    several = set(dictionary) - set(shared(dictionary))
    replaced = {name for name in several if any(inner.startswith(name + "__") for inner in matters)}
    below = {name for name in dictionary if any(name.startswith(owner + "__") for owner in replaced)}
    return sorted({name for name in dictionary if name in matters} | replaced | below)


def _values(name: str, values: Any) -> Iterator[Any]:
    if not hasattr(values, "rvs"):
        yield from values
        return
    upper = values.support()[1] if name.rpartition("__")[2] == "epsilon" and hasattr(values, "support") else math.inf
    if not math.isfinite(upper):
        raise PrivacyError(
            f"Parameter {name!r} changes the guarantee and is drawn from a distribution without a known upper end. "
            "Give a list of values, a distribution with a bounded support (scipy.stats), or declare guarantee= for "
            "all candidates."
        )
    yield float(upper)


def _size(axes: Mapping[str, Any]) -> int:
    return math.prod(len(axis) for axis in axes.values())


def _covered(found: Guarantee, planned: Guarantee) -> bool:
    """Return whether a pure guarantee is no larger than the planned pure one."""
    if not (isinstance(found, PureDP) and isinstance(planned, PureDP)):
        return False
    return found.neighboring == planned.neighboring and found.epsilon <= planned.epsilon


def _cloned(value: Any) -> Any:
    return clone(value, safe=False) if hasattr(value, "get_params") else value
