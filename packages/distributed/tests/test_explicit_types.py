"""Types of results over explicit axes: which axes they have, refusals, gradients, values."""

from __future__ import annotations

import numpy as np
import pytest

from primax_core import (
    ShapeDtypeStruct as Struct,
    device_put,
    devices,
    eval_shape,
    grad,
    jit,
    jvp,
    lax,
    make_jaxpr,
    vmap,
)
from primax_core.extend import Primitive, abstract, check_jaxpr, lower, typeof
from primax_core.extend.lowering import axis_rules, hlo
from primax_distributed import (
    AbstractMesh,
    AxisType,
    Mesh,
    NamedSharding,
    P,
    reshard,
    set_mesh,
    use_abstract_mesh,
)
from primax_distributed._placement_errors import ShardingTypeError

EXPLICIT, AUTO = AxisType.Explicit, AxisType.Auto
DEVICES = np.array(devices()).reshape(2, 4)
MESH = Mesh(DEVICES, ("x", "y"), (EXPLICIT, EXPLICIT))
f32 = np.float32


def put(shape, *spec, dtype=f32):
    values = (np.arange(np.prod(shape)) % 7 + 1).reshape(shape).astype(dtype)
    return device_put(values, NamedSharding(MESH, P(*spec)))


A = put((8, 16), "x", "y")
X = put((8, 16), "x")
Y = put((8, 16), None, "y")
T = put((8, 16), "y", "x")
R = put((8, 16))
V = put((16,), "y")
N = put((8, 4, 8), "x", None, "y")
K = put((16, 32), "y")
C = put((16, 32), None, "y")
M = device_put(np.broadcast_to(np.eye(4, dtype=f32) * 2, (8, 4, 4)), NamedSharding(MESH, P("x")))

RANKS = np.tile(np.array([0, 7, 15], np.int32), (8, 1))


def dot(a, b, la, lb, batch=((), ()), **options):
    return lax.dot_general(a, b, (((la,), (lb,)), batch), **options)


def columns(x, indices):
    numbers = lax.GatherDimensionNumbers((0,), (1,), (1,))
    return lax.gather(x, np.array(indices)[:, None], numbers, (8, 1))


def first(x):
    return lax.index_in_dim(x, 0, 0, keepdims=False)


TABLE = {
    "sin": ("f32[8@x,16@y]", lambda: lax.sin(A)),
    "add": ("f32[8@x,16@y]", lambda: A + R),
    "add of parts": ("f32[8@x,16@y]", lambda: X + Y),
    "add of a number": ("f32[8@x,16@y]", lambda: A + 1.0),
    "add of NumPy": ("f32[8@x,16@y]", lambda: lax.add(A, np.ones((8, 16), f32))),
    "comparison": ("bool[8@x,16@y]", lambda: lax.lt(A, R)),
    "conversion": ("i32[8@x,16@y]", lambda: lax.convert_element_type(A, np.int32)),
    "select_n": ("f32[8@x,16@y]", lambda: lax.select(lax.gt(A, A), A, R)),
    "clamp": ("f32[8@x,16@y]", lambda: lax.clamp(R, A, R)),
    "broadcast": ("f32[3,8@x,16@y]", lambda: lax.broadcast(A, (3,))),
    "broadcast_in_dim": ("f32[8,16@y]", lambda: lax.broadcast_in_dim(V, (8, 16), (1,))),
    "transpose": ("f32[16@y,8@x]", lambda: lax.transpose(A, (1, 0))),
    "rev": ("f32[8@x,16@y]", lambda: lax.rev(A, (0,))),
    "reshape merges": ("f32[128@(x,y)]", lambda: lax.reshape(A, (128,))),
    "reshape splits": ("f32[2@x,4,16@y]", lambda: lax.reshape(A, (2, 4, 16))),
    "reshape splits two": ("f32[2@x,4,4@y,4]", lambda: lax.reshape(A, (2, 4, 4, 4))),
    "squeeze": ("f32[8@x,16@y]", lambda: lax.squeeze(lax.expand_dims(A, (1,)), (1,))),
    "reduce_sum": ("f32[16@y]", lambda: lax.reduce_sum(A, (0,))),
    "reduce_max": ("f32[8@x]", lambda: lax.reduce_max(A, (1,))),
    "reduce": ("f32[8@x]", lambda: lax.reduce(X, f32(0), lambda a, b: a + b, (1,))),
    "argmax": ("i32[16@y]", lambda: lax.argmax(A, 0, np.int32)),
    "cumsum": ("f32[8@x,16]", lambda: lax.cumsum(X, 1)),
    "sort": ("f32[8@x,16]", lambda: lax.sort(X, dimension=1)),
    "top_k": ("f32[8@x,2]", lambda: lax.top_k(X, 2)[0]),
    "order_statistics": ("f32[8@x,3]", lambda: lax.order_statistics(X, RANKS[0])),
    "order_statistics, ranks of rows": ("f32[8@x,3]", lambda: lax.order_statistics(X, RANKS)),
    "order_statistics, divided ranks": (
        "f32[8@x,3]",
        lambda: lax.order_statistics(R, put((8, 3), "x", dtype=np.int32)),
    ),
    "dot_general": ("f32[8@x,32@y]", lambda: dot(X, C, 1, 0)),
    "dot_general, one divided sum": ("f32[8,32]", lambda: dot(Y, np.ones((16, 32), f32), 1, 0)),
    "dot_general of batches": ("f32[8@x,4,4]", lambda: dot(M, M, 2, 1, ((0,), (0,)))),
    "dot_general, out": ("f32[8@x,32]", lambda: dot(A, K, 1, 0, out_sharding=sharding("x"))),
    "concatenate": ("f32[8@x,32]", lambda: lax.concatenate([X, R], 1)),
    "pad": ("f32[8@x,18]", lambda: lax.pad(X, f32(0), [(0, 0, 0), (1, 1, 0)])),
    "slice": ("f32[4@x,16@y]", lambda: lax.slice(A, (0, 0), (4, 16))),
    "dynamic_slice": ("f32[8@x,4]", lambda: lax.dynamic_slice(X, (0, 0), (8, 4))),
    "dynamic_update_slice": ("f32[8@x,16@y]", lambda: lax.dynamic_update_slice(A, A, (0, 0))),
    "gather": ("f32[8@x,2]", lambda: columns(X, [0, 3])),
    "dynamic_update_slice of NumPy": (
        "f32[8@x,16]",
        lambda: lax.dynamic_update_slice(X, np.ones((8, 2), f32), (0, 3)),
    ),
    "convolution": (
        "f32[8@x,4,8]",
        lambda: lax.conv_general_dilated(
            put((8, 4, 8), "x"), np.ones((4, 4, 3), f32), (1,), "SAME"
        ),
    ),
    "reduce_window": (
        "f32[8@x,8]",
        lambda: lax.reduce_window(X, f32(0), lax.add, (1, 2), (1, 2), "VALID"),
    ),
    "fft": ("c64[8@x,16]", lambda: lax.fft(X, "fft", (16,))),
    "eigh": ("f32[8@x,4,4]", lambda: lax.linalg.eigh(M)[0]),
    "cholesky": ("f32[8@x,4,4]", lambda: lax.linalg.cholesky(M)),
    "lgamma": ("f32[8@x,16@y]", lambda: lax.lgamma(A)),
    "iota": (
        "i32[8@x]",
        lambda: lax.broadcasted_iota(np.int32, (8,), 0, out_sharding=sharding("x")),
    ),
    "full_like": ("f32[8@x,16@y]", lambda: lax.full_like(A, 1.0)),
    "scan": ("f32[8,16@y]", lambda: lax.scan(lambda c, x: (c + x, c), V, Y)[1]),
    "while_loop": ("f32[8@x,16@y]", lambda: lax.fori_loop(0, 3, lambda i, a: lax.sin(a), A)),
    "cond": ("f32[8@x,16@y]", lambda: lax.cond(True, lax.sin, lax.cos, A)),
    "vmap": ("f32[8@x,16@y]", lambda: vmap(lambda r: r + V)(X)),
    "vmap of a constant": ("f32[8@x,4]", lambda: jit(vmap(lambda r: lax.full((4,), f32(1))))(A)),
    "vmap along axis 1": ("f32[16@y,8@x]", lambda: vmap(lax.sin, in_axes=1)(A)),
    "vmap of a loop": (
        "f32[8@x,16]",
        lambda: vmap(lambda r: lax.while_loop(lambda c: first(c) < 3, lambda c: c + 1, r))(X),
    ),
}


def sharding(*spec):
    return NamedSharding(MESH, P(*spec))


@pytest.mark.parametrize("name", TABLE)
def test_types(name):
    text, program = TABLE[name]
    out = program()
    assert typeof(out).str_short() == text
    assert out.sharding._placement(out.ndim) is typeof(out).placement
    jaxpr = make_jaxpr(program)()
    assert jaxpr.out_avals[0].str_short() == text


REFUSED = {
    "different": (lambda: A + T, r"divided differently along one axis, by x and by y"),
    "sum in both": (lambda: dot(A, K, 1, 0), r"summed is divided along y in each .* out_sharding="),
    "one axis twice": (lambda: dot(X, X, 1, 1), r"two axes of the result .* along 'x'"),
    "cumulative": (
        lambda: lax.cumsum(A, 0),
        r"cumsum of f32\[8@x,16@y\]: axis 0 is divided along x",
    ),
    "sort": (lambda: lax.sort(A, dimension=1), r"axis 1 is divided along y, but it is sorted"),
    "order_statistics": (
        lambda: lax.order_statistics(A, RANKS[0]),
        r"axis 1 is divided along y, but its elements are selected by rank",
    ),
    "order_statistics, divided ranks": (
        lambda: lax.order_statistics(X, put((8,), "y", dtype=np.int32)),
        r"axis 0 is divided along y, but it has the ranks of each row",
    ),
    "order_statistics, rows and ranks": (
        lambda: lax.order_statistics(X, put((8, 3), "y", dtype=np.int32)),
        r"divided differently along one axis, by x and by y",
    ),
    "uneven slice": (lambda: lax.slice(A, (0, 0), (5, 16)), r"size 5, .* not divisible by 2"),
    "minor part": (lambda: lax.reshape(Y, (128,)), r"a minor one of which is divided along y"),
    "split": (lambda: lax.reshape(A, (8, 2, 8)), r"divided along y cannot be split into \[2, 8\]"),
    "index": (lambda: columns(Y, [0, 1]), r"axis 1 of the array is divided along y, and indexed"),
    "matrices": (
        lambda: lax.linalg.eigh(put((8, 4, 4), None, "y")),
        r"two axes of the result would be divided along 'y'",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    program, text = REFUSED[name]
    with pytest.raises(ShardingTypeError, match=text):
        program()


def test_meshes_do_not_mix():
    other = Mesh(DEVICES, ("a", "b"), (EXPLICIT, EXPLICIT))
    b = device_put(np.ones((8, 16), f32), NamedSharding(other, P("a")))
    with pytest.raises(ShardingTypeError, match="add: the operands are on different meshes"):
        A + b


def test_scan_over_a_divided_axis():
    with pytest.raises(ValueError, match=r"slices its arguments along axis 0.*Divide it along"):
        lax.scan(lambda c, x: (c, x), 0.0, A)


GRADIENTS = {
    "mul": lambda a, r: a * r,
    "max": lambda a, r: lax.max(a, r),
    "dot": lambda a, r: dot(a, r, 1, 1),
    "transpose": lambda a, r: lax.transpose(a, (1, 0)) * lax.transpose(r, (1, 0)),
    "reshape": lambda a, r: lax.reshape(a, (2, 4, 16)) * lax.reshape(r, (2, 4, 16)),
    "slice": lambda a, r: lax.slice(a + r, (0, 0), (4, 16)),
    "out_sharding": lambda a, r: dot(a, r, 1, 1, out_sharding=sharding(None, "x")),
    "reshard": lambda a, r: reshard(a, sharding("y")) * r,
}


@pytest.mark.parametrize("name", GRADIENTS)
@pytest.mark.parametrize("first", [A, X, R])
def test_gradients_have_the_types_of_their_primals(name, first):
    def total(a, r):
        out = lax.sin(GRADIENTS[name](a, r))
        return lax.reduce_sum(out, tuple(range(out.ndim)))

    jaxpr = make_jaxpr(grad(total, (0, 1)))(first, R)
    check_jaxpr(jaxpr)
    assert jaxpr.out_avals == [typeof(first), typeof(R)]
    plain = [np.asarray(first), np.asarray(R)]
    if name == "out_sharding":
        return
    if name == "reshard":
        plain_total = lambda a, r: lax.reduce_sum(lax.sin(a * r), (0, 1))
    else:
        plain_total = total
    for g, expected in zip(grad(total, (0, 1))(first, R), grad(plain_total, (0, 1))(*plain)):
        np.testing.assert_allclose(np.asarray(g), np.asarray(expected), rtol=1e-4, atol=1e-4)


def test_tangents_have_the_types_of_their_primals():
    out, tangent = jvp(lax.sin, (A,), (np.ones((8, 16), f32),))
    assert typeof(tangent) is typeof(out) is typeof(A)


def test_vmap_of_differently_divided_axes():
    with pytest.raises(ValueError, match=r"divided differently, as \[8@x\] and \[8@y\]"):
        vmap(lambda a, b: a * b)(X, T)


def test_operations_of_other_packages():
    """A primitive without any rule about axes."""
    twice_p = Primitive("twice")
    twice_p.rule(abstract)(lambda x: x)
    twice_p.rule(lower)(lambda ctx, x: hlo.add(x, x))
    out = twice_p.bind(A)
    assert typeof(out) is typeof(A)
    np.testing.assert_array_equal(np.asarray(out), 2 * np.asarray(A))


def test_rules_of_axes():
    (operation,) = axis_rules(lax.add_p, [typeof(R)] * 2, {}).operations
    factors = ((0,), (1,))
    assert operation.rule.operands == (factors, factors) and operation.rule.results == (factors,)
    params = {
        "dimension_numbers": (((1,), (0,)), ((), ())), "precision": None,
        "preferred_element_type": None, "out_sharding": None,
    }  # fmt: skip
    avals = [typeof(np.ones((8, 16), f32)), typeof(np.ones((16, 32), f32))]
    (operation,) = axis_rules(lax.dot_general_p, avals, params).operations
    (x, y), (out,) = operation.rule.operands, operation.rule.results
    assert x[0] == out[0] and y[1] == out[1]
    assert x[1] == y[0] == tuple(operation.rule.reduction)


# Types without arrays


def test_abstract_meshes():
    mesh = AbstractMesh((2, 4), ("x", "y"))
    a = Struct((8, 16), f32, sharding=NamedSharding(mesh, P("x", "y")))
    with use_abstract_mesh(mesh):
        spread = make_jaxpr(lambda x: lax.broadcast(x, (4,), out_sharding=P("y")))
        assert spread(np.ones(8, f32)).out_avals[0].str_short() == "f32[4@y,8]"
    out = eval_shape(lax.sin, a)
    assert out.sharding is NamedSharding(mesh, P("x", "y"))
    assert "f32[8@x,16@y] = sin a" in str(make_jaxpr(lax.sin)(a))


def test_sharding_of_types():
    assert typeof(A).sharding is NamedSharding(MESH.abstract_mesh, P("x", "y"))


def test_ahead_of_time():
    struct = Struct((8, 16), f32, sharding=sharding("x", "y"))
    compiled = jit(lambda a: lax.reduce_sum(a, (1,))).lower(struct).compile()
    out = compiled(A)
    assert typeof(out).str_short() == "f32[8@x]"
    np.testing.assert_allclose(np.asarray(out), np.asarray(A).sum(1))


def test_without_a_mesh_in_effect():
    with set_mesh(MESH):
        inside = A + 1
    outside = A + 1
    assert typeof(inside) is typeof(outside) and inside.sharding == outside.sharding


def test_functions_of_linear_algebra_have_their_rules():
    from primax_distributed import _explicit_rules

    for name in _explicit_rules._RANKS:
        primitive = getattr(lax.linalg, f"{name}_p", None)
        if primitive is not None:
            assert primitive.name == name and _explicit_rules.rule_of(primitive) is not None
    stranger = Primitive("cholesky")
    assert _explicit_rules.rule_of(stranger) is None
    assert _explicit_rules.rule_of(lax.add_p) is None


def test_texts_of_types_with_the_axes_of_their_mesh():
    aval = typeof(put((8, 4), "x"))
    assert aval.str_short(mesh_axis_types=True) == "f32[8@x,4]({Explicit: ('x', 'y')})"
    assert aval.str_short(False) == "float32[8@x,4]"
