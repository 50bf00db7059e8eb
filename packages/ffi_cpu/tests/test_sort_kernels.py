"""Sorts with the native kernels: NumPy's stable order bit for bit, and results without them."""

from __future__ import annotations

from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from both_forms import FLOATS, REAL, both, dtype_of, equal_bits
from hypothesis import given, settings, strategies as st
from processes import run

from primax_core import enable_x64, grad, jit, lax, vmap
from primax_ffi_cpu import native_kernels

DTYPES = ["bool", *REAL, *FLOATS, "complex64", "complex128"]
SHAPES = [((33,), 0), ((3001,), 0), ((70_001,), 0), ((6, 300), 1), ((300, 7), 0), ((5, 40, 19), 1)]
KINDS = ["random", "few", "special", "sorted", "reversed", "coarse"]


@pytest.fixture(autouse=True)
def wide_dtypes():
    with enable_x64(True):
        yield


def elements(shape: tuple[int, ...], dtype: np.dtype, kind: str, axis: int = 0) -> np.ndarray:
    """Data of a kind; ``special`` has zeros, infinities and NaNs of both signs, with payloads."""
    rng = np.random.default_rng(len(kind) + sum(shape))
    if kind in ("sorted", "reversed"):
        x = elements(shape, dtype, "random")
        x = np.take_along_axis(x, order_of(x, axis), axis)
        return np.ascontiguousarray(x if kind == "sorted" else np.flip(x, axis))
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind == "c":
        part = np.dtype(f"f{dtype.itemsize // 2}")
        return elements((*shape, 2), part, kind).view(dtype).reshape(shape)
    if dtype.kind in "iu":
        x = rng.integers(0, 256, (*shape, dtype.itemsize), np.uint8).view(dtype).reshape(shape)
        # Equal upper and lower bits defeat sorts by either.
        few = {"few": x % np.asarray(5, dtype), "coarse": x & np.asarray(0x77 & 0x7F, dtype)}
        return few.get(kind, x)
    x = rng.normal(size=shape).astype(dtype)
    if kind == "few":
        return (x * 2).round().astype(dtype)
    if kind == "coarse":
        return (x * 50).round().astype(dtype)
    if kind == "special":
        bits = np.dtype(f"u{dtype.itemsize}")
        quiet = np.asarray(np.nan, dtype).view(bits)
        payloads = (quiet + np.arange(3, dtype=bits)).view(dtype)
        values = np.asarray([0.0, -0.0, np.inf, -np.inf, 1, -1, 2], dtype)
        return rng.choice(np.concatenate([values, payloads, -payloads]), shape)
    return x


def order_of(x: np.ndarray, axis: int) -> np.ndarray:
    """The stable order: zeros are equal, NaN is last."""
    if x.dtype.kind == "c":
        return np.lexsort((x.imag, x.real), axis)
    return np.argsort(x.astype("f4") if x.dtype.itemsize == 2 and x.dtype.kind in "fV" else x,
                      axis, kind="stable")  # fmt: skip


def same(result: Any, expected: np.ndarray) -> None:
    result = np.asarray(result)
    assert result.dtype == expected.dtype and result.shape == expected.shape
    assert result.tobytes() == np.ascontiguousarray(expected).tobytes()


@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.parametrize("name", DTYPES)
def test_sorts_are_stable(name, shape, axis):
    dtype = dtype_of(name)

    @jit
    def sorts(x):
        indices = lax.broadcasted_iota(np.int32, shape, axis)
        return (
            lax.sort(x, axis),
            *lax.sort((x, indices), axis),
            *lax.sort((indices % 3, x, 2 * indices), axis, num_keys=2),
        )

    lowered = sorts.lower(np.zeros(shape, dtype)).as_text()
    assert lowered.count("custom_call @primax_cpu_sort") == 3
    for kind in KINDS:
        x = elements(shape, dtype, kind, axis)
        order = order_of(x, axis)
        expected = np.take_along_axis(x, order, axis)
        values, other_values, positions, remainders, by_remainder, doubled = sorts(x)
        same(values, expected)
        same(other_values, expected)
        same(positions, order.astype(np.int32))
        # Sort by x, then by the remainder of positions.
        again = np.argsort(order % 3, axis, kind="stable")
        both_keys = np.take_along_axis(order, again, axis)
        same(remainders, (both_keys % 3).astype(np.int32))
        same(by_remainder, np.take_along_axis(x, both_keys, axis))
        same(doubled, (2 * both_keys).astype(np.int32))


@pytest.mark.parametrize("name", ["float32", "int8", "complex64"])
@pytest.mark.parametrize(
    ("shape", "axis"), [((0,), 0), ((3, 0), 1), ((0, 3), 1), ((1,), 0), ((4, 1), 1)]
)
def test_small_shapes(name, shape, axis):
    x = elements(shape, dtype_of(name), "random")
    order = order_of(x, axis)
    values, positions = jit(
        lambda x: lax.sort((x, lax.broadcasted_iota(np.int32, shape, axis)), axis)
    )(x)
    same(values, np.take_along_axis(x, order, axis))
    same(positions, order.astype(np.int32))


@pytest.mark.parametrize("name", ["float32", "int64", "bfloat16"])
@pytest.mark.parametrize(("shape", "axis"), [((2000,), 0), ((9, 70), 1), ((70, 9), 0)])
def test_results_without_the_kernels_are_equal(name, shape, axis):
    x = elements(shape, dtype_of(name), "special")

    def sorts(x):
        return lax.sort(x, axis), *lax.sort(
            (x, lax.rev(x, (0,)), lax.gt(x, lax.full_like(x, 0))), axis, num_keys=2
        )

    for native, plain in zip(*both(sorts, x), strict=True):
        equal_bits(native, plain)  # XLA's conversions of bfloat16 may change the bits of NaN


def test_unstable_sorts_order_the_keys():
    x = elements((5000,), np.dtype("int32"), "few")
    values, order = lax.sort((x, np.arange(5000)), is_stable=False)
    same(values, np.sort(x))
    same(x[np.asarray(order)], np.sort(x))


def test_long_lines_with_few_exponents_are_split_twice():
    x = elements((600_000,), np.dtype("float32"), "random")
    x[::3] = 1 + np.abs(x[::3]) * 1e-4
    same(jit(lax.sort)(x), np.sort(x))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["uint8", "int16", "uint32", "float32", "bfloat16", "int64"])
def test_payloads_of_32_bits_move_with_their_keys(name, kind):
    sorts = jit(lambda x, y: lax.sort((x, y), num_keys=1))
    rng = np.random.default_rng(0)
    for shape in ((70,), (20, 300), (150_000,)):
        x = elements(shape, dtype_of(name), kind, len(shape) - 1)
        order = order_of(x, -1)
        for y in (
            rng.normal(size=shape).astype(np.float32),
            x.size - np.arange(x.size, dtype="i4"),
        ):
            y = y.reshape(shape)
            values, payload = sorts(x, y)
            same(values, np.take_along_axis(x, order, -1))
            same(payload, np.take_along_axis(y, order, -1))


@pytest.mark.parametrize("name", ["float32", "float64", "int32"])
def test_long_lines_are_sorted_by_several_threads(name):
    # XLA's threads, also where the machine has one: this runs in a process of its own.
    text = run(
        f"""
        import numpy as np
        import primax_ffi_cpu
        from primax_core import enable_x64, jit, lax

        rng = np.random.default_rng(0)
        with enable_x64(True):
            sorts = jit(lambda x: (lax.sort(x), *lax.sort((x, lax.iota(np.int32, x.size)))))
            for x in (rng.normal(size=600_001) * 1e6, rng.integers(0, 9, 300_000)):
                x = x.astype({name!r})
                order = np.argsort(x, kind="stable")
                for result, expected in zip(sorts(x), (x[order], x[order], order)):
                    assert (np.asarray(result) == expected).all()
        """,
        NPROC="4", PJRT_NPROC="4",
    )  # fmt: skip
    assert text == ""


@pytest.mark.parametrize("low", [1, 5, 300])
def test_numbers_that_differ_in_few_lower_bits(low):
    rng = np.random.default_rng(low)
    n = 40_000
    x = (rng.integers(0, 6, n) << 60) + rng.integers(0, low + 1, n)
    values, order = jit(lambda x: lax.sort((x, lax.iota(np.int32, n))))(x)
    expected = np.argsort(x, kind="stable")
    same(values, x[expected])
    same(order, expected.astype(np.int32))
    narrow = ((x >> 31) + x).astype(np.int32)
    same(jit(lax.sort)(narrow), np.sort(narrow))


def test_denormal_numbers_are_ordered_by_value():
    x = np.float32([3e-40, 1e-40, -1e-40, 0, -2e-40, 2e-40])
    same(lax.sort(x), np.sort(x))


def test_positions_are_not_an_operand():
    x = np.zeros((50, 60), np.float32)

    def operands(fun):
        line = next(s for s in jit(fun).lower(x).as_text().splitlines() if "@primax_cpu_sort" in s)
        return line.split("(", 1)[1].split(")", 1)[0].count("%")

    def argsort(x, axis, dtype=np.int32):
        return lax.sort((x, lax.broadcasted_iota(dtype, x.shape, axis)), x.ndim - 1)

    assert operands(lambda x: argsort(x, 1)) == 1
    assert operands(vmap(lambda x: argsort(x, 0))) == 1
    assert operands(lambda x: argsort(x, 0)) == 2  # positions along another axis
    assert operands(lambda x: argsort(x, 1, np.int16)) == 2
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 60)).astype(np.float32)
    for axis in (0, 1):
        for result, expected in zip(*both(partial(argsort, axis=axis), x), strict=True):
            same(result, np.asarray(expected))


def test_derivatives_and_vmap():
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(2, 12, 80)).astype(np.float32)

    def gradient(x):
        return grad(lambda x: lax.reduce_sum(lax.mul(lax.sort(x), w[0]), (0,)))(x)

    order = np.argsort(x, -1)
    expected = np.empty_like(x)
    np.put_along_axis(expected, order, np.broadcast_to(w[0], x.shape), -1)
    same(jit(gradient)(x[0]), expected[0])
    for result in both(vmap(gradient), x):
        same(result, expected)
    for result in both(vmap(gradient, in_axes=1, out_axes=1), np.ascontiguousarray(x.T)):
        same(result, expected.T)


LENGTHS = st.sampled_from([0, 1, 2, 7, 40, 150, 600])


@settings(max_examples=60)
@given(data=st.data(), n=LENGTHS, name=st.sampled_from(["float32", "int16", "float64", "uint8"]))
def test_any_bits(data, n, name):
    dtype = np.dtype(name)
    size = n * dtype.itemsize
    seed = data.draw(st.binary(min_size=min(size, 1), max_size=min(size, 64)))
    x = np.resize(np.frombuffer(seed, np.uint8), size).view(dtype)
    order = order_of(x, 0)
    values, positions = jit(lambda x: lax.sort((x, lax.iota(np.int32, n))))(x)
    same(values, x[order])
    same(positions, order.astype(np.int32))
    same(jit(lax.sort)(x), x[order])


def test_dtypes_without_kernels_are_left_to_the_core():
    for dtype in (ml_dtypes.float8_e5m2, ml_dtypes.int4):
        x = np.arange(7).astype(dtype)[::-1]
        assert "primax_cpu_sort" not in jit(lax.sort).lower(x).as_text()
        same(jit(lax.sort)(x), x[::-1])
    with native_kernels(False):
        assert "primax_cpu" not in jit(lax.sort).lower(np.zeros(2000, np.float32)).as_text()


@pytest.mark.parametrize(
    "shape, axis", [((40,), 0), ((300,), 0), ((70_001,), 0), ((6, 300), 1), ((300, 7), 0)]
)
@pytest.mark.parametrize("name", ["float32", "int8", "float64", "complex64"])
def test_results_that_nobody_reads(name, shape, axis):
    def sorts(x):
        positions = lax.broadcasted_iota(np.int32, shape, axis)
        payload = positions * 7 % 1024
        return [
            *lax.sort((x, positions), axis),
            *lax.sort((x, payload), axis),
            *lax.sort((x, positions, payload), axis),
            *lax.sort((payload, x, positions), axis, num_keys=2),
        ]

    results = jit(lambda x: sorts(x))
    for kind in ("random", "special"):
        x = elements(shape, dtype_of(name), kind)
        for i, expected in enumerate(results(x)):
            same(jit(lambda x, i=i: sorts(x)[i])(x), np.asarray(expected))
