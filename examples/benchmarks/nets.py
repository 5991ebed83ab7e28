"""How fast, how large and how good private nets are, against Opacus in the same run.

    python examples/benchmarks/nets.py            # a minute or two on two cores
    # the fastest of five turns, of which the documentation tells
    python examples/benchmarks/nets.py --turns 5
    # every candidate of the sequential peer is really trained
    python examples/benchmarks/nets.py --full

(a) 64 candidates: Opacus one after the other ÷ ours as one stack.  (b) Memory of one more
candidate.  (c) Equality with Opacus's own step at noise 0.  (d) ε of a run: ours ÷ Opacus's
accountants.  (e) Digits at ε = 3.  (f) On a GPU, if one is there: 64 and 1000 candidates.  PyTorch
uses one thread on the CPU, on both sides.  ``opacus_engine.py`` times the steps of one net.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.model_selection import train_test_split
from torch import nn

from sklearn_dpsearch.nets import DPMLPClassifier
from sklearn_dpsearch.nets._optimizers import UpdateRule
from sklearn_dpsearch.nets._randomness import Secrets
from sklearn_dpsearch.nets._records import TrainingData
from sklearn_dpsearch.nets._sampling import PoissonBatches
from sklearn_dpsearch.nets._stacked_training import TrainingTask
from sklearn_dpsearch.nets._training import train, train_together
from sklearn_dpsearch.privacy import DPSGD

CANDIDATES, STEPS, MOST = 64, 330, 2**16
MUST = {
    "64 candidates, MLP 64-128-10, lot 128": 8.0,
    "64 candidates, logistic regression 30-2, lot 64": 25.0,
}


def digits() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_digits(return_X_y=True)
    return (X[:1347] / 16).astype(np.float32), y[:1347]


def cancer() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_breast_cancer(return_X_y=True)
    return ((X - X.mean(axis=0)) / X.std(axis=0)).astype(np.float32), y


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))


def logistic() -> nn.Module:
    return nn.Linear(30, 2)


def task(
    module: nn.Module, lot: int, n: int, steps: int, lr: float = 0.5, noise: float = 2.583
) -> TrainingTask:
    return TrainingTask(
        module=module,
        criterion=nn.CrossEntropyLoss(reduction="sum"),
        optimizer=UpdateRule.sgd(lr=lr),
        sample_rate=lot / n,
        steps=steps,
        noise_multiplier=noise,
        max_grad_norm=1.0,
        expected_batch_size=float(lot),
    )


def records(X: np.ndarray, y: np.ndarray, device: str = "cpu") -> TrainingData:
    return TrainingData.of(torch.from_numpy(X), torch.from_numpy(y), torch.device(device))


# --- peers ----------------------------------------------------------------------------------------


def opacus_ms_per_step(
    X: np.ndarray, y: np.ndarray, module: nn.Module, lot: int, steps: int, device: str
) -> float:
    """Opacus as its documentation uses it: PrivacyEngine with its own loader."""
    from opacus import PrivacyEngine

    inputs, targets = torch.from_numpy(X).to(device), torch.from_numpy(y).to(device)
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(inputs, targets), batch_size=lot
    )
    module = module.to(device)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.5)
    criterion = nn.CrossEntropyLoss()
    private, optimizer, loader = PrivacyEngine().make_private(
        module=module,
        optimizer=optimizer,
        data_loader=loader,
        noise_multiplier=2.583,
        max_grad_norm=1.0,
    )
    done, start = -10, 0.0
    while True:
        for batch, labels in loader:
            if done == 0:
                start = time.perf_counter()
            optimizer.zero_grad()
            criterion(private(batch), labels).backward()
            optimizer.step()
            done += 1
            if done == steps:
                if device != "cpu":
                    torch.cuda.synchronize()
                return (time.perf_counter() - start) / steps * 1e3


def ours_ms_per_step(
    X: np.ndarray, y: np.ndarray, make: Any, lot: int, steps: int, m: int, device: str
) -> float:
    """All ``m`` candidates together, set-up included."""
    data = records(X, y, device)
    tasks = [task(make(), lot, len(X), steps, lr=0.2 + 0.01 * i) for i in range(m)]
    start = time.perf_counter()
    if m == 1:
        train(tasks[0], data, max_physical_batch=MOST)
    else:
        assert all(train_together(tasks, data, max_physical_batch=MOST))
    if device != "cpu":
        torch.cuda.synchronize()
    return (time.perf_counter() - start) / steps * 1e3


def speed(full: bool, turns: int, device: str = "cpu") -> None:
    print(f"{'':52}{'Opacus':>10}{'ours':>10}{'ratio':>8}{'must':>7}   (ms per step of all)")
    cases = [
        ("64 candidates, MLP 64-128-10, lot 128", digits(), mlp, 128),
        ("64 candidates, logistic regression 30-2, lot 64", cancer(), logistic, 64),
    ]
    m = CANDIDATES
    for name, (X, y), make, lot in cases:
        peers, stacks = [], []
        for _ in range(turns):  # in turns: a busy machine is busy for both
            peers.append(opacus_ms_per_step(X, y, make(), lot, 100, device))
            stacks.append(ours_ms_per_step(X, y, make, lot, STEPS, m, device))
        if full:
            peers = [
                float(
                    np.mean(
                        [opacus_ms_per_step(X, y, make(), lot, STEPS, device) for _ in range(m)]
                    )
                )
            ]
        peer, stacked = m * min(peers), min(stacks)
        print(f"{name:52}{peer:10.2f}{stacked:10.2f}{peer / stacked:8.1f}{MUST[name]:7.0f}")


def gpu_speed() -> None:
    if not torch.cuda.is_available():
        print("no GPU here: not measured")
        return
    X, y = digits()
    peer = opacus_ms_per_step(X, y, mlp(), 128, 150, "cuda")
    for m in (64, 1000):
        stacked = min(ours_ms_per_step(X, y, mlp, 128, STEPS, m, "cuda") for _ in range(2))
        name = f"GPU, {m} candidates, MLP, lot 128"
        print(
            f"{name}: Opacus {m * peer:.0f} ms, ours {stacked:.2f} ms, "
            f"ratio {m * peer / stacked:.0f}"
        )


# --- memory ---------------------------------------------------------------------------------------


def peak_mb() -> float:
    status = Path("/proc/self/status")
    if not status.exists():
        return float("nan")
    return int(status.read_text().split("VmHWM:")[1].split()[0]) / 2**10


def memory_in_fresh_process(m: int) -> float:
    """Peak memory of training ``m`` candidates."""
    shown = subprocess.run(
        [sys.executable, __file__, "--memory", str(m)], capture_output=True, text=True, check=True
    )
    return float(json.loads(shown.stdout.splitlines()[-1]))


def memory_task(m: int) -> None:
    X, y = digits()
    ours_ms_per_step(X, y, mlp, 128, 40, m, "cpu")
    print(json.dumps(peak_mb()))


def memory() -> None:
    few, many = memory_in_fresh_process(16), memory_in_fresh_process(16 + CANDIDATES)
    print(
        f"peak memory of one more candidate, MLP, lot 128: {(many - few) / CANDIDATES:.2f} MB "
        f"(must be at most 1.5)"
    )


# --- equality and ε -------------------------------------------------------------------------------


def difference_from_opacus(candidates: int = 8, steps: int = 5) -> float:
    """Largest difference of any parameter from Opacus's own steps: one stack, noise 0, the same
    batches."""
    X, y = digits()
    lots = [32 + 16 * (i % 4) for i in range(candidates)]
    tasks = []
    for i, lot in enumerate(lots):
        torch.manual_seed(i)
        task_of_net = task(mlp(), lot, len(X), steps, lr=0.1 + 0.05 * i, noise=0.0)
        tasks.append(replace(task_of_net, max_grad_norm=0.5 + 0.1 * i, seed=i))
    initial = [
        [p.detach().clone() for p in task_of_net.module.parameters()] for task_of_net in tasks
    ]
    assert all(train_together(tasks, records(X, y), max_physical_batch=MOST))
    differences = []
    for task_of_net, start in zip(tasks, initial):
        expected = opacus_steps(X, y, task_of_net, start)
        differences += [
            float((a - b).detach().abs().max())
            for a, b in zip(task_of_net.module.parameters(), expected.parameters())
        ]
    return max(differences)


def opacus_steps(
    X: np.ndarray, y: np.ndarray, task: TrainingTask, start: list[torch.Tensor]
) -> nn.Module:
    """The same training by Opacus's gradient hooks and optimizer."""
    from opacus import GradSampleModule
    from opacus.optimizers import DPOptimizer

    module = mlp()
    with torch.no_grad():
        for parameter, value in zip(module.parameters(), start):
            parameter.copy_(value)
    wrapped = GradSampleModule(module, loss_reduction="sum")
    optimizer = DPOptimizer(
        torch.optim.SGD(wrapped.parameters(), lr=task.optimizer.group["lr"]), noise_multiplier=0.0,
        max_grad_norm=task.max_grad_norm, expected_batch_size=task.expected_batch_size,
        loss_reduction="mean",
    )  # fmt: skip
    secrets = Secrets(task.seed)
    for batch in PoissonBatches(secrets.coins, secrets.rows, task.sample_rate, len(X)).draw(
        task.steps
    ):
        chosen = batch[batch < len(X)]
        optimizer.zero_grad()
        loss = nn.CrossEntropyLoss(reduction="sum")
        loss(wrapped(torch.from_numpy(X[chosen])), torch.from_numpy(y[chosen])).backward()
        optimizer.step()
    return module


def epsilons() -> None:
    from opacus.accountants import PRVAccountant, RDPAccountant

    delta = 1e-5
    for sigma, rate, steps in (
        (1.1, 256 / 60000, 14062),
        (2.0, 0.01, 5000),
        (2.583, 128 / 1347, 330),
    ):
        epsilon = DPSGD(noise_multiplier=sigma, sample_rate=rate, steps=steps).epsilon_at(delta)
        peers = []
        for accountant in (RDPAccountant(), PRVAccountant()):
            accountant.history = [(sigma, rate, steps)]
            peers.append(epsilon / accountant.get_epsilon(delta))
        print(
            f"sigma {sigma}, rate {rate:.4f}, {steps} steps: epsilon {epsilon:.4f}; ÷ Opacus RDP "
            f"{peers[0]:.3f} (must be at most 0.95), ÷ Opacus PRV {peers[1]:.3f} (at most 1.00)"
        )


def accuracy(fits: int) -> None:
    X, y = load_digits(return_X_y=True)
    scores = []
    for i in range(fits):
        X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=i)
        net = DPMLPClassifier(
            classes=range(10), bounds_X=(0, 16), target_epsilon=3.0, target_delta=1e-5
        )
        scores.append(net.fit(X_train, y_train).score(X_test, y_test))
    print(
        f"digits, DPMLPClassifier at its defaults, epsilon = 3, delta = 1e-5: mean test accuracy "
        f"{np.mean(scores):.3f} over {fits} fits (must be at least 0.90), standard deviation "
        f"{np.std(scores, ddof=1):.3f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--memory", type=int)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    if arguments.memory:
        memory_task(arguments.memory)
        return
    speed(arguments.full, arguments.turns)
    gpu_speed()
    memory()
    print(
        "largest difference of a parameter from Opacus's own steps (8 candidates in one stack, 5 "
        f"steps, noise 0): {difference_from_opacus():.1e} (must be at most 1e-6)"
    )
    epsilons()
    accuracy(5)


if __name__ == "__main__":
    main()
