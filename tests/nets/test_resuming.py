"""A training that was cut off goes on as if nothing had happened, and nothing else may use what it left."""

from __future__ import annotations

import copy
import errno
import hashlib
import io
import multiprocessing
import os
import pickle
import random
import shutil
import signal
import stat
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_validate

pytest.importorskip("torch")
pytest.importorskip("skorch")
pytest.importorskip("opacus")
import torch
from skorch.callbacks import LRScheduler
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR

from sklearn_dpsearch.nets import (
    DPLogisticRegression,
    DPMLPClassifier,
    DPMLPRegressor,
    DPNeuralNetClassifier,
    resuming,
    secret_folder,
    watchers,
)
from sklearn_dpsearch.nets.resuming import marks
from sklearn_dpsearch.nets.secret_folder import LOCK, NEW, README, STATE, SecretFolder
from sklearn_dpsearch.nets.stack import Stack
from sklearn_dpsearch.nets.state import contents
from sklearn_dpsearch.nets.training import train
from sklearn_dpsearch.privacy import PrivacyError

from .toys import Residual, flat, mlp, records, table, training

X, y = (one.numpy() for one in table(80, classes=2))
STEPS = 24
POSIX = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and signals")
pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")


class PowerCut(BaseException):
    """The end of a process, as far as a test in the same process can have one."""


class WithDropout(nn.Module):
    """Masks come from PyTorch's global generator; layer normalisation is no sum of linear layers."""

    def __init__(self, width=6, frozen=True):
        super().__init__()
        self.first, self.norm = nn.Linear(5, width), nn.LayerNorm(width)
        self.drop, self.last = nn.Dropout(0.4), nn.Linear(width, 2)
        self.last.bias.requires_grad_(not frozen)  # of a value that only this object has
        nn.init.normal_(self.last.bias)

    def forward(self, inputs):
        return self.last(self.drop(torch.relu(self.norm(self.first(inputs)))))


class Recurrent(nn.Module):
    """No graph: its code itself runs, on one record at a time."""

    def __init__(self):
        super().__init__()
        self.cell, self.last = nn.GRUCell(1, 4), nn.Linear(4, 2)

    def forward(self, inputs):
        hidden = inputs.new_zeros(len(inputs), 4)
        for step in range(inputs.shape[1]):
            hidden = self.cell(inputs[:, step : step + 1], hidden)
        return self.last(hidden)


class InDouble(torch.optim.Optimizer):
    """Momentum in double precision: PyTorch would bring it to the precision of the parameters."""

    def __init__(self, params, lr=0.1):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                state["mean"] = 0.9 * state.get("mean", torch.zeros_like(p, dtype=torch.float64)) + p.grad.double()
                state["steps"] = state.get("steps", 0) + 1
                p.add_(state["mean"].float(), alpha=-group["lr"] / state["steps"])


class Forgetful(torch.optim.SGD):
    """Keeps something where nobody looks for it."""

    calls = 0

    def step(self, closure=None):
        self.calls += 1
        self.param_groups[0]["lr"] = 0.1 / self.calls
        return super().step()


def skorch_net(module=WithDropout, **changed):
    given = {"classes": [0, 1], "noise_multiplier": 1.0, "sample_rate": 0.2, "max_steps": STEPS, "lr": 0.3}
    return DPNeuralNetClassifier(module, **{**given, **changed})


def table_net(kind=DPMLPClassifier, **changed):
    given = {"noise_multiplier": 1.0, "sample_rate": 0.2, "max_steps": STEPS}
    hidden = {} if kind is DPLogisticRegression else {"hidden_layer_sizes": (7,)}
    return kind(**{**hidden, **given, **changed})


#: Everything that keeps something from step to step.
NETS = {
    "sgd": table_net,
    "momentum": lambda **more: table_net(momentum=0.9, alpha=0.01, **more),
    "adam": lambda **more: table_net(solver="adam", learning_rate_init=0.05, **more),
    "average": lambda **more: table_net(average=0.9, **more),
    "automatic": lambda **more: table_net(max_grad_norm="auto", learning_rate="constant", **more),
    "logistic": lambda **more: table_net(DPLogisticRegression, **more),
    "regressor": lambda **more: table_net(DPMLPRegressor, **more),
    "dropout": skorch_net,
    "own code": lambda **more: skorch_net(Recurrent, **more),
    "schedule": lambda **more: skorch_net(
        callbacks=[("lr", LRScheduler(CosineAnnealingLR, T_max=STEPS, step_every="batch"))], **more
    ),
    "adamw": lambda **more: skorch_net(optimizer=torch.optim.AdamW, lr=0.05, **more),
    "rmsprop": lambda **more: skorch_net(optimizer=torch.optim.RMSprop, optimizer__momentum=0.5, lr=0.02, **more),
    "asgd": lambda **more: skorch_net(optimizer=torch.optim.ASGD, **more),
    "amsgrad": lambda **more: skorch_net(optimizer=torch.optim.Adam, optimizer__amsgrad=True, lr=0.05, **more),
    "own optimizer": lambda **more: skorch_net(optimizer=InDouble, **more),
}
SEEDED = {"noise_seed": 3, "random_state": 1}


@pytest.fixture
def at_every_step(monkeypatch):
    """A checkpoint after every step."""
    monkeypatch.setattr(resuming, "EVERY", 0.0)
    monkeypatch.setattr(watchers, "LOOK", 0.0)


@contextmanager
def power_cut(after):
    """The power fails when so many checkpoints have been written."""
    written, write = [], SecretFolder.write

    def failing(self, value):
        write(self, value)
        written.append(value["training"]["done"])
        if len(written) == after:
            raise PowerCut

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SecretFolder, "write", failing)
        with pytest.raises(PowerCut):
            yield written


def cut_off(make, folder, after=7, data=(X, y), method="fit"):
    """A training that ends after so many checkpoints, of which the first is written before the first step."""
    one = make(checkpoint=folder)
    with power_cut(after) as written:
        getattr(one, method)(*data)
    assert written[-1] == after - 1
    return one


def parameters(one):
    return flat(one.module_)


# --- bit for bit ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", NETS)
def test_a_resumed_training_releases_bit_for_bit_what_an_uninterrupted_one_does(kind, tmp_path, at_every_step):
    make = lambda **more: NETS[kind](**SEEDED, **more)  # noqa: E731
    expected = parameters(make().fit(X, y))
    folder = tmp_path / "checkpoint"
    for after in (4, 9):  # the second attempt is cut off too
        cut_off(make, folder, after=4) if after == 4 else _cut_again(make, folder, after)
    found = make(checkpoint=folder).fit(X, y)
    assert torch.equal(parameters(found), expected)
    assert not folder.exists()


@pytest.mark.parametrize("kind", NETS)
def test_the_net_whose_training_failed_goes_on_itself(kind, tmp_path, at_every_step):
    """What skorch and scikit-learn leave on it from the first attempt is no other argument."""
    one = cut_off(lambda **more: NETS[kind](**SEEDED, **more), tmp_path / "c")
    assert torch.equal(parameters(one.fit(X, y)), parameters(NETS[kind](**SEEDED).fit(X, y)))


def _cut_again(make, folder, more):
    with power_cut(more) as written:
        make(checkpoint=str(folder)).fit(X, y)
    assert written == list(range(4, 4 + more))  # on from step 3, not from the start


@pytest.mark.parametrize("kind", NETS)
def test_whether_and_how_often_checkpoints_are_written_changes_nothing(kind, tmp_path, monkeypatch):
    expected = parameters(NETS[kind](**SEEDED).fit(X, y))
    for every, look in ((0.0, 0.0), (0.0, 0.001), (60.0, 0.5)):
        monkeypatch.setattr(resuming, "EVERY", every)
        monkeypatch.setattr(watchers, "LOOK", look)
        found = NETS[kind](checkpoint=tmp_path / "checkpoint", **SEEDED).fit(X, y)
        assert torch.equal(parameters(found), expected)


def test_unseeded_attempts_from_one_checkpoint_release_the_same_and_new_trainings_do_not(tmp_path, at_every_step):
    """Initial parameters, batches and noise come from the operating system once, and then from the folder."""
    found = []
    for place in ("a", "b"):
        cut_off(skorch_net, tmp_path / place)
        shutil.copytree(tmp_path / place, tmp_path / f"copy of {place}")
        found += [parameters(skorch_net(checkpoint=tmp_path / name).fit(X, y)) for name in (place, f"copy of {place}")]
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[2], found[3])
    assert not torch.allclose(found[0], found[2], atol=1e-2)


OPTIMIZERS = {
    "sgd": training().optimizer,
    "adam": lambda module: torch.optim.Adam(module.parameters(), lr=0.01),
    "rmsprop": lambda module: torch.optim.RMSprop(module.parameters(), lr=0.01),
    "momentum": lambda module: torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9),
}


class Halfway:
    """Saves a training after step 4, or restores it there; notes all that it is after step 8."""

    def __init__(self, saved=None):
        self.saved, self.restores = saved, saved is not None

    def begin(self, stack):
        if self.restores:
            stack.restore(self.saved)

    def look(self, stack):
        if stack.done == 4:
            self.saved = pickle.dumps(secret_folder.storable(stack.state()))
        elif stack.done == 8:
            stack.state()
            own = sorted(set(vars(stack)) - NOT_COMPARED)
            self.digests = {name: contents(vars(stack)[name]) for name in own}

    def close(self):
        pass


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("make", [mlp, Residual, lambda: nn.Sequential(nn.Dropout(0.5), mlp())])
def test_a_restored_stack_is_in_everything_the_stack_that_was_saved(make, optimizer, monkeypatch):
    """Compared by all that can be reached from it: whoever adds a state to the stack adds it to the checkpoint."""
    monkeypatch.setattr(Stack, "_ahead", lambda self, t: 4 - t % 4)
    given, start = {"optimizer": OPTIMIZERS[optimizer], "noise_multiplier": 1.0, "steps": 10, "average": 0.8}, make()

    def trained(one):
        task, watching = training(copy.deepcopy(start), **given), watchers.Watchers([one])
        watching.patience = 4
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(watchers, "LOOK", 1e9)
            train(task, records(), max_physical_batch=30, watchers=watching)
        return flat(task.module)

    first = Halfway()
    whole = trained(first)
    second = Halfway(pickle.loads(first.saved))
    assert torch.equal(trained(second), whole)
    assert first.digests == second.digests
    assert {"trained", "secrets", "batches", "done"} <= set(first.digests)


#: Written anew in every step, never changed, or (the stepper, which remembers rates) compared by what it does.
NOT_COMPARED = {"engine", "gradients", "sums", "records", "tasks", "stepper", "watchers"}


# --- kill -9 ----------------------------------------------------------------------------------------------------------


def _fit_and_save(make, folder, result, pause=0.0):
    """What a process does that may be killed, not too fast for that."""
    resuming.EVERY = watchers.LOOK = 0.0
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
    return skorch_net(max_steps=60, optimizer=torch.optim.RMSprop, **SEEDED, **{"lr": 0.02, **more})


@POSIX
@pytest.mark.parametrize(("make", "longest", "pause"), [(long_mlp, 0.2, 0.002), (long_dropout, 0.9, 0.05)])
def test_a_training_that_is_killed_again_and_again_ends_as_if_it_had_not_been(make, longest, pause, tmp_path):
    kills = _until_done(make, tmp_path / "c", tmp_path / "result", random.Random(0), longest, pause)
    assert torch.equal(torch.load(tmp_path / "result"), parameters(make().fit(X, y)))
    assert kills >= 2
    assert not (tmp_path / "c").exists()


@POSIX
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_hundreds_of_kills_change_nothing(seed, tmp_path):
    make = (long_mlp, long_dropout)[seed % 2]
    kills = _until_done(make, tmp_path / "c", tmp_path / "result", random.Random(seed), 0.08, 0.003)
    assert torch.equal(torch.load(tmp_path / "result"), parameters(make().fit(X, y)))
    assert kills > 3


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
from sklearn_dpsearch.nets import DPNeuralNetClassifier, resuming, watchers
resuming.EVERY = watchers.LOOK = 0.0

class Net(nn.Module):
    names = {"first", "second", "third"}
    def __init__(self, width=4):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(5, width), nn.LayerNorm(width), nn.Linear(width, 2))
        self.sign = lambda value: -value
    def forward(self, inputs):
        return self.sign(self.layers(inputs)) if "first" in self.names else self.layers(inputs)

class Slow(torch.optim.RMSprop):
    def step(self, closure=None):
        if sys.argv[2] == "stop" and self.state and next(iter(self.state.values()))["step"] >= 5:
            import os, signal
            os.kill(os.getpid(), signal.SIGKILL)
        return super().step()

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 5)).astype(np.float32)
net = DPNeuralNetClassifier(
    Net(), classes=["no", "yes"], optimizer=Slow, lr=0.02, noise_multiplier=1.0, sample_rate=0.2, max_steps=12,
    checkpoint=sys.argv[1], noise_seed=0, random_state=np.random.RandomState(0), predict_nonlinearity=None,
)
net.fit(X, np.where(X[:, 0] > 0, "yes", "no"))
print(torch.cat([p.detach().reshape(-1) for p in net.module_.parameters()]).numpy().tobytes().hex())
"""


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
    assert not folder.exists()


# --- what is on the disk ----------------------------------------------------------------------------------------------


@POSIX
def test_the_folder_is_for_its_owner_alone_and_says_what_it_is(tmp_path, at_every_step):
    before = os.umask(0)
    try:
        cut_off(table_net, tmp_path / "deep" / "checkpoint")
    finally:
        os.umask(before)
    folder = tmp_path / "deep" / "checkpoint"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {STATE, README} <= {file.name for file in folder.iterdir()} <= {STATE, README, LOCK}
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}
    assert "as secret as the private records" in (folder / README).read_text()


@POSIX
def test_an_empty_folder_of_the_users_own_is_closed_to_others(tmp_path, at_every_step):
    (tmp_path / "mine").mkdir(mode=0o755)
    cut_off(table_net, tmp_path / "mine")
    assert stat.S_IMODE((tmp_path / "mine").stat().st_mode) == 0o700


@POSIX
def test_a_folder_of_somebody_else_is_refused(tmp_path, monkeypatch):
    (tmp_path / "theirs").mkdir()
    monkeypatch.setattr(os, "getuid", lambda: (tmp_path / "theirs").stat().st_uid + 1)
    with pytest.raises(PrivacyError, match="(?s)belongs to somebody else.*folder of your own"):
        table_net(checkpoint=tmp_path / "theirs").fit(X, y)


def test_a_folder_with_anything_else_in_it_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    mode = tmp_path.stat().st_mode
    with pytest.raises(PrivacyError, match="(?s)thesis.tex.*folder of its own.*empty"):
        table_net(checkpoint=tmp_path).fit(X, y)
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.tex"]
    assert tmp_path.stat().st_mode == mode


@pytest.mark.parametrize("kept", [0, 1, 20, 60, 62, 500, -1])
def test_a_file_that_was_cut_short_is_refused_with_what_to_do(kept, tmp_path, at_every_step):
    cut_off(table_net, tmp_path / "c")
    file = tmp_path / "c" / STATE
    file.write_bytes(file.read_bytes()[:kept])
    with pytest.raises(PrivacyError, match="(?s)damaged, cut short.*delete the folder.*first attempt is then spent"):
        table_net(checkpoint=tmp_path / "c").fit(Untouchable(), Untouchable())


def test_a_file_in_which_any_bit_has_changed_is_refused(tmp_path, at_every_step):
    cut_off(table_net, tmp_path / "c")
    file = tmp_path / "c" / STATE
    whole = file.read_bytes()
    for place in random.Random(0).sample(range(len(whole)), 60):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(PrivacyError, match="damaged"):
            table_net(checkpoint=tmp_path / "c").fit(X, y)
    file.write_bytes(whole)
    table_net(checkpoint=tmp_path / "c").fit(X, y)


def test_what_is_stored_comes_back_as_it_was(tmp_path):
    stored = {
        "numbers": [1, 2**127 + 1, -0.0, 0.1, float("inf"), True, None, "text", b"bytes", np.float64(0.3)],
        "tensors": (torch.arange(6.0).reshape(2, 3).T[1:], torch.tensor(2.0, dtype=torch.float64), torch.zeros(0)),
        "nested": {0: {"betas": (0.9, 0.999)}, "empty": {}, "list": []},
    }
    with secret_folder.opened(tmp_path / "c") as folder:
        folder.write(stored)
        found = folder.read()
    assert contents(found) == contents(secret_folder.storable(stored))
    assert found["nested"] == stored["nested"]
    assert found["numbers"] == stored["numbers"]
    assert all(
        torch.equal(*both) and both[0].dtype == both[1].dtype for both in zip(found["tensors"], stored["tensors"])
    )
    assert found["tensors"][0].untyped_storage().nbytes() == 4 * 4  # of a view no more than is seen


def test_what_could_not_be_read_is_not_written(tmp_path):
    with secret_folder.opened(tmp_path / "c") as folder, pytest.raises(ValueError, match="(?s)Thread.*checkpoint=None"):
        folder.write({"state": threading.Thread()})


def test_a_file_in_the_place_of_the_folder_is_left_alone(tmp_path):
    (tmp_path / "model.pt").write_text("trained")
    with pytest.raises(PrivacyError, match="(?s)Found a file.*a folder is needed"):
        table_net(checkpoint=tmp_path / "model.pt").fit(Untouchable(), Untouchable())
    assert (tmp_path / "model.pt").read_text() == "trained"


def test_a_device_whose_generators_cannot_be_saved_is_refused(tmp_path):
    task = training()
    with pytest.raises(PrivacyError, match="(?s)device='meta'.*cpu and cuda.*checkpoint=None"):
        marks(b"key", task, {"device": "meta"}, table(), "")


def test_a_file_that_was_half_written_when_the_power_failed_is_not_read(tmp_path, at_every_step):
    make = lambda **more: table_net(**SEEDED, **more)  # noqa: E731
    cut_off(make, tmp_path / "c")
    (tmp_path / "c" / NEW).write_bytes(b"half a")
    found = make(checkpoint=tmp_path / "c").fit(X, y)
    assert torch.equal(parameters(found), parameters(make().fit(X, y)))


@pytest.mark.parametrize("call", ["fsync", "replace", "open"])
def test_a_full_disk_ends_the_training_and_the_last_checkpoint_is_still_good(call, tmp_path, at_every_step):
    make = lambda **more: table_net(**SEEDED, **more)  # noqa: E731
    folder, real, asked = tmp_path / "c", getattr(os, call), []

    def full(*args, **kwargs):
        asked.append(args)
        if len(asked) > 12:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(*args, **kwargs)

    one = make(checkpoint=folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, call, full)
        with pytest.raises(
            OSError, match="(?s)no way to write a checkpoint.*No space.*still good.*call fit again"
        ) as e:
            one.fit(X, y)
    assert e.value.errno == errno.ENOSPC
    assert not hasattr(one, "module_")
    assert not hasattr(one, "privacy_spent_")
    assert not (folder / NEW).exists()
    assert torch.equal(parameters(make(checkpoint=folder).fit(X, y)), parameters(make().fit(X, y)))


def test_a_disk_that_is_full_from_the_start_leaves_nothing(tmp_path, monkeypatch):
    def full(*args):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="no way to write a checkpoint"):
        table_net(checkpoint=tmp_path / "c").fit(X, y)
    assert not (tmp_path / "c").exists()


@POSIX
def test_a_checkpoint_has_reached_the_disk_before_it_takes_the_place_of_the_last(tmp_path, monkeypatch):
    """Or a power cut could leave the new name with nothing behind it."""
    asked = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *args, name=name, real=real: (asked.append((name, args)), real(*args)))
    with secret_folder.opened(tmp_path / "c") as folder:
        asked.clear()
        folder.write({"a": torch.ones(3)})
    assert [name for name, _ in asked] == ["fsync", "replace", "fsync"]
    assert asked[1][1] == (tmp_path / "c" / NEW, tmp_path / "c" / STATE)


def test_a_file_may_not_bring_code_along(tmp_path, at_every_step):
    cut_off(table_net, tmp_path / "c")

    class Evil:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "evil"),)

    payload = pickle.dumps(Evil())
    digest = hashlib.sha256(payload).digest()
    (tmp_path / "c" / STATE).write_bytes(secret_folder.HEADER + digest + payload)
    with pytest.raises(Exception, match="(?i)weights.only"):
        table_net(checkpoint=tmp_path / "c").fit(X, y)
    assert not (tmp_path / "evil").exists()


def test_secrets_that_cannot_be_deleted_are_an_error_and_the_training_can_be_repeated(tmp_path, monkeypatch):
    """Nobody should believe that they are gone."""
    make = lambda **more: table_net(**SEEDED, **more)  # noqa: E731
    one, unlink = make(checkpoint=tmp_path / "c"), Path.unlink

    def failing(self, **kwargs):
        if self.name == STATE:
            raise PermissionError(errno.EACCES, "no")
        unlink(self, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", failing)
        with pytest.raises(PermissionError):
            one.fit(X, y)
    assert not hasattr(one, "module_")
    assert torch.equal(parameters(one.fit(X, y)), parameters(make().fit(X, y)))
    assert not (tmp_path / "c").exists()


def test_what_is_not_secret_may_stay(tmp_path, monkeypatch):
    """Where a system does not let go of a file in use."""

    def busy(self):
        raise OSError(errno.ENOTEMPTY, "busy")

    monkeypatch.setattr(Path, "rmdir", busy)
    assert table_net(checkpoint=tmp_path / "c").fit(X, y).n_steps_ == STEPS
    assert not (tmp_path / "c" / STATE).exists()


def test_a_training_that_never_began_leaves_no_folder(tmp_path):
    with pytest.raises(ValueError, match="NaN"):
        table_net(checkpoint=tmp_path / "c").fit(np.full((80, 5), np.nan), y)
    assert not (tmp_path / "c").exists()


def test_a_training_that_fails_at_its_very_end_leaves_its_checkpoint(tmp_path, monkeypatch, at_every_step):
    """Until the net is fitted nothing is deleted."""
    make = lambda **more: table_net(**SEEDED, **more)  # noqa: E731
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DPMLPClassifier, "_add_training", lambda *args: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            make(checkpoint=tmp_path / "c").fit(X, y)
    assert (tmp_path / "c" / STATE).exists()
    assert torch.equal(parameters(make(checkpoint=tmp_path / "c").fit(X, y)), parameters(make().fit(X, y)))


@POSIX
def test_secrets_are_not_written_through_a_link(tmp_path, at_every_step):
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / NEW).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="no way to write a checkpoint"):
        table_net(checkpoint=tmp_path / "c").fit(X, y)
    assert not (tmp_path / "elsewhere").exists()


def test_a_folder_in_use_is_refused(tmp_path):
    with (
        secret_folder.opened(tmp_path / "c"),
        pytest.raises(PrivacyError, match="(?s)is running.*folder of its own.*'lock'"),
    ):
        table_net(checkpoint=tmp_path / "c").fit(Untouchable(), Untouchable())
    table_net(checkpoint=tmp_path / "c").fit(X, y)


# --- what must be the same --------------------------------------------------------------------------------------------


class Untouchable:
    """Data that must not be read."""

    shape = (80, 5)

    def __len__(self):
        return 80

    def __getitem__(self, key):
        raise AssertionError("data were read")

    __array__ = __getitem__


def _one_cell(X):
    changed = X.copy()
    changed[17, 2] = np.nextafter(changed[17, 2], np.float32(9))
    return changed


OTHERS = {
    "one cell": (_one_cell(X), y),
    "one label": (X, np.where(np.arange(80) == 5, 1 - y, y)),
    "one record less": (X[:-1], y[:-1]),
    "one record more": (np.vstack([X, X[:1]]), np.append(y, y[0])),
    "another order": (X[::-1].copy(), y[::-1].copy()),
}


@pytest.mark.parametrize("make", [table_net, skorch_net])
@pytest.mark.parametrize("other", OTHERS)
def test_noise_never_meets_other_records(make, other, tmp_path, at_every_step):
    cut_off(make, tmp_path / "c")
    before = (tmp_path / "c" / STATE).read_bytes()
    one = make(checkpoint=tmp_path / "c")
    with pytest.raises(PrivacyError, match="(?s)other records|another expected_batch_size"):
        one.fit(*OTHERS[other])
    assert not hasattr(one, "privacy_spent_")
    assert (tmp_path / "c" / STATE).read_bytes() == before
    make(checkpoint=tmp_path / "c").fit(X, y)


CHANGED = [
    ({"learning_rate_init": 0.5}, "learning_rate_init=0.5.*learning_rate_init='auto'"),
    ({"average": 0.5}, "average=0.5.*average=0.0"),
    ({"learning_rate": "constant"}, "learning_rate='constant'.*learning_rate='linear'"),
    ({"noise_multiplier": 2.0}, "noise_multiplier=2.0.*noise_multiplier=1.0"),
    ({"max_grad_norm": 0.5}, "max_grad_norm=0.5.*max_grad_norm=1.0"),
    ({"max_steps": 25}, "max_steps=25.*max_steps=24"),
    ({"sample_rate": 0.1}, "sample_rate=0.1.*sample_rate=0.2"),
    ({"solver": "adam"}, "solver='adam'.*solver='sgd'"),
    ({"momentum": 0.9}, "momentum=0.9"),
    ({"hidden_layer_sizes": (8,)}, "hidden_layer_sizes"),
    ({"activation": "tanh"}, "activation='tanh'"),
    ({"alpha": 0.1}, "alpha=0.1"),
    ({"public_n": 80}, "public_n=80.*public_n=None"),
    ({"max_physical_batch": 5}, "max_physical_batch=5"),
    ({"bounds_X": (-1, 1)}, "bounds_X"),
    ({"noise_seed": 4}, "noise_seed=int.*noise_seed=NoneType"),
    ({"random_state": 4}, "random_state=4"),
    ({"classes": [0, 1]}, "classes"),
]


@pytest.mark.parametrize(("changed", "match"), CHANGED, ids=[next(iter(one[0])) for one in CHANGED])
def test_other_arguments_are_refused_by_name(changed, match, tmp_path, at_every_step):
    cut_off(table_net, tmp_path / "c")
    with pytest.raises(PrivacyError, match=f"(?s){match}.*delete the folder.*first attempt"):
        table_net(checkpoint=tmp_path / "c", **changed).fit(X, y)


class Louder(DPMLPClassifier):
    """A user's class, which trains in another way."""

    def _update(self):
        return super()._update()


def test_another_class_with_the_same_arguments_is_refused(tmp_path, at_every_step):
    cut_off(table_net, tmp_path / "c")
    with pytest.raises(PrivacyError, match="class="):
        table_net(Louder, checkpoint=tmp_path / "c").fit(X, y)


def test_the_seed_of_the_noise_is_in_no_error(tmp_path, at_every_step):
    cut_off(lambda **more: table_net(noise_seed=123456789, **more), tmp_path / "c")
    with pytest.raises(PrivacyError) as error:
        table_net(noise_seed=987654321, checkpoint=tmp_path / "c").fit(X, y)
    assert "123456789" not in str(error.value)
    assert "987654321" not in str(error.value)


def _module(body):
    """A module of a user's own with this code, as a script defines it each time that it runs."""
    space = {"torch": torch, "nn": nn, "__name__": "script"}
    exec(textwrap.dedent(body), space)
    return space["Net"]


CODE = """
scale = 2.0
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.power = nn.Linear(5, 2), 1
    def forward(self, inputs):
        return self.layer(torch.tanh(inputs * scale))
"""


@pytest.mark.parametrize(
    ("old", "new"), [("tanh", "relu"), ("2.0", "3.0"), ("power = nn.Linear(5, 2), 1", "power = nn.Linear(5, 2), 2")]
)
def test_a_module_with_other_code_is_refused(old, new, tmp_path, at_every_step):
    cut_off(lambda **more: skorch_net(_module(CODE), **more), tmp_path / "c")
    with pytest.raises(PrivacyError, match="(?s)module.*same code"):
        skorch_net(_module(CODE.replace(old, new)), checkpoint=tmp_path / "c").fit(X, y)
    skorch_net(_module(f"\n\n{CODE}"), checkpoint=tmp_path / "c").fit(X, y)


@pytest.mark.parametrize(
    "changed",
    [
        {"optimizer": torch.optim.Adam},
        {"optimizer__momentum": 0.9},
        {"lr": 0.1},
        {"module__width": 7},
        {"criterion__label_smoothing": 0.1},
        {"criterion": nn.NLLLoss},
        {"callbacks": [("lr", LRScheduler(CosineAnnealingLR, T_max=STEPS))]},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_another_training_with_skorch_is_refused(changed, tmp_path, at_every_step):
    cut_off(skorch_net, tmp_path / "c")
    with pytest.raises(PrivacyError, match="(?s)must be the same|another module|another criterion"):
        skorch_net(checkpoint=tmp_path / "c", **changed).fit(X, y)


def test_other_parameters_that_are_not_trained_are_refused(tmp_path, at_every_step):
    cut_off(lambda **more: skorch_net(WithDropout(frozen=True), **more), tmp_path / "c")
    with pytest.raises(PrivacyError, match="another choice of parameters"):
        skorch_net(WithDropout(frozen=False), checkpoint=tmp_path / "c").fit(X, y)


def test_a_module_given_as_an_instance_may_start_from_other_random_numbers(tmp_path, at_every_step):
    """A script that runs again makes another instance: its parameters come from the checkpoint."""
    kept = WithDropout()
    expected = parameters(skorch_net(copy.deepcopy(kept), noise_seed=0).fit(X, y))
    cut_off(lambda **more: skorch_net(kept, noise_seed=0, **more), tmp_path / "c")
    found = skorch_net(WithDropout(), noise_seed=0, checkpoint=tmp_path / "c").fit(X, y)
    assert torch.equal(parameters(found), expected)


def test_what_the_initial_parameters_cost_cannot_be_left_behind(tmp_path, at_every_step):
    trained = skorch_net().fit(X, y).module_
    cut_off(lambda **more: skorch_net(trained, **more), tmp_path / "c")
    with pytest.raises(PrivacyError, match="another module|module="):
        skorch_net(WithDropout(), checkpoint=tmp_path / "c").fit(X, y)
    found = skorch_net(trained, checkpoint=tmp_path / "c").fit(X, y)
    assert len(found.privacy_spent_.components) == 2


@pytest.mark.parametrize("name", ["torch", "numpy", "sklearn_dpsearch", "processor", "Python"])
def test_another_version_or_processor_is_refused(name, tmp_path, monkeypatch, at_every_step):
    cut_off(table_net, tmp_path / "c")
    here = resuming._place
    monkeypatch.setattr(resuming, "_place", lambda device: {**here(device), name: "0.0.1"})
    with pytest.raises(PrivacyError, match=f"(?s){name} '0.0.1'.*began with {name}.*Go on where it began"):
        table_net(checkpoint=tmp_path / "c").fit(X, y)


def test_a_training_goes_on_with_as_many_threads_as_it_began_with(tmp_path, at_every_step):
    cut_off(skorch_net, tmp_path / "c")
    seen, step = [], Stack._step

    def counting(self, *args):
        seen.append(torch.get_num_threads())
        return step(self, *args)

    before = torch.get_num_threads()
    torch.set_num_threads(before + 1)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Stack, "_step", counting)
            skorch_net(checkpoint=tmp_path / "c").fit(X, y)
        assert torch.get_num_threads() == before + 1
    finally:
        torch.set_num_threads(before)
    assert set(seen) == {before}


def test_an_optimizer_that_keeps_its_state_elsewhere_is_refused(tmp_path, at_every_step):
    with pytest.raises(ValueError, match="(?s)Forgetful.*outside of its state.*checkpoint=None"):
        skorch_net(optimizer=Forgetful, checkpoint=tmp_path / "c").fit(X, y)


def test_digests_tell_nothing_without_their_key():
    task = training()
    one, other = (marks(key, task, {"lr": 0.1}, table(), "") for key in (b"1" * 32, b"2" * 32))
    again = marks(b"1" * 32, task, {"lr": 0.1}, table(), "")
    assert one == again
    for kind in one:
        assert not {digest for digest, _ in one[kind].values()} & {digest for digest, _ in other[kind].values()}


# --- what it costs, and where it goes ---------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [table_net, skorch_net])
def test_a_resumed_training_costs_what_one_training_costs(make, tmp_path, at_every_step):
    cut_off(make, tmp_path / "c")
    found, whole = make(checkpoint=tmp_path / "c").fit(X, y), make().fit(X, y)
    assert found.privacy_spent_.epsilon == whole.privacy_spent_.epsilon
    assert len(found.privacy_spent_.components) == 1
    assert found.n_steps_ == STEPS


def test_that_nobody_has_read_the_folder_is_an_assumption(tmp_path):
    found = table_net(checkpoint=tmp_path / "c").fit(X, y)
    assert [text for text in found.privacy_spent_.assumptions if "checkpoint" in text]
    assert not [text for text in table_net().fit(X, y).privacy_spent_.assumptions if "checkpoint" in text]


def test_a_new_fit_after_the_end_is_a_new_training(tmp_path, at_every_step):
    one = table_net(checkpoint=tmp_path / "c")
    first = parameters(one.fit(X, y))
    assert not torch.allclose(first, parameters(one.fit(X, y)), atol=1e-3)


def test_training_on_goes_on_from_the_same_net_alone(tmp_path, at_every_step):
    def warm():
        return table_net(classes=[0, 1], **SEEDED).fit(X, y)

    stored = pickle.dumps(warm())

    def loaded(**more):
        return pickle.loads(stored).set_params(noise_seed=7, **more)

    whole = loaded().partial_fit(X, y)
    for _ in range(2):
        one = loaded(checkpoint=tmp_path / "c")
        with power_cut(5):
            one.partial_fit(X, y)
        assert torch.equal(parameters(one), parameters(loaded()))  # as they were before
    for other in (warm(), table_net(classes=[0, 1], **SEEDED)):  # of another history: it would state another cost
        with pytest.raises(PrivacyError, match="other initial parameters|another module"):
            other.set_params(noise_seed=7, checkpoint=tmp_path / "c").partial_fit(X, y)
    moved = loaded(checkpoint=tmp_path / "c")
    with torch.no_grad():
        moved.module_[0].weight[0, 0] += 1e-6
    with pytest.raises(PrivacyError, match="other initial parameters"):
        moved.partial_fit(X, y)
    again = loaded(checkpoint=tmp_path / "c").partial_fit(X, y)
    assert torch.equal(parameters(again), parameters(whole))
    assert again.privacy_spent_.epsilon == whole.privacy_spent_.epsilon
    assert len(again.privacy_spent_.components) == 2


@pytest.mark.parametrize("make", [table_net, skorch_net])
def test_clones_copies_and_pickles_carry_the_name_of_the_folder_and_nothing_of_it(make, tmp_path, at_every_step):
    one = cut_off(make, tmp_path / "c")
    key = torch.load(io.BytesIO((tmp_path / "c" / STATE).read_bytes()[62:]))["key"]
    for other in (one, clone(one), make(checkpoint=tmp_path / "c").fit(X, y)):
        pickled = pickle.dumps(other)
        assert key not in pickled
        assert pickle.loads(pickled).checkpoint == tmp_path / "c"
    assert {name for name in vars(other) if "checkpoint" in name} == {"checkpoint"}


def test_nets_that_train_together_have_no_checkpoint(tmp_path):
    with pytest.raises(PrivacyError, match="(?s)trained together.*checkpoint=None"):
        DPMLPClassifier.fit_together([table_net(), table_net(checkpoint=tmp_path / "c")], X, y)
    assert not (tmp_path / "c").exists()


def test_folds_one_after_the_other_may_share_a_folder(tmp_path):
    found = cross_validate(table_net(checkpoint=tmp_path / "c"), X, y, cv=3, error_score="raise")
    assert len(found["test_score"]) == 3
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("given", [5, b"folder", True])
def test_a_folder_is_a_path(given):
    with pytest.raises(ValueError, match="checkpoint"):
        table_net(checkpoint=given).fit(Untouchable(), Untouchable())


def test_a_checkpoint_is_written_every_minute(tmp_path, monkeypatch):
    now, written, write = [0.0], [], SecretFolder.write
    step = Stack._step
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def slow(self, *args):
        now[0] += 25.0
        return step(self, *args)

    def noting(self, value):
        written.append((now[0], value["training"]["done"]))
        write(self, value)

    monkeypatch.setattr(Stack, "_step", slow)
    monkeypatch.setattr(SecretFolder, "write", noting)
    table_net(checkpoint=tmp_path / "c", max_steps=10).fit(X, y)
    assert written == [(0.0, 0), (75.0, 3), (150.0, 6), (225.0, 9)]
