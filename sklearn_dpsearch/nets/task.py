"""Tasks of training: one net with everything that is fixed before the data is touched."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import nn

from ..privacy._types import Neighboring
from .optimizers import Memory, Table, UpdateRule
from .randomness import Seed
from .sampling import most_rows


@dataclass(frozen=True, kw_only=True)
class TrainingTask:
    """One net to train: everything that is fixed before the data is touched.

    Parameters
    ----------
    module : Module
        Trained in place.
    criterion : Module
        (outputs, targets) ↦ sum of the records' losses.
    optimizer : UpdateRule
    sample_rate : float
        Probability of each record to be in each batch.
    steps : int
    noise_multiplier : float
        Standard deviation of the noise ÷ ``max_grad_norm``; 0 only in tests and benchmarks.
    max_grad_norm : float
        Largest norm of a record's gradient in the sums.
    expected_batch_size : float
        Divisor of the noisy sum; public.
    neighboring : {"zero_out", "replace_one"}
        Relation of the guarantee; a record that is replaced moves a sum by twice the norm.
    places : int or None
        Public number of places from which batches are drawn, at least the number of records; those without a record
        are blank. None: the number of records, which is then public.
    schedule : mapping of str to sequence
        The hyperparameters that change from step to step, with their values, computed without data.
    engine : {"auto", "opacus"}
        Source of per-sample gradients.
    seed : None, int, RandomState or SeedSequence
        For batches and noise; None: the operating system. A seed is for tests.
    memory : dict
        Optimizer memory of an earlier training of this net; filled by training.
    notes : list of str
        Assumptions, filled by training.
    """

    module: nn.Module
    criterion: nn.Module
    optimizer: UpdateRule
    sample_rate: float
    steps: int
    noise_multiplier: float
    max_grad_norm: float
    expected_batch_size: float
    neighboring: Neighboring = "zero_out"
    places: int | None = None
    schedule: Table = field(default_factory=dict)
    engine: str = "auto"
    seed: Seed = None
    memory: Memory = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def rows(self, n: int) -> int:
        """Number of rows of each batch in a training on ``n`` records, or persons."""
        return most_rows(self.sample_rate, self.places or n)
