"""Parameters that hold randomness, which no released model keeps."""

from __future__ import annotations

from .adapter import Estimator
from .fitted_parts import fitted_parts

#: The state of a generator tells its earlier draws, and with a seed anyone can repeat the draws.
SEEDS = ("random_state", "noise_seed")


def seed_names(estimator: Estimator) -> list[str]:
    """Names of an estimator's parameters that hold randomness, at any depth.

    Parameters
    ----------
    estimator : estimator
        Not fitted; its parameters are looked at.

    Returns
    -------
    list of str
        Names for ``set_params``.
    """
    return sorted(name for name in estimator.get_params(deep=True) if name.rpartition("__")[2] in SEEDS)


def forget_seeds(model: object) -> None:
    """Set the seeds and generators of a fitted model and its parts to None.

    Parameters
    ----------
    model : estimator
        Changed in place.
    """
    for part in fitted_parts(model):
        for name in SEEDS:
            if vars(part).get(name) is not None:
                setattr(part, name, None)
