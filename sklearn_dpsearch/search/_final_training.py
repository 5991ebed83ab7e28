"""The training after the choice, with extrapolated parameters and a warm start.

Both have to keep the guarantee.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sklearn.pipeline import Pipeline

from ..adapters._adapter import ExtrapolationRule
from ..errors import did_you_mean
from ..preprocessing._columns import is_number
from ..privacy import PrivacyError
from ._planning.space_guarantee import SpaceGuarantee
from ._records import Candidate, Extrapolate, with_parameters

WORDS = ("linear", "keep")


@dataclass(frozen=True)
class Sizes:
    """Expected, never drawn, numbers of records that tune and that train the final model.

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
            f"Found extrapolate={extrapolate!r}; 'auto', a callable (value, n_tune, n_final), or a "
            f"dict from names of searched parameters to rules is "
            f"needed.{did_you_mean(extrapolate, ['auto'])}"
        )
    names = sorted(names)
    for name, rule in extrapolate.items():
        if name not in names:
            raise ValueError(
                f"Found extrapolate for parameter {name!r}, which is not searched; the searched "
                f"ones are {names}. Remove it, or add it to "
                f"param_distributions.{did_you_mean(name, names)}"
            )
        if not callable(rule) and rule not in WORDS:
            raise ValueError(
                f"Found extrapolate[{name!r}]={rule!r}; 'linear', 'keep' or a callable (value, "
                f"n_tune, n_final) is needed.{did_you_mean(rule, WORDS)}"
            )


def extrapolated(
    candidate: Candidate,
    extrapolate: Extrapolate,
    adapter_rules: Mapping[str, ExtrapolationRule],
    sizes: Sizes,
) -> dict[str, Any]:
    """Extrapolate a candidate's parameters to the final model.

    Parameters
    ----------
    candidate : mapping
    extrapolate : "auto", mapping or callable
        What the user asked for, checked.
    adapter_rules : mapping
        What the adapter knows about an estimator with these parameters.
    sizes : Sizes
    """
    numeric = {name for name, value in candidate.items() if is_number(value)}
    rules: dict[str, ExtrapolationRule]
    if callable(extrapolate):
        rules = dict.fromkeys(numeric, extrapolate)
    else:
        rules = {n: rule for n, rule in adapter_rules.items() if rule == "keep" or n in numeric}
        rules |= extrapolate if isinstance(extrapolate, Mapping) else {}
    return {
        name: _extrapolated(rules.get(name, "keep"), name, value, sizes)
        for name, value in candidate.items()
    }


def _extrapolated(rule: ExtrapolationRule, name: str, value: Any, sizes: Sizes) -> Any:
    if rule == "keep":
        return value
    if callable(rule):
        try:
            return rule(value, sizes.tune, sizes.final)
        except Exception as error:
            call = f"extrapolate[{name!r}]({value!r}, {sizes.tune:g}, {sizes.final:g})"
            raise ValueError(
                f"{call} failed: {error}. It is called with a value and the expected numbers of "
                "records that tune and that train the final model (shares of all records where "
                "their number is private)."
            ) from error
    if not is_number(value):
        raise ValueError(
            f"Found extrapolate[{name!r}]='linear' and the value {value!r}, which is not a number. "
            "Use 'keep', or a callable (value, n_tune, n_final)."
        )
    scaled = value * (sizes.final / sizes.tune)
    counts = isinstance(value, numbers.Integral) and bool(value > 0)  # type: ignore[operator]
    return max(1, round(scaled)) if counts else scaled


def changed_parameters(candidate: Candidate, parameters: Candidate) -> Iterator[tuple[str, Any]]:
    """Changed parameters; of a nested estimator only its changed ones.

    So the nested estimator keeps its fitted state.
    """
    for name, new in parameters.items():
        old = candidate[name]
        if new is not old and hasattr(new, "get_params") and type(new) is type(old):
            before = old.get_params(deep=True)
            for inner, value in new.get_params(deep=True).items():
                if not hasattr(value, "get_params") and repr(value) != repr(before.get(inner)):
                    yield f"{name}__{inner}", value
        elif new is not old:
            yield name, new


def warm_start_name(estimator: Any) -> str:
    """Name of the parameter ``warm_start`` of the estimator, or of the last step of a pipeline.

    Raises
    ------
    ValueError
        If the parameter does not exist.
    """
    prefix, inner = "", estimator
    while type(inner) is Pipeline:
        name, inner = inner.steps[-1]
        prefix += f"{name}__"
    if not hasattr(inner, "get_params") or "warm_start" not in inner.get_params(deep=False):
        raise ValueError(
            f"Found warm_start=True, but {type(inner).__name__} has no parameter warm_start. Use "
            "an estimator that can go on from a fitted model (the nets of sklearn_dpsearch.nets "
            "can), or leave warm_start=False."
        )
    return f"{prefix}warm_start"


def check_guarantee_kept(
    promises: SpaceGuarantee, candidate: Candidate, parameters: Candidate, expected: float | None
) -> None:
    """Raise unless the final training keeps the candidate's guarantee.

    The final training has the extrapolated parameters and the expected size.
    """
    unchanged = all(parameters[name] is value for name, value in candidate.items())
    if expected is None and unchanged:
        return
    model = promises.configured(parameters)
    planned = promises.promise_of(model if unchanged else promises.configured(candidate))
    families = promises.families
    size_settings = {} if expected is None else families.adapter.expecting(model, expected)
    if size_settings is None:
        run = families.adapter.training_run(model, families.n_samples)
        if run.guarantee.neighboring != "add_remove":  # its number of records, blank ones included
            raise PrivacyError(
                f"A candidate ({dict(candidate)!r}) may use the number of its records, unlike the "
                "configured estimator: the total was computed for a secret subset. Search over "
                "steps that can all be told the expected number of records (a method expecting(n))."
            )
    if not promises.keeps(with_parameters(model, size_settings or {}), planned):
        raise PrivacyError(
            f"Found {dict(parameters)!r} for the final model of the candidate {dict(candidate)!r}, "
            "which promises something else. Parameters on which the guarantee depends must be "
            "kept: remove them from extrapolate."
        )
