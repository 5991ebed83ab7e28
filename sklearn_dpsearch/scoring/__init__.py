"""Private scores: scorers of known sensitivity, exact noise, and the guarantee of both."""

from .base import PrivateScorer
from .counts import BalancedAccuracyScorer, CountScorer, RetrievalScorer
from .mean import MeanScorer, make_private_scorer
from .named_scorers import get_private_scorer, private_scorer
from .noise import DiscreteGaussianDP, DiscreteGaussianNoise, DiscreteLaplaceNoise, Noise, Sensitivity
from .noise_matching import matched_noise, noise_for
from .one_run import TrainingGuarantee, run_guarantee, search_guarantee
from .r2 import R2Scorer
from .ranking import RankingScorer
from .standard_error import standard_error

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
    "RankingScorer",
    "RetrievalScorer",
    "Sensitivity",
    "TrainingGuarantee",
    "get_private_scorer",
    "make_private_scorer",
    "matched_noise",
    "noise_for",
    "private_scorer",
    "run_guarantee",
    "search_guarantee",
    "standard_error",
]
