"""A release as a run of MLflow: all that was released, and nothing else."""

import json
import re
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.boosting import DPGradientBoostingClassifier
from sklearn_dpsearch.privacy import from_dict
from sklearn_dpsearch.report import _mlflow_run, log_to_mlflow

mlflow = pytest.importorskip("mlflow")
# of MLflow's own functions
pytestmark = pytest.mark.filterwarnings("ignore:.*Any type hint:UserWarning")
X, Y = np.linspace(0, 1, 400).reshape(200, 2), np.arange(200) % 2
MODEL = DPGradientBoostingClassifier({"a": (0.0, 1.0), "b": (0.0, 1.0)}, classes=[0, 1], max_iter=5)


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    yield mlflow.MlflowClient()
    mlflow.set_tracking_uri(None)


def files_of(run):
    folder = Path(run.info.artifact_uri.removeprefix("file://"))
    return {
        path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()
    }


def test_a_search_is_logged_with_its_cost_statement_and_model(runs):
    search = DPRandomSearchCV(
        MODEL, {"prior_factor": [1.0]}, n_iter=2, epsilon=1.0, delta=1e-6
    ).fit(X, Y)
    with mlflow.start_run() as active:
        log_to_mlflow(search)
    run = runs.get_run(active.info.run_id)
    assert set(run.data.metrics) == {"epsilon", "delta", "score"}
    assert set(run.data.params) == {"prior_factor"}
    assert run.data.tags["neighboring"] == "zero_out"
    read = from_dict(json.loads(files_of(run)["privacy.json"].read_text())["guarantee"])
    assert read.epsilon_at(1e-6) == search.privacy_spent_.epsilon
    assert "<html" in files_of(run)["statement.html"].read_text()
    loaded = mlflow.sklearn.load_model(f"runs:/{active.info.run_id}/model")
    np.testing.assert_array_equal(loaded.predict(X), search.predict(X))


def test_a_search_that_keeps_no_model_logs_none(runs, tmp_path):
    space, budget = {"prior_factor": [1.0]}, {"epsilon": 1.0, "delta": 1e-6}
    log_to_mlflow(DPRandomSearchCV(MODEL, space, n_iter=2, refit=False, **budget).fit(X, Y))
    (run,) = runs.search_runs(["0"])
    assert set(run.data.metrics) == {"epsilon", "delta", "score"}
    assert list((tmp_path / "runs").rglob("MLmodel")) == []


def boosting():
    return clone(MODEL).set_params(target_epsilon=1.0, target_delta=1e-6)


def net():
    pytest.importorskip("torch")
    from sklearn_dpsearch.nets import DPLogisticRegression

    budget = {"target_epsilon": 1.0, "target_delta": 1e-6}
    return DPLogisticRegression(classes=[0, 1], max_epochs=1, **budget)


def of_diffprivlib():
    models = pytest.importorskip("diffprivlib.models")
    model = models.GaussianNB(epsilon=1.0, bounds=(0.0, 1.0))
    return make_pipeline(FunctionTransformer(), model)


@pytest.mark.parametrize(
    ("made", "extras"),
    [(boosting, ""), (net, "[nets]"), (of_diffprivlib, "[diffprivlib]")],
)
def test_requirements_name_the_extras_with_which_the_model_can_be_loaded(
    runs, tmp_path, made, extras
):
    model = made().fit(X, Y)
    if not hasattr(model, "privacy_spent_"):
        model.privacy_spent_ = boosting().fit(X, Y).privacy_spent_
    log_to_mlflow(model)
    (path,) = (tmp_path / "runs").rglob("requirements.txt")
    assert re.search(r"^sklearn-dpsearch(.*)==", path.read_text(), re.MULTILINE)[1] == extras


def test_extras_are_those_of_the_package():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    for extra, libraries in _mlflow_run.EXTRAS.items():
        installed = f"sklearn_dpsearch.{extra} {project['optional-dependencies'][extra]}"
        assert all(library in installed for library in libraries)


def test_without_mlflow_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(ImportError, match=r"needs mlflow>=3: pip install 'mlflow>=3'"):
        log_to_mlflow(MODEL)


def test_a_single_fit_gets_a_run_of_its_own_without_a_score(runs):
    log_to_mlflow(boosting().fit(X, Y))
    assert mlflow.active_run() is None
    (run,) = runs.search_runs(["0"])
    assert set(run.data.metrics) == {"epsilon", "delta"}
