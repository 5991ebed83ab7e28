"""Extrapolation of hyperparameters from a subset to the records that train the final model."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ...adapters.adapter import ExtrapolationRule
from ...errors import did_you_mean
from .._types import Candidate, Extrapolate

WORDS = ("linear", "keep")


@dataclass(frozen=True)
class Sizes:
    """Expected numbers of records that tune and that train the final model, never the drawn numbers.

    Parameters
    ----------
    tune, final : float
        Numbers of records; shares of them where their number is private.
    """

    tune: float
    final: float


def check_rules(extrapolate: Extrapolate, names: Iterable[str]) -> None:
    """Raise for invalid rules; ``names`` are the searched parameters."""
    if callable(extrapolate) or extrapolate == "auto":
        return
    if not isinstance(extrapolate, Mapping):
        raise ValueError(
            f"Found extrapolate={extrapolate!r}; 'auto', a callable (value, n_tune, n_final), or a dict from names of "
            f"searched parameters to rules is needed.{did_you_mean(extrapolate, ['auto'])}"
        )
    names = sorted(names)
    for name, rule in extrapolate.items():
        if name not in names:
            raise ValueError(
                f"Found extrapolate for parameter {name!r}, which is not searched; the searched ones are {names}. "
                f"Remove it, or add it to param_distributions.{did_you_mean(name, names)}"
            )
        if not callable(rule) and rule not in WORDS:
            raise ValueError(
                f"Found extrapolate[{name!r}]={rule!r}; 'linear', 'keep' or a callable (value, n_tune, n_final) is "
                f"needed.{did_you_mean(rule, WORDS)}"
            )


def carried_over(
    candidate: Candidate, extrapolate: Extrapolate, known: Mapping[str, ExtrapolationRule], sizes: Sizes
) -> dict[str, Any]:
    """Extrapolate a candidate's parameters to the final model.

    Parameters
    ----------
    candidate : mapping
    extrapolate : "auto", mapping or callable
        What the user asked for, checked.
    known : mapping
        What the adapter knows about an estimator with these parameters.
    sizes : Sizes
    """
    if callable(extrapolate):
        rules: dict[str, ExtrapolationRule] = {
            name: extrapolate for name, value in candidate.items() if _is_number(value)
        }
    else:
        rules = {name: rule for name, rule in known.items() if rule == "keep" or _is_number(candidate.get(name))}
        rules |= extrapolate if isinstance(extrapolate, Mapping) else {}
    return {name: _applied(rules.get(name, "keep"), name, value, sizes) for name, value in candidate.items()}


def _applied(rule: ExtrapolationRule, name: str, value: Any, sizes: Sizes) -> Any:
    if rule == "keep":
        return value
    if callable(rule):
        return _called(rule, name, value, sizes)
    if not _is_number(value):
        raise ValueError(
            f"Found extrapolate[{name!r}]='linear' and the value {value!r}, which is not a number. Use 'keep', or a "
            "callable (value, n_tune, n_final)."
        )
    scaled = value * (sizes.final / sizes.tune)
    counts = isinstance(value, numbers.Integral) and bool(value > 0)  # type: ignore[operator]
    return max(1, round(scaled)) if counts else scaled


def _called(rule: Callable[[Any, float, float], Any], name: str, value: Any, sizes: Sizes) -> Any:
    try:
        return rule(value, sizes.tune, sizes.final)
    except Exception as error:
        raise ValueError(
            f"extrapolate[{name!r}]({value!r}, {sizes.tune:g}, {sizes.final:g}) failed: {error}. It is called with a "
            "value and the expected numbers of records that tune and that train the final model (shares of all records "
            "where their number is private)."
        ) from error


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)
