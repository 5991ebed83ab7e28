"""Comparison of searches for one budget, before any data.

It is a table, as text, HTML or a data frame.
"""

from __future__ import annotations

import html
import itertools
import math
import time as clock
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import clone

from .._process import Stage, speaking
from ..data._records import number_of_records
from ..ledger._ledger_context import counted
from ..privacy import CountDistribution, PrivacyError
from ..privacy._checks import number_in, require_whole
from ..scoring._validation import Validation
from ..search import BasePrivateSearch, DPGridSearchCV, DPRandomSearchCV, DPSubsetSearchCV
from ..search._planning.plan import Plan
from ..search._random_subset import USUAL_RUNS
from ..search._records import columns_read, take, with_parameters
from ..search._sample_and_aggregate import HOLDOUT, SampleAndAggregate
from ..search._subset_search import SubsetStrategy
from ..search._synthetic_records import made_up

#: Fewest records for which a subset search is recommended; most records, and largest ε, for which
#: one fit is.
MANY_RECORDS, FEW_RECORDS, SMALL_EPSILON = 30_000, 5_000, 1.0
FIT, RANDOM, SUBSET, GRID = "one fit", "random", "subset", "grid"
#: First guess of a rough plan, in multiples of the loss of a single fit. A bad guess costs only
#: time.
GUESSES = {RANDOM: 0.7, SUBSET: 1.02, GRID: 0.83}
REASONS = {
    SUBSET: f"{MANY_RECORDS:,} records or more: the final model of a subset search has nearly all "
    "of ε, so it costs little even where there was nothing to find.",
    RANDOM: f"Fewer than {MANY_RECORDS:,} records: search only where candidates differ by much, as "
    "the winner has little more than half of ε.",
    FIT: "With few records and a small ε one fit at good defaults beats every search.",
}
NOT_PLANNED = "The rules name {!r}, which cannot be planned here (see left_out)."
FIRST_STEP = (
    "Start with one fit at the defaults, and tune what no default knows "
    "(docs/learn/which_search.md)."
)


#: Number of runs: expected, a distribution, or a word of a subset search.
Runs: TypeAlias = float | CountDistribution | str


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Search to be planned: its kind, and arguments besides the common ones."""

    kind: str
    make: type[BasePrivateSearch]
    space: Any
    arguments: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Name of a planned search: kind and differing arguments."""
        arguments = (f"{name}={_as_source(value)}" for name, value in self.arguments.items())
        return ", ".join([self.kind, *arguments])

    def search(self, estimator: Any, budget: Mapping[str, Any]) -> BasePrivateSearch:
        """Build the search with a budget."""
        return self.make(estimator, self.space, **self.arguments, **budget)

    def call(self, budget: Mapping[str, Any]) -> str:
        """Call of the search, as source code."""
        space = repr(self.space) if self.space == "auto" or self.space == {} else "space"
        named = {**self.arguments, **budget}.items()
        texts = ["estimator", space, *(f"{name}={_as_source(value)}" for name, value in named)]
        return f"{self.make.__name__}({', '.join(texts)})"


def _as_source(value: Any) -> str:
    """Value as Python source code."""
    return repr(value.item() if isinstance(value, np.generic) else value)


def plan(
    estimator: Any,
    n_samples: int,
    epsilon: float,
    delta: float | None = None,
    *,
    param_distributions: Any = "auto",
    param_grid: Any = None,
    n_iter: Runs | Sequence[Runs] | None = None,
    subset_fraction: float | str | Sequence[float | str] = "auto",
    tuning_share: float | Sequence[float | None] | None = None,
    time: bool = False,
    X_example: Any = None,
    y_example: Any = None,
    **arguments: Any,
) -> Comparison:
    """Compare searches before any data is touched.

    Parameters
    ----------
    estimator : estimator
        As for the searches.
    n_samples : int
        Number of records if public, else a rough number.
    epsilon, delta : float, float or None
        The total that each search may spend.
    param_distributions, param_grid : dict, list of dicts or "auto"
        The spaces; with ``param_grid=None`` the grid is ``param_distributions``.
    n_iter, subset_fraction, tuning_share : value or sequence of values
        Distributions of K, fractions and shares to compare: each combination is a row. Each row of
        a random or subset search takes some seconds. ``n_iter=None`` is the default of each search;
        "auto" and "each" are for subset searches alone.
    time : bool, default=False
        Measure one training on ``n_samples`` made-up records, to estimate the time of each search.
        The plans do not depend on these records.
    X_example, y_example : array-like, optional
        Public or made-up records for the measurement, repeated as needed: **never private
        records**.
    **arguments : dict
        Passed on to all searches (``scoring``, ``guarantee``, ``n_jobs``).

    Returns
    -------
    Comparison
        ``rows``, ``recommended`` and ``why``; a table as text and HTML, ``to_frame()``.

    Raises
    ------
    PrivacyError
        If none of the searches can be planned.
    TypeError, ValueError
        If ``n_samples`` is no whole number from 1, or ``epsilon`` no number above 0.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_dpsearch import plan
    >>> from sklearn_dpsearch.privacy import PureDP
    >>> class Private(LogisticRegression):
    ...     privacy_parameters = ("tol",)
    ...     def privacy_guarantee(self, n_samples=None):  # a real one would keep it
    ...         return PureDP(epsilon=self.tol, neighboring="replace_one")
    ...     def scaled_privacy(self, factor, varying):
    ...         return {"tol": factor * self.tol}
    >>> compared = plan(Private(), 3000, epsilon=0.5, param_distributions={"C": [0.1, 1.0]})
    >>> [row.search for row in compared.rows]
    ['one fit', 'random, n_iter=10', "subset, n_iter='auto', subset_fraction='auto'", 'grid']
    >>> compared.recommended.call
    'DPGridSearchCV(estimator, {}, epsilon=0.5, delta=None)'
    """
    require_whole(1, n_samples=n_samples)
    n_samples, epsilon = int(n_samples), number_in("(0, inf)", epsilon=epsilon)
    budget = {"epsilon": epsilon, "delta": delta, **arguments}
    space, grid = param_distributions, param_distributions if param_grid is None else param_grid
    plans: dict[str, tuple[Asked, Any, Plan]] = {}
    left_out: dict[str, str] = {}
    for asked in _requested_searches(space, grid, n_iter, subset_fraction, tuning_share):
        try:
            search, factor = asked.search(estimator, budget), _first_factor(asked, plans)
            plans[asked.name] = asked, *planned(search, n_samples, factor)
        except (PrivacyError, ValueError, TypeError) as error:
            left_out[asked.name] = str(error)
    if not plans:
        raise PrivacyError(f"No search can be planned. {next(iter(left_out.values()))}")
    rows = {name: _plan_row(name, *entry, budget) for name, entry in plans.items()}
    if time:
        settings = next(iter(rows.values())).noise
        speaking("plan", True)(Stage(f"timing one training on {n_samples:,} made-up records"))
        seconds = seconds_of_training(estimator, settings, n_samples, X_example, y_example)
        rows = {name: replace(row, seconds=seconds * row.work) for name, row in rows.items()}
    kind, why = _recommended({asked.kind for asked, *_ in plans.values()}, n_samples, epsilon)
    return Comparison(
        n_samples=n_samples,
        epsilon=epsilon,
        delta=delta,
        rows=list(rows.values()),
        recommended=next(rows[name] for name, (asked, *_) in plans.items() if asked.kind == kind),
        why=f"{why} {FIRST_STEP}",
        left_out=left_out,
        columns=columns_read(estimator),
    )


def _as_list(value: Any) -> list[Any]:
    """List of the values of a sequence or an array, or of a single value."""
    values = value.tolist() if isinstance(value, np.ndarray) else value
    is_sequence = isinstance(values, Sequence) and not isinstance(values, str)
    return list(values) if is_sequence else [values]


def _requested_searches(
    space: Any, grid: Any, n_iter: Any, subset_fraction: Any, tuning_share: Any
) -> Iterator[Asked]:
    """Yield the searches to plan.

    One fit is a grid of one candidate: no choice, and no cost of a choice.
    """
    yield Asked(kind=FIT, make=DPGridSearchCV, space={}, arguments={})
    distributions, fractions, shares = map(_as_list, (n_iter, subset_fraction, tuning_share))
    for distribution in distributions:
        if not isinstance(distribution, str):
            arguments = {"n_iter": USUAL_RUNS if distribution is None else distribution}
            yield Asked(kind=RANDOM, make=DPRandomSearchCV, space=space, arguments=arguments)
    for distribution, fraction, share in itertools.product(distributions, fractions, shares):
        n_iter = "auto" if distribution is None else distribution
        arguments = {"n_iter": n_iter, "subset_fraction": fraction}
        if share is not None:
            arguments["tuning_share"] = share
        yield Asked(kind=SUBSET, make=DPSubsetSearchCV, space=space, arguments=arguments)
    yield Asked(kind=GRID, make=DPGridSearchCV, space=grid, arguments={})


def _first_factor(asked: Asked, plans: Mapping[str, tuple[Asked, Any, Plan]]) -> float | None:
    """First guess of the factor on the loss of an estimator.

    That of the previous row of the kind, or a multiple of a single fit's factor, which comes first.
    """
    factors = [plan.factor for other, _, plan in plans.values() if other.kind == asked.kind]
    if factors:
        return factors[-1]
    factor = plans[FIT][-1].factor if FIT in plans else None
    return None if factor is None else GUESSES[asked.kind] * factor


def _plan_row(name: str, asked: Asked, strategy: Any, plan: Plan, budget: Mapping[str, Any]) -> Row:
    """Row of the table for one planned search."""
    delta, distribution = float(budget["delta"] or 0.0), plan.distribution
    if distribution is None:
        quantile, alone, epsilon_run = math.nan, float(strategy.space.size() == 1), math.nan
    else:
        quantile, alone = float(distribution.expected_quantile()), float(distribution.pmf(1))
        epsilon_run = float(plan.promises.one_run.epsilon_at(delta))
    return Row(
        search=name,
        call=asked.call(budget),
        quantile=quantile,
        alone=alone,
        epsilon_run=epsilon_run,
        epsilon_final=float(plan.final.worst.epsilon_at(delta)),
        noise={name: value for name, value in plan.final_settings.items() if value is not None},
        work=expected_work(strategy, plan),
    )


#: Rules of docs/learn/which_search.md in order: condition, and recommended kind.
RULES: tuple[tuple[Callable[[int, float], bool], str], ...] = (
    (lambda n, epsilon: n >= MANY_RECORDS, SUBSET),
    (lambda n, epsilon: n <= FEW_RECORDS and epsilon <= SMALL_EPSILON, FIT),
    (lambda n, epsilon: True, RANDOM),
)


def _recommended(kinds: set[str], n_samples: int, epsilon: float) -> tuple[str, str]:
    """Kind of search to recommend, and why.

    If it cannot be planned, a single fit, else the first planned kind.
    """
    named = next(kind for applies, kind in RULES if applies(n_samples, epsilon))
    if named in kinds:
        return named, REASONS[named]
    possible = next(kind for kind in (FIT, RANDOM, SUBSET, GRID) if kind in kinds)
    return possible, NOT_PLANNED.format(named)


# --- one search -----------------------------------------------------------------------------------


def planned(
    search: BasePrivateSearch, n_samples: int, factor: float | None = None
) -> tuple[Any, Plan]:
    """Strategy and plan of a search, without data.

    With a guess of the factor the total is up to 3 % smaller.

    Raises
    ------
    PrivacyError, ValueError, TypeError
        Errors that ``fit`` would raise before it uses a record.
    """
    search._validate_params()
    strategy = search._strategy()
    return strategy, strategy.plan(n_samples, False, search.delta, guess=factor)


def expected_work(strategy: Any, plan: Plan) -> float:
    """Expected number of records that a search processes, in units of one training on all."""
    if isinstance(strategy, SampleAndAggregate):
        candidates = strategy.space.size()
        return 1.0 + (candidates > 1) * candidates * (1.0 - 1.0 / HOLDOUT)
    assert plan.distribution is not None
    runs = float(plan.distribution.mean) * _share_trained(plan.validation)
    if isinstance(strategy, SubsetStrategy):
        return runs + float(strategy.sizes(plan, None).final)
    return runs + (getattr(strategy.search, "refit", None) is True)


def _share_trained(validation: Validation) -> float:
    """Expected number of models that a record trains in a run.

    Where folds are public it is the largest number.
    """
    uses = validation.exposures()
    if any(use.probability is None for use in uses):
        return float(max(use.trainings for use in uses))
    trainings = sum(float(use.probability or 0.0) * use.trainings for use in uses)
    return validation.taking_part * trainings


def seconds_of_training(
    estimator: Any, settings: dict[str, Any], n_samples: int, X: Any = None, y: Any = None
) -> float:
    """Measure the seconds of one training on public records.

    They are examples or made-up records; nan where none can be made up, or a fit fails on them.

    The records decide about this time alone: the plan does not depend on them.
    """
    no_scorer: Any = None
    try:
        X, y = made_up(estimator, no_scorer) if X is None else (X, y)
        chosen = np.resize(np.arange(number_of_records(X)), n_samples)
        X, y = take(X, chosen), take(y, chosen)
        model = with_parameters(clone(estimator), settings)
        since = clock.perf_counter()
        with counted():  # these records are public or made up: no ledger counts the fit
            model.fit(X, y)
    except Exception:  # the comparison does not depend on it
        return math.nan
    return clock.perf_counter() - since


# --- the table ------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Row:
    """Row of a plan: one way to spend the budget.

    Parameters
    ----------
    search : str
        Name of the search.
    call : str
        Source code of the call, with the names ``estimator`` and ``space``.
    quantile : float
        Expected quantile of the winner among all candidates, ranked by score; nan where every
        candidate is tried, or none is chosen.
    alone : float
        Chance that only one candidate is tried, without a comparison.
    epsilon_run, epsilon_final : float
        ε of training one candidate, and of training the model that is released, at the total's δ.
    noise : dict
        Parameters that set the noise of the released model.
    work : float
        Expected number of records processed, in units of one training on all records.
    seconds : float
        ``work`` times the time of one training on made-up records; nan if not measured.
    """

    search: str
    call: str
    quantile: float
    alone: float
    epsilon_run: float
    epsilon_final: float
    noise: dict[str, Any]
    work: float
    seconds: float = math.nan


def _noise_cell(row: Row) -> str:
    """Cell with the parameters that set the noise."""
    numbers = {name: value for name, value in row.noise.items() if isinstance(value, (int, float))}
    return ", ".join(f"{name}={value:.4g}" for name, value in numbers.items())


def _number_cell(value: float, digits: int) -> str:
    """Cell with a number, or a dash."""
    return "–" if math.isnan(value) else f"{value:.{digits}f}"


#: Heading ↦ content of a cell.
COLUMNS: dict[str, Callable[[Row], str]] = {
    "search": lambda row: row.search,
    "quantile of the winner": lambda row: _number_cell(row.quantile, 3),
    "one alone": lambda row: f"{100 * row.alone:.0f} %",
    "ε of a run": lambda row: _number_cell(row.epsilon_run, 3),
    "ε of the model": lambda row: _number_cell(row.epsilon_final, 3),
    "noise": _noise_cell,
    "work": lambda row: _number_cell(row.work, 1),
    "seconds": lambda row: _number_cell(row.seconds, 0),
}


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Comparison of searches for one budget, the result of ``plan``.

    Parameters
    ----------
    n_samples : int
    epsilon, delta : float
        The total that every row spends, or up to 3 % less.
    rows : list of Row
    recommended : Row
    why : str
        The rule behind the recommendation (docs/learn/which_search.md).
    left_out : dict
        Search ↦ reason why planning failed.
    columns : list of str
        One line for each column, as the schema of the estimator is understood; empty without a
        schema.
    """

    n_samples: int
    epsilon: float
    delta: float | None
    rows: list[Row]
    recommended: Row
    why: str
    left_out: dict[str, str]
    columns: list[str] = field(default_factory=list)

    @property
    def _cells(self) -> list[list[str]]:
        """Texts of all cells of the table."""
        return [[show(row) for show in COLUMNS.values()] for row in self.rows]

    def __str__(self) -> str:
        table = [list(COLUMNS), *self._cells]
        widths = [max(len(line[place]) for line in table) for place in range(len(COLUMNS))]
        aligned = ([*map(str.ljust, line, widths)] for line in table)
        lines = ["  ".join(cells).rstrip() for cells in aligned]
        lines += [f"left out: {name}: {reason}" for name, reason in self.left_out.items()]
        lines += [f"recommended: {self._recommended}", self.why]
        if self.columns:
            lines += ["columns as they are read:", *(f"  {line}" for line in self.columns)]
        return "\n".join([self._title, *lines])

    @property
    def _recommended(self) -> str:
        """Name and call of the recommended search.

        A single fit is a grid of one candidate, without a choice.
        """
        return f"{self.recommended.search}: {self.recommended.call}"

    @property
    def _title(self) -> str:
        """Title of the table: records and budget."""
        delta = "" if self.delta is None else f", delta = {self.delta:g}"
        return f"{self.n_samples:,} records, epsilon = {self.epsilon:g}{delta}"

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in COLUMNS)
        rows = ("".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in self._cells)
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        missing = "".join(
            f"<li>{html.escape(f'{name}: {text}')}</li>" for name, text in self.left_out.items()
        )
        code = f"<p><b>recommended</b> <code>{html.escape(self._recommended)}</code></p>"
        columns = "<br>".join(map(html.escape, self.columns))
        notes = f"{code}<p>{html.escape(self.why)}</p><ul>{missing}</ul><p>{columns}</p>"
        table = f"<table><tr>{head}</tr>{body}</table>"
        return f"<div><p>{html.escape(self._title)}</p>{table}{notes}</div>"

    def to_frame(self) -> Any:
        """Convert the rows to a pandas data frame.

        Returns
        -------
        pandas.DataFrame
        """
        import pandas as pd

        return pd.DataFrame([asdict(row) for row in self.rows])
