"""Koskela & Kulkarni (NeurIPS 2023), "Practical DP Hyperparameter Tuning with Subsampling": figures
2 and 4 in shape.

    python examples/papers/kk23_mnist.py                        # digits, few epochs: a smoke test
    python examples/papers/kk23_mnist.py --full                 # MNIST from OpenML
    python examples/papers/kk23_mnist.py --full --data FOLDER   # MNIST from FOLDER/mnist.npz

Test accuracy by total ε (δ = 1e-5). For some amounts of noise each search runs, with a Poisson
number of runs on the paper's grid: on all records; on a subset (q = 0.1) and then one training on
the rest (variant 1) or on all (variant 2). Each is drawn twice: at the ε of the paper's Rényi
accounting (PS22, KK23), and at ours (Theorems 1 and 2). The accuracy is the same, as it is the same
mechanism. "geometric" is variant 1 with a geometric number of runs of the same mean, at our ε. "one
run" is one training with the learning rate that won last, which is not paid for. CPU times follow,
as multiples of the fastest search. Figure 2 tunes the learning rate (sampling rate 0.0213, 40
epochs, 15 runs on average), figure 4 also the sampling rate and the epochs (45 runs): there all
candidates promise one Gaussian guarantee.

The paper's nets are convolutional, and it chooses by test accuracy without noise. Here it is one
hidden layer of 32 (25,450 weights, about as many as theirs), and a private score chooses, which is
part of our ε and not of the paper's.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _show import Curves, show_all
from sklearn.base import clone
from sklearn.datasets import fetch_openml, load_digits
from sklearn.model_selection import train_test_split

from sklearn_dpsearch import DPRandomSearchCV, DPSubsetSearchCV
from sklearn_dpsearch.nets import DPMLPClassifier
from sklearn_dpsearch.privacy import (
    DPSGD,
    CountDistribution,
    GaussianDP,
    Geometric,
    Guarantee,
    Poisson,
    RenyiDP,
)
from sklearn_dpsearch.privacy._selection.published_bounds import (
    INTEGER_ORDERS,
    renyi_all,
    renyi_poisson,
    renyi_rest,
)

DELTA, FRACTION, RATE = 1e-5, 0.1, 0.0213
Records = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Setting:
    """One figure: a net, its grid, the mean number of runs, and what one run promises for an amount
    of noise."""

    net: Any
    grid: Mapping[str, list[Any]]
    mean: float
    noise: str
    promise: Callable[[float], Guarantee]
    noises: tuple[float, ...]


def records(full: bool, folder: Path | None) -> tuple[Records, float]:
    """Training and test records, and the largest feature."""
    if not full:
        X, X_test, y, y_test = train_test_split(*load_digits(return_X_y=True), random_state=0)
        return (X, y, X_test, y_test), 16.0
    if folder is not None:
        arrays = np.load(folder / "mnist.npz")
        return (
            arrays["X_train"],
            arrays["y_train"].astype(int),
            arrays["X_test"],
            arrays["y_test"].astype(int),
        ), 255.0
    pixels, labels = fetch_openml("mnist_784", return_X_y=True, as_frame=False)
    labels = labels.astype(int)
    return (pixels[:60_000], labels[:60_000], pixels[60_000:], labels[60_000:]), 255.0


def settings(full: bool, largest: float) -> dict[str, Setting]:
    """Both figures."""
    epochs, width = (40, 32) if full else (4, 8)
    net = DPMLPClassifier(
        (width,),
        classes=range(10),
        bounds_X=(0, largest),
        sample_rate=RATE,
        max_epochs=epochs,
        learning_rate="constant",
    )
    steps = round(epochs / RATE)
    rates = [10.0**-i for i in (4, 3.5, 3, 2.5, 2, 1.5, 1, 0.5, 0)]
    wider = {
        "sample_rate": [128 / 6000, 256 / 6000],
        "max_epochs": [epochs * k // 4 for k in (1, 2, 3, 4)],
    }
    mean_2, mean_4 = (15.0, 45.0) if full else (4.0, 4.0)

    def run(multiplier: float) -> Guarantee:
        return DPSGD(noise_multiplier=multiplier, sample_rate=RATE, steps=steps)

    few = {"learning_rate_init": rates}
    return {
        "figure_2": Setting(
            net, few, mean_2, "noise_multiplier", run, (1.5, 3.0, 6.0)[: 3 if full else 1]
        ),
        "figure_4": Setting(
            net,
            {**few, **wider},
            mean_4,
            "target_mu",
            lambda mu: GaussianDP(mu=mu),
            (0.6, 0.3, 0.15)[: 3 if full else 1],
        ),
    }


# --- what is compared -----------------------------------------------------------------------------


def published(
    run: Guarantee, distribution: Poisson, bound: Callable[..., Guarantee] | None
) -> float:
    """ε by Rényi curves: of the search, or of tuning on a subset and training."""
    curve = RenyiDP(orders=INTEGER_ORDERS, epsilons=run.renyi(INTEGER_ORDERS))
    tune = renyi_poisson(curve, distribution, INTEGER_ORDERS)
    return float((tune if bound is None else bound(tune, curve, FRACTION)).epsilon_at(DELTA))


def searches(setting: Setting, noise: float) -> dict[str, tuple[Any, dict[str, float]]]:
    """Name ↦ a search, and the paper's accounting of it ↦ ε."""
    net = clone(setting.net).set_params(**{setting.noise: noise})
    poisson, run = Poisson(setting.mean), setting.promise(noise)

    def on_subset(distribution: CountDistribution, train_on: Any) -> DPSubsetSearchCV:
        return DPSubsetSearchCV(
            net,
            setting.grid,
            n_iter=distribution,
            subset_fraction=FRACTION,
            train_on=train_on,
            delta=DELTA,
        )

    return {
        "on all records": (
            DPRandomSearchCV(net, setting.grid, n_iter=poisson, delta=DELTA),
            {"PS22": published(run, poisson, None)},
        ),
        "variant 1": (on_subset(poisson, "rest"), {"KK23": published(run, poisson, renyi_rest)}),
        "variant 2": (on_subset(poisson, "all"), {"KK23": published(run, poisson, renyi_all)}),
        "variant 1, geometric": (on_subset(Geometric(setting.mean), "rest"), {}),
    }


def measured(model: Any, data: Records, repetitions: int) -> tuple[float, float, Any]:
    """Mean test accuracy and mean CPU seconds of ``fit``, and the last model."""
    X, y, X_test, y_test = data
    accuracy, start = [], time.process_time()
    for _ in range(repetitions):
        model = clone(model).fit(X, y)
        accuracy.append(float(model.score(X_test, y_test)))
    return float(np.mean(accuracy)), (time.process_time() - start) / repetitions, model


def figure(setting: Setting, data: Records, repetitions: int) -> tuple[Curves, dict[str, float]]:
    """Curves (ε, accuracy), and the mean seconds of each search."""
    points, seconds = defaultdict(list), defaultdict(list)
    for noise in setting.noises:
        for name, (search, published) in searches(setting, noise).items():
            # the plan is made here, not in the time of ``fit``
            epsilon = search.privacy_cost(len(data[0])).epsilon
            accuracy, time_of_fit, fitted = measured(search, data, repetitions)
            seconds[name].append(time_of_fit)
            for source, total in {**published, "ours": epsilon}.items():
                points[f"{name}, {source}"].append((total, accuracy))
        won = getattr(fitted, "final_params_", fitted.best_params_)
        single = clone(setting.net).set_params(**{setting.noise: noise}, **won)
        points["one run"].append(
            (single.privacy_guarantee(len(data[0])).epsilon_at(DELTA), measured(single, data, 1)[0])
        )
    curves = {name: tuple(np.array(sorted(curve)).T) for name, curve in points.items()}
    return curves, {name: float(np.mean(times)) for name, times in seconds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--full", action="store_true", help="MNIST")
    parser.add_argument("--data", type=Path, help="folder with mnist.npz")
    parser.add_argument(
        "--figure", choices=["figure_2", "figure_4"], nargs="+", default=["figure_2"]
    )
    parser.add_argument("--repetitions", type=int, default=1)
    parser.add_argument("--out", type=Path, help="folder for pictures (needs matplotlib)")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    data, largest = records(arguments.full, arguments.data)
    for name in arguments.figure:
        curves, seconds = figure(
            settings(arguments.full, largest)[name], data, arguments.repetitions
        )
        show_all(
            {name: (lambda drawn=curves: drawn, "epsilon at delta = 1e-05", "accuracy")},
            "kk23",
            arguments.out,
        )
        fastest = min(seconds.values())
        print(
            "  CPU time: "
            + ", ".join(f"{name} {time / fastest:.1f}" for name, time in seconds.items()),
            flush=True,
        )


if __name__ == "__main__":
    main()
