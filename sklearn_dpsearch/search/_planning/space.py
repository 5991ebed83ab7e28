"""The space of candidates, drawn with replacement, and defaults around estimators' parameters."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from ...adapters import Adapter, adapter_for
from ...errors import did_you_mean
from ...privacy import PrivacyError
from .._records import Distributions, with_parameters
from .checks import refuse_pairwise, refuse_traces

#: Most combinations of estimators that candidates put into steps.
MOST_FAMILIES = 1000
#: Words, which estimators may refuse, as they may refuse parts.
WORDS = (str, os.PathLike)
#: Most points of a grid.
MOST_POINTS = 10**6


@dataclass(frozen=True)
class Space:
    """A list of dictionaries: name ↦ list of values, or distribution with a method ``rvs``.

    Candidates are independent and drawn with replacement: first a dictionary, then each of its
    parameters. Each is drawn from a copy of the distribution of its own, so that a distribution's
    own state never tells how many there are.

    Parameters
    ----------
    dictionaries : tuple of mapping
    weights : tuple of int, optional
        Dictionaries are drawn in these proportions; uniformly by default.
    """

    dictionaries: tuple[Mapping[str, Any], ...]
    weights: tuple[int, ...] = ()

    @classmethod
    def of(
        cls, distributions: Distributions | Space, parameter: str = "param_distributions"
    ) -> Space:
        """Check and wrap the value of this parameter of the search.

        A ``Space`` is returned as it is.
        """
        if isinstance(distributions, Space):
            return distributions
        dictionaries: Any = [distributions] if isinstance(distributions, Mapping) else distributions
        no_list = isinstance(dictionaries, str) or not isinstance(dictionaries, Sequence)
        if no_list or not all(isinstance(d, Mapping) for d in dictionaries):
            raise TypeError(
                f"Found {parameter}={distributions!r}; a dict of lists, or a list of such dicts, "
                f"is needed."
            )
        if not dictionaries:
            raise ValueError(
                f"Found {parameter}=[]; at least one dict of lists is needed. Give "
                f"{parameter}={{}} for one candidate."
            )
        for dictionary in dictionaries:
            for name, values in dictionary.items():
                _check_values(name, values, parameter)
        lists = ({name: _as_list(values) for name, values in d.items()} for d in dictionaries)
        return cls(tuple(lists))

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

    @property
    def is_finite(self) -> bool:
        """Return whether all values are listed, so that there are finitely many points."""
        return not any(map(_distributions, self.dictionaries))

    def size(self) -> int:
        """Count the points of a finite space.

        Raises
        ------
        ValueError
            For a distribution, which has no finite grid, and for too many points.
        """
        for name in itertools.chain(*map(_distributions, self.dictionaries)):
            raise ValueError(
                f"Found a distribution for {name!r}, but the whole grid is searched. Give a list "
                "of values, or use DPRandomSearchCV."
            )
        number = sum(map(size_of, self.dictionaries))
        if number > MOST_POINTS:
            raise ValueError(
                f"Found a grid of {number} candidates; all of them would run, and at most "
                f"{MOST_POINTS} are tried. Give fewer values, or use DPRandomSearchCV, which draws "
                f"candidates."
            )
        return number

    def points(self) -> list[tuple[int, dict[str, Any]]]:
        """Every point of a finite space, with the number of its dictionary."""
        self.size()
        return [
            (which, dict(zip(dictionary, values)))
            for which, dictionary in enumerate(self.dictionaries)
            for values in itertools.product(*dictionary.values())
        ]

    def by_family(self) -> Space:
        """Equivalent space with one dictionary for each combination of estimators put in."""
        split = [_by_parts(dictionary) for dictionary in self.dictionaries]
        if all(len(families) == 1 for families in split):
            return self
        shares = math.lcm(*(len(families) for families in split))
        pairs = zip(self._weights, split)
        weights = [weight * shares // len(part) for weight, part in pairs for _ in part]
        return Space(tuple(itertools.chain(*split)), tuple(weights))

    def draw(self, rng: np.random.RandomState) -> tuple[int, dict[str, Any]]:
        """Index of a dictionary, and one candidate from it."""
        number = rng.randint(sum(self._weights))
        which = int(np.searchsorted(np.cumsum(self._weights), number, side="right"))
        return which, self.draw_from(which, rng)

    def draw_from(self, which: int, rng: np.random.RandomState) -> dict[str, Any]:
        """One candidate from a dictionary."""
        candidate = {}
        for name, values in sorted(self.dictionaries[which].items()):
            if hasattr(values, "rvs"):
                candidate[name] = _untouched(values).rvs(random_state=rng)
            else:
                candidate[name] = values[rng.randint(len(values))]
        return candidate

    def check_names(self, estimator: Any) -> None:
        """Raise for an unknown name, before any data is read."""
        parameters = estimator.get_params(deep=True)
        values = [values for d in self.dictionaries for values in d.values() if is_part(values)]
        parts = [part for part in itertools.chain(*values) if hasattr(part, "get_params")]
        nested = {name for part in parts for name in part.get_params()}
        for name in self.names:
            tail = name.rpartition("__")[2]
            if name not in parameters and tail not in nested and not accepts(estimator, name):
                kind, suggestion = type(estimator).__name__, did_you_mean(name, parameters)
                raise ValueError(
                    f"Invalid parameter {name!r} for estimator {kind}.{suggestion} "
                    "estimator.get_params() lists the valid ones."
                )

    def check_values(self, estimator: Any) -> None:
        """Raise for a listed word or estimator that no candidate may have, drawn or not."""
        for dictionary in self.dictionaries:
            for name, values in listed(dictionary).items():
                for value in values:
                    is_word, has_parts = isinstance(value, WORDS), hasattr(value, "get_params")
                    if is_word or has_parts or "callbacks" in name.split("__"):
                        for owner in _possible_owners(dictionary, name):
                            configured(estimator, {**owner, name: value})


def size_of(dictionary: Mapping[str, Any]) -> int:
    """Count the points of one dictionary of lists."""
    return math.prod(map(len, dictionary.values()))


def _distributions(dictionary: Mapping[str, Any]) -> list[str]:
    """Names of the parameters that are drawn from distributions."""
    return [name for name, values in dictionary.items() if hasattr(values, "rvs")]


def configured(estimator: Any, parameters: Mapping[str, Any]) -> Any:
    """Make an unfitted estimator with parameters.

    Raise if it would see other candidates or compare records.
    """
    copies = {
        name: clone(value, safe=False) if hasattr(value, "get_params") else value
        for name, value in parameters.items()
    }
    model = with_parameters(clone(estimator), copies)
    refuse_traces(model)
    refuse_pairwise(model)
    return model


def is_part(values: Any) -> bool:
    """Return whether the values of a parameter are estimators, or words in their place."""
    return not hasattr(values, "rvs") and any(hasattr(value, "get_params") for value in values)


def listed(dictionary: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters with lists of values, without those that are drawn from distributions."""
    return {name: values for name, values in dictionary.items() if not hasattr(values, "rvs")}


def shared_parameters(dictionary: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters that all candidates of a dictionary share, without those of differing parts."""
    fixed = {name for name, values in listed(dictionary).items() if len(values) == 1}
    return {
        name: dictionary[name][0]
        for name in dictionary
        if name in fixed
        and all(owner in fixed or not name.startswith(f"{owner}__") for owner in dictionary)
    }


def _by_parts(dictionary: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Split a dictionary: one for each combination of the estimators that its candidates put in."""
    parts = [name for name, values in dictionary.items() if is_part(values)]
    number = math.prod(len(dictionary[name]) for name in parts)
    if number > MOST_FAMILIES:
        raise PrivacyError(
            f"Found {number} combinations of estimators in {sorted(parts)}; at most "
            f"{MOST_FAMILIES} are looked up. Give fewer, or vary their parameters instead."
        )
    combinations = itertools.product(*([[value] for value in dictionary[name]] for name in parts))
    return [{**dictionary, **dict(zip(parts, values))} for values in combinations]


def _possible_owners(dictionary: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Replaced parts of a candidate to which a parameter may belong."""
    above = [owner for owner in listed(dictionary) if name.startswith(f"{owner}__")]

    choices = []
    for owner in above:
        tail = name.removeprefix(f"{owner}__")
        parts = [part for part in dictionary[owner] if hasattr(part, "get_params")]
        choices.append([part for part in parts if tail in part.get_params()])
    return [dict(zip(above, parts)) for parts in itertools.product(*choices)]


def accepts(estimator: Any, name: str) -> bool:
    """Return whether an estimator takes a parameter that it does not list.

    skorch's ``module__…`` and the like are such parameters.
    """
    owner, _, _ = name.partition("__")
    is_strict = type(estimator).set_params is BaseEstimator.set_params
    if owner == name or (f"{owner}__" in name and is_strict):
        return False
    try:
        clone(estimator).set_params(**{name: None})
    except (ValueError, TypeError, AttributeError):
        return False
    return True


def _check_values(name: Any, values: Any, parameter: str) -> None:
    if not isinstance(name, str):
        raise TypeError(
            f"Found {name!r} ({type(name).__name__}) as a name in {parameter}; a string is needed, "
            "the name of a parameter of the estimator. Write e.g. {'C': [0.1, 1.0]}."
        )
    if hasattr(values, "rvs"):
        _untouched(values, name, parameter)
        return
    no_list = isinstance(values, (str, Iterator, Mapping)) or not isinstance(values, Iterable)
    if no_list or getattr(values, "ndim", 1) > 1:
        raise TypeError(
            f"Found {values!r} for {name!r} in {parameter}; a list of values"
            f"{' or a distribution with a method rvs' * (parameter != 'param_grid')} is needed. "
            f"Write e.g. {{{name!r}: "
            f"[{'...' if isinstance(values, (Iterator, Mapping)) else repr(values)}]}}."
        )
    if len(_as_list(values)) == 0:
        raise ValueError(
            f"Found an empty list for {name!r} in {parameter}: the space is empty. Give at least "
            f"one value, or leave {name!r} out."
        )


def _as_list(values: Any) -> Any:
    return values if hasattr(values, "rvs") else list(values)


def _untouched(distribution: Any, name: str = "", parameter: str = "") -> Any:
    """Copy a distribution, unless it is scipy's.

    scipy's own distributions draw from ``random_state`` alone, and copying takes longer than
    drawing.
    """
    parts = distribution, getattr(distribution, "dist", None)
    if all(type(part).__module__.startswith("scipy.") for part in parts):
        return distribution
    try:
        return deepcopy(distribution)
    except Exception:
        problem = TypeError(
            f"Found a distribution of type {type(distribution).__name__} for {name!r} in "
            f"{parameter} that cannot be copied; a copy for each candidate is needed, because its "
            "own state could tell how many were drawn. Let it draw from random_state alone, or "
            "give a list of values."
        )
    raise problem


# --- default spaces -------------------------------------------------------------------------------

#: Word for the estimator's own space, in place of a space.
AUTO = "auto"


def search_space(
    *estimators: Any, step: str | None = None, grid: bool = False
) -> list[dict[str, Any]]:
    """Make the space of ``param_distributions="auto"``, or a space over several estimators.

    Parameters
    ----------
    *estimators : estimator
        Nets of ``sklearn_dpsearch.nets``, models of diffprivlib, pipelines of them, or anything
        with a method ``search_space(grid=False)``.
    step : str, optional
        Name of a step of a pipeline. The space then puts each of the estimators into it, with a
        space of its own; each is drawn equally often.
    grid : bool, default=False
        Whether lists of values are needed, for a search over a whole grid.

    Returns
    -------
    list of dict
        As ``param_distributions`` or ``param_grid`` take it.

    Examples
    --------
    >>> from sklearn.pipeline import Pipeline
    >>> from sklearn_dpsearch import DPRandomSearchCV, search_space
    >>> from sklearn_dpsearch.nets import DPLogisticRegression, DPMLPClassifier
    >>> models = DPLogisticRegression(), DPMLPClassifier()
    >>> pipeline = Pipeline([("model", models[0])])
    >>> space = search_space(*models, step="model")
    >>> search = DPRandomSearchCV(pipeline, space, epsilon=1.0, delta=1e-6)
    >>> search_space(models[0], grid=True)
    [{'learning_rate_factor': [0.8, 1.0, 1.25]}]
    """
    if step is None:
        if len(estimators) != 1:
            raise ValueError(
                f"Found {len(estimators)} estimators without a step to put them in. Give one "
                "estimator, or step='model' for a Pipeline([('model', ...)])."
            )
        return own_space(estimators[0], adapter_for(estimators[0]), grid=grid)
    spaces = []
    for estimator in estimators:
        space = _known_space(estimator, adapter_for(estimator), grid=grid)
        inner = [{f"{step}__{name}": d[name] for name in d} for d in space]
        spaces.append([{step: [estimator], **dictionary} for dictionary in inner])
    if not spaces:
        raise ValueError(f"Found no estimators for the step {step!r}. Give at least one.")
    length = 1 if grid else math.lcm(*(len(space) for space in spaces))
    return [dictionary for space in spaces for dictionary in space * max(1, length // len(space))]


def own_space(estimator: Any, adapter: Adapter, *, grid: bool) -> list[dict[str, Any]]:
    """The estimator's own space.

    Raises
    ------
    PrivacyError
        Where none is known, or nothing is worth searching.
    """
    space = _known_space(estimator, adapter, grid=grid)
    if not any(space):
        raise PrivacyError(
            f"Found 'auto' as the space of {type(estimator).__name__}, of whose parameters none is "
            "worth a search. Fit it as it is, give a space, or let it compete with others: "
            "search_space(A(), B(), step='model')."
        )
    return space


def _known_space(estimator: Any, adapter: Adapter, *, grid: bool) -> list[dict[str, Any]]:
    space = adapter.search_space(estimator, grid=grid)
    if space is None:
        raise PrivacyError(
            f"Found 'auto' as the space of {type(estimator).__name__}, for which no space is "
            "known. Give a space, e.g. {'C': [0.1, 1.0]}, or give the estimator a method "
            "search_space(grid=False) that returns a list of dicts."
        )
    return space
