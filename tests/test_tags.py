"""Tags tell scikit-learn what an estimator takes."""

from __future__ import annotations

import inspect

import pytest
from sklearn.base import is_classifier, is_regressor
from sklearn.linear_model import LogisticRegression
from sklearn.utils import get_tags

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.boosting import DPGradientBoostingClassifier
from sklearn_dpsearch.privacy import PureDP

from .public_estimators import SCHEMA, kinds, made

ROOMS = ["sklearn_dpsearch.boosting", "sklearn_dpsearch.nets"]


@pytest.mark.parametrize("room", ROOMS)
def test_private_models_say_that_they_are_random_and_may_be_poor(room):
    for kind in kinds(room):
        tags = get_tags(made(kind))
        assert tags.non_deterministic
        assert is_classifier(made(kind)) != is_regressor(made(kind))
        assert (tags.classifier_tags or tags.regressor_tags).poor_score, kind


@pytest.mark.parametrize("room", ROOMS)
def test_models_of_data_frames_say_that_they_take_missing_values_and_words(room):
    for kind in kinds(room):
        takes = get_tags(made(kind)).input_tags
        of_frames = "schema" in inspect.signature(kind.__init__).parameters
        assert (takes.allow_nan, takes.string, takes.categorical) == (of_frames,) * 3


def test_nets_say_which_labels_they_take():
    pytest.importorskip("skorch")
    from sklearn_dpsearch.nets import DPNeuralNetBinaryClassifier as Two
    from sklearn_dpsearch.nets import DPNeuralNetClassifier as More
    from sklearn_dpsearch.nets import DPNeuralNetMultiLabelClassifier as Several

    told = [get_tags(made(kind)) for kind in (Two, More, Several)]
    assert [tags.classifier_tags.multi_class for tags in told] == [False, True, False]
    assert [tags.classifier_tags.multi_label for tags in told] == [False, False, True]
    assert [tags.target_tags.two_d_labels for tags in told] == [False, False, True]


def test_a_search_says_what_its_estimator_takes():
    model = DPGradientBoostingClassifier(SCHEMA, target="pay")
    search = DPRandomSearchCV(model, {"learning_rate": [0.1]})
    assert get_tags(search).input_tags == get_tags(model).input_tags
    assert get_tags(search).classifier_tags == get_tags(model).classifier_tags
    plain = get_tags(
        DPRandomSearchCV(LogisticRegression(), {"C": [1.0]}, guarantee=PureDP(epsilon=1.0))
    )
    assert plain.input_tags.sparse
    assert plain.non_deterministic
