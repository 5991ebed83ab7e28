"""A stack: noise as stated, each net's own; nets leave when they are done."""

from __future__ import annotations

import copy
import os

import numpy as np
import pytest
import torch

from sklearn_dpsearch.nets._engines.base import ParameterLayout
from sklearn_dpsearch.nets._engines.linear import LinearEngine
from sklearn_dpsearch.nets._engines.rounding import noise_factor
from sklearn_dpsearch.nets._optimizers import UpdateRule
from sklearn_dpsearch.nets._stacked_training import Stack, noise_scale

from .toys import (
    CPU,
    Residual,
    alone,
    engine_for,
    flat,
    mlp,
    records,
    same,
    seeded,
    table,
    traced,
    training,
)

RUNS = 20_000 if os.environ.get("SKLEARN_DPSEARCH_FULL") else 2_000


def updates(noise_multiplier, norm, expected, seeds, make=mlp, engine=LinearEngine):
    """One step with rate 1 from the same start for each seed; the parameters' moves, shape
    (len(seeds), size)."""
    start = make()
    given = {
        "steps": 1, "sample_rate": 1.0, "optimizer": UpdateRule.sgd(lr=1.0), "max_grad_norm": norm,
        "noise_multiplier": noise_multiplier, "expected_batch_size": expected,
    }  # fmt: skip
    tasks = [training(copy.deepcopy(start), seed=seed, **given) for seed in seeds]
    Stack(tasks, engine(start, tasks[0].criterion, CPU), records(5), 10**6).run()
    return np.stack([(flat(one.module) - flat(start)).numpy() for one in tasks])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("noise_multiplier", "norm", "expected"), [(1.0, 1.0, 12.0), (3.0, 0.5, 7.3), (0.2, 40.0, 0.6)]
)
def test_noise_of_an_update_has_the_stated_variance(noise_multiplier, norm, expected):
    noise = updates(noise_multiplier, norm, expected, range(RUNS // 10))
    noise = noise - updates(0.0, norm, expected, [0])
    wanted = noise_multiplier * norm / expected
    assert noise.std() == pytest.approx(wanted, rel=5 / np.sqrt(2 * noise.size))
    assert abs(noise.mean()) < 5 * wanted / np.sqrt(noise.size)
    each = noise.std(axis=0)  # every single parameter gets it
    assert each.min() > wanted * (1 - 6 / np.sqrt(2 * len(noise)))
    assert each.max() < wanted * (1 + 6 / np.sqrt(2 * len(noise)))


@pytest.mark.parametrize(
    ("make", "engine"), [(mlp, LinearEngine), (lambda: seeded(Residual), traced)]
)
def test_nets_of_a_stack_have_noise_independent_of_each_other(make, engine):
    noise = updates(1.0, 1.0, 12.0, range(12), make, engine) - updates(
        0.0, 1.0, 12.0, [0], make, engine
    )
    correlations = np.corrcoef(noise)
    np.fill_diagonal(correlations, 0.0)
    assert np.abs(correlations).max() < 5.5 / np.sqrt(noise.shape[1])


@pytest.mark.slow
def test_noise_is_independent_from_step_to_step_and_from_parameter_to_parameter():
    tasks = [
        training(mlp(), seed=seed, steps=2, sample_rate=1e-12, noise_multiplier=1.0)
        for seed in range(RUNS // 3)
    ]
    stack = Stack(tasks, LinearEngine(mlp(), tasks[0].criterion, CPU), records(5), 10**6)
    seen, step = [], stack.stepper.step
    stack.stepper.step = lambda weights, slopes, t: (
        seen.append(slopes.numpy().copy()),
        step(weights, slopes, t),
    )
    stack.run()
    first, second = (one - one.mean(axis=0) for one in seen)
    limit = 6 / np.sqrt(len(tasks))
    assert abs((first * second).mean(axis=0) / (first.std(0) * second.std(0))).max() < limit
    between = np.corrcoef(first.T)
    np.fill_diagonal(between, 0.0)
    assert np.abs(between).max() < limit


@pytest.mark.parametrize("make", [mlp, lambda: seeded(Residual)], ids=["plain", "graph"])
@pytest.mark.parametrize("most", [10_000, 30])  # the last in chunks
def test_not_one_bit_of_a_net_depends_on_what_the_others_of_its_stack_draw(make, most):
    def first_of(seed):
        tasks = [
            training(seeded(make), seed=one, steps=20, sample_rate=rate)
            for one, rate in ((0, 0.2), (seed, 0.2), (seed + 1, 0.3))
        ]
        engine = engine_for(tasks[0].module, tasks[0].criterion, *table(8))
        Stack(tasks, engine, records(), most).run()
        return flat(tasks[0].module)

    first = first_of(1)
    for seed in range(10, 40, 2):
        assert torch.equal(first_of(seed), first)


@pytest.mark.parametrize("most", [10_000, 7])
@pytest.mark.parametrize("n", [60, 41])  # the second with places that are blank
def test_every_batch_has_the_same_number_of_rows_whoever_was_drawn(n, most):
    """So that shapes, and the number of calls, tell of no record; what is in one row is computed in
    its row alone."""
    tasks = [
        training(mlp(), seed=seed, steps=30, sample_rate=rate, places=60)
        for seed, rate in ((0, 0.2), (1, 0.1))
    ]
    engine = engine_for(tasks[0].module, tasks[0].criterion, *table(8))
    shapes, add = [], engine.add_clipped
    engine.add_clipped = lambda inputs, *rest: (shapes.append(inputs.shape), add(inputs, *rest))
    Stack(tasks, engine, records(n), most).run()
    assert len(set(shapes)) == 1
    assert shapes[0][1] * len(shapes) / 30 >= tasks[0].rows(n) == 19


def test_rounding_is_covered_by_a_little_more_noise():
    tasks = [training(noise_multiplier=2.0, max_grad_norm=3.0)]
    stack = Stack(tasks, LinearEngine(tasks[0].module, tasks[0].criterion, CPU), records(), 100)
    assert stack.scales[0] == noise_scale(stack.tasks[0], 19) == 6.0 * noise_factor(19)
    assert stack.sums.dtype is torch.float64


# --- its nets -------------------------------------------------------------------------------------


def test_the_stack_shrinks_as_nets_finish():
    steps = [1, 2, 5, 5, 9]
    tasks = [
        training(mlp(seed=i), seed=i, steps=one, noise_multiplier=1.0)
        for i, one in enumerate(steps)
    ]
    stack = Stack(tasks, LinearEngine(tasks[0].module, tasks[0].criterion, CPU), records(), 1000)
    seen, finish = [], stack._finish
    stack._finish = lambda t: (
        finish(t),
        seen.append((t, len(stack.tasks), stack.trained.shape[0])),
    )
    stack.run()
    assert seen == [(1, 4, 4), (2, 3, 3), (5, 1, 1), (9, 0, 0)]
    again = [
        training(mlp(seed=i), seed=i, steps=one, noise_multiplier=1.0)
        for i, one in enumerate(steps)
    ]
    same([flat(one.module) for one in tasks], alone(again))


def test_memory_grows_with_the_stack_by_little_more_than_parameters():
    layout = ParameterLayout(mlp())
    tasks = [training(mlp(), seed=i) for i in range(4)]
    stack = Stack(tasks, LinearEngine(tasks[0].module, tasks[0].criterion, CPU), records(), 100)
    assert stack.trained.shape == stack.sums.shape == stack.gradients.shape == (4, layout.trained)


# --- parameters in flat storage -------------------------------------------------------------------


def test_layouts_hold_every_parameter_once_and_give_it_back():
    net = Residual()
    net.middle.weight.requires_grad_(False)
    layout = ParameterLayout(net)
    assert layout.trained + layout.frozen == sum(p.numel() for p in net.parameters())
    row, frozen = (layout.read([net], CPU, flag)[0] for flag in (True, False))
    for key, parameter in net.named_parameters():
        torch.testing.assert_close(
            layout.view(key, row, frozen), parameter.detach(), rtol=0, atol=0
        )
    other = Residual()
    other.middle.weight.requires_grad_(False)
    kept = other.middle.weight.detach().clone()
    layout.write(row, other)
    torch.testing.assert_close(other.last.weight, net.last.weight, rtol=0, atol=0)
    torch.testing.assert_close(other.middle.weight.detach(), kept, rtol=0, atol=0)
