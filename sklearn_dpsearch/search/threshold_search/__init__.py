"""Stop at the first good candidate (Theorem 3), or raise a threshold over a whole grid."""

from .doubling import Doubling
from .search import DPThresholdSearchCV

__all__ = ["DPThresholdSearchCV", "Doubling"]
