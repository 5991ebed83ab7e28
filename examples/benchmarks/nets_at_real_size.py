"""Private nets at the size of real data, against Opacus's fastest mode and against PyTorch without privacy.

    python examples/benchmarks/nets_at_real_size.py                          # part of the digits: seconds
    python examples/benchmarks/nets_at_real_size.py --full                   # MNIST from OpenML: a quarter of an hour
    python examples/benchmarks/nets_at_real_size.py --full --data mnist.npz  # arrays X_train and y_train

CPU seconds of one thread per epoch.  The peer is Opacus's "ghost clipping" on batches of Poisson sampling by index (its
own loader takes longer).  All sides take their turns in one run: a busy machine is busy for all.  (a) One net.  (b) A
stack, for each of its nets, set-up included.  (c) What a fit takes besides its steps.  (d) Peak memory, in processes of
their own.  Ratios are printed beside what is wanted.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import fetch_openml, load_digits
from torch import nn

from sklearn_dpsearch.nets import DPMLPClassifier
from sklearn_dpsearch.nets.optimizers import UpdateRule
from sklearn_dpsearch.nets.sampling import PoissonBatches
from sklearn_dpsearch.nets.task import Records, TrainingTask
from sklearn_dpsearch.nets.training import train, train_together

MOST = 2**14
Make = Callable[[], nn.Module]


@dataclass(frozen=True)
class Data:
    """Records, how often each case is timed, and how many epochs at once."""

    X: np.ndarray
    y: np.ndarray
    turns: int
    epochs: float

    def steps(self, lot: int) -> int:
        return max(1, round(self.epochs * len(self.X) / lot))


@dataclass(frozen=True)
class Case:
    """A kind of net, and what is wanted: at most so many times plain PyTorch, so many times faster than Opacus."""

    name: str
    make: Make
    lot: int
    of_plain: float
    of_ghost: float
    image: bool = False


def mlp(*widths: int, features: int = 784) -> Make:
    sizes = [features, *widths, 10]

    def make() -> nn.Module:
        layers = [part for shape in pairwise(sizes) for part in (nn.Linear(*shape), nn.ReLU())]
        return nn.Sequential(*layers[:-1])

    return make


def cnn() -> nn.Module:
    """The net of Opacus's own MNIST example."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 8, 2, padding=3), nn.ReLU(), nn.MaxPool2d(2, 1), nn.Conv2d(16, 32, 4, 2), nn.ReLU(),
        nn.MaxPool2d(2, 1), nn.Flatten(), nn.Linear(512, 32), nn.ReLU(), nn.Linear(32, 10),
    )  # fmt: skip


class Words(nn.Module):
    """Words of 64 numbers each, averaged over a text."""

    def __init__(self, number: int = 20_000) -> None:
        super().__init__()
        self.table, self.last = nn.Embedding(number, 64), nn.Linear(64, 10)

    def forward(self, texts: torch.Tensor) -> torch.Tensor:
        return self.last(self.table(texts).mean(1))


def mnist(path: str | None) -> tuple[np.ndarray, np.ndarray]:
    if path is not None:
        with np.load(path) as arrays:
            X, y = arrays["X_train"], arrays["y_train"]
    else:
        X, y = fetch_openml("mnist_784", version=1, return_X_y=True, as_frame=False)
        X, y = X[:60_000], y[:60_000]
    return (X / 255).astype(np.float32), y.astype(np.int64)


def stretched() -> tuple[np.ndarray, np.ndarray]:
    """The digits as large as those of MNIST: 1797 records."""
    X, y = load_digits(return_X_y=True)
    images = np.kron(X.reshape(-1, 8, 8) / 16, np.ones((4, 4)))[:, 2:-2, 2:-2]
    return images.reshape(-1, 784).astype(np.float32), y


def shaped(X: np.ndarray, image: bool) -> torch.Tensor:
    return torch.from_numpy(X.reshape(-1, 1, 28, 28) if image else X)


# --- the sides ------------------------------------------------------------------------------------------------------


def task(module: nn.Module, lot: int, n: int, steps: int) -> TrainingTask:
    return TrainingTask(
        module=module, criterion=nn.CrossEntropyLoss(reduction="sum"), optimizer=UpdateRule.sgd(lr=0.5),
        sample_rate=lot / n, steps=steps, noise_multiplier=1.0, max_grad_norm=1.0, expected_batch_size=float(lot),
    )  # fmt: skip


def cpu_seconds(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def ours(data: Data, records: Records, make: Make, lot: int, nets: int = 1) -> float:
    """Seconds per epoch and net, set-up included."""
    steps = data.steps(lot)
    tasks = [task(make(), lot, len(data.X), steps) for _ in range(nets)]

    def run() -> None:
        if nets == 1:
            train(tasks[0], records, max_physical_batch=MOST)
        else:
            assert all(train_together(tasks, records, max_physical_batch=MOST))

    return cpu_seconds(run) / nets / (steps * lot / len(data.X))


def chosen_by_index(n: int, lot: int, steps: int) -> list[torch.Tensor]:
    """Poisson batches for the peers, which take longer with loaders of their own."""
    batches = PoissonBatches(np.random.default_rng(), lot / n, n)
    return [torch.from_numpy(batches.draw(1)[1]) for _ in range(steps)]


def plain(data: Data, inputs: torch.Tensor, targets: torch.Tensor, make: Make, lot: int) -> float:
    module, criterion, steps = make(), nn.CrossEntropyLoss(), data.steps(lot)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.05)

    def run() -> None:
        for chosen in chosen_by_index(len(inputs), lot, steps):
            optimizer.zero_grad()
            criterion(module(inputs[chosen]), targets[chosen]).backward()
            optimizer.step()

    return cpu_seconds(run) / (steps * lot / len(inputs))


def ghost(data: Data, inputs: torch.Tensor, targets: torch.Tensor, make: Make, lot: int) -> float:
    from opacus import PrivacyEngine

    steps, first = data.steps(lot), make()
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(inputs, targets), batch_size=lot)
    module, optimizer, criterion, _ = PrivacyEngine().make_private(
        module=first, optimizer=torch.optim.SGD(first.parameters(), lr=0.5), criterion=nn.CrossEntropyLoss(),
        data_loader=loader, noise_multiplier=1.0, max_grad_norm=1.0, grad_sample_mode="ghost", poisson_sampling=True,
    )  # fmt: skip

    def run() -> None:
        for chosen in chosen_by_index(len(inputs), lot, steps):
            optimizer.zero_grad()
            criterion(module(inputs[chosen]), targets[chosen]).backward()
            optimizer.step()

    return cpu_seconds(run) / (steps * lot / len(inputs))


# --- (a) to (c) -----------------------------------------------------------------------------------------------------


def one_net(data: Data) -> None:
    print(f"{'seconds per epoch':28}{'ours':>8}{'ghost':>8}{'plain':>8}{'÷ plain':>9}{'ghost ÷':>9}   wanted")
    cases = [
        Case("MLP (64,)", mlp(64), 256, 1.4, 3.0),
        Case("MLP (64,)", mlp(64), 2048, 1.4, 2.5),
        Case("MLP (256, 128)", mlp(256, 128), 256, 1.6, 1.8),
        Case("MLP (256, 128)", mlp(256, 128), 2048, 1.6, 1.5),
        Case("CNN", cnn, 256, np.inf, 1.5, image=True),
        Case("CNN", cnn, 2048, np.inf, 1.5, image=True),
    ]
    for case in cases:
        lot = min(case.lot, len(data.X) // 4)
        inputs, targets = shaped(data.X, case.image), torch.from_numpy(data.y)
        records = Records.of(inputs, targets, torch.device("cpu"))
        times = np.min([
            (ours(data, records, case.make, lot), ghost(data, inputs, targets, case.make, lot),
             plain(data, inputs, targets, case.make, lot)) for _ in range(data.turns)
        ], axis=0)  # fmt: skip
        own, peer, bare = times
        print(
            f"{f'{case.name}, lot {lot}':28}{own:8.2f}{peer:8.2f}{bare:8.2f}{own / bare:9.2f}{peer / own:9.2f}"
            f"   <= {case.of_plain}, >= {case.of_ghost}"
        )


def stacks(data: Data) -> None:
    X, y = load_digits(return_X_y=True)
    digits = Data((X / 16).astype(np.float32), y, data.turns, 20.0)
    print(f"\n{'seconds per epoch and net':48}{'in the stack':>13}{'alone':>8}{'alone ÷':>9}   wanted")
    for name, some, make, lot, nets, wanted in (
        ("16 × (64,), lot 256", data, mlp(64), 256, 16, 1.0),
        ("64 × (64,), lot 256", data, mlp(64), 256, 64, 1.0),
        ("16 × (64,), lot 2048", data, mlp(64), 2048, 16, 1.0),
        ("64 × (256, 128), lot 256", data, mlp(256, 128), 256, 64, 1.0),
        ("digits, 64 × (64,), lot 90", digits, mlp(64, features=64), 90, 64, 3.0),
        ("digits, 64 × logistic regression, lot 90", digits, mlp(features=64), 90, 64, 3.0),
    ):
        lot = min(lot, len(some.X) // 4)
        records = Records.of(torch.from_numpy(some.X), torch.from_numpy(some.y), torch.device("cpu"))
        turns = range(max(1, data.turns - 1))
        together, alone = np.min(
            [(ours(some, records, make, lot, nets), ours(some, records, make, lot)) for _ in turns], axis=0
        )
        print(f"{name:48}{together:13.4f}{alone:8.4f}{alone / together:9.2f}   >= {wanted}")


def set_up(data: Data) -> None:
    """What a fit takes besides its steps: it makes a single one, of six records."""
    net = DPMLPClassifier(classes=range(10), bounds_X=(0, 1), noise_multiplier=1.0, sample_rate=1e-4, max_epochs=1e-4)
    found = min(cpu_seconds(lambda: net.fit(data.X, data.y)) for _ in range(5))
    print(f"\nset-up of a fit of DPMLPClassifier on {data.X.shape}: {found:.3f} s   <= 0.1")


# --- (d) memory -----------------------------------------------------------------------------------------------------


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
    X = rng.random((8192, 1, 28, 28), np.float32) if net == "cnn" else rng.integers(0, 20_000, (8192, 20))
    targets = torch.from_numpy(rng.integers(0, 10, 8192))

    def run(X: np.ndarray, make: Make, size: int) -> None:
        some, inputs = Data(X, targets.numpy(), 1, 2 * size / len(X)), torch.from_numpy(X)
        if side == "ours":
            ours(some, Records.of(inputs, targets, torch.device("cpu")), make, size)
        else:
            ghost(some, inputs, targets, make, size)

    run(X if net == "cnn" else X % 20, cnn if net == "cnn" else lambda: Words(20), 8)  # libraries and code
    before = peak_mb()
    run(X, make, lot)
    print(json.dumps(peak_mb() - before))


def memory() -> None:
    print(f"\n{'peak memory over the records, MB':48}{'ours':>8}{'ghost':>8}   wanted")
    for name, net in (("CNN, lot 2048", "cnn"), ("Embedding 20000 × 64, 20 words, lot 256", "words")):
        found = []
        for side in ("ours", "ghost"):
            command = [sys.executable, __file__, "--memory", f"{side} {net}"]
            shown = subprocess.run(command, capture_output=True, text=True, check=True)
            found.append(float(json.loads(shown.stdout.splitlines()[-1])))
        print(f"{name:48}{found[0]:8.0f}{found[1]:8.0f}   ours <= {1.5 * found[1]:.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--data", help="an .npz file with X_train and y_train; without it OpenML is asked for MNIST")
    parser.add_argument("--only", choices=("nets", "stacks", "fit", "memory"))
    parser.add_argument("--memory", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    if arguments.memory:
        memory_task(arguments.memory)
        return
    if arguments.full:
        data = Data(*mnist(arguments.data), turns=5, epochs=0.3)
    else:
        data = Data(*stretched(), turns=1, epochs=1.0)
    parts = {
        "nets": lambda: one_net(data),
        "stacks": lambda: stacks(data),
        "fit": lambda: set_up(data),
        "memory": memory,
    }
    for name, part in parts.items():
        if arguments.only in (None, name):
            part()


if __name__ == "__main__":
    main()
