"""Ragged and scaled products against loops over groups."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest

import primax_core as px
from primax_core import lax
from primax_core.lax import grouped
from primax_core.lax.ragged import RaggedDotDimensionNumbers, ragged_dot, ragged_dot_general
from primax_core.lax.scaled import scaled_dot

I32 = np.int32
SIZES = np.array([2, 3], I32)


def values(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def by_loop(x, w, sizes, first=0):
    """Product of each group of rows with its matrix, in NumPy."""
    out = np.zeros((x.shape[0], w.shape[-1]), np.float32)
    ends = np.cumsum(sizes.astype(np.int64))
    for g, end in enumerate(ends):
        if 0 <= g - first < w.shape[0]:
            start, stop = max(end - int(sizes[g]), 0), max(min(end, len(x)), 0)
            out[start:stop] = x[start:stop] @ w[g - first]
    return out


def numbers(pairs, ragged, group=()):
    return RaggedDotDimensionNumbers(pairs, (ragged,), group)


@pytest.mark.parametrize(
    ("rows", "sizes"),
    [
        (6, SIZES),
        (300, np.array([100, 0, 170], I32)),
        (300, np.array([300], I32)),
        (40, np.array([1] * 40, I32)),
        (6, np.array([-1, 3], I32)),
        (6, np.array([4, 30], I32)),
        (6, np.array([4, 1], np.uint8)),
        (0, np.array([0, 0], I32)),
    ],
)
def test_values(rows, sizes):
    x, w = values(rows, 3), values(len(sizes), 3, 4)
    expected = by_loop(x, w, sizes)
    np.testing.assert_allclose(ragged_dot(x, w, sizes), expected, 1e-5, 1e-5)
    np.testing.assert_allclose(px.jit(ragged_dot)(x, w, sizes), expected, 1e-5, 1e-5)


@pytest.mark.parametrize(("sizes", "first"), [((2, 1, 3, 2), 1), ((2, 1, 3, 2), 3), ((8,), 0)])
def test_group_offset(sizes, first):
    x, w, sizes = values(8, 3), values(2, 3, 4), np.array([*sizes, 0], I32)
    offset = np.array([first], I32)
    f = lambda w, offset: ragged_dot(x, w, sizes, group_offset=offset)
    np.testing.assert_allclose(px.jit(f)(w, offset), by_loop(x, w, sizes, first), 1e-5, 1e-5)
    ct = values(8, 4)
    (actual,) = px.vjp(lambda w: f(w, offset), w)[1](ct)
    ends = np.cumsum(sizes)
    for i in range(2):
        g = first + i
        part = slice(ends[g] - sizes[g], ends[g]) if g < len(sizes) else slice(0, 0)
        np.testing.assert_allclose(np.asarray(actual)[i], x[part].T @ ct[part], 1e-5, 1e-5)


GENERAL = {
    "rows": (numbers((((1,), (1,)), ((), ())), 0, (0,)), (6, 3), (2, 3, 4), (2,)),
    "many rows": (numbers((((1,), (1,)), ((), ())), 0, (0,)), (200, 3), (2, 3, 4), (2,)),
    "sum": (numbers((((0,), (0,)), ((), ())), 0), (6, 3), (6, 4), (2,)),
    "long sum": (numbers((((0,), (0,)), ((), ())), 0), (200, 3), (200, 4), (2,)),
    "batch": (numbers((((2,), (1,)), ((0,), (0,))), 0), (6, 5, 3), (6, 3, 4), (2,)),
    "second axis": (numbers((((2,), (1,)), ((), ())), 1, (0,)), (4, 6, 3), (2, 3, 4), (2,)),
    "prefix": (numbers((((2,), (1,)), ((), ())), 1, (0,)), (4, 6, 3), (2, 3, 4), (4, 2)),
    "stack": (numbers((((1,), (2,)), ((2,), (0,))), 0, (1,)), (6, 5, 3), (3, 2, 5, 4), (3, 2)),
    "two sums": (numbers((((1, 0), (0, 1)), ((), ())), 0), (6, 5, 3), (5, 6, 4), (5, 2)),
    "sum in a stack": (numbers((((2,), (1,)), ((1,), (0,))), 2), (3, 5, 6), (5, 6, 4), (5, 2)),
}  # fmt: skip


def dense(x, y, sizes, n):
    """The product with a mask for each group."""
    (xc, yc), (xb, yb) = n.dot_dimension_numbers
    (r,) = n.lhs_ragged_dimensions
    letters = "abcdefgh"
    xs = list(letters[: x.ndim])
    ys: list = [None] * y.ndim
    for i, j in (*zip(xc, yc), *zip(xb, yb)):
        ys[j] = xs[i]
    free = iter("rstuvw")
    for (g,) in [n.rhs_group_dimensions] if n.rhs_group_dimensions else []:
        ys[g] = "G"
    ys = [next(free) if c is None else c for c in ys]
    stack = [xs[i] for i in xb]
    free_axes = [c for i, c in enumerate(xs) if i not in (*xc, *xb)]
    more = [c for c in ys if c not in xs and c != "G"]
    if r in xb:
        return np.einsum(f"{''.join(xs)},{''.join(ys)}->{''.join(stack + free_axes + more)}", x, y)
    kind = xc if r in xc else [i for i in range(x.ndim) if i not in (*xc, *xb)]
    prefix = [xs[i] for i in (*xb, *kind[: list(kind).index(r)])]
    ends = np.cumsum(sizes, -1)
    at = np.arange(x.shape[r])
    mask = (at >= (ends - sizes)[..., None]) & (at < ends[..., None])
    spec = "".join(prefix if sizes.ndim > 1 else []) + "G" + xs[r]
    out = "".join([*(["G"] if r in xc else []), *stack, *free_axes, *more])
    return np.einsum(f"{''.join(xs)},{''.join(ys)},{spec}->{out}", x, y, mask.astype(x.dtype))


@pytest.mark.parametrize("case", GENERAL)
def test_general(case):
    n, x_shape, y_shape, s_shape = GENERAL[case]
    x, y = values(*x_shape), values(*y_shape)
    sizes = np.random.default_rng(3).integers(0, 3, s_shape).astype(I32)
    f = lambda x, y: ragged_dot_general(x, y, sizes, n)
    expected = dense(x, y, sizes, n)
    np.testing.assert_allclose(px.jit(f)(x, y), expected, 1e-4, 1e-4)
    # The function is bilinear, so derivatives follow from values.
    dx, dy, ct = values(*x_shape) + 1, values(*y_shape) - 1, values(*expected.shape)
    _, dot = px.jvp(f, (x, y), (dx, dy))
    expected_dot = dense(dx, y, sizes, n) + dense(x, dy, sizes, n)
    np.testing.assert_allclose(dot, expected_dot, 1e-4, 1e-4)
    cts = px.vjp(f, x, y)[1](ct)
    right = sum(np.vdot(np.asarray(c), d) for c, d in zip(cts, (dx, dy)))
    assert right == pytest.approx(np.vdot(ct, expected_dot), rel=1e-4)


@pytest.mark.parametrize("case", ["rows", "sum", "batch", "prefix", "stack"])
@pytest.mark.parametrize("mapped", list(itertools.product((True, False), repeat=3))[:-1])
def test_batches(case, mapped):
    n, x_shape, y_shape, s_shape = GENERAL[case]
    sizes = np.random.default_rng(3).integers(0, 3, s_shape).astype(I32)
    operands = [values(*x_shape), values(*y_shape), sizes]
    axes = tuple(1 if m else None for m in mapped)
    both = [np.stack([v, v[::-1]], 1) if m else v for v, m in zip(operands, mapped)]
    got = np.asarray(px.vmap(lambda *a: ragged_dot_general(*a, n), axes)(*both))
    for i in range(2):
        one = [np.take(v, i, 1) if m else v for v, m in zip(both, mapped)]
        np.testing.assert_allclose(got[i], dense(*one, n), 1e-4, 1e-4)


def test_both_formulations_agree():
    x, w = values(50, 3), values(4, 3, 2)
    sizes = np.array([20, 0, 17, 5], I32)
    plain = {"precision": None, "preferred_element_type": None}
    from primax_core.lax.ragged import _Axes

    axes = _Axes(2, 3, numbers((((1,), (1,)), ((), ())), 0, (0,)))
    limits = grouped.bounds(sizes, (), 4)
    tiles = grouped.by_tiles(x, w, limits, axes, plain)
    masks = grouped.by_masks(x, w, limits, axes, (), plain)
    np.testing.assert_allclose(tiles, masks, 1e-5, 1e-5)


@pytest.mark.parametrize(
    ("dtype", "preferred", "expected"),
    [
        (ml_dtypes.bfloat16, None, ml_dtypes.bfloat16),
        (ml_dtypes.bfloat16, np.float32, np.float32),
        (np.int32, None, np.int32),
        (np.complex64, None, np.complex64),
    ],
)
def test_dtypes(dtype, preferred, expected):
    x, w = np.ones((6, 3), dtype), np.ones((2, 3, 4), dtype)
    out = ragged_dot(x, w, SIZES, preferred_element_type=preferred)
    assert out.dtype == expected
    assert np.asarray(out).astype(complex).sum() == 60


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: ragged_dot(values(6, 3), values(2, 3, 4), np.array([2, 3, 1], I32)),
         "expected rhs group dimension size to be 3, got 2"),
        (lambda: ragged_dot(values(6, 3), values(2, 3, 4), np.array([2.0, 3.0])),
         "group_sizes.dtype is subtype of np.integer"),
        (lambda: ragged_dot(values(6, 3), values(2, 3, 4), SIZES[None]),
         r"expected group_sizes to have shape \(2,\), got \(1, 2\)"),
        (lambda: ragged_dot(values(6, 2), values(2, 3, 4), SIZES), "same shape, got"),
        (lambda: ragged_dot(values(6, 3), values(2, 3, 4), SIZES, group_offset=I32(1)),
         "group_offset of type int32"),
        (lambda: ragged_dot_general(values(6, 3), values(2, 3, 4), SIZES, 5), "takes its axes as"),
        (lambda: ragged_dot_general(values(6, 3), values(2, 3, 4), SIZES,
                                    numbers((((1,), (1,)), ((), ())), 0)), "exactly one rhs group"),
        (lambda: ragged_dot_general(values(6, 3), values(6, 4), SIZES,
                                    numbers((((0,), (0,)), ((), ())), 0, (1,))), "zero group dim"),
    ],
)  # fmt: skip
def test_refused(call, match):
    with pytest.raises(TypeError, match=match):
        call()


class TestScaledDot:
    X, Y = np.ones((2, 4), np.float32), np.ones((4, 3), np.float32)
    S, T = np.full((2, 2), 0.5, np.float32), np.full((1, 3), 2.0, np.float32)

    def test_values(self):
        out = scaled_dot(self.X, self.Y, lhs_scale=self.S, rhs_scale=self.T)
        assert (
            out.dtype == ml_dtypes.bfloat16
            and np.asarray(out).astype(float).tolist() == [[4.0] * 3] * 2
        )
        narrow = self.X.astype(ml_dtypes.float8_e4m3fn)
        out = scaled_dot(narrow, self.Y, preferred_element_type=np.float32)
        assert out.dtype == np.float32 and out.tolist() == [[4.0] * 3] * 2

    def test_derivatives_and_batches(self):
        f = lambda x, s: lax.reduce_sum(
            scaled_dot(x, self.Y, lhs_scale=s, preferred_element_type=np.float32), (0, 1)
        )
        dx, ds = px.grad(f, (0, 1))(self.X, self.S)
        assert dx.tolist() == [[1.5] * 4] * 2 and ds.tolist() == [[6.0] * 2] * 2
        assert px.vmap(f, (0, None))(np.stack([self.X, 2 * self.X]), self.S).tolist() == [
            12.0,
            24.0,
        ]

    @pytest.mark.parametrize(
        ("scale", "match"),
        [
            (np.ones((1, 2), np.float32), "LHS dim 0 of size 2 does not match scale dim size 1"),
            (np.ones((2, 3), np.float32), "must be divisible by its scale's dim size 3"),
            (np.ones((2, 4), np.float32), "must be at least 2"),
            (np.ones(2, np.float32), "same number of axes"),
        ],
    )
    def test_refused(self, scale, match):
        with pytest.raises(TypeError, match=match):
            scaled_dot(self.X, self.Y, lhs_scale=scale)
