"""Families of candidates: estimators put into a step bring their own noise and neighbours.

A family is all candidates with the same estimators in their steps. Where families hold under
different relations, the whole search is stated under ``replace_one``. Under a given total, every
family first gets the noise with which a search over this family alone would meet the total; then
one common factor brings the whole search to the total.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from typing import Any

from sklearn.base import clone, is_classifier, is_regressor

from ...adapters import Adapter, TrainingRun
from ...privacy import PrivacyError, as_replace_one, as_zero_out
from ...privacy._checks import Neighboring, cached_property
from .._records import with_parameters
from .space import Space, accepts, configured, is_part, listed

#: Relation to which guarantees under any other relation can be converted.
RELATION: Neighboring = "replace_one"

PUBLIC_SIZE = (
    "A guarantee about adding or removing a record is stated for blanking one in its place "
    "(zero_out): the number of records is public, and training ignores a blank record as it "
    "ignores one that is not there."
)
SEARCHED_NOISE = (
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
    models = noisy = tuple(_model_of(estimator, dictionary) for dictionary in space.dictionaries)
    if any(map(is_classifier, models)) and any(map(is_regressor, models)):
        raise ValueError(
            "Found classifiers and regressors among the candidates; no score compares both. Give "
            "estimators of one kind."
        )
    varying = frozenset(space.names)
    if calibrated:
        noises = (adapter.scaled_privacy(model, 1.0, varying) for model in models)
        noisy = tuple(with_parameters(clone(m), noise) for m, noise in zip(models, noises))
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
        restated=tuple((adapter.under(model, RELATION) or {}) if differ else {} for model in noisy),
        balance=(1.0,) * len(models),
    )


def kinds_of(estimator: Any, space: Space) -> list[Any]:
    """The estimator with the parts of each family, and no other parameter set."""
    families = space.by_family().dictionaries
    return [configured(estimator, _parts_of(dictionary)) for dictionary in families]


@dataclass(frozen=True, kw_only=True)
class Families:
    """The candidates of a search by family, and how each is trained.

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

    # --- what a candidate promises ----------------------------------------------------------------

    @property
    def relation(self) -> Neighboring:
        """Relation under which the search is stated."""
        return self.relations[0] if len(set(self.relations)) == 1 else RELATION

    def training_run(self, model: Any, n_samples: int | None = None) -> TrainingRun:
        """Guarantee of training a candidate, under the relation of the search.

        Parameters
        ----------
        model : estimator
            With its noise set.
        n_samples : int, optional
            Number of records that train, if not all: rates and numbers of steps of the model are
            set as planned.
        """
        if n_samples not in (None, self.n_samples):
            assert self.n_samples is not None
            self.adapter.for_records(model, self.n_samples)
        size = self.n_samples if n_samples is None else n_samples
        run = with_public_size(self.adapter.training_run(model, size))
        if self.relation != RELATION:
            return run
        return replace(run, guarantee=as_replace_one(run.guarantee))

    @cached_property
    def told_their_size(self) -> bool:
        """Return whether candidates are told a number of records, or ignore blank ones."""
        return all(
            run.guarantee.neighboring == "add_remove"
            or self.adapter.expecting(model, 1.0) is not None
            for run, model in zip(self.runs, self.models)
        )

    @property
    def train_together(self) -> bool:
        """Return whether candidates of some family can be trained at once."""
        return any(map(self.adapter.trains_together, self.models))

    # --- the noise that they bring along ----------------------------------------------------------

    @property
    def bring_noise(self) -> bool:
        """Return whether the search sets noise in the space, of each family by itself."""
        return self.calibrated and self.noise_in_parts

    @cached_property
    def noise_in_parts(self) -> bool:
        """Return whether noise parameters belong to estimators that candidates put in."""
        parts = [_parts_of(dictionary) for dictionary in self.space.dictionaries]
        return any(parts) and any(
            name.startswith(f"{owner}__")
            for owners, noise in zip(parts, self._noises(1.0))
            for owner in owners
            for name in noise
        )

    def at(self, factor: float) -> Space:
        """Space with noise set in the parts of every family; ``factor`` multiplies the losses."""
        self._refuse_searched_noise()
        settings = [
            {**family, **noise} for family, noise in zip(self.restated, self._noises(factor))
        ]
        dictionaries = map(self._with_settings, self.space.dictionaries, settings)
        return replace(self.space, dictionaries=tuple(dictionaries))

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

    def _with_settings(
        self, dictionary: Mapping[str, Any], settings: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Copy of a dictionary with parameters set on the parts to which they belong."""
        parameters = {**self.estimator.get_params(deep=True), **_parts_of(dictionary)}
        changed = dict(dictionary)
        for name, value in settings.items():
            owner = _owner_of(name, parameters)
            if owner != name:
                part = clone(changed.get(owner, [parameters[owner]])[0])
                value = with_parameters(part, {name.removeprefix(f"{owner}__"): value})
            changed[owner] = [value]
        return changed

    def _refuse_searched_noise(self) -> None:
        """Raise where candidates vary noise that the search sets, or differ in it alone."""
        families: dict[Any, Any] = {}
        for dictionary, noise in zip(self.space.dictionaries, self._noises(1.0)):
            searched = sorted(set(dictionary) & set(noise))
            family = _description(dictionary)
            if families.setdefault(_description(dictionary, without=set(noise)), family) != family:
                searched = list(_parts_of(dictionary))
            if searched:
                raise PrivacyError(SEARCHED_NOISE.format(searched, sorted(noise)))


def with_public_size(run: TrainingRun) -> TrainingRun:
    """State a guarantee under a relation for which the number of records is public."""
    if run.guarantee.neighboring != "add_remove":
        return run
    assumptions = (*run.assumptions, PUBLIC_SIZE)
    return replace(run, guarantee=as_zero_out(run.guarantee), assumptions=assumptions)


def _parts_of(dictionary: Mapping[str, Any]) -> dict[str, Any]:
    """Name ↦ first value, for the parameters whose values are estimators."""
    return {name: values[0] for name, values in dictionary.items() if is_part(values)}


def _model_of(estimator: Any, dictionary: Mapping[str, Any]) -> Any:
    """A candidate of a family, with the first of the listed values.

    Raises
    ------
    ValueError
        For a parameter that the estimators in this family do not have.
    """
    parts = _parts_of(dictionary)
    model = configured(estimator, parts)
    for name in dictionary:
        if name not in model.get_params(deep=True) and not accepts(model, name):
            kinds = ", ".join(type(part).__name__ for part in parts.values())
            raise ValueError(
                f"Found the parameter {name!r} for candidates with "
                f"{kinds or type(estimator).__name__}, which has none of this name. Give each "
                f"estimator a dictionary of its own: [{{'model': [A()], 'model__a': [...]}}, "
                f"{{'model': [B()], 'model__b': [...]}}]."
            )
    first = {name: values[0] for name, values in listed(dictionary).items() if name not in parts}
    return configured(model, first)


def _owner_of(name: str, parameters: Mapping[str, Any]) -> str:
    """Longest prefix of a parameter's name that names an estimator; else the name itself."""
    words = name.split("__")
    prefixes = ("__".join(words[:i]) for i in range(len(words) - 1, 0, -1))
    owners = (prefix for prefix in prefixes if hasattr(parameters.get(prefix), "get_params"))
    return next(owners, name)


def _description(dictionary: Mapping[str, Any], without: Set[str] = frozenset()) -> tuple[Any, ...]:
    """Key that tells families apart, without some parameters of their parts."""
    words: list[Any] = []
    for owner, values in sorted(dictionary.items()):
        inner = values[0].get_params(deep=True) if is_part(values) else {}
        words.append((owner, type(values[0]) if is_part(values) else repr(values)))
        names = (name for name in sorted(inner) if f"{owner}__{name}" not in without)
        words += [(owner, name, repr(inner[name])) for name in names]
    return tuple(words)
