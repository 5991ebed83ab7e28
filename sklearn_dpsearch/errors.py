"""Errors of the library: each message says what was found, what is needed and the remedy."""

import difflib
import itertools
from collections.abc import Iterable, Sequence
from inspect import signature
from typing import Self


class PrivacyError(ValueError):
    """A stated guarantee would be false, or cannot be stated.

    Attributes
    ----------
    listed : tuple of str
        The single refusals, where the message lists several.
    """

    listed: tuple[str, ...] = ()


class UnknownGuaranteeError(PrivacyError):
    """The guarantee of one training run of an estimator is unknown."""


class LeakingEstimatorError(PrivacyError):
    """An estimator is configured so that it would read something from the data without noise."""


class MixedNeighborsError(PrivacyError):
    """Guarantees under different neighbouring relations cannot be combined."""


class UnknownSensitivityError(PrivacyError):
    """A score on private records has no known sensitivity."""


class BudgetUnreachableError(PrivacyError):
    """No base parameter in reach meets the target, or no finite ε is reached."""


class BudgetExceededError(PrivacyError):
    """The total cost with earlier entries on the same records would exceed a ledger's budget."""


class MissingDeltaError(PrivacyError):
    """A δ is needed, because the guarantee is not pure."""


class TrainingError(ValueError):
    """Error of a training in words of the library, which tell nothing of a record."""


#: Arguments of other libraries ↦ arguments of ours.
SYNONYMS = {
    name: argument
    for argument, names in {
        "target_epsilon": "epsilon",
        "target_delta": "delta",
        "target_mu": "mu",
        "max_epochs": "epochs n_epochs num_epochs",
        "max_grad_norm": "max_norm l2_norm_clip clipping_norm",
        "noise_multiplier": "sigma",
        "max_iter": "n_estimators n_rounds",
        "learning_rate": "learning_rate_init",
        "schema": "categories columns",
        "bounds_X": "bounds",
    }.items()
    for name in names.split()
}


#: Arguments of scikit-learn's searches ↦ what a private search has instead.
ARGUMENT_REMEDIES = {
    "return_train_score": (
        "scores of records that train would be released without noise; leave it out"
    ),
    **dict.fromkeys(
        ("factor", "resource", "min_resources", "max_resources", "aggressive_elimination"),
        "halving pays for each of its rounds; DPSubsetSearchCV(subset_fraction=0.1) tunes on a "
        "random subset, then trains once on the others",
    ),
    "cv": "which records train and which validate is fixed here; leave it out",
    "refit": "one training on all records follows the choice, always; leave it out",
}


#: Public names of 0.3.0 that are gone ↦ what serves instead.
REMOVALS = {
    **dict.fromkeys(
        ("DPTabularEnsembleClassifier", "DPTabularEnsembleRegressor"),
        "Average the predictions of two released models, each trained at half of mu squared "
        "(docs/learn/tables.md).",
    ),
    **dict.fromkeys(
        ("CostPartsDisplay", "CountDistributionDisplay", "PrivacyProfileDisplay", "SearchDisplay"),
        "examples/guides/pictures.py draws the same.",
    ),
}


def missing_name(module: str, name: str) -> AttributeError:
    """Error for a name that a module does not have.

    It says what serves instead of a name that is gone.
    """
    return AttributeError(
        " ".join(filter(None, [f"module {module!r} has no attribute {name!r}", REMOVALS.get(name)]))
    )


class KnownArguments:
    """Mixin of classes that name the argument that is meant by an unknown one."""

    def __new__(cls, *positional: object, **named: object) -> Self:
        """Raise for arguments that no constructor of the class takes, with the ones that are meant.

        A class with open arguments checks names of parts, which have two underscores, by itself.
        """
        classes = [vars(base) for base in cls.__mro__ if base is not object]
        constructors = [members["__init__"] for members in classes if "__init__" in members]
        signatures = [list(signature(init).parameters.values())[1:] for init in constructors]
        parameters = itertools.chain(*signatures)
        names = {p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
        is_open = any(parameter.kind is parameter.VAR_KEYWORD for parameter in signatures[0])
        strange = [
            name
            for name in named
            if name not in names and not (is_open and ("__" in name or name[0] == "_"))
        ]
        if strange:
            unknown = " ".join(f"Unknown: {name}{_meant(name, names)}." for name in strange)
            raise TypeError(f"Found arguments that {cls.__name__} does not have. {unknown}")
        return super().__new__(cls)


def _meant(name: str, names: set[str]) -> str:
    if name in ARGUMENT_REMEDIES:
        return f": {ARGUMENT_REMEDIES[name]}"
    matches = difflib.get_close_matches(name, sorted(names), 1, 0.5)
    meant = SYNONYMS[name] if SYNONYMS.get(name, "") in names else next(iter(matches), None)
    return "" if meant is None else f"; {meant} is meant"


def did_you_mean(name: object, names: Iterable[str]) -> str:
    """A suggestion to end an error message with, or nothing."""
    close = difflib.get_close_matches(str(name), list(names), 1, 0.5)
    return f" Did you mean {close[0]!r}?" if close else ""


def not_once(columns: Sequence[str], wanted: Iterable[str]) -> str:
    """Message that lists all wanted columns that a table lacks or has twice.

    It is empty if the table has each of them once.
    """
    wrong = [name for name in wanted if columns.count(name) != 1]
    missing = [name for name in wrong if name not in columns]
    twice = [name for name in wrong if name in columns]
    mistakes = [
        f"column{'s' * (len(names) > 1)} {', '.join(map(repr, names))} of the schema {place} table"
        for names, place in ((missing, "missing from the"), (twice, "twice in the"))
        if names
    ]
    if not mistakes:
        return ""
    hints = (did_you_mean(name, columns).replace("?", f" for {name!r}?") for name in missing)
    remedy = " Give each column a name of its own." * bool(twice)
    message = f"Found {' and '.join(mistakes)}, whose columns are {list(columns)}."
    return "".join((message, *dict.fromkeys(hints), remedy))
