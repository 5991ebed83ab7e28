"""DPSubsetSearchCV: what it costs, who sees which records, what is carried over, and what is
released."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import sklearn_dpsearch.privacy as dp
from sklearn_dpsearch import NoModelError
from sklearn_dpsearch.search import _random_subset as members

from .subset_toys import HITS, IDS, SEEN, Told, Watching, search, watched
from .toys import NoisyCentroids, two_blobs

#: Trainings are counted here, and candidates fail on purpose.
pytestmark = pytest.mark.usefixtures("unrehearsed")

X, y = two_blobs(400)


@pytest.fixture(autouse=True)
def _forget():
    SEEN.clear()


# --- what it costs --------------------------------------------------------------------------------


@pytest.mark.parametrize("train_on", ["rest", "all"])
def test_the_total_is_that_of_tuning_on_a_subset_and_training_once(train_on):
    one = search(Watching(), {"rate": [1.0]}, train_on=train_on, validate_on="subset")
    base = dp.PureDP(epsilon=1.0, neighboring="zero_out")
    expected = dp.subset_then_train(dp.best_of(base, dp.Geometric(5)), base, 0.3, train_on)
    assert one.privacy_cost(400).epsilon == expected.epsilon_at(0.0)
    assert one.privacy_cost(400).bound == "Theorem 2"


class Replaced(Told):
    """Under replace-one unless it is put under another relation; its noise may be set."""

    def __init__(self, rate=1.0, told_n=None, neighboring="replace_one", epsilon=1.0):
        super().__init__(rate, told_n=told_n, neighboring=neighboring, epsilon=epsilon)

    def scaled_privacy(self, factor, varying):
        return {"epsilon": factor * self.epsilon}

    def under(self, neighboring):
        return {"neighboring": neighboring}


@pytest.mark.slow
@pytest.mark.parametrize("train_on", ["rest", "all"])
def test_a_replaced_record_is_amplified_in_two_steps(train_on):
    spent = watched(Replaced(), epsilon=1.0, delta=0.0, train_on=train_on)[0].privacy_spent_
    assert spent.neighboring == "replace_one"
    assert 0.98 < spent.epsilon <= 1.0
    assert any("two such steps" in assumption for assumption in spent.assumptions)
    assert {run["neighboring"] for run in SEEN} == {"zero_out"}
    # none counts its records
    assert {run["told_n"] for run in SEEN} == {120, 280 if train_on == "rest" else 400}
    run = dp.PureDP(epsilon=SEEN[-1]["epsilon"], neighboring="zero_out")
    total = dp.as_replace_one(
        dp.subset_then_train(dp.best_of(run, dp.Geometric(5)), run, 0.3, train_on)
    )
    assert spent.epsilon == total.epsilon_at(0.0)
    changed = dp.as_replace_one(run)
    known = dp.subset_then_train(dp.best_of(changed, dp.Geometric(5)), changed, 0.3, train_on)
    assert spent.epsilon < 0.9 * known.epsilon_at(0.0)


@pytest.mark.parametrize(
    "told", [{"epsilon": None}, {"score_noise": dp.PureDP(epsilon=0.1, neighboring="replace_one")}]
)
def test_noise_of_the_users_stays_under_his_relation(told):
    one = search(
        Replaced(), {"rate": [1.0]}, **{"epsilon": 1.0, "delta": 0.0, "scoring": "accuracy", **told}
    )
    one.fit(IDS, y)
    assert {run["neighboring"] for run in SEEN} == {"replace_one"}
    assert one.privacy_spent_.neighboring == "replace_one"


class Halved(Replaced):
    """Blanking a record takes half of what replacing it may take, so that a replaced one costs what
    was asked for."""

    def under(self, neighboring):
        epsilon = self.epsilon / (2 if neighboring == "zero_out" else 1)
        return {"neighboring": neighboring, "epsilon": epsilon}


@pytest.mark.slow
@pytest.mark.parametrize("train_on", ["rest", "all"])
def test_models_that_promise_as_configured_for_a_replaced_record_are_amplified_too(train_on):
    one = watched(Halved(), {"rate": [1.0]}, train_on=train_on)[0]
    run = dp.PureDP(epsilon=0.5, neighboring="zero_out")
    total = dp.as_replace_one(
        dp.subset_then_train(dp.best_of(run, dp.Geometric(5)), run, 0.3, train_on)
    )
    assert one.privacy_spent_.guarantee == total
    known = search(Replaced(), {"rate": [1.0]}, train_on=train_on).privacy_cost(400, public=True)
    assert one.privacy_spent_.epsilon < 0.9 * known.epsilon
    assert {(run["neighboring"], run["epsilon"]) for run in SEEN} == {("zero_out", 0.5)}
    # none counts its records
    assert {run["told_n"] for run in SEEN} == {120, 280 if train_on == "rest" else 400}


@pytest.mark.parametrize(
    "space", [{"epsilon": [0.5, 1.0]}, {"rate": [1.0], "neighboring": ["replace_one"]}]
)
def test_noise_that_is_searched_stays_under_its_relation(space):
    search(Halved(), space, scoring="accuracy").fit(IDS, y)
    assert {run["neighboring"] for run in SEEN} == {"replace_one"}
    assert {run["epsilon"] for run in SEEN} <= set(space.get("epsilon", [1.0]))


def test_under_replace_one_nothing_is_amplified_and_the_total_says_so():
    one = search().fit(X, y)
    assert one.privacy_spent_.bound == "mixture"
    expected = dp.best_of(dp.PureDP(epsilon=1.0, neighboring="replace_one"), 5).epsilon_at(0.0)
    assert one.privacy_spent_.epsilon == expected
    both = search(train_on="all").privacy_cost(400).epsilon
    assert both == pytest.approx(one.privacy_spent_.epsilon + 1.0)


def test_under_zero_out_only_an_estimator_that_can_be_told_its_size_is_amplified():
    costs = {}
    for kind in (Watching, Told):
        one, _, _ = watched(kind(neighboring="zero_out"))
        costs[kind] = one.privacy_spent_
        expected = search(kind(neighboring="zero_out"), {}).privacy_cost(public=True).epsilon
        assert one.privacy_spent_.epsilon == expected
    assert (costs[Watching].bound, costs[Told].bound) == ("mixture", "Theorem 2")
    assert costs[Told].epsilon < costs[Watching].epsilon
    assert any("subset counts as known" in text for text in costs[Watching].assumptions)
    assert not any("subset counts as known" in text for text in costs[Told].assumptions)


@pytest.mark.slow
def test_a_target_is_met_with_the_same_noise_for_candidates_and_final_model():
    one, tuning, final = watched(epsilon=3.0)
    assert 2.99 < one.privacy_spent_.epsilon <= 3.0
    assert {run["epsilon"] for run in tuning} == {final["epsilon"]} == {one.best_estimator_.epsilon}
    assert final["epsilon"] > 1.0


@pytest.mark.slow
def test_the_final_model_is_charged_as_the_worst_candidate():
    one = search(Watching(), {"epsilon": [0.5, 2.0]}, validate_on="subset")
    worst = dp.PureDP(epsilon=2.0)
    drawn = dp.mixture([dp.PureDP(epsilon=0.5), dp.PureDP(epsilon=2.0)], [0.5, 0.5])
    expected, less = (
        dp.subset_then_train(dp.best_of(drawn, 5), last, 0.3).epsilon_at(0.0)
        for last in (worst, drawn)
    )
    assert one.privacy_cost(400).epsilon == pytest.approx(expected, rel=1e-6)
    assert less <= expected < dp.subset_then_train(dp.best_of(worst, 5), worst, 0.3).epsilon_at(0.0)
    guarantee = dp.ApproxDP(epsilon=0.5, delta=1e-8)
    declared = search(LogisticRegression(), {"C": [1.0]}, guarantee=guarantee, delta=1e-6)
    assert 0.4 < declared.fit(X, y).privacy_spent_.epsilon < 1.5


# --- who sees which records -----------------------------------------------------------------------


def test_all_candidates_share_one_subset_and_the_final_model_sees_the_rest():
    _, tuning, final = watched(n_iter=dp.Fixed(4))
    assert len(tuning) == 4
    assert all(run["records"] == tuning[0]["records"] for run in tuning)
    assert final["records"] == set(range(400)) - tuning[0]["records"]


def test_the_final_model_sees_all_records_if_it_is_to():
    _, tuning, final = watched(train_on="all")
    assert final["records"] == set(range(400))
    assert 60 < len(tuning[0]["records"]) < 180


@pytest.mark.slow
def test_every_record_joins_by_a_coin_of_its_own():
    joined = np.zeros(400)
    sizes = []
    for seed in range(60):
        _, tuning, _ = watched(n_iter=1, subset_fraction=0.2, random_state=seed)
        members = list(tuning[0]["records"])
        joined[members] += 1
        sizes.append(len(members))
        SEEN.clear()
    assert abs(np.mean(sizes) - 80) < 6
    assert 0.5 < np.std(sizes) / 8 < 1.6  # binomial: 8; a subset of fixed size: 0
    assert joined.min() >= 1
    assert joined.max() <= 30


def test_a_subset_above_its_public_bound_is_drawn_again(monkeypatch):
    """Whatever the others do, a record then joins at its rate, or, where they reach the bound, not
    at all."""
    monkeypatch.setattr(members, "EXCESS_PROBABILITY", 0.3)
    most = members.most_members(3, 0.4)
    assert most == 2
    rng = np.random.default_rng(0)
    drawn = np.array([members._who_joins(3, 0.4, rng.bytes) for _ in range(4000)])
    assert drawn.sum(axis=1).max() == most
    first = drawn[drawn[:, 1:].sum(axis=1) < most, 0]
    assert abs(first.mean() - 0.4) < 5 * np.sqrt(0.24 / len(first))


@pytest.mark.parametrize("n", [1, 10, 1000, 30_000])
@pytest.mark.parametrize("fraction", [0.01, 0.1, 0.5, 1.0])
def test_a_subset_is_next_to_never_drawn_again(n, fraction):
    most = members.most_members(n, fraction)
    assert fraction * n <= most <= n
    assert binom.sf(most, n, fraction) <= 1e-30


@pytest.mark.parametrize("cv", [0.5, 4])
def test_validation_happens_inside_the_subset(cv):
    given = {
        "n_iter": 1, "subset_fraction": 0.5, "validate_on": "subset", "cv": cv, "random_state": 4,
    }  # fmt: skip
    one = search(Watching(), {"rate": [1.0]}, **given).fit(IDS, y)
    *tuning, final = SEEN
    used = set().union(*(run["records"] for run in tuning))
    assert not used & final["records"]
    held_out = set(range(400)) - used - final["records"]
    assert one.n_splits_ == len(tuning) == (1 if cv == 0.5 else 4)
    # with one seed for all coins, those of the subset and of the hold-out are different ones
    assert 60 < len(held_out) < 140 if cv == 0.5 else not held_out
    assert 160 < len(final["records"]) < 240


# 0.2·0.3·400 and 0.7·400
@pytest.mark.parametrize(("validate_on", "expected"), [("subset", 24), ("rest", 280)])
def test_a_score_on_private_records_is_divided_by_their_expected_number(validate_on, expected):
    for _ in range(5):
        one = search(Told(neighboring="zero_out"), {}, scoring=HITS, validate_on=validate_on).fit(
            IDS, y
        )
        doubled = 2 * one.best_score_ * expected  # the centred sum moves in steps of one half
        assert doubled == pytest.approx(round(doubled), abs=1e-9)


def test_under_replace_one_a_score_is_divided_by_the_number_of_records_that_it_saw():
    """The subset counts as known under replace-one neighbours."""
    one = search(Watching(neighboring="replace_one"), {}, score_noise=dp.PureDP(epsilon=200.0)).fit(
        IDS, np.zeros(400)
    )
    assert one.best_score_ == 1.0
    assert one.best_score_std_ < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("cv", [None, 7])
def test_a_subset_too_small_to_be_split_is_not_an_error_of_its_own(cv, monkeypatch):
    """That would tell how many records it holds."""
    monkeypatch.setattr(members, "FEWEST_RECORDS", 0)
    tiny = {"guarantee": dp.PureDP(epsilon=1.0), "subset_fraction": 1e-6, "validate_on": "subset"}
    one = search(LogisticRegression(), {"C": [1.0]}, cv=cv, **tiny)
    with pytest.raises(NoModelError):
        one.fit(X[:5], y[:5])


# --- what is carried over -------------------------------------------------------------------------


def test_a_pipeline_carries_over_what_its_steps_know():
    model = make_pipeline(FunctionTransformer(), Watching())
    one = search(model, {"watching__rate": [3.0]}, scoring=lambda estimator, X, y: 0.0)
    one.fit(IDS, y, X_public=IDS.copy(), y_public=y.copy())
    assert one.final_params_ == {"watching__rate": pytest.approx(7.0)}


@pytest.mark.parametrize(("extrapolate", "final"), [
    ({"rate": "keep"}, {"rate": 3.0, "solver": "sgd"}),
    ({"rate": "linear"}, {"rate": pytest.approx(7.0), "solver": "sgd"}),
    (
        {"solver": lambda value, n_tune, n_final: "adam"},
        {"rate": pytest.approx(7.0), "solver": "adam"},
    ),
    (
        {"rate": lambda value, n_tune, n_final: value * n_final / n_tune + 1},
        {"rate": pytest.approx(8), "solver": "sgd"},
    ),
    (lambda value, n_tune, n_final: value + 1, {"rate": 4.0, "solver": "sgd"}),
], ids=["keep", "linear", "another", "callable", "all"])  # fmt: skip
def test_rules_of_the_users_own_come_first(extrapolate, final):
    one, _, _ = watched(space={"rate": [3.0], "solver": ["sgd"]}, extrapolate=extrapolate)
    assert one.final_params_ == final


def test_integers_stay_integers():
    one, _, _ = watched(space={"rate": [3]}, extrapolate={"rate": "linear"})
    assert one.final_params_ == {"rate": 7}
    assert isinstance(one.final_params_["rate"], int)


def test_rules_are_given_expected_sizes_never_drawn_ones():
    told = []

    def rule(value, n_tune, n_final):
        told.append((round(n_tune, 9), round(n_final, 9)))
        return value

    watched(Watching(neighboring="replace_one"), extrapolate=rule)
    assert set(told) == {(120, 280)}
    told.clear()
    watched(Watching(), extrapolate=rule, train_on="all")
    assert set(told) == {(120, 400)}


@pytest.mark.parametrize("neighboring", ["zero_out", "add_remove"])
def test_models_are_told_the_expected_numbers(neighboring):
    one, tuning, final = watched(Told(neighboring=neighboring))
    assert {run["told_n"] for run in tuning} == {120}
    assert final["told_n"] == one.best_estimator_.told_n == 280


@pytest.mark.parametrize(("neighboring", "secret"), [("zero_out", True), ("replace_one", False)])
def test_where_membership_is_secret_places_may_not_matter(neighboring, secret):
    told = search(Told(neighboring=neighboring), {}).privacy_cost(400, public=True).assumptions
    assert any("on its place in a table" in text for text in told) == secret


def test_models_that_ignore_blank_records_need_not_be_told():
    _, tuning, final = watched(Watching())
    assert {run["told_n"] for run in [*tuning, final]} == {None}


def test_a_warm_start_goes_on_from_the_winner():
    one, tuning, final = watched(warm_start=True)
    assert {run["fits"] for run in tuning} == {1}
    assert final["fits"] == one.best_estimator_.fits_ == 2
    expected = pytest.approx(one.best_params_["rate"] * 7 / 3)
    assert final["rate"] == one.final_params_["rate"] == expected
    _, _, cold = watched()
    assert cold["fits"] == 1


# --- nothing found --------------------------------------------------------------------------------


class Choosy(NoisyCentroids):
    """Does not train on as many records as the final model gets."""

    def fit(self, X, y):
        if len(X) > 200:
            raise ValueError(f"{len(X)} records")
        return super().fit(X, y)


def outcome_of(estimator, X, y, **kwargs):
    for _ in range(200):
        one = search(estimator, {}, guarantee=dp.PureDP(epsilon=1.0), **kwargs)
        try:
            one.fit(X, y)
        except NoModelError as error:
            return one, error
    raise AssertionError("it always found a model")


@pytest.mark.parametrize(("estimator", "records", "kwargs"), [
    (NoisyCentroids(), slice(0, 12), {"subset_fraction": 0.02}),
    (NoisyCentroids(), np.append(np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:1]), {}),
    (
        NoisyCentroids(),
        np.append(np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:3]),
        {"subset_fraction": 0.8},
    ),
    (Choosy(), slice(None), {"subset_fraction": 0.2}),
    (NoisyCentroids(epsilon="one"), slice(None), {}),
], ids=[
    "empty subset", "one class in the subset", "one class in the rest", "final model fails",
    "wrong parameter",
])  # fmt: skip
def test_nothing_found_is_one_outcome_whatever_the_cause(estimator, records, kwargs, monkeypatch):
    monkeypatch.setattr(members, "FEWEST_RECORDS", 0)
    one, error = outcome_of(estimator, X[records], y[records], **kwargs)
    assert str(error).startswith(
        "No candidate could be trained and scored, so there is no model; the privacy cost in"
    )
    assert error.__context__ is None
    assert set(vars(one)) - set(one.get_params(deep=False)) == {"privacy_spent_"}
    assert one.privacy_spent_.epsilon == one.privacy_cost(400).epsilon
    with pytest.raises(AttributeError, match="ended without a result"):
        one.predict(X)


def test_without_a_tuned_model_nothing_is_trained():
    class Failing(Watching):
        def fit(self, X, y=None):
            super().fit(X, y)
            raise ValueError

    with pytest.raises(NoModelError):
        search(Failing(), {}, n_iter=dp.Fixed(3)).fit(IDS, y)
    assert len(SEEN) == 3


# --- what is released -----------------------------------------------------------------------------


def test_the_size_of_the_subset_is_nowhere():
    """Fits that differ in the subset, in K and in the losers leave the same trace, up to the
    release itself."""

    def trace():
        one = search(space={"shrink": [0.2]}).fit(X, y)
        for name in ("best_score_", "best_score_std_", "cv_results_", "best_estimator_"):
            delattr(one, name)
        return pickle.dumps(one)

    assert len({trace() for _ in range(4)}) == 1


# --- diffprivlib and nets -------------------------------------------------------------------------


@pytest.fixture
def nets():
    pytest.importorskip("torch")
    return pytest.importorskip("sklearn_dpsearch.nets")


def net_search(nets, space=None, net=None, **kwargs):
    net = {"classes": [0, 1], "max_epochs": 3, "sample_rate": 0.1, **(net or {})}
    space = {"learning_rate_init": [0.1, 0.2], "solver": ["sgd"]} if space is None else space
    return search(nets.DPLogisticRegression(**net), space, **{"delta": 1e-5, "n_iter": 3, **kwargs})


@pytest.mark.slow
@pytest.mark.parametrize("train_on", ["rest", "all"])
def test_a_net_is_told_its_expected_size_and_keeps_rate_noise_and_steps(nets, train_on):
    one = net_search(nets, net={"noise_multiplier": 2.0}, train_on=train_on).fit(X, y)
    final = one.best_estimator_
    assert one.privacy_spent_.bound == "Theorem 4"
    assert one.privacy_spent_.neighboring == final.privacy_spent_.neighboring == "zero_out"
    expected = (pytest.approx(28 if train_on == "rest" else 40), 0.1)
    assert (final.batch_size, final.sample_rate) == expected
    assert final.n_steps_ == 30
    assert one.final_params_["learning_rate_init"] == pytest.approx(
        one.best_params_["learning_rate_init"] * (7 / 3 if train_on == "rest" else 10 / 3)
    )
    assert any("number of records is public" in text for text in final.privacy_spent_.assumptions)


@pytest.mark.parametrize(
    ("train_on", "validate_on"), [("rest", "rest"), ("rest", "subset"), ("all", "rest")]
)
def test_no_shape_in_a_net_tells_how_many_records_are_in_the_subset(
    nets, train_on, validate_on, monkeypatch
):
    """Nor do the rows that a record's batch may have, nor the number of calls: places without a
    record are blank."""
    stack = pytest.importorskip("sklearn_dpsearch.nets._stacked_training")
    shapes, step, sizes = [], stack.Stack._step, []

    def watched(self, batches, t):
        shapes.append((tuple(batches.shape), self.width, self.batches[0]._n))
        sizes.append(len(self.records))
        step(self, batches, t)

    monkeypatch.setattr(stack.Stack, "_step", watched)
    seen = []
    for seed in range(4):
        shapes.clear()
        space = {"learning_rate_init": [0.1]}
        net = {"noise_multiplier": 2.0, "max_epochs": 0.3}
        kwargs = {
            "n_iter": dp.Fixed(1), "train_on": train_on, "validate_on": validate_on,
            "random_state": seed,
        }  # fmt: skip
        found = net_search(nets, space, net, **kwargs).fit(X, y)
        assert not any("place" in name for name in vars(found.best_estimator_))
        seen.append(list(shapes))
    assert len(set(sizes)) > 3  # of the secret numbers
    assert all(one == seen[0] for one in seen)


@pytest.mark.slow
def test_a_net_with_a_batch_size_keeps_the_rate_of_all_records_on_parts(nets):
    one = net_search(
        nets, net={"sample_rate": None, "batch_size": 40, "noise_multiplier": 2.0}
    ).fit(X, y)
    final = one.best_estimator_
    assert (final.sample_rate, final.batch_size) == (0.1, None)
    expected = dp.DPSGD(noise_multiplier=2.0, sample_rate=0.1, steps=30, neighboring="zero_out")
    assert final.privacy_guarantee() == expected


# --- which share of the records tunes -------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("n", "epsilon", "expected"), [
    (100_000, 1.0, 0.1), (15_000, 1.0, 0.1), (6000, 1.0, 0.25), (12_000, 0.5, 0.25),
    (400, 1.0, 0.3), (400, None, 0.1),
])  # fmt: skip
def test_the_default_share_is_larger_where_records_and_epsilon_are_few(n, epsilon, expected):
    options = {"epsilon": epsilon, "delta": 1e-6}
    one = search(Told(epsilon=0.1, neighboring="zero_out"), {}, subset_fraction="auto", **options)
    (part,) = one.privacy_cost(n, public=True).components
    assert f"each with probability {expected:g})" in part.name
