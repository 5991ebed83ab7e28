"""Public bounds of features and targets: values are clipped to them and mapped to [-1, 1], predictions back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import assert_all_finite

from ...data.rows import ChosenRows
from ..records import CHECKED, converted

Array: TypeAlias = NDArray[np.float64]
#: Bounds in the user's form: (lower, upper), two numbers or two arrays with one number per feature.
Given: TypeAlias = tuple[ArrayLike, ArrayLike]

#: Share of the way from lower to upper that is mapped to 0 for amounts: on MNIST and digits better than 0 or 0.5.
OF_AMOUNTS = 0.25
#: Records scaled at once.
BLOCK = 128


@dataclass(frozen=True)
class Bounds:
    """Finite bounds, lower < upper: two numbers for all features, or two arrays of shape (n_features,).

    Parameters
    ----------
    lower, upper : arrays
    origin : float
        Share of the way from lower to upper that is mapped to 0.
    """

    lower: Array
    upper: Array
    origin: float = 0.5

    @classmethod
    def of_features(cls, name: str, given: Given) -> Bounds:
        """Bounds of features.

        Two numbers >= 0 for all features suggest amounts of one kind (pixels, counts), most of them small. With 0 at
        the middle of the bounds, most values would be far from 0, and all records long and alike.
        """
        found = cls.of(name, given)
        amounts = found.lower.ndim == 0 and bool(found.lower >= 0)
        return cls(found.lower, found.upper, OF_AMOUNTS if amounts else 0.5)

    @classmethod
    def of(cls, name: str, given: Given) -> Bounds:
        """Bounds stated by an argument of this name.

        Raises
        ------
        ValueError
            If the argument states no valid bounds.
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
        """Key that is equal for bounds that scale alike."""
        return self.lower.tobytes(), self.upper.tobytes(), self.origin

    @property
    def zero(self) -> Array:
        """Values that are mapped to 0."""
        return self.lower + self.origin * (self.upper - self.lower)

    @property
    def half(self) -> Array:
        """Distances that are mapped to 1."""
        return (self.upper - self.lower) / 2

    @property
    def limits(self) -> tuple[float, float]:
        """Values that the bounds themselves are mapped to."""
        return -2.0 * self.origin, 2.0 * (1.0 - self.origin)

    def scaled(self, values: Array) -> Array:
        """Clip to the bounds and map to the limits."""
        with np.errstate(over="ignore"):  # a warning could tell of a record
            return np.clip((values - self.zero) / self.half, *self.limits)

    def restored(self, values: Array) -> Array:
        """Map back from [-1, 1] and clip to the bounds, in which all true values lie."""
        return np.clip(values * self.half + self.zero, self.lower, self.upper)


def single_rows(values: NDArray[Any] | ChosenRows, bounds: Bounds | None) -> torch.Tensor:
    """Copy of records in single precision, scaled to the bounds if there are any."""
    rows = values if isinstance(values, ChosenRows) else ChosenRows(values)
    how = None if bounds is None else bounds.key
    return converted(rows, how, torch.float32, lambda block, out: single_block(block, bounds, out), BLOCK)


def single_block(block: NDArray[Any], bounds: Bounds | None, out: torch.Tensor | None = None) -> torch.Tensor:
    """Scale a few records to the bounds, if there are any, in single precision: each by itself."""
    out = torch.empty(block.shape, dtype=torch.float32) if out is None else out
    if bounds is None:
        return out.copy_(torch.from_numpy(to_single(block)))
    half, shift = (torch.from_numpy(np.asarray(part)) for part in (bounds.half, -bounds.zero / bounds.half))
    least, most = bounds.limits
    # Double precision for a cache-sized block; for all records it would take three times their memory.
    with np.errstate(over="ignore"):  # a warning would tell of a long double beyond all doubles
        scaled = torch.from_numpy(np.array(block, dtype=np.float64))
    # Clipped after rounding, which keeps the order: the limits, multiples of 1/2, are exact in single precision.
    return out.copy_(scaled.div_(half).add_(shift)).clamp_(least, most)


def check_finite(rows: ChosenRows) -> None:
    """Raise scikit-learn's error for NaN and infinity among the chosen rows; other rows are not read."""
    for _, block in rows.blocks(CHECKED):
        assert_all_finite(block, input_name="X")


def to_single(values: NDArray[Any]) -> NDArray[np.float32]:
    """Convert to single precision. Larger values become infinite, and the gradient of such a record is dropped."""
    with np.errstate(over="ignore"):  # a warning could tell of a record
        return values.astype(np.float32)
