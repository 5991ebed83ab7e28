"""Means of the parameters over the last steps: free, since every step is released privately anyway."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from .task import TrainingTask


class Averages:
    """The mean of each net's parameters over its last steps (Polyak & Juditsky 1992; De et al. 2022, §3.4).

    Parameters
    ----------
    tasks : sequence of TrainingTask
    trained : tensor of shape (M, size)
    """

    def __init__(self, tasks: Sequence[TrainingTask], trained: torch.Tensor) -> None:
        #: First averaged step of each net; for nets without a mean, a step that is never reached.
        self._first = [task.steps - int(task.average * task.steps) for task in tasks]
        self._wanted = [task.steps > first for task, first in zip(tasks, self._first)]
        self._means = torch.zeros_like(trained) if any(self._wanted) else None

    def add(self, trained: torch.Tensor, t: int) -> None:
        """Add the parameters after step number ``t``, from 0."""
        if self._means is None or t < min(self._first):
            return
        counted = torch.tensor([1.0 / (t + 1 - first) if t >= first else 0.0 for first in self._first])
        self._means.addcmul_(trained - self._means, counted.to(trained.device, trained.dtype).unsqueeze(1))

    def of(self, i: int, trained: torch.Tensor) -> torch.Tensor:
        """Parameters that net number ``i`` releases."""
        return self._means[i] if self._means is not None and self._wanted[i] else trained[i]

    def keep(self, kept: Sequence[int]) -> None:
        """Go on with some of the nets only (their places, ascending)."""
        self._first, self._wanted = [self._first[i] for i in kept], [self._wanted[i] for i in kept]
        if self._means is not None:
            self._means = self._means[list(kept)]

    def state(self) -> torch.Tensor | None:
        """The means so far."""
        return self._means

    def restore(self, state: torch.Tensor | None) -> None:
        """Go on from a saved state."""
        if self._means is not None and state is not None:
            self._means.copy_(state)
