"""Nets for arrays of numbers in the ONNX format, for programs that have no Python."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted
from torch import nn

from ...boosting.onnx_export import Graph, labels_of, numbers_of, type_of
from .table_base import TableNet
from .table_records import ArrayRecords

#: Operators of ONNX for activations.
OPERATORS = {nn.Identity: "Identity", nn.Sigmoid: "Sigmoid", nn.ReLU: "Relu", nn.Tanh: "Tanh"}


def to_onnx(net: TableNet) -> Any:
    """Convert a fitted net for arrays into a graph of ONNX; needs ``pip install onnx``.

    Parameters
    ----------
    net : DPLogisticRegression, DPLinearRegression, DPMLPClassifier or DPMLPRegressor
        Fitted.

    Returns
    -------
    onnx.ModelProto
        Its input is ``X`` of shape (n_samples, n_features), double. Its outputs are ``label`` (n_samples,) and
        ``probabilities`` (n_samples, n_classes), or ``variable`` (n_samples,) for numbers: those of ``predict`` and
        ``predict_proba``, up to rounding to single precision. ``SerializeToString()`` makes a file of it.

    Raises
    ------
    NotFittedError, TypeError
        For other models.

    Notes
    -----
    It follows from the released net, so it costs no privacy. It has no statement: keep ``privacy_spent_`` beside it.
    """
    from onnx import helper

    if not isinstance(net, TableNet) or net.records_of is not ArrayRecords:
        raise TypeError(
            f"Found {type(net).__name__}; a net for arrays is needed (DPLogisticRegression, DPLinearRegression, "
            "DPMLPClassifier, DPMLPRegressor). torch.onnx.export takes module_ of other nets."
        )
    check_is_fitted(net, "module_")
    graph, bounds, outputs = Graph(), ArrayRecords(net).bounds, "X"
    if bounds is not None:
        scaled = graph("Div", graph("Sub", outputs, graph.constant(bounds.zero)), graph.constant(bounds.half))
        outputs = graph("Clip", scaled, *map(graph.constant, bounds.limits))
    outputs = graph("Cast", outputs, to=type_of(np.zeros(1, np.float32)))
    for layer in net.module_:
        if isinstance(layer, nn.Linear):
            weights, constants = (graph.constant(found.numpy(force=True)) for found in (layer.weight, layer.bias))
            outputs = graph("Gemm", outputs, weights, constants, transB=1)
        else:
            outputs = graph(OPERATORS[type(layer)], outputs)
    outputs = graph("Cast", outputs, to=type_of(np.zeros(1)))
    inputs = [helper.make_tensor_value_info("X", type_of(np.zeros(1)), ["n_samples", net.n_features_in_])]
    if is_classifier(net):
        return graph.model(net, inputs, labels_of(graph, outputs, net.classes_))
    scale, ends = net._target_scale(), net._declared("bounds_y")
    middle, unit = (0.0, 1.0) if scale is None else (float(scale.zero), float(scale.half))
    return graph.model(net, inputs, numbers_of(graph, outputs, middle, unit, ends))
