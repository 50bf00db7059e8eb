"""Exported functions with symbolic shapes: serialization, calls, nested exports."""

from __future__ import annotations

import numpy as np
import pytest

import primax_core as pc
from primax_core import lax
from primax_interpreters import export


def total(x):
    return lax.reduce_sum(x, tuple(range(pc.typeof(x).ndim)))


def f(x, y):
    return lax.sin(x) * 2 + lax.reshape(y, (1, y.shape[0]))


@pytest.fixture(scope="module")
def exported() -> export.Exported:
    b, h = export.symbolic_shape("b, 2*h", constraints=["b >= 2"])
    args = pc.ShapeDtypeStruct((b, h), np.float32), pc.ShapeDtypeStruct((h,), np.float32)
    return export.export(pc.jit(f), platforms=("tpu", "cpu"))(*args)


def arguments(b: int, h: int) -> tuple[np.ndarray, np.ndarray]:
    return np.ones((b, h), np.float32), np.arange(h, dtype=np.float32)


@pytest.fixture(scope="module", params=["made", "read"])
def either(request, exported) -> export.Exported:
    return (
        exported if request.param == "made" else export.deserialize(exported.serialize(vjp_order=1))
    )


def test_fields(either) -> None:
    assert [str(a) for a in either.in_avals] == ["float32[b,2*h]", "float32[2*h]"]
    assert [str(a) for a in either.out_avals] == ["float32[b,2*h]"]
    assert either.uses_global_constants and either.module_kept_var_idx == (0, 1)
    assert export.is_symbolic_dim(either.in_avals[0].shape[0])
    assert export.symbolic_dim_bounds(either.in_avals[0].shape[0])[0] == 2


def test_calls(either) -> None:
    for b, h in ((2, 2), (3, 4)):
        x, y = arguments(b, h)
        for call in (either.call, pc.jit(either.call)):
            np.testing.assert_allclose(call(x, y), np.sin(x) * 2 + y, rtol=1e-6)


def test_derivatives(either) -> None:
    x, y = arguments(3, 4)
    g = pc.grad(lambda x: total(either.call(x, y)))
    np.testing.assert_allclose(g(x), 2 * np.cos(x), rtol=1e-6)
    back = either.vjp()
    dx, dy = back.call(x, y, np.ones((3, 4), np.float32))
    assert dx.shape == (3, 4) and np.asarray(dy).tolist() == [3.0] * 4


@pytest.mark.parametrize(
    ("shapes", "match"),
    [
        (((3, 4), (6,)), r"args\[1\]\.shape\[0\] is 6, but its specification '2\*h' gives 4"),
        (((3, 3), (3,)), "leaves a remainder of 1"),
        (((1, 4), (4,)), "constraint b >= 2"),
        (((2, 0), (0,)), "Expected value >= 1 for dimension variable 'h', found 0"),
        (((4,), (4,)), r"Rank mismatch for args\[0\]"),
    ],
)
def test_mismatched_shapes(either, shapes, match) -> None:
    args = [np.ones(s, np.float32) for s in shapes]
    for call in (either.call, pc.jit(either.call)):
        with pytest.raises(ValueError, match=match):
            call(*args)


def test_static_dimensions_remain_static() -> None:
    (n,) = export.symbolic_shape("n")
    e = export.export(pc.jit(lambda x: x * 2))(pc.ShapeDtypeStruct((n, 3), np.float32))
    assert e.call(np.ones((5, 3), np.float32)).shape == (5, 3)
    with pytest.raises(ValueError, match=r"args\[0\]\.shape\[1\] \(expected same constant\)"):
        e.call(np.ones((5, 4), np.float32))


def test_in_another_export(either) -> None:
    """With other symbolic sizes, and with static sizes."""
    c, k = export.symbolic_shape("c, 4*k", constraints=["c >= 3"])
    types = pc.ShapeDtypeStruct((c, k), np.float32), pc.ShapeDtypeStruct((k,), np.float32)
    outer = export.export(pc.jit(lambda x, y: either.call(x, y) * 3), platforms=("cpu", "tpu"))(
        *types
    )
    assert [str(a) for a in outer.out_avals] == ["float32[c,4*k]"]
    x, y = arguments(3, 8)
    again = export.deserialize(outer.serialize())
    for e in (outer, again):
        np.testing.assert_allclose(e.call(x, y), 3 * (np.sin(x) * 2 + y), rtol=1e-6)
    static = export.export(pc.jit(either.call))(x, y)
    np.testing.assert_allclose(static.call(x, y), np.sin(x) * 2 + y, rtol=1e-6)
    assert "?x" not in static.mlir_module()


def test_scopes_keep_their_constraints(exported) -> None:
    loaded = export.deserialize(exported.serialize())
    b, h = loaded.in_avals[0].shape
    assert b.scope is h.scope
    assert b >= 2
    assert (
        loaded.in_avals[0].shape[1] == loaded.in_avals[1].shape[0] == loaded.out_avals[0].shape[1]
    )


def test_arguments_of_two_scopes_are_refused() -> None:
    (a,), (b,) = export.symbolic_shape("a"), export.symbolic_shape("b", constraints=("b >= 3",))
    specs = [pc.ShapeDtypeStruct((d,), np.float32) for d in (a, b)]
    with pytest.raises(ValueError, match="Invalid mixing of symbolic scopes: dimension 'b'"):
        export.export(pc.jit(lambda x, y: (x, y)))(*specs)


def test_largest_elements_of_a_symbolic_number() -> None:
    scope = export.SymbolicScope(["k <= 6"])
    (k,) = export.symbolic_shape("k", scope=scope)

    def top(count, x):  # the shape of `count` is the number of elements to return
        return lax.top_k(x, count.shape[0])

    args = pc.ShapeDtypeStruct((k,), np.int8), pc.ShapeDtypeStruct((6,), np.float32)
    exported = export.export(pc.jit(top))(*args)
    assert [str(a) for a in exported.out_avals] == ["float32[k]", "int32[k]"]
    x = np.array([3, 1, 4, 1, 5, 9], np.float32)
    for n in (1, 3, 6):
        values, places = exported.call(np.zeros(n, np.int8), x)
        assert np.asarray(values).tolist() == sorted(x.tolist(), reverse=True)[:n]
        np.testing.assert_array_equal(x[np.asarray(places)], values)
