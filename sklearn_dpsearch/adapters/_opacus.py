"""skorch nets that Opacus makes private, planned and then compared with Opacus's history.

The plan comes before any record: noise, number of batches and epochs are parameters of the net.
Opacus's loader takes its sampling rate from the number of batches of the loader that it is given,
so the search hands out loaders with the planned number. After each training the history of Opacus's
accountant must be exactly the planned one.
"""

from __future__ import annotations

import math
import numbers
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NoReturn

from .._process import steps_now
from ..privacy import DPSGD, Guarantee, LeakingEstimatorError, NonPrivate, PrivacyError, calibrate
from ..privacy._checks import Neighboring
from ..privacy._statement.content import short_up
from . import _foreign_skorch_nets as foreign_nets
from ._adapter import Adapter, Estimator, Names, Parameters, TrainingRun, positive

#: Parameters of which a net has one, at least: its noise.
NOISE = ("noise_multiplier", "target_epsilon")
#: Parameters on which the guarantee depends.
PARAMETERS = (
    *(*NOISE, "target_delta", "batch_size", "max_epochs"),
    *("iterator_train", "iterator_train__batch_size"),
)
#: Opacus draws a record into a batch where a single-precision number of 24 bits is below the rate.
ROUNDING = 2.0**-23
#: Optimizers of Opacus that clip each record's gradient themselves, and note the noise that they
#: add.
OPTIMIZERS = ("DPOptimizer", "DPPerLayerOptimizer")
#: skorch's callbacks that choose by exact losses.
CHOOSING_CALLBACKS = ("EarlyStopping", "Checkpoint")
#: Attribute of a net in training with the seed of PyTorch's generator before it.
SEED = "_seed_of_torch_"

MIXIN = "or derive the net from sklearn_dpsearch.nets.OpacusNet, which does all of this"


@dataclass(frozen=True, kw_only=True)
class OpacusPlan:
    """Noise, sampling rate and number of steps of one training, from parameters alone.

    Parameters
    ----------
    batches : int
        Number of batches in the loader that Opacus is given.
    epochs : int
    noise_multiplier : float, default=0.0
        0 where it is still to be calibrated.
    """

    batches: int
    epochs: int
    noise_multiplier: float = 0.0

    @property
    def sample_rate(self) -> float:
        """Sampling rate in Opacus's history."""
        return 1 / self.batches

    @property
    def steps(self) -> int:
        """Number of steps in Opacus's history."""
        return self.epochs * self.batches

    @property
    def guarantee(self) -> DPSGD:
        """Guarantee of one training, at the largest probability with which a record is drawn."""
        noise, rate = self.noise_multiplier, min(1.0, self.sample_rate + ROUNDING)
        return DPSGD(
            noise_multiplier=noise, sample_rate=rate, steps=self.steps, neighboring="zero_out"
        )


@lru_cache(maxsize=1024)
def _noise_for(epsilon: float, delta: float, plan: OpacusPlan) -> float:
    """Smallest noise multiplier found that meets the target. Opacus's own accountants take more."""
    return calibrate(lambda noise: replace(plan, noise_multiplier=noise).guarantee, epsilon, delta)


@dataclass(frozen=True)
class PlannedBatches:
    """Maker of loaders with a planned number of batches, for any number of records.

    It is the ``iterator_train`` of a net in a search. Opacus reads the number of batches and draws
    batches of its own. Batches that Opacus did not draw are an error.

    Parameters
    ----------
    iterator : callable
        The net's own ``iterator_train``.
    batches : int
    """

    iterator: Any
    batches: int

    def __call__(self, dataset: Any, **options: Any) -> Any:
        return of_batches(self.iterator(dataset, **options), self.batches)


def of_batches(loader: Any, batches: int) -> Any:
    """Loader with a planned number of batches, none of which it draws itself."""
    methods = {"__len__": lambda loader: batches, "__iter__": _not_drawn}
    loader.__class__ = type("PlannedLoader", (type(loader),), methods)
    return loader


def _not_drawn(loader: Any) -> NoReturn:
    raise LeakingEstimatorError(
        "Found training on batches that Opacus did not draw; Poisson sampling is needed. Train on "
        f"the loader that PrivacyEngine.make_private returns, with poisson_sampling=True, {MIXIN}."
    )


class OpacusAdapter(Adapter):
    """skorch nets of others whose training makes itself private with ``opacus.PrivacyEngine``.

    Such a net has the parameter ``noise_multiplier``, or ``target_epsilon`` with ``target_delta``;
    its ``batch_size`` and ``max_epochs`` are skorch's. A trained net has Opacus's optimizer.
    """

    def recognises(self, estimator: object) -> bool:
        states_guarantee = foreign_nets.SkorchAdapter().recognises(estimator)
        if states_guarantee or not foreign_nets.is_net_of_others(estimator):
            return False
        return any(name in vars(estimator) for name in NOISE)

    def training_run(self, estimator: Estimator, n_samples: int | None) -> TrainingRun:
        for look in _readings_without_noise(estimator):
            raise LeakingEstimatorError(f"Found {look}")
        planned = plan_of(estimator, n_samples)
        unknown: Guarantee = NonPrivate(neighboring="zero_out")
        guarantee = unknown if planned is None else planned.guarantee
        return TrainingRun(guarantee=guarantee, assumptions=assumptions_of(estimator, planned))

    def scaled_privacy(
        self, estimator: Estimator, factor: float, varying: Names = frozenset()
    ) -> Parameters:
        parameters = estimator.get_params(deep=False)
        noise, epsilon = (parameters.get(name) for name in NOISE)
        if noise is None and epsilon is not None:
            return {"target_epsilon": epsilon * factor}
        return {"noise_multiplier": (1.0 if noise is None else noise) / factor}

    def privacy_parameters(self, estimator: Estimator) -> tuple[str, ...]:
        return PARAMETERS

    def under(self, estimator: Estimator, neighboring: Neighboring) -> Parameters | None:
        return {} if neighboring == "zero_out" else None

    def for_records(self, estimator: Estimator, n: int, places: int | None = None) -> None:
        if not isinstance(loader := vars(estimator)["iterator_train"], PlannedBatches):
            batches = _number_of_batches(estimator.get_params(deep=False), n)
            vars(estimator)["iterator_train"] = PlannedBatches(loader, batches)

    def prepare(self, model: Estimator) -> None:
        """Note the net's own loader and the seed of PyTorch; a rehearsal takes few batches."""
        unfitted = foreign_nets.keep_unfitted(model)
        if isinstance(planned := vars(model)["iterator_train"], PlannedBatches):
            vars(unfitted)["iterator_train"] = planned.iterator
            vars(model)["iterator_train"] = replace(planned, batches=steps_now(planned.batches))
        vars(model)[SEED] = _torch_seed()

    def finish(self, model: Estimator) -> None:
        _check_history(model)

    def scrub(self, model: Estimator) -> None:
        foreign_nets.rebuild_net(model, buffers=False)


# --- before the training --------------------------------------------------------------------------


def plan_of(net: Any, n_samples: int | None) -> OpacusPlan | None:
    """Plan of one training; None where the number of records is needed and not known.

    Parameters
    ----------
    net : skorch.NeuralNet
        Its parameters are looked at.
    n_samples : int or None
        Number of records, which is public.

    Raises
    ------
    PrivacyError
        For missing noise, and for parameters that are no numbers in their range.
    """
    owner, parameters = type(net).__name__, net.get_params(deep=False)
    below = {"noise_multiplier": math.inf, "target_epsilon": math.inf, "target_delta": 1.0}
    bounds = {name: end for name, end in below.items() if parameters.get(name) is not None}
    values = {name: positive(owner, name, parameters[name], end) for name, end in bounds.items()}
    noise = values.keys() - {"target_delta"}
    if noise != {"noise_multiplier"} and values.keys() != {"target_epsilon", "target_delta"}:
        raise PrivacyError(
            f"Found {values or 'no noise'} in {owner}; noise_multiplier=..., or target_epsilon=... "
            "with target_delta=..., is needed (none of them in a search with epsilon=, which sets "
            "noise_multiplier)."
        )
    epochs = _whole_number("max_epochs", parameters["max_epochs"])
    loader = parameters["iterator_train"]
    if isinstance(loader, PlannedBatches):
        batches = loader.batches
    elif loader is not sys.modules["torch"].utils.data.DataLoader:
        raise PrivacyError(
            f"Found iterator_train={loader!r} in {owner}; skorch's default, "
            "torch.utils.data.DataLoader, is needed: Opacus takes the sampling rate from its "
            "number of batches."
        )
    elif n_samples is None:
        return None
    else:
        batches = _number_of_batches(parameters, n_samples)
    plan = OpacusPlan(batches=batches, epochs=epochs)
    noise_multiplier = values.get("noise_multiplier")
    if noise_multiplier is None:
        noise_multiplier = _noise_for(values["target_epsilon"], values["target_delta"], plan)
    return replace(plan, noise_multiplier=noise_multiplier)


def _number_of_batches(parameters: Mapping[str, Any], n: int) -> int:
    size = parameters.get("iterator_train__batch_size", parameters["batch_size"])
    # -1: skorch's word for all records
    batches = 1 if size == -1 else math.ceil(n / _whole_number("batch_size", size))
    while int(1 / (1 / batches)) < batches:  # Opacus would draw 92 for a loader of 93
        batches -= 1
    return batches


def _whole_number(name: str, value: Any) -> int:
    good = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not good or float(value) < 1 or not float(value).is_integer():
        raise PrivacyError(f"Found {name}={value!r}; a whole number of at least 1 is needed.")
    return int(value)


def _readings_without_noise(net: Any) -> Iterator[str]:
    """Parameters of skorch by which trainings read records without noise, each with the remedy."""
    name = type(net).__name__
    if net.train_split is not None:
        yield (
            f"train_split={net.train_split!r} in {name}: validation inside of a fit reads records "
            "without noise. Give train_split=None; the search validates candidates itself."
        )
    if getattr(net, "classes", ()) is None:
        yield (
            f"classes=None in {name}: skorch takes the labels from y, which tells which ones "
            "occur. Give classes=[...], in the order of the module's outputs."
        )
    if vars(net).get("iterator_train__generator") is not None:
        yield (
            f"iterator_train__generator in {name}: its seed tells which records are in which "
            "batch. Leave it out."
        )
    for entry in net.callbacks or () if net.callbacks != "disable" else ():
        callback = entry[1] if isinstance(entry, tuple) else entry
        kind = callback if isinstance(callback, type) else type(callback)
        parents = (base for base in kind.__mro__ if base.__module__.startswith("skorch."))
        names = {parent.__name__ for parent in parents}
        if names & set(CHOOSING_CALLBACKS) and "TrainEndCheckpoint" not in names:
            yield (
                f"the callback {kind.__name__} in {name}, which stops or chooses by losses without "
                "noise. Leave it out, and search over max_epochs."
            )
        policy = getattr(callback, "policy", None)
        if getattr(policy, "__name__", policy) == "ReduceLROnPlateau":
            yield (
                f"ReduceLROnPlateau in {name}, which looks at losses without noise. Give "
                "LRScheduler a policy that counts steps."
            )


def assumptions_of(net: Any, plan: OpacusPlan | None) -> tuple[str, ...]:
    """Assumptions of the guarantee, as plain sentences."""
    name = type(net).__name__
    cut = "" if plan is None else f", which adds at most {_words_of_cut(net, plan)} to delta"
    return (
        f"{name}: batches, per-sample gradients, clipping and noise are Opacus's; the history of "
        "its accountant was compared with the plan after each training.",
        f"{name}: its code and module learn from records through Opacus's optimizer alone; initial "
        "parameters hold nothing of the records; every gradient is finite.",
        f"{name}: batches and noise come from PyTorch's generators, whose state is from the "
        f"operating system (on a GPU 64 bits of it); noise is in single precision, which ends at "
        f"5.77 standard deviations{cut}.",
        foreign_nets.PARAMETERS_ONLY.format(name),
    )


#: Largest normal of PyTorch's in single precision: from 24 random bits.
LARGEST_NORMAL = math.sqrt(2 * 24 * math.log(2))


def delta_of_cut(plan: OpacusPlan, n_parameters: int) -> float:
    """Bound on the probability with which noise tells of a record by where the normals end.

    A record that is in a batch moves d coordinates by at most 1/σ together, in units of the noise.
    The noise leaves what it could be without the record with probability Σ g(s_i), g(s) = Φ(c) −
    Φ(c − s). Coordinates with s ≤ 2/c add at most e²·φ(c)·Σ s_i ≤ e²·φ(c)·√d/σ. From there to c,
    g(s)/s² rises, so the others add at most g(1/σ) together. Inside of what both can be the
    likelihood ratio is that of the normals, so this is added to δ, for each step with the record.

    Parameters
    ----------
    plan : OpacusPlan
    n_parameters : int
        Number of trained parameters, d.
    """
    c, shift = LARGEST_NORMAL, 1 / plan.noise_multiplier
    density = math.exp(-(c**2) / 2) / math.sqrt(2 * math.pi)
    beyond = math.erfc(c / math.sqrt(2)) / 2
    alone = math.erfc((c - shift) / math.sqrt(2)) / 2 - beyond
    one_step = (math.e**2 * density * math.sqrt(n_parameters) * shift + alone) / (1 - 2 * beyond)
    if shift > c:
        one_step = 1.0
    return min(1.0, plan.steps * min(1.0, plan.sample_rate + ROUNDING) * one_step)


def _words_of_cut(net: Any, plan: OpacusPlan) -> str:
    """Bound of ``delta_of_cut`` for the net's module, as a text.

    For a class, the text says how the bound depends on the number of parameters.
    """
    if plan.noise_multiplier <= 0:
        return "1"
    if hasattr(net.module, "parameters") and not isinstance(net.module, type):
        trained = [part.numel() for part in net.module.parameters() if part.requires_grad]
        return short_up(delta_of_cut(plan, sum(trained)))
    at_million = short_up(delta_of_cut(plan, 10**6))
    return f"{at_million} (for a million parameters; it grows with their square root)"


# --- after the training ---------------------------------------------------------------------------


def _check_history(net: Any) -> None:
    """Raise unless a net was trained as planned, by Opacus and without a known seed.

    Noise, rates and steps have to be the planned ones, and the optimizer one of Opacus's.
    """
    name, planned, optimizer = type(net).__name__, plan_of(net, None), net.optimizer_
    assert planned is not None
    kind = type(optimizer)
    if not kind.__module__.startswith("opacus.") or kind.__name__ not in OPTIMIZERS:
        raise LeakingEstimatorError(
            f"Found {kind.__module__}.{kind.__name__} as optimizer_ of a trained {name}; one of "
            f"{list(OPTIMIZERS)} of opacus.optimizers is needed. Set module_ and optimizer_ to "
            f"what make_private returns, {MIXIN}."
        )
    generator_given = optimizer.generator is not None and not optimizer.secure_mode
    if generator_given or vars(net).get(SEED) != _torch_seed():
        raise LeakingEstimatorError(
            f"Found a seed of PyTorch set in the training of {name} (noise_generator, "
            "torch.manual_seed): all candidates would have the same noise, and the seed is enough "
            "to take it away. Set no seed."
        )
    history = history_of(optimizer)
    noises, rates, steps = (list(column) for column in zip(*history))
    more = sum(steps) != planned.steps or max(rates) > planned.sample_rate
    if more or min(noises) < planned.noise_multiplier:
        raise LeakingEstimatorError(
            f"Found a training of {name} with (noise_multiplier, sample_rate, steps) = {history}; "
            f"planned was ({planned.noise_multiplier:g}, {planned.sample_rate:g}, "
            f"{planned.steps}). Take the noise from the parameter noise_multiplier (or "
            f"target_epsilon), train max_epochs epochs, and call make_private once, {MIXIN}."
        )


def history_of(optimizer: Any) -> list[tuple[float, float, int]]:
    """History that Opacus's accountant keeps of an optimizer.

    It holds (noise multiplier, sample rate, steps) of each phase.
    """
    cells = getattr(optimizer.step_hook, "__closure__", None) or ()
    contents = (cell.cell_contents for cell in cells)
    accountant = next((content for content in contents if hasattr(content, "history")), None)
    if accountant is None or not type(accountant).__module__.startswith("opacus.accountants"):
        return [(0.0, 1.0, 0)]
    return [(float(noise), float(rate), int(steps)) for noise, rate, steps in accountant.history]


def _torch_seed() -> int:
    return int(sys.modules["torch"].initial_seed())
