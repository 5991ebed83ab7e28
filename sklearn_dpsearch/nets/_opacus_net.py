"""Mixin for skorch nets that train with Opacus."""

from __future__ import annotations

from typing import Any

from opacus import PrivacyEngine

from ..adapters._opacus import of_batches, plan_of
from ..ledger._ledger_context import EntersFits, ledger_of_fit
from ..privacy import Guarantee, PrivacyError


class OpacusNet(EntersFits):
    """Mixin that makes a skorch net private with Opacus, and states its guarantee to every search.

    It stands first: ``class MyNet(OpacusNet, skorch.NeuralNetClassifier)``. All other arguments are
    skorch's.

    Parameters
    ----------
    module : torch.nn.Module class or instance
        Accepted by Opacus's validator.
    *args : tuple
        As in skorch.
    noise_multiplier : float, optional
        Standard deviation of the noise ÷ ``max_grad_norm``.
    target_epsilon, target_delta : float, optional
        Instead: the noise is calibrated by this library's accountant. A search with ``epsilon=``
        needs none of them.
    max_grad_norm : float, default=1.0
        Clipping norm of each record's gradient.
    train_split : None
        Searches allow None alone: validation inside of a fit reads records without noise.
    **kwargs : dict
        As in skorch: ``batch_size`` and ``max_epochs`` count (rate 1/⌈n/batch_size⌉), and Opacus
        fails if its first batch is empty: give 20 records a batch or more. ``classes`` is required.

    Examples
    --------
    >>> import skorch, torch
    >>> class Net(OpacusNet, skorch.NeuralNetClassifier):
    ...     pass
    >>> net = Net(
    ...     torch.nn.Linear, classes=[0, 1], noise_multiplier=1.0, batch_size=100, max_epochs=5
    ... )
    >>> round(net.privacy_guarantee(n_samples=10_000).epsilon_at(1e-5), 2)
    1.33
    """

    module_: Any
    optimizer_: Any

    def __init__(
        self, module: Any, *args: Any, noise_multiplier: float | None = None,
        target_epsilon: float | None = None, target_delta: float | None = None,
        max_grad_norm: float = 1.0, train_split: Any = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(module, *args, train_split=train_split, **kwargs)  # type: ignore[call-arg]
        self.noise_multiplier, self.max_grad_norm = noise_multiplier, max_grad_norm
        self.target_epsilon, self.target_delta = target_epsilon, target_delta

    def privacy_guarantee(self, n_samples: int | None = None) -> Guarantee:
        """Guarantee of one ``fit`` with Opacus on ``n_samples`` records.

        The number is public; it is DP-SGD, for a record that is blanked.
        """
        planned = plan_of(self, n_samples)
        if planned is None:
            raise PrivacyError("The number of records decides the sampling rate. Give n_samples.")
        return planned.guarantee

    def get_iterator(self, dataset: Any, training: bool = False) -> Any:
        """Batches of skorch; for a training module, optimizer and batches become Opacus's."""
        loader = super().get_iterator(dataset, training=training)  # type: ignore[misc]
        planned = plan_of(self, len(dataset)) if training else None
        if planned is None:
            return loader
        if (ledger := ledger_of_fit(self)) is not None:
            raise PrivacyError(
                f"Found a fit of {type(self).__name__} in a block of {ledger!r}, which cannot see "
                "whether Opacus trains as planned. Write ledger.fit(net, X, y), which enters the "
                "fit and compares."
            )
        self.module_, self.optimizer_, loader = PrivacyEngine().make_private(
            module=self.module_, optimizer=self.optimizer_,
            data_loader=of_batches(loader, planned.batches),
            noise_multiplier=planned.noise_multiplier, max_grad_norm=self.max_grad_norm,
        )  # fmt: skip
        # Opacus rounds it down, perhaps to 0
        self.optimizer_.expected_batch_size = len(dataset) / planned.batches
        return loader
