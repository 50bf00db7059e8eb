"""Associative scans against the reference."""

import jax
import ml_dtypes
import numpy as np
import pytest
from agreement import check, same, values
from jax import lax as theirs

import primax_core as px
from primax_core import lax as ours
from primax_core.lax.associative import associative_scan

F = np.float32


def both(build, **kwargs):
    """Run ``associative_scan`` in both libraries with a function of the operations module."""
    return tuple(
        (lambda *xs, m=m, s=s: s(build(m), xs[0] if len(xs) == 1 else xs, **kwargs))
        for m, s in ((ours, associative_scan), (theirs, theirs.associative_scan))
    )


@pytest.mark.rotate(every=5, whole=True)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 8, 13])
def test_lengths(n):
    check(*both(lambda m: m.mul), values((n,), F), text=False, batch=n in (2, 5))


@pytest.mark.rotate(every=5, whole=True)
def test_axes_and_direction():
    x = values((3, 5), F)
    for axis in (0, 1, -1):
        ours_, theirs_ = both(lambda m: m.mul, axis=axis)
        check(ours_, theirs_, x, batch=False, text=False)
    check(*both(lambda m: m.mul, axis=1, reverse=True), x, text=False)
    same(
        associative_scan(ours.add, x, reverse=True, axis=-1),
        theirs.associative_scan(theirs.add, x, reverse=True, axis=1),
    )


def test_pytrees_and_noncommutative_functions():
    def affine(m):
        return lambda p, q: (m.mul(p[0], q[0]), m.add(m.mul(p[1], q[0]), q[1]))

    for reverse in (False, True):
        check(*both(affine, reverse=reverse), values((7, 2), F), values((7, 2), F, 1), text=False,
              batch=not reverse)  # fmt: skip

    def matmul(m):
        return m.batch_matmul

    check(*both(matmul), values((5, 2, 2), F), batch=False, text=False, rtol=1e-4)


@pytest.mark.rotate(every=5, whole=True)
def test_dtypes():
    for dtype in (ml_dtypes.bfloat16, np.int8, np.uint8, np.complex64):
        check(*both(lambda m: m.add), values((6,), dtype), batch=False, text=False)
    check(*both(lambda m: m.bitwise_or), values((6,), np.bool_), batch=False, text=False)


def test_results_are_strongly_typed():
    for n in (1, 2, 3):
        same(*[
            jit(lambda x, m=m, s=s, n=n: s(m.add, m.broadcast(x, (n,))))(1.0)
            for jit, m, s in (
                (px.jit, ours, associative_scan), (jax.jit, theirs, theirs.associative_scan)
            )
        ])  # fmt: skip


def test_errors():
    x = values((3,), F)
    for args in [(3, x), ("add", x)]:
        with pytest.raises(TypeError, match="fn argument should be callable"):
            associative_scan(*args)
    with pytest.raises(ValueError, match=r"same first dimension. \(saw: \[\(3,\), \(2,\)\]\)"):
        associative_scan(lambda p, q: p, (x, x[:2]))
    for axis in (1, -2):
        with pytest.raises(ValueError, match="out of bounds for array of dimension 1"):
            associative_scan(ours.add, x, axis=axis)
    with pytest.raises(ValueError, match="out of bounds for array of dimension 0"):
        associative_scan(ours.add, F(1))
    with pytest.raises(ValueError, match="structure"):
        associative_scan(lambda p, q: (p, q), x)
    with pytest.raises(ValueError, match="element by element"):
        associative_scan(lambda p, q: ours.reduce_sum(p, (0,)), x)
    with pytest.raises(TypeError, match="same dtypes"):
        associative_scan(lambda p, q: ours.gt(p, q), x)
    assert associative_scan(ours.add, {}) == {}
