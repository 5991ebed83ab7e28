"""Parameters that hold randomness: where they are, and that no released model keeps them."""

from __future__ import annotations

from .adapter import Estimator
from .fitted_parts import fitted_parts

#: The state of a generator tells what it drew, and a seed lets everyone draw it again.
SEEDS = ("random_state", "noise_seed")


def seed_names(estimator: Estimator) -> list[str]:
    """The parameters of an estimator that hold randomness, at any depth.

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
    """Set to None what a fitted model and its parts were seeded with.

    Parameters
    ----------
    model : estimator
        Changed in place.
    """
    for part in fitted_parts(model):
        for name in SEEDS:
            if vars(part).get(name) is not None:
                setattr(part, name, None)
