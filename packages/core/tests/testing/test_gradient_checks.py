"""``check_grads`` and related functions: correct derivatives pass, wrong ones raise."""

from __future__ import annotations

import numpy as np
import pytest

from primax_core import custom_jvp, custom_vjp, enable_x64, jvp, lax, test_util, vjp
from primax_core.testing import check_grads, check_jvp, check_vjp, numerical_jvp

X = np.array([0.3, -1.2, 2.0], np.float32)


def smooth(x, y):
    return lax.sin(x) * lax.exp(y), {"second": lax.tanh(x * y)}


@pytest.mark.parametrize("modes", [("fwd",), ("rev",), ("fwd", "rev")])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_right_derivatives_pass(modes, order):
    with enable_x64(True):
        check_grads(smooth, (X.astype(np.float64), np.float64(0.5)), order, modes)


def test_float32_and_complex_and_integers():
    check_grads(smooth, (X, np.float32(0.5)), order=2)
    check_grads(lambda z: lax.exp(z), (np.array([1 + 2j, 0.5j], np.complex64),), order=2)
    check_grads(lambda x, n: x * n, (X, np.array([1, 2, 3], np.int32)), order=2)


def wrong_forward():
    f = custom_jvp(lambda x: lax.sin(x))
    f.defjvp(lambda p, t: (lax.sin(p[0]), 1.5 * lax.cos(p[0]) * t[0]))
    return f


def wrong_backward():
    f = custom_vjp(lambda x: lax.sin(x))
    f.defvjp(lambda x: (lax.sin(x), x), lambda x, ct: (1.5 * lax.cos(x) * ct,))
    return f


def wrong_second():
    slope = custom_jvp(lambda x: lax.cos(x))
    slope.defjvp(lambda p, t: (lax.cos(p[0]), lax.sin(p[0]) * t[0]))
    f = custom_jvp(lambda x: lax.sin(x))
    f.defjvp(lambda p, t: (f(p[0]), slope(p[0]) * t[0]))
    return f


def test_wrong_derivatives_are_named():
    with pytest.raises(AssertionError, match=r"^fwd: tangent of the JVP"):
        check_grads(wrong_forward(), (X,), 1)
    with pytest.raises(AssertionError, match=r"^rev: inner product with the VJP"):
        check_grads(wrong_backward(), (X,), 1, modes=("rev",))
    check_grads(wrong_second(), (X,), 1)
    with pytest.raises(AssertionError, match=r"^fwd then fwd: tangent"):
        check_grads(wrong_second(), (X,), 2)


def test_tolerances_and_steps_can_be_passed():
    f = lambda x: x * x * x
    check_grads(f, (X,), 1, atol=1e-2, rtol=1e-2, eps=1e-2)
    with pytest.raises(AssertionError, match="tolerance"):
        check_grads(f, (X,), 1, atol=0.0, rtol=1e-9, eps=1e-1)
    with pytest.raises(ValueError, match="modes are 'fwd' and 'rev', got \\['forward'\\]"):
        check_grads(f, (X,), 1, modes=["forward"])


def test_functions_that_return_derivatives_are_checked():
    f = lambda x: lax.sin(x)
    check_jvp(f, lambda p, t: jvp(f, p, t), (X,))
    check_vjp(f, lambda x: vjp(f, x), (X,))
    with pytest.raises(AssertionError, match="mine: value of the JVP"):
        check_jvp(f, lambda p, t: (lax.cos(*p), lax.cos(*p) * t[0]), (X,), err_msg="mine")
    with pytest.raises(AssertionError, match="value of the VJP"):
        check_vjp(f, lambda x: vjp(lax.cos, x), (X,))


def test_differences_are_central():
    (slope,) = [numerical_jvp(lambda x: x * x, (np.float32(3),), (np.float32(1),), 0.5)]
    assert slope == 6.0


def test_the_public_module_has_the_same_functions():
    assert test_util.check_grads is check_grads
    assert test_util.check_jvp is check_jvp and test_util.check_vjp is check_vjp


def test_steps_avoid_a_nearby_discontinuity():
    def f(x):
        return lax.select(x > 1.001, x * 5.0 + 100.0, x * x)

    check_grads(f, (np.float32(1.0),), order=1)
    with pytest.raises(AssertionError):
        check_grads(f, (np.float32(1.0),), order=1, eps=5e-3)


@pytest.mark.parametrize("limit", ["atol", "rtol"])
def test_tolerances_by_dtype(limit):
    x = (np.float32(1.0),)
    check_grads(lax.sin, x, 2, **{limit: {np.float32: 1e-1, np.dtype("f8"): 0.0}})
    check_grads(lax.sin, x, 1, **{limit: {np.float64: 0.0}})
    wrong = custom_jvp(lax.sin)
    wrong.defjvp(lambda p, t: (lax.sin(*p), 9.0 * lax.cos(*p) * t[0]))
    check_grads(wrong, x, 1, modes=("fwd",), **{limit: {np.float32: 10.0}})
    with pytest.raises(AssertionError):
        check_grads(wrong, x, 1, modes=("fwd",), **{limit: {np.float32: 1e-3}})
