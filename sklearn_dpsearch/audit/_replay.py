"""Replay of a fit on a neighbour: how far sums move, and what follows from noisy sums.

A mechanism that adds noise to sums, and goes on from noisy sums alone, is private if each sum moves
by no more than its noise is calibrated to. Both can be seen, without repeating the fit: the sums of
a fit are recorded, and the noisy answers are given again to a fit on a neighbour.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import joblib
import numpy as np

from ..data._partitions import is_partitioned
from ..data._persons import missing_among
from ..data._records import number_of_records
from ..ledger._ledger_context import refuse_in_block
from ..privacy import PrivacyError
from ..privacy._mechanisms.release_sum import Sums, listening

#: Records, and targets.
Dataset: TypeAlias = tuple[Any, Any]
#: The function that adds noise to a released sum.
AddNoise: TypeAlias = Callable[[Sums], Any]
#: Parameters that are set for a replay: a public seed, and one of the noise that is recorded.
SEEDS = ("random_state", "noise_seed")


@dataclass(frozen=True, kw_only=True)
class ReplayedRelease:
    """Released sum of a fit, compared with that on a neighbour.

    Parameters
    ----------
    name : str
    squared_distance : int, float or None
        Squared distance of the two sums; None if their shapes differ, or one has no such release.
    squared_sensitivity : Fraction
        What was declared, and paid for, in the norm by which the noise goes.
    """

    name: str
    squared_distance: int | float | None
    squared_sensitivity: Fraction

    @property
    def ratio(self) -> float:
        """Distance of the sums over the declared sensitivity."""
        if self.squared_distance is None:
            return math.inf
        return math.sqrt(self.squared_distance / self.squared_sensitivity)

    @property
    def passed(self) -> bool:
        """True if the sums are as close as declared, without rounding of whole numbers."""
        distance = self.squared_distance
        return distance is not None and distance <= self.squared_sensitivity


@dataclass(frozen=True, kw_only=True)
class ReplayResult:
    """Result of a replay; its text is a table.

    Parameters
    ----------
    releases : tuple of ReplayedRelease
        In order, with ``name``, ``squared_distance``, ``squared_sensitivity``, ``ratio`` and
        ``passed``.
    different : tuple of str
        Fitted attributes that differ in spite of the same noisy sums, to the last bit.
    """

    releases: tuple[ReplayedRelease, ...]
    different: tuple[str, ...]

    @property
    def largest(self) -> float:
        """Largest distance of sums over the declared sensitivity."""
        return max(release.ratio for release in self.releases)

    @property
    def passed(self) -> bool:
        """True if sums are close, and all else follows from them.

        It proves nothing of other data.
        """
        return not self.different and all(release.passed for release in self.releases)

    def __str__(self) -> str:
        lines = [f"{'release':<24} {'number':>6} {'distance / declared':>20}  passed"]
        for name in dict.fromkeys(release.name for release in self.releases):
            releases = [release for release in self.releases if release.name == name]
            passed = "yes" if all(release.passed for release in releases) else "no"
            largest = max(release.ratio for release in releases)
            lines.append(f"{name:<24} {len(releases):>6} {largest:>20.6f}  {passed}")
        verdict = f"no: {', '.join(self.different)}" if self.different else "yes"
        return "\n".join([*lines, f"{'all else is the same':<52}  {verdict}"])


def replay(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    neighbour: Dataset,
    groups: Any = None,
    neighbour_groups: Any = None,
) -> ReplayResult:
    """Fit, and fit again on a neighbour with the same noisy sums.

    It takes the time of two fits. Give public or made-up records: **the result is not private.**

    Parameters
    ----------
    estimator : estimator or callable
        Boosting or a net of this library; a search over them, of which one candidate is trained and
        scored as in ``dry_run``; or a function of X and y, such as
        ``lambda X, y: schema_report(X, schema, ...)``.
    X : table
        Records of the fit that is recorded.
    y : array-like, optional
        Their targets.
    neighbour : (X, y)
        A neighbour of these records under the estimator's relation. Under ``zero_out`` the number
        of records is public: the record stays in its place without a target, and so is blank. A
        record that is another one takes two steps there, to the blank record and from it, and may
        move sums by twice the sensitivity.
    groups, neighbour_groups : array-like, optional
        Persons of the records of both.

    Returns
    -------
    ReplayResult

    Raises
    ------
    PrivacyError
        If no sum was released where it can be listened to, as by estimators of others.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dpsearch.boosting import DPGradientBoostingRegressor
    >>> X = np.arange(40.0)[:, np.newaxis]
    >>> model = DPGradientBoostingRegressor(
    ...     {"x": (0, 40)}, bounds_y=(0, 40), target_mu=1.0, max_iter=10
    ... )
    >>> without_first = np.where(np.arange(40) == 0, np.nan, X[:, 0])
    >>> replay(model, X, X[:, 0], neighbour=(X, without_first)).passed
    True
    """
    refuse_in_block("replay")
    steps = _steps_between(estimator, (X, y), neighbour)
    recorded: list[tuple[str, Sums, Fraction, Any]] = []
    releases: list[ReplayedRelease] = []

    def compare(name: str, distance: int | float | None, squared: Fraction) -> None:
        releases.append(
            ReplayedRelease(name=name, squared_distance=distance, squared_sensitivity=squared)
        )

    def record(name: str, sums: Sums, squared: Fraction, norm: int, add_noise: AddNoise) -> Any:
        recorded.append((name, sums, squared, add_noise(sums)))
        return recorded[-1][-1]

    def answer(name: str, sums: Sums, squared: Fraction, norm: int, add_noise: AddNoise) -> Any:
        if len(releases) >= len(recorded):
            compare(name, None, squared)
            return add_noise(sums)
        first, recorded_sums, declared, noisy = recorded[len(releases)]
        alike = (first, recorded_sums.shape, declared) == (name, sums.shape, squared)
        squared *= steps**2
        square = _squared_norm(sums - recorded_sums, norm) if alike else None
        compare(name, square, squared)
        return noisy if alike else add_noise(sums)

    with listening(record):
        model = _fit_for_replay(estimator, X, y, groups)
    if not recorded:
        raise PrivacyError(
            f"Found no sum that {type(estimator).__name__} releases in this process; boosting, "
            "nets, searches over them, or schema_report are needed. audit and audit_one_run take "
            "all estimators."
        )
    with listening(answer):
        other_model = _fit_for_replay(estimator, *neighbour, neighbour_groups)
    for name, _, squared, _ in recorded[len(releases) :]:
        compare(name, None, squared)
    hashes, other_hashes = _attribute_hashes(model), _attribute_hashes(other_model)
    names = dict.fromkeys([*hashes, *other_hashes])
    different = tuple(name for name in names if hashes.get(name) != other_hashes.get(name))
    return ReplayResult(releases=tuple(releases), different=different)


def _steps_between(estimator: Any, first: tuple[Any, Any], other: tuple[Any, Any]) -> int:
    """Number of records zeroed out between two data sets, which differ in one record."""
    params = estimator.get_params() if hasattr(estimator, "get_params") else {}
    relations = {params[name] for name in params if name.rpartition("__")[2] == "neighboring"}
    if is_partitioned(first[0]) or relations != {"zero_out"}:
        return 1
    present = [number_of_records(X) - _without_target(y) for X, y in (first, other)]
    return 2 if present[0] == present[1] else 1


def _without_target(y: Any) -> int:
    """Number of records without a target, which count as blank."""
    if y is None:
        return 0
    targets = np.asarray(y, dtype=object).reshape(number_of_records(y), -1)
    return int(missing_among(targets.ravel()).reshape(targets.shape).any(axis=1).sum())


def _squared_norm(moved: Sums, norm: int) -> int | float:
    """Squared distance in the norm of the noise."""
    values = np.abs(moved).ravel()
    if values.dtype.kind == "f":
        return float(values.sum() ** 2 if norm == 1 else values @ values)
    integers = [int(value) for value in values]
    return sum(integers) ** 2 if norm == 1 else sum(value**2 for value in integers)


def _fit_for_replay(estimator: Any, X: Any, y: Any, groups: Any) -> Any:
    """Model fitted with a public seed, or result of a function."""
    if not hasattr(estimator, "fit"):
        return estimator(X, y)
    model = copy.copy(estimator)  # a public start would not stay fitted in a clone
    params = model.get_params(deep=False)
    model.set_params(**{name: 0 for name in SEEDS if name in params and params[name] is None})
    if hasattr(model, "dry_run"):
        if groups is not None:
            raise ValueError(
                f"Found groups for a replay of {type(model).__name__}, whose dry run takes records "
                "alone. Replay the estimator that it searches, with groups."
            )
        return model.dry_run(X, y)
    return model.fit(X, y) if groups is None else model.fit(X, y, groups=groups)


def _attribute_hashes(fitted: Any) -> dict[str, str]:
    """Hash of each attribute that follows from the records.

    The cost of a fit does not follow from them.
    """
    stated, pickled = {}, vars(fitted)
    if hasattr(fitted, "get_params"):
        stated, pickled = fitted.get_params(deep=False), fitted.__getstate__()
    return {
        name: joblib.hash(_as_arrays(value))
        for name, value in vars(fitted).items()
        if name not in (*stated, "privacy_spent_") and (name in pickled or not name.startswith("_"))
    }


def _as_arrays(value: Any) -> Any:
    """Object with its numbers in arrays, to be hashed.

    Pickles of equal tensors differ.
    """
    if hasattr(value, "state_dict"):
        return _as_arrays(value.state_dict())
    if hasattr(value, "numpy"):
        return value.numpy(force=True)
    if isinstance(value, Mapping):
        return {name: _as_arrays(value) for name, value in value.items()}
    if isinstance(value, (list, tuple)):
        return [_as_arrays(value) for value in value]
    if hasattr(value, "get_params"):
        return _attribute_hashes(value)
    return value
