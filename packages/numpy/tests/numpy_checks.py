"""Checks of functions of arrays: derivatives in float64, batches, compilation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from primax_core import Array, enable_x64, jit, jvp, vjp, vmap

Function = Callable[..., Array]


def check_derivatives(fun: Function, *args: Any, step: float = 1e-6, rtol: float = 1e-6) -> None:
    """Derivatives of ``fun`` at float64 arrays against central differences, in both modes."""
    rng = np.random.default_rng(0)
    with enable_x64(True):
        points = [np.asarray(a, np.float64) for a in args]
        tangents = [rng.standard_normal(a.shape) for a in points]
        out, tangent = jvp(fun, tuple(points), tuple(tangents))
        after = fun(*[a + step * t for a, t in zip(points, tangents, strict=True)])
        before = fun(*[a - step * t for a, t in zip(points, tangents, strict=True)])
        difference = (np.asarray(after) - np.asarray(before)) / (2 * step)
        np.testing.assert_allclose(np.asarray(tangent), difference, rtol, rtol)
        _, pullback = vjp(fun, *points)
        weights = rng.standard_normal(np.shape(out))
        cotangents = pullback(weights)
        left = np.vdot(weights, np.asarray(tangent))
        right = sum(np.vdot(np.asarray(c), t) for c, t in zip(cotangents, tangents, strict=True))
        np.testing.assert_allclose(left, right, 1e-9, 1e-9)


def check_compiled(fun: Function, *args: Any) -> None:
    """``jit`` of ``fun`` returns the type and the values of the eager call."""
    eager, compiled = fun(*args), jit(fun)(*args)
    assert (compiled.shape, compiled.dtype) == (eager.shape, eager.dtype)
    assert compiled.weak_type == eager.weak_type
    check_close(compiled, eager)


def check_batches(fun: Function, x: np.ndarray, *rest: Any) -> None:
    """``vmap`` of ``fun`` over the first and last axis of its first argument against a loop."""
    for axis in {0, x.ndim}:
        xs = np.stack([x, np.flip(x), x], axis)
        mapped = vmap(fun, (axis, *[None] * len(rest)))(xs, *rest)
        for i in range(3):
            check_close(mapped[i], fun(np.take(xs, i, axis), *rest))


def check_close(actual: Any, expected: Any) -> None:
    """Equal except for rounding: the same shape, with relative errors of a few units."""
    a, b = np.asarray(actual), np.asarray(expected)
    assert a.shape == b.shape
    if a.dtype.kind in "biu":
        np.testing.assert_array_equal(a, b)
        return
    narrow = a.dtype.itemsize == 2
    if a.dtype.kind == "V" or narrow:
        a, b = a.astype(np.float32), b.astype(np.float32)
    tolerance = 2e-2 if narrow else 1e-5
    np.testing.assert_allclose(a, b, tolerance, tolerance)
