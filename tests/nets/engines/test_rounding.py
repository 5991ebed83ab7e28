"""Rounding moves a clipped sum by no more than the noise pays for, also where records are chosen
for it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from sklearn_dpsearch.nets._engines import graph, rounding
from sklearn_dpsearch.nets._engines.base import Engine
from sklearn_dpsearch.nets._engines.layered import LayeredEngine
from sklearn_dpsearch.nets._engines.linear import LinearEngine
from sklearn_dpsearch.nets._engines.per_sample import VmapEngine
from sklearn_dpsearch.nets._records import TrainingData
from sklearn_dpsearch.nets._stacked_training import Stack, noise_scale

from ..toys import Residual, engine_for, mlp, records, seeded, table, traced, training

CPU = torch.device("cpu")
LOTS = [1, 20, 64, 128, 512, 513, 1000, 5000, 100_000]


def chosen(n):
    """Gradients in [-1, 1] whose sums come to lie where numbers are spaced twice as wide, if one of
    1 comes before.

    Most add up to a little less than a power of two. The others add nothing, and are rounded up by
    half a space each time: only where spaces are wide.
    """
    top = 2 ** int(np.log2(0.55 * n))
    space = top * 2.0**-23
    first = np.ones(top)
    first[0] = 0.25
    later = np.resize([0.5 + 0.501 * space, -(0.5 + 0.499 * space)], n - 1 - top)
    return np.concatenate([first, later]).astype(np.float32)


def clipped_sum(engine: Engine, gradients, piece):
    """Of a net of one weight with the loss (wx - y)², whose gradients at w = 0 and x = 1 are
    -2y."""
    trained, sums = torch.zeros(1, 1), torch.zeros(1, 1, dtype=torch.float64)
    engine.bind(trained, torch.zeros(1, 0), sums)
    engine.piece = piece
    targets = torch.from_numpy(-gradients / 2)[None, :, None]
    engine.add_clipped(torch.ones_like(targets), targets, torch.ones(1, len(gradients)))
    return sums.item()


def moved(engine, n, piece):
    """The most that one record with gradient 1 moves the sum of the others, wherever it comes."""
    others = chosen(n)
    before = clipped_sum(engine, others, piece)
    return max(
        clipped_sum(engine, np.insert(others, place, 1.0), piece) - before
        for place in (0, n // 2, n - 1)
    )


def as_graph(module, criterion, device):
    return traced(nn.Sequential(module), criterion, device, torch.zeros(8, 1))


def as_convolution(module, criterion, device):
    """One weight, too, whose gradient is a sum over places (of one)."""
    net = nn.Sequential(nn.Unflatten(1, (1, 1)), nn.Conv1d(1, 1, 1, bias=False), nn.Flatten())
    return LayeredEngine(net, criterion, device, graph.trace_module(net, torch.zeros(8, 1)))


ENGINES = [LinearEngine, as_graph, VmapEngine, as_convolution]


@pytest.mark.parametrize("make", ENGINES)
@pytest.mark.parametrize("n", [256, 512])
def test_records_chosen_for_it_move_a_sum_by_no_more_than_the_noise_covers(make, n):
    engine = make(nn.Linear(1, 1, bias=False), nn.MSELoss(reduction="sum"), CPU)
    assert moved(engine, n, rounding.records_per_piece(n)) <= rounding.noise_factor(n)
    assert moved(engine, n, 1) <= 1 + rounding.NORM_EXCESS


@pytest.mark.parametrize("make", [mlp, lambda: seeded(Residual)], ids=["plain", "graph"])
@pytest.mark.parametrize("rate", [1.0, 0.5])
def test_a_record_changes_one_chunk_of_a_batch_and_leaves_all_others_bit_by_bit(make, rate):
    """Which is why rounding in one chunk is all that the noise has to cover."""
    inputs, targets = table(3000)

    def sums_of_chunks(blank):
        task = training(seeded(make), sample_rate=rate, steps=1, expected_batch_size=3000.0)
        data = TrainingData.of(inputs, targets, CPU)
        stack = Stack(
            [task], engine_for(task.module, task.criterion, data.inputs, data.targets), data, 10**6
        )
        found, add = [], stack._add

        def apart(chunk):
            before = stack.sums.clone()
            stack.sums.zero_()
            add(torch.where(chunk == 7, len(data), chunk) if blank else chunk)
            found.append(stack.sums.clone())
            stack.sums.add_(before)

        stack._add = apart
        stack.run()
        return found

    without, complete = sums_of_chunks(blank=True), sums_of_chunks(blank=False)
    assert len(without) == len(complete) >= 3
    assert sum(not torch.equal(one, other) for one, other in zip(without, complete)) == 1


@pytest.mark.parametrize(("n", "much"), [(1000, 1.01), (5000, 1.3)])
def test_in_single_precision_throughout_they_move_it_further(n, much):
    engine = LinearEngine(nn.Linear(1, 1, bias=False), nn.MSELoss(reduction="sum"), CPU)
    assert moved(engine, n, n) > much > rounding.noise_factor(n)


@pytest.mark.parametrize("rows", LOTS)
def test_pieces_keep_the_bound_that_the_noise_pays_for(rows):
    most, piece = min(rows, rounding.CHUNK), rounding.records_per_piece(rows)
    assert piece > 0
    pieces = [piece] * (most // piece) + [most % piece]
    # in clipping norms, for one of the neighbours
    each = [rounding.SINGLE_ROUNDING * (b * b + 3 * b) / 2 for b in pieces]
    double = rounding.DOUBLE_ROUNDING * rows**2
    assert 1 + rounding.NORM_EXCESS + 2 * sum(each) + double <= rounding.noise_factor(rows) < 1.004


@pytest.mark.parametrize("order", [np.arange, lambda n: np.random.default_rng(0).permutation(n)])
@pytest.mark.parametrize("shape", [(1, 1), (3, 2), (64, 128)])
def test_sums_of_products_err_by_less_than_the_bound(shape, order):
    rng = np.random.default_rng(1)
    left, right = (
        torch.from_numpy(rng.uniform(0.9, 1.0, (1, 600, size)).astype(np.float32)) for size in shape
    )
    left, right = (one[:, order(600).copy()] for one in (left, right))
    exact = torch.bmm(left.double().mT, right.double())
    largest = float((left.double().norm(dim=-1) * right.double().norm(dim=-1)).max())
    for piece in (1, 50, 600):
        found = torch.zeros_like(exact)
        rounding.add_products(found, left, right, piece)
        bound = rounding.SINGLE_ROUNDING * 600 * (piece + 3) / 2
        assert float((found - exact).norm()) <= bound * largest


def test_a_stack_keeps_the_bound_of_each_net():
    tasks = [training(sample_rate=rate, noise_multiplier=1.0) for rate in (0.2, 0.3, 0.4)]
    stack = Stack(tasks, LinearEngine(tasks[0].module, tasks[0].criterion, CPU), records(60), 1000)
    rows = [task.rows(60) for task in tasks]
    assert stack.engine.piece == min(map(rounding.records_per_piece, rows)) > 0
    expected = list(map(rounding.noise_factor, rows))
    assert [noise_scale(one, own) for one, own in zip(tasks, rows)] == expected
    assert stack.scales == list(map(rounding.noise_factor, rows))
