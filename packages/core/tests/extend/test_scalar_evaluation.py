"""Evaluation of scalar jaxprs with NumPy, against compiled functions."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import primax_core as px
from primax_core import lax
from primax_core.extend import (
    Primitive,
    ShapedArray,
    abstract,
    dtypes,
    evaluate_scalars,
    expand,
    stage,
)
from primax_core.extend.runtime import guarded_compilation

INTEGERS = [
    np.dtype(t) for t in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
]
FLOATS = [np.dtype(t) for t in (dtypes.bfloat16, "float16", "float32", "float64")]
BOOL = np.dtype(bool)


@pytest.fixture(autouse=True)
def wide_types():
    with px.enable_x64(True):
        yield


def numbers(dtype, seed=0, count=24):
    """Values of a type: edges, and random ones of all magnitudes."""
    rng = np.random.default_rng(seed)
    if dtype == BOOL:
        return np.array([False, True])
    if dtype in INTEGERS:
        limits = np.iinfo(dtype)
        edges = [0, 1, 2, 3, 7, 8, 31, 63, limits.max, limits.max - 1, limits.min, limits.min + 1]
        if limits.min:
            edges += [-1, -2, -3, -7]
        drawn = rng.integers(limits.min, limits.max, count, dtype, endpoint=True)
        return np.concatenate(
            [np.array(edges, dtype), drawn, drawn[: count // 2] >> (_bits(dtype) - 5)]
        )
    limits = dtypes.finfo(dtype)
    edges = [
        0.0,
        -0.0,
        0.5,
        -0.5,
        1,
        -1,
        1.5,
        2.5,
        -2.5,
        3,
        np.inf,
        -np.inf,
        np.nan,
        127.9,
        128,
        -129,
        255.5,
        256,
        2.0**31,
        -(2.0**31),
        2.0**32,
        2.0**63,
        -(2.0**63),
        2.0**64,
        1e30,
    ]
    drawn = rng.normal(size=count) * 10.0 ** rng.integers(-3, 5, count)
    small = [float(limits.max), float(limits.tiny), -float(limits.tiny) / 2, float(limits.tiny) / 4]
    with np.errstate(all="ignore"):
        return np.concatenate([np.array(edges + small).astype(dtype), drawn.astype(dtype)])


def _bits(dtype):
    return 8 * dtype.itemsize


def same(actual, expected):
    expected = np.asarray(expected)
    assert actual.dtype == expected.dtype
    view = f"u{expected.dtype.itemsize}"
    if expected.dtype.kind not in "biu":
        if np.isnan(actual) and np.isnan(expected):
            return True
    return np.asarray(actual).view(view)[()] == expected.view(view)[()]


def compare(prim, *columns, **params):
    """All rows of operands: a compiled function of each scalar, against ``evaluate_scalars``."""
    avals = [ShapedArray((), c.dtype) for c in columns]
    jaxpr = stage(lambda *xs: [prim.bind(*xs, **params)], avals)
    # One compiled loop over the rows, each of which is computed as scalars.
    compiled = px.jit(lambda *cs: lax.map(lambda xs: prim.bind(*xs, **params), tuple(cs)))
    expected = np.asarray(compiled(*columns))
    wrong = []
    for *xs, e in zip(*columns, expected):
        (actual,) = evaluate_scalars(jaxpr, xs)
        if not same(actual, e):
            wrong.append((xs, actual, e))
    assert not wrong, wrong[:8]


def pairs(dtype):
    x = numbers(dtype)
    i, j = np.meshgrid(np.arange(len(x)), np.arange(len(x)))
    return x[i.ravel()], x[j.ravel()]


NUMBERS = INTEGERS + FLOATS
name = lambda value: getattr(value, "name", str(value))


@pytest.mark.parametrize("dtype", NUMBERS, ids=name)
@pytest.mark.parametrize(
    "prim",
    [lax.add_p, lax.sub_p, lax.mul_p, lax.div_p, lax.rem_p, lax.max_p, lax.min_p, lax.eq_p,
     lax.ne_p, lax.lt_p, lax.le_p, lax.gt_p, lax.ge_p],
    ids=operator.attrgetter("name"),
)  # fmt: skip
def test_arithmetic_and_comparisons(prim, dtype):
    compare(prim, *pairs(dtype))


@pytest.mark.parametrize("dtype", [*INTEGERS, BOOL], ids=name)
def test_bits(dtype):
    for prim in (lax.and_p, lax.or_p, lax.xor_p):
        compare(prim, *pairs(dtype))
    compare(lax.not_p, numbers(dtype))
    if dtype == BOOL:
        for prim in (lax.eq_p, lax.ne_p, lax.max_p, lax.min_p, lax.lt_p):
            compare(prim, *pairs(dtype))
        return
    for prim in (lax.shift_left_p, lax.shift_right_arithmetic_p, lax.shift_right_logical_p):
        compare(prim, *pairs(dtype))
    for prim in (lax.population_count_p, lax.clz_p):
        compare(prim, numbers(dtype))


@pytest.mark.parametrize("dtype", NUMBERS, ids=name)
def test_functions_of_one_number(dtype):
    x = numbers(dtype, 1, 100)
    for prim in (lax.neg_p, lax.sign_p, lax.square_p):
        compare(prim, x)
    if dtype.kind != "u":
        compare(lax.abs_p, x)
    for y in (0, 1, 2, 3, 4, 7):
        compare(lax.integer_pow_p, x, y=y)
    compare(lax.clamp_p, *[numbers(dtype, k) for k in range(3)])
    if dtype in FLOATS:
        for prim in (lax.floor_p, lax.ceil_p, lax.is_finite_p, lax.sqrt_p):
            compare(prim, x, **({"accuracy": None} if prim is lax.sqrt_p else {}))
        for method in lax.RoundingMethod:
            compare(lax.round_p, x, rounding_method=method)
        for y in (-1, -2):
            compare(lax.integer_pow_p, x, y=y)


@pytest.mark.parametrize("new", [*NUMBERS, BOOL], ids=name)
@pytest.mark.parametrize("old", [*NUMBERS, BOOL], ids=name)
def test_casts(old, new):
    x = numbers(old, 2, 100)
    if old == dtypes.bfloat16 and new == BOOL:  # versions of XLA differ in subnormal numbers
        x = np.array([v for v in x if v == 0 or not abs(v) < dtypes.finfo(old).tiny])
    if old != new:
        compare(lax.convert_element_type_p, x, new_dtype=new, weak_type=False, sharding=None)


# Jaxprs


def block_index(i, j, n):
    """Operators of Python, a nested call, and branches."""
    swizzled = px.jit(lambda i, j: (i // 3 * 3 + j % 3, i % 3))(i, j)
    first = lax.cond(i > j, lambda: swizzled[0], lambda: -swizzled[1])
    second = lax.switch(i, [lambda: j, lambda: n, lambda: j * n])
    return first, second, lax.select(n > 2, i, j), lax.max(n, i - j), (i & 3) ^ (j << 2)


@pytest.mark.parametrize("values", [(0, 0, 0), (5, 2, 7), (-7, 3, 2), (2**31 - 1, 4, -9)])
def test_index_maps(values):
    values = [np.int32(v) for v in values]
    with np.errstate(all="ignore"):
        jaxpr = px.make_jaxpr(block_index)(*values)
    expected = px.jit(block_index)(*values)
    actual = evaluate_scalars(jaxpr, values)
    assert [type(x) for x in actual] == [np.int32] * 5
    assert actual == [int(x) for x in expected]


def test_values_of_every_kind_are_accepted():
    jaxpr = px.make_jaxpr(lambda i, x: (i + 1, x * 2.0))(np.int32(0), np.float32(0))
    for values in ((3, 1.5), (np.int64(3), np.float64(1.5)), (np.array(3), px.device_put(1.5))):
        out = evaluate_scalars(jaxpr, values)
        assert out == [4, 3.0] and [x.dtype.name for x in out] == ["int32", "float32"]


def test_constants_and_custom_derivatives():
    table = np.array(3, np.int32)
    f = px.custom_jvp(lambda i: i * table)
    f.defjvp(lambda p, t: (f(*p), t[0]))
    jaxpr = px.make_jaxpr(lambda i: f(i) + table)(np.int32(0))
    assert evaluate_scalars(jaxpr, [2]) == [9]


def test_nothing_is_compiled():
    jaxpr = px.make_jaxpr(block_index)(*[np.int32(3)] * 3)

    def refuse(client):
        raise AssertionError("compiled")

    with guarded_compilation(refuse):
        assert evaluate_scalars(jaxpr, [1, 2, 3])[0] == -1


def test_primitives_with_an_expansion():
    thrice_p = Primitive("thrice")
    thrice_p.rule(abstract)(lambda x: x)
    thrice_p.rule(expand)(lambda x: lax.add(lax.add(x, x), x))
    jaxpr = stage(lambda x: [thrice_p.bind(x)], [ShapedArray((), np.dtype("int32"))])
    assert evaluate_scalars(jaxpr, [5]) == [15]


class TestRefused:
    def jaxpr(self, fun, *args):
        return px.make_jaxpr(fun)(*args)

    def test_other_primitives(self):
        with pytest.raises(NotImplementedError, match="does not support the primitive sin: eval"):
            evaluate_scalars(self.jaxpr(lax.sin, 1.0), [1.0])
        looped = self.jaxpr(lambda i: lax.while_loop(lambda c: c < 9, lambda c: c + 1, i), 1)
        with pytest.raises(NotImplementedError, match="the primitive while"):
            evaluate_scalars(looped, [1])

    def test_arrays(self):
        vector = np.zeros(3, np.float32)
        with pytest.raises(TypeError, match=r"argument 0 of the jaxpr has type float32\[3\]"):
            evaluate_scalars(self.jaxpr(lambda x: x, vector), [vector])
        with pytest.raises(TypeError, match="value 0 has shape"):
            evaluate_scalars(self.jaxpr(lambda x: x, 1.0), [vector])
        inside = self.jaxpr(lambda x: lax.reduce_sum(lax.broadcast(x, (3,)), (0,)), 1.0)
        with pytest.raises(TypeError, match="result of broadcast_in_dim has type"):
            evaluate_scalars(inside, [1.0])
        with pytest.raises(TypeError, match="complex64"):
            evaluate_scalars(self.jaxpr(lambda x: x, np.complex64(1)), [1])

    def test_wrong_arguments(self):
        with pytest.raises(ValueError, match="takes 1 arguments, got 2"):
            evaluate_scalars(self.jaxpr(lambda x: x, 1), [1, 2])
        with pytest.raises(TypeError, match="takes a Jaxpr"):
            evaluate_scalars(lambda x: x, [1])
        with pytest.raises(ValueError, match="value 0, 300, is out of range of int8"):
            evaluate_scalars(self.jaxpr(lambda x: x, np.int8(1)), [300])
        with pytest.raises(TypeError, match=r"value 0, 1.5, is given for an argument of type int8"):
            evaluate_scalars(self.jaxpr(lambda x: x, np.int8(1)), [1.5])

    def test_tracers(self):
        jaxpr = self.jaxpr(lambda x: x + 1, 1)
        with pytest.raises(TypeError, match="value 0 is a tracer"):
            px.jit(lambda x: evaluate_scalars(jaxpr, [x]))(1)
