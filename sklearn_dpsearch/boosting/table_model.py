"""Models of tables that a public schema describes, with a Gaussian target for the guarantee of one
fit."""

from __future__ import annotations

import numbers
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils._param_validation import Interval, StrOptions

from .._site import SITE, linked
from ..errors import check_arguments_of
from ..ledger.fits import state_in_block
from ..preprocessing import Schema, TableEncoder
from ..preprocessing.schema import MOST_SHOWN
from ..privacy import PrivacyError
from ..privacy._types import NEIGHBORING, Neighboring
from .features import MAX_BINS, CodedColumns

#: Accepted seeds; None: the operating system.
Seed: TypeAlias = int | np.random.RandomState | None
#: Ways to state the privacy of one fit.
TARGETS = ("target_epsilon", "target_delta", "target_mu")
#: δ at which ``privacy_spent_`` states ε where no ``target_delta`` was given; ``epsilon_at`` gives
#: any other.
STATED_DELTA = 1e-5


@linked
@dataclass(kw_only=True, eq=False, repr=False, match_args=False)
class TableModel(BaseEstimator):
    """Model of a table by its schema, with a Gaussian target.

    ``target_mu``, or ``target_epsilon`` with ``target_delta``.

    Parameters
    ----------
    schema : Schema or dict
        Columns by name, as ``TableEncoder`` takes them: ranges, lists of all values, dictionaries
        with options. It is public knowledge. Other columns of a data frame are left out.
    target : str, optional
        Column of the schema that is predicted, and no feature. The schema then states ``classes``,
        or ``bounds_y``.
    target_epsilon, target_delta : float, optional
        Guarantee of one fit, to which the noise is calibrated.
    target_mu : float, optional
        Instead: μ of its Gaussian guarantee.
    neighboring : {"add_remove", "zero_out", "replace_one"}, default="zero_out"
        Neighbouring relation. The first two cost the same; under "replace_one" the noise is twice
        as large. The number of records is never used.
    random_state : None, int or RandomState
        Seeds the cells, which are public. Never the noise.
    noise_seed : None, int or RandomState
        For tests only: it voids the guarantee. The noise follows from the seed, the records, the
        cells and all arguments: fits that differ share no noise.

    Attributes
    ----------
    privacy_spent_ : PrivacySpent
        Cost of the fit.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        The schema's columns without the target; only after ``fit`` on a data frame.
    """

    #: Without a seed, the noise comes from the operating system, in each fit.
    secure_without_seed = True
    #: Persons may come as ``groups``: a search hands them on.
    takes_groups = True
    #: Constructor arguments on which the guarantee depends.
    privacy_parameters: ClassVar[tuple[str, ...]] = (*TARGETS, "neighboring")
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "schema": [Mapping, str, PathLike],  # of files ``Schema.of`` says more
        "target": [None, str],
        "target_epsilon": [None, Interval(numbers.Real, 0, None, closed="neither")],
        "target_delta": [None, Interval(numbers.Real, 0, 1, closed="neither")],
        "target_mu": [None, Interval(numbers.Real, 0, None, closed="neither")],
        "neighboring": [StrOptions(set(NEIGHBORING))],
        "random_state": ["random_state"],
        "noise_seed": ["random_state"],
    }

    schema: Schema | Mapping[str, Any] = field(kw_only=False)
    target: str | None = None
    target_epsilon: float | None = None
    target_delta: float | None = None
    target_mu: float | None = None
    neighboring: Neighboring = "zero_out"
    random_state: Seed = None
    noise_seed: Seed = None

    def __new__(cls, *positional: Any, **named: Any) -> Self:
        """A model, unless it is given arguments that it does not have."""
        check_arguments_of(cls, named)
        model: Self = super().__new__(cls)
        return model

    def scaled_privacy(
        self, factor: float, varying: frozenset[str] = frozenset()
    ) -> dict[str, float | None]:
        """Parameters that make every fit ``factor`` times less private.

        1 stands for the target as configured.

        Without a target 1 stands for μ = 1.
        """
        return {
            **dict.fromkeys(TARGETS),
            "target_mu": (self._mu() if self._has_target else 1.0) * factor,
        }

    @property
    def public_facts(self) -> dict[str, Any]:
        """Facts about the target that the schema states, by the names of parameters: ``classes`` or
        ``bounds_y``."""
        return Schema.of(self.schema).facts_of(
            self.target, numeric=isinstance(self, RegressorMixin)
        )

    def made_up(self, n_samples: int = 200, random_state: int = 0) -> Any:
        """Make up records that fit the schema, for a dry run.

        They hold nothing about real records.

        Parameters
        ----------
        n_samples : int
        random_state : int
            A public seed.

        Returns
        -------
        DataFrame of shape (n_samples, n_columns)
            Of pandas; without it an array of objects.
        """
        return TableEncoder(self._features()).made_up(n_samples, random_state)

    def columns_read(self) -> list[str]:
        """One line for each column, as the schema is understood.

        For example ``age: number from 18 to 90, 17 bins``.
        """
        target = (
            []
            if self.target is None
            else Schema.of(self.schema).only(self.target).described({}, MOST_SHOWN)
        )
        return [
            *self._coded_columns().described(MOST_SHOWN),
            *(f"{line} (the target)" for line in target),
        ]

    def _features(self) -> Schema:
        schema = Schema.of(self.schema)
        features = schema if self.target is None else schema.without(self.target)
        return features.directed(self._directions(list(features)))

    def _coded_columns(self) -> CodedColumns:
        return CodedColumns(self._features(), int(getattr(self, "max_bins", MAX_BINS)))

    @property
    def _has_target(self) -> bool:
        """Return whether a target is given."""
        return any(getattr(self, name) is not None for name in TARGETS)

    def _mu(self) -> float:
        """μ of one fit, as stated or calibrated."""
        stated = {
            name: float(value) for name in TARGETS if (value := getattr(self, name)) is not None
        }
        if set(stated) not in ({"target_epsilon", "target_delta"}, {"target_mu"}):
            raise PrivacyError(
                f"Found {stated or 'none of target_epsilon, target_delta, target_mu'}; "
                "target_epsilon with target_delta, or target_mu, is needed: target_epsilon=1.0, "
                f"target_delta=1e-6, say, and in a search epsilon=1.0, delta=1e-6 of the search "
                f"alone. How to choose them: {SITE}/learn/budget.html."
            )
        if "target_mu" in stated:
            return stated["target_mu"]
        return self._calibrated_mu(stated["target_epsilon"], stated["target_delta"])

    @abstractmethod
    def _directions(self, columns: Sequence[str]) -> dict[str, int]:
        """Directions of the target along columns, beside those of the schema: -1, 0 or 1 by
        name."""

    @abstractmethod
    def _calibrated_mu(self, epsilon: float, delta: float) -> float:
        """Find the largest μ with which a fit is (ε, δ)-private."""

    def __getstate__(self) -> dict[str, Any]:
        """Drop the noise seed from a fitted model.

        The seed would be enough to undo the noise.
        """
        state: dict[str, Any] = super().__getstate__()
        return {**state, "noise_seed": None} if "privacy_spent_" in state else state_in_block(state)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags
