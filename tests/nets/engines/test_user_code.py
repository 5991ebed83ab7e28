"""Code of a user's own: what would see other records, or tell how many there are, is refused before it is run."""

from __future__ import annotations

import contextvars
import functools
import itertools
import logging
import math
import os
import random
import sys
import threading
import time
import types
import warnings

import numpy as np
import pytest

pytest.importorskip("torch")
import torch
from torch import nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from sklearn_dpsearch.nets.engines import engine_choice, probe
from sklearn_dpsearch.nets.engines.user_code import refuse_code
from sklearn_dpsearch.nets.engines.vmap import VmapEngine
from sklearn_dpsearch.nets.randomness import global_torch_seed
from sklearn_dpsearch.privacy import LeakingEstimatorError

from ..toys import CPU, clipped_sums, inserted, largest_change, seeded, table

SUM = nn.CrossEntropyLoss(reduction="sum")


class Net(nn.Module):
    """No graph: a constant that forward makes itself."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(5, 16), nn.Linear(16, 3)

    def head(self, inputs):
        return self.last(torch.relu(self.first(inputs + torch.zeros(5))))


def change_at(engine, net, place):
    """By how many norms one more record at a place changes a sum, with the same secrets."""
    (inputs, targets), (extra, labels) = table(40), table(1, seed=1)

    def total(rows, answers):
        with global_torch_seed(0):
            return clipped_sums(engine, net, rows, answers)

    joined = inserted(inputs, extra[0], place), inserted(targets, labels[0], place)
    return float((total(*joined) - total(inputs, targets)).norm())


# --- random numbers of a place ---------------------------------------------------------------------------------------


class Seeds(Net):
    def forward(self, inputs):
        torch.manual_seed(0)
        return self.last(F.dropout(torch.relu(self.first(inputs + torch.zeros(5))), 0.5))


class SeedsByAnotherName(Net):
    def forward(self, inputs):
        library = torch
        getattr(library, "manual" + "_seed")(0)
        return self.last(F.dropout(torch.relu(self.first(inputs + torch.zeros(5))), 0.5))


class Forks(Net):
    def forward(self, inputs):
        with torch.random.fork_rng():
            return self.last(F.dropout(torch.relu(self.first(inputs + torch.zeros(5))), 0.5))


class ForksByAnotherName(Net):
    """The same secret numbers for each chunk."""

    def forward(self, inputs):
        with getattr(torch.random, "fork" + "_rng")():
            return self.last(F.dropout(torch.relu(self.first(inputs + torch.zeros(5))), 0.5))


class SeedsBetween(Net):
    """Public numbers, and then the secret ones again where they were."""

    def forward(self, inputs):
        hidden, state = torch.relu(self.first(inputs + torch.zeros(5))), getattr(torch, "get_rng" + "_state")()
        getattr(torch, "manual" + "_seed")(0)
        hidden = F.dropout(hidden, 0.5)
        getattr(torch, "set_rng" + "_state")(state)
        return self.last(F.dropout(hidden, 0.5))


class OwnGenerator(Net):
    def forward(self, inputs):
        mask = torch.rand((1, 16), generator=torch.Generator().manual_seed(0)) < 0.5
        return self.last(torch.relu(self.first(inputs + torch.zeros(5))) * mask)


class OwnGeneratorByAnotherName(Net):
    def forward(self, inputs):
        hidden = F.dropout(torch.relu(self.first(inputs + torch.zeros(5))), 0.5)  # from the secret one
        return self.last(hidden * (torch.rand((1, 16), generator=getattr(torch, "Gen" + "erator")()) < 0.5))


OF_A_SCRIPT = torch.Generator()


class GeneratorInAGraph(Net):
    """All but the generator would be a graph."""

    def forward(self, inputs):
        mask = torch.rand((inputs.shape[0], 1), generator=OF_A_SCRIPT)
        return self.last(torch.relu(self.first(inputs)) * mask)


class KeepsAGenerator(Net):
    def __init__(self):
        super().__init__()
        self.generator = torch.Generator()

    def forward(self, inputs):
        return self.head(inputs)


class CopiesWithNoise(Net):
    """A number for all records of a chunk."""

    def __deepcopy__(self, memo):
        made = CopiesWithNoise()
        made.first, made.last, made.shift = self.first, self.last, torch.rand(())
        return made

    def forward(self, inputs):
        return self.head(inputs + getattr(self, "shift", 0.0))


class SeedingLoss(nn.Module):
    def forward(self, outputs, targets):
        torch.manual_seed(0)
        return (F.cross_entropy(outputs, targets, reduction="none") * torch.rand(1)).sum()


PLACED = [
    Seeds, SeedsByAnotherName, SeedsBetween, Forks, ForksByAnotherName, OwnGenerator, OwnGeneratorByAnotherName,
    GeneratorInAGraph, KeepsAGenerator, CopiesWithNoise,
]  # fmt: skip


@pytest.mark.parametrize("kind", PLACED)
def test_generators_that_are_changed_or_brought_are_refused(kind):
    with pytest.raises(LeakingEstimatorError, match="(?s)(generator|random numbers).* (Draw|Remove|Needed)"):
        largest_change(seeded(kind), SUM, *table(40), *table(2, seed=1))


@pytest.mark.parametrize("kind", [SeedsByAnotherName, SeedsBetween, ForksByAnotherName, OwnGeneratorByAnotherName])
def test_generators_that_no_reading_finds_are_seen_where_numbers_are_drawn(kind):
    net = seeded(kind)
    engine = VmapEngine(net, SUM, CPU)
    with pytest.raises(LeakingEstimatorError, match="(?s)in forward or in the criterion.*place in the batch"):
        change_at(engine, net, 0)


def test_a_criterion_that_seeds_is_refused():
    with pytest.raises(LeakingEstimatorError, match=r"manual_seed in SeedingLoss\.forward.*as training has seeded"):
        largest_change(seeded(Net), SeedingLoss(), *table(40), *table(2, seed=1))


class Draws(Net):
    def forward(self, inputs):
        return self.last(F.dropout(torch.relu(self.first(inputs + torch.zeros(5))), 0.5, self.training))


@pytest.mark.slow
@pytest.mark.parametrize("place", [0, 20, 40])
def test_one_more_record_moves_secret_masks_and_nothing_else(place):
    """Over many seeds the other records contribute what they contribute without it: masks are exchangeable."""
    net, ((inputs, targets), (extra, labels)) = seeded(Draws), (table(12), table(1, seed=1))
    engine = engine_choice.engine_for(net, SUM, *probe.records_for(net, inputs, targets), CPU)
    assert engine.draws

    def mean(rows, answers):
        total = 0.0
        for seed in range(400):
            with global_torch_seed(seed):
                total = total + clipped_sums(engine, net, rows, answers) / 400
        return total

    joined = inserted(inputs, extra[0], place), inserted(targets, labels[0], place)
    assert float((mean(*joined) - mean(inputs, targets)).norm()) <= 1.15


def test_code_that_draws_nothing_may_draw_nothing_later():
    engine = engine_choice.engine_for(seeded(Plain), SUM, *probe.made_up(*table()), CPU)
    assert not engine.draws
    net = seeded(Draws)
    engine = VmapEngine(net, SUM, CPU)
    engine.draws = False
    with pytest.raises(RuntimeError, match="random"):
        change_at(engine, net, 0)


# --- what sees through vmap -------------------------------------------------------------------------------------------


class Unwraps(Net):
    def forward(self, inputs):
        return self.head(inputs - torch.func.debug_unwrap(inputs.detach()).mean())


class UnwrapsWithin(Net):
    def forward(self, inputs):
        return self.head(inputs - torch._C._functorch.get_unwrapped(inputs.detach()).mean())


class Frames(Net):
    def forward(self, inputs):
        return self.head(inputs / len(sys._getframe(1).f_locals))


class Counting(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class Dispatches(Net):
    def forward(self, inputs):
        with Counting():
            return self.head(inputs)


class DispatchesByAnotherName(Net):
    def forward(self, inputs):
        mode = getattr(__import__("torch").utils.flop_counter, "Flop" + "CounterMode")
        with mode(display=False):
            return self.head(inputs)


class Functions(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class OpensFunctions(Net):
    def forward(self, inputs):
        with Functions():
            return self.head(inputs)


class SwitchesOff(Net):
    def forward(self, inputs):
        with torch._C.DisableTorchFunction():
            return self.head(inputs * len(repr(inputs)))


class OfAKind(torch.Tensor):
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class MakesAKind(Net):
    def forward(self, inputs):
        return self.head(inputs.as_subclass(OfAKind))


SEEING = [Unwraps, UnwrapsWithin, Frames, Dispatches, OpensFunctions, SwitchesOff, MakesAKind, DispatchesByAnotherName]


@pytest.mark.parametrize("kind", SEEING)
def test_what_sees_other_records_is_refused(kind):
    with pytest.raises(LeakingEstimatorError, match="sees the other records|cannot be read"):
        refuse_code(seeded(kind), SUM)
    with pytest.raises(LeakingEstimatorError):
        largest_change(seeded(kind), SUM, *table(40), *table(2, seed=1))


class AddsUnwritten(Net):
    def forward(self, inputs):
        return self.head(inputs + torch.empty(5))


class MakesTensors(Net):
    def forward(self, inputs):
        return self.head(inputs + torch.Tensor(5))


class GrowsTensors(Net):
    def forward(self, inputs):
        return self.head(inputs + torch.zeros(1).resize_(5))


class ChecksTensors(Net):
    def forward(self, inputs):
        return self.head(inputs if torch.is_tensor(inputs) else torch.zeros_like(inputs))


@pytest.mark.parametrize("kind", [AddsUnwritten, MakesTensors, GrowsTensors])
def test_memory_that_nothing_was_written_to_is_refused(kind):
    with pytest.raises(LeakingEstimatorError, match="may hold other records.*Use torch.zeros"):
        refuse_code(seeded(kind), SUM)
    refuse_code(seeded(ChecksTensors), SUM)


def test_a_mode_that_no_reading_finds_is_seen_where_it_is_open():
    net = seeded(DispatchesByAnotherName)
    __import__("torch.utils.flop_counter")
    with pytest.raises(LeakingEstimatorError, match="a mode of PyTorch"):
        change_at(VmapEngine(net, SUM, CPU), net, 0)


class Spoken(torch.autograd.Function):
    """What PyTorch calls itself is watched too."""

    generate_vmap_rule = True

    @staticmethod
    def forward(values):
        return values * len(repr(values))

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, slope):
        return slope


class SpokenBack(Spoken):
    @staticmethod
    def forward(values):
        return values * 1

    @staticmethod
    def backward(ctx, slope):
        return slope * len(f"{slope}")


@pytest.mark.parametrize("function", [Spoken, SpokenBack])
def test_text_inside_of_functions_with_their_own_gradient_is_refused(function):
    class Speaks(Net):
        def forward(self, inputs):
            return self.last(function.apply(torch.relu(self.first(inputs + torch.zeros(5)))))

    with pytest.raises(LeakingEstimatorError, match="a tensor is printed"):
        largest_change(seeded(Speaks), SUM, *table(40), *table(2, seed=1))


# --- states that advance from call to call ----------------------------------------------------------------------------

COUNTER, ENDLESS = itertools.count(), (float(i) for i in range(10**9))
LIST = iter([0.1] * 10**6)
SOURCE, NUMPYS, WEAK = random.Random(0), np.random.default_rng(0), threading.local()
helpers = types.ModuleType("helpers_of_a_user")
helpers.calls, helpers.counter, helpers.scale = 0, itertools.count(), 2.0
helpers.double = lambda value: value * next(helpers.counter)


@functools.lru_cache
def cached(shift):
    return torch.full((5,), shift)


class Cached(Net):
    def forward(self, inputs):
        return self.head(inputs + cached(1.0))


class CachedMethod(Net):
    @functools.lru_cache  # noqa: B019
    def shift(self):
        return 1.0

    def forward(self, inputs):
        return self.head(inputs + self.shift())


class CountsOnAModule(Net):
    def forward(self, inputs):
        helpers.calls += 1
        return self.head(inputs + helpers.calls)


class CountsOnALibrary(Net):
    def forward(self, inputs):
        torch.calls = getattr(torch, "calls", 0) + 1
        return self.head(inputs + torch.calls)


class ByAnAlias(Net):
    def forward(self, inputs):
        mine = helpers
        return self.head(inputs + next(mine.counter))


class ByAnImport(Net):
    def forward(self, inputs):
        from time import perf_counter as clock

        return self.head(inputs + clock())


@functools.singledispatch
def dispatched(value):
    return next(COUNTER)


VARIABLE, TUPLE = contextvars.ContextVar("calls", default=0), (itertools.count(),)


class Attribute:
    def __get__(self, instance, owner=None):
        return next(COUNTER)


class Described(Net):
    shift = Attribute()

    def forward(self, inputs):
        return self.head(inputs + self.shift)


class Dictionary(dict):
    def __missing__(self, key):
        return next(COUNTER)


class Kind(type):
    @property
    def calls(cls):
        return next(COUNTER)


class OfKind(metaclass=Kind):
    pass


MISSING = Dictionary()


class Varied(nn.Module):
    def forward(self, weight):
        return weight * (1 + random.random())


class Parametrized(Net):
    def __init__(self):
        super().__init__()
        nn.utils.parametrize.register_parametrization(self.first, "weight", Varied())

    def forward(self, inputs):
        return self.head(inputs)


class CopiedWithLuck:
    def __deepcopy__(self, memo):
        made = CopiedWithLuck()
        made.value = random.random()
        return made


class HoldsIt(Net):
    def __init__(self):
        super().__init__()
        self.held = CopiedWithLuck()

    def forward(self, inputs):
        return self.head(inputs + self.held.value)


def advancing(make):
    class Advancing(Net):
        def forward(self, inputs):
            return self.head(inputs + make())

    return Advancing


def with_default(draw):
    class WithDefault(Net):
        def forward(self, inputs, drawn=draw):
            return self.head(inputs + drawn())

    return WithDefault


class Holds(Net):
    def __init__(self):
        super().__init__()
        self.clock = time.perf_counter

    def forward(self, inputs):
        return self.head(inputs + self.clock())


class ByAGlobal(Net):
    def forward(self, inputs):
        global CALLS
        CALLS = 1
        return self.head(inputs)


ADVANCING = {
    "count": advancing(lambda: next(COUNTER)),
    "generator": advancing(lambda: next(ENDLESS)),
    "iterator": advancing(lambda: next(LIST)),
    "of a module": advancing(lambda: helpers.double(1.0)),
    "random": advancing(lambda: random.random()),
    "random of its own": advancing(lambda: SOURCE.random()),
    "NumPy": advancing(lambda: np.random.rand()),
    "NumPy's generator": advancing(lambda: NUMPYS.random()),
    "a generator in a moment": advancing(lambda: np.random.default_rng().random()),
    "clock": advancing(lambda: time.time() % 1),
    "of a thread": advancing(lambda: vars(WEAK).setdefault("calls", 1)),
    "text": advancing(lambda: eval("1.0")),
    "by default": with_default(random.random),
    "as an attribute": Holds,
    "set": advancing(lambda: setattr(math, "calls", getattr(math, "calls", 0) + 1) or math.calls),
    "dictionary of a module": advancing(lambda: math.__dict__.setdefault("calls", 1)),
    "in a tuple": advancing(lambda: next(TUPLE[0])),
    "dispatched": advancing(lambda: dispatched(1)),
    "of a context": advancing(lambda: VARIABLE.set(VARIABLE.get() + 1) and VARIABLE.get()),
    "environment": advancing(lambda: len(os.environ)),
    "descriptor": Described,
    "dictionary": advancing(lambda: MISSING["a"]),
    "metaclass": advancing(lambda: OfKind.calls),
    "parametrization": Parametrized,
    "copied object": HoldsIt,
    "cache": Cached,
    "cached method": CachedMethod,
    "module": CountsOnAModule,
    "library": CountsOnALibrary,
    "alias": ByAnAlias,
    "import": ByAnImport,
    "global": ByAGlobal,
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ADVANCING.values(), ids=ADVANCING)
def test_states_that_advance_with_each_call_are_refused_by_reading(kind):
    with pytest.raises(LeakingEstimatorError, match="(?s)Found .*: .*(advances|random numbers|cannot be read)"):
        refuse_code(seeded(kind), SUM)
    with pytest.raises(LeakingEstimatorError):
        largest_change(seeded(kind), SUM, *table(40), *table(2, seed=1))


def of_a_logger():
    logger.setLevel(logger.level + 1)
    return logger.level


def of_a_library():
    warnings.filters.append(("ignore", None, UserWarning, None, 0))
    return len(warnings.filters)


@pytest.mark.parametrize("state", [of_a_logger, of_a_library])
def test_states_of_libraries_that_advance_are_found_by_running_twice(state):
    with warnings.catch_warnings():
        level = logger.level
        with pytest.raises(LeakingEstimatorError, match="another loss for the same records.*next time.*advances"):
            largest_change(seeded(advancing(state)), SUM, *table(40), *table(2, seed=1))
        logger.setLevel(level)


@pytest.mark.slow
@pytest.mark.parametrize("draw", ["random.random", "numpy.random.rand"])
def test_random_numbers_that_libraries_draw_are_found_every_time(draw):
    space = {"__name__": "sklearn.made_up"}
    exec(f"import random, numpy\ndef shift(): return {draw}()", space)
    shift = space["shift"]

    class Shifted(Net):
        def forward(self, inputs):
            return self.head(inputs + shift())

    for _ in range(5):
        refuse_code(Shifted(), SUM)
        with pytest.raises(LeakingEstimatorError, match="random numbers of Python or NumPy"):
            engine_choice.engine_for(seeded(Shifted), SUM, *probe.made_up(*table()), CPU)


# --- accepted ---------------------------------------------------------------------------------------------------------

logger = logging.getLogger("of a user")
TABLE = {"scale": 2.0, "names": ("a", "b")}


class Generator(nn.Module):
    """A name that PyTorch has too."""

    def forward(self, inputs):
        return inputs


class Plain(Net):
    """What modules usually do."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList([nn.Linear(5, 5), Generator()])
        self.seed, self.activation, self.times = 3, "relu", np.sqrt(2.0)
        self.rng_used_once = None

    @property
    def size(self):
        return next(self.parameters()).shape[0]

    @functools.cached_property
    def factor(self):
        return 2.0

    def forward(self, inputs):
        logger.debug("forward")
        warnings.filters  # noqa: B018
        for i, layer in enumerate(self.layers):
            inputs = getattr(F, self.activation)(layer(inputs)) if i else layer(inputs)
        shift = functools.reduce(lambda one, other: one + other, (helpers.scale, TABLE["scale"], self.times))
        scaled = inputs / shift * self.size / np.pi
        scaled = torch.cat(list(torch.split(scaled, 2, dim=1)), dim=1)
        return super().head(scaled)


@pytest.mark.parametrize("place", [0, 20, 40])
def test_usual_code_is_accepted(place):
    net = seeded(Plain)
    engine = engine_choice.engine_for(net, SUM, *probe.made_up(*table()), CPU)
    assert (type(engine), engine.own_code) == (VmapEngine, True)
    assert change_at(engine, net, place) <= 1 + 1e-4


class Addresses(Net):
    def forward(self, inputs):
        return super().forward(inputs) * (1 + object().__hash__() % 7)


class AddressOfAnother(Net):
    def forward(self, inputs):
        return super().forward(inputs) * (1 + inputs.__hash__() % 7)


@pytest.mark.parametrize("kind", [Addresses, AddressOfAnother])
def test_addresses_of_objects_are_refused(kind):
    with pytest.raises(LeakingEstimatorError, match="(object|__hash__).*cannot be read"):
        refuse_code(seeded(kind), SUM)
