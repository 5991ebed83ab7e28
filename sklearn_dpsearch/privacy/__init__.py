"""Guarantees, their combination, and the privacy cost of a whole search.

The rooms, from the top down; each imports only from those below it:

- ``spent``, ``calibration``, ``interop``: the statement to publish, from a budget to a parameter,
  other accountants;
- ``selection``: a file for each theorem (best of K runs, random subset, threshold, noisy maximum,
  doubling walk), with the published bounds beside it, and certificates of what a search really
  loses;
- ``guarantees``: guarantees, their composition, and the tightest of several bounds;
- ``count_distributions``: distributions of the number of runs K, and drawing from them;
- ``mechanisms``: noise and coins, drawn exactly;
- ``numerics``: privacy losses, exact numbers, bisection: arithmetic that only ever overstates.
"""

from ..errors import (
    BudgetExceededError,
    BudgetUnreachableError,
    LeakingEstimatorError,
    MissingDeltaError,
    MixedNeighborsError,
    PrivacyError,
    UnknownGuaranteeError,
    UnknownSensitivityError,
)
from ._calibration import calibrate
from ._count_distributions.base import CountDistribution
from ._count_distributions.distributions import Binomial, Fixed, FromPMF, Poisson
from ._count_distributions.negative_binomial import Geometric, Logarithmic, NegativeBinomial
from ._guarantees.base import Guarantee, from_dict
from ._guarantees.composition import compose, envelope, mixture
from ._guarantees.neighboring_relations import as_replace_one, as_zero_out, for_group
from ._guarantees.pure import BoundedRangeDP, LaplaceDP, PureDP
from ._guarantees.single_mechanisms import (
    DPSGD,
    ZCDP,
    ApproxDP,
    GaussianDP,
    NonPrivate,
    ProfileDP,
    RenyiDP,
)
from ._selection.best_of import best_of
from ._selection.doubling import doubling_search
from ._selection.noisy_max import GumbelNoise, noisy_max
from ._selection.subset import subset_then_train
from ._selection.threshold import until_above
from ._selection.verify import verify
from ._selection.witness import witness, witness_epsilon

__all__ = [
    "DPSGD", "ZCDP", "ApproxDP", "Binomial", "BoundedRangeDP", "BudgetExceededError",
    "BudgetUnreachableError", "CountDistribution", "Fixed", "FromPMF", "GaussianDP",
    "Geometric", "Guarantee", "GumbelNoise", "LaplaceDP", "LeakingEstimatorError",
    "Logarithmic", "MissingDeltaError", "MixedNeighborsError", "NegativeBinomial", "NonPrivate",
    "Poisson", "PrivacyError", "ProfileDP", "PureDP", "RenyiDP", "UnknownGuaranteeError",
    "UnknownSensitivityError", "as_replace_one", "as_zero_out", "best_of", "calibrate",
    "compose", "doubling_search", "envelope", "for_group", "from_dict", "mixture", "noisy_max",
    "subset_then_train", "until_above", "verify", "witness", "witness_epsilon",
]  # fmt: skip
