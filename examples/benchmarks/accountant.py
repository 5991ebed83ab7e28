"""How tight and how fast the accountant is.

    python examples/benchmarks/accountant.py  # fewer rows of (a), (e) and (g): half a minute
    python examples/benchmarks/accountant.py --full    # all
    python examples/benchmarks/accountant.py --table   # the table of docs/theory/best_of.md alone

(a) Gaussian bases: the reported ε, the certified lower bound and the smallest published bound, for
each distribution of K. (b) DP-SGD bases with every bound.  (c) The Poisson distribution.  (d) A
pure base against brute force. (e) The table of docs/theory/best_of.md: reported and certified side
by side, for all distributions and bases (alone: --table). (f) Wall time and peak memory of one cold
answer, of calibrating a whole search and of a subset search, each in a fresh process; CPU seconds
of the first and the second plan of a search over a net.  (g) ε at a tiny δ and after very many
steps.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np

from sklearn_dpsearch.privacy import (
    DPSGD,
    Binomial,
    CountDistribution,
    GaussianDP,
    Geometric,
    Guarantee,
    Logarithmic,
    NegativeBinomial,
    Poisson,
    PureDP,
    best_of,
    subset_then_train,
    witness,
    witness_epsilon,
)

sys.path.insert(0, str(Path(__file__).parents[1] / "papers"))
import _bounds

DELTA = 1e-6
#: Bounds of this library, which are not published elsewhere.
OURS = ("Theorem 1", "Theorem 5", "Theorem 6")
MUS = (0.25, 0.2**0.5, 1.0)
SHAPES = (-0.5, 0.0, 0.5, 1.0, 5.0)
MEANS = (10, 100, 1000)
SGD = {
    "sigma 1.1, rate 256/60000, 60 epochs": DPSGD(
        noise_multiplier=1.1, sample_rate=256 / 60000, steps=14062
    ),
    "sigma 2, rate 0.01, 5000 steps": DPSGD(noise_multiplier=2.0, sample_rate=0.01, steps=5000),
}


@cache
def bounds_at(base: Guarantee, distribution: CountDistribution, delta: float) -> dict[str, float]:
    """ε of every bound that applies, by name."""
    return {
        name: float(bound.epsilon_at(delta))
        for name, bound in _bounds.all_bounds(base, distribution).items()
    }


def smallest_published(bounds: dict[str, float]) -> tuple[str, float]:
    """The tightest published bound."""
    name = min((key for key in bounds if key not in OURS), key=lambda key: bounds[key])
    return name, bounds[name]


@cache
def certified(base: Guarantee, distribution: CountDistribution, delta: float) -> float:
    """ε that some mechanism with this base certainly loses."""
    return float(witness_epsilon(base, distribution, delta))


# --- tightness ------------------------------------------------------------------------------------


def settings(full: bool) -> Iterator[tuple[GaussianDP, NegativeBinomial]]:
    """Gaussian bases and distributions of the table."""
    for mu, shape, mean in itertools.product(
        MUS if full else MUS[1:2], SHAPES, MEANS if full else MEANS[:1]
    ):
        yield GaussianDP(mu=mu), NegativeBinomial(shape, mean)


def gaussian_table(full: bool) -> Iterator[tuple[float, float, int, float, float, str, float]]:
    """Rows (μ, η, mean, reported, witness, name of the best published bound, its ε)."""
    for base, distribution in settings(full):
        reported, certain = (
            best_of(base, distribution).epsilon_at(DELTA),
            certified(base, distribution, DELTA),
        )
        yield (
            base.mu,
            distribution.shape,
            int(distribution.mean),
            reported,
            certain,
            *smallest_published(bounds_at(base, distribution, DELTA)),
        )


def brute_force_pure(epsilon: float, distribution: CountDistribution) -> float:
    """ε + sup log f'(q)/f'(q_min(q)) over two million points."""
    small = np.geomspace(1e-14, 0.5, 10**6)
    kink = 1 / (1 + np.exp(epsilon))
    u, z = (
        np.concatenate([small, 1 - small, [kink]]),
        np.concatenate([1 - small, small, [1 - kink]]),
    )
    low = u >= kink
    lower = np.where(low, np.exp(-epsilon) * z, 1 - np.exp(epsilon) * u)
    lower_u = np.where(low, 1 - np.exp(-epsilon) * z, np.exp(epsilon) * u)
    return epsilon + float(
        np.max(distribution.log_slope(z, u) - distribution.log_slope(lower, lower_u))
    )


TABLE_BASES: dict[str, tuple[Guarantee, float]] = {
    "Gaussian, mu^2 = 0.2": (GaussianDP(mu=0.2**0.5), 1e-6),
    "DP-SGD, sigma 2": (SGD["sigma 2, rate 0.01, 5000 steps"], 1e-5),
    "pure, epsilon 1": (PureDP(epsilon=1.0), 1e-6),
}
TABLE_DISTRIBUTIONS: tuple[CountDistribution, ...] = (
    Logarithmic(10),
    Geometric(10),
    Geometric(1000),
    NegativeBinomial(5, 10),
    Binomial(20, 0.5),
    Poisson(10),
    Poisson(30),
    Poisson(100),
)


def side_by_side(full: bool) -> Iterator[tuple[str, CountDistribution, float, float, float]]:
    """Rows (base, distribution, reported ε, certified ε, seconds of CPU for the report) at the δ of
    the base."""
    distributions = TABLE_DISTRIBUTIONS if full else TABLE_DISTRIBUTIONS[:2]
    for (name, (base, delta)), distribution in itertools.product(
        TABLE_BASES.items(), distributions
    ):
        start = time.process_time()
        reported = float(best_of(base, distribution).epsilon_at(delta))
        seconds = time.process_time() - start
        yield name, distribution, reported, witness_epsilon(base, distribution, delta), seconds


def near_zero() -> Iterator[tuple[str, float, float, float, float]]:
    """Rows (base, ε, δ by Theorem 1, δ reported, δ certified) for a geometric distribution."""
    for name, base in (
        ("Gaussian, mu = 0.3", GaussianDP(mu=0.3)),
        ("pure, epsilon 0.5", PureDP(epsilon=0.5)),
    ):
        search = best_of(base, Geometric(10))
        for epsilon in (0.0, 0.25, 0.5, 0.75):
            first = float(search.bounds["Theorem 1"].delta_at(epsilon))
            yield (
                name,
                epsilon,
                first,
                search.delta_at(epsilon),
                witness(base, Geometric(10), epsilon),
            )


# --- speed ----------------------------------------------------------------------------------------


def cold_answer() -> float:
    """One answer from nothing but the parameters."""
    return float(
        best_of(SGD["sigma 1.1, rate 256/60000, 60 epochs"], Geometric(10)).epsilon_at(DELTA)
    )


def calibrated_search() -> float:
    """The noise multiplier of a whole search with a total of (3, 1e-5)."""
    from sklearn_dpsearch.privacy import calibrate

    def search(sigma: float) -> Guarantee:
        return best_of(
            DPSGD(noise_multiplier=sigma, sample_rate=256 / 60000, steps=14062), Geometric(20)
        )

    return calibrate(search, 3.0, 1e-5, (0.4, 20.0))


def subset_search() -> float:
    """Tuning on a tenth of the records with 45 runs on average, then training on all."""
    base = SGD["sigma 2, rate 0.01, 5000 steps"]
    return float(subset_then_train(best_of(base, Poisson(45)), base, 0.1, "all").epsilon_at(1e-5))


def plan_of(kind: str) -> Callable[[], float]:
    """ε of a search over a net with all defaults and a total of 3, before any data is read."""

    def plan() -> float:
        import sklearn_dpsearch
        from sklearn_dpsearch.nets import DPMLPClassifier

        search = getattr(sklearn_dpsearch, kind)(
            DPMLPClassifier(), "auto", epsilon=3.0, delta=DELTA
        )
        return float(search.privacy_cost(n_samples=32561).epsilon)

    return plan


TASKS: dict[str, Callable[[], float]] = {
    "cold_answer": cold_answer,
    "calibrated_search": calibrated_search,
    "subset_search": subset_search,
    **{kind: plan_of(kind) for kind in ("DPSubsetSearchCV", "DPRandomSearchCV", "DPGridSearchCV")},
}


def peak_memory_in_mb() -> float:
    """Largest memory this process has held (where the platform says)."""
    status = Path("/proc/self/status")
    if status.exists():  # what getrusage says there counts the process that started this one
        return int(status.read_text().split("VmHWM:")[1].split()[0]) / 2**10
    try:
        import resource
    except ImportError:
        return float("nan")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def measure(task: str) -> dict[str, float]:
    """Run a task here; its value, seconds, the memory it added to that of the imports, CPU seconds
    of it and again."""
    if task.startswith("DP"):  # imports, which wait until they are needed
        import sklearn_dpsearch
        from sklearn_dpsearch.nets import DPMLPClassifier

        getattr(sklearn_dpsearch, task)(DPMLPClassifier(), "auto")
    before, start, cpu = peak_memory_in_mb(), time.perf_counter(), time.process_time()
    value = TASKS[task]()
    first, megabytes = time.process_time(), peak_memory_in_mb() - before
    measurements = {
        "value": value,
        "seconds": time.perf_counter() - start,
        "megabytes": megabytes,
        "cpu": first - cpu,
    }
    TASKS[task]()
    return {**measurements, "again": time.process_time() - first}


def measure_in_fresh_process(task: str) -> dict[str, float]:
    out = subprocess.run(
        [sys.executable, __file__, "--measure", task], capture_output=True, text=True, check=True
    )
    return dict(json.loads(out.stdout))


# --- print ----------------------------------------------------------------------------------------


def print_tightness(full: bool) -> None:
    print(f"(a) Gaussian base, delta = {DELTA:g}: reported, witness, best published")
    worst = 1.0
    for mu, shape, mean, reported, certain, name, published in gaussian_table(full):
        worst = max(worst, reported / certain)
        print(
            f"  mu {mu:.3f}  eta {shape:4.1f}  mean {mean:5d}   {reported:8.4f}  {certain:8.4f} "
            f"(x {reported / certain:.4f})  {published:8.4f}  {name}"
        )
    print(f"  largest reported / witness: {worst:.4f}")
    for theorem in ("PS22 Theorem 2", "KRW24 Theorem 5.2"):
        ratios = [
            bounds_at(base, distribution, DELTA)[theorem] / certified(base, distribution, DELTA)
            for base, distribution in settings(full)
        ]
        print(f"  {theorem} / witness: {min(ratios):.3f} to {max(ratios):.3f}")


def print_sgd() -> None:
    print(f"(b) DP-SGD base, delta = {DELTA:g}")
    for label, base in SGD.items():
        print(f"  {label}: one run {base.epsilon_at(DELTA):.4f}")
        for distribution in (Geometric(10), Logarithmic(100), Poisson(10).at_least_one()):
            bounds = bounds_at(base, distribution, DELTA)
            row = ", ".join(f"{name} {epsilon:.4f}" for name, epsilon in bounds.items())
            print(
                f"    {distribution}: witness {witness_epsilon(base, distribution, DELTA):.4f}, "
                f"{row}"
            )


def print_poisson_and_pure() -> None:
    base, distribution = GaussianDP(mu=0.2**0.5), Poisson(10)
    bounds = bounds_at(base, distribution, DELTA)
    print(
        f"(c) Poisson, mean 10, mu sqrt(0.2): witness "
        f"{witness_epsilon(base, distribution, DELTA):.4f}, {bounds}"
    )
    print("(d) pure base: reported at delta = 0, brute force, (2 + eta)·epsilon")
    for shape, mean in ((-0.5, 10), (0.0, 10), (1.0, 10), (1.0, 1000), (5.0, 10)):
        count = NegativeBinomial(shape, mean)
        for epsilon in (0.1, 1.0):
            reported = best_of(PureDP(epsilon=epsilon), count).epsilon_at(0.0)
            brute = brute_force_pure(epsilon, count)
            print(
                f"  eta {shape:4.1f}  mean {mean:5d}  epsilon {epsilon}:  {reported:.8f}  "
                f"{brute:.8f}  {(2 + shape) * epsilon:.4f}"
            )


def print_table(full: bool) -> None:
    print(
        "(e) base, distribution: reported epsilon, certified, ratio, seconds of CPU for the report"
    )
    for name, distribution, reported, certain, seconds in side_by_side(full):
        print(
            f"  {name}, {distribution}: {reported:.4f}  {certain:.4f}  {reported / certain:.4f}  "
            f"{seconds:.2f}"
        )
    print("    base, epsilon: delta by Theorem 1, reported, certified, ratio (Geometric, mean 10)")
    for name, epsilon, first, reported, certain in near_zero():
        print(
            f"  {name}, {epsilon}: {first:.4f}  {reported:.4f}  {certain:.4f}  "
            f"{reported / certain:.3f}"
        )


def print_speed() -> None:
    print("(f) in a fresh process, imports apart")
    for task in TASKS:
        seconds = measure_in_fresh_process(task)
        print(
            f"  {task}: {seconds['seconds']:.2f} s, CPU {seconds['cpu']:.2f} s and again "
            f"{seconds['again']:.3f} s, {seconds['megabytes']:.0f} MB above the imports (answer "
            f"{seconds['value']:.4f})"
        )


#: Runs whose digits are far out, and the mean number of runs.
FAR = [
    (DPSGD(noise_multiplier=1.0, sample_rate=1e-4, steps=10**5), 100),
    (DPSGD(noise_multiplier=1.0, sample_rate=1e-4, steps=10**6), 100),
    (DPSGD(noise_multiplier=2.0, sample_rate=0.01, steps=5000), 100),
]


def print_far_digits(full: bool) -> None:
    print("(g) far out: one run, reported, witness, smallest published")
    for (base, mean), delta in itertools.product(FAR if full else FAR[-1:], (1e-8, 1e-10, 1e-12)):
        distribution = Geometric(mean)
        reported, (name, published) = (
            best_of(base, distribution).epsilon_at(delta),
            smallest_published(bounds_at(base, distribution, delta)),
        )
        certain = witness_epsilon(base, distribution, delta)
        print(
            f"  {base.steps} steps, delta {delta:g}: {base.epsilon_at(delta):.4f}  {reported:.4f}  "
            f"{certain:.4f}  {published:.4f} ({name})"
        )


def main(full: bool) -> None:
    print_tightness(full)
    print_sgd()
    print_poisson_and_pure()
    print_table(full)
    print_speed()
    print_far_digits(full)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(sys.argv[2])))
    elif sys.argv[1:2] == ["--table"]:
        print_table(full=True)
    else:
        main(full="--full" in sys.argv)
