"""Figures 3 and 4 of Ding, Wu et al. (2022), and figure 2 of Ding & Wu (2022), with the noisy
maximum beside them.

    python examples/papers/dw22_figures.py                # a few points as text
    python examples/papers/dw22_figures.py --out FOLDER   # pictures

100 candidates with utilities uniform on (0, 1), granularity 0.01, k parts: every utility has
sensitivity 1/k. "Fidelity" is the share of candidates that the kept one is at least as good as. The
walk's ε is its worst case (``doubling_search``), not that of the rounds that happened; at that ε
the noisy maximum chooses with the exponential mechanism.
"""

from __future__ import annotations

import functools
from fractions import Fraction

import numpy as np
from _show import Curves, Figure, show

from sklearn_dpsearch.privacy import GumbelNoise, doubling_search
from sklearn_dpsearch.privacy._selection.doubling import (
    AboveThreshold,
    DoublingRounds,
    DoublingSteps,
    default_max_rounds,
)

CANDIDATES, LEVELS, WALKS = 100, 100, 40
ROUND_EPSILONS = (0.02, 0.05, 0.1, 0.2, 0.5)
PARTS = 50


@functools.cache
def walks(
    round_epsilon: float, parts: int, levels: int = LEVELS, seed: int = 0
) -> list[tuple[np.ndarray, list[float]]]:
    """Utilities of each walk, and the fidelity of the kept candidate after each of its rounds."""
    rng = np.random.default_rng(seed)
    runs = []
    for _ in range(WALKS):
        utilities = rng.uniform(size=CANDIDATES)
        exact = [Fraction(round(utility * 2**20), 2**20) for utility in utilities]
        question = AboveThreshold(
            round_epsilon=Fraction(round_epsilon), sensitivity=Fraction(1, parts)
        )
        steps = DoublingSteps(levels=levels, max_rounds=default_max_rounds(levels))
        rounds, fidelities = DoublingRounds(question, steps, granularity=Fraction(1, levels)), [0.0]
        while not rounds.over:
            accepted = rounds.ask(exact)
            fidelities.append(fidelities[-1] if accepted is None else fidelity(utilities, accepted))
        runs.append((utilities, fidelities[1:]))
    return runs


def fidelity(utilities: np.ndarray, chosen: int) -> float:
    """Share of candidates that the chosen one is at least as good as."""
    return float(np.mean(utilities <= utilities[chosen]))


def mean_fidelity(round_epsilon: float) -> float:
    """At the end of a walk."""
    return float(np.mean([fidelities[-1] for _, fidelities in walks(round_epsilon, PARTS)]))


def worst_case(round_epsilon: float) -> float:
    """The walk's pure ε."""
    return float(doubling_search(round_epsilon, levels=LEVELS).epsilon_at(0.0))


def noisy_maximum(epsilon: float) -> float:
    """Mean fidelity of the exponential mechanism on the same utilities."""
    noise = GumbelNoise(scale=Fraction(2, PARTS) / Fraction(epsilon))
    return float(
        np.mean(
            [
                fidelity(u, noise.select([Fraction(utility) for utility in u]))
                for u, _ in walks(0.1, PARTS)
            ]
        )
    )


def fidelity_over_rounds() -> Curves:
    """Figure 3 of DW22a: mean fidelity of the kept candidate after each round, for several k·ε."""
    curves = {}
    for parts, round_epsilon in ((10, 0.05), (50, 0.05), (50, 0.2), (200, 0.2)):
        runs = [fidelities for _, fidelities in walks(round_epsilon, parts)]
        longest = max(len(run) for run in runs)
        padded = np.array([run + [run[-1]] * (longest - len(run)) for run in runs])
        curves[f"k ε = {parts * round_epsilon:g}, DW22a"] = (
            np.arange(1.0, longest + 1),
            padded.mean(axis=0),
        )
    return curves


def rounds_over_levels() -> Curves:
    """Figure 4 of DW22a: rounds of a walk by the number n of levels, and the default cap of 5 ⌈log₂
    n⌉ + 2."""
    levels = np.array([8, 16, 32, 64, 128, 256])
    rounds = [[len(f) for _, f in walks(0.1, PARTS, levels=int(n), seed=1)] for n in levels]
    logs = np.log2(levels)
    return {
        "mean, DW22a": (levels.astype(float), np.array([np.mean(numbers) for numbers in rounds])),
        "largest": (levels.astype(float), np.array([float(max(numbers)) for numbers in rounds])),
        "log2 n": (levels.astype(float), logs),
        "3 log2 n": (levels.astype(float), 3 * logs),
        "default max_rounds": (levels.astype(float), 5 * np.ceil(logs) + 2),
    }


def rounds_over_utility() -> Curves:
    """Figure 2 of DW22b: rounds by (u* − u₀)/g with k = 10, ε₀ = 0.1, g = 0.01 and u₀ = 0."""
    runs = [
        (int(max(utilities) * LEVELS), len(f))
        for seed in range(4)
        for utilities, f in walks(0.1, 10, seed=seed)
    ]
    reached = np.array(sorted({level for level, _ in runs}), dtype=float)
    return {
        "mean rounds, DW22b": (
            reached,
            np.array([np.mean([r for u, r in runs if u == level]) for level in reached]),
        )
    }


def fidelity_at_equal_epsilon() -> Curves:
    """Ours: what the walk finds, and what the noisy maximum finds at the walk's worst-case ε."""
    epsilons = np.array([worst_case(epsilon) for epsilon in ROUND_EPSILONS])
    return {
        "doubling walk": (
            epsilons,
            np.array([mean_fidelity(epsilon) for epsilon in ROUND_EPSILONS]),
        ),
        "noisy maximum": (epsilons, np.array([noisy_maximum(epsilon) for epsilon in epsilons])),
    }


FIGURES: dict[str, Figure] = {
    "dw22a_figure_3": (fidelity_over_rounds, "round", "fidelity"),
    "dw22a_figure_4": (rounds_over_levels, "levels n", "rounds"),
    "dw22b_figure_2": (rounds_over_utility, "(u* - u0)/g", "rounds"),
    "at_equal_epsilon": (fidelity_at_equal_epsilon, "pure epsilon", "fidelity"),
}

if __name__ == "__main__":
    show(FIGURES, "dw22")
