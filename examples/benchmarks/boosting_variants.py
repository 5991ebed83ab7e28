"""Variants of private boosting that were tried: differences of AUC, log loss or R² to rounds of equal capacity.

    python examples/benchmarks/boosting_variants.py                                # a small table: seconds
    python examples/benchmarks/boosting_variants.py --data FOLDER --fits 5         # four tables: minutes
    python examples/benchmarks/boosting_variants.py --packaged --epsilon 0.3 --only pooled

FOLDER holds the tables as ``tables.py`` describes them; --packaged takes those of the package pydataset. Every variant
is a public function of the noisy sums, or has the same guarantee by the same proof. Fits of a seed have the same cells
and the same noise, as far as a variant leaves them, so that differences are far more exact than scores; ± is their
standard error. **Models of this script are not private**: their noise is NumPy's, and seeded.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import tables
from scipy.linalg import toeplitz
from sklearn.metrics import log_loss, r2_score, roc_auc_score

from sklearn_dpsearch.boosting import DPGradientBoostingClassifier, DPGradientBoostingRegressor
from sklearn_dpsearch.boosting.features import Feature
from sklearn_dpsearch.boosting.noise import HESSIAN_NOISE, cell_sums, squared_distance
from sklearn_dpsearch.boosting.random_cells import WHOLE, Partition, PartitionDraws, _random_groups
from sklearn_dpsearch.boosting.rounds import PriorScale

DELTA = 1e-5
#: Capacity of all rows, whatever the rule of the package says.
GROUPS = {1: 16, 2: 5, 4: 2}
OF_CLASSES = {"max_iter": 400, "learning_rate": 0.3}
OF_NUMBERS = {"max_iter": 800, "learning_rate": 0.4}


@dataclass(frozen=True)
class Variant:
    """Changes to the rules of the package; the defaults change nothing."""

    momentum: float = 0.0  # share of a step that is taken again in the next round, at an equal sum
    nesterov: bool = False  # derivatives at the outputs that the momentum leads to
    averaged: float = 0.0  # share of the rounds, the last ones, whose outputs are averaged
    size: str = "first rounds"  # whose noisy sums tell the expected size: "shape", "recent" or "column"
    factor: float = 1.0  # on prior_factor
    pooled: bool = False  # steps of cells with a column's group in common, or a close one, are expected to be alike
    merged: float = 0.0  # neighbouring groups are one while their steps differ by fewer standard deviations of noise
    by_gains: int = 0  # after that many rounds columns are drawn in proportion to the size of their steps
    own_cells: int = 0  # every that many rounds the cells are bins of the outputs
    repeated: int = 1  # rounds of every partition
    correlated: float = 0.0  # damping of the square root of the sums' matrix: noise anticorrelated over these rounds


RULES = Variant()
VARIANTS = {
    "heavy ball, 0.9": Variant(momentum=0.9),
    "Nesterov's momentum, 0.9": Variant(momentum=0.9, nesterov=True),
    "mean of the last quarter": Variant(averaged=0.25),
    "size by number of columns": Variant(size="shape"),
    "size of recent rounds": Variant(size="recent"),
    "size by column": Variant(size="column"),
    "merged groups": Variant(merged=1.0),
    "pooled cells": Variant(pooled=True),
    "pooled cells, factor 1.6": Variant(pooled=True, factor=1.28),
    "columns by their gains": Variant(by_gains=100),
    "cells of outputs": Variant(own_cells=20),
    "partitions four times": Variant(repeated=4),
    "… with correlated noise": Variant(repeated=4, correlated=1.0),
    "… damped by 0.4": Variant(repeated=4, correlated=0.4),
}


class Problem:
    """A table as codes and targets, with the package's model for it."""

    def __init__(self, table: tables.Table, epsilon: float) -> None:
        self.table, self.of_numbers = table, isinstance(table.schema[table.target], tuple)
        kind = DPGradientBoostingRegressor if self.of_numbers else DPGradientBoostingClassifier
        self.model: Any = kind(
            table.schema, target=table.target, target_epsilon=epsilon, target_delta=DELTA, max_bins=64,
            **(OF_NUMBERS if self.of_numbers else OF_CLASSES),
        )  # fmt: skip
        self.loss, self.targets, _ = self.model._loss_and_targets(table.train[table.target].to_numpy())
        columns = self.model._coded_columns()
        self.features = columns.features
        self.codes, self.test_codes = (columns.codes(part) for part in (table.train, table.test))

    def scores(self, outputs: np.ndarray) -> dict[str, float]:
        """Scores of outputs for the test records."""
        truth = self.table.test[self.table.target].to_numpy()
        if self.of_numbers:
            return {"R2": r2_score(truth, self.model._values_from_outputs(outputs[0]))}
        logits = outputs.T if len(outputs) > 1 else np.column_stack([np.zeros_like(outputs[0]), outputs[0]])
        chances = np.exp(logits - np.logaddexp.reduce(logits, axis=1, keepdims=True))
        each = [roc_auc_score(truth == one, chances[:, i]) for i, one in enumerate(self.model.classes_)]
        return {"AUC": float(np.mean(each)), "log loss": log_loss(truth, chances, labels=self.model.classes_)}


class Sizes:
    """Expected size of steps, from the noisy sums of earlier rounds."""

    def __init__(self, variant: Variant, noise: float, factor: float, n_features: int) -> None:
        self.kind, self.noise, self.factor = variant.size, noise, factor * variant.factor
        self.first: dict[int, PriorScale] = {}
        self.recent = np.zeros(2)
        self.columns = np.zeros((2, n_features))
        self.rounds = 0

    def of(self, partition: Partition) -> float:
        size = self._first(partition).value
        if self.kind == "recent" and self.rounds >= 30:
            return self.factor * float(np.clip(math.sqrt(max(self.recent[0] / self.recent[1], 0.0)), 0.1, 0.6))
        if self.kind == "column" and self.rounds >= 100:
            signal, weight = self.columns
            whole = signal.sum() / weight.sum()
            prior = 3 * weight.sum() / self.rounds
            ratios = (signal + prior * whole) / ((weight + prior) * whole)
            return size * math.sqrt(np.clip(np.mean(ratios[list(partition.features)]), 0.1, 3.0))
        return size

    def see(self, partition: Partition, scores: np.ndarray, hessians: np.ndarray) -> None:
        found = np.array([np.sum(scores**2 - self.noise**2), np.sum(np.maximum(hessians, 0.0) ** 2)])
        self._first(partition).see(scores, hessians)
        self.recent = 0.99 * self.recent + found
        self.columns[:, list(partition.features)] += found[:, np.newaxis]
        self.rounds += 1

    def odds(self) -> np.ndarray:
        """Chances of the columns in proportion to the size of their steps, and a third of them equal."""
        size = np.sqrt(np.maximum(self.columns[0], 0.0) / np.maximum(self.columns[1], 1e-9)) + 1e-9
        return 0.7 * size / size.sum() + 0.3 / len(size)

    def _first(self, partition: Partition) -> PriorScale:
        place = len(partition.features) if self.kind == "shape" else 0
        return self.first.setdefault(place, PriorScale(self.noise, self.factor))


class Noise:
    """Noise of the sums of scores, independent or correlated over the rounds of a partition.

    The noise is C⁻¹·Z with a lower triangular matrix C of numbers ≥ 0. A record adds at most 1 to each round, so that
    the sensitivity is ‖C·1‖. Z is Gaussian, so that adaptive rounds cost no more (Denisov et al. 2022).
    """

    def __init__(self, variant: Variant, scale: float, generator: np.random.Generator) -> None:
        self.scale, self.generator, self.rounds = scale, generator, variant.repeated
        root = np.cumprod([1.0, *((2 * i - 1) / (2 * i) for i in range(1, self.rounds))])
        matrix = toeplitz(root * variant.correlated ** np.arange(self.rounds), np.zeros(self.rounds))
        self.inverse = np.linalg.inv(matrix) * (np.linalg.norm(matrix.sum(axis=1)) / math.sqrt(self.rounds))
        self.seen: dict[int, list[np.ndarray]] = {}

    def of(self, partition: int, shape: tuple[int, int]) -> np.ndarray:
        seen = self.seen.setdefault(partition, [])
        seen.append(self.generator.normal(0.0, self.scale, shape))
        row = self.inverse[len(seen) - 1] if len(seen) <= self.rounds else np.eye(len(seen))[-1]
        return np.tensordot(row[: len(seen)], np.array(seen), axes=1)


def trained(problem: Problem, seed: int, variant: Variant) -> np.ndarray:
    """Outputs for the test records."""
    model, loss = problem.model, problem.loss
    cells_of, noise_of = (np.random.default_rng([seed, purpose]) for purpose in range(2))
    rounds, most = int(model.max_iter), model.max_features_per_cell
    scale = math.sqrt((rounds + 1) * squared_distance(loss, model.neighboring)) / model._mu()
    noise, hessian_noise = Noise(variant, scale, noise_of), HESSIAN_NOISE * loss.hessian_unit * scale
    sizes = Sizes(variant, scale, model.prior_factor, len(problem.features))
    distinct = rounds // variant.repeated
    first, partitions = WHOLE, list(PartitionDraws(problem.features, distinct, groups_until(most), cells_of))
    outputs, test = (np.zeros((loss.n_outputs, codes.shape[1])) for codes in (problem.codes, problem.test_codes))
    moves, test_moves, later = np.zeros_like(outputs), np.zeros_like(test), []
    for number in range(rounds + 1):
        place = (number - 1) % distinct
        partition = partitions[place] if number else first
        if variant.by_gains and number > variant.by_gains:
            partition = weighted(problem.features, most, cells_of, sizes.odds())
        own = bool(number and variant.own_cells and number % variant.own_cells == 0 and loss.n_outputs == 1)
        cells, test_cells = partition.cells(problem.codes), partition.cells(problem.test_codes)
        n_cells = partition.n_cells
        if own:
            cells, test_cells, n_cells = binned(outputs[0]), binned(test[0]), 32
        at = outputs + variant.momentum * moves if variant.nesterov else outputs
        sums = cell_sums(np.concatenate(loss.derivatives(at, problem.targets)), cells, n_cells)
        scores, hessians = np.split(sums, 2)
        scores = scores + noise.of(number and place + 1, scores.shape)
        hessians = np.maximum(hessians + noise_of.normal(0.0, hessian_noise, hessians.shape), 0.0)
        if not number:
            step = loss.start(scores * hessians / (hessians**2 + scale**2))
        else:
            step = model.learning_rate * steps(problem, variant, partition, scores, hessians, scale, sizes, own)
            if not own:
                sizes.see(partition, scores, hessians)
        keep = variant.momentum if number else 0.0
        moves = keep * moves + (1 - keep) * step[:, cells]
        test_moves = keep * test_moves + (1 - keep) * step[:, test_cells]
        outputs, test = outputs + moves, test + test_moves
        if number > rounds * (1 - variant.averaged):
            later.append(test)
        if not number:  # the start has no momentum
            moves, test_moves = 0 * moves, 0 * test_moves
    return np.mean(later, axis=0) if later else test


def steps(
    problem: Problem, variant: Variant, partition: Partition, scores: Any, hessians: Any, noise: float, sizes: Sizes,
    own: bool,
) -> np.ndarray:  # fmt: skip
    """Steps of the cells, shape (n_outputs, n_cells)."""
    size = sizes.of(partition)
    if variant.pooled and not own:
        alike = likeness(partition, problem.features)
        return np.array([pooled(*row, alike, noise, size) for row in zip(scores, hessians)])
    ordered = len(partition.features) == 1 and problem.features[partition.features[0]].cuts is not None
    if variant.merged and ordered and not own:
        return np.array([merged(*row, noise, size, variant.merged) for row in zip(scores, hessians)])
    return scores * hessians / (hessians**2 + (noise / size) ** 2)


def pooled(scores: Any, hessians: Any, alike: Any, noise: float, size: float) -> np.ndarray:
    """Posterior mean of steps N(0, size²·alike), of which most of the common part is taken to be 0."""
    centre = np.eye(len(scores)) - 0.7 * hessians / max(hessians.sum(), 1e-9)
    prior = size**2 * centre @ alike @ centre.T
    seen = hessians[:, np.newaxis] * prior * hessians + noise**2 * np.eye(len(scores))
    return prior @ (hessians * np.linalg.solve(seen, scores))


def likeness(partition: Partition, features: tuple[Feature, ...]) -> np.ndarray:
    """Correlation of the steps of cells: half of it by the groups of their columns, near groups of a range included."""
    found, below = np.zeros((partition.n_cells, partition.n_cells)), 1
    for place, lookup in zip(partition.features, partition.lookups):
        groups = int(lookup.max()) // below + 1
        group = np.arange(partition.n_cells) // below % groups
        apart = np.abs(group[:, np.newaxis] - group)
        near = apart == 0 if features[place].cuts is None else np.exp(-apart * 16 / (3 * max(groups, 2)))
        found += near / len(partition.features)
        below *= groups
    return (np.eye(len(found)) + found) / 2


def merged(scores: Any, hessians: Any, noise: float, size: float, least: float) -> np.ndarray:
    """Steps of groups in order, of which neighbours are merged; the last one is that of missing values."""
    blocks = [([place], *both) for place, both in enumerate(zip(scores, np.maximum(hessians, 1e-9)))]

    def distance(one: Any, other: Any) -> float:
        variance = sum(noise**2 * len(places) / weight**2 for places, _, weight in (one, other))
        return abs(one[1] / one[2] - other[1] / other[2]) / math.sqrt(variance)

    while len(blocks) > 2:
        distances = [distance(one, other) for one, other in itertools.pairwise(blocks[:-1])]
        at = int(np.argmin(distances))
        if distances[at] >= least:
            break
        blocks[at : at + 2] = [tuple(one + other for one, other in zip(*blocks[at : at + 2]))]
    found = np.zeros(len(scores))
    for places, score, weight in blocks:
        found[places] = score * weight / (weight**2 + len(places) * (noise / size) ** 2)
    return found


def groups_until(most: int) -> dict[int, int]:
    """Groups of cells of up to ``most`` features."""
    return {width: groups for width, groups in GROUPS.items() if width <= most}


def weighted(features: Any, most: int, generator: np.random.Generator, odds: np.ndarray) -> Partition:
    """Partition of columns that are drawn with these odds."""
    shape = int(generator.choice(list(groups_until(most))))
    width = min(shape, len(features))
    chosen = generator.choice(len(features), width, replace=False, p=odds)
    lookups, n_cells = [], 1
    for place in chosen.tolist():
        groups = _random_groups(features[place], GROUPS[shape], width == 1, generator)
        lookups.append((groups * n_cells).astype(np.uint8))
        n_cells *= int(groups.max()) + 1
    return Partition(tuple(chosen.tolist()), tuple(lookups), n_cells)


def binned(outputs: np.ndarray) -> np.ndarray:
    """Bins of the outputs, 32 between −4 and 4."""
    return np.clip((outputs + 4) * 4, 0, 31).astype(np.uint8)


# --- comparison -----------------------------------------------------------------------------------------------------


def outputs_of(problem: Problem, seed: int, only: list[str]) -> Iterator[tuple[str, np.ndarray]]:
    """Name and outputs of each row of a fit; the first is what others are compared with."""
    yield "no variant", trained(problem, seed, RULES)
    for name, variant in VARIANTS.items():
        if name.startswith(tuple(only)):
            yield name, trained(problem, seed, variant)


def compared(problem: Problem, fits: int, only: list[str]) -> None:
    """Print the scores of the first row, and the differences of the others."""
    found: dict[str, list[dict[str, float]]] = {}
    for seed in range(fits):
        for name, outputs in outputs_of(problem, seed, only):
            found.setdefault(name, []).append(problem.scores(outputs))
    (name, scores), *others = ((name, pd.DataFrame(scores)) for name, scores in found.items())
    print(f"  {name:<34}", "  ".join(f"{kind} {scores[kind].mean():.4f}" for kind in scores))
    for name, variant in others:
        apart = variant - scores
        error = apart.std() / math.sqrt(fits)
        told = (f"{kind} {apart[kind].mean():+.4f} ± {error[kind]:.4f}" for kind in apart)
        print(f"  {name:<34}", "  ".join(told), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--packaged", action="store_true", help="the tables of pydataset")
    parser.add_argument("--fits", type=int, default=2)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--only", nargs="+", default=[""], help="variants whose name starts so")
    parser.add_argument("--tables", nargs="+", default=[""], help="tables whose name starts so")
    options = parser.parse_args()
    for table in tables.fresh() if options.packaged else tables.tables(options.data):
        if table.name.startswith(tuple(options.tables)):
            print(f"\n{table.name}, {len(table.train):,} records, epsilon = {options.epsilon:g}")
            compared(Problem(table, options.epsilon), options.fits, options.only)


if __name__ == "__main__":
    main()
