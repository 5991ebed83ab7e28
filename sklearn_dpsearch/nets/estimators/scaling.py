"""Public bounds of features and targets: values are clipped to them and mapped to [-1, 1], predictions back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

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


def single_rows(values: NDArray[Any], bounds: Bounds | None) -> torch.Tensor:
    """Records scaled to the bounds, if there are any, in single precision: a copy, with room for one more row."""
    rows = with_room(values.shape, torch.float32)
    if bounds is None:
        with np.errstate(over="ignore"):  # a warning would tell of a record
            rows.numpy()[:] = values
        return rows
    half, shift = (torch.from_numpy(np.asarray(part)) for part in (bounds.half, -bounds.zero / bounds.half))
    least, most = bounds.limits
    for start in range(0, len(values), BLOCK):
        # A block in double precision fits into a cache; all records would take three times their memory.
        block = torch.from_numpy(np.array(values[start : start + BLOCK], dtype=np.float64))
        rows[start : start + BLOCK] = block.div_(half).add_(shift).clamp_(least, most)
    return rows


def to_single(values: Array) -> NDArray[np.float32]:
    """In single precision. What is beyond it becomes infinite: the gradient of such a record is dropped."""
    with np.errstate(over="ignore"):  # a warning would tell of a record
        return values.astype(np.float32)
