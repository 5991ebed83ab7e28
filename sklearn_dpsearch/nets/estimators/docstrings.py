"""Docstrings of the arguments and attributes that all nets have."""

from __future__ import annotations

#: Text of ``max_grad_norm`` for the nets for tables.
BY_RULE = """float, "auto" or "rule", default="rule"
        Clipping norm of a record's gradient. "rule" derives it from public facts: how long a record can be by the
        schema, or the number of features (:doc:`step size </theory/step_size>`). Smaller norms change the loss that is
        minimised: classes often stay right, probabilities do not (:doc:`probabilities </learn/probabilities>`)."""
#: The same for modules of users.
GIVEN = """float or "auto", default=1.0
        Clipping norm of a record's gradient."""


def settings(sample_rate: str, max_epochs: str, max_grad_norm: str) -> str:
    """Docstring of the arguments from ``noise_multiplier`` to ``max_steps``, given the texts of three of them."""
    return f"""
    noise_multiplier : float, optional
        Standard deviation of the noise ÷ ``max_grad_norm``.
    target_epsilon, target_delta : float, optional
        Instead: guarantee of one fit, to which the noise is calibrated.
    target_mu : float, optional
        Instead: μ of a Gaussian guarantee of one fit, to which the noise is calibrated at any rate and number of steps.
    max_grad_norm : {max_grad_norm} "auto" is automatic clipping (Bu et al. 2023, AUTO-S): every gradient is
        divided by its norm plus 0.01, so that short ones count as much as long ones. A record whose gradient is not
        finite contributes nothing.
    sample_rate : float, {sample_rate}
        Probability of each record to be in each batch (Poisson subsampling).
    batch_size : float, optional
        Instead: the expected batch size; the rate is ``batch_size`` ÷ the number of records. Together with
        ``sample_rate`` it is the constant by which sums are divided, and records are not counted.
    neighboring : {{"zero_out", "replace_one"}}, default="zero_out"
        Neighbouring relation: a record is blanked, or replaced by another. The number of records is public. Under
        "replace_one" DP-SGD costs up to twice as much, and composes with diffprivlib's models.
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
        For tests only: it voids the guarantee. Batches and noise follow from the seed, the records, the initial
        parameters, all arguments and the number of earlier trainings: trainings that differ share no noise."""

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

CLASSES = """
    classes : array-like, optional
        All labels that a record could have. Without ``classes`` the labels are taken from y, which is private only if
        they are public anyway.
    class_weight : dict, optional
        Label ↦ weight of the loss of its records, a constant known without the data; other labels have weight 1.
        "balanced" would count the labels, and is refused. Weighted gradients are clipped, so weights below 1 have more
        effect than weights above 1."""

BOUNDS_Y = """
    bounds_y : (lower, upper), optional
        Public bounds of y: targets are clipped to the bounds and mapped to [-1, 1], predictions are mapped back and
        clipped. Needed for y far outside of [-1, 1], which clipped gradients do not reach."""

#: Arguments of the nets for tables, up to ``average``.
OPTIMIZATION = f"""{settings("default=0.02", "default=30", BY_RULE)}
    solver : {{"sgd", "adam", "adamw"}}, default="sgd"
        Optimizer of the noisy gradients.
    learning_rate : {{"linear", "constant"}}, default="linear"
        Schedule of the step size: falling linearly to zero, or constant.
    learning_rate_init : float or "auto", default="auto"
        Initial step size. "auto" derives it from noise, steps and number of records, for a fixed total noise in each
        weight (:doc:`defaults </learn/net_defaults>`).
    learning_rate_factor : float, default=1.0
        Factor on the step size, to be searched: its best value changes little with ε and the number of records.
    momentum : float, default=0.0
        Momentum of "sgd".
    alpha : float, default=0.0
        Strength of the L2 penalty; with "adamw" of the weight decay.
    average : float, default=0.0
        Share of the last steps over which the released parameters are averaged; 0: parameters of the last step."""

BOUNDS_X = """
    bounds_X : (lower, upper), optional
        Public bounds of the features, numbers or arrays of shape (n_features,): X is clipped to the bounds and mapped
        to [-1, 1]. Two numbers >= 0, such as (0, 255) for pixels, are mapped to [-0.5, 1.5], so that small amounts are
        near 0. Without bounds X is not scaled, and should be of size 1."""

#: Arguments and attributes of the nets for tables, from ``warm_start`` on.
TRAINING = f"""
    warm_start : bool, default=False
        Whether ``fit`` goes on from the parameters of the last ``fit``; the cost adds up in ``privacy_spent_``.
    device : str, default="cpu"
        Device of the training.{MEMORY}{SEEDS}{LONG}{ATTRIBUTES}
    learning_rate_init_ : float
        Initial step size of the last training.
    weight_noise_ : float or None
        Standard deviation of the privacy noise in each weight: an upper bound where the loss is convex and steps are
        short (:doc:`step size </theory/step_size>`). None after "adam" or "adamw".
    n_features_in_ : int"""

WIDTHS = """
    hidden_layer_sizes_ : tuple of int
        Outputs of each hidden layer of the fitted net."""
