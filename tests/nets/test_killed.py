"""A training that is killed, at any moment, by kill -9, goes on as if nothing had happened."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import textwrap
import time

import pytest

pytest.importorskip("torch")
pytest.importorskip("skorch")
pytest.importorskip("opacus")
import torch

from sklearn_dpsearch._disk.secret_folder import LOCK, README, RELEASE
from sklearn_dpsearch.nets import resuming, training_progress
from sklearn_dpsearch.nets.stack import Stack

from .crashes import POSIX, SEEDED, STATE, X, parameters, skorch_net, table_net, y

pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")


def _fit_and_save(make, folder, result, pause=0.0):
    """What a process does that may be killed, not too fast for that."""
    resuming.EVERY = training_progress.LOOK = 0.0
    step = Stack._step
    Stack._step = lambda *args: (step(*args), time.sleep(pause))
    one = make(checkpoint=folder).fit(X, y)
    torch.save(parameters(one), result.with_suffix(".new"))
    os.replace(result.with_suffix(".new"), result)


def _killed(process, seconds):
    """Kill −9 after so many seconds; whether there was still somebody to kill."""
    process.join(seconds)
    if process.is_alive():
        os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode != 0


def _until_done(make, folder, result, rng, longest, pause):
    """Start, and kill at random moments, until a process comes to the end; how many were killed.

    Later ones live longer: on a slow machine the first may not come as far as the first step.
    """
    fork, kills = multiprocessing.get_context("fork"), 0
    while not result.exists():
        process = fork.Process(target=_fit_and_save, args=(make, folder, result, pause))
        process.start()
        kills += _killed(process, rng.uniform(0.0, longest * 1.1**kills))
    return kills


def long_mlp(**more):
    return table_net(momentum=0.9, max_steps=250, **SEEDED, **more)


def long_dropout(**more):
    return skorch_net(max_steps=60, optimizer__momentum=0.5, **SEEDED, **{"lr": 0.02, **more})


@POSIX
@pytest.mark.parametrize(
    ("make", "longest", "pause"),
    [(long_mlp, 0.2, 0.002), pytest.param(long_dropout, 0.9, 0.05, marks=pytest.mark.slow)],
)
@pytest.mark.slow
def test_a_training_that_is_killed_again_and_again_ends_as_if_it_had_not_been(make, longest, pause, tmp_path):
    kills = _until_done(make, tmp_path / "c", tmp_path / "result", random.Random(0), longest, pause)
    assert torch.equal(torch.load(tmp_path / "result"), parameters(make().fit(X, y)))
    assert kills >= 2
    assert (tmp_path / "c" / STATE).exists()


#: What the writing of a checkpoint asks of the system, and how often one write does so.
CALLS = ["open", "fsync", "replace"]


def _dying(make, folder, result, call, number):
    """A process that is killed inside of its n-th call of this kind."""
    asked, real = [], getattr(os, call)

    def last(*args, **kwargs):
        asked.append(args)
        if len(asked) == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **kwargs)

    setattr(os, call, last)
    _fit_and_save(make, folder, result)


@POSIX
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("number", [1, 2, 3, 4, 5, 6])
def test_a_process_that_dies_while_it_writes_leaves_a_checkpoint_to_go_on_from(call, number, tmp_path):
    make = lambda **more: table_net(max_steps=6, **SEEDED, **more)  # noqa: E731
    process = multiprocessing.get_context("fork").Process(
        target=_dying, args=(make, tmp_path / "c", tmp_path / "result", call, number)
    )
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    found = make(checkpoint=tmp_path / "c").fit(X, y)
    assert torch.equal(parameters(found), parameters(make().fit(X, y)))


SCRIPT = """
import sys, numpy as np, torch
from torch import nn
from sklearn_dpsearch.nets import DPNeuralNetClassifier, resuming, training_progress
resuming.EVERY = training_progress.LOOK = 0.0

class Net(nn.Module):
    names = {"first", "second", "third"}
    def __init__(self, width=4):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(5, width), nn.LayerNorm(width), nn.Linear(width, 2))
        self.sign = lambda value: -value
    def forward(self, inputs):
        return self.sign(self.layers(inputs)) if "first" in self.names else self.layers(inputs)

look = resuming.SavedTraining.look
def deadly(self, training):
    look(self, training)
    if sys.argv[2] == "stop" and training.done >= 5:
        import os, signal
        os.kill(os.getpid(), signal.SIGKILL)
resuming.SavedTraining.look = deadly

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 5)).astype(np.float32)
net = DPNeuralNetClassifier(
    Net(), classes=["no", "yes"], optimizer=torch.optim.Adam, lr=0.02, noise_multiplier=1.0, sample_rate=0.2,
    max_steps=12, checkpoint=sys.argv[1], noise_seed=0,
    random_state=np.random.RandomState(0), predict_nonlinearity=None,
)
net.fit(X, np.where(X[:, 0] > 0, "yes", "no"))
print(torch.cat([p.detach().reshape(-1) for p in net.module_.parameters()]).numpy().tobytes().hex())
"""


@pytest.mark.slow
@POSIX
def test_another_process_knows_the_training_again(tmp_path):
    """Nothing that is compared may depend on addresses, or on the order of sets, which differ between processes."""
    (tmp_path / "script.py").write_text(textwrap.dedent(SCRIPT))
    folder, found = tmp_path / "c", []
    for word, seed, code in (("stop", "1", -signal.SIGKILL), ("go", "2", 0)):
        run = subprocess.run(
            [sys.executable, "-W", "ignore", tmp_path / "script.py", folder, word],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
        )
        assert run.returncode == code, run.stderr
        found.append(run.stdout)
    assert found[1]
    assert {path.name for path in folder.iterdir()} <= {STATE, RELEASE, README, LOCK}
