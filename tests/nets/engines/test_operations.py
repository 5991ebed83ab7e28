"""Operations that act on each record alone: what each rule accepts and refuses, and that what it
accepts does."""

from __future__ import annotations

import copy
import operator

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from sklearn_dpsearch.nets._engines import operation_rules as rules
from sklearn_dpsearch.nets._engines import operations


def rows(*shape, integers=False):
    return rules.Rows(torch.Size(shape), integers)


def fixed(*shape):
    return rules.Constant(torch.Size(shape))


X, W, N = rows(8, 5, 6), rows(8, 5, 6), rules.BATCH_SIZE
TURNED = rules.Turned(X)  # a tensor of shape (5, 8, 6)
A, S = Ellipsis, slice
#: operation: (accepted arguments, refused arguments)
INTEGERS = rows(8, 5, integers=True)
TABLE = {
    torch.relu: ([(X,)], [(fixed(3),), (N,)]),
    torch.add: (
        [(X, W), (X, 2.0), (X, fixed(6)), (X, fixed(1, 5, 6))],
        [(X, rows(8, 6)), (X, fixed(8, 5, 6)), (X, N), (X, TURNED), (TURNED, X)],
    ),
    torch.where: ([(X, W, 0.0)], [(X,)]),
    F.dropout: ([(X, 0.5, True)], [(X, N)]),
    F.gumbel_softmax: ([(X,), (X, 0.5, True, 1e-10, 1)], [(X, 1.0, False, 1e-10, 0)]),
    torch.remainder: (
        [(X, 0), (X, W), (INTEGERS, 3), (INTEGERS, rows(8, 5))],
        [
            (INTEGERS, 0), (INTEGERS,) * 2, (3, INTEGERS),
            (X, N),
        ],
    ),
    torch.div: ([(X, 0), (X, W), (INTEGERS,) * 2], [(X, rows(8, 6))]),
    torch.rand: (
        [((N, 1),), (N, 5, 1), (rules.Shape(X),)],
        [((8, 1),), ((1, N),), (N, N), (), ((5,),), (fixed(3),), ((N, fixed(3)),)],
    ),
    torch.zeros: (
        [((N, 1),), (2, N, 5), ((2, N, 5),)],
        [(5,), (2, N), (N, N, 5), (fixed(3), N, 5), (2, N, fixed(3)), (2, 5, N)],
    ),
    torch.softmax: (
        [(X, 1), (X, -1), (X, (1, 2))],
        [(X, 0), (X, -3), (X, None), (X, N), (X, (0, 1))],
    ),
    torch.mean: ([(X, 1), (X, (1, 2))], [(X,), (X, 0), (X, ())]),
    torch.max: ([(X, 1), (X, W)], [(X,), (X, 0), (X, rows(8, 6))]),
    torch.topk: ([(X, 2), (X, 2, 1)], [(X, 2, 0), (X, N, 1)]),
    torch.sort: ([(X,), (X, 1)], [(X, 0)]),
    torch.flip: ([(X, (1, 2))], [(X, (0,))]),
    torch.roll: ([(X, 1, 1)], [(X, 1), (X, 1, 0)]),
    torch.chunk: ([(X, 2, 1)], [(X, 2), (X, 2, 0)]),
    torch.squeeze: (
        [(X, 1), (rules.Turned(rows(8, 1, 6)), 0)],
        [(X,), (X, 0), (TURNED, 0), (rules.Turned(rows(8, 1, 6)), 1)],
    ),
    torch.flatten: ([(X, 1), (X, 1, 2), (X, -2)], [(X,), (X, 0), (X, -3)]),
    torch.reshape: (
        [(X, (N, 30)), (X, (N, -1)), (X, (-1, 30)), (X, (-1, 5, 3, 2))],
        [(X, (-1, 6)), (X, (8, 30)), (X, (30, N)), (X, (-1, N)), (X, ()), (X, fixed(2))],
    ),
    torch.unflatten: ([(X, 2, (2, 3))], [(X, 0, (2, 4)), (X, 1, (N, 5))]),
    torch.permute: (
        [(X, (0, 2, 1)), (X, (1, 0, 2)), (TURNED, (1, 0, 2))],
        [(X, (1, 2, 0)), (X, (2, 1, 0)), (TURNED, (0, 2, 1))],
    ),
    torch.transpose: (
        [(X, 1, 2), (X, 0, 1), (TURNED, 1, 0)], [(X, 0, 2), (X, 1, -3), (TURNED, 1, 2)],
    ),
    torch.unsqueeze: ([(X, 1), (X, -1)], [(X, 0), (X, -4)]),
    torch.cat: (
        [([X, W], 1)],
        [([X, W],), ([X, W], 0), (X, 1), ([X, fixed(8, 5, 6)], 1), ([X, rows(8, 6)], 1)],
    ),
    torch.stack: ([([X, W], 1), ([X, W], -1)], [([X, W],), ([X, W], 0), ([X, W], -4)]),
    torch.matmul: (
        [(X, fixed(6, 3)), (X, rows(8, 6, 2))],
        [(X, rows(8, 6)), (rows(8, 5), rows(8, 5)), (X, fixed(2, 6, 3))],
    ),
    torch.einsum: (
        [("bij,bkj->bik", X, W), ("bij,jk->bik", X, fixed(6, 2))],
        [
            ("bij,ckj->bc", X, W), ("bij->ij", X), ("bij,bkj->kbi", X, W), ("...j->...", X),
            ("bib->b", rows(8, 5, 8)), ("bij,bk->bik", X, fixed(8, 2)),
        ],
    ),
    F.scaled_dot_product_attention: (
        [(X, X, X), (X, X, X, fixed(5, 5))],
        [(rows(8, 6),) * 3, (X, X, X, fixed(8, 5, 5))],
    ),
    F.layer_norm: ([(X, (6,)), (X, (5, 6), fixed(5, 6))], [(X, (8, 5, 6)), (X, (6,), X)]),
    F.linear: ([(X, fixed(3, 6))], [(X, X), (rows(8), fixed(3, 8))]),
    F.normalize: ([(X,), (X, 2.0, 2)], [(X, 2.0, 0)]),
    F.max_pool1d: ([(X, 2)], [(rows(8, 5), 2), (rows(8, 5, 6, 7), 2)]),
    operator.getitem: (
        [
            (X, (S(None), 0)), (X, (S(None), S(1, 3), 2)), (X, (A, 0)), (X, (S(None), None, 1)),
            (rules.Several((X, W)), 1), (TURNED, -1),
        ],
        [
            (X, 0), (X, S(None, 4)), (X, (S(0, 4), 1)), (X, (A, 0, 0, 0)), (X, (S(None), fixed(3))),
            (X, X), (X, ()), (X, A), (X, (A, None, 0)), (X, (None, S(None))), (TURNED, S(0, 2)),
            (TURNED, (0, 1)),
        ],
    ),
    getattr: (
        [(X, "shape"), (X, "mT"), (X, "device"), (X, "dtype")],
        [(X, "T"), (X, "data"), (rows(8, 5), "mT"), (TURNED, "shape")],
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("operation", "accepted"), [(one, case) for one, (good, _) in TABLE.items() for case in good]
)
def test_operations_within_each_record_are_accepted(operation, accepted):
    operations.FUNCTIONS[operation](*accepted)


@pytest.mark.parametrize(
    ("operation", "refused"), [(one, case) for one, (_, bad) in TABLE.items() for case in bad]
)
def test_operations_across_records_are_refused(operation, refused):
    with pytest.raises((rules.NotPerRecord, TypeError)):
        operations.FUNCTIONS[operation](*refused)


def test_whole_numbers_are_divided_by_constants_alone_where_the_quotient_is_rounded():
    whole = INTEGERS
    with pytest.raises(rules.NotPerRecord, match="may be 0"):
        operations.FUNCTIONS[torch.div](whole, whole, rounding_mode="floor")
    operations.FUNCTIONS[torch.div](whole, 2, rounding_mode="floor")


def test_results_are_never_written_elsewhere():
    with pytest.raises(rules.NotPerRecord, match="out="):
        operations.FUNCTIONS[torch.add](X, W, out=X)
    for positional, named in (((X,), {"inplace": True}), ((X, True), {}), ((X, W), {})):
        with pytest.raises(rules.NotPerRecord, match="in place"):
            operations.FUNCTIONS[F.silu](*positional, **named)
    operations.FUNCTIONS[F.silu](X, False)
    assert torch.Tensor.add_ not in operations.FUNCTIONS
    assert not [name for name in operations.METHODS if name.endswith("_")]


def test_every_function_of_the_table_has_a_rule_that_is_tested():
    ruled = {operations.FUNCTIONS[one] for one in TABLE}
    generic = {rule for one, rule in operations.FUNCTIONS.items() if rule not in ruled}
    entries = operations.FUNCTIONS.items()
    names = {getattr(one, "__name__", "") for one, rule in entries if rule in generic}
    # made by factories of tested ones: along named dimensions, on (records, channels, places),
    # never in place
    factories = {"rule_along_dims", "rule_for_images", "out_of_place"}
    assert {rule.__qualname__.partition(".")[0] for rule in generic} <= factories, names


VALUES = torch.rand(8, 5, 6, generator=torch.Generator().manual_seed(0)) * 0.8 + 0.1
OTHERS = VALUES.flip(1) * 0.5
WHOLE = (VALUES * 4).long()
#: Arguments to try on every operation; tensors of eight records, and constants.
TRIED = [
    (VALUES,), (VALUES, OTHERS), (VALUES, OTHERS, VALUES), (VALUES > 0.5, OTHERS > 0.2),
    (WHOLE, WHOLE.flip(1)), (VALUES > 0.5,), (VALUES > 0.5, VALUES, OTHERS),
    (VALUES, VALUES > 0.5, 0.3), (VALUES, torch.float32), (VALUES, 0.3), (VALUES, 0.2, 0.3),
    (VALUES, 1), (VALUES, 2), (VALUES, 2, 1), (VALUES, 1, 2), (VALUES, 1, 1, 2), (VALUES, (1, 2)),
    (VALUES, 1, (1, 2)), (VALUES, (0, 2, 1)), (VALUES, -1), (VALUES, (8, 30)), (VALUES, (-1, 30)),
    (VALUES, 1, (5, 1)), (VALUES, 1, (2, 3)), ([VALUES, OTHERS], 1), (VALUES, 1, WHOLE[:, :3] % 5),
    (VALUES, VALUES[0, :3].mT), (VALUES, OTHERS.mT), ("bij,bkj->bik", VALUES, OTHERS),
    (VALUES, (6,)), (VALUES, VALUES, OTHERS), (VALUES, (slice(None), 1)), (VALUES, (Ellipsis, 1)),
    (VALUES, 2.0, 1),
]  # fmt: skip
#: Random, or of the whole shape: not to be compared record by record.
APART = operations.RANDOM_OPS | {"empty_like", "getattr", "zeros", "new_zeros"}


def described(one):
    if isinstance(one, list):
        return [described(part) for part in one]
    if not isinstance(one, torch.Tensor):
        return one
    if len(one) == 8:
        return rules.Rows(one.shape, not one.is_floating_point())
    return rules.Constant(one.shape)


def part(one, i):
    """One record alone."""
    if isinstance(one, (list, tuple)) and any(isinstance(inner, torch.Tensor) for inner in one):
        return type(one)(part(inner, i) for inner in one)
    return one[i : i + 1] if isinstance(one, torch.Tensor) and len(one) == 8 else one


def runs(function, args):
    try:
        found = function(*args)
    except Exception:
        return None
    parts = found if isinstance(found, (tuple, list)) else [found]
    return [one for one in parts if isinstance(one, torch.Tensor)]


def accepts(rule, args):
    try:
        return rule(*map(described, args)) is None
    except (rules.NotPerRecord, TypeError, AttributeError, IndexError):
        return False


def method(name):
    return lambda value, *args: getattr(value, name)(*args)


#: Numbers that a record may hold.
ODD = {
    torch.float32: [torch.nan, torch.inf, -torch.inf, -1.0, 0.0, 1e30],
    torch.int64: [-1, 0, 2**62, -(2**63)],
    torch.bool: [True, False],
}
EVERY = {
    **{
        f"{one.__module__}.{one.__name__}": (one, rule)
        for one, rule in operations.FUNCTIONS.items()
    },
    **{f"Tensor.{name}": (method(name), rule) for name, rule in operations.METHODS.items()},
}
#: Needs arguments of its own, which ``TABLE`` has; or is about shapes.
ELSEWHERE = {"_nn.linear", "Tensor.size", "Tensor.dim", "Tensor.expand", "pool3d", "pool2d"}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [one for one in EVERY if one.rpartition(".")[2] not in APART])
def test_whatever_the_table_accepts_acts_on_each_record_alone(name):
    """Every operation on everything that its rule accepts, on eight records at once and on each of
    them."""
    function, rule = EVERY[name]
    compared = 0
    for args in TRIED:
        found = runs(function, args) if accepts(rule, args) else None
        if not found:
            continue
        compared += 1
        for one in found:
            assert one.shape[0] == 8
        for i in (0, 3, 7):
            single = runs(function, tuple(part(arg, i) for arg in shaped(args)))
            assert single is not None
            for one, own in zip(found, single):
                options = {"equal_nan": True, "rtol": 1e-4, "atol": 1e-5}
                torch.testing.assert_close(one[i : i + 1], own, **options)
    assert compared or any(known in name for known in ELSEWHERE), name


def shaped(args):
    """The number of records in a shape is that of the batch."""
    return tuple((-1, 30) if type(one) is tuple and one == (8, 30) else one for one in args)


LAYER_CASES = [
    (nn.Linear(6, 2), [X], [rows(8)]),
    (nn.Conv1d(5, 2, 3), [X], [rows(5, 6), rows(8, 5, 6, 7)]),
    (nn.Conv2d(5, 2, 3), [rows(8, 5, 6, 6)], [X]),
    (nn.MaxPool2d(2), [rows(8, 5, 6, 6)], [X]),
    (nn.MaxPool2d(2, return_indices=True), [], [rows(8, 5, 6, 6)]),
    (nn.InstanceNorm1d(5), [X], [rows(5, 6)]),
    (nn.InstanceNorm1d(5, track_running_stats=True), [], [X]),
    (nn.GroupNorm(1, 5), [X], [rows(8)]),
    (nn.LayerNorm(6), [X], [rows(6)]),
    (nn.LayerNorm((8, 5, 6)), [], [X]),
    (nn.Dropout1d(), [X], [rows(8, 5)]),
    (nn.ReLU(), [X], [fixed(3)]),
    (nn.ReLU(inplace=True), [], [X]),
    (nn.Softmax(dim=1), [X], []),
    (nn.Softmax(dim=0), [], [X]),
    (nn.Softmax(), [], [X]),
    (nn.Flatten(), [X], []),
    (nn.Flatten(0), [], [X]),
    (nn.Unflatten(2, (2, 3)), [X], []),
    (nn.Unflatten(0, (2, 4)), [], [X]),
    (nn.Embedding(9, 2), [INTEGERS], [X]),
    (nn.Embedding(9, 2, max_norm=1.0), [], [INTEGERS]),
    (nn.Embedding(9, 2, scale_grad_by_freq=True), [], [INTEGERS]),
    (nn.Embedding(9, 2, sparse=True), [], [INTEGERS]),
    (nn.PixelShuffle(2), [rows(8, 4, 6, 6)], [X]),
    (nn.PReLU(), [X], [rows(8)]),
    (nn.Upsample(scale_factor=2), [X], [rows(8, 5)]),
    (nn.GRU(6, 2, batch_first=True), [X], [rows(5, 6), TURNED, rows(8, 5, 6, 7)]),
    (nn.LSTM(6, 2), [TURNED], [X, rows(5, 6)]),
    (nn.LSTM(6, 2, batch_first=True, proj_size=1), [], [X]),
]


@pytest.mark.parametrize(
    ("layer", "accepted", "refused"), LAYER_CASES, ids=lambda one: str(one)[:40]
)
def test_layers_are_accepted_on_records_and_refused_across_them(layer, accepted, refused):
    rule = operations.LAYERS[type(layer)]
    for one in accepted:
        rule(layer, one)
    for one in refused:
        with pytest.raises(rules.NotPerRecord):
            rule(layer, one)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("layer", "accepted"),
    # test_recurrent has them
    [case[:2] for case in LAYER_CASES if not isinstance(case[0], nn.RNNBase)],
    ids=lambda one: str(one)[:40],
)
def test_whatever_layers_accept_acts_on_each_record_alone(layer, accepted):
    if operations.is_random_op(None, layer):
        layer = copy.deepcopy(layer).eval()
    for one in accepted:
        rng = torch.Generator().manual_seed(0)
        inputs = (
            torch.randint(0, 9, one.shape, generator=rng)
            if one.integers
            else torch.rand(one.shape, generator=rng)
        )
        found = layer(inputs)
        apart = torch.cat([layer(inputs[i : i + 1]) for i in range(len(inputs))])
        torch.testing.assert_close(found, apart, rtol=1e-4, atol=1e-5)


def with_odd_record(arguments, number):
    """Arguments in which record 3 is made of one number."""

    def changed(one):
        if isinstance(one, (list, tuple)) and any(isinstance(inner, torch.Tensor) for inner in one):
            return type(one)(map(changed, one))
        if not isinstance(one, torch.Tensor) or len(one) != 8:
            return one
        odd = one.clone()
        if one.dtype is torch.bool:
            odd[3] = number % len(ODD[one.dtype])
        else:
            odd[3] = ODD[one.dtype][number % len(ODD[one.dtype])]
        return odd

    return tuple(map(changed, arguments))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name",
    [one for one in EVERY if one.rpartition(".")[2] not in ("getattr", "zeros", "new_zeros")],
)
def test_no_number_of_a_record_makes_an_operation_of_the_table_fail(name):
    """On a CPU it would stop the fit, on a GPU end the process; and no number changes another
    record."""
    function, rule = EVERY[name]
    for args in TRIED:
        expected = runs(function, args) if accepts(rule, args) else None
        if not expected:
            continue
        for number in range(6):
            found = function(*shaped(with_odd_record(args, number)))
            for one, other in zip(found if isinstance(found, (tuple, list)) else [found], expected):
                if isinstance(one, torch.Tensor) and name.rpartition(".")[2] not in APART:
                    others = [0, 1, 2, 4, 5, 6, 7]
                    options = {"equal_nan": True, "rtol": 0, "atol": 0}
                    torch.testing.assert_close(one[others], other[others], **options)
