"""``python -m sklearn_dpsearch.privacy``: the ε of a search, with a certificate from below."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

from ..errors import PrivacyError
from ._checks import NEIGHBORING, number_in, require
from ._count_distributions.base import CountDistribution
from ._count_distributions.distributions import Fixed, Poisson
from ._count_distributions.negative_binomial import Geometric, Logarithmic
from ._guarantees.base import Guarantee
from ._guarantees.pure import PureDP
from ._guarantees.single_mechanisms import DPSGD, ZCDP, ApproxDP, GaussianDP
from ._selection.best_of import best_of
from ._selection.witness import witness_epsilon
from ._statement.content import up

#: Kind of one run ↦ its class, whose numbers are given in the order of its fields.
RUNS: dict[str, type[Guarantee]] = {
    "pure": PureDP, "approx": ApproxDP, "zcdp": ZCDP, "gaussian": GaussianDP, "dpsgd": DPSGD
}  # fmt: skip
#: Most runs of a fixed number: they are composed one by one.
MOST_FIXED_RUNS = 100_000


COUNTS: dict[str, Callable[[Any], CountDistribution]] = {
    "geometric": Geometric,
    "logarithmic": Logarithmic,
    "poisson": Poisson,
    "fixed": lambda runs: Fixed(int(runs) if runs.is_integer() else runs),
}


def argument_parser() -> argparse.ArgumentParser:
    """Parser of the command line for the ε of a search."""
    parser = argparse.ArgumentParser(
        prog="python -m sklearn_dpsearch.privacy", description=__doc__.partition(": ")[2]
    )
    kinds = parser.add_mutually_exclusive_group(required=True)
    for kind, build in RUNS.items():
        shown = tuple(map(str.upper, _parameter_names(build)))
        kinds.add_argument(
            f"--{kind}", type=float, nargs=len(shown), metavar=shown, help="what one run promises"
        )
    parser.add_argument("--runs", type=float, required=True, help="mean number of runs")
    number = "of the number of runs"
    parser.add_argument("--distribution", choices=COUNTS, default="geometric", help=number)
    parser.add_argument("--delta", type=float, required=True, help="of one run and of the search")
    parser.add_argument("--neighboring", choices=NEIGHBORING, default="add_remove")
    return parser


def _parameter_names(kind: type[Guarantee]) -> list[str]:
    """Names of a guarantee's numbers, in order."""
    return [field.name for field in fields(kind) if field.name != "neighboring"]


def search_epsilon_in_words(arguments: argparse.Namespace) -> str:
    """Text of three lines: ε of one run, of the search, and its certificate."""
    delta, neighboring = number_in("[0, 1)", delta=arguments.delta), arguments.neighboring
    kind = next(kind for kind in RUNS if getattr(arguments, kind) is not None)
    numbers = dict(zip(_parameter_names(RUNS[kind]), getattr(arguments, kind)))
    one_run = RUNS[kind](**numbers, neighboring=neighboring)
    if arguments.distribution == "fixed":
        expected = f"--runs <= {MOST_FIXED_RUNS} of a fixed number (other distributions take more)"
        require(arguments.runs <= MOST_FIXED_RUNS, expected, runs=arguments.runs)
    count = COUNTS[arguments.distribution](arguments.runs)
    search = best_of(one_run, count)
    name = search.tightest(delta) if hasattr(search, "tightest") else "one run"
    certain = witness_epsilon(one_run, count, delta)
    below = f"{math.floor(1000 * certain) / 1000:.3f}" if math.isfinite(certain) else "infinity"
    return (
        f"one run     epsilon {up(one_run.epsilon_at(delta))} at delta {delta!r}\n"
        f"the search  epsilon {up(search.epsilon_at(delta))} at delta {delta!r}, by "
        f"{name}: the best of {count!r} runs, {neighboring} neighbours\n"
        f"certified   epsilon {below}: some mechanism with the guarantee of one run loses as much"
    )


def main(words: Sequence[str] | None = None) -> None:
    """Print the ε of a search, or what is wrong with the arguments."""
    parser = argument_parser()
    try:
        print(search_epsilon_in_words(parser.parse_args(words)))
    except (PrivacyError, ValueError, TypeError) as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
