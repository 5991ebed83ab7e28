"""Fingerprint of a training, which seeded noise depends on: trainings that differ share no noise.

With one noise for two trainings, the difference of their releases would be exact, also for those without the seed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from torch import nn

from ..digest import digest
from ..fingerprint import FREE, argument
from ..records import Records

#: Arguments that change no result beyond rounding, or that show in the initial parameters.
OF_PLACE = frozenset({*FREE, "noise_seed", "random_state", "device", "max_physical_batch"})


def words_of(module: nn.Module, arguments: Mapping[str, Any], given: Records, trainings: int) -> Sequence[int]:
    """Fingerprint of a training, as words for a seed.

    Parameters
    ----------
    module : Module
        With its initial parameters.
    arguments : mapping
        Names to the arguments of the net.
    given : records
    trainings : int
        Number of earlier trainings of these parameters.
    """
    named = {name: argument(value) for name, value in sorted(arguments.items()) if name not in OF_PLACE}
    start = [value.detach().cpu() for value in module.state_dict().values()]
    told = digest(named, start, trainings, *given.digests())
    return [int(word) for word in np.frombuffer(bytes.fromhex(told), np.uint32)]
