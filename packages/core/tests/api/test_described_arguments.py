"""Arguments that only describe arrays: any object with ``shape`` and ``dtype``; unusual objects."""

from __future__ import annotations

import numpy as np
import pytest

import primax_core as px
from primax_core import lax

F = np.float32


class Described:
    """An object of another library with a shape and a dtype."""

    def __init__(self, shape=(3,), dtype=F, **attributes):
        self.shape, self.dtype = shape, dtype
        self.__dict__.update(attributes)


def double(x):
    return x * 2


STRUCT = px.ShapeDtypeStruct((3,), F)


def test_tracing_for_described_arguments():
    jitted = px.jit(double)
    assert px.eval_shape(double, Described()) == STRUCT
    assert px.eval_shape(lambda d: double(d["x"]), {"x": Described()}) == STRUCT
    assert jitted.eval_shape(Described()) == STRUCT
    assert jitted.lower(Described()).out_info == STRUCT
    np.testing.assert_array_equal(jitted.lower(Described()).compile()(np.ones(3, F)), [2, 2, 2])
    assert px.make_jaxpr(double)(Described()).in_avals[0].shape == (3,)
    (ct,) = px.linear_transpose(double, Described())(np.ones(3, F))
    np.testing.assert_array_equal(ct, [2, 2, 2])


def test_attributes_of_described_arguments():
    (aval,) = px.make_jaxpr(double)(Described([2, np.int64(3)], "int8", weak_type=True)).in_avals
    assert (aval.shape, aval.dtype, aval.weak_type) == ((2, 3), np.int8, True)
    (aval,) = px.make_jaxpr(double)(Described((), np.float64)).in_avals
    assert aval.dtype == np.float32


@pytest.mark.parametrize(
    "bad", [Described(dtype="S3"), Described(dtype=None), Described("ab"), Described(3)]
)
def test_descriptions_that_are_none(bad):
    with pytest.raises(TypeError, match="was passed to the function at path x"):
        px.eval_shape(double, bad)


def test_calls_need_arrays():
    for fun in (px.jit(double), px.grad(lambda x: lax.reduce_sum(x, (0,)))):
        with pytest.raises(TypeError, match="Described"):
            fun(Described())


def test_struct_of_strings_and_objects():
    for dtype in (np.dtype("S3"), np.dtype("U2"), object, bytes):
        struct = px.ShapeDtypeStruct((3,), dtype)
        assert struct.dtype == np.dtype(dtype)
        with pytest.raises(TypeError, match="only number and bool dtypes are supported"):
            px.eval_shape(double, struct)
    for dtype in ("S3", np.dtype("M8[s]"), {}, "no dtype"):
        with pytest.raises(TypeError):
            px.ShapeDtypeStruct((3,), dtype)


def test_struct_of_64_bits_without_them():
    """It describes an array of NumPy, for instance to restore one; tracers have 32 bits."""
    for dtype in ("float64", np.int64, complex, np.dtype("uint64")):
        struct = px.ShapeDtypeStruct((3,), dtype)
        assert struct.dtype == np.dtype(dtype) and struct.update(shape=(2,)).dtype == struct.dtype
        with px.enable_x64(False), pytest.warns(UserWarning, match="will be truncated to dtype"):
            assert px.eval_shape(double, struct).dtype.itemsize == struct.dtype.itemsize // 2
    with px.enable_x64(True):
        assert px.eval_shape(double, struct).dtype == np.uint64


@px.jit
def scaled(x, tree):
    return x * len(tree)


@px.jit
def added(x, tree):
    return x + tree["a"]


def test_unused_arguments_without_values():
    x, tree = np.ones(3, F), {"a": STRUCT, "b": px.ShapeDtypeStruct((1 << 20,), F)}
    for call in (scaled, px.jit(scaled), px.jit(lambda x, t: scaled(x, t))):
        np.testing.assert_array_equal(call(x, tree), [2, 2, 2])
    np.testing.assert_array_equal(px.jit(lambda x: scaled(x, tree))(x), [2, 2, 2])
    np.testing.assert_array_equal(px.vmap(lambda x: scaled(x, tree))(x), [2, 2, 2])
    np.testing.assert_array_equal(
        px.grad(lambda x: lax.reduce_sum(scaled(x, tree), (0,)))(x), [2, 2, 2]
    )


def test_used_arguments_without_values():
    with pytest.raises(TypeError, match=r"tree\['a'\] of added is ShapeDtypeStruct.*no values"):
        added(np.ones(3, F), {"a": STRUCT})
    with pytest.raises(TypeError, match="which has no values, but the function uses it"):
        px.jit(lambda x: added(x, {"a": STRUCT}))(np.ones(3, F))


def test_jitted_functions_have_the_attributes_of_the_function():
    def f(x):
        return x + 1

    f.mark, f.lower = "attribute", "hidden by the method"
    jitted = px.jit(f)
    assert jitted.mark == "attribute" and callable(jitted.lower)
    assert px.jit(jitted)(1.0) == 2.0
    jitted.mark = "changed"
    assert f.mark == "attribute"


class NoText:
    def __repr__(self):
        raise ZeroDivisionError


def test_arguments_whose_repr_raises():
    with pytest.raises(TypeError, match="passed to the function at path x"):
        px.jit(double)(NoText())
    with pytest.raises(TypeError, match="its repr raises ZeroDivisionError"):
        px.make_jaxpr(double)(NoText())
