"""A release as a run of MLflow."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from sklearn.utils.validation import check_is_fitted

from .._version import __version__


def log_to_mlflow(search: Any, *, name: str = "model") -> None:
    """Log what a search, or one private fit, released.

    These are parameters, score, cost, statement and model. All of it was released, so that it costs
    nothing. It goes to the active run, or to a new one.

    Parameters
    ----------
    search : fitted search or private model
        With ``privacy_spent_``.
    name : str
        Name of the model in the run.

    Raises
    ------
    ImportError
        Without MLflow: ``pip install mlflow``, or ``mlflow-skinny``.

    Notes
    -----
    Metrics are ``epsilon``, ``delta`` and, of a search, its private ``score``; tags are
    ``neighboring`` and ``unit``; files are ``privacy.json``, whose ``"guarantee"``
    ``privacy.from_dict`` reads, and ``statement.html``.
    """
    import mlflow

    check_is_fitted(search, "privacy_spent_")
    spent = search.privacy_spent_
    metrics = {"epsilon": spent.epsilon, "delta": spent.delta}
    if (score := getattr(search, "best_score_", None)) is not None:
        metrics["score"] = score
    with nullcontext() if mlflow.active_run() else mlflow.start_run():
        mlflow.log_params(getattr(search, "best_params_", {}))
        mlflow.log_metrics({key: float(value) for key, value in metrics.items()})
        mlflow.set_tags({"neighboring": spent.neighboring, "unit": spent.unit})
        mlflow.log_dict(spent.to_dict(), "privacy.json")
        mlflow.log_text(str(spent.report()), "statement.html")
        mlflow.sklearn.log_model(
            getattr(search, "best_estimator_", search),
            name=name,
            serialization_format="cloudpickle",
            pip_requirements=[f"sklearn-dpsearch=={__version__}"],
        )
