r"""Is the best of K runs (ε, δ)-DP? A bound proves it, or a mechanism refutes it.

The claim speaks of *every* mechanism with the stated guarantee. It is true if some valid bound on
δ(ε) is at most δ, and false if one mechanism that has the guarantee loses more (``witness``). Both
numbers are rounded against their verdict.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import fft, special

from ...errors import PrivacyError
from .._checks import Array, number_in
from .._count_distributions.base import CountDistribution
from .._count_distributions.distributions import as_count_distribution
from .._guarantees.base import LARGEST_EPSILON, Guarantee, SmallestOf, Statement, as_guarantee
from .._guarantees.pure import PureDP
from .._guarantees.single_mechanisms import DPSGD, ZCDP, ApproxDP, GaussianDP, NonPrivate, ProfileDP
from .._numerics.loss_distribution import DominatingPair, LossDistribution
from .best_of import best_of
from .witness import (
    Outcomes,
    Tails,
    cuts,
    gaussian_tails,
    largest_delta,
    open_failure,
    probabilities,
    worst_tails,
)

#: A refutation must exceed the claimed δ by this share of itself.
MARGIN = 1e-9
#: Largest excess of a witness over a bound by rounding: both are sums of many doubles.
ROUNDING_EXCESS = 1e-13
#: Atoms of a sampled Gaussian per standard deviation of one step's loss.
ATOMS = 20


@dataclass(frozen=True, eq=False)
class Verdict:
    """Answer to "is the search (ε, δ)-DP?", which prints as its word.

    Parameters
    ----------
    word : {"true", "false", "undecided"}
    epsilon, delta : float
        The claim.
    certified_delta : float
        δ at ``epsilon`` that the best bound proves: an upper bound for every mechanism with the
        guarantee.
    bound : str
        Name of that bound.
    witness : float
        δ at ``epsilon`` that some mechanism with the guarantee really has; 0 where none is known.
    """

    word: str
    epsilon: float
    delta: float
    certified_delta: float
    bound: str
    witness: float

    def __eq__(self, other: object) -> bool:
        return self.word == other if isinstance(other, str) else repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(self.word)

    def __bool__(self) -> bool:
        raise TypeError(
            "A verdict has three values. Compare it with a word: verify(...) == 'true'."
        )

    def __str__(self) -> str:
        return self.word

    def __repr__(self) -> str:
        between = f"{self.witness:.6g} <= worst delta <= {self.certified_delta:.6g} ({self.bound})"
        return f"Verdict({self.word!r}, epsilon={self.epsilon:g}, delta={self.delta:g}: {between})"


def verify(
    one_run: Guarantee | Statement, count: CountDistribution | float, epsilon: float, delta: float
) -> Verdict:
    """Decide whether the best of K runs is (ε, δ)-DP for every mechanism with a guarantee.

    Parameters
    ----------
    one_run : Guarantee or PrivacySpent
        Guarantee of one run, training and score together.
    count : CountDistribution or float
        Distribution of K; a bare number stands for ``Geometric(mean)``.
    epsilon, delta : float
        The claim, ε ≥ 0 and 0 ≤ δ < 1.

    Returns
    -------
    Verdict
        "true": ``bound`` proves it. "false": a mechanism with this guarantee has δ(ε) = ``witness``
        > δ. "undecided": neither; the worst δ lies between ``witness`` and ``certified_delta``.

    Notes
    -----
    A refuting mechanism is known for pure, (ε, δ), Gaussian and zero-concentrated guarantees,
    DP-SGD (all relations) and profiles with a dominating pair that is a pair of probabilities.
    Other guarantees (a Rényi curve, a composition of different kinds) are found true or undecided.

    Examples
    --------
    A paper reports, for the best of 10 runs on average with ε = 2 and δ = 1e-6 each, the ε of one
    run:

    >>> one_run = GaussianDP(mu=0.2**0.5)
    >>> round(one_run.epsilon_at(1e-6), 1)
    2.0
    >>> verdict = verify(one_run, 10, epsilon=2.0, delta=1e-6)
    >>> print(verdict)
    false
    >>> verdict.witness > 1e-6
    True
    >>> verify(one_run, 10, epsilon=2.9, delta=1e-6) == "true"
    True
    """
    one_run, distribution = as_guarantee(one_run, "one_run"), as_count_distribution(count)
    epsilon = float(number_in("[0, inf)", epsilon=epsilon))
    delta = number_in("[0, 1)", delta=delta)
    total, name = best_of(one_run, distribution), "one run"
    certified = float(total.delta_at(epsilon))
    if isinstance(total, SmallestOf):
        name = min(total.bounds, key=lambda bound: float(total.bounds[bound].delta_at(epsilon)))
    if epsilon > LARGEST_EPSILON:
        floor = open_failure(one_run, distribution)
    else:
        enough = 0.0 if certified <= delta else delta / (1.0 - MARGIN)
        floor = largest_delta(_known_mechanisms(one_run), distribution, epsilon, enough)
    floor *= 1.0 - MARGIN
    if floor > certified + ROUNDING_EXCESS:
        raise PrivacyError(
            f"Found a contradiction for the best of {distribution!r} runs of {one_run!r} at "
            f"epsilon={epsilon:g}: a mechanism with this guarantee has delta={floor:.6g}, and a "
            f"bound says at most {certified:.6g}; both must be true. Believe neither number. If "
            "the guarantee is a ProfileDP of your own, see that its profile and its pair agree; "
            "else report this as a defect of sklearn_dpsearch."
        )
    word = "true" if certified <= delta else "false" if floor > delta else "undecided"
    return Verdict(word, epsilon, delta, certified, name, min(floor, certified))


# --- mechanisms that have a guarantee -------------------------------------------------------------

#: Kinds of guarantees whose worst mechanism is known exactly.
EXACT_KINDS = (GaussianDP, ZCDP, PureDP, ApproxDP, NonPrivate)


def _known_mechanisms(one_run: Guarantee) -> list[Tails]:
    """Mechanisms known to have a guarantee, in both directions; empty if none is known."""
    if type(one_run) in EXACT_KINDS:
        return worst_tails(one_run)
    if type(one_run) is DPSGD:
        return _mechanisms_of_dpsgd(one_run)
    # the pair of a function lies above it
    if type(one_run) is ProfileDP and one_run.given_pair is not None:
        return _mechanisms_of_pair(one_run.given_pair)
    return []


def _mechanisms_of_pair(pair: DominatingPair) -> list[Tails]:
    """Mechanisms of the directions of a pair whose reversed curve the other one covers."""
    orders = ((pair.removed, pair.added), (pair.added, pair.removed))
    mechanisms = [(probabilities(pld), reverse) for pld, reverse in orders]
    return [cuts(outcomes) for outcomes, reverse in mechanisms if _is_covered(outcomes, reverse)]


def _is_covered(outcomes: Outcomes, stated: LossDistribution) -> bool:
    """Return whether the curve of Q against P is at most a stated one.

    Both are linear in e^ε between their kinks.
    """
    p, q, _ = outcomes
    with np.errstate(divide="ignore", invalid="ignore"):
        losses = np.log(q / p)
    kinks = np.abs(np.concatenate([[0.0], losses[np.isfinite(losses)], stated.losses]))
    curve = np.array([np.sum(np.maximum(q - np.exp(e) * p, 0.0)) for e in kinks])
    return bool(np.all(curve <= stated.delta_at(kinks) + 1e-12))


def _mechanisms_of_dpsgd(one_run: DPSGD) -> list[Tails]:
    """Mechanisms that DP-SGD has: sums rounded to cells, added up.

    Rounding and adding are post-processing, so the result has the guarantee. Its two distributions
    are exact, up to the error of the transform.
    """
    if one_run.steps == 0:
        return [gaussian_tails(0.0)]
    replaced = one_run.neighboring == "replace_one"
    p, q = _dpsgd_step_cells(one_run.noise_multiplier, one_run.sample_rate, replaced)
    (removed, e), (added, f) = (_self_convolved(masses, int(one_run.steps)) for masses in (p, q))
    order = _order_by_ratio(removed, added)
    outcomes = Outcomes(removed[order], added[order], e + f)
    return [cuts(outcomes), cuts(Outcomes(outcomes.q[::-1], outcomes.p[::-1], e + f))]


def _dpsgd_step_cells(noise: float, rate: float, replaced: bool) -> tuple[Array, Array]:
    """Cell probabilities of one noisy DP-SGD sum, with and without (or instead of) a record."""
    edges = np.linspace(-1.0 - 14.0 * noise, 1.0 + 14.0 * noise, 40001)
    inner = edges[1:-1]  # the first and the last cell reach to infinity
    tails = (special.ndtr((inner - shift) / noise) for shift in (0.0, 1.0, -1.0))
    alone, moved, back = (np.diff(np.concatenate([[0.0], tail, [1.0]])) for tail in tails)
    p = (1.0 - rate) * alone + rate * moved
    q = (1.0 - rate) * alone + rate * back if replaced else alone
    with np.errstate(divide="ignore", invalid="ignore"):
        losses = np.where((p > 1e-300) & (q > 1e-300), np.log(p / q), 0.0)
    spread = float(np.sqrt(max(p @ losses**2 - (p @ losses) ** 2, 1e-300)))
    cells = np.floor(losses / max(spread / ATOMS, float(np.ptp(losses)) / 2**18)).astype(np.int64)
    numbers = cells - cells.min()
    masses, other = (np.asarray(np.bincount(numbers, side), dtype=float) for side in (p, q))
    return masses, other


def _self_convolved(masses: Array, steps: int) -> tuple[Array, float]:
    """Distribution of the sum of ``steps`` cell numbers modulo a large number, and its error."""
    size = fft.next_fast_len(2 * masses.size + int(48 * ATOMS * np.sqrt(steps)), real=True)
    total = np.maximum(fft.irfft(fft.rfft(masses, size) ** steps, size), 0.0)
    rounding = 8 * np.finfo(float).eps * (steps + np.log2(size))
    return total, rounding * float(np.sqrt(size * (total @ total)))


def _order_by_ratio(p: Array, q: Array) -> npt.NDArray[np.intp]:
    """Order of outcomes by rising likelihood ratio.

    Masses at the rounding level go to the middle. Any order is valid.
    """
    reliable = p + q > 1e-15 * max(float(p.max()), float(q.max()))
    ratio = np.zeros_like(p)
    log_p, log_q = (np.log(np.maximum(side[reliable], 1e-300)) for side in (p, q))
    ratio[reliable] = log_p - log_q
    return np.asarray(np.argsort(ratio, kind="stable"))
