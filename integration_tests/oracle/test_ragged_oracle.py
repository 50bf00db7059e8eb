"""Ragged and scaled products against the reference: values, dtypes, derivatives, errors."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest

jax = pytest.importorskip("jax")

from agreement import same, values  # noqa: E402

import primax_core as px  # noqa: E402
from primax_core.lax import ragged, scaled  # noqa: E402

I32 = np.int32
SIZES = np.array([2, 3], I32)
GROUPS = np.random.default_rng(1).integers(0, 4, (6, 2)).astype(I32)

# numbers, shape of lhs, shape of rhs, group sizes, whether the reference differentiates it
CASES = {
    "rows": ((((1,), (1,)), ((), ())), 0, (0,), (6, 3), (2, 3, 4), SIZES, True),
    "many rows": ((((1,), (1,)), ((), ())), 0, (0,), (300, 3), (2, 3, 4),
                  np.array([100, 170], I32), True),
    "sum": ((((0,), (0,)), ((), ())), 0, (), (6, 3), (6, 4), SIZES, False),
    "batch": ((((2,), (1,)), ((0,), (0,))), 0, (), (6, 5, 3), (6, 3, 4), SIZES, False),
    "second axis": ((((2,), (1,)), ((), ())), 1, (0,), (6, 5, 3), (2, 3, 4), SIZES, True),
    "prefix": ((((2,), (1,)), ((), ())), 1, (0,), (6, 5, 3), (2, 3, 4), GROUPS, True),
    "stack": ((((1,), (2,)), ((2,), (0,))), 0, (1,), (6, 5, 3), (3, 2, 5, 4), GROUPS[:3], True),
    "two sums": ((((1, 0), (0, 1)), ((), ())), 0, (), (6, 5, 3), (5, 6, 4), GROUPS[:5], False),
    "two kept": ((((0, 2), (3, 1)), ((), ())), 1, (2,), (3, 7, 4), (2, 4, 2, 3, 2), SIZES, True),
    "too long": ((((1,), (1,)), ((), ())), 0, (0,), (6, 3), (2, 3, 4),
                 np.array([4, 30], I32), True),
    "narrow": ((((1,), (1,)), ((), ())), 0, (0,), (6, 3), (2, 3, 4),
               np.array([4, 1], np.uint8), True),
    "empty": ((((1,), (1,)), ((), ())), 0, (0,), (0, 3), (2, 3, 4), np.array([0, 0], I32), True),
}  # fmt: skip


def sides(pairs, ragged_axis, group):
    ours = ragged.RaggedDotDimensionNumbers(pairs, [ragged_axis], list(group))
    theirs = jax.lax.RaggedDotDimensionNumbers(pairs, [ragged_axis], list(group))
    return (
        lambda x, y, s, **o: ragged.ragged_dot_general(x, y, s, ours, **o),
        lambda x, y, s, **o: jax.lax.ragged_dot_general(x, y, s, theirs, **o),
    )


@pytest.mark.parametrize("case", CASES)
def test_values_and_derivatives(case):
    pairs, axis, group, x_shape, y_shape, sizes, differentiated = CASES[case]
    ours, theirs = sides(pairs, axis, group)
    x, y = values(x_shape, np.float32, 1), values(y_shape, np.float32, 2)
    expected = theirs(x, y, sizes)
    same(ours(x, y, sizes), expected, rtol=1e-4)
    same(px.jit(ours)(x, y, sizes), expected, rtol=1e-4)
    tangents = (values(x_shape, np.float32, 3), values(y_shape, np.float32, 4))
    f, g = (lambda x, y: ours(x, y, sizes)), (lambda x, y: theirs(x, y, sizes))
    same(px.jvp(f, (x, y), tangents), jax.jvp(g, (x, y), tangents), rtol=1e-4)
    if differentiated:
        ct = values(expected.shape, np.float32, 5)
        same(px.vjp(f, x, y)[1](ct), jax.vjp(g, x, y)[1](ct), rtol=1e-4)


def test_batching():
    ours, theirs = sides(*CASES["rows"][:3])
    x, y = values((3, 6, 3), np.float32, 1), values((3, 2, 3, 4), np.float32, 2)
    sizes = np.array([[2, 3], [0, 6], [1, 1]], I32)
    same(px.vmap(ours)(x, y, sizes), jax.vmap(theirs)(x, y, sizes), rtol=1e-4)


DTYPES = (np.float32, ml_dtypes.bfloat16, np.float16, np.int32, np.complex64, np.bool_)


def outcome(call):
    try:
        out = call()
    except Exception as e:
        return type(e), str(e)[:60]
    return out.dtype, np.asarray(out).astype(complex).sum()


@pytest.mark.parametrize(("a", "b"), list(itertools.product(DTYPES, repeat=2)))
def test_dtypes(a, b):
    x, w = np.ones((6, 3), a), np.ones((2, 3, 4), b)
    for preferred in (None, np.float32, np.complex64):
        ours, theirs = (
            outcome(lambda f=f, p=preferred: f(x, w, SIZES, preferred_element_type=p))
            for f in (ragged.ragged_dot, jax.lax.ragged_dot)
        )
        assert ours == theirs


X, W = np.ones((6, 3), np.float32), np.ones((2, 3, 4), np.float32)
NUMBERS = (((1,), (1,)), ((), ()))

BAD = [
    lambda f, n: f(X, W, np.array([2, 3, 1], I32), n(NUMBERS, [0], [0])),
    lambda f, n: f(X, W, np.array([2.0, 3.0], np.float32), n(NUMBERS, [0], [0])),
    lambda f, n: f(X, W, SIZES[None], n(NUMBERS, [0], [0])),
    lambda f, n: f(X[:, :2], W, SIZES, n(NUMBERS, [0], [0])),
    lambda f, n: f(X, W, SIZES, n(NUMBERS, [0], [])),
    lambda f, n: f(X, W, SIZES, n(NUMBERS, [0, 1], [0])),
    lambda f, n: f(X, W, SIZES, n(NUMBERS, [], [0])),
    lambda f, n: f(X, W, SIZES, n(NUMBERS, [3], [0])),
    lambda f, n: f(X, W, SIZES, n(NUMBERS, [0], [1])),
    lambda f, n: f(X, W, SIZES, n(NUMBERS, [0], [4])),
    lambda f, n: f(X, X, SIZES, n((((0,), (0,)), ((), ())), [0], [1])),
]


@pytest.mark.parametrize("case", range(len(BAD)))
def test_errors(case):
    results = []
    for f, n in (
        (ragged.ragged_dot_general, ragged.RaggedDotDimensionNumbers),
        (jax.lax.ragged_dot_general, jax.lax.RaggedDotDimensionNumbers),
    ):
        with pytest.raises(TypeError) as info:
            BAD[case](f, n)
        results.append(str(info.value))
    assert results[0] == results[1]


F8, SCALE = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e8m0fnu
LHS, RHS = values((4, 64), np.float32, 1), values((64, 5), np.float32, 2)
LHS_SCALE, RHS_SCALE = np.full((4, 2), 0.5, SCALE), np.full((2, 5), 4, SCALE)

SCALED = {
    "both": (LHS.astype(F8), RHS.astype(F8), {"lhs_scale": LHS_SCALE, "rhs_scale": RHS_SCALE}),
    "none": (LHS.astype(F8), RHS.astype(F8), {}),
    "one": (LHS, RHS, {"rhs_scale": RHS_SCALE}),
    "wide scales": (LHS, RHS, {"lhs_scale": LHS_SCALE.astype(np.float32)}),
    "dtype": (LHS, RHS, {"lhs_scale": LHS_SCALE, "preferred_element_type": np.float16}),
    "bad rows": (LHS, RHS, {"lhs_scale": LHS_SCALE[:1]}),
    "bad blocks": (LHS, RHS, {"lhs_scale": np.ones((4, 3), SCALE)}),
    "no blocks": (LHS, RHS, {"lhs_scale": np.ones((4, 64), SCALE)}),
    "vectors": (LHS[0], RHS, {}),
}


@pytest.mark.parametrize("case", SCALED)
def test_scaled_products(case):
    x, y, options = SCALED[case]
    results = []
    for f in (scaled.scaled_dot, jax.lax.scaled_dot):
        try:
            results.append(f(x, y, **options))
        except Exception as e:
            results.append((type(e), str(e)))
    if isinstance(results[1], tuple):
        assert results[0] == results[1]
    else:
        same(results[0], results[1])
