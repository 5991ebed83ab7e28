"""What a guarantee is, how mechanisms combine, and what a whole search costs."""

from .above_threshold import AboveThreshold
from .bounded_range import BoundedRangeDP
from .calibration import calibrate
from .combining import compose, envelope, mixture
from .count_law import CountLaw
from .doubling import default_max_rounds, doubling_search, doubling_walk
from .errors import (
    BudgetUnreachableError,
    LeakingEstimatorError,
    MissingDeltaError,
    MixedNeighborsError,
    PrivacyError,
    UnknownGuaranteeError,
    UnknownSensitivityError,
)
from .guarantee import Guarantee
from .guarantees import DPSGD, ZCDP, ApproxDP, GaussianDP, NonPrivate, ProfileDP, PureDP, RenyiDP
from .laws import Binomial, Fixed, Geometric, Logarithmic, NegativeBinomial, Poisson
from .max_noise import ExponentialNoise, GaussianNoise, GumbelNoise, LaplaceNoise
from .noisy_max import noisy_max
from .partition import subset_then_train
from .restricted_laws import FromPMF
from .selection import best_of
from .stopping import until_above
from .verify import Verdict, verify
from .witness import witness, witness_epsilon

__all__ = [
    "DPSGD",
    "ZCDP",
    "AboveThreshold",
    "ApproxDP",
    "Binomial",
    "BoundedRangeDP",
    "BudgetUnreachableError",
    "CountLaw",
    "ExponentialNoise",
    "Fixed",
    "FromPMF",
    "GaussianDP",
    "GaussianNoise",
    "Geometric",
    "Guarantee",
    "GumbelNoise",
    "LaplaceNoise",
    "LeakingEstimatorError",
    "Logarithmic",
    "MissingDeltaError",
    "MixedNeighborsError",
    "NegativeBinomial",
    "NonPrivate",
    "Poisson",
    "PrivacyError",
    "ProfileDP",
    "PureDP",
    "RenyiDP",
    "UnknownGuaranteeError",
    "UnknownSensitivityError",
    "Verdict",
    "best_of",
    "calibrate",
    "compose",
    "default_max_rounds",
    "doubling_search",
    "doubling_walk",
    "envelope",
    "mixture",
    "noisy_max",
    "subset_then_train",
    "until_above",
    "verify",
    "witness",
    "witness_epsilon",
]
