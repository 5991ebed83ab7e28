"""A score with a price: scorers of known sensitivity, exact noise, and what both promise."""

from .candidate import best_candidate, candidate
from .matching import matched_noise, noise_for
from .metrics import BalancedAccuracyScorer, CountScorer, R2Scorer, RetrievalScorer
from .noise import DiscreteGaussianDP, DiscreteGaussianNoise, DiscreteLaplaceNoise, Noise, Sensitivity
from .resolve import get_private_scorer, private_scorer
from .scorers import MeanScorer, PrivateScorer, make_private_scorer

__all__ = [
    "BalancedAccuracyScorer",
    "CountScorer",
    "DiscreteGaussianDP",
    "DiscreteGaussianNoise",
    "DiscreteLaplaceNoise",
    "MeanScorer",
    "Noise",
    "PrivateScorer",
    "R2Scorer",
    "RetrievalScorer",
    "Sensitivity",
    "best_candidate",
    "candidate",
    "get_private_scorer",
    "make_private_scorer",
    "matched_noise",
    "noise_for",
    "private_scorer",
]
