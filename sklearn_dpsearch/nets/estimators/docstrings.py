"""Docstrings of the arguments and attributes that all nets have."""

from __future__ import annotations


def settings(sample_rate: str, batch_size: str, max_epochs: str) -> str:
    """Docstring of the arguments from ``noise_multiplier`` to ``max_steps``, given the texts of three of them."""
    return f"""
    noise_multiplier : float, optional
        Standard deviation of the noise ÷ ``max_grad_norm``.
    target_epsilon, target_delta : float, optional
        Instead: guarantee of one fit, to which the noise is calibrated.
    target_mu : float, optional
        Instead: μ of a Gaussian guarantee of one fit, to which the noise is calibrated at any rate and number of steps.
    max_grad_norm : float or "auto", default=1.0
        Clipping norm of a record's gradient. "auto" is automatic clipping (Bu et al. 2023, AUTO-S): every gradient is
        divided by its norm plus 0.01, so that short ones count as much as long ones. A record whose gradient is not
        finite contributes nothing.
    sample_rate : float, {sample_rate}
        Probability of each record to be in each batch (Poisson subsampling).
    batch_size : float, optional
        {batch_size}: the expected batch size, together with ``public_n``.
    public_n : int, optional
        Number of records, known without the data. Without it the number of records counts as public, and the
        guarantee is for records zeroed out instead of added or removed.
    neighboring : {{"add_remove", "zero_out", "replace_one"}}, optional
        Neighbouring relation; the default depends on ``public_n``. DP-SGD costs the same under the first two. Under
        "replace_one" it costs up to twice as much, and composes with diffprivlib's models.
    max_epochs : float, {max_epochs}
        Passes over the data: ``round(max_epochs / sample_rate)`` steps.
    max_steps : int, optional
        Instead: the number of steps."""


MEMORY = """
    max_physical_batch : int, default=16384
        Most records in memory at once, over all nets trained together. Affects memory and time, never results."""

SEEDS = """
    random_state : None, int or RandomState
        Seeds the initial parameters, which are public. Never the batches or the noise.
    noise_seed : None, int or RandomState
        For tests only: seeds batches and noise. The seed is enough to undo the noise."""

LONG = """
    checkpoint : str or Path, optional
        A folder for this fit alone, in which ``fit`` saves its state. To go on after a crash, call ``fit`` again with
        the same arguments and records. **As secret as the records**. The same ``fit`` once more returns its release.
        Not allowed in a search.
    verbose : {0, 1}, default=0
        1 shows the steps done, of a public number, and the time left, on standard error."""

ATTRIBUTES = """

    Attributes
    ----------
    privacy_spent_ : PrivacySpent
        Cost of all training of the current parameters. Warm starts, ``partial_fit``, and nets that start from the
        trained module add to it.
    n_steps_, noise_multiplier_ : int, float
        Steps and noise of the last training.
    module_ : torch.nn.Module
        Trained module, with only its parameters."""
