"""Private scores: scorers of known sensitivity, exact noise, and the guarantee of both."""

from ._base import PrivateScorer
from ._mean import make_private_scorer
from ._named_scorers import get_private_scorer, private_scorer
from ._noise import DiscreteGaussianNoise, DiscreteLaplaceNoise, Noise, Sensitivity

__all__ = [
    "DiscreteGaussianNoise", "DiscreteLaplaceNoise", "Noise", "PrivateScorer", "Sensitivity",
    "get_private_scorer", "make_private_scorer", "private_scorer",
]  # fmt: skip
