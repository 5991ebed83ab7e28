"""Wrong arguments, over all searches: what was found, what is needed, the remedy; before any record
is read."""

from __future__ import annotations

import inspect
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import uniform
from sklearn.model_selection import LeavePOut

import sklearn_dpsearch.privacy as dp
from sklearn_dpsearch import DPThresholdSearchCV
from sklearn_dpsearch.scoring import make_private_scorer, private_scorer

from .toys import (
    IN_DOUBLING,
    SEARCHES,
    NoisyCentroids,
    Untouchable,
    search_of,
    some_labels,
    two_blobs,
)

X, y = two_blobs(300)
SPACE = {"shrink": [0.0, 0.5]}
#: What a search takes beyond the parameters of its class, and what its mode has no use for.
MORE = {"doubling": set(IN_DOUBLING)}
LESS = {"doubling": {"cv", "threshold", "n_iter", "score_noise"}}


def made(kind, estimator=None, space=None, **parameters):
    estimator = NoisyCentroids() if estimator is None else estimator
    return search_of(kind, estimator, SPACE if space is None else space, **parameters)


def takes(kind, names):
    """Whether a search has all of these parameters, in this mode."""
    cls = DPThresholdSearchCV if kind == "doubling" else SEARCHES[kind][0]
    known = set(inspect.signature(cls).parameters) | {"space"} | MORE.get(kind, set())
    return set(names) <= known - LESS.get(kind, set())


def every_search(*cases):
    """Each case with each search that has the parameters."""
    return [
        pytest.param(kind, *case, id=f"{kind}-{number}-{'-'.join(case[0])}")
        for number, case in enumerate(cases)
        for kind in SEARCHES
        if takes(kind, case[0])
    ]


UP_TO_TEN = make_private_scorer(np.equal, lower=0, upper=10)
DECLARED = {"guarantee": dp.PureDP(epsilon=1.0, neighboring="replace_one")}

REFUSED = every_search(
    # an object, not its class
    (
        {"estimator": NoisyCentroids}, TypeError,
        r"the class NoisyCentroids as estimator.*Write NoisyCentroids\(",
    ),
    # spaces
    (
        {"space": {1: [2]}}, TypeError,
        r"Found 1 \(int\) as a name in param_.*string is needed.*Write",
    ),
    (
        {"space": [{"shrink": [0.0]}, {None: [2]}]}, TypeError,
        r"Found None \(NoneType\) as a name in param_",
    ),
    ({"space": [1]}, TypeError, r"Found param_\w+=\[1\]; a dict"),
    ({"space": []}, ValueError, r"Found param_\w+=\[\]; at least one dict"),
    (
        {"space": {"shrink": []}}, ValueError,
        "empty list for 'shrink' in param_.*at least one value",
    ),
    (
        {"space": {"shrink": 0.5}}, TypeError,
        r"Found 0.5 for 'shrink' in param_.*Write e.g. \{'shrink': \[0.5\]\}",
    ),
    # numbers that nothing can be computed with
    ({"epsilon": Decimal("0.5")}, ValueError, "'epsilon'.*Got Decimal"),
    ({"epsilon": 1e-320}, ValueError, r"'epsilon'.*\[1e-100, inf\).*Got 1e-320"),
    ({"delta": 1e-320}, ValueError, r"'delta'.*\{0\}.*\[1e-100, 1.*Got 1e-320"),
    ({"selection_epsilon": 1e-320}, ValueError, r"'selection_epsilon'.*\[1e-100, inf\)"),
    ({"round_epsilon": 1e-320}, ValueError, r"'round_epsilon'.*\[1e-100, inf\)"),
    *(
        ({"subset_fraction": share}, ValueError, "'subset_fraction'.*Got")
        for share in (0, 1, -0.1, 1.5, "tenth")
    ),
    *(({"n_iter": number}, ValueError, "'n_iter'.*Got") for number in (np.nan, np.inf, 0, -3)),
    ({"epsilon": 0.0}, ValueError, "'epsilon'.*Got 0.0"),
    ({"delta": 1.0}, ValueError, "'delta'.*Got 1.0"),
    # what would run for ever; the number of runs is never cut off
    ({"n_iter": 1e30}, ValueError, r"'n_iter'.*1000000.*Got 1e\+30"),
    ({"n_iter": dp.Geometric(1e30)}, ValueError, r"1e\+30 runs on average.*capped|'n_iter'.*Got"),
    ({"n_iter": dp.Poisson(1e7)}, ValueError, r"1e\+07 runs on average.*capped|'n_iter'.*Got"),
    ({"n_iter": dp.Fixed(10**9)}, ValueError, r"1e\+09 runs on average.*capped|'n_iter'.*Got"),
    (
        {"n_parts": 31}, dp.PrivacyError,
        "n_parts=31 for 300 records: at least 10 .*Give n_parts of at most 30",
    ),
    ({"n_parts": 1}, ValueError, "'n_parts'.*Got"),
    (
        {"selection_epsilon": None}, dp.PrivacyError,
        "neither epsilon nor selection_epsilon.*Give epsilon",
    ),
    ({"round_epsilon": None}, dp.PrivacyError, "neither epsilon nor round_epsilon.*Give epsilon"),
    (
        {"epsilon": 1.0, "selection_epsilon": 1.5}, dp.BudgetUnreachableError,
        "epsilon=1.*smallest epsilon possible",
    ),
    ({"n_parts": 10**9}, ValueError, r"'n_parts'.*\[2, 1000000\].*Got 1000000000"),
    (
        {"max_rounds": 10**9, "granularity": 1e-9}, ValueError,
        "max_rounds=1000000000.*at most 5000.*Give fewer",
    ),
    ({"cv": 10**6}, ValueError, "folds; at most 1000.*Give a smaller cv|validate_on='rest'"),
    (
        {"cv": LeavePOut(20)}, ValueError,
        "more than 1000 folds; at most 1000|nothing to split by index",
    ),
    # utilities outside of [0, 1], and what is no grid
    (
        {"n_parts": 3, "scoring": "neg_log_loss"}, dp.PrivacyError,
        r"negative: utilities must be in \[0, 1\].*Use a score",
    ),
    (
        {"n_parts": 3, "scoring": private_scorer("neg_log_loss")}, dp.PrivacyError,
        r"utilities must be in \[0, 1\]",
    ),
    (
        {"n_parts": 3, "scoring": UP_TO_TEN}, dp.PrivacyError,
        r"in \[0, 10\]: utilities must be in \[0, 1\]",
    ),
    (
        {"n_parts": 3, "space": {"shrink": uniform(0, 1)}}, ValueError,
        "distribution for 'shrink'.*whole grid.*DPRandom",
    ),
    # scores without a sensitivity
    *(
        (
            {"score_noise": "match", "scoring": scoring}, dp.UnknownSensitivityError,
            "no usable sensitivity.*private_scorer",
        )
        for scoring in ("max_error", lambda *_: 1.0)
    ),
    # thresholds
    ({"threshold": np.nan}, ValueError, "threshold=nan; a finite number or Doubling"),
    ({"threshold": "high"}, ValueError, "'threshold'.*Got 'high'"),
    ({"granularity": 0.0}, ValueError, "'granularity'.*Got 0.0"),
    ({"lower": -0.1}, ValueError, "'lower'.*Got -0.1"),
    ({"max_rounds": 0}, ValueError, r"'max_rounds' parameter of Doubling.*\[1, inf\).*Got 0"),
    # rules of a subset search
    (
        {"extrapolate": {"shrnk": "linear"}}, ValueError,
        "'shrnk', which is not searched.*Did you mean 'shrink'",
    ),
    (
        {"extrapolate": {"shrink": "liner"}}, ValueError,
        "'liner'; 'linear', 'keep' or.*Did you mean 'linear'",
    ),
    ({"extrapolate": {"shrink": 2.0}}, ValueError, "=2.0; 'linear', 'keep' or a callable"),
    (
        {"extrapolate": "atuo"}, ValueError,
        "extrapolate='atuo'; 'auto', a callable.*Did you mean 'auto'",
    ),
    (
        {"cv": 5, "validate_on": "rest"}, ValueError,
        r"cv=5 with validate_on='rest'.*a float.*validate_on='subset'",
    ),
    # a best score for failures
    ({"error_score": np.inf}, ValueError, "error_score=inf.*failing candidate the best.*np.nan"),
    ({"error_score": "raise"}, ValueError, "error_score='raise'.*np.nan"),
    # folds that are none
    ({"cv": "5"}, ValueError, r"cv='5' \(str\).*cv=5|nothing to split by index"),
    ({"cv": {}}, ValueError, r"cv=\{\} \(dict\).*cv=5|nothing to split by index"),
    ({"cv": True}, ValueError, r"cv=True (\(bool\).*cv=5|with .*float in \(0, 1\].*cv=None)"),
    ({"cv": Fraction(1, 5)}, ValueError, r"cv=Fraction\(1, 5\) .*float in \(0, 1[\)\]]"),
    ({"cv": 1}, ValueError, "cv >= 2|cv=1 with validate_on='rest'.*Leave cv=None"),
    ({"cv": 1.5}, ValueError, "cv=1.5|nothing to split by index"),
    ({"n_jobs": 0}, ValueError, "n_jobs=0.*is needed"),
)  # fmt: skip


@pytest.mark.parametrize(("kind", "parameters", "error", "message"), REFUSED)
def test_it_is_refused_before_any_record_is_read(kind, parameters, error, message):
    with pytest.raises(error, match=f"(?s){message}"):
        made(kind, **parameters).fit(Untouchable(300), some_labels(300))
    with pytest.raises(error, match=f"(?s){message}"):
        made(kind, **parameters).privacy_cost(300)


BY_INDEX = [
    ([1], TypeError, r"Found 1 as fold 0 of cv; a pair \(train, test\).*cv=5"),
    ([([0], [1], [2])], TypeError, "as fold 0 of cv; a pair"),
    (
        [([0, 1], [2]), ([], [])], ValueError,
        "fold 1 of cv with 0 training and 0 validation records",
    ),
    ([([0, 1, 2], [])], ValueError, "fold 0 of cv with 3 training and 0 validation.*X_public"),
    ([([], [1])], ValueError, "fold 0 of cv with 0 training and 1 validation"),
    ([([0], [0])], ValueError, "both training and validating in fold 0.*as KFold does"),
    (
        [(range(200), range(100, 300))], ValueError,
        "100 of the records both training and validating",
    ),
    ([(["a"], ["b"])], TypeError, "dtype <U1.*list of record numbers"),
    ([([0.5], [1.5])], TypeError, "dtype float64.*list of record numbers"),
    ([([True, False], [False, True])], TypeError, "mask of 300 booleans"),
    ([([[0, 1]], [[2, 3]])], TypeError, r"shape \(1, 2\)"),
    ([([0], [300])], ValueError, r"indices in \[0, 300\)"),
    ([], ValueError, "at least one"),
]  # fmt: skip


@pytest.mark.parametrize("kind", ["random", "threshold"])
@pytest.mark.parametrize(("cv", "error", "message"), BY_INDEX)
def test_folds_that_are_none_are_refused_before_any_record_is_read(kind, cv, error, message):
    with pytest.raises(error, match=message):
        made(kind, cv=cv).fit(Untouchable(300), some_labels(300))


@pytest.mark.parametrize("kind", SEARCHES)
@pytest.mark.parametrize("data", [None, 5, "records", {"a": [1]}, iter([[1.0]])])
def test_data_without_a_number_of_records_are_refused(kind, data):
    match = r"Found X of type \w+; an array of NumPy, .* or a list of records is"
    with pytest.raises(TypeError, match=match):
        made(kind).fit(data, y)


@pytest.mark.parametrize("kind", SEARCHES)
def test_rounds_and_nested_searches_check_the_same(kind):
    wrong = made(kind, error_score=np.inf)
    with pytest.raises(ValueError, match="error_score=inf"):
        wrong.privacy_guarantee(300)
    if kind == "doubling":
        with pytest.raises(ValueError, match="error_score=inf"):
            wrong.rounds(Untouchable(300), some_labels(300), [])


@pytest.mark.parametrize("kind", ["grid", "doubling"])
def test_a_grid_that_nobody_could_run_is_refused(kind):
    axis = list(range(2000))
    match = "grid of 4000000 candidates.*at most 1000000.*DPRandomSearchCV"
    with pytest.raises(ValueError, match=match):
        made(kind, space={"shrink": axis, "random_state": axis}, **DECLARED).fit(
            Untouchable(300), some_labels(300)
        )


@pytest.mark.parametrize("kind", SEARCHES)
@pytest.mark.parametrize("worst", [np.nan, -np.inf, 0, -5.0])
def test_minus_infinity_is_the_worst_score_as_nan_is(kind, worst):
    assert made(kind, error_score=worst, random_state=3).fit(X, y).privacy_spent_.epsilon > 0
