r"""Report noisy max: the candidate with the largest noisy utility is released.

Nothing else is released (docs/theory/noisy_max.md).

With Gumbel noise it is the exponential mechanism, drawn exactly: integers and fractions, never a
float. One record moves each utility by at most Δ, so the threshold that the winner's own noise must
pass moves by at most 2Δ. With noise of scale b, log P[i]/P'[i] = (u_i − u'_i)/b + log(Z'/Z), where
only the first term depends on i: all losses lie in an interval of length 2Δ/b.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from ...errors import PrivacyError
from .._checks import Neighboring, require, require_whole
from .._guarantees.base import Guarantee
from .._guarantees.pure import BoundedRangeDP
from .._mechanisms.exact_sampling import SYSTEM_RANDOMNESS, IntegerSource, bernoulli_exp
from .._numerics.arithmetic import Number, float_above, fraction, positive_fraction


@dataclass(frozen=True, kw_only=True)
class GumbelNoise:
    """Gumbel noise of report noisy max: the exponential mechanism.

    Candidate i is chosen with probability ∝ exp(u_i/scale).

    Parameters
    ----------
    scale : Fraction or int
        In units of the utilities, > 0.

    Examples
    --------
    >>> import random
    >>> GumbelNoise(scale=Fraction(1, 10)).select([0.2, 0.9, 0.3], random.Random(0))
    1
    """

    scale: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", positive_fraction(self.scale, "scale"))

    def select(self, utilities: Sequence[Number], bits: IntegerSource = SYSTEM_RANDOMNESS) -> int:
        """Draw the index of the candidate with the largest noisy utility.

        A fair candidate is accepted with probability exp((u_i − max u)/scale), or another one is
        drawn.

        Parameters
        ----------
        utilities : sequence of Fraction, int or float
            Finite, at least one. A float counts for exactly what it is: where it was rounded, that
            has to be part of the sensitivity.
        bits : IntegerSource
            Source of fair integers; by default the operating system.
        """
        require(len(utilities) > 0, "at least one utility", utilities=utilities)
        exact = [fraction(utility) for utility in utilities]
        largest = max(exact)
        below = [(largest - utility) / self.scale for utility in exact]
        while True:
            index = bits.randrange(len(below))
            if bernoulli_exp(below[index], bits):
                return index


def noisy_max(
    n_candidates: int,
    sensitivity: Fraction | int,
    noise: GumbelNoise,
    *,
    neighboring: Neighboring = "add_remove",
) -> Guarantee:
    """Guarantee of releasing only the index of the candidate with the largest noisy utility.

    Parameters
    ----------
    n_candidates : int
        Number of candidates, chosen independently of the data.
    sensitivity : Fraction or int
        Largest change of any candidate's utility by one record, under the relation ``neighboring``.
        Exact, because the float nearest to 1/49 is smaller than 1/49.
    noise : GumbelNoise
        The noise that is added to each utility.
    neighboring : {"add_remove", "zero_out", "replace_one"}
        The relation under which the utilities have their sensitivity.

    Returns
    -------
    BoundedRangeDP
        It costs the same for every number of candidates above 1, and nothing for one.

    Raises
    ------
    PrivacyError
        For noise of another type: a subclass may draw differently.

    Examples
    --------
    >>> choice = noisy_max(100, Fraction(1, 50), GumbelNoise(scale=Fraction(1, 25)))
    >>> choice.epsilon_at(0.0), round(choice.delta_at(0.5), 3)
    (1.0, 0.077)
    """
    exact = positive_fraction(sensitivity, "sensitivity")
    require_whole(1, n_candidates=n_candidates)
    if type(noise) is not GumbelNoise:
        raise PrivacyError(
            f"Nothing is known about the noise {noise!r}. Use GumbelNoise(scale=...)."
        )
    epsilon = float_above(2 * exact / noise.scale) if n_candidates > 1 else 0.0
    return BoundedRangeDP(epsilon=epsilon, neighboring=neighboring)
