"""What a guarantee is, how mechanisms combine, and what a whole search costs."""

from .calibration import calibrate
from .combining import compose, envelope, mixture
from .count_law import CountLaw
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
from .restricted_laws import FromPMF
from .selection import best_of
from .witness import witness, witness_epsilon

__all__ = [
    "DPSGD",
    "ZCDP",
    "ApproxDP",
    "Binomial",
    "BudgetUnreachableError",
    "CountLaw",
    "Fixed",
    "FromPMF",
    "GaussianDP",
    "Geometric",
    "Guarantee",
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
    "best_of",
    "calibrate",
    "compose",
    "envelope",
    "mixture",
    "witness",
    "witness_epsilon",
]
