"""Checks of derivatives in float64: JVP against differences, VJP against JVP."""

from __future__ import annotations

import numpy as np

from primax_core import jvp, vjp, vmap
from primax_core._base.config import enable_x64


def check_derivatives(fun, *args, step=1e-6, tolerance=1e-6):
    """Check a function of float64 arrays: JVP against central differences, VJP against JVP."""
    rng = np.random.default_rng(0)
    with enable_x64(True):
        args = [np.asarray(a, np.float64) for a in args]
        tangents = [rng.standard_normal(a.shape) for a in args]
        out, tangent = jvp(fun, tuple(args), tuple(tangents))
        after = fun(*[a + step * t for a, t in zip(args, tangents)])
        before = fun(*[a - step * t for a, t in zip(args, tangents)])
        difference = (np.asarray(after) - np.asarray(before)) / (2 * step)
        np.testing.assert_allclose(np.asarray(tangent), difference, tolerance, tolerance)
        same, pullback = vjp(fun, *args)
        np.testing.assert_array_equal(np.asarray(same), np.asarray(out))
        ct = rng.standard_normal(np.shape(out))
        cts = pullback(ct)
        left = np.vdot(ct, np.asarray(tangent))
        right = sum(np.vdot(np.asarray(c), t) for c, t in zip(cts, tangents))
        np.testing.assert_allclose(left, right, 1e-9, 1e-9)


def check_batches(fun, *args):
    """Check ``vmap`` over each axis of the first argument against a loop."""
    x, *rest = args
    for axis in range(x.ndim + 1):
        xs = np.stack([x, np.flip(x) if x.ndim else -x, x], axis)
        got = vmap(fun, (axis, *[None] * len(rest)))(xs, *rest)
        for i in range(3):
            one = fun(np.take(xs, i, axis), *rest)
            np.testing.assert_allclose(np.asarray(got)[i], np.asarray(one), 1e-6, 1e-6)
