"""Our layer rules, ``torch.func.vmap``, Opacus's hooks (``engine="opacus"``) and a plain Opacus
script, in one run.

    python examples/benchmarks/opacus_engine.py            # within a minute, on one core
    python examples/benchmarks/opacus_engine.py --turns 5  # the fastest of five turns

(a) CPU time of a step with Poisson batches of 128 of 2,000 records.  (b) Largest difference of any
parameter after three steps without noise on all records.  PyTorch uses one thread on all sides,
which take turns.
"""

from __future__ import annotations

import argparse
import copy
import time
import warnings
from collections.abc import Callable

import numpy as np
import torch
from opacus import PrivacyEngine
from opacus.layers import DPLSTM
from torch import nn

from sklearn_dpsearch.nets._engines.per_sample import VmapEngine
from sklearn_dpsearch.nets._estimators.layers import WideAndDeep, perceptron, zero_linear
from sklearn_dpsearch.nets._optimizers import UpdateRule
from sklearn_dpsearch.nets._records import TrainingData
from sklearn_dpsearch.nets._stacked_training import Stack, TrainingTask
from sklearn_dpsearch.nets._training import train

N, LOT, STEPS, RATE, CLASSES = 2000, 128, 50, 0.5, 10
#: Inputs of the linear part and of the hidden part of a net for a table like Adult: with bins, and
#: without.
WIDE, DEEP = 216, 104


class LSTM(nn.Module):
    def __init__(self, kind: type[nn.Module] = DPLSTM) -> None:
        super().__init__()
        self.recurrent, self.last = kind(8, 16, batch_first=True), nn.Linear(16, CLASSES)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.last(self.recurrent(inputs)[0][:, -1])
        return logits


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, CLASSES))


def cnn() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 5, padding=2), nn.GroupNorm(4, 16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3), nn.ReLU(), nn.Flatten(), nn.Linear(32 * 12 * 12, CLASSES),
    )  # fmt: skip


def table_net() -> nn.Module:
    """The net for data frames, with a hidden layer."""
    hidden = perceptron((DEEP, 32, 2), nn.ReLU, torch.Generator().manual_seed(0))
    return WideAndDeep(zero_linear(WIDE, 2), hidden)


#: Name ↦ module of Opacus, the same for our engines, shape of a record.
NETS: dict[str, tuple[Callable[[], nn.Module], Callable[[], nn.Module], tuple[int, ...]]] = {
    "MLP 64-128-10": (mlp, mlp, (64,)),
    "CNN with GroupNorm, 28 × 28": (cnn, cnn, (1, 28, 28)),
    "LSTM 8-16, 8 steps": (LSTM, lambda: LSTM(nn.LSTM), (8, 8)),
    f"table net, {WIDE} inputs": (table_net, table_net, (WIDE,)),
}


def train_net(
    module: nn.Module, records: TrainingData, engine: str, rate: float, steps: int, noise: float
) -> None:
    """Train by an engine of the package: "auto", "opacus", or "vmap", which is taken for code of
    one's own alone."""
    task = TrainingTask(
        module=module,
        criterion=nn.CrossEntropyLoss(reduction="sum"),
        optimizer=UpdateRule.sgd(lr=RATE),
        sample_rate=rate,
        steps=steps,
        noise_multiplier=noise,
        max_grad_norm=1.0,
        expected_batch_size=rate * len(records),
        engine="auto" if engine == "vmap" else engine,
    )
    if engine == "vmap":
        gradients = VmapEngine(module, task.criterion, torch.device("cpu"), own_code=False)
        Stack([task], gradients, records, 2**14).run()
    else:
        train(task, records, max_physical_batch=2**14)


def plain(
    module: nn.Module, data: torch.utils.data.Dataset, batches: int, steps: int, noise: float
) -> None:
    loader = torch.utils.data.DataLoader(data, batch_size=-(-len(data) // batches))
    optimizer = torch.optim.SGD(module.parameters(), lr=RATE)
    model, optimizer, loader = PrivacyEngine(accountant="rdp").make_private(
        module=module,
        optimizer=optimizer,
        data_loader=loader,
        noise_multiplier=noise,
        max_grad_norm=1.0,
    )
    criterion, done = nn.CrossEntropyLoss(), 0
    while done < steps:
        for inputs, targets in loader:
            optimizer.zero_grad()
            criterion(model(inputs), targets).backward()
            optimizer.step()
            done += 1
            if done == steps:
                break


def flat(module: nn.Module) -> torch.Tensor:
    return torch.cat([parameter.detach().reshape(-1) for parameter in module.parameters()])


def timed(sides: list[Callable[[], object]], turns: int) -> np.ndarray:
    """Least CPU time of each side."""
    milliseconds = []
    for turn in range(turns + 1):
        times = []
        for work in sides:
            start = time.process_time()
            work()
            times.append(time.process_time() - start)
        if turn:  # the first one is of first uses of operators
            milliseconds.append(times)
    return np.min(milliseconds, axis=0)


def row(name: str, turns: int) -> str:
    """Times and differences of one net, as a row of the table."""
    peer, module, shape = NETS[name]
    rng, rate = np.random.default_rng(0), LOT / N
    inputs = torch.from_numpy(rng.normal(size=(N, *shape)).astype(np.float32))
    targets = torch.from_numpy(rng.integers(0, 2, N))
    records, data = (
        TrainingData.of(inputs, targets, torch.device("cpu")),
        torch.utils.data.TensorDataset(inputs, targets),
    )
    sides = [
        lambda: train_net(module(), records, "auto", rate, STEPS, 1.0),
        lambda: train_net(module(), records, "vmap", rate, STEPS, 1.0),
        lambda: train_net(peer(), records, "opacus", rate, STEPS, 1.0),
        lambda: plain(peer(), data, N // LOT, STEPS, 1.0),
    ]
    times = 1000 * timed(sides, turns) / STEPS
    second, first = peer(), module()
    first.load_state_dict(second.state_dict(), strict=False)  # DPLSTM names its weights twice
    third, few = (
        copy.deepcopy(second),
        TrainingData.of(inputs[:400], targets[:400], torch.device("cpu")),
    )
    train_net(first, few, "auto", 1.0, 3, 0.0)
    train_net(second, few, "opacus", 1.0, 3, 0.0)
    plain(third, torch.utils.data.Subset(data, range(400)), 1, 3, 0.0)
    named = first.state_dict()
    to_ours = max(
        float((number - named[key]).abs().max())
        for key, number in second.state_dict().items()
        if key in named
    )
    to_plain = float((flat(second) - flat(third)).abs().max())
    shown = " | ".join(f"{number:.1f} ms" for number in times)
    ratios = " / ".join(f"{number / times[0]:.1f}" for number in times[1:])
    return f"| {name} | {shown} | {ratios} | {to_ours:.0e} | {to_plain:.0e} |"


def main(turns: int) -> None:
    torch.set_num_threads(1)
    print(
        '| net | layer rules | `vmap` | `engine="opacus"` | plain Opacus | ÷ rules | difference | '
        "to plain Opacus |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for name in NETS:
        print(row(name, turns), flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # Opacus's own
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=1)
    main(parser.parse_args().turns)
