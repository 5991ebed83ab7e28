"""Averaged parameters: the mean over the last steps, of each net its own, and nothing else changes."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
import torch

from sklearn_dpsearch.nets.training import train_together

from .toys import alone, flat, mlp, records, same, training


def run(steps, average=0.0, seed=0):
    return training(mlp(seed=seed), seed=seed, steps=steps, average=average, noise_multiplier=1.0)


def after_each_step(steps):
    """The parameters after 1, 2, … steps of one training."""
    return torch.stack(alone([run(t) for t in range(1, steps + 1)]))


@pytest.mark.parametrize(("share", "counted"), [(1.0, 8), (0.5, 4), (0.3, 2), (0.125, 1), (0.1, 0)])
def test_mean_is_that_of_the_parameters_after_each_of_the_last_steps(share, counted):
    path = after_each_step(8)
    wanted = path[-counted:].mean(dim=0) if counted else path[-1]
    same(alone([run(8, share)]), [wanted])


def test_nets_of_a_stack_have_means_of_their_own():
    def tasks():
        return [run(steps, share, seed) for seed, (steps, share) in enumerate([(3, 1.0), (8, 0.5), (8, 0.0), (5, 0.2)])]

    together = tasks()
    assert all(train_together(together, records(), max_physical_batch=1000))
    same([flat(one.module) for one in together], alone(tasks()))
