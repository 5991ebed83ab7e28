"""Graph of a module: all operations of its ``forward``, each known to act on each record alone.

The graph is recorded without data: stand-ins go through ``forward``, and a branch that would depend
on a value, or on the number of records, raises. Training runs the graph itself, never the user's
code: state that the code keeps, or its behaviour on other inputs, cannot matter.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, fx, nn

from .._named_tensors import Inputs
from . import layer_gradients, operations
from . import operation_rules as rules
from .operation_rules import Constant, Kind, Named, NotPerRecord, Rows, Several, Turned
from .refused_modules import in_training, is_altered


@dataclass(frozen=True)
class Traced:
    """Module as a torch.fx graph of operations that keep records apart.

    Parameters
    ----------
    runnable : QuietGraph
        Equivalent of the module, with parameters of the same names.
    linear : bool
        Whether all parameters lie in linear layers, each used once on one vector per record.
    layered : bool
        Whether all parameters lie in layers that ``layer_gradients`` has rules for, each used once
        on records.
    numbers : int
        Number of values that a record needs in its two passes, and in gradients that are formed.
    random : bool
        Whether the module draws random numbers.
    signature : tuple
        Equal for modules that differ only in their parameters.
    """

    runnable: QuietGraph
    linear: bool
    layered: bool
    numbers: int
    random: bool
    signature: tuple[Any, ...]


class QuietGraph(fx.GraphModule):
    """Graph that is called as any module: torch.fx would print the code at which a record fails."""

    def recompile(self) -> Any:
        code = super().recompile()
        type(self).__call__ = nn.Module.__call__  # each graph has a class of its own
        return code


def trace_module(module: nn.Module, rows: Inputs) -> Traced:
    """Record the torch.fx graph of a module, and check every operation.

    Parameters
    ----------
    module : Module
        Left as found.
    rows : Tensor or dict of Tensor
        Made-up records of the shape and kind of the real ones.

    Raises
    ------
    NotPerRecord
        With the first operation that may mix records, or the reason why there is no graph.
    """
    graph = _record_graph(module)
    copied = _training_copy(module)
    # In place, a layer could change the input of another operation; the result is equal without.
    for layer in copied.modules():
        if getattr(layer, "inplace", False) is True:
            layer.inplace = False
    # ``reshape`` gives the result of ``view`` in every memory layout.
    for node in graph.nodes:
        if node.op == "call_method" and node.target == "view":
            node.target = "reshape"
    runnable = QuietGraph(copied, graph)
    checker = _OperationChecker(runnable)
    with torch.no_grad():
        checker.run(rows)
    kinds = checker.kinds
    calls = [node for node in graph.nodes if "call" in node.op]
    modules = [node for node in calls if node.op == "call_module"]
    layers = {node: runnable.get_submodule(node.target) for node in modules}
    random = any(operations.is_random_op(node.target, layers.get(node)) for node in calls)
    used = {node: layer for node, layer in layers.items() if any(True for _ in layer.parameters())}
    apart = _own_all_parameters(runnable, list(used.values()))
    shapes = {node: _input_shape(node, kinds) for node in used}
    types = {type(layer) for layer in used.values()}
    linear = apart and types <= {nn.Linear} and all(len(shape) == 2 for shape in shapes.values())
    layered = apart and types <= layer_gradients.RULES.keys() and all(shapes.values())
    # Results of all operations, the gradients in them, and per-record gradients that are formed.
    passed = sum(math.prod(kind.shape[1:]) for kind in kinds.values() if isinstance(kind, Rows))
    formed = sum(_gradient_values(layer, shapes[node]) for node, layer in used.items())
    signature = _graph_signature(runnable, layers)
    return Traced(runnable, linear, layered, 2 * passed + formed, random, signature)


# --- recording ------------------------------------------------------------------------------------


class _OperationRecorder(fx.Tracer):
    """Tracer of torch.fx that does not patch PyTorch for all threads.

    It has the bookkeeping of torch.fx, and does not intercept calls.
    """

    def __init__(self, root: nn.Module) -> None:
        super().__init__()
        self.root, self.graph = root, fx.Graph()
        self.tensor_attrs: dict[Tensor, str] = {}

    def create_arg(self, a: Any) -> Any:
        # constants that were computed from parameters would not follow them
        if isinstance(a, Tensor):
            tensors = (*self.root.named_parameters(), *self.root.named_buffers())
            names = [name for name, tensor in tensors if tensor is a]
            if not names:
                raise NotPerRecord("a tensor that forward makes itself (keep constants as buffers)")
            return self.create_node("get_attr", names[0], (), {})
        argument = super().create_arg(a)
        is_attribute = isinstance(argument, fx.Node) and argument.op == "get_attr"
        if is_attribute and not isinstance(a, (fx.Node, fx.Proxy)):
            raise NotPerRecord(f"an object that forward brings ({type(a).__name__})")
        return argument


def _record_graph(module: nn.Module) -> fx.Graph:
    """Record the operations of a module without values of its parameters."""
    root = _training_copy(module, empty=True)
    recorder = _OperationRecorder(root)
    for name, layer in root.named_modules():
        if name and type(layer) in operations.LAYERS and not is_altered(layer):
            vars(layer)["forward"] = partial(_recorded_layer, recorder, name)
    records = recorder.create_proxy("placeholder", "records", (), {})
    try:
        result = root(records)
        recorder.create_node("output", "output", (recorder.create_arg(result),), {})
    except NotPerRecord:
        raise
    except Exception as error:
        summary = f"forward cannot be recorded without data ({_error_summary(error)})"
        if "'len' is not supported" in str(error):
            summary = "len of a tensor (x.shape[0] is the same, and can be recorded)"
        raise NotPerRecord(summary) from None
    return recorder.graph


def _recorded_layer(recorder: _OperationRecorder, name: str, *args: Any, **kwargs: Any) -> Any:
    return recorder.create_proxy("call_module", name, args, kwargs)


def _training_copy(module: nn.Module, empty: bool = False) -> nn.Module:
    """Copy of a module in training mode, for tracing.

    With ``empty`` it is without values of parameters that ``forward`` could read.
    """
    parameters = module.parameters() if empty else ()
    memo = {id(p): nn.Parameter(p.detach().to("meta"), p.requires_grad) for p in parameters}
    return in_training(copy.deepcopy(module, memo))


def _error_summary(error: Exception) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0] if text else 'no text'}"[:200]


# --- checking -------------------------------------------------------------------------------------


class _OperationChecker(fx.Interpreter):
    """Run of a traced graph on made-up records that checks each operation.

    The run gives the shapes that later rules need. It proves nothing about privacy.

    Attributes
    ----------
    kinds : dict
        Operation ↦ kind of its result.
    """

    def __init__(self, runnable: fx.GraphModule) -> None:
        super().__init__(runnable)
        self.kinds: dict[fx.Node, Kind] = {}
        self.extra_traceback = False  # errors say what is needed

    def run_node(self, n: fx.Node) -> Any:
        """Check one operation of a traced graph by its rule, and run it."""
        kind = _kind_by_rule(self.module, n, self.kinds)
        try:
            value = super().run_node(n)
        except Exception as error:
            raise NotPerRecord(
                f"{_op_name(self.module, n)} fails on made-up records ({_error_summary(error)})"
            ) from None
        self.kinds[n] = _kind_of_result(n, value) if kind is None else kind
        return value


def _kind_by_rule(
    runnable: fx.GraphModule, node: fx.Node, kinds: Mapping[fx.Node, Kind]
) -> Kind | None:
    """Apply the rule of a traced operation; return the kind of its result.

    None stands for tensors of records.
    """
    args, kwargs = fx.map_arg((node.args, node.kwargs), kinds.__getitem__)
    kind: Kind | None = None
    try:
        if node.op == "call_module":
            layer = runnable.get_submodule(node.target)
            kind = operations.LAYERS[type(layer)](layer, *args, **kwargs)
        elif node.op == "call_method":
            kind = _operation_rule(operations.METHODS, node.target)(*args, **kwargs)
        elif node.target in operations.ARITHMETIC and {type(part) for part in args} <= {int, float}:
            kind = node.target(*args)  # of parts of a shape, say, which are the same in every batch
        elif node.op == "call_function":
            kind = _operation_rule(operations.FUNCTIONS, node.target)(*args, **kwargs)
        elif node.op == "output":
            rules.needs(isinstance(args[0], Rows), "a result that is not one tensor of records")
    except NotPerRecord as error:
        raise NotPerRecord(f"{_op_name(runnable, node)}: {error}") from None
    except TypeError:
        raise NotPerRecord(f"{_op_name(runnable, node)}: arguments that are not known") from None
    return kind


def _operation_rule(
    table: Mapping[Any, rules.OperationRule], target: object
) -> rules.OperationRule:
    rule = table.get(target)
    if rule is None:
        raise NotPerRecord("an operation that is not known to act on each record alone")
    return rule


def _kind_of_result(node: fx.Node, value: object) -> Rows | Constant | Several | Named:
    """Kind of an operation's result, tensors of records or constants, by its inputs."""
    if node.op == "placeholder" and isinstance(value, dict):
        parts = value.items()
        return Named({name: Rows(part.shape, not part.is_floating_point()) for name, part in parts})
    if node.op == "get_attr" and isinstance(value, Tensor):
        return Constant(value.shape)
    if isinstance(value, Tensor):
        return Rows(value.shape, not value.is_floating_point())
    if isinstance(value, (tuple, list)):
        return Several(tuple(_kind_of_result(node, part) for part in value))
    raise NotPerRecord(f"{node.format_node()}: a result that is no tensor")


def _op_name(runnable: fx.GraphModule, node: fx.Node) -> str:
    """Name of a traced operation as a user would search for it."""
    target = node.target
    if node.op == "call_module":
        return f"layer {str(target)!r} ({type(runnable.get_submodule(str(target))).__name__})"
    if node.op == "call_method":
        return f"the method {target}"
    name = getattr(target, "__name__", str(target))
    return "the result of forward" if node.op == "output" else name


# --- facts ----------------------------------------------------------------------------------------


def _input_shape(node: fx.Node, kinds: Mapping[fx.Node, Kind]) -> torch.Size:
    """Shape of a traced layer's input, records first; empty for other inputs."""
    kind = kinds.get(node.args[0]) if node.args and not node.kwargs else None
    kind = kind.rows if isinstance(kind, Turned) else kind
    return kind.shape if isinstance(kind, Rows) else torch.Size()


def _gradient_values(layer: nn.Module, shape: torch.Size) -> int:
    """Number of values that a layer's rule keeps for one record's gradient."""
    if type(layer) is nn.Embedding or (type(layer) is nn.Linear and len(shape) == 2):
        return 0  # rows of its own words; or two vectors, whose product is never formed
    formed: int = sum(p.numel() for p in layer.parameters() if p.requires_grad)
    if isinstance(layer, nn.RNNBase):  # what each step keeps for its slopes, and these slopes
        weights = dict(layer.named_parameters())
        states = sum(len(weights[name]) for name in weights if name.startswith("weight_hh"))
        formed += 4 * shape[1] * states
    return formed


def _own_all_parameters(runnable: fx.GraphModule, used: list[nn.Module]) -> bool:
    """Return whether these layers own all parameters, each called once, without sharing."""
    once = len({id(layer) for layer in used}) == len(used) > 0
    owned = [p for layer in used for _, p in layer.named_parameters(remove_duplicate=False)]
    ids = [id(parameter) for parameter in owned]
    parameters = dict(runnable.named_parameters())
    apart = len(set(ids)) == len(ids) == len(parameters)
    attributes = {str(node.target) for node in runnable.graph.nodes if node.op == "get_attr"}
    inside = not parameters.keys() & attributes
    return once and apart and inside and all(p.dtype is torch.float32 for p in parameters.values())


def _graph_signature(runnable: fx.GraphModule, layers: dict[fx.Node, nn.Module]) -> tuple[Any, ...]:
    """Signature of a traced graph without the values of its parameters.

    Operations with constants, attributes of layers, shapes, flags and buffers.
    """
    called = layers.values()
    signatures = [(layer.extra_repr(), operations.layer_signature(layer)) for layer in called]
    shapes = [(name, tuple(p.shape), p.requires_grad) for name, p in runnable.named_parameters()]
    buffers = [(name, b.detach().cpu().numpy().tobytes()) for name, b in runnable.named_buffers()]
    return (str(runnable.graph), tuple(signatures), tuple(shapes), tuple(buffers))
