"""Nothing is kept of a forward pass: what modules, criteria and their code hold is compared by contents."""

from __future__ import annotations

import collections
import functools
import logging
import sys
import types
import weakref

import numpy as np
import pytest

pytest.importorskip("torch")
import torch
from torch import nn
from torch.nn import functional as F

from sklearn_dpsearch.nets import DPNeuralNetClassifier, state
from sklearn_dpsearch.nets.engines import engine_choice, probe
from sklearn_dpsearch.nets.engines.vmap import VmapEngine
from sklearn_dpsearch.nets.state import contents
from sklearn_dpsearch.nets.training import train, train_together
from sklearn_dpsearch.privacy import LeakingEstimatorError

from .toys import CPU, Residual, clipped_sums, flat, mlp, records, seeded, table, training

SUM = nn.CrossEntropyLoss(reduction="sum")
INPUTS, TARGETS = table(30)


def engine_for(net, criterion=SUM, inputs=INPUTS, targets=TARGETS):
    return engine_choice.engine_for(net, criterion, *probe.made_up(inputs, targets), CPU)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(5, 6), nn.Linear(6, 3)

    def head(self, inputs):
        return self.last(torch.relu(self.first(inputs)))


class Remembers(Net):
    def forward(self, inputs):
        self.seen = self.first(inputs)
        return self.last(torch.relu(self.seen))


class RemembersInAList(Net):
    def __init__(self):
        super().__init__()
        self.seen = []

    def forward(self, inputs):
        self.seen.append(inputs.mean().item())
        return self.head(inputs)


class RemembersInADeque(Net):
    def __init__(self):
        super().__init__()
        self.seen = collections.deque([0.0], maxlen=1)

    def forward(self, inputs):
        self.seen.append(inputs.detach().mean())
        return self.head(inputs)


class Mean:
    """An object that stays the same one."""

    __slots__ = ("value",)

    def __init__(self):
        self.value = torch.zeros(())


class RunningObject(Net):
    def __init__(self):
        super().__init__()
        self.mean = Mean()

    def forward(self, inputs):
        self.mean.value = 0.9 * self.mean.value + 0.1 * inputs.detach().mean()
        return self.head(inputs)


class RunningArray(Net):
    def __init__(self):
        super().__init__()
        self.mean = types.SimpleNamespace(inner={"mean": np.zeros(5)})

    def forward(self, inputs):
        self.mean.inner["mean"] += inputs.detach().mean(0).numpy()
        return self.head(inputs)


class OfTheClass(Net):
    seen: list = []

    def forward(self, inputs):
        self.seen.append(inputs.detach().mean(0))
        return self.head(inputs)


class ByDefault(Net):
    def forward(self, inputs, kept=[]):  # noqa: B006
        kept.append(inputs.detach().mean(0))
        return self.head(inputs)


KEPT: dict = {}


def helper(inputs):
    KEPT["mean"] = inputs.detach().mean(0)
    return inputs


class InAGlobal(Net):
    def forward(self, inputs):
        return self.head(helper(inputs))


def in_a_closure():
    kept = []

    class InAClosure(Net):
        def forward(self, inputs):
            kept.append(inputs.detach().mean(0))
            return self.head(inputs)

    return InAClosure()


class InAPartial(Net):
    def __init__(self):
        super().__init__()
        self.keep = functools.partial(list.append, [])

    def forward(self, inputs):
        self.keep(inputs.detach().mean(0))
        return self.head(inputs)


class OnAParameter(Net):
    def forward(self, inputs):
        self.first.weight.seen = inputs.detach().mean(0)
        return self.head(inputs)


class Counts(Net):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(()))

    def forward(self, inputs):
        self.count += len(inputs)
        return self.head(inputs)


class RunningBuffer(Net):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(5))

    def forward(self, inputs):
        outputs = self.head(inputs - self.mean)
        self.mean = 0.9 * self.mean + 0.1 * inputs.detach().mean(0)
        return outputs


KINDS = [
    Remembers, RemembersInAList, RemembersInADeque, RunningObject, RunningArray, OfTheClass, ByDefault, InAGlobal,
    in_a_closure, InAPartial, OnAParameter, Counts, RunningBuffer,
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_modules_that_keep_something_of_a_forward_pass_are_refused(kind):
    net = seeded(kind)
    before = flat(net)
    with pytest.raises(LeakingEstimatorError, match="changes its parameters, buffers or attributes in forward"):
        train(training(net), records(60), max_physical_batch=100)
    assert torch.equal(flat(net), before)


class Renormed(nn.Module):
    """PyTorch shrinks the rows of the words that occur, without noise."""

    def __init__(self):
        super().__init__()
        self.words, self.last = nn.Embedding(10, 6, max_norm=1.0), nn.Linear(6, 3)

    def forward(self, inputs):
        return self.last(self.words(inputs).mean(1))


def test_modules_that_change_their_parameters_in_forward_are_refused():
    with pytest.raises(LeakingEstimatorError, match="Renormed changes its parameters"):
        engine_for(seeded(Renormed), inputs=torch.zeros(30, 4, dtype=torch.long))


class Remembering(nn.CrossEntropyLoss):
    """A loss that keeps what it computed."""

    def forward(self, outputs, targets):
        self.last = super().forward(outputs, targets)
        return self.last


@pytest.mark.parametrize("kind", [mlp, Residual])
def test_losses_that_keep_something_are_refused_and_left_as_they_were(kind):
    criterion = Remembering(reduction="sum")
    with pytest.raises(LeakingEstimatorError, match="Remembering changes its parameters, buffers or attributes"):
        engine_for(seeded(kind), criterion)
    assert not hasattr(criterion, "last")


# --- what a trial on made-up records does not show ----------------------------------------------------------------


class KeepsLater(Net):
    """Keeps the records of later batches, which a trial does not see, and uses them for the next ones."""

    def __init__(self):
        super().__init__()
        self.calls, self.kept = [], []

    def forward(self, inputs):
        shifted = inputs + torch.zeros(5)  # no graph
        if len(hidden.calls) > 60:
            shifted = shifted + (self.kept[-1] if self.kept else 0.0)
            self.kept.append(inputs)
        hidden.calls.append(1)
        return self.head(shifted)


hidden = logging.getLogger("hidden")  # what no comparison of contents looks into
hidden.calls = []


def test_nothing_is_carried_from_one_call_to_the_next():
    """Under vmap a tensor kept from the last batch would pass for one of the same record in this one."""
    net = seeded(KeepsLater)
    engine = VmapEngine(net, SUM, CPU)
    hidden.calls[:] = [1] * 100
    inputs, targets = table(8)
    once = clipped_sums(engine, net, inputs, targets)
    clipped_sums(engine, net, inputs * 100, targets)
    assert torch.equal(clipped_sums(engine, net, inputs, targets), once)
    assert net.kept == []
    assert engine.template.kept == []


class OfTheClassLater(Net):
    seen: list = []

    def forward(self, inputs):
        if len(hidden.calls) > 60:
            self.seen.append(inputs.detach().mean(0))
        hidden.calls.append(1)
        return self.head(inputs + torch.zeros(5))


@pytest.mark.slow
def test_what_was_kept_only_in_training_is_found_after_it():
    hidden.calls.clear()
    net = DPNeuralNetClassifier(OfTheClassLater, classes=[0, 1, 2], noise_multiplier=1.0, sample_rate=0.5, max_steps=80)
    with pytest.raises(LeakingEstimatorError, match="OfTheClassLater changes"):
        net.fit(INPUTS.numpy(), TARGETS.numpy())
    assert not hasattr(net, "module_")
    assert OfTheClassLater.seen  # the run did reach that code
    OfTheClassLater.seen.clear()
    hidden.calls.clear()
    assert train_together([training(OfTheClassLater(), steps=80)], records(60), max_physical_batch=100) == [False]
    OfTheClassLater.seen.clear()


class KeepsInPrediction(Net):
    def forward(self, inputs):
        if len(hidden.calls) > 10**6:
            self.seen = inputs
        return self.head(inputs)


def test_predicting_leaves_nothing_on_the_module(monkeypatch):
    hidden.calls.clear()
    net = DPNeuralNetClassifier(
        KeepsInPrediction, classes=[0, 1, 2], noise_multiplier=1.0, sample_rate=0.5, max_steps=3
    ).fit(INPUTS.numpy(), TARGETS.numpy())
    before = contents(net.module_)
    monkeypatch.setattr(hidden, "calls", range(10**7))
    net.predict(INPUTS.numpy())
    assert not hasattr(net.module_, "seen")
    net.module_.train(False)
    assert contents(net.module_) == before


# --- passed -------------------------------------------------------------------------------------------------------


class ConstantBuffer(Net):
    def __init__(self):
        super().__init__()
        self.register_buffer("shift", torch.arange(5.0))
        self.names, self.table = {"a": [1, (2.5, "x")]}, np.arange(3)

    def forward(self, inputs):
        return self.head(inputs - self.shift)


def test_constants_of_every_kind_pass():
    engine_for(seeded(ConstantBuffer))


# --- contents -----------------------------------------------------------------------------------------------------


class Thing:
    def __init__(self):
        self.inner = {
            "list": [1, 2],
            "set": {3},
            "array": np.zeros(2),
            "tensor": torch.zeros(2),
            "deque": collections.deque(),
        }


def changed(make, change):
    one, other = make(), make()
    assert contents(one) == contents(one)
    before = contents(other)
    change(other)
    return contents(other) != before


@pytest.mark.parametrize(
    "change",
    [
        lambda one: one.inner["list"].append(3),
        lambda one: one.inner["set"].add(4),
        lambda one: one.inner["array"].__setitem__(0, 1.0),
        lambda one: one.inner["tensor"].add_(1.0),
        lambda one: one.inner["deque"].append(1),
        lambda one: one.inner.update(more=1),
        lambda one: setattr(one, "more", None),
        lambda one: setattr(one.inner["tensor"], "more", 1),
    ],
)
def test_changes_at_any_depth_are_seen(change):
    assert changed(Thing, change)


def test_generators_counters_and_strings_in_memory_are_compared_too():
    import io
    import random

    assert changed(lambda: [random.Random(0)], lambda one: one[0].random())
    assert changed(lambda: [np.random.default_rng(0)], lambda one: one[0].random())
    assert changed(lambda: [io.StringIO()], lambda one: one[0].write("x"))
    assert changed(lambda: [collections.Counter("a")], lambda one: one[0].update("a"))
    assert changed(lambda: [collections.OrderedDict(a=1)], lambda one: one[0].update(a=2))
    assert changed(lambda: [iter([1, 2, 3])], lambda one: next(one[0]))


class Text(str):
    """A string that can hold more than its letters."""


def test_a_subclass_of_a_simple_type_may_hold_something():
    assert changed(lambda: [Text("a")], lambda one: setattr(one[0], "more", 1))


def test_a_file_with_the_name_of_a_module_of_python_is_a_users(tmp_path, monkeypatch):
    made = types.ModuleType("profile")
    made.__file__ = str(tmp_path / "profile.py")
    monkeypatch.setitem(sys.modules, "profile", made)
    state._is_library.cache_clear()
    kind = type("Mine", (), {"__module__": "profile", "kept": []})
    assert changed(lambda: kind(), lambda one: one.kept.append(1))
    state._is_library.cache_clear()


def test_equal_contents_are_equal_and_cycles_end():
    one = [1, {"a": (2, 3)}]
    one.append(one)
    assert contents(one) == contents(one)
    assert contents([1, {"a": (2, 3)}]) == contents([1, {"a": (2, 3)}])
    assert contents(["a", "b"]) != contents(["ab"])
    assert contents([1, [2]]) != contents([1, 2])
    assert contents(F.relu) == contents(F.relu)
    assert contents(mlp()) == contents(mlp())


# --- for other processes ----------------------------------------------------------------------------------------------


def defined(body):
    """What a script defines each time that it runs."""
    space = {"nn": nn, "torch": torch, "__name__": "script"}
    exec(body, space)
    return space["made"]


def lasting(body):
    return contents(defined(body), lasting=True)


CODE = """
factor = 2.0
def helper(value): return value * factor
class Base:
    names = {"b", "a", "c"}
class Made(Base):
    def __init__(self): self.kind, self.weak = (1, 2), helper
    def forward(self, value): return [helper(one) for one in value if one in ("x", "y")]
made = Made()
"""


def test_the_same_code_run_again_has_the_same_lasting_digest_and_others_have_not():
    assert lasting(CODE) == lasting(f"\n\n{CODE}")
    for old, new in (
        ("factor = 2.0", "factor = 2.5"),
        ("value * factor", "value + factor"),
        ('"a", "c"', '"a", "d"'),
        ("(1, 2)", "(1, 3)"),
        ('("x", "y")', '("x", "z")'),
        ("helper(one)", "abs(one)"),
        ("class Made(Base)", "class Made"),
    ):
        assert lasting(CODE) != lasting(CODE.replace(old, new)), new


def test_installed_packages_count_by_their_names_and_versions_alone(monkeypatch):
    import joblib

    before, here = contents(joblib.Memory, lasting=True), contents(joblib.Memory)
    monkeypatch.setattr(joblib.Memory, "more", 1, raising=False)
    assert contents(joblib.Memory, lasting=True) == before
    assert contents(joblib.Memory) != here
    monkeypatch.setattr(joblib, "__version__", "0.0")
    assert contents(joblib.Memory, lasting=True) != before


def test_the_file_of_a_users_module_counts(tmp_path, monkeypatch):
    (tmp_path / "my_helpers.py").write_text("def double(value): return 2 * value")
    monkeypatch.syspath_prepend(tmp_path)
    user = (
        "import my_helpers\nclass Made:\n    def forward(self, value): return my_helpers.double(value)\nmade = Made()"
    )
    before = lasting(user)
    assert lasting(user) == before
    (tmp_path / "my_helpers.py").write_text("def double(value): return 3 * value")
    assert lasting(user) != before


def test_variables_of_a_users_module_count_by_their_values(tmp_path, monkeypatch):
    """A value that a script sets after the import stands in no file."""
    (tmp_path / "my_settings.py").write_text("scale, other, table = 1.0, 1.0, {'a': 1}\ndef by(v): return v * scale")
    monkeypatch.syspath_prepend(tmp_path)
    import my_settings

    for code in (
        "return my_settings.scale * value * my_settings.table['a']",
        "return my_settings.by(value) * len(my_settings.table)",
        "mine = my_settings; return mine.scale, mine.table",
        "import my_settings as inner; return inner.scale, inner.table",
        "from my_settings import scale, table; return scale, table",
        "return (lambda: (my_settings.scale, my_settings.table))()",
        "return getattr(my_settings, 'sca' + 'le'), my_settings.table",
    ):
        user = f"import my_settings\nclass Made:\n    def forward(self, value): {code}\nmade = Made()"
        before = lasting(user)
        monkeypatch.setattr(my_settings, "scale", 2.0)
        assert lasting(user) != before, code
        monkeypatch.setattr(my_settings, "scale", 1.0)
        assert lasting(user) == before, code
        monkeypatch.setitem(my_settings.table, "a", 2)
        assert lasting(user) != before, code
        monkeypatch.setitem(my_settings.table, "a", 1)
    before = lasting("import my_settings\ndef made(): return my_settings.scale")
    monkeypatch.setattr(my_settings, "other", 3.0)
    assert lasting("import my_settings\ndef made(): return my_settings.scale") == before


def test_what_forward_reads_of_a_users_module_must_not_change_either():
    module = types.ModuleType("counting_of_a_user")
    module.calls, module.inner = 0, types.SimpleNamespace(calls=0)
    one = lambda: (module.calls, module.inner.calls)  # noqa: E731
    assert changed(lambda: one, lambda _: setattr(module, "calls", module.calls + 1))
    assert changed(lambda: one, lambda _: setattr(module.inner, "calls", module.inner.calls + 1))


def test_a_lasting_digest_has_no_address_in_it():
    import threading

    for make in (threading.Lock, object, lambda: weakref.ref(mlp), lambda: {threading.Lock()}):
        kept = [make() for _ in range(3)]
        assert len({contents(one, lasting=True) for one in kept}) == 1
