"""Adapters of composite estimators, whose parts have their own adapters."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from sklearn.compose import ColumnTransformer

from .adapter import Adapter, Estimator
from .steps_by_parameters import fit_by_parameters, release_steps

T = TypeVar("T")


class EstimatorPart(NamedTuple):
    """A part of an estimator: its name there ("" for the whole), the part, and its adapter."""

    name: str
    estimator: Any
    adapter: Adapter


class PartsAdapter(Adapter):
    """Base class that applies each operation to the parts of a model that an adapter knows."""

    @abstractmethod
    def known_parts(self, estimator: Estimator) -> Iterable[EstimatorPart]:
        """Parts of an unfitted estimator that need their adapter."""

    @abstractmethod
    def known_fitted_parts(self, model: Estimator) -> Iterable[tuple[Any, Adapter]]:
        """Parts of a fitted model that need their adapter."""

    def fresh_randomness(self, estimator: Estimator) -> dict[str, Any]:
        return under_names(
            (name, adapter.fresh_randomness(part)) for name, part, adapter in self.known_parts(estimator)
        )

    def integer_seeds(self, estimator: Estimator) -> dict[str, Any]:
        return under_names((name, adapter.integer_seeds(part)) for name, part, adapter in self.known_parts(estimator))

    def search_space(self, estimator: Estimator, *, grid: bool = False) -> list[dict[str, Any]] | None:
        """All combinations of the parts' spaces."""
        found = [
            (part.name, part.adapter.search_space(part.estimator, grid=grid)) for part in self.known_parts(estimator)
        ]
        known = [[under_names([(name, one)]) for one in space] for name, space in found if space is not None]
        combined = [dict(itertools.chain(*(one.items() for one in several))) for several in itertools.product(*known)]
        return combined if known else None

    def for_records(self, estimator: Estimator, n: int, places: int | None = None) -> None:
        for _, part, adapter in self.known_parts(estimator):
            adapter.for_records(part, n, places)

    def prepare(self, model: Estimator) -> None:
        fit_by_parameters(model)
        for _, part, adapter in self.known_parts(model):
            adapter.prepare(part)

    def finish(self, model: Estimator) -> None:
        for part, adapter in self.known_fitted_parts(model):
            adapter.finish(part)

    def scrub(self, model: Estimator) -> None:
        release_steps(model)
        for part, adapter in self.known_fitted_parts(model):
            adapter.scrub(part)


def under(name: str, parameter: str) -> str:
    """Name of a part's parameter in the whole model."""
    return f"{name}__{parameter}" if name else parameter


def under_names(parameters: Iterable[tuple[str, Mapping[str, T]]]) -> dict[str, T]:
    """Parameters of named parts as parameters of the whole."""
    return {under(name, key): value for name, found in parameters for key, value in found.items()}


def joined_dense(part: object) -> dict[str, Any]:
    """Make a column transformer join columns densely: by default the number of zeros in all records decides."""
    return {"sparse_threshold": 0} if type(part) is ColumnTransformer else {}
