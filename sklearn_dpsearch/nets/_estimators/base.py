"""Base of skorch nets and ready-made nets: guarantee, training, warm start."""

from __future__ import annotations

import copy
import math
import numbers
from abc import abstractmethod
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils._param_validation import Interval, validate_parameter_constraints
from torch import nn

from ..._documentation import linked
from ..._process import contained, in_fixed_words, speaking, steps_now
from ...data._rows import ChosenRows
from ...errors import KnownArguments
from ...ledger._ledger_context import EntersFits, enter_fit
from ...privacy import Guarantee, compose
from ...privacy._checks import Neighboring, check_size_of_delta
from ...privacy._mechanisms.release_sum import is_listened_to
from ...privacy._spent import SEEDED_NOISE, Component, PrivacySpent, cost_of_fit
from .._estimators import cost, step_size
from .._fingerprint import words_of_training
from .._optimizers import Memory, Table, UpdateRule, memory_on_cpu
from .._randomness import Seed, seed_of_training, seed_sequence
from .._records import TrainingData
from .._stacked_training import TrainingTask
from .._torch_settings import checked_device
from .._training import train, train_together
from .settings import (
    CONSTRAINTS,
    NOISE,
    RATES,
    MaxGradNorm,
    Settings,
    follows_number,
    rate_of,
    settings_of,
)

#: First assumption of a net with ``engine="opacus"``.
OPACUS_ENGINE = (
    "{}: per-sample gradients are Opacus's (engine='opacus'); that each is of one record alone was "
    "not checked."
)

#: Attribute for the number of places of a net's next training: not a parameter, so that copies are
#: without it.
PLACES = "_places"


@linked
@dataclass(init=False, kw_only=True, eq=False, repr=False, match_args=False)
class DPSGDEstimator(KnownArguments, EntersFits, BaseEstimator):
    """Estimator that trains a torch module with DP-SGD.

    Parameters
    ----------
    noise_multiplier : float, optional
        Standard deviation of the noise ÷ ``max_grad_norm``.
    target_epsilon, target_delta : float, optional
        Instead: guarantee of one fit, to which the noise is calibrated.
    target_mu : float, optional
        Instead: μ of a Gaussian guarantee of one fit, to which the noise is calibrated at any rate
        and number of steps.
    batch_size : float, optional
        The expected batch size, in place of ``sample_rate``; the rate is ``batch_size`` ÷ the
        number of records. Together with ``sample_rate`` it is the constant by which sums are
        divided, and records are not counted.
    neighboring : {"zero_out", "replace_one"}, default="zero_out"
        Neighbouring relation: a record is blanked, or replaced by another. The number of records is
        public. Under "replace_one" DP-SGD costs up to twice as much, and composes with
        diffprivlib's models.
    max_steps : int, optional
        The number of steps, in place of ``max_epochs``.
    device : str, default="cpu"
        Device of the training.
    max_physical_batch : int, default=16384
        Most records in memory at once, over all nets trained together. Affects memory and time,
        never results.
    random_state : None, int or RandomState
        Seeds the initial parameters, which are public. Never the batches or the noise.
    noise_seed : None, int or RandomState
        For tests only: it voids the guarantee. Batches and noise follow from the seed, the records,
        initial parameters, module and criterion, each with its code, and the settings of the
        training: trainings that differ share no noise. Code of installed packages counts by name.
    verbose : {0, 1}, default=0
        1 shows on standard error how many steps are done, of a public number.

    Attributes
    ----------
    privacy_spent_ : PrivacySpent
        Cost of all training of the current parameters. Warm starts, ``partial_fit``, and nets that
        start from the trained module add to it.
    n_steps_, noise_multiplier_ : int, float
        Steps and noise of the last training.
    module_ : torch.nn.Module
        Trained module, with only its parameters.
    """

    #: Without a seed, batches and noise come from the operating system, in each fit.
    secure_without_seed = True
    #: Records may come as ``ChosenRows``: a search need not copy those that train.
    takes_chosen_rows = True

    #: Sampling rate where neither ``sample_rate`` nor ``batch_size`` is given; None: one of the two
    #: is needed.
    default_rate: ClassVar[float | None] = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **CONSTRAINTS,
        "max_physical_batch": [Interval(numbers.Integral, 1, None, closed="left")],
        "verbose": ["boolean", Interval(numbers.Integral, 0, 1, closed="both")],
    }

    # Constructor arguments of all nets.
    noise_multiplier: float | None = None
    target_epsilon: float | None = None
    target_delta: float | None = None
    target_mu: float | None = None
    max_grad_norm: MaxGradNorm = 1.0
    sample_rate: float | None = None
    batch_size: float | None = None
    neighboring: Neighboring = "zero_out"
    max_epochs: float = 10
    max_steps: float | None = None
    device: Any = "cpu"
    max_physical_batch: int = 16384
    random_state: Seed = None
    noise_seed: Seed = None
    verbose: int = 0

    # Of a fitted net: the trained module, and optimizer memory for the next ``partial_fit``.
    module_: nn.Module = field(init=False)
    optimizer_memory_: Memory = field(init=False)

    @property
    def privacy_spent_(self) -> PrivacySpent:
        """Cost of all training of the current parameters, which carry it with them."""
        return cost.stated_cost(self)

    @privacy_spent_.setter
    def privacy_spent_(self, spent: PrivacySpent) -> None:
        """Set the cost that a search states of its released model.

        Earlier costs stay noted.
        """
        cost.state_cost(self, spent, *vars(self).get("_inherited_", ()))

    @privacy_spent_.deleter
    def privacy_spent_(self) -> None:
        self.__dict__.pop("privacy_spent_")

    # --- guarantee of one fit, from constructor arguments alone -----------------------------------

    @property
    def privacy_parameters(self) -> tuple[str, ...]:
        """Names of the constructor arguments on which the guarantee depends."""
        # To target_mu the noise is calibrated for every rate and number of steps.
        return (*NOISE, "neighboring", *(RATES if self.target_mu is None else ()))

    def privacy_guarantee(self, n_samples: int | None = None) -> Guarantee:
        """Guarantee of one ``fit``; no data is needed.

        Parameters
        ----------
        n_samples : int, optional
            Number of records; needed where ``batch_size`` alone states the rate.

        Returns
        -------
        Guarantee
        """
        self._check_settings()
        return settings_of(self, n_samples).guarantee

    def privacy_assumptions(self, unit: str = "record") -> tuple[str, ...]:
        """Assumptions of the guarantee for records, or persons, as plain sentences."""
        name, seeded = type(self).__name__, self.noise_seed is not None
        source = "noise_seed" if seeded else "the operating system"
        return (
            *([OPACUS_ENGINE.format(name)] if getattr(self, "engine", "auto") == "opacus" else []),
            f"{name}: the number of {unit}s is public; batches and noise come from statistical "
            f"generators seeded by {source}, noise in double precision.",
            *([f"{name}: {SEEDED_NOISE}"] if seeded else []),
            *self._own_assumptions(),
        )

    def scaled_privacy(
        self, factor: float, varying: frozenset[str] = frozenset()
    ) -> dict[str, float | None]:
        """Parameters that make every fit ``factor`` times less private.

        1 stands for the noise as configured.

        If the candidates of a search vary the rate or the number of steps, the noise of each is
        calibrated to one Gaussian target, so that all have equal guarantees.
        """
        none: dict[str, float | None] = dict.fromkeys(NOISE)
        if varying & set(RATES):
            return {**none, "target_mu": (self.target_mu or 1.0) * factor}
        return {**none, "noise_multiplier": (self.noise_multiplier or 1.0) / factor}

    def expecting(self, n: float) -> dict[str, Any] | None:
        """Parameters with which ``fit`` uses the public number ``n`` in place of counting records.

        Sampling rate, number of steps and noise stay: the expected batch size follows. None where
        the rate follows from the number of records.
        """
        if follows_number(self):
            return None
        rate = rate_of(self)
        return {"sample_rate": rate, "batch_size": rate * n}

    def sized(self, n: float) -> dict[str, Any]:
        """Parameters that fix the sampling rate of trainings on ``n`` records, or on parts."""
        return {"sample_rate": rate_of(self, n), "batch_size": None} if follows_number(self) else {}

    def expected_number(self, n: int) -> float:
        """Number of records that the net expects: ``n``, unless its arguments tell another."""
        return settings_of(self, n).expected_number(n)

    def under(self, neighboring: Neighboring) -> dict[str, Any] | None:
        """Parameters for a guarantee, and for targets, under these neighbours, or None."""
        return None if neighboring == "add_remove" else {"neighboring": neighboring}

    def extrapolation(self) -> Mapping[str, str | Callable[..., float]]:
        """Rules by which parameters grow from few records to many.

        Sampling rate, noise and number of steps are equal.

        A numeric learning rate of SGD grows in proportion, so that the noise that reaches the
        parameters stays equal (Koskela & Kulkarni 2023, §3.2), at most to a long step of the
        derived rule. Parameters of adaptive optimizers keep their values, because these optimizers
        scale their steps themselves. So does the factor of a derived learning rate, which already
        follows the number of records.
        """
        if not self._uses_sgd():
            return {}
        # By rule, before the number of inputs is known: no regressor grows.
        unknown = math.inf if isinstance(self, RegressorMixin) else 1.0
        norm = unknown if self.max_grad_norm == "rule" else float(self.max_grad_norm)
        rule = partial(self._step_rule.grown, max_grad_norm=norm)
        return dict.fromkeys(("learning_rate_init", "lr", "optimizer__lr"), rule)

    @abstractmethod
    def search_space(self, *, grid: bool = False) -> list[dict[str, Any]]:
        """Candidates around the current parameters, for ``param_distributions="auto"`` of a search.

        Parameters
        ----------
        grid : bool, default=False
            Whether short lists of values are needed, for a whole grid.

        Returns
        -------
        list of dict
            Parameter name to a list of values or a distribution (docs/learn/spaces.md).
        """

    def _check_arguments(self) -> None:
        """Raise for arguments of a net that are wrong for all data."""
        self._check_settings()
        self._resolve_schema()

    def _check_settings(self) -> None:
        """Raise for arguments of a net that are wrong whatever the schema."""
        # Not _validate_params: skorch has a method of this name.
        stated = (vars(kind).get("_parameter_constraints", {}) for kind in type(self).__mro__)
        name = type(self).__name__
        validate_parameter_constraints(ChainMap(*stated), self.get_params(deep=False), name)
        settings_of(self, self.batch_size)
        self._check_net()

    def _resolve_schema(self) -> None:
        """Read the schema of a net, and raise for arguments that contradict it."""

    # --- hooks for each kind of net ---------------------------------------------------------------

    @abstractmethod
    def _check_net(self) -> None:
        """Raise for arguments that only one kind of net has."""

    @abstractmethod
    def _own_assumptions(self) -> tuple[str, ...]:
        """Assumptions of the guarantee that only one kind of net makes."""

    @abstractmethod
    def _uses_sgd(self) -> bool:
        """Return whether the optimizer is SGD, which moves by the gradient itself."""

    @abstractmethod
    def _prepare(self, X: Any, y: Any, fresh: bool, groups: Any) -> TrainingData:
        """Check the records, initialise the module, and return records for training."""

    def _module_in_training(self) -> nn.Module:
        """Module as it takes the inputs of a training."""
        return self.module_

    @abstractmethod
    def _training_criterion(self) -> nn.Module:
        """Criterion of a training, which sums the loss over records."""

    @abstractmethod
    def _step_facts(self, settings: Settings) -> step_size.StepFacts:
        """Public facts for step sizes, and for a clipping norm by rule."""

    @abstractmethod
    def _update(self) -> UpdateRule:
        """Update rule of the net's optimizer."""

    @abstractmethod
    def _schedule(self, settings: Settings, decay: list[float]) -> Table:
        """Hyperparameters of the optimizer that change from step to step."""

    def _before_training(self, task: TrainingTask, decay: list[float]) -> None:
        """Note facts of a training before its first step."""

    # --- training ---------------------------------------------------------------------------------

    def _task(self, settings: Settings, records: TrainingData, places: int | None) -> TrainingTask:
        """Training task of a net, by its arguments and its records."""
        expected = settings.expected_batch_size(records.units)
        facts, rule = self._step_facts(settings), self._step_rule
        step = rule.unclipped_step(settings.noise, expected, facts)
        self.max_grad_norm_ = norm = settings.max_grad_norm or rule.clipping_norm(step, facts)
        if facts.initial != "auto":
            step = float(facts.initial)
        elif self._uses_sgd():
            # each gradient moves by 1 ÷ (1 − momentum) steps in total
            step = step * (1.0 - facts.momentum) / norm
        else:
            # of Adam: where gradients are mostly noise, each moves a weight by about its size
            step = rule.noise / math.sqrt(facts.bound) / math.hypot(*facts.decay)
        self.learning_rate_init_ = facts.factor * step
        task = TrainingTask(
            module=self._module_in_training(),
            criterion=self._training_criterion(),
            optimizer=self._update(),
            sample_rate=settings.sample_rate,
            steps=steps_now(settings.steps),
            noise_multiplier=settings.noise,
            max_grad_norm=norm,
            expected_batch_size=expected,
            neighboring=settings.neighboring,
            places=places,
            schedule=self._schedule(settings, facts.decay),
            engine=getattr(self, "engine", "auto"),
        )
        self._before_training(task, facts.decay)
        return task

    def in_places(self, places: int) -> None:
        """Draw the batches of the next ``fit`` from a public number of places, some of them blank.

        For searches in which the number of records is secret.
        """
        self.__dict__[PLACES] = places

    def _check_before_data(self) -> int | None:
        """Check a net before it reads data; return its number of places."""
        places: int | None = self.__dict__.pop(PLACES, None)
        self._check_arguments()
        if not follows_number(self):
            settings_of(self).noise  # noqa: B018  an unreachable target
        checked_device(self.device)
        return places

    def _prepare_fit(
        self, X: Any, y: Any, fresh: bool, places: int | None, groups: Any = None
    ) -> PreparedTraining:
        """Prepare a training of these records up to its first step."""
        unit = "record" if groups is None else "person"
        records = self._prepare(X, y, fresh, groups)
        settings = settings_of(self, records.units)
        if self.target_delta is not None:
            expected = settings.expected_number(records.units)
            check_size_of_delta("target_delta", float(self.target_delta), expected, unit)
        costs = cost.costs_before(self, fresh)
        foreign = () if fresh else cost.foreign_parameters(self)
        cost.check_same_unit(costs, unit)
        # fails for relations that do not compose
        compose(*(spent.guarantee for spent in costs), settings.guarantee)
        task = self._task(settings, records, places)
        if not fresh and not foreign:
            task.memory.update(vars(self).get("optimizer_memory_", {}))
        seed = seed_sequence()
        if self.noise_seed is not None:
            words = () if is_listened_to() else words_of_training(task, records)
            seed = seed_of_training(self.noise_seed, words)
        task = replace(task, seed=seed)
        device = checked_device(self.device)
        return PreparedTraining(self, records, device, settings, costs, foreign, task, unit)

    def _train(self, X: Any, y: Any, fresh: bool, groups: Any = None) -> None:
        places = self._check_before_data()
        before = None if fresh else copy.deepcopy(self.module_.state_dict())
        spent = vars(self).get("privacy_spent_")
        try:
            training = self._prepare_fit(X, y, fresh, places, groups)
            limit, records = self.max_physical_batch, training.records.on(training.device)
            tell = speaking(type(self).__name__, bool(self.verbose) or self._has_progress_bar())
            work = partial(train, training.task, records, max_physical_batch=limit, tell=tell)
            training.enter()
            in_fixed_words(type(self).__name__, work)
            training.release()
        except BaseException:  # an interrupt too: an unfinished training is not released
            if before is None:
                cost.remove_training(self)
            else:
                self.module_.load_state_dict(before)
                if spent is not None:
                    self.__dict__["privacy_spent_"] = spent
            raise

    def _has_progress_bar(self) -> bool:
        return False

    @property
    def _step_rule(self) -> step_size.StepRule:
        return step_size.NUMBER_RULE if isinstance(self, RegressorMixin) else step_size.CLASS_RULE

    @staticmethod
    def fit_together(
        models: Sequence[DPSGDEstimator], X: Any, y: Any
    ) -> list[DPSGDEstimator | None]:
        """Fit several unfitted nets on the same records, as stacks of one architecture if possible.

        Returns
        -------
        list
            Each net fitted, or None for a net that failed. Results equal those of fitting one after
            the other; it is faster, and shows no progress.
        """
        fitted: set[int] = set()
        try:
            groups = _group_by_records(models, X, y)
            for training in (training for group in groups for training in group):
                training.enter()
            for group in groups:
                for training in _train_group(group):
                    training.release()
                    fitted.add(id(training.net))
        finally:  # an interrupt too: an unfinished training is not released
            for net in models:
                if id(net) not in fitted:
                    cost.remove_training(net)
        return [net if id(net) in fitted else None for net in models]


@dataclass(frozen=True)
class PreparedTraining:
    """Training of a net, prepared up to its first step."""

    net: DPSGDEstimator
    records: TrainingData
    device: torch.device
    settings: Settings
    costs: list[PrivacySpent]
    foreign: tuple[str, ...]
    task: TrainingTask
    unit: str

    def has_records_of(self, other: PreparedTraining) -> bool:
        """Return whether another training has equal records on the same device."""
        return self.device == other.device and self.records.are(other.records)

    def enter(self) -> None:
        """Enter this training in the ledger of the block around it."""
        names = getattr(self.net, "feature_names_in_", None)
        columns = getattr(self.net, "n_features_in_", None) if names is None else list(names)
        enter_fit(self.net, self._cost(), columns)

    def release(self) -> None:
        """State the cost of a training that succeeded, and keep optimizer memory."""
        net, training = self.net, self._cost()
        cost.remember_parameters(net)
        net.n_steps_, net.noise_multiplier_ = self.settings.steps, self.settings.noise
        cost.state_cost(net, cost.combined([*self.costs, training], training.delta))
        net.optimizer_memory_ = memory_on_cpu(self.task.memory)

    def _cost(self) -> PrivacySpent:
        """Cost of this training alone, with the assumptions that are known so far."""
        number = 1 + sum(len(spent.components) for spent in self.costs)
        return cost_of_fit(
            self.net,
            Component(name=f"training {number}", guarantee=self.settings.guarantee),
            (*self.net.privacy_assumptions(self.unit), *self.foreign, *self.task.notes),
            self.unit,
            n_samples=self.records.units,
            columns=tuple(map(str, getattr(self.net, "feature_names_in_", ()))),
        )


# --- several nets on the same records -------------------------------------------------------------


def _group_by_records(
    nets: Sequence[DPSGDEstimator], X: Any, y: Any
) -> list[list[PreparedTraining]]:
    """Prepare nets for training in groups with equal records, without those that fail."""
    if type(X) is np.ndarray and all(net.takes_chosen_rows for net in nets):
        X = ChosenRows(X)  # caches its conversion for the next net with the same bounds
    groups: list[list[PreparedTraining]] = []
    for net in nets:
        with contained():  # this net has failed, the others have not
            training = net._prepare_fit(X, y, True, net._check_before_data())
            group = next((group for group in groups if training.has_records_of(group[0])), [])
            if not group:
                groups.append(group)
            group.append(training)
    return groups


def _train_group(members: Sequence[PreparedTraining]) -> list[PreparedTraining]:
    """Train a group of nets on their records; return those that succeeded."""
    limit = min(training.net.max_physical_batch for training in members)
    records = members[0].records.on(members[0].device)
    tasks = [training.task for training in members]
    work = partial(train_together, tasks, records, max_physical_batch=limit)
    done = in_fixed_words(type(members[0].net).__name__, work)
    return [training for training, succeeded in zip(members, done) if succeeded]
