"""Families of candidates: estimators put into a step bring their own noise and their own
neighbouring relation.

A family is all candidates with the same estimators in their steps. Where families hold under
different relations, the whole search is stated under ``replace_one``. Under a given total, every
family first gets the noise with which a search over this family alone would meet the total; then
one common factor brings the whole search to the total.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from sklearn.base import clone, is_classifier, is_regressor

from ...adapters import Adapter, TrainingRun
from ...privacy import Guarantee, PrivacyError
from ...privacy._checks import cached_property
from ...privacy._types import Neighboring
from .._records import with_parameters
from .._types import InFull
from .space import Space, accepts, configured, is_part
from .space_guarantee import Points, Training, with_public_size

#: Relation to which guarantees under any other relation can be converted.
COMMON: Neighboring = "replace_one"


@dataclass(frozen=True, kw_only=True)
class Families:
    """The candidates of a search by family.

    Parameters
    ----------
    estimator : estimator
    adapter : Adapter
    space : Space
        One dictionary for each family.
    calibrated : bool
        Whether the search sets the noise.
    n_samples : int or None
    varying : set of str
        Parameters searched by any family, so that families of one kind state their noise in the
        same way.
    models : tuple of estimators
        An unfitted candidate of each family.
    runs : tuple of TrainingRun
        Promise of one candidate of each family; before calibration the noise may be missing.
    relations : tuple of str
        Neighbouring relation of each family.
    restated : tuple of dict
        Parameters with which each family keeps its targets under the common relation, where
        relations differ.
    balance : tuple of float
        Factor on the privacy loss of each family.
    """

    estimator: Any
    adapter: Adapter
    space: Space
    calibrated: bool
    n_samples: int | None
    varying: frozenset[str]
    models: tuple[Any, ...]
    runs: tuple[TrainingRun, ...]
    relations: tuple[Neighboring, ...]
    restated: tuple[dict[str, Any], ...]
    balance: tuple[float, ...]

    @property
    def relation(self) -> Neighboring:
        """Relation under which the search is stated."""
        return self.relations[0] if len(set(self.relations)) == 1 else COMMON

    @property
    def told_their_size(self) -> bool:
        """Return whether no candidate counts its records: each can be told a number, or ignores
        blank records."""
        return all(
            run.guarantee.neighboring == "add_remove"
            or self.adapter.expecting(model, 1.0) is not None
            for run, model in zip(self.runs, self.models)
        )

    # --- the noise that they bring along ----------------------------------------------------------

    @cached_property
    def bring_noise(self) -> bool:
        """Return whether the search sets noise of estimators in the space: each family is
        calibrated by itself."""
        return self.calibrated and self.noise_in_parts

    @cached_property
    def noise_in_parts(self) -> bool:
        """Return whether noise parameters belong to estimators that candidates put in."""
        if not any(_parts_of(dictionary) for dictionary in self.space.dictionaries):
            return False
        return any(
            any(name.startswith(f"{owner}__") for name in noise)
            for dictionary, noise in zip(self.space.dictionaries, self._noises(1.0))
            for owner, _ in _parts_of(dictionary)
        )

    def promises(self) -> list[Guarantee]:
        """Guarantee of training one candidate of each family, with the noise as configured."""
        training = Training(self.adapter, self.n_samples, self.relation)
        return [
            runs[0].guarantee
            for runs in Points(self.estimator, self.at(1.0), training).promises().runs
        ]

    def promises_if_replaced(self) -> list[Guarantee]:
        """Guarantee of each candidate, as configured, for a replaced record."""
        training = Training(self.adapter, self.n_samples, "replace_one", self.n_samples)
        runs = Points(self.estimator, self.space, training).promises().runs
        return [run.guarantee for family in runs for run in family]

    def at(self, factor: float) -> Space:
        """Space with noise set in the parts of every family; ``factor`` multiplies the privacy
        losses."""
        self._refuse_searched_noise()
        return replace(
            self.space,
            dictionaries=tuple(
                self._with(dictionary, {**restated, **noise})
                for dictionary, restated, noise in zip(
                    self.space.dictionaries, self.restated, self._noises(factor)
                )
            ),
        )

    def alone(self, index: int) -> Families:
        """One family alone, at the common relation."""
        place = slice(index, index + 1)
        return replace(
            self,
            space=Space(self.space.dictionaries[place]),
            models=self.models[place],
            runs=self.runs[place],
            relations=(self.relation,),
            restated=self.restated[place],
            balance=(1.0,),
        )

    def _noises(self, factor: float) -> list[dict[str, Any]]:
        """Parameters that set the noise of each family."""
        return [
            self.adapter.scaled_privacy(model, factor * share, self.varying)
            for model, share in zip(self.models, self.balance)
        ]

    def _with(self, dictionary: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
        """Copy the dictionary with parameters set on their parts."""
        parameters = {
            **self.estimator.get_params(deep=True),
            **{name: values[0] for name, values in _parts_of(dictionary)},
        }
        changed = dict(dictionary)
        for name, value in settings.items():
            owner = _owner_of(name, parameters)
            part = changed.get(owner, [parameters.get(owner)])[0]
            inner = name.removeprefix(f"{owner}__")
            changed[owner] = [
                value if inner == name else with_parameters(clone(part), {inner: value})
            ]
        return changed

    def _refuse_searched_noise(self) -> None:
        """Raise where candidates vary noise that the search sets, or where families differ in their
        noise alone."""
        texts: dict[Any, Any] = {}
        for dictionary, noise in zip(self.space.dictionaries, self._noises(1.0)):
            searched = sorted(set(dictionary) & set(noise))
            text = _family_text(dictionary, without=set(noise))
            if texts.setdefault(text, _family_text(dictionary)) != _family_text(dictionary):
                searched = [owner for owner, _ in _parts_of(dictionary)]
            if searched:
                raise PrivacyError(SEARCHED.format(searched, sorted(noise)))


SEARCHED = (
    "Found epsilon= for the whole search while the candidates vary {}, and with it {}, which "
    "calibration sets. Remove what differs in the noise alone from the space, or leave the "
    "search's epsilon=None to have the total reported."
)


def families_of(
    estimator: Any, adapter: Adapter, space: Space, n_samples: int | None, *, calibrated: bool
) -> Families:
    """Look up the families of a space.

    Raises
    ------
    ValueError
        If some families classify and others are regressors.
    """
    space = space.by_family()
    models = tuple(_model_of(estimator, dictionary) for dictionary in space.dictionaries)
    _check_one_kind(models)
    varying, noisy = frozenset(space.names), models
    if calibrated:
        noisy = tuple(
            with_parameters(clone(model), adapter.scaled_privacy(model, 1.0, varying))
            for model in models
        )
    runs = tuple(adapter.training_run(model, n_samples) for model in noisy)
    relations = tuple(with_public_size(run).guarantee.neighboring for run in runs)
    differ = calibrated and len(set(relations)) > 1
    return Families(
        estimator=estimator,
        adapter=adapter,
        space=space,
        calibrated=calibrated,
        n_samples=n_samples,
        varying=varying,
        models=models,
        runs=runs,
        relations=relations,
        restated=tuple((adapter.under(model, COMMON) or {}) if differ else {} for model in noisy),
        balance=(1.0,) * len(models),
    )


def kinds_of(estimator: Any, space: Space) -> list[Any]:
    """The estimator with the parts of each family, and no other parameter set."""
    return [_with_parts(estimator, dictionary) for dictionary in space.by_family().dictionaries]


def in_full(tuned: Space, final: Space) -> InFull:
    """Map candidates of one space to candidates of another space with the same families."""
    if tuned is final:
        return InFull(())
    pairs = zip(tuned.dictionaries, final.dictionaries)
    return InFull(
        [(name, old[name][0], new[name][0]) for old, new in pairs for name, _ in _parts_of(old)]
    )


def first_of(dictionary: Mapping[str, Any]) -> dict[str, Any]:
    """First candidate of a dictionary, without parameters that are drawn from distributions."""
    return {name: values[0] for name, values in dictionary.items() if not hasattr(values, "rvs")}


def _check_one_kind(models: Sequence[Any]) -> None:
    kinds = {"classifiers": is_classifier, "regressors": is_regressor}
    examples = {
        name: next((m for m in models if is_one(m)), None) for name, is_one in kinds.items()
    }
    if None not in examples.values():
        raise ValueError(
            "Found classifiers and regressors among the candidates; no score compares both. Give "
            "estimators of one kind."
        )


def _parts_of(dictionary: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [(name, values) for name, values in dictionary.items() if is_part(values)]


def _owner_of(name: str, parameters: Mapping[str, Any]) -> str:
    """Longest prefix of a parameter's name that names an estimator; else the name itself."""
    words = name.split("__")
    beginnings = ["__".join(words[:i]) for i in range(len(words) - 1, 0, -1)]
    return next(
        (owner for owner in beginnings if hasattr(parameters.get(owner), "get_params")), name
    )


def _family_text(dictionary: Mapping[str, Any], without: Set[str] = frozenset()) -> tuple[Any, ...]:
    """Text that tells families apart, without some parameters of their parts."""
    text: list[Any] = []
    for owner, values in sorted(dictionary.items()):
        inner = values[0].get_params(deep=True) if is_part(values) else {}
        text += [(owner, type(values[0]))] if is_part(values) else [(owner, repr(values))]
        text += [
            (owner, name, repr(inner[name]))
            for name in sorted(inner)
            if f"{owner}__{name}" not in without
        ]
    return tuple(text)


def _with_parts(estimator: Any, dictionary: Mapping[str, Any]) -> Any:
    return configured(estimator, {name: values[0] for name, values in _parts_of(dictionary)})


def _model_of(estimator: Any, dictionary: Mapping[str, Any]) -> Any:
    """A candidate of a family.

    Raises
    ------
    ValueError
        For a parameter that the estimators in this family do not have.
    """
    first = first_of(dictionary)
    model = _with_parts(estimator, dictionary)
    for name in dictionary:
        if name not in model.get_params(deep=True) and not accepts(model, name):
            kinds = ", ".join(type(values[0]).__name__ for _, values in _parts_of(dictionary))
            raise ValueError(
                f"Found the parameter {name!r} for candidates with "
                f"{kinds or type(estimator).__name__}, which has none of this name. Give each "
                f"estimator a dictionary of its own: [{{'model': [A()], 'model__a': [...]}}, "
                f"{{'model': [B()], 'model__b': [...]}}]."
            )
    return configured(
        model,
        {name: value for name, value in first.items() if name not in dict(_parts_of(dictionary))},
    )
