"""``no_collectives``: operations that exchange values along named axes are refused."""

import numpy as np
import pytest

import primax_core as px
import primax_numpy as pnp
from primax_core import lax
from primax_distributed import (
    AxisType,
    ForbiddenCollectiveError,
    P,
    make_mesh,
    no_collectives,
    reshard,
    set_mesh,
    shard_map,
)


@pytest.fixture
def operands():
    mesh = make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
    with set_mesh(mesh):
        a = reshard(pnp.arange(64.0).reshape(8, 8), P("x", "y"))
        b = reshard(pnp.ones((8, 8)), P("y", None))
        yield a, b


def _psum(a, b):
    return shard_map(lambda u: lax.psum(u, "x"), in_specs=P("x", "y"), out_specs=P(None, "y"))(a)


# For each function, the axes along which it exchanges values.
CASES = {
    "add": (lambda a, b: a + a, set()),
    "transpose": (lambda a, b: a.T, set()),
    "product": (lambda a, b: pnp.dot(a, b, out_sharding=P("x", None)), {"y"}),
    "unreduced product": (
        lambda a, b: pnp.dot(a, b, out_sharding=P("x", None, unreduced={"y"})),
        set(),
    ),
    "gather": (lambda a, b: reshard(a, P("x", None)), {"y"}),
    "gather all": (lambda a, b: reshard(a, P(None, None)), {"x", "y"}),
    "divide": (lambda a, b: reshard(b, P("y", "x")), set()),
    "sum": (lambda a, b: a.sum(), {"x", "y"}),
    "sum of columns": (lambda a, b: a.sum(0), {"x"}),
    "max of rows": (lambda a, b: a.max(1), {"y"}),
    "psum": (_psum, {"x"}),
    "inside of jit": (lambda a, b: px.jit(lambda v: v.sum(0) * 2)(a), {"x"}),
    "unused operand": (lambda a, b: px.jit(lambda a, b: b * 2)(a, b), set()),
}


@pytest.mark.parametrize("axis", ["x", "y"])
@pytest.mark.parametrize("name", CASES)
def test_operations(operands, name, axis):
    fun, exchanged = CASES[name]
    expected = np.asarray(reshard(px.jit(fun)(*operands), P())) if name != "psum" else None
    with no_collectives({axis}):
        if axis in exchanged:
            with pytest.raises(ForbiddenCollectiveError, match=f"axis '{axis}'.*no_collectives"):
                px.jit(fun)(*operands)
            return
        out = px.jit(fun)(*operands)
    if expected is not None:
        np.testing.assert_array_equal(reshard(out, P()), expected)


def test_context_ends_and_nests(operands):
    a, _ = operands
    total = px.jit(lambda a: a.sum())
    with no_collectives({"x", "y"}):
        with pytest.raises(ForbiddenCollectiveError):
            total(a)
        with no_collectives(set()):
            assert total(a) == 2016
        with pytest.raises(ForbiddenCollectiveError):
            total(a)
    assert total(a) == 2016


def test_positions_along_the_axis_are_permitted(operands):
    with no_collectives({"x"}):
        out = shard_map(lambda: lax.axis_index("x")[None], in_specs=(), out_specs=P("x"))()
    np.testing.assert_array_equal(out, range(4))


@pytest.mark.parametrize("axes", ["x", ("x", "y"), ["x"], None, 3])
def test_axes_must_be_a_set(axes):
    with pytest.raises(TypeError, match="no_collectives takes a set of names of mesh axes"):
        no_collectives(axes)
