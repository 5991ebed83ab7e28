"""Errors of the library: each message says what was found, what is needed and the remedy."""


class PrivacyError(ValueError):
    """A stated guarantee would be false, or cannot be stated."""


class UnknownGuaranteeError(PrivacyError):
    """Nothing is known about what one training run of an estimator promises."""


class LeakingEstimatorError(PrivacyError):
    """An estimator is configured so that it would read something from the data without noise."""


class MixedNeighborsError(PrivacyError):
    """Guarantees under different neighbouring relations were to be combined."""


class UnknownSensitivityError(PrivacyError):
    """A score on private records has no known sensitivity."""


class BudgetUnreachableError(PrivacyError):
    """No base parameter in reach meets the target."""


class MissingDeltaError(PrivacyError):
    """A δ is needed, because the guarantee is not pure."""
