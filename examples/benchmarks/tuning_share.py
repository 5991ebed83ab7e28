"""What the final training keeps where candidates of a subset search lose less, as much, or more
than it does.

    python examples/benchmarks/tuning_share.py           # one row
    python examples/benchmarks/tuning_share.py --full    # all: a quarter of a minute

By Gaussian pairs, Geometric(10), δ = 1e-5, training on the rest, scores for nothing: μ of the final
training, times the share of the records that it has, against one fit with all of ε. Beside it the
same for a candidate: what tuning sees.
"""

from __future__ import annotations

import argparse

from sklearn_dpsearch.privacy import GaussianDP, Geometric, best_of, calibrate, subset_then_train

DELTA = 1e-5
DISTRIBUTION = Geometric(10)
FRACTIONS, SHARES = (0.1, 0.2), (0.5, 1.0, 1.5, 2.0)


def epsilons(epsilon: float, fraction: float, share: float) -> tuple[float, float]:
    """Of the final training and of a candidate."""

    def search(mu: float):
        return subset_then_train(
            best_of(GaussianDP(mu=share * mu), DISTRIBUTION), GaussianDP(mu=mu), fraction, "rest"
        )

    alone = calibrate(lambda mu: GaussianDP(mu=mu), epsilon, DELTA)
    ratio = calibrate(search, epsilon, DELTA) / alone
    return (1.0 - fraction) * ratio, fraction * share * ratio


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--full", action="store_true")
    full = parser.parse_args().full
    print(
        "| ε, subset_fraction | " + " | ".join(f"tuning_share={share:g}" for share in SHARES) + " |"
    )
    print("|---|" + "---|" * len(SHARES))
    for epsilon in (0.5, 1.0, 3.0) if full else (0.5,):
        for fraction in FRACTIONS if full else FRACTIONS[:1]:
            cells = (
                "{:.2f}, {:.2f}".format(*epsilons(epsilon, fraction, share)) for share in SHARES
            )
            print(f"| {epsilon:g}, {fraction:g} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
