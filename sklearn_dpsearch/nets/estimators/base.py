"""What skorch nets and ready-made nets have in common: guarantee, training, warm start, training many at once."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from ..._process import contained, without_warnings
from ...privacy import Guarantee, compose
from ...privacy.spent import Component, PrivacySpent
from .. import checkpoints
from ..state import contents
from ..task import Records, TrainingTask
from ..training import train, train_together
from .settings import NOISE, RATES, Settings, expecting, settings_of

#: δ at which ``privacy_spent_`` states ε where no ``target_delta`` was given; ``epsilon_at`` gives any other.
STATED_DELTA = 1e-5


class DPSGDEstimator:
    """Mixin: an estimator that trains a torch module with DP-SGD."""

    #: Unseeded, batches and noise come from the operating system, in each fit.
    secure_without_seed = True

    # --- what one fit promises, from constructor arguments alone --------------------------------------------------

    @property
    def privacy_parameters(self) -> tuple[str, ...]:
        """Names of the constructor arguments on which the guarantee depends."""
        if getattr(self, "target_mu", None) is not None:  # the noise keeps it, whatever the rate and number of steps
            return (*NOISE, "neighboring", "public_n")
        return (*NOISE, "neighboring", *RATES)

    def privacy_guarantee(self, n_samples: int | None = None) -> Any:
        """What one ``fit`` promises; no data is needed.

        Parameters
        ----------
        n_samples : int, optional
            Not used: rate, steps and noise follow from the constructor's arguments.

        Returns
        -------
        Guarantee
        """
        self._check_arguments()
        return settings_of(self).guarantee

    def privacy_assumptions(self) -> tuple[str, ...]:
        """What the guarantee rests on, as plain sentences."""
        n = getattr(self, "public_n", None)
        public = n is None or self.neighboring == "zero_out"
        size = "the number of records is public" if public else f"public_n={n} was not taken from the data"
        seeded = getattr(self, "noise_seed", None) is not None
        source = "noise_seed" if seeded else "the operating system"
        known = f"{type(self).__name__}: noise_seed was given; for whoever knows it the guarantee is void."
        return (
            f"{type(self).__name__}: {size}; batches and noise come from statistical generators seeded by {source}, "
            "noise in double precision.",
            *([known] if seeded else []),
        )

    def scaled_privacy(self, factor: float, varying: frozenset[str] = frozenset()) -> dict[str, Any]:
        """Parameters that make every fit ``factor`` times less private; 1 stands for the noise as configured.

        Where the candidates of a search vary the rate or the number of steps, the noise of each is calibrated to one
        Gaussian target, so that all promise the same.
        """
        none: dict[str, Any] = dict.fromkeys(NOISE)
        if varying & set(RATES):
            return {**none, "target_mu": (getattr(self, "target_mu", None) or 1.0) * factor}
        return {**none, "noise_multiplier": (getattr(self, "noise_multiplier", None) or 1.0) / factor}

    def expecting(self, n: float) -> dict[str, Any]:
        """Parameters with which ``fit`` uses the public number ``n`` of records instead of counting them.

        Sampling rate, number of steps and noise stay: the expected batch size follows.
        """
        return expecting(self, n)

    def extrapolation(self) -> Mapping[str, str]:
        """How the best parameters change with the number of records at the same rate, noise and number of steps.

        The learning rate of SGD in proportion: the noise that reaches the parameters stays the same (Koskela & Kulkarni
        2023, §3.2). Adaptive optimizers scale their steps themselves: nothing changes.
        """
        plain = getattr(self, "solver", None) == "sgd" or getattr(self, "optimizer", None) is torch.optim.SGD
        return dict.fromkeys(("learning_rate_init", "lr", "optimizer__lr"), "linear") if plain else {}

    # --- to be said by each kind of net -------------------------------------------------------------------------------

    @abstractmethod
    def _check_arguments(self) -> None:
        """Raise if an argument is wrong, as far as can be told without data."""

    @abstractmethod
    def _prepare(self, X: Any, y: Any, fresh: bool) -> tuple[torch.Tensor, torch.Tensor]:
        """Check the records, initialise the module if ``fresh``, and return inputs and targets as tensors."""

    @abstractmethod
    def _task(self, settings: Settings, n: int) -> TrainingTask:
        """The training that the arguments describe."""

    @abstractmethod
    def _device(self) -> torch.device:
        """Where to train."""

    # --- training -------------------------------------------------------------------------------------------------

    def _train(self, X: Any, y: Any, fresh: bool) -> None:
        self._check_arguments()
        settings = settings_of(self)
        settings.noise  # noqa: B018  an unreachable target fails here, before any data is read
        device = self._device()
        before = None if fresh else {name: value.clone() for name, value in self.module_.state_dict().items()}
        spent = getattr(self, "privacy_spent_", None)
        try:
            inputs, targets = self._prepare(X, y, fresh)
            costs, put_in = self._costs(fresh), () if fresh else self._put_in()
            self._total(settings, costs)  # relations that cannot be composed fail here, before anything is spent
            task = self._task(settings, len(inputs))
            with without_warnings():  # of the libraries underneath, which could speak of batches
                train(task, Records.of(inputs, targets, device), max_physical_batch=self.max_physical_batch)
            self._spend(settings, costs, (*put_in, *task.notes))
        except BaseException:  # an interrupt too: what was not trained to the end is not released
            if before is None:
                self._unfit()
            else:
                self.module_.load_state_dict(before)
                if spent is not None:
                    vars(self)["privacy_spent_"] = spent
            raise

    def _unfit(self) -> None:
        """Forget a training that did not end well."""
        for name in ("module_", "privacy_spent_", "n_steps_", "noise_multiplier_", "_inherited", "_known_parameters"):
            if name in vars(self):
                delattr(self, name)

    # --- what it cost ----------------------------------------------------------------------------------------------

    @property
    def privacy_spent_(self) -> PrivacySpent:
        """Cost of all training of the current parameters, which carry it with them."""
        try:
            found: PrivacySpent = vars(self)["privacy_spent_"]
        except KeyError:
            raise AttributeError(
                f"{type(self).__name__} has no attribute 'privacy_spent_' before it is fitted"
            ) from None
        return found

    @privacy_spent_.setter
    def privacy_spent_(self, spent: PrivacySpent) -> None:
        """What a search states of the model that it releases; what came before it is still noted."""
        self._state(spent, *vars(self).get("_inherited", ()))

    @privacy_spent_.deleter
    def privacy_spent_(self) -> None:
        del vars(self)["privacy_spent_"]

    def _state(self, *spent: PrivacySpent) -> None:
        """Set the statement, and note on the module what its parameters have cost."""
        vars(self)["privacy_spent_"] = spent[0]
        if "module_" in vars(self):
            checkpoints.mark(self.module_, spent)

    def _costs(self, fresh: bool) -> list[PrivacySpent]:
        """What the parameters that training starts from have cost: this net's own trainings, or other nets'."""
        found = checkpoints.costs(self.module_)
        if fresh:
            vars(self).pop("_inherited", None)
            if found:
                vars(self)["_inherited"] = tuple(found)
        own = None if fresh else vars(self).get("privacy_spent_")
        return found if found or own is None else [own]

    def _remember(self) -> None:
        """Know these parameters again: what is put in their place from elsewhere has another history."""
        vars(self)["_known_parameters"] = contents(*self.module_.state_dict().values())

    def _put_in(self) -> tuple[str, ...]:
        """What is assumed of parameters that came into the module from elsewhere."""
        known = vars(self).get("_known_parameters")
        if known is None or known == contents(*self.module_.state_dict().values()):
            return ()
        return (f"{type(self).__name__}: parameters put into module_ from elsewhere hold nothing of the records.",)

    def _total(self, settings: Settings, costs: Sequence[PrivacySpent]) -> Guarantee:
        return compose(*(one.guarantee for one in costs), settings.guarantee)

    def __getstate__(self) -> dict[str, Any]:
        """A fitted net leaves without the seed of its noise: whoever had it could undo the noise."""
        state: dict[str, Any] = super().__getstate__()  # type: ignore[misc, assignment]
        return {**state, "noise_seed": None} if "privacy_spent_" in state else state

    @staticmethod
    def fit_together(nets: Sequence[Any], X: Any, y: Any) -> list[Any]:
        """Fit several unfitted nets on the same records, as stacks where they share an architecture.

        Returns
        -------
        list
            Each net fitted, or None in the place of one that failed. The same as fitting one after the other, faster.
        """
        fitted: list[Any] = [None] * len(nets)
        try:
            _fit_shared(nets, X, y, fitted)
        finally:  # an interrupt too: what was not trained to the end is not released
            for net, done in zip(nets, fitted):
                if done is None:
                    net._unfit()
        return fitted

    def _spend(self, settings: Settings, costs: Sequence[PrivacySpent], notes: Sequence[str]) -> None:
        """Add one training to what was spent on the parameters."""
        before = tuple(part for one in costs for part in one.components)
        assumed = [text for one in costs for text in one.assumptions]
        delta = getattr(self, "target_delta", None)
        self._remember()
        self.n_steps_ = settings.steps
        self.noise_multiplier_ = settings.noise
        self._state(
            PrivacySpent(
                guarantee=self._total(settings, costs),
                delta=STATED_DELTA if delta is None else float(delta),
                components=(*before, Component(name=f"training {len(before) + 1}", guarantee=settings.guarantee)),
                assumptions=tuple(dict.fromkeys((*assumed, *self.privacy_assumptions(), *notes))),
            )
        )


@dataclass
class _Shared:
    """Nets trained on the same records, converted in the same way: (place, training, settings, costs) of each."""

    records: Records
    members: list[tuple[int, TrainingTask, Settings, list[PrivacySpent]]] = field(default_factory=list)

    def holds(self, inputs: torch.Tensor, targets: torch.Tensor, device: torch.device) -> bool:
        """Whether these are the records, on this device."""
        pairs = ((inputs, self.records.inputs), (targets, self.records.targets))
        there = torch.empty(0, device=device).device  # "cuda" is the current one of several
        return self.records.inputs.device == there and all(
            mine.dtype == theirs.dtype and mine.shape == theirs[:-1].shape and torch.equal(mine.to(device), theirs[:-1])
            for mine, theirs in pairs
        )


def _fit_shared(nets: Sequence[Any], X: Any, y: Any, fitted: list[Any]) -> None:
    """Fit nets that share records together, and put each that came out well into its place."""
    shared: list[_Shared] = []
    for i, net in enumerate(nets):
        with contained():  # this net has failed, the others have not
            net._check_arguments()
            settings, device = settings_of(net), net._device()
            inputs, targets = net._prepare(X, y, fresh=True)
            costs = net._costs(fresh=True)
            net._total(settings, costs)
            task = net._task(settings, len(inputs))
            group = next((one for one in shared if one.holds(inputs, targets, device)), None)
            if group is None:
                group = _Shared(Records.of(inputs, targets, device))
                shared.append(group)
            group.members.append((i, task, settings, costs))
    for group in shared:
        most = min(nets[i].max_physical_batch for i, *_ in group.members)
        with without_warnings():  # of the libraries underneath, which could speak of batches
            done = train_together([task for _, task, *_ in group.members], group.records, max_physical_batch=most)
        for (i, task, settings, costs), well in zip(group.members, done):
            if well:
                nets[i]._spend(settings, costs, task.notes)
                fitted[i] = nets[i]


def device_of(name: Any) -> torch.device:
    """A torch device that is there.

    Raises
    ------
    ValueError
        If this machine does not have it.
    """
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except Exception as error:
        raise ValueError(
            f"Found device={name!r}, which is not available here ({type(error).__name__}). Use device='cpu', or a CUDA "
            "device that torch.cuda.is_available() confirms."
        ) from None
    return device
