"""How much a plan works out, by counting what is costly; seconds are in
examples/benchmarks/accountant.py."""

from __future__ import annotations

import pytest

from sklearn_dpsearch import DPGridSearchCV, DPRandomSearchCV, DPSubsetSearchCV
from sklearn_dpsearch.privacy._numerics import basic_mechanisms
from sklearn_dpsearch.privacy._selection import best_of, potentials


@pytest.mark.slow
@pytest.mark.parametrize("kind", [DPSubsetSearchCV, DPRandomSearchCV, DPGridSearchCV])
def test_a_plan_solves_no_linear_programme_and_again_composes_nothing(kind, monkeypatch):
    pytest.importorskip("torch")
    from sklearn_dpsearch import nets

    calls: list[str] = []
    cases = ((basic_mechanisms, "convolve"), (best_of, "theorem_1"), (potentials, "potential"))
    for module, name in cases:
        real = getattr(module, name)
        monkeypatch.setattr(
            module, name, lambda *args, real=real, name=name: (calls.append(name), real(*args))[1]
        )

    def plan() -> None:
        kind(
            nets.DPMLPClassifier(), "auto", epsilon=3.0 + 1e-3 * len(kind.__name__), delta=1e-6
        ).privacy_cost(32_561)

    plan()
    assert {"convolve"} <= set(calls) <= {"convolve", "theorem_1"}
    calls.clear()
    plan()
    assert calls == []
