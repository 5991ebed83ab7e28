"""How large a share of a Gaussian's true ε an audit of one run can prove, however many canaries it
has.

See "What no audit of one run can prove" in docs/theory/right_guesses.md.
"""

from __future__ import annotations

from scipy.optimize import brentq
from scipy.stats import norm

from sklearn_dpsearch.privacy import GaussianDP

DELTA, CHANCE = 1e-5, 0.05
SHARES = (0.5, 0.2, 0.08, 0.03, 0.01, 1e-3, 1e-4)


def right(mu: float, share: float) -> float:
    """Chance that a guess is right, in the mean over the share of all canaries about which the
    release says most.

    Under μ-GDP a canary's output is N(±μ/2, 1), and its distance from 0 tells how sure its sign is.
    """

    def beyond(distance: float) -> float:
        return float(norm.sf(distance - mu / 2) + norm.cdf(-distance - mu / 2))

    distance_at_share = brentq(lambda distance: beyond(distance) - share, 0.0, 60.0)
    return float(norm.sf(distance_at_share - mu / 2)) / beyond(distance_at_share)


def not_refuted(mu: float, share: float) -> float:
    """Smallest μ' of a mechanism that, with probability ``CHANCE``, has as many right guesses as
    one with μ always."""
    fraction = right(mu, share)
    return float(
        brentq(lambda smaller: right(smaller, CHANCE * share) - fraction, 1e-3, 1.001 * mu)
    )


def provable_share(epsilon: float, share: float) -> float:
    """ε of the smallest mechanism that is not refuted ÷ the true ε, at ``DELTA``."""
    mu = float(brentq(lambda mu: GaussianDP(mu=mu).epsilon_at(DELTA) - epsilon, 0.05, 5.0))
    return float(GaussianDP(mu=not_refuted(mu, share)).epsilon_at(DELTA)) / epsilon


def main() -> None:
    print("share guessed   provable share of epsilon, true epsilon = 1 and 3")
    for share in SHARES:
        provable = [provable_share(epsilon, share) for epsilon in (1.0, 3.0)]
        print(f"{share:<13g}   {provable[0]:.2f}  {provable[1]:.2f}")


if __name__ == "__main__":
    main()
