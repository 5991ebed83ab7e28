"""Private nets at the size of real data, against Opacus's fastest mode and against PyTorch without
privacy.

    python examples/benchmarks/nets_at_real_size.py  # part of the digits: seconds
    # MNIST from OpenML: a quarter of an hour
    python examples/benchmarks/nets_at_real_size.py --full
    # arrays X_train and y_train
    python examples/benchmarks/nets_at_real_size.py --full --data mnist.npz

CPU seconds of one thread per epoch.  The peer is Opacus's "ghost clipping", with its own loader,
and with Poisson batches by index, which are faster.  All sides take turns in one run: a busy
machine is busy for all.  (a) One net. (b) A stack, for each of its nets, set-up included.  (c) What
a fit takes besides its steps.  Ratios are printed beside what is wanted.  Memory is in
``nets_memory.py``.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain, islice, pairwise, repeat

import numpy as np
import torch
from sklearn.datasets import fetch_openml, load_digits
from torch import nn

from sklearn_dpsearch.nets import DPMLPClassifier
from sklearn_dpsearch.nets._optimizers import UpdateRule
from sklearn_dpsearch.nets._records import TrainingData
from sklearn_dpsearch.nets._sampling import PoissonBatches
from sklearn_dpsearch.nets._stacked_training import TrainingTask
from sklearn_dpsearch.nets._training import train, train_together

MOST = 2**14
Make = Callable[[], nn.Module]


@dataclass(frozen=True)
class Data:
    """TrainingData, how often each case is timed, and how many epochs at once."""

    X: np.ndarray
    y: np.ndarray
    turns: int
    epochs: float

    def steps(self, lot: int) -> int:
        return max(1, round(self.epochs * len(self.X) / lot))


def mlp(*widths: int, features: int = 784) -> Make:
    sizes = [features, *widths, 10]

    def make() -> nn.Module:
        layers = [part for shape in pairwise(sizes) for part in (nn.Linear(*shape), nn.ReLU())]
        return nn.Sequential(*layers[:-1])

    return make


def cnn() -> nn.Module:
    """The net of Opacus's own MNIST example."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 8, 2, padding=3), nn.ReLU(), nn.MaxPool2d(2, 1), nn.Conv2d(16, 32, 4, 2),
        nn.ReLU(), nn.MaxPool2d(2, 1), nn.Flatten(), nn.Linear(512, 32), nn.ReLU(),
        nn.Linear(32, 10),
    )  # fmt: skip


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


# --- the sides ------------------------------------------------------------------------------------


def task(module: nn.Module, lot: int, n: int, steps: int) -> TrainingTask:
    return TrainingTask(
        module=module, criterion=nn.CrossEntropyLoss(reduction="sum"),
        optimizer=UpdateRule.sgd(lr=0.5), sample_rate=lot / n, steps=steps, noise_multiplier=1.0,
        max_grad_norm=1.0, expected_batch_size=float(lot),
    )  # fmt: skip


def cpu_seconds(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def of_stack(data: Data, records: TrainingData, make: Make, lot: int, nets: int = 1) -> float:
    """Seconds per epoch and net, set-up included."""
    steps = data.steps(lot)
    tasks = [task(make(), lot, len(data.X), steps) for _ in range(nets)]

    def run() -> None:
        if nets == 1:
            train(tasks[0], records, max_physical_batch=MOST)
        else:
            assert all(train_together(tasks, records, max_physical_batch=MOST))

    return cpu_seconds(run) / nets / (steps * lot / len(data.X))


Batches = Iterable[tuple[torch.Tensor, torch.Tensor]]


def by_index(inputs: torch.Tensor, targets: torch.Tensor, lot: int) -> Batches:
    """Poisson batches without end, by index."""
    drawn = PoissonBatches(
        np.random.default_rng(), np.random.default_rng(), lot / len(inputs), len(inputs)
    )
    while True:
        batch = torch.from_numpy(drawn.draw(1)[0])
        chosen = batch[batch < len(inputs)]
        yield inputs[chosen], targets[chosen]


def plain(data: Data, inputs: torch.Tensor, targets: torch.Tensor, make: Make, lot: int) -> float:
    module = make()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.05)
    return peer(data, lot, by_index(inputs, targets, lot), module, optimizer, nn.CrossEntropyLoss())


def ghost(
    data: Data,
    inputs: torch.Tensor,
    targets: torch.Tensor,
    make: Make,
    lot: int,
    own_loader: bool = False,
) -> float:
    from opacus import PrivacyEngine

    first = make()
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(inputs, targets), batch_size=lot
    )
    module, optimizer, criterion, loader = PrivacyEngine().make_private(
        module=first, optimizer=torch.optim.SGD(first.parameters(), lr=0.5),
        criterion=nn.CrossEntropyLoss(), data_loader=loader, noise_multiplier=1.0,
        max_grad_norm=1.0, grad_sample_mode="ghost", poisson_sampling=True,
    )  # fmt: skip
    batches = chain.from_iterable(repeat(loader)) if own_loader else by_index(inputs, targets, lot)
    return peer(data, lot, batches, module, optimizer, criterion)


def peer(
    data: Data,
    lot: int,
    batches: Batches,
    module: nn.Module,
    optimizer: torch.optim.Optimizer,
    criterion: nn.Module,
) -> float:
    steps = data.steps(lot)

    def run() -> None:
        for inputs, targets in islice(batches, steps):
            optimizer.zero_grad()
            criterion(module(inputs), targets).backward()
            optimizer.step()

    return cpu_seconds(run) / (steps * lot / len(data.X))


# --- (a) to (c) -----------------------------------------------------------------------------------


def one_net(data: Data) -> None:
    print(
        "seconds per epoch       ours    Opacus with its loader, by index   plain    ÷ plain, "
        "loader ÷, index ÷"
    )
    cases = [  # wanted: largest ratio to plain PyTorch, smallest speed-up over Opacus
        ("MLP (64,)", mlp(64), 256, 1.4, 3.0),
        ("MLP (64,)", mlp(64), 2048, 1.4, 2.5),
        ("MLP (256, 128)", mlp(256, 128), 256, 1.6, 1.8),
        ("MLP (256, 128)", mlp(256, 128), 2048, 1.6, 1.5),
        ("CNN", cnn, 256, np.inf, 1.5),
        ("CNN", cnn, 2048, np.inf, 1.5),
    ]
    for name, make, lot, of_plain, of_ghost in cases:
        lot = min(lot, len(data.X) // 4)
        inputs, targets = shaped(data.X, make is cnn), torch.from_numpy(data.y)
        records = TrainingData.of(inputs, targets, torch.device("cpu"))
        arguments = data, inputs, targets, make, lot
        stacked, loaded, other, bare = np.min([
            (
                of_stack(data, records, make, lot), ghost(*arguments, own_loader=True),
                ghost(*arguments), plain(*arguments),
            )
            for _ in range(data.turns)
        ], axis=0)  # fmt: skip
        print(
            f"{f'{name}, lot {lot}':24}{stacked:6.2f}{loaded:12.2f}{other:12.2f}{bare:14.2f}"
            f"{stacked / bare:12.2f}"
            f"{loaded / stacked:9.2f}{other / stacked:9.2f}   wanted <= {of_plain}, >= {of_ghost}"
        )


def stacks(data: Data) -> None:
    X, y = load_digits(return_X_y=True)
    digits = Data((X / 16).astype(np.float32), y, data.turns, 20.0)
    part = Data(digits.X[:300], y[:300], data.turns, 20.0)
    print(
        f"\n{'seconds per epoch and net':48}{'in the stack':>13}{'alone':>8}{'alone ÷':>9}   wanted"
    )
    for name, some, make, lot, nets, wanted in (
        ("16 × (64,), lot 256", data, mlp(64), 256, 16, 1.0),
        ("64 × (64,), lot 256", data, mlp(64), 256, 64, 1.0),
        ("16 × (64,), lot 2048", data, mlp(64), 2048, 16, 1.0),
        ("64 × (256, 128), lot 256", data, mlp(256, 128), 256, 64, 1.0),
        ("digits, 64 × (64,), lot 90", digits, mlp(64, features=64), 90, 64, 3.0),
        ("digits, 64 × logistic regression, lot 90", digits, mlp(features=64), 90, 64, 3.0),
        ("a part of a grid search, 5 × logistic regression", part, mlp(features=64), 6, 5, 2.0),
    ):
        lot = min(lot, len(some.X) // 4)
        records = TrainingData.of(
            torch.from_numpy(some.X), torch.from_numpy(some.y), torch.device("cpu")
        )
        turns = range(max(1, data.turns - 1))
        together, alone = np.min([  # both are means: the best of many single nets would be lucky
            (
                of_stack(some, records, make, lot, nets),
                np.mean([of_stack(some, records, make, lot) for _ in range(4)]),
            )
            for _ in turns
        ], axis=0)  # fmt: skip
        print(f"{name:48}{together:13.4f}{alone:8.4f}{alone / together:9.2f}   >= {wanted}")


def set_up(data: Data) -> None:
    """What a fit takes besides its steps: it makes a single one, of six records."""
    net = DPMLPClassifier(
        classes=range(10), bounds_X=(0, 1), noise_multiplier=1.0, sample_rate=1e-4, max_epochs=1e-4
    )
    seconds = min(cpu_seconds(lambda: net.fit(data.X, data.y)) for _ in range(5))
    print(f"\nset-up of a fit of DPMLPClassifier on {data.X.shape}: {seconds:.3f} s   <= 0.1")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--full", action="store_true")
    parser.add_argument(
        "--data", help="an .npz file with X_train and y_train; without it OpenML is asked for MNIST"
    )
    parser.add_argument("--only", choices=("nets", "stacks", "fit"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    if arguments.full:
        data = Data(*mnist(arguments.data), turns=3, epochs=0.3)
    else:
        data = Data(*stretched(), turns=1, epochs=1.0)
    for name, part in (("nets", one_net), ("stacks", stacks), ("fit", set_up)):
        if arguments.only in (None, name):
            part(data)


if __name__ == "__main__":
    main()
