"""Guarantees from the plain dictionaries that ``to_dict`` makes of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from fractions import Fraction
from importlib import import_module
from inspect import isabstract
from typing import Any, TypeAlias, TypeVar

import numpy as np

from ..errors import PrivacyError, did_you_mean
from .count_distributions.base import CountDistribution
from .guarantees.base import Guarantee
from .guarantees.serialization import VERSION
from .guarantees.values import ProfileDP
from .numerics.loss_distribution import DominatingPair, LossDistribution

Kind = TypeVar("Kind", bound=type)
#: Classes by their names.
Kinds: TypeAlias = dict[str, Any]
#: Classes of the fields of guarantees: parents of several kinds, and single kinds.
ROOTS: list[type] = [Guarantee, CountDistribution, LossDistribution]

#: Kinds that are defined outside of the accountant ↦ their module, which is loaded where one of them is read.
ELSEWHERE = dict.fromkeys(("DiscreteGaussianDP", "Sensitivity"), "sklearn_dpsearch.scoring.noise")


def part_of_guarantees(kind: Kind) -> Kind:
    """A class decorator: frozen values of this kind are fields of a guarantee, and can be read from a dictionary."""
    ROOTS.append(kind)
    return kind


def from_dict(found: Mapping[str, Any]) -> Guarantee:
    """Rebuild a guarantee from the dictionary of its ``to_dict``.

    Parameters
    ----------
    found : dict
        From ``guarantee.to_dict()``, or the entry ``"guarantee"`` of a ``PrivacySpent``'s dictionary; also after a
        round trip through JSON.

    Returns
    -------
    Guarantee
        Equal to the original: every ε and δ agrees to the last bit.

    Raises
    ------
    PrivacyError
        If the dictionary has another layout, or kinds unknown to this version.

    Examples
    --------
    >>> import json
    >>> from sklearn_dpsearch.privacy import GaussianDP, Geometric, best_of
    >>> search = best_of(GaussianDP(mu=0.5), Geometric(10))
    >>> from_dict(json.loads(json.dumps(search.to_dict()))) == search
    True
    """
    if not isinstance(found, Mapping) or "version" not in found:
        raise PrivacyError(
            f"Found {_short(found)}; the dictionary of a guarantee is needed, with its version. Give what to_dict() of "
            "a guarantee returned, or the part 'guarantee' of the dictionary of a statement."
        )
    if type(found["version"]) is not int or found["version"] != VERSION:
        raise PrivacyError(
            f"Found a guarantee written in version {found['version']!r}; version {VERSION} is needed. Read it with the "
            "release of sklearn_dpsearch that wrote it, or a later one."
        )
    guarantee = _read({name: value for name, value in found.items() if name != "version"}, _kinds())
    if not isinstance(guarantee, Guarantee):
        raise PrivacyError(f"Found {_short(found)}; a guarantee is needed. Give what its to_dict() returned.")
    return guarantee


def _read(value: Any, kinds: Kinds) -> Any:
    if isinstance(value, list | tuple):
        return tuple(_read(one, kinds) for one in value)
    if not isinstance(value, Mapping):
        return value
    if "kind" in value:
        return _built(value, kinds)
    name = next(iter(value), "")
    if len(value) != 1 or name not in PLAIN:
        raise PrivacyError(f"Found {_short(value)} in a guarantee; one of {', '.join(PLAIN)} or a kind is needed.")
    try:
        return PLAIN[name](value[name])
    except (ValueError, TypeError, ArithmeticError, LookupError):
        raise PrivacyError(
            f"Found {_short(value)} in a guarantee, which is no {name}. Give what to_dict() of a guarantee returned."
        ) from None


#: Types that JSON lacks.
PLAIN: dict[str, Callable[[Any], Any]] = {
    "float": float,
    "fraction": Fraction,
    "array": lambda values: np.array(
        [one["float"] if isinstance(one, Mapping) else one for one in values], dtype=float
    ),
}


def _built(value: Mapping[str, Any], kinds: Kinds) -> Any:
    name = value["kind"] if isinstance(value["kind"], str) else ""
    if name in ELSEWHERE and name not in kinds:
        import_module(ELSEWHERE[name])
        kinds.update(_kinds())
    kind = kinds.get(name)
    if kind is None:
        raise PrivacyError(
            f"Found a guarantee of kind {value['kind']!r}, which this version does not know. Read it with the release "
            f"of sklearn_dpsearch that wrote it, or a later one.{did_you_mean(value['kind'], kinds)}"
        )
    given = {name: _read(one, kinds) for name, one in value.items() if name != "kind"}
    if kind is ProfileDP:
        return _profile(**_checked(given, {"removed", "added", "neighboring"}, "ProfileDP"))
    return kind(**_checked(given, {field.name for field in fields(kind) if field.init}, kind.__name__))


def _checked(given: dict[str, Any], known: set[str], kind: str) -> dict[str, Any]:
    """Require exactly the fields of a kind: no field is guessed, even with a default."""
    if given.keys() != known:
        raise PrivacyError(
            f"Found {kind} with {sorted(given)}; {sorted(known)} are needed. Read it with the release of "
            "sklearn_dpsearch that wrote it, or a later one."
        )
    return given


def _profile(removed: LossDistribution, added: LossDistribution | None, neighboring: Any) -> ProfileDP:
    """Build a profile; ``added`` is None if both orders of the neighbours have one distribution."""
    return ProfileDP.from_pair(DominatingPair(removed, removed if added is None else added), neighboring)


def _kinds() -> Kinds:
    """Every concrete kind of this library, by its name."""
    waiting, found = list(ROOTS), dict[str, Any]()
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if not isabstract(kind) and kind.__module__.partition(".")[0] == __name__.partition(".")[0]:
            assert found.setdefault(kind.__name__, kind) is kind  # two of one name could not be told apart
    return found


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
