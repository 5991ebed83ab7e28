"""What the arguments of a net say about its guarantee."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip("torch")
pytest.importorskip("skorch")
import torch

from sklearn_dpsearch.nets import DPMLPClassifier, DPNeuralNetClassifier
from sklearn_dpsearch.nets.estimators.settings import settings_of
from sklearn_dpsearch.privacy import DPSGD, PrivacyError


def test_the_number_of_records_is_public():
    """Gradients are divided by the number of records that is expected: taken from the data, it is told."""
    one = DPMLPClassifier(noise_multiplier=1.0, sample_rate=0.1, max_steps=3)
    assert one.privacy_guarantee().neighboring == "zero_out"
    with pytest.raises(PrivacyError, match="number of records is public"):
        one.set_params(neighboring="add_remove").privacy_guarantee()


def test_records_are_counted_unless_their_expected_number_is_told():
    """A part of the records, drawn in secret, must train as if its size were the expected one."""
    one = DPMLPClassifier(noise_multiplier=1.0, max_steps=3)
    assert one.expected_number(500) == 500
    assert one.set_params(**one.expecting(400)).expected_number(500) == pytest.approx(400)
    assert one.privacy_guarantee() == DPSGD(noise_multiplier=1.0, sample_rate=0.02, steps=3, neighboring="zero_out")


def test_a_rate_that_follows_the_number_of_records_can_be_fixed():
    one = DPMLPClassifier(noise_multiplier=1.0, batch_size=50, max_epochs=2)
    assert one.expecting(100) is None  # on a part of the records another rate would follow
    whole = one.privacy_guarantee(500)
    fixed = one.set_params(**one.sized(500))
    assert fixed.privacy_guarantee() == whole
    assert fixed.sized(100) == {}


@pytest.mark.parametrize("n", [93, 99, 105, 147, 1797])
@pytest.mark.parametrize("rate", [{"batch_size": 3}, {"batch_size": 3.5, "sample_rate": 0.1}])
def test_rate_steps_and_batch_size_are_arithmetic_on_arguments_and_the_number_of_records(n, rate):
    """Whole numbers of batches or of records would round some of them."""
    module = {
        "module__in_features": 5,
        "module__out_features": 2,
        "classes": [0, 1],
        "noise_multiplier": 1.0,
        "lr": 0.1,
    }
    one = DPNeuralNetClassifier(torch.nn.Linear, **module, **rate, max_epochs=1)
    settings = settings_of(one, n)
    expected = rate.get("sample_rate", 3 / n)
    assert settings.sample_rate == one.privacy_guarantee(n).sample_rate == expected
    assert settings.steps == round(1 / expected)
    task = one.initialize()._task(settings, SimpleNamespace(units=n), ())
    assert isinstance(task.expected_batch_size, float)
    assert task.expected_batch_size == pytest.approx(rate["batch_size"], rel=1e-12)
    assert (task.steps, task.sample_rate) == (settings.steps, settings.sample_rate)
