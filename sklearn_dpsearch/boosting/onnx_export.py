"""Models of boosting in the ONNX format, for programs that have no Python."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..preprocessing.columns import Choice, Column
from ..preprocessing.ranges import NumberRange
from .base import GradientBoosting
from .estimators import DPGradientBoostingClassifier
from .losses import Array
from .random_cells import Partition

#: Name, type and further shape of an answer.
Answer: TypeAlias = tuple[str, int, list[int]]
#: Versions of the operators that are used, all old enough for onnxruntime 1.15, and of the file.
OPERATORS, TREES, FILE = 18, 3, 9


class Graph:
    """Nodes and constants; a method ends with the name of its result."""

    def __init__(self) -> None:
        from onnx import helper, numpy_helper

        self._node, self._constant = helper.make_node, numpy_helper.from_array
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, values: Any) -> str:
        self.constants.append(self._constant(np.asarray(values), f"constant_{len(self.constants)}"))
        return str(self.constants[-1].name)

    def __call__(self, kind: str, *inputs: str, result: str | None = None, **attributes: Any) -> str:
        name = f"{kind}_{len(self.nodes)}" if result is None else result
        self.nodes.append(self._node(kind, list(inputs), [name], **attributes))
        return name

    def model(self, estimator: object, inputs: list[Any], answers: list[Answer]) -> Any:
        """Model of ONNX with these inputs and answers."""
        from onnx import helper

        outputs = [helper.make_tensor_value_info(name, kind, ["n_samples", *more]) for name, kind, more in answers]
        graph = helper.make_graph(self.nodes, type(estimator).__name__, inputs, outputs, initializer=self.constants)
        versions = [helper.make_opsetid("", OPERATORS), helper.make_opsetid("ai.onnx.ml", TREES)]
        return helper.make_model(graph, opset_imports=versions, ir_version=FILE, producer_name="sklearn_dpsearch")


def to_onnx(model: GradientBoosting) -> Any:
    """Convert a fitted model into a graph of ONNX; needs ``pip install onnx``.

    Parameters
    ----------
    model : DPGradientBoostingClassifier or DPGradientBoostingRegressor
        Fitted, without ``init``. Its columns are numbers, or lists of numbers or of texts.

    Returns
    -------
    onnx.ModelProto
        Its inputs are the columns of the schema, each of shape (n_samples, 1): double (nan is missing), or string for
        lists of texts (what is not listed is missing). Its outputs are ``label`` (n_samples,) and ``probabilities``
        (n_samples, n_classes), or ``variable`` (n_samples,) for numbers; they are those of ``predict`` and
        ``predict_proba``, in double precision; labels that are flags are 0 and 1.
        ``SerializeToString()`` makes a file of it.

    Raises
    ------
    NotFittedError, TypeError
        For other models.
    ValueError
        For a model with ``init``, and for columns of dates and of buckets.

    Notes
    -----
    It follows from the released model, so it costs no privacy. It has no statement: keep ``privacy_spent_`` beside it.
    """
    from onnx import helper

    if not isinstance(model, GradientBoosting):
        raise TypeError(
            f"Found {type(model).__name__}; a model of boosting is needed. Of a search give best_estimator_, of a "
            "pipeline its last step."
        )
    check_is_fitted(model, "weights_")
    if model.init is not None:
        raise ValueError(
            "Found a model with init, another model that its predictions start from, which is not converted. Convert a "
            "model without init."
        )
    graph, coded, schema = Graph(), model._columns(), model._features()
    inputs, codes = [], []
    for (name, column), edges in zip(schema.columns.items(), coded.edges):
        texts = _of_texts(name, column)
        inputs.append(helper.make_tensor_value_info(name, type_of(np.array("" if texts else 0.0)), ["n_samples", 1]))
        codes.append(_codes(graph, name, column, edges, texts))
    outputs = _outputs(graph, model, codes)
    if not isinstance(model, DPGradientBoostingClassifier):
        (middle, unit), bounds = model._scale(), model._declared("bounds_y")
        return graph.model(model, inputs, numbers_of(graph, outputs, middle, unit, bounds))
    two = len(model.classes_) == 2
    shift = model._logits(np.zeros((1 if two else len(model.classes_), 1)))
    logits = graph("Add", outputs, graph.constant(shift.reshape(1, -1)))
    if two:
        logits = graph("Concat", graph("Mul", logits, graph.constant(0.0)), logits, axis=1)
    return graph.model(model, inputs, labels_of(graph, logits, model.classes_))


def _of_texts(name: str, column: Column) -> bool:
    """Return whether a column lists texts, and not numbers."""
    if isinstance(column, NumberRange):
        return False
    if isinstance(column, Choice):
        texts = [isinstance(value, str) for value in column.values]
        if all(texts):
            return True
        if not any(texts) and np.array(column.values).dtype.kind in "biuf":
            return False
    raise ValueError(
        f"Found {column.described(most=3)} for column {name!r}; numbers, listed numbers or listed texts are needed. "
        "Convert dates to numbers, and name values instead of buckets, before you fit."
    )


def _codes(graph: Graph, name: str, column: Column, edges: Array, texts: bool) -> str:
    """Code of each record, shape (n_samples,)."""
    if isinstance(column, Choice):
        unknown = len(column.values)
        if texts:
            found = graph(
                "LabelEncoder", name, domain="ai.onnx.ml",
                keys_strings=list(column.values), values_int64s=list(range(unknown)), default_int64=unknown,
            )  # fmt: skip
            return graph("Squeeze", found, graph.constant([1]))
        is_listed = graph("Equal", name, graph.constant(np.array(column.values, np.float64)))
        below = graph.constant(np.arange(unknown) - unknown)
        return graph("Add", _counted(graph, graph("Mul", _whole(graph, is_listed), below)), graph.constant(unknown))
    code = _counted(graph, _whole(graph, graph("GreaterOrEqual", name, graph.constant(edges))))
    missing = graph("Squeeze", graph("IsNaN", name), graph.constant([1]))
    return graph("Where", missing, graph.constant(len(edges) + 1), code)


def _whole(graph: Graph, flags: str) -> str:
    return graph("Cast", flags, to=type_of(np.zeros(1, np.int64)))


def _counted(graph: Graph, rows: str) -> str:
    return graph("ReduceSum", rows, graph.constant([1]), keepdims=0)


def _outputs(graph: Graph, model: GradientBoosting, codes: list[str]) -> str:
    """Outputs of the model, shape (n_samples, n_outputs)."""
    total = ""
    for partition, weights in zip((Partition(*one) for one in model.partitions_), model.weights_):
        steps = graph.constant(np.ascontiguousarray(weights.T, np.float64))
        cell = ""
        for place, lookup in zip(partition.features, partition.lookups):
            group = graph("Gather", graph.constant(lookup.astype(np.int64)), codes[place])
            cell = graph("Add", cell, group) if cell else group
        step = graph("Gather", steps, cell) if cell else steps
        total = graph("Add", total, step) if total else step
    return total


def labels_of(graph: Graph, logits: str, classes: NDArray[Any]) -> list[Answer]:
    """Labels and probabilities from logits of shape (n_samples, n_classes)."""
    labels = classes.astype(object if classes.dtype.kind in "OU" else np.int64)
    graph("Softmax", logits, axis=1, result="probabilities")
    graph("Gather", graph.constant(labels), graph("ArgMax", logits, axis=1, keepdims=0), result="label")
    return [("label", type_of(labels), []), ("probabilities", type_of(np.zeros(1)), [len(classes)])]


def numbers_of(graph: Graph, outputs: str, middle: float, unit: float, bounds: Any) -> list[Answer]:
    """Numbers inside of bounds, if there are any, from outputs of shape (n_samples, 1)."""
    found = graph("Add", graph("Mul", outputs, graph.constant(unit)), graph.constant(middle))
    if bounds is not None:
        found = graph("Clip", found, *(graph.constant(float(end)) for end in bounds))
    graph("Squeeze", found, graph.constant([1]), result="variable")
    return [("variable", type_of(np.zeros(1)), [])]


def type_of(values: NDArray[Any]) -> int:
    """Number of ONNX for the type of an array; texts are objects there."""
    from onnx import helper

    return int(helper.np_dtype_to_tensor_dtype(np.dtype(object) if values.dtype.kind == "U" else values.dtype))
