"""All libraries of nets, and one thread: these nets are too small to share, and the machine is not
theirs alone."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

collect_ignore_glob = [] if all(map(find_spec, ("torch", "skorch", "opacus"))) else ["*"]


@pytest.fixture(autouse=True, scope="session")
def _one_thread():
    import torch

    torch.set_num_threads(1)


@pytest.fixture
def one_noise(monkeypatch):
    """The same batches and noise in all trainings with one seed, to compare what else differs."""
    message = "sklearn_dpsearch.nets._estimators.base.words_of_training"
    monkeypatch.setattr(message, lambda *given: [])
