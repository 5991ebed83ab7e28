r"""Report noisy max: the candidate with the largest noisy utility is released, nothing else (docs/theory/noisy_max.md).

One record moves each utility by at most Δ, so the threshold that the winner's own noise must pass moves by at most 2Δ.
With Gumbel noise of scale b, log P[i]/P'[i] = (u_i − u'_i)/b + log(Z'/Z), where only the first term depends on i: all
losses lie in an interval of length 2Δ/b.
"""

from __future__ import annotations

from fractions import Fraction

from ...errors import PrivacyError
from .._checks import require_whole
from .._types import Neighboring
from ..guarantees.base import Guarantee
from ..guarantees.pure import BoundedRangeDP
from ..mechanisms.report_noisy_max import GumbelNoise
from ..numerics.exact_numbers import float_above, positive_fraction


def noisy_max(
    n_candidates: int, sensitivity: Fraction | int, noise: GumbelNoise, *, neighboring: Neighboring = "add_remove"
) -> Guarantee:
    """Guarantee of releasing only the index of the candidate with the largest noisy utility.

    Parameters
    ----------
    n_candidates : int
        Number of candidates, chosen independently of the data.
    sensitivity : Fraction or int
        Largest change of any candidate's utility by one record, under the relation ``neighboring``. Exact, because the
        float nearest to 1/49 is smaller than 1/49.
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
        raise PrivacyError(f"Nothing is known about the noise {noise!r}. Use GumbelNoise(scale=...).")
    epsilon = float_above(2 * exact / noise.scale) if n_candidates > 1 else 0.0
    return BoundedRangeDP(epsilon=epsilon, neighboring=neighboring)
