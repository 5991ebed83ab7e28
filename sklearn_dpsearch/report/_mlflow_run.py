"""A release as a run of MLflow."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from sklearn.utils.validation import check_is_fitted

from .._version import __version__

#: Extra of this package ↦ modules of the models and parts of models that it installs.
EXTRAS = {
    "nets": ("sklearn_dpsearch.nets", "torch", "skorch", "opacus"),
    "diffprivlib": ("diffprivlib",),
    "ebm": ("interpret",),
}


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
        Without MLflow 3: ``pip install 'mlflow>=3'``, or ``'mlflow-skinny>=3'``.

    Notes
    -----
    Metrics are ``epsilon``, ``delta`` and, of a search, its private ``score``; tags are
    ``neighboring`` and ``unit``; files are ``privacy.json``, whose ``"guarantee"``
    ``privacy.from_dict`` reads, and ``statement.html``. A search with ``refit=False`` has no model
    to log. The requirements of a model name this package, with the extra for the model's library.
    """
    try:
        import mlflow
    except ImportError as error:
        raise ImportError("log_to_mlflow needs mlflow>=3: pip install 'mlflow>=3'") from error
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
        if getattr(search, "refit", None) is not False:
            model = getattr(search, "best_estimator_", search)
            mlflow.sklearn.log_model(
                model,
                name=name,
                serialization_format="cloudpickle",
                pip_requirements=[_requirement(model)],
            )


def _requirement(model: Any) -> str:
    """Requirement of this package that can load a model, with extras for its parts."""
    parts = [model, *model.get_params().values()]
    modules = {kind.__module__ for part in parts for kind in type(part).__mro__}
    extras = [
        extra
        for extra, libraries in EXTRAS.items()
        if any(module.startswith(libraries) for module in modules)
    ]
    suffix = f"[{','.join(extras)}]" if extras else ""
    return f"sklearn-dpsearch{suffix}=={__version__}"
