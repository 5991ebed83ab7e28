"""Peak memory of private nets over that of the records, beside Opacus's ghost clipping.

    python examples/benchmarks/nets_memory.py            # a minute

Each number is of a process of its own: two steps, after others on small nets (code and libraries)
were taken.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import torch
from nets_at_real_size import Data, Make, cnn, ghost, of_stack
from torch import nn

from sklearn_dpsearch.nets._records import TrainingData


class Words(nn.Module):
    """Words of 64 numbers each, averaged over a text."""

    def __init__(self, number: int = 20_000) -> None:
        super().__init__()
        self.table, self.last = nn.Embedding(number, 64), nn.Linear(64, 10)

    def forward(self, texts: torch.Tensor) -> torch.Tensor:
        return self.last(self.table(texts).mean(1))


def peak_mb() -> float:
    status = Path("/proc/self/status")
    if not status.exists():
        return float("nan")
    return int(status.read_text().split("VmHWM:")[1].split()[0]) / 2**10


def memory_task(which: str) -> None:
    """Peak memory of a few steps over that of the records, in this process alone."""
    rng = np.random.default_rng(0)
    side, _, net = which.partition(" ")
    make, lot = (cnn, 2048) if net == "cnn" else (Words, 256)
    X = (
        rng.random((8192, 1, 28, 28), np.float32)
        if net == "cnn"
        else rng.integers(0, 20_000, (8192, 20))
    )
    targets = torch.from_numpy(rng.integers(0, 10, 8192))

    def run(X: np.ndarray, make: Make, size: int) -> None:
        some, inputs = Data(X, targets.numpy(), 1, 2 * size / len(X)), torch.from_numpy(X)
        if side == "ours":
            of_stack(some, TrainingData.of(inputs, targets, torch.device("cpu")), make, size)
        else:
            ghost(some, inputs, targets, make, size)

    # libraries and code
    run(X if net == "cnn" else X % 20, cnn if net == "cnn" else lambda: Words(20), 8)
    before = peak_mb()
    run(X, make, lot)
    print(json.dumps(peak_mb() - before))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--memory", help=argparse.SUPPRESS)
    which = parser.parse_args().memory
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    if which:
        memory_task(which)
        return
    print(f"{'peak memory over the records, MB':48}{'ours':>8}{'ghost':>8}   wanted")
    for name, net in (
        ("CNN, lot 2048", "cnn"),
        ("Embedding 20000 × 64, 20 words, lot 256", "words"),
    ):
        peaks = []
        for side in ("ours", "ghost"):
            command = [sys.executable, __file__, "--memory", f"{side} {net}"]
            shown = subprocess.run(command, capture_output=True, text=True, check=True)
            peaks.append(float(json.loads(shown.stdout.splitlines()[-1])))
        print(f"{name:48}{peaks[0]:8.0f}{peaks[1]:8.0f}   ours <= {1.5 * peaks[1]:.0f}")


if __name__ == "__main__":
    main()
