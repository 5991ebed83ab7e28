"""Training of several nets on the same records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import torch

from ..._disk.store import KeyedFile
from ..._process import contained, in_fixed_words
from ...data.rows import ChosenRows
from ...privacy import PrivacyError
from ...privacy.spent import PrivacySpent
from ..datasets import ReadRecords
from ..memory_mapped import MappedRecords
from ..named_tensors import names_of, tensors_of
from ..optimizers import on_cpu
from ..task import HeldRecords, Records, TrainingTask
from ..training import train_together
from . import cost
from .settings import Settings, settings_of
from .training_records import Given, device_of, number_of, records_of

#: A ``DPSGDEstimator``, whose file uses this one.
Net: TypeAlias = Any
#: Attribute for the keeper of a net's next training: not a parameter, so that copies and statements are without it.
KEEPER = "_keeper"
#: Attribute for the number of places of a net's next training, for the same reason.
PLACES = "_places"


@dataclass(frozen=True)
class JointMember:
    """Member of several nets that are trained on the same records."""

    place: int
    net: Net
    task: TrainingTask
    settings: Settings
    costs: list[PrivacySpent]
    keeper: KeyedFile | None


@dataclass
class SharedRecords:
    """Records, and the nets that convert them equally."""

    records: Records
    members: list[JointMember] = field(default_factory=list)

    def holds(self, given: Given, device: torch.device) -> bool:
        """Return whether these are the records, on this device; never for read records, which serve one training."""
        if isinstance(given, MappedRecords):
            return given.are(self.records) and self.records.inputs.device == torch.empty(0, device=device).device
        if isinstance(given, ReadRecords) or not isinstance(self.records, HeldRecords):
            return False
        (inputs, targets), there = given, torch.empty(0, device=device).device  # "cuda" is the current one of several
        mine, theirs = [*tensors_of(inputs), targets], [*tensors_of(self.records.inputs), self.records.targets]
        same = names_of(inputs) == names_of(self.records.inputs) and self.records.inputs.device == there
        return same and all(map(_holds, mine, theirs))

    def train(self) -> list[int]:
        """Train the members; return the places of those that succeeded."""
        most = min(member.net.max_physical_batch for member in self.members)
        tasks, keepers = zip(*((member.task, member.keeper) for member in self.members))
        work = partial(train_together, tasks, self.records, max_physical_batch=most, keepers=keepers)
        done = in_fixed_words(type(self.members[0].net).__name__, work)
        trained = [member for member, well in zip(self.members, done) if well]
        for member in trained:
            cost.add_training(member.net, member.settings, member.costs, member.task.notes)
            member.net.optimizer_memory_ = on_cpu(member.task.memory)
        return [member.place for member in trained]


def _holds(mine: torch.Tensor, theirs: torch.Tensor) -> bool:
    kept = theirs[:-1]
    if mine.device == kept.device and mine.data_ptr() == kept.data_ptr():
        return bool(mine.dtype == kept.dtype and mine.shape == kept.shape and mine.stride() == kept.stride())
    return mine.dtype == kept.dtype and mine.shape == kept.shape and bool(torch.equal(mine.to(kept.device), kept))


def shared_records(nets: Sequence[Net], X: Any, y: Any) -> list[SharedRecords]:
    """Prepare nets for training, grouped by shared records; drop nets that fail."""
    if type(X) is np.ndarray and all(net.takes_chosen_rows for net in nets):
        X = ChosenRows(X)  # caches its conversion for the next net with the same bounds
    groups: list[SharedRecords] = []
    for place, net in enumerate(nets):
        with contained():  # this net has failed, the others have not
            keeper, places = net.__dict__.pop(KEEPER, None), net.__dict__.pop(PLACES, None)
            net._check_arguments()
            device, given = device_of(net.device), net._prepare(X, y, fresh=True)
            settings = settings_of(net, number_of(given))
            costs = cost.costs_before(net, fresh=True)
            cost.total(settings, costs)
            keeper = None if isinstance(given, ReadRecords) else keeper
            member = JointMember(place, net, net._task(settings, given, costs, places), settings, costs, keeper)
            group = next((other for other in groups if other.holds(given, device)), None)
            if group is None:
                group = SharedRecords(records_of(given, device))
                groups.append(group)
            group.members.append(member)
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
    fitted: list[Net | None] = [None] * len(models)
    try:
        for group in shared_records(models, X, y):
            for place in group.train():
                fitted[place] = models[place]
                models[place]._after_training()
    finally:  # an interrupt too: an unfinished training is not released
        for net, done in zip(models, fitted):
            if done is None:
                cost.unfit(net)
    return fitted
