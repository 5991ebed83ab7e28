"""Splits into training and validation records, and what they make a run cost.

The cost follows from how often one record is used. A split never depends on the data.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn import model_selection

from ..privacy import Guarantee, PrivacyError, compose, envelope, mixture
from ..privacy._checks import require
from ..privacy._mechanisms.array_sampling import RandomBytes, bernoulli, uniform_integers

Indices = npt.NDArray[np.integer[Any]]
#: Training and validation records.
Fold = tuple[Indices, Indices]
#: Most folds of a search: every candidate trains one model for each.
MOST_FOLDS = 1000


def kind_of_numbers(n: int) -> type[np.integer[Any]]:
    """Integer type that holds the numbers of n records, of four bytes where these are enough."""
    return np.int32 if n < 2**31 else np.int64


def all_numbers(n: int) -> Indices:
    """Numbers of all records, 0 … n − 1."""
    return np.arange(n, dtype=kind_of_numbers(n))


def numbers_where(chosen: npt.NDArray[np.bool_]) -> Indices:
    """Numbers of the chosen records."""
    return np.flatnonzero(chosen).astype(kind_of_numbers(len(chosen)))


@dataclass(frozen=True)
class Exposure:
    """Use of one record by one run: trainings and validations.

    Parameters
    ----------
    trainings, scorings : int
        Number of models that the record trains, and of scores that it enters.
    probability : float or None
        Probability of this use, if it is drawn in secret for each record; None if the use is
        public.
    """

    trainings: int
    scorings: int
    probability: float | None = None


class Validation(ABC):
    """Base class of ways to choose training and validation records."""

    #: Whether the number of training records is random, or smaller than the number of all records.
    training_sizes_vary: ClassVar[bool] = True

    @abstractmethod
    def exposures(self) -> tuple[Exposure, ...]:
        """Uses of one record by one run, all possible ones."""

    @abstractmethod
    def folds(self, n_samples: int, random_bytes: RandomBytes) -> list[Fold]:
        """Training and validation records of each fold.

        Few records are no error.
        """

    def check(self, n_samples: int) -> None:
        """Raise if a public number of records is too small to be divided."""
        return None

    def draw(
        self, n_samples: int, random_bytes: RandomBytes
    ) -> tuple[npt.NDArray[np.bool_], list[Fold]]:
        """Draw the participating records, a mask of shape (n_samples,), and their folds.

        By default every record takes part.
        """
        return np.ones(n_samples, dtype=bool), self.folds(n_samples, random_bytes)

    @property
    def taking_part(self) -> float:
        """Expected share of records that take part."""
        return 1.0

    def n_scored(self, n_samples: int, n_folds: int) -> int:
        """Expected number of validation records of one fold, at least 1."""
        uses = self.exposures()
        scorings = sum(
            (1.0 if use.probability is None else use.probability) * use.scorings for use in uses
        )
        return max(1, round(scorings / n_folds * self.taking_part * n_samples))


@dataclass(frozen=True)
class PublicValidation(Validation):
    """Validation on public data; all private records train."""

    training_sizes_vary = False

    def exposures(self) -> tuple[Exposure, ...]:
        return (Exposure(1, 0),)

    def folds(self, n_samples: int, random_bytes: RandomBytes) -> list[Fold]:
        return [(all_numbers(n_samples), all_numbers(0))]


@dataclass(frozen=True)
class HoldOut(Validation):
    """Validation on a random hold-out, record by record.

    Each validates with probability ``fraction`` and trains otherwise.
    """

    fraction: float = 0.2

    def __post_init__(self) -> None:
        require(0 < self.fraction < 1, "cv as a fraction in (0, 1)", cv=self.fraction)

    def exposures(self) -> tuple[Exposure, ...]:
        return (Exposure(1, 0, 1.0 - self.fraction), Exposure(0, 1, self.fraction))

    def folds(self, n_samples: int, random_bytes: RandomBytes) -> list[Fold]:
        validates = bernoulli(n_samples, self.fraction, random_bytes)
        return [(numbers_where(~validates), numbers_where(validates))]


@dataclass(frozen=True)
class RandomFolds(Validation):
    """Validation on random folds, drawn record by record.

    Each draws one of ``n_folds`` parts uniformly; it validates there and trains the other folds'
    models.
    """

    n_folds: int

    def __post_init__(self) -> None:
        require(self.n_folds >= 2, "cv >= 2 folds", cv=self.n_folds)
        _check_number(self.n_folds)

    def exposures(self) -> tuple[Exposure, ...]:
        return (Exposure(self.n_folds - 1, 1),)

    def check(self, n_samples: int) -> None:
        if n_samples < self.n_folds:
            raise ValueError(
                f"Cannot make {self.n_folds} folds of {n_samples} records (n_samples={n_samples}). "
                "Give a smaller cv, or a fraction for one hold-out."
            )

    def folds(self, n_samples: int, random_bytes: RandomBytes) -> list[Fold]:
        part = uniform_integers(n_samples, self.n_folds, random_bytes)
        return [(numbers_where(part != i), numbers_where(part == i)) for i in range(self.n_folds)]


@dataclass(frozen=True, eq=False)
class IndexFolds(Validation):
    """Validation on folds fixed by index.

    They are independent of the data, and accounted by the records that are used most.
    """

    n_samples: int
    fixed_folds: tuple[Fold, ...]

    def exposures(self) -> tuple[Exposure, ...]:
        trainings, scorings = (self._uses(side) for side in (0, 1))
        base = int(scorings.max(initial=0)) + 1
        used = [divmod(pair, base) for pair in np.unique(trainings * base + scorings).tolist()]
        worst = [a for a in used if not any(a != b and a[0] <= b[0] and a[1] <= b[1] for b in used)]
        return tuple(Exposure(t, s) for t, s in sorted(worst))

    def _uses(self, side: int) -> npt.NDArray[np.int64]:
        """Number of folds in which each record trains (0) or validates (1)."""
        uses = np.zeros(self.n_samples, np.int64)
        for fold in self.fixed_folds:
            # counts repeated records too
            uses += np.bincount(np.asarray(fold[side], int), minlength=self.n_samples)
        return uses

    def folds(self, n_samples: int, random_bytes: RandomBytes) -> list[Fold]:
        if n_samples != self.n_samples:
            raise ValueError(f"Folds were made for {self.n_samples} records, found {n_samples}.")
        return list(self.fixed_folds)


#: Numbers and iterables that describe no folds.
NO_SPLIT = (bool, np.bool_, str, bytes, Mapping)


def validation_of(
    cv: object, n_samples: int | None, public: bool, epsilon: float | None = None
) -> Validation:
    """Validation for a search's parameter ``cv``.

    None stands for a hold-out by the rule.

    Parameters
    ----------
    cv : None, float, int, splitter or iterable of (train, test) indices
    n_samples : int or None
        Number of records, where known. Needed for splits by index.
    public : bool
        Whether public validation data is given.
    epsilon : float or None
        Total of the search.
    """
    if public:
        if cv is not None:
            remedy = "Scores come from one of them: leave cv=None."
            raise ValueError(f"Found cv={cv!r} together with X_public. {remedy}")
        return PublicValidation()
    if cv is None:
        return UnknownShare() if n_samples is None else HoldOut(default_share(n_samples, epsilon))
    if not isinstance(cv, NO_SPLIT):
        if isinstance(cv, (int, np.integer)):
            return RandomFolds(int(cv))
        if isinstance(cv, (float, np.floating)):
            return HoldOut(float(cv))
        if _is_splitter(cv) or isinstance(cv, Iterable):
            return _index_folds(cv, n_samples)
    raise ValueError(
        f"Found cv={cv!r} ({type(cv).__name__}); None, a float in (0, 1) for one hold-out, an int "
        "for a number of folds, a splitter or a list of (train, test) indices is needed. Write "
        "e.g. cv=0.2 or cv=5."
    )


#: scikit-learn's splitters that know the number of records and nothing else.
BLIND_SPLITTERS = (
    model_selection.KFold,
    model_selection.RepeatedKFold,
    model_selection.ShuffleSplit,
    model_selection.LeaveOneOut,
    model_selection.LeavePOut,
    model_selection.TimeSeriesSplit,
)


def is_taken_on_trust(cv: object) -> bool:
    """Return whether folds are given by record numbers.

    Only the caller can know that these do not depend on the records.
    """
    has_numbers = _is_splitter(cv) or isinstance(cv, Iterable)
    return has_numbers and type(cv) not in BLIND_SPLITTERS and not isinstance(cv, NO_SPLIT)


def _is_splitter(cv: object) -> bool:
    """Return whether ``cv`` is a splitter of scikit-learn."""
    return callable(getattr(cv, "split", None))


def read_once(cv: Any) -> Any:
    """Indices of a generator in a list, which can be pickled; others as they are."""
    return list(itertools.islice(cv, MOST_FOLDS + 1)) if isinstance(cv, Iterator) else cv


def _index_folds(cv: Any, n_samples: int | None) -> IndexFolds:
    """Folds by index, from a splitter or from indices."""
    if n_samples is None:
        raise ValueError("A splitter needs the number of records. Give n_samples.")
    # Splitters are told the number of records and see nothing of the data.
    folds = _split_blindly(cv, n_samples) if _is_splitter(cv) else cv
    pairs = list(itertools.islice(folds, MOST_FOLDS + 1))
    if not pairs:
        remedy = "A generator can be read only once: write cv=list(...)."
        raise ValueError(f"Expected at least one (train, test) pair in cv, got none. {remedy}")
    _check_number(len(pairs))
    checked = (_as_fold(number, pair, n_samples) for number, pair in enumerate(pairs))
    return IndexFolds(n_samples, tuple(checked))


def _check_number(n_folds: int) -> None:
    """Raise for more folds than are made."""
    if n_folds > MOST_FOLDS:
        raise ValueError(
            f"Found cv with {n_folds if n_folds != MOST_FOLDS + 1 else f'more than {MOST_FOLDS}'} "
            f"folds; at most {MOST_FOLDS} are made. Give a smaller cv, or a fraction for one "
            f"hold-out, e.g. cv=0.2."
        )


def _split_blindly(cv: Any, n_samples: int) -> list[Any]:
    """Folds of a splitter that sees the number of records alone."""
    try:
        return list(itertools.islice(cv.split(np.zeros((n_samples, 1))), MOST_FOLDS + 1))
    except Exception as error:
        raise PrivacyError(
            f"Found cv={cv!r}, which cannot split {n_samples} records by their number alone "
            f"({error}). If it looks at the labels or at groups, the split would depend on the "
            "data: in random folds of many records the labels have nearly the same shares, and "
            "public groups can be given as the folds that they make, "
            "cv=list(GroupKFold(5).split(X, groups=groups)). Use cv as a number of folds (cv=5) or "
            "a fraction (cv=0.2), or a splitter of record numbers alone: KFold, ShuffleSplit."
        ) from error


def _as_fold(number: int, pair: Any, n_samples: int) -> Fold:
    """Training and validation records of one fold, checked: not empty, and disjoint."""
    is_list = isinstance(pair, Iterable) and not isinstance(pair, (str, bytes, Mapping))
    sides = list(pair) if is_list else []
    if len(sides) != 2:
        raise TypeError(
            f"Found {pair!r} as fold {number} of cv; a pair (train, test) of record numbers is "
            "needed. Write e.g. cv=[(train, test)], or cv=5 for five folds."
        )
    train, test = (_as_indices(side, n_samples) for side in sides)
    if not len(train) or not len(test):
        raise ValueError(
            f"Found fold {number} of cv with {len(train)} training and {len(test)} validation "
            "records; at least one of each is needed. Leave the fold out, or give X_public and "
            "y_public for scoring."
        )
    if common := len(np.intersect1d(train, test, assume_unique=True)):
        raise ValueError(
            f"Found {common} of the records both training and validating in fold {number} of cv: a "
            "model would be scored on what it has seen. Give every record of a fold to one side, "
            "as KFold does."
        )
    return train, test


def _as_indices(indices: Any, n_samples: int) -> Indices:
    """Record numbers from indices or a mask."""
    numbers = np.asarray(indices)
    mask = numbers.dtype == bool and numbers.size == n_samples
    if numbers.ndim != 1 or (numbers.size and not mask and numbers.dtype.kind not in "iu"):
        raise TypeError(
            f"Found {type(indices).__name__} of shape {numbers.shape} and dtype {numbers.dtype} as "
            f"one side of a fold of cv; a list of record numbers, or a mask of {n_samples} "
            "booleans, is needed."
        )
    if mask:
        numbers = np.flatnonzero(numbers)
    if numbers.size and (numbers.min() < 0 or numbers.max() >= n_samples):
        raise ValueError(
            f"Expected indices in [0, {n_samples}), got {numbers.min()} to {numbers.max()} in cv."
        )
    if np.unique(numbers).size < numbers.size:
        raise PrivacyError(
            "Found a record more than once in one part of a split: it would count as often in one "
            "training or score, which no guarantee for single records covers. Give every record at "
            "most once, as KFold does."
        )
    return numbers.astype(kind_of_numbers(n_samples))


USUAL_SHARE, LARGEST_SHARE = 0.1, 0.3
#: Fewest validation records, and a sufficient number at ε ≥ 1. A smaller ε needs 1/ε times as many.
FEWEST_SCORED, ENOUGH_SCORED = 40, 3000


def default_share(n_records: float, epsilon: float | None) -> float:
    """Default share of records that validates: a tenth, less of many records, more of few.

    Parameters
    ----------
    n_records : float
        A public number.
    epsilon : float or None
        Total of the search; None counts as 1.

    Examples
    --------
    >>> [default_share(n, 1.0) for n in (100, 200, 400, 10_000, 60_000)]
    [0.3, 0.2, 0.1, 0.1, 0.05]
    >>> default_share(100_000, 0.5)
    0.06
    """
    n = max(n_records, 1)
    enough = ENOUGH_SCORED / min(1.0 if epsilon is None else float(epsilon), 1.0)
    return min(max(min(USUAL_SHARE, enough / n), FEWEST_SCORED / n), LARGEST_SHARE)


class UnknownShare(Validation):
    """Validation on a hold-out whose share is not yet known.

    It depends on the number of records; its cost covers every share.
    """

    def exposures(self) -> tuple[Exposure, ...]:
        """Both uses without a probability: the worse use counts at every ε."""
        return (Exposure(1, 0), Exposure(0, 1))

    def folds(self, n_samples: int, random_bytes: RandomBytes) -> list[Fold]:
        raise AssertionError("Records are split only after their number was planned for.")


# --- what runs cost -------------------------------------------------------------------------------


#: Guarantee of one training; or number of trainings ↦ joint guarantee of those of one candidate.
TrainingGuarantee = Guarantee | Callable[[int], Guarantee]


def exposure_guarantee(
    training: TrainingGuarantee, scoring: Guarantee | None, exposure: Exposure
) -> Guarantee:
    """Guarantee of one run for one use of a record.

    A record that only trains or only validates pays for this use alone. A record with both uses
    pays the composition.
    """
    scorings = [scoring] * exposure.scorings if scoring is not None else []
    if isinstance(training, Guarantee):
        return compose(*[training] * exposure.trainings, *scorings)
    return compose(*([training(exposure.trainings)] if exposure.trainings else []), *scorings)


def run_guarantee(
    training: TrainingGuarantee, scoring: Guarantee | None, exposures: Sequence[Exposure]
) -> Guarantee:
    """Guarantee of one run, training and score, for every record.

    docs/theory/scoring.md, "Uses".

    Only the score reads held-out records. So the guarantee of the run is, at each ε, the worse of
    both guarantees, and a score that is as private as the training is free.

    Parameters
    ----------
    training : Guarantee or callable
        Guarantee of one training, or number of trainings ↦ joint guarantee of those of one
        candidate.
    scoring : Guarantee or None
        Guarantee of one score; None if scores are free.
    exposures : sequence of Exposure
        All the ways in which one run may use one record.

    Returns
    -------
    Guarantee
        Of one run.
    """
    ways = _real_exposures(exposures)
    return envelope([exposure_guarantee(training, scoring, exposure) for exposure in ways])


def search_guarantee(
    training: TrainingGuarantee,
    scoring: Guarantee | None,
    exposures: Sequence[Exposure],
    search: Callable[[Guarantee], Guarantee],
) -> Guarantee:
    """Guarantee of a search over runs, for every record.

    If each record's use is drawn in secret, the divergences of the searches are averaged (joint
    convexity); otherwise the worst use counts.

    Parameters
    ----------
    training, scoring, exposures
        As for ``run_guarantee``.
    search : callable
        Guarantee of one run ↦ guarantee of the search, such as ``partial(best_of, count=10)``.

    Returns
    -------
    Guarantee
        Of the search.
    """
    ways = _real_exposures(exposures)
    if any(exposure.probability is None for exposure in ways):
        return search(run_guarantee(training, scoring, ways))
    guarantees = [search(exposure_guarantee(training, scoring, exposure)) for exposure in ways]
    return mixture(guarantees, [float(exposure.probability or 0.0) for exposure in ways])


def _real_exposures(exposures: Sequence[Exposure]) -> list[Exposure]:
    """Exposures under which a record is used at all."""
    return [exposure for exposure in exposures if exposure.trainings or exposure.scorings]
