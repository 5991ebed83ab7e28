"""Which score tells two private models apart, for the noise that it needs?

    python examples/benchmarks/telling_apart.py  # the breast cancer table: seconds
    python examples/benchmarks/telling_apart.py --data FOLDER --fits 3  # the tables of tables.py

Three families are trained on a part of the records (``--shares``) with all of ε: a net for data
frames, one without a hidden part ("linear"), and boosting. Every score of the library is computed
without noise on the test records, and its noise is that of ``DPSubsetSearchCV`` on as many
validation records as the search would have. A row has the difference of the net and the linear
model, and of the net and boosting, in standard deviations of the noise of one score: below 1 a
choice is by chance. "refits" is the standard deviation of the score over refits of one family, in
the same unit: noise of the training, which no score can take away.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tables import DELTA, Table, tables

from sklearn_dpsearch.boosting import DPGradientBoostingClassifier, DPGradientBoostingRegressor
from sklearn_dpsearch.nets import DPTabularClassifier, DPTabularRegressor
from sklearn_dpsearch.privacy import GaussianDP, calibrate
from sklearn_dpsearch.scoring import PrivateScorer, private_scorer
from sklearn_dpsearch.scoring._noise_matching import matched_noise
from sklearn_dpsearch.search._random_subset import FACTOR_OF_SCORES

#: Share of the records that validates in a subset search with its defaults.
VALIDATING = 0.9
DRAWS = 300


def families(table: Table, epsilon: float) -> dict[str, Any]:
    """The models, by name."""
    arguments = {"target": table.target, "target_epsilon": epsilon, "target_delta": DELTA}
    numbers = isinstance(table.schema[table.target], tuple)
    net = DPTabularRegressor if numbers else DPTabularClassifier
    boosting = DPGradientBoostingRegressor if numbers else DPGradientBoostingClassifier
    return {
        "net": net(table.schema, **arguments),
        "linear": net(table.schema, hidden_layer_sizes=(), **arguments),
        "boosting": boosting(table.schema, **arguments),
    }


def scorers(table: Table) -> Iterator[tuple[str, PrivateScorer]]:
    """Scores for the target of the table."""
    target = table.schema[table.target]
    if isinstance(target, tuple):
        width = target[1] - target[0]
        yield "R²", private_scorer("r2", y_range=target)
        yield (
            "squared error, clip width ÷ 2",
            private_scorer("neg_mean_squared_error", clip=width / 2),
        )
        for part in (1, 2, 4, 8):
            yield (
                f"absolute error, clip width ÷ {part}",
                private_scorer("neg_mean_absolute_error", clip=width / part),
            )
        return
    yield "accuracy", private_scorer("accuracy")
    for clip in (5.0, 3.0, 2.0):
        yield f"log loss, clip {clip:g}", private_scorer("neg_log_loss", clip=clip)
    yield "balanced accuracy", private_scorer("balanced_accuracy", classes=list(target))
    if len(target) == 2:
        last = sorted(target)[-1]
        yield "ROC AUC", private_scorer("roc_auc", pos_label=last)
        yield "average precision", private_scorer("average_precision", pos_label=last)


def noise_of(
    scorer: PrivateScorer, model: Any, X: Any, y: Any, n_validating: float, epsilon: float
) -> float:
    """Standard deviation of one private score of a subset search on ``n_validating`` records."""
    one_run = GaussianDP(
        mu=calibrate(lambda mu: GaussianDP(mu=mu), epsilon, DELTA), neighboring="zero_out"
    )
    sensitivity = scorer.sensitivity("zero_out")
    std = matched_noise(one_run, sensitivity).times(FACTOR_OF_SCORES).std * len(y) / n_validating
    exact, rng = scorer.statistic(model, X, y, "zero_out"), np.random.default_rng(0)
    noisy = [
        scorer.score(
            [value + round(std * rng.standard_normal()) for value in exact], len(y), "zero_out"
        )
        for _ in range(DRAWS)
    ]
    return float(np.std(noisy))


def measured(table: Table, share: float, epsilon: float, fits: int) -> pd.DataFrame:
    """One row for each score."""
    X, y = table.train.drop(columns=table.target), table.train[table.target]
    X_test, y_test = table.test.drop(columns=table.target), table.test[table.target]
    values: dict[tuple[str, str], list[float]] = {}
    noises: dict[str, float] = {}
    rng = np.random.default_rng(0)
    for name, model in families(table, epsilon).items():
        for _ in range(fits):
            chosen = rng.random(len(y)) < share
            model.fit(X[chosen], y[chosen])
            for score, scorer in scorers(table):
                values.setdefault((score, name), []).append(scorer(model, X_test, y_test))
                if name == "net" and score not in noises:
                    noises[score] = noise_of(
                        scorer, model, X_test, y_test, VALIDATING * len(y), epsilon
                    )
    rows = {}
    for score, noise in noises.items():
        mean = {name: float(np.mean(values[score, name])) for name in ("net", "linear", "boosting")}
        spread = float(np.mean([np.std(values[score, name], ddof=fits > 1) for name in mean]))
        rows[score] = {
            "noise": noise,
            "net - linear": (mean["net"] - mean["linear"]) / noise,
            "net - boosting": (mean["net"] - mean["boosting"]) / noise,
            "refits": spread / noise,
        }
    return pd.DataFrame(rows).T


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("--fits", type=int, default=2)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--shares", type=float, nargs="+", default=[0.1, 1.0])
    options = parser.parse_args()
    for table in tables(options.data):
        for share in options.shares:
            print(
                f"\n{table.name}, {share:g} of {len(table.train):,} records, epsilon = "
                f"{options.epsilon:g}"
            )
            print(
                measured(table, share, options.epsilon, options.fits).to_string(
                    float_format=lambda v: f"{v:.4g}"
                )
            )


if __name__ == "__main__":
    main()
