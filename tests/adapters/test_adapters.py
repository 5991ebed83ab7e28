"""What holds for every adapter: exact types, a guarantee that scales, noise that is fresh."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sklearn_dpsearch.adapters import ADAPTERS, adapter_for, training_run
from sklearn_dpsearch.adapters._adapter import ProtocolAdapter
from sklearn_dpsearch.adapters._diffprivlib import DiffprivlibAdapter
from sklearn_dpsearch.adapters._foreign_skorch_nets import SkorchAdapter
from sklearn_dpsearch.adapters._interpret import InterpretAdapter
from sklearn_dpsearch.adapters._opacus import OpacusAdapter
from sklearn_dpsearch.adapters._pipelines import CompositeAdapter
from sklearn_dpsearch.privacy import GaussianDP, UnknownGuaranteeError

skorch = pytest.importorskip("skorch")
pytest.importorskip("diffprivlib")
pytest.importorskip("interpret.privacy")
pytest.importorskip("opacus")

from .opacus_nets import MLP, Own

N = 1000


def diffprivlib_model():
    from diffprivlib.models import GaussianNB

    return GaussianNB(epsilon=1.0, bounds=(0, 1), priors=[0.5, 0.5])


def interpret_model():
    from interpret.privacy import DPExplainableBoostingClassifier

    return DPExplainableBoostingClassifier(
        feature_types=["continuous"], privacy_bounds=np.array([[0.0, 1.0]]), n_jobs=1
    )


class StatedNet(skorch.NeuralNetClassifier):
    """A net of skorch with a guarantee of its own."""

    def __init__(self, *args, target_mu=1.0, **kwargs):
        super().__init__(*args, **kwargs)
        self.target_mu = target_mu

    def privacy_guarantee(self, n_samples=None):
        return GaussianDP(mu=self.target_mu)

    def scaled_privacy(self, factor, varying=frozenset()):
        return {"target_mu": self.target_mu * factor}


def own_model():
    from sklearn_dpsearch.boosting import DPGradientBoostingClassifier

    options = {"classes": [0, 1], "target_epsilon": 1.0, "target_delta": 1e-5}
    return DPGradientBoostingClassifier({"a": (0, 1)}, **options)


#: Type of adapter ↦ an estimator that it recognises.
EXAMPLES = {
    DiffprivlibAdapter: diffprivlib_model,
    InterpretAdapter: interpret_model,
    CompositeAdapter: lambda: make_pipeline(FunctionTransformer(), diffprivlib_model()),
    SkorchAdapter: lambda: StatedNet(MLP),
    OpacusAdapter: lambda: Own(MLP, batch_size=100, train_split=None, classes=[0, 1]),
    ProtocolAdapter: own_model,
}


def own(kind):
    """The adapter of a type, of those that are asked."""
    (adapter,) = (adapter for adapter in ADAPTERS if type(adapter) is kind)
    return adapter


def test_every_adapter_has_an_example_here():
    assert set(EXAMPLES) == {type(adapter) for adapter in ADAPTERS}


@pytest.mark.parametrize("kind", EXAMPLES)
def test_an_estimator_is_recognised_by_its_own_adapter_alone(kind):
    estimator = EXAMPLES[kind]()
    assert type(adapter_for(estimator)) is kind
    others = {type(adapter) for adapter in ADAPTERS if adapter.recognises(estimator)} - {kind}
    assert others <= {ProtocolAdapter}, "exact types, but for what states its own guarantee"
    assert not own(kind).recognises(LogisticRegression())


@pytest.mark.parametrize("kind", EXAMPLES)
def test_a_subclass_that_may_have_changed_fit_is_not_recognised(kind):
    if kind in (SkorchAdapter, OpacusAdapter):
        pytest.skip("nets are subclasses of users")
    changed = type("Changed", (type(EXAMPLES[kind]()),), {})
    with pytest.raises((UnknownGuaranteeError, TypeError)):
        adapter_for(clone(EXAMPLES[kind]()).__class__.__new__(changed))


@pytest.mark.parametrize("kind", EXAMPLES)
def test_half_the_loss_costs_half_and_the_parameters_that_say_so_are_named(kind):
    estimator, adapter = EXAMPLES[kind](), own(kind)
    before = training_run(estimator, N).guarantee.epsilon_at(1e-3)
    changed = adapter.scaled_privacy(estimator, 0.5)
    names = adapter.privacy_parameters(estimator)
    assert names is None or set(changed) <= set(names)
    after = training_run(clone(estimator).set_params(**changed), N).guarantee.epsilon_at(1e-3)
    assert 0.3 * before <= after <= 0.51 * before


@pytest.mark.parametrize("kind", EXAMPLES)
def test_parameters_of_fresh_randomness_leave_the_guarantee_as_it_is(kind):
    estimator, adapter = EXAMPLES[kind](), own(kind)
    fresh = clone(estimator).set_params(**adapter.fresh_randomness(estimator))
    assert training_run(fresh, N).guarantee == training_run(estimator, N).guarantee
