"""The audit of one fit never exceeds the truth more often than it may, comes near it, and exposes
broken builds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import binom
from sklearn.base import BaseEstimator, ClassifierMixin

from sklearn_dpsearch import DPRandomSearchCV, PrivacyError
from sklearn_dpsearch.audit import audit_one_run, epsilon_of_guesses
from sklearn_dpsearch.audit._one_run import _blanked, target_score
from sklearn_dpsearch.preprocessing import TableEncoder
from sklearn_dpsearch.privacy import GaussianDP, PureDP, calibrate
from sklearn_dpsearch.privacy._spent import PrivacySpent

# --- the bound ------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
@pytest.mark.parametrize(("m", "r"), [(1, 1), (30, 30), (200, 50)])
def test_a_bound_on_randomised_response_exceeds_the_truth_in_at_most_five_percent(epsilon, m, r):
    """Exactly: the number of right guesses about a fair coin that keeps ε is binomial."""
    right = np.arange(r + 1)
    above = [epsilon_of_guesses(m, r, int(v)) > epsilon for v in right]
    assert binom.pmf(right, r, 1 / (1 + math.exp(-epsilon)))[above].sum() <= 0.05


@pytest.mark.parametrize("delta", [1e-4, 0.01, 0.06])
@pytest.mark.parametrize("m", [20, 100])
def test_a_bound_at_a_delta_holds_for_the_worst_mechanisms(delta, m):
    """One tells each coin with probability δ, the other all coins at once with probability δ; else
    both keep ε."""
    epsilon, right = 1.0, np.arange(m + 1)
    above = np.array([epsilon_of_guesses(m, m, int(v), delta) > epsilon for v in right])
    one = 1 / (1 + math.exp(-epsilon))
    each = binom.pmf(right, m, delta + (1 - delta) * one)
    together = (1 - delta) * binom.pmf(right, m, one) + delta * (right == m)
    assert each[above].sum() <= 0.05
    assert together[above].sum() <= 0.05


def test_more_right_guesses_prove_more_and_a_larger_delta_less():
    proved = [epsilon_of_guesses(1000, 100, right) for right in (50, 60, 80, 100)]
    assert proved == sorted(proved)
    assert proved[0] == 0.0 < proved[1]
    assert epsilon_of_guesses(1000, 100, 90, delta=1e-4) < epsilon_of_guesses(1000, 100, 90)


def test_more_guesses_than_canaries_are_refused():
    with pytest.raises(ValueError, match="n_right <= n_guesses <= n_canaries"):
        epsilon_of_guesses(10, 20, 5)


# --- true statements ------------------------------------------------------------------------------


class Histogram(BaseEstimator):
    """Sums of columns with Gaussian noise: exactly μ-GDP for records that are unit vectors."""

    def __init__(self, mu=1.0, stated=None, neighboring="add_remove", random_state=None):
        self.mu = mu
        self.stated = stated
        self.neighboring = neighboring
        self.random_state = random_state

    def privacy_guarantee(self, n_samples=None):
        return GaussianDP(mu=self.stated or self.mu, neighboring=self.neighboring)

    def fit(self, X, y=None):
        noise = np.random.default_rng(self.random_state).normal(size=X.shape[1])
        self.sums_ = np.sum(X, axis=0) + noise / self.mu
        return self


def sums(model, canaries, targets):
    return model.sums_


NONE = np.zeros((5, 2000))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("relation", "absent"), [("add_remove", False), ("zero_out", True), ("zero_out", False)]
)
def test_a_gaussian_histogram_is_bounded_within_a_factor_of_two(relation, absent):
    mu = calibrate(lambda mu: GaussianDP(mu=mu), 4.0, 1e-5)
    found = audit_one_run(
        Histogram(mu, neighboring=relation), NONE, None, np.eye(2000), score=sums, delta=1e-5,
        absent=absent, n_fits=10, random_state=0,
    )  # fmt: skip
    assert 1.6 < found.epsilon_lower < 4.0
    assert found.consistent
    assert 0.5 < found.ratio_lower * found.stated_epsilon / 4.0 < 1.0
    assert found.steps == (1 if absent or relation == "add_remove" else 2)
    is_stated = found.stated_epsilon == pytest.approx(4.0, rel=1e-3)
    assert is_stated if found.steps == 1 else found.stated_epsilon > 8.0
    assert "consistent" in str(found)


def test_the_same_seed_gives_the_same_result_and_a_fixed_seed_inside_is_taken_away():
    options = {"score": sums, "delta": 1e-5, "random_state": 7}
    audited = Histogram(random_state=3), NONE[:, :200], None, np.eye(200)
    first, second = (audit_one_run(*audited, **options) for _ in range(2))
    assert first == second
    assert "random_state=3 was set to None" in first.notes[0]


@pytest.mark.slow
def test_a_search_over_nets_is_audited_by_one_fit():
    pytest.importorskip("torch")
    from sklearn_dpsearch.nets import DPLogisticRegression

    m = 300
    canaries = np.hstack([np.zeros((m, 2)), 10 * np.eye(m)]).astype(np.float32)
    rng = np.random.default_rng(0)
    X = np.hstack([rng.normal(size=(200, 2)), np.zeros((200, m))]).astype(np.float32)
    y = (X[:, 0] > 0).astype(int)
    net = DPLogisticRegression(classes=[0, 1], sample_rate=1.0, max_epochs=1, max_grad_norm=0.1)
    options = {"n_iter": 2, "epsilon": 60.0, "delta": 1e-5}
    search = DPRandomSearchCV(net, {"learning_rate_factor": [0.8, 1.25]}, **options)
    found = audit_one_run(
        search, X, y, canaries, np.ones(m, int), absent=True, n_fits=3,
        score=lambda model, *_: model.best_estimator_.coef_[0, 2:],
    )  # fmt: skip
    assert found.consistent
    assert found.epsilon_lower > 0.5
    assert found.stated_epsilon <= 60.0


# --- a false statement ----------------------------------------------------------------------------


class Predicting(Histogram):
    """Predicts the noisy sum of a record's column."""

    def predict(self, X):
        return X @ self.sums_


class Classifying(ClassifierMixin, Predicting):
    classes_ = np.array([0, 1])

    def predict_proba(self, X):
        chance = 1 / (1 + np.exp(-self.predict(X)))
        return np.column_stack([1 - chance, chance])


@pytest.mark.parametrize(
    ("kind", "score"), [(Histogram, sums), (Predicting, None), (Classifying, None)]
)
def test_a_statement_of_a_tenth_of_the_loss_is_refuted_by_one_fit(kind, score):
    one, options = kind(4.0, stated=0.4), {"score": score, "delta": 1e-5, "random_state": 0}
    records, canaries = (NONE[:, :200], np.zeros(5)), (np.eye(200), np.ones(200, int))
    found = audit_one_run(one, *records, *canaries, **options)
    assert not found.consistent
    assert found.epsilon_lower > found.stated_epsilon
    assert found.ratio_lower > 1.5
    assert "REFUTED" in str(found)


NAMES = [f"bin {place}" for place in range(200)]


class ByName(Histogram):
    """Counts the values of a column by a schema."""

    def fit(self, X, y=None):
        encoder = TableEncoder({"bin": NAMES, "part": (0, 1)}, indicators=False)
        return super().fit(encoder.fit_transform(X)[:, : len(NAMES)])


@pytest.mark.parametrize("relation", ["add_remove", "zero_out"])
@pytest.mark.parametrize("order", [["bin", "part"], ["part", "bin"]])
def test_columns_of_frames_are_read_by_name(order, relation):
    """By position a model with a schema would be trained on misread records, and refute nothing."""
    pd = pytest.importorskip("pandas")
    canaries = pd.DataFrame({"bin": NAMES, "part": 0.5})
    options = {"score": sums, "delta": 1e-5, "random_state": 0}
    one = ByName(4.0, stated=0.1, neighboring=relation)
    found = audit_one_run(one, canaries[:5][order], None, canaries, **options)
    assert not found.consistent
    for other in (canaries[["bin"]], canaries.to_numpy()):
        with pytest.raises(ValueError, match=r"canaries with \[('bin'|2)\]; data frames with the"):
            audit_one_run(one, canaries, None, other, **options)


def test_absent_records_of_a_frame_keep_its_types():
    pd = pytest.importorskip("pandas")
    columns = {"n": [1, 2], "text": ["a", "b"], "flag": [True, True], "part": [0.5, 0.5]}
    frame = pd.DataFrame(columns).assign(day=pd.Timestamp("2020-01-01"), whole=pd.array([3, 4]))
    frame["kind"] = frame["text"].astype("category")
    blanked = _blanked(frame, np.array([False, True]))
    assert blanked.dtypes.equals(frame.dtypes)
    assert blanked[1:].equals(frame[1:])
    assert blanked.iloc[0][["n", "flag", "part", "whole"]].tolist() == [0, False, 0.0, 0]
    assert blanked.iloc[0][["text", "day", "kind"]].isna().all()


class Guessing(ClassifierMixin, Predicting):
    """Predicts labels alone."""


# --- bad input ------------------------------------------------------------------------------------


def test_what_is_missing_is_named():
    one = Histogram()
    match = "Found neighboring='replace_one', but the guarantee is stated for"
    settings = {"score": sums, "delta": 1e-5, "neighboring": "replace_one"}
    with pytest.raises(PrivacyError, match=match):
        audit_one_run(one, NONE, None, np.eye(2000)[:30], **settings)
    with pytest.raises(PrivacyError, match="neither a stated guarantee nor neighboring"):
        audit_one_run(BaseEstimator(), NONE, None, np.eye(2000)[:30], score=sums, delta=0.0)


@pytest.mark.parametrize(("kind", "change", "match"), [
    (Histogram, {"canaries": np.eye(10)}, "Found 10 canaries; at least 20"),
    (Histogram, {"score": sums}, r"shape \(2000,\); one finite number for each of 30"),
    (Histogram, {"y": None, "targets": None}, "no targets of the canaries, so that score="),
    (Histogram, {"targets": None, "score": sums}, "Found y, but no targets"),
    (Histogram, {"other_targets": np.zeros(30)}, "other_targets with neighboring='add_remove'"),
    (Predicting, {"targets": np.ones(20)}, "Found 20 targets for 30 canaries; one for each"),
    (
        Predicting,
        {"other_targets": np.ones(1), "neighboring": "replace_one"},
        "Found 1 other_targets for 30 canaries; one for each",
    ),
    (Histogram, {"X": csr_array(NONE)}, "Found X of type csr_array; an array of NumPy"),
    (Histogram, {"canaries": np.eye(30)}, r"columns \[2000\] and canaries with \[30\]"),
    (Histogram, {"n_fits": 1.5}, "Expected an integer n_fits >= 1, got n_fits=1.5"),
    (Histogram, {"random_state": -1}, "Expected an integer random_state >= 0"),
    (Histogram, {"y": np.zeros(4)}, r"inconsistent numbers of samples: \[5, 4\]"),
    (Histogram, {}, "Found Histogram without predict; score= is needed"),
    (Guessing, {}, "Found Guessing without predict_proba; score= is needed"),
    (Classifying, {"targets": np.full(30, 7)}, "Found no target of a canary among the classes"),
    (
        Histogram,
        {"score": lambda *_: np.where(np.arange(30) < 2, np.nan, 1.0)},
        r"Found 28 finite scores of shape \(30,\); one finite number for each of 30 canaries",
    ),
])  # fmt: skip
def test_targets_models_and_scores_that_cannot_be_used_are_named(kind, change, match):
    data = {"X": NONE, "y": np.zeros(5), "canaries": np.eye(2000)[:30], "targets": np.ones(30, int)}
    with pytest.raises((ValueError, TypeError), match=match):
        audit_one_run(kind(), **{**data, "delta": 1e-5, **change})


def test_delta_is_by_default_that_of_the_estimator():
    class Targeting(Histogram):
        target_delta = 1e-3

    assert audit_one_run(Targeting(), NONE, None, np.eye(2000), score=sums).delta == 1e-3


def test_a_target_that_a_model_has_not_learnt_has_no_chance():
    """Whether a model knows a rare class may depend on the coins."""
    targets = np.array([1] * 29 + [7])
    scores = target_score(Classifying().fit(NONE), np.eye(2000)[:30], targets)
    assert np.isfinite(scores).all()
    assert scores[-1] < scores[:-1].min() - 100


def test_what_a_fitted_model_states_counts_under_its_own_relation_alone():
    """Without a claim before the fit, the statements of fitted models are audited, but not under
    another relation."""

    class States(BaseEstimator):
        def __init__(self, neighboring):
            self.neighboring = neighboring

        def fit(self, X, y=None):
            self.sums_ = np.sum(X, axis=0) + np.random.default_rng(0).normal(size=X.shape[1])
            stated = GaussianDP(mu=1.0, neighboring=self.neighboring)
            options = {"delta": 1e-5, "components": (), "assumptions": ()}
            self.privacy_spent_ = PrivacySpent(guarantee=stated, **options)
            return self

    given = {"score": sums, "delta": 1e-5, "neighboring": "add_remove"}
    own = audit_one_run(States("add_remove"), NONE, None, np.eye(2000), **given)
    other = audit_one_run(States("replace_one"), NONE, None, np.eye(2000), **given)
    assert own.stated_epsilon == pytest.approx(GaussianDP(mu=1.0).epsilon_at(1e-5))
    assert other.stated_epsilon is None
    assert other.ratio_lower is None


@pytest.mark.slow
def test_under_replace_one_the_same_record_with_another_target_is_a_stronger_attack():
    """The sums are weighted by the target, so a record that changes its target moves them twice as
    far."""

    class Signed(Histogram):
        def privacy_guarantee(self, n_samples=None):
            return PureDP(epsilon=50.0, neighboring="replace_one")

        def fit(self, X, y=None):
            return super().fit(X * np.asarray(y)[:, None])

    given = {"score": sums, "delta": 0.0, "n_fits": 5, "random_state": 0}
    data = NONE, np.ones(5), np.eye(2000), np.ones(2000)
    weak = audit_one_run(Signed(), *data, **given)
    strong = audit_one_run(Signed(), *data, other_targets=-np.ones(2000), **given)
    assert weak.epsilon_lower > 0.3
    assert strong.epsilon_lower > 1.5 * weak.epsilon_lower
