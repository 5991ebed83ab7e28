"""Public bounds of features and targets: values are clipped to them and mapped to [-1, 1], predictions back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import assert_all_finite

from ..._chosen_rows import ChosenRows
from ..mapped import CHECKED
from ..task import with_room

Array: TypeAlias = NDArray[np.float64]
#: What a user gives: (lower, upper), two numbers, or two arrays with one number per feature.
Given: TypeAlias = tuple[ArrayLike, ArrayLike]

#: Which share of the way up is mapped to 0 where features are amounts: on MNIST and digits better than none or a half.
OF_AMOUNTS = 0.25
#: Records that are scaled at once.
BLOCK = 128


@dataclass(frozen=True)
class Bounds:
    """Finite bounds, lower < upper: two numbers for all features, or two arrays of shape (n_features,).

    Parameters
    ----------
    lower, upper : arrays
    origin : float
        Which share of the way from lower to upper is mapped to 0.
    """

    lower: Array
    upper: Array
    origin: float = 0.5

    @classmethod
    def of_features(cls, name: str, given: Given) -> Bounds:
        """The bounds of features.

        Two numbers for all of them, none below 0, speak of one kind of thing (pixels, counts) of which there is mostly
        little. The middle would be far from most values, and all records would be long and alike.
        """
        found = cls.of(name, given)
        amounts = found.lower.ndim == 0 and bool(found.lower >= 0)
        return cls(found.lower, found.upper, OF_AMOUNTS if amounts else 0.5)

    @classmethod
    def of(cls, name: str, given: Given) -> Bounds:
        """The bounds that an argument of this name states.

        Raises
        ------
        ValueError
            If they are none.
        """
        try:
            lower, upper = (np.asarray(bound, dtype=float) for bound in given)
        except (TypeError, ValueError):
            raise ValueError(f"Found {name}={given!r}; (lower, upper) is needed, numbers or arrays.") from None
        finite = np.isfinite(lower).all() and np.isfinite(upper).all()
        if lower.shape != upper.shape or lower.ndim > 1 or not finite or np.any(lower >= upper):
            raise ValueError(f"Found {name}={given!r}; finite bounds of one shape with lower < upper are needed.")
        return cls(lower, upper)

    @property
    def key(self) -> tuple[bytes, bytes, float]:
        """Equal for bounds that scale alike."""
        return self.lower.tobytes(), self.upper.tobytes(), self.origin

    @property
    def zero(self) -> Array:
        """What is mapped to 0."""
        return self.lower + self.origin * (self.upper - self.lower)

    @property
    def half(self) -> Array:
        """What is mapped to a step of 1."""
        return (self.upper - self.lower) / 2

    @property
    def limits(self) -> tuple[float, float]:
        """What the bounds themselves are mapped to."""
        return -2.0 * self.origin, 2.0 * (1.0 - self.origin)

    def scaled(self, values: Array) -> Array:
        """Clipped to the bounds and mapped to the limits."""
        with np.errstate(over="ignore"):  # a warning would tell of a record
            return np.clip((values - self.zero) / self.half, *self.limits)

    def restored(self, values: Array) -> Array:
        """Mapped back from [-1, 1], and clipped: no true value lies beyond the bounds, so no prediction should."""
        return np.clip(values * self.half + self.zero, self.lower, self.upper)


def single_rows(values: NDArray[Any] | ChosenRows, bounds: Bounds | None) -> torch.Tensor:
    """Records scaled to the bounds, if there are any, in single precision: a copy, with room for one more row.

    Of chosen rows the copy is kept beside them, for the next net that scales them so.
    """
    if not isinstance(values, ChosenRows):
        values = ChosenRows(values)
    how = None if bounds is None else bounds.key
    if how not in values.converted:
        rows = with_room(values.shape, torch.float32)
        for places, block in values.blocks(BLOCK):
            rows[places] = single_block(block, bounds)
        values.converted[how] = rows
    found: torch.Tensor = values.converted[how]
    return found


def single_block(block: NDArray[Any], bounds: Bounds | None) -> torch.Tensor:
    """A few records scaled to the bounds, if there are any, in single precision: each by itself."""
    if bounds is None:
        return torch.from_numpy(to_single(block))
    half, shift = (torch.from_numpy(np.asarray(part)) for part in (bounds.half, -bounds.zero / bounds.half))
    least, most = bounds.limits
    # In double precision as long as it fits into a cache; all records would take three times their memory.
    scaled = torch.from_numpy(np.array(block, dtype=np.float64))
    return scaled.div_(half).add_(shift).clamp_(least, most).float()


def check_finite(rows: ChosenRows) -> None:
    """Raise scikit-learn's error for NaN and infinity among the rows, of which no other is looked at."""
    for _, block in rows.blocks(CHECKED):
        assert_all_finite(block, input_name="X")


def to_single(values: NDArray[Any]) -> NDArray[np.float32]:
    """In single precision. What is beyond it becomes infinite: the gradient of such a record is dropped."""
    with np.errstate(over="ignore"):  # a warning would tell of a record
        return values.astype(np.float32)
