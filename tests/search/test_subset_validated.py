"""DPSubsetSearchCV(validate_on="rest") and tuning_share: who is scored, with how much noise, and
what that costs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import loguniform

import sklearn_dpsearch.privacy as dp
from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.scoring._noise import DiscreteLaplaceNoise
from sklearn_dpsearch.search._random_subset import share_at_no_cost

from .subset_toys import HITS, IDS, SEEN, Told, Watching, search, watched, y

#: Trainings are counted here, and candidates fail on purpose.
pytestmark = pytest.mark.usefixtures("unrehearsed")

SCORED: list[set[int]] = []
DRAWN: list[float] = []


@pytest.fixture(autouse=True)
def _forget():
    for notes in (SEEN, SCORED, DRAWN):
        notes.clear()


class Seeing(Watching):
    """Notes which records each model predicts, block by block."""

    def predict(self, X):
        if not hasattr(self, "scored_"):
            self.scored_ = set()
            SCORED.append(self.scored_)
        self.scored_.update(X[:, 0].astype(int).tolist())
        return super().predict(X)


def on_the_rest(estimator=None, space=None, **kwargs):
    given = {"validate_on": "rest", "scoring": HITS, **kwargs}
    return search(
        Watching() if estimator is None else estimator,
        {"rate": [1.0]} if space is None else space,
        **given,
    )


# --- who is scored --------------------------------------------------------------------------------


@pytest.mark.parametrize("train_on", ["rest", "all"])
def test_all_of_the_subset_trains_and_all_others_are_scored(train_on):
    on_the_rest(Seeing(), n_iter=dp.Fixed(3), train_on=train_on).fit(IDS, y)
    *tuning, final = SEEN
    everybody, subset = set(range(400)), tuning[0]["records"]
    assert [run["records"] for run in tuning] == [subset] * 3
    assert [everybody - subset] * 3 == SCORED
    assert final["records"] == (everybody - subset if train_on == "rest" else everybody)


def test_a_share_of_the_rest_is_scored_by_coins_of_their_own():
    on_the_rest(Seeing(), n_iter=dp.Fixed(2), cv=0.25, random_state=3).fit(IDS, y)
    *tuning, final = SEEN
    assert SCORED[0] == SCORED[1]
    assert not SCORED[0] & tuning[0]["records"]
    assert final["records"] == set(range(400)) - tuning[0]["records"]
    assert 40 < len(SCORED[0]) < 100  # 70 are expected


def test_with_public_records_nobody_is_scored_and_nothing_is_charged():
    one, tuning, _ = watched(validate_on="rest")
    base = dp.PureDP(epsilon=1.0)
    expected = dp.subset_then_train(dp.best_of(base, dp.Geometric(5)), base, 0.3).epsilon_at(0.0)
    assert one.privacy_spent_.epsilon == expected
    assert len(tuning[0]["records"]) < 180


# --- what it costs --------------------------------------------------------------------------------


@pytest.mark.parametrize("train_on", ["rest", "all"])
@pytest.mark.parametrize("cv", [None, 0.5, np.float32(1.0)])
def test_the_total_is_that_of_theorem_four(train_on, cv):
    one = on_the_rest(train_on=train_on, cv=cv)
    tune = dp.best_of(dp.PureDP(epsilon=1.0), 5)
    scores = dp.best_of(dp.PureDP(epsilon=1.0 / 24), 5)
    train = dp.PureDP(epsilon=1.0)
    expected = dp.subset_then_train(
        tune, train, 0.3, train_on, validate=scores, validated_share=cv or 1.0
    )
    assert one.privacy_cost(400).epsilon == pytest.approx(expected.epsilon_at(0.0), rel=1e-9)
    assert one.privacy_cost(400).bound == "Theorem 4"
    (part,) = one.privacy_cost(400).components
    records = "the rest" if cv in (None, 1.0) else "a share of 0.5 of the rest"
    assert f"validate on {records}" in part.name


@pytest.mark.parametrize("relation", ["replace_one", "zero_out"])
def test_where_nothing_is_amplified_the_scores_are_free(relation):
    """A record of the rest pays for its score and the final training: no more than one of the
    subset for the search."""
    one = on_the_rest(Watching(neighboring=relation)).fit(IDS, y)
    assert one.privacy_spent_.bound == "mixture"
    search_alone = dp.best_of(dp.PureDP(epsilon=1.0, neighboring=relation), 5)
    assert one.privacy_spent_.epsilon == search_alone.epsilon_at(0.0)


def test_a_given_noise_is_charged_for_everybody_who_is_scored():
    one = on_the_rest(score_noise=dp.PureDP(epsilon=0.5))
    tune = dp.best_of(dp.PureDP(epsilon=1.0), 5)
    scores = dp.best_of(dp.PureDP(epsilon=0.5), 5)
    train = dp.PureDP(epsilon=1.0)
    expected = dp.subset_then_train(tune, train, 0.3, validate=scores).epsilon_at(0.0)
    assert one.privacy_cost(400).epsilon == expected


def test_the_noise_that_is_drawn_is_the_noise_that_is_charged(monkeypatch):
    honest = DiscreteLaplaceNoise.sample

    def noted(self, *bits):
        DRAWN.append(float(self.scale))
        return honest(self, *bits)

    monkeypatch.setattr(DiscreteLaplaceNoise, "sample", noted)
    on_the_rest(n_iter=dp.Fixed(2)).fit(IDS, y)
    assert set(DRAWN) == {24.0}
    DRAWN.clear()
    on_the_rest(Watching(neighboring="replace_one"), n_iter=dp.Fixed(2)).fit(IDS, y)
    assert set(DRAWN) == {3.0}


def test_a_target_is_met_scores_included():
    one = on_the_rest(epsilon=3.0).fit(IDS, y)
    assert 2.99 < one.privacy_spent_.epsilon <= 3.0
    final = one.best_estimator_.epsilon
    tune, scores = (dp.best_of(dp.PureDP(epsilon=part), 5) for part in (final, final / 24))
    expected = dp.subset_then_train(tune, dp.PureDP(epsilon=final), 0.3, validate=scores)
    assert one.privacy_spent_.epsilon == pytest.approx(expected.epsilon_at(0.0), rel=1e-6)


def test_the_total_does_not_depend_on_the_number_of_records():
    one = on_the_rest()
    expected = one.privacy_cost(10**6).epsilon
    assert one.privacy_cost().epsilon == one.privacy_cost(400).epsilon == expected


# --- less for tuning than for the final training --------------------------------------------------


@pytest.mark.parametrize("share", [0.25, 2.0])
@pytest.mark.parametrize("train_on", ["rest", "all"])
@pytest.mark.parametrize("validate_on", ["rest", "subset"])
def test_candidates_are_trained_with_a_share_of_the_final_loss(share, train_on, validate_on):
    one = on_the_rest(tuning_share=share, train_on=train_on, validate_on=validate_on).fit(IDS, y)
    *tuning, final = SEEN
    assert {run["epsilon"] for run in tuning} == {share}
    assert final["epsilon"] == one.best_estimator_.epsilon == 1.0
    tune, train = dp.best_of(dp.PureDP(epsilon=share), 5), dp.PureDP(epsilon=1.0)
    scores = dp.best_of(dp.PureDP(epsilon=1.0 / 24), 5) if validate_on == "rest" else None
    expected = dp.subset_then_train(tune, train, 0.3, train_on, validate=scores)
    assert one.privacy_spent_.epsilon == pytest.approx(expected.epsilon_at(0.0), rel=1e-9)


@pytest.mark.parametrize("share", [0.5, 2.0])
def test_a_refit_may_lose_more_or_less_than_the_candidates(share):
    space = {"rate": [1.0]}
    one = DPRandomSearchCV(
        Watching(), space, n_iter=dp.Fixed(3), refit=True, tuning_share=share
    ).fit(IDS, y)
    *tuning, final = SEEN
    assert ({run["epsilon"] for run in tuning}, final["epsilon"]) == ({share}, 1.0)
    expected = dp.compose(dp.best_of(dp.PureDP(epsilon=share), dp.Fixed(3)), dp.PureDP(epsilon=1.0))
    assert one.privacy_spent_.epsilon == pytest.approx(expected.epsilon_at(0.0), rel=1e-9)


@pytest.mark.parametrize("refit", ["winner", False])
def test_without_a_refit_there_is_no_share_of_tuning(refit):
    with pytest.raises(ValueError, match="tuning_share=0.5 with refit=.*Set refit=True"):
        DPRandomSearchCV(Watching(), {"rate": [1.0]}, refit=refit, tuning_share=0.5).privacy_cost()


@pytest.mark.slow
def test_a_target_is_met_with_less_for_tuning():
    one = on_the_rest(epsilon=2.0, tuning_share=0.5).fit(IDS, y)
    *tuning, final = SEEN
    assert 1.99 < one.privacy_spent_.epsilon <= 2.0
    assert {run["epsilon"] for run in tuning} == {final["epsilon"] / 2}
    assert final["epsilon"] > on_the_rest(epsilon=2.0).fit(IDS, y).best_estimator_.epsilon


@pytest.mark.parametrize("relation", ["replace_one", "zero_out"])
@pytest.mark.parametrize("validate_on", ["rest", "subset"])
def test_with_known_membership_the_search_costs_what_the_final_training_does(relation, validate_on):
    """A record pays for one part only, so the final training has nearly all of ε (it once had what
    a candidate had)."""
    one = on_the_rest(Watching(neighboring=relation), epsilon=2.0, validate_on=validate_on).fit(
        IDS, y
    )
    *tuning, final = SEEN
    tuned = dp.best_of(dp.PureDP(epsilon=tuning[0]["epsilon"]), 5).epsilon_at(0.0)
    assert 1.99 < one.privacy_spent_.epsilon <= 2.0
    assert final["epsilon"] > (1.75 if validate_on == "rest" else 1.99)
    assert tuned == pytest.approx(final["epsilon"], rel=0.01)


@pytest.mark.parametrize(
    ("estimator", "train_on"), [(Told(neighboring="zero_out"), "rest"), (Watching(), "rest")]
)
def test_with_secret_membership_candidates_are_as_private_as_the_last_training(estimator, train_on):
    on_the_rest(estimator, epsilon=2.0, train_on=train_on).fit(IDS, y)
    assert len({run["epsilon"] for run in SEEN}) == 1


def test_a_final_training_on_all_records_pays_for_both_so_nothing_is_free():
    on_the_rest(Watching(neighboring="replace_one"), epsilon=2.0, train_on="all").fit(IDS, y)
    assert len({run["epsilon"] for run in SEEN}) == 1


@pytest.mark.parametrize(
    ("each", "count"), [(False, dp.Geometric(10)), (True, dp.Fixed(3)), (True, dp.Fixed(1))]
)
def test_the_free_share_of_gaussian_training_meets_the_same_total(each, count):
    share = share_at_no_cost(1.0, 1e-5, count, each, pure=False)
    mu = dp.calibrate(lambda mu: dp.GaussianDP(mu=mu), 1.0, 1e-5)
    candidate = dp.GaussianDP(mu=share * mu)
    search = dp.compose(*[candidate] * int(count.mean)) if each else dp.best_of(candidate, count)
    assert search.epsilon_at(1e-5) == pytest.approx(1.0, rel=1e-3)


@pytest.mark.parametrize("epsilon", [None, 2.0])
def test_a_warm_start_goes_on_with_the_final_noise(epsilon):
    one = on_the_rest(epsilon=epsilon, tuning_share=0.5, warm_start=True).fit(IDS, y)
    *tuning, final = SEEN
    assert final["fits"] == 2
    assert {2 * run["epsilon"] for run in tuning} == {final["epsilon"]}
    assert final["epsilon"] == one.best_estimator_.privacy_guarantee().epsilon


def test_a_candidate_that_promises_something_else_in_the_final_training_is_refused():
    class Odd(Watching):
        """Forgets about its noise if that is the configured one."""

        def privacy_guarantee(self, n_samples=None):
            return dp.PureDP(epsilon=self.epsilon * (1 + (self.epsilon == 1.0) * (self.rate > 1.5)))

        privacy_parameters = ("epsilon",)

    one = on_the_rest(Odd(), {"rate": loguniform(2.0, 3.0)}, tuning_share=0.5)
    with pytest.raises(dp.PrivacyError, match="promises"):
        one.fit(IDS, y)
    assert not SEEN


# --- the released score ---------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["zero_out", "add_remove", "replace_one"])
def test_a_released_score_is_off_by_as_much_as_it_says(relation):
    """Seven of ten predictions are right: what is left is noise, and who is in the part that was
    scored."""
    labels = (np.arange(400) % 10 < 3).astype(int)
    options = {"n_iter": 1, "cv": 0.5, "score_noise": dp.PureDP(epsilon=0.1)}
    one = on_the_rest(Told(neighboring=relation), **options)
    off, said = [], []
    for seed in range(60):
        one.set_params(random_state=seed).fit(IDS, labels)
        off.append(one.best_score_ - 0.7)
        said.append(one.best_score_std_)
    assert 0.02 < min(said) < max(said) < 0.3
    assert 0.7 < np.std(np.array(off) / said) < 1.4
    assert abs(np.mean(off)) < 4 * np.mean(said) / 60**0.5
