"""Training of several nets on the same records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import torch

from ..._process import contained, in_fixed_words
from ...data.rows import ChosenRows
from ...privacy import PrivacyError
from ...privacy.spent import PrivacySpent
from ..optimizers import on_cpu
from ..records import Records
from ..stack import TrainingTask
from ..training import train_together
from . import cost
from .settings import Settings

#: A ``DPSGDEstimator``, whose file uses this one.
Net: TypeAlias = Any
#: Attribute for the number of places of a net's next training: not a parameter, so that copies are without it.
PLACES = "_places"


@dataclass(frozen=True)
class Prepared:
    """Training of a net, of which everything is known before its first step."""

    net: Net
    given: Records
    device: torch.device
    settings: Settings
    costs: list[PrivacySpent]
    foreign: tuple[str, ...]
    task: TrainingTask
    unit: str

    def release(self) -> None:
        """State the cost of the training that has succeeded, and keep the optimizer's memory."""
        cost.add_training(self.net, self.settings, self.costs, (*self.foreign, *self.task.notes), self.unit)
        self.net.optimizer_memory_ = on_cpu(self.task.memory)


def _train(members: Sequence[Prepared]) -> list[Net]:
    """Train nets on their common records; return those that succeeded."""
    most = min(member.net.max_physical_batch for member in members)
    tasks = [member.task for member in members]
    records = members[0].given.on(members[0].device)
    work = partial(train_together, tasks, records, max_physical_batch=most)
    done = in_fixed_words(type(members[0].net).__name__, work)
    trained = [member for member, well in zip(members, done) if well]
    for member in trained:
        member.release()
    return [member.net for member in trained]


def _groups(nets: Sequence[Net], X: Any, y: Any) -> list[list[Prepared]]:
    """Prepare nets for training, grouped by common records; drop nets that fail."""
    if type(X) is np.ndarray and all(net.takes_chosen_rows for net in nets):
        X = ChosenRows(X)  # caches its conversion for the next net with the same bounds
    groups: list[list[Prepared]] = []
    for net in nets:
        with contained():  # this net has failed, the others have not
            one = net._prepared(X, y, True, net._begin())
            same = (group for group in groups if one.device == group[0].device and one.given.are(group[0].given))
            group = next(same, [])
            if not group:
                groups.append(group)
            group.append(one)
    return groups


def fit_together(models: Sequence[Net], X: Any, y: Any) -> list[Net | None]:
    """Fit several unfitted nets on the same records, as stacks where they share an architecture.

    Returns
    -------
    list
        Each net fitted, or None for a net that failed. Results equal those of fitting one after the other; it is
        faster, and shows no progress.

    Raises
    ------
    PrivacyError
        For a net with ``checkpoint``, which is for one training of one net.
    """
    given = [net.checkpoint for net in models if net.checkpoint is not None]
    if given:
        raise PrivacyError(
            f"Found checkpoint={str(given[0])!r} on a net that is trained together with others; a checkpoint is for "
            "one training of one net. Set checkpoint=None."
        )
    fitted: set[int] = set()
    try:
        for group in _groups(models, X, y):
            for net in _train(group):
                fitted.add(id(net))
                net._after_training()
    finally:  # an interrupt too: an unfinished training is not released
        for net in models:
            if id(net) not in fitted:
                cost.unfit(net)
    return [net if id(net) in fitted else None for net in models]
