"""Errors of the library: each message says what was found, what is needed and the remedy."""

import difflib
from collections.abc import Iterable, Sequence
from inspect import signature


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
    """The total cost with earlier entries on the same records would exceed the budget of a
    ledger."""


class MissingDeltaError(PrivacyError):
    """A δ is needed, because the guarantee is not pure."""


#: Arguments of other libraries ↦ arguments of ours.
MEANT = {
    "epsilon": "target_epsilon", "delta": "target_delta", "mu": "target_mu", "epochs": "max_epochs",
    "n_epochs": "max_epochs", "num_epochs": "max_epochs", "max_norm": "max_grad_norm", "l2_norm_clip": "max_grad_norm",
    "clipping_norm": "max_grad_norm", "sigma": "noise_multiplier", "n_estimators": "max_iter", "n_rounds": "max_iter",
    "learning_rate_init": "learning_rate", "categories": "schema", "columns": "schema", "bounds": "bounds_X",
}  # fmt: skip


#: Arguments of scikit-learn's searches ↦ what a private search has instead.
INSTEAD = {
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
GONE = {
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
    """Error for a name that a module does not have, with what serves instead of one that is
    gone."""
    return AttributeError(
        " ".join(filter(None, [f"module {module!r} has no attribute {name!r}", GONE.get(name)]))
    )


class TrainingError(ValueError):
    """Error of a training in words of the library, which tell nothing of a record."""


def check_arguments_of(kind: type, named: Iterable[str]) -> None:
    """Raise for arguments that no constructor of a class takes, with the ones that are meant.

    A class with open arguments checks names of parts, which have two underscores, by itself.
    """
    constructors = [
        vars(one)["__init__"]
        for one in kind.__mro__
        if "__init__" in vars(one) and one is not object
    ]
    parameters = [one for made in constructors for one in signature(made).parameters.values()]
    known = {one.name for one in parameters}
    is_open = any(
        one.kind is one.VAR_KEYWORD for one in signature(constructors[0]).parameters.values()
    )
    strange = [
        name
        for name in named
        if name not in known and not (is_open and ("__" in name or name[0] == "_"))
    ]
    if strange:
        told = " ".join(f"Unknown: {name}{_meant(name, known)}." for name in strange)
        raise TypeError(f"Found arguments that {kind.__name__} does not have. {told}")


def _meant(name: str, known: set[str]) -> str:
    if name in INSTEAD:
        return f": {INSTEAD[name]}"
    near = difflib.get_close_matches(name, sorted(known), 1, 0.5)
    meant = MEANT[name] if MEANT.get(name, "") in known else next(iter(near), None)
    return "" if meant is None else f"; {meant} is meant"


def did_you_mean(found: object, known: Iterable[str]) -> str:
    """A suggestion to end an error message with, or nothing."""
    close = difflib.get_close_matches(str(found), list(known), 1, 0.5)
    return f" Did you mean {close[0]!r}?" if close else ""


def not_once(columns: Sequence[str], wanted: Iterable[str]) -> str:
    """Message that lists all wanted columns that a table lacks, or has twice; empty if it has each
    of them once."""
    wrong = [name for name in wanted if columns.count(name) != 1]
    missing = [name for name in wrong if name not in columns]
    twice = [name for name in wrong if name in columns]
    told = [
        f"column{'s' * (len(found) > 1)} {', '.join(map(repr, found))} of the schema {there} the "
        f"table"
        for found, there in ((missing, "missing from"), (twice, "twice in"))
        if found
    ]
    near = "".join(dict.fromkeys(did_you_mean(name, columns) for name in missing))
    return f"Found {' and '.join(told)}, whose columns are {list(columns)}.{near}" if told else ""
