"""A direct fit tells of no record in its errors and warnings."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch._process.containment import TrainingStoppedError
from sklearn_dpsearch.boosting import DPGradientBoostingClassifier, DPGradientBoostingRegressor
from sklearn_dpsearch.boosting import _rounds as rounds
from sklearn_dpsearch.data._labels import as_array, classes_in

SCHEMA = {"a": (0.0, 1.0)}
X, y = np.linspace(0, 1, 60)[:, None], np.arange(60) % 2


def model(**changed):
    return DPGradientBoostingClassifier(
        SCHEMA, **{"classes": [0, 1], "target_mu": 0.5, "max_iter": 2, **changed}
    )


@pytest.fixture
def broken(monkeypatch):
    def broken(*given, **options):
        warnings.warn("secret", stacklevel=1)
        raise KeyError("secret")

    monkeypatch.setattr(rounds, "boost", broken)


@pytest.mark.usefixtures("broken")
def test_errors_of_other_code_have_a_fixed_text_and_no_chain():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(TrainingStoppedError, match="could quote a record") as told:
            model().fit(X, y)
    assert told.value.__context__ is told.value.__cause__ is None
    assert "secret" not in str(told.value)


@pytest.mark.usefixtures("broken")
def test_on_public_records_they_are_shown():
    with pytest.warns(UserWarning, match="secret"), pytest.raises(KeyError, match="secret"):
        DPRandomSearchCV(model(), {}, n_iter=1, delta=1e-6).dry_run(X, y)


def test_errors_of_modules_are_not_shown_either():
    torch = pytest.importorskip("torch")
    pytest.importorskip("skorch")
    from sklearn_dpsearch.nets import DPNeuralNetClassifier

    class Picky(torch.nn.Linear):
        def forward(self, inputs):
            if self.training and (inputs == 1.0).any():
                raise ValueError(f"secret {inputs}")
            return super().forward(inputs)

    net = DPNeuralNetClassifier(
        Picky, module__in_features=1, module__out_features=2, classes=[0, 1], batch_size=60,
        max_steps=2, noise_multiplier=1.0,
    )  # fmt: skip
    with pytest.raises(Exception, match=r"^(?!.*secret)") as told:
        net.fit(X.astype(np.float32), y)
    assert told.value.__context__ is None or "secret" not in str(told.value.__context__)


@pytest.mark.parametrize("label", [1, 7, 7.0, True])
def test_no_warning_depends_on_one_label(label):
    """scikit-learn warns if more than half of the labels are different."""
    labels = [*range(31), *y[31:-1].tolist(), label]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = classes_in(as_array(labels), None)
    assert len(found) in (31, 32)


def test_a_plain_list_of_whole_numbers_is_labels_and_targets():
    first = model(noise_seed=1, random_state=0).fit(X, y)
    listed = model(noise_seed=1, random_state=0).fit(X.tolist(), y.tolist())
    assert np.array_equal(first.predict(X), listed.predict(X))
    assert model(classes=None).fit(X, y.tolist()).classes_.tolist() == [0, 1]
    DPGradientBoostingRegressor(SCHEMA, bounds_y=(0, 1), target_mu=1.0, max_iter=2).fit(
        X, y.tolist()
    )


@pytest.mark.parametrize("dtype", ["U3", "string", "Int64", "boolean", "int64"])
def test_labels_of_a_declared_type_that_no_class_has_are_refused(dtype):
    """Each would be none of the classes. Objects and lists declare no type."""
    pd = pytest.importorskip("pandas")
    words = dtype in ("U3", "string")
    labels = np.array(["no", "yes"] * 30 if words else [0, 1] * 30)
    labels = labels.astype(dtype) if dtype in ("U3", "int64") else pd.Series(labels).astype(dtype)
    with pytest.raises(ValueError, match="none of them is declared"):
        model(classes=[0, 1] if words else ["no", "yes"]).fit(X, labels)
