"""Residuals of scans in reverse mode: per step, and once for loop-invariant values."""

from __future__ import annotations

import numpy as np
import pytest

import primax_core as px
from primax_core import lax

W = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)
H = np.zeros((2, 4), np.float32)
XS = np.linspace(-1, 1, 56, dtype=np.float32).reshape(7, 2, 4)
ROWS = (7, 2, 4)


def matmul(a, b):
    return lax.dot_general(a, b, (((a.ndim - 1,), (0,)), ((), ())))


def total(x):
    return lax.reduce_sum(x, tuple(range(x.ndim)))


def loop(step, xs=XS, init=H):
    return total(lax.scan(lambda c, x: (step(c, x), None), init, xs)[0])


def recurrent(w, xs):
    return loop(lambda h, x: lax.tanh(matmul(h, w) + x), xs)


def unchanging(w, xs):
    return loop(lambda h, x: lax.sin(matmul(h, lax.sin(w))) * x, xs)


def unchanging_in_jit(w, xs):
    product = px.jit(lambda h, w: matmul(h, lax.sin(w)))
    return loop(lambda h, x: lax.sin(product(h, w)) * x, xs)


def jitted_body(w, xs):
    body = px.jit(lambda h, x: lax.sin(matmul(h, lax.sin(w))) * x)
    return loop(body, xs)


def nested(w, xs):
    def step(h, x):
        inner = lambda c, _: (lax.sin(matmul(c, lax.cos(w))), None)
        return lax.scan(inner, h, None, length=3)[0] * x

    return loop(step, xs)


def rematerialized(w, xs):
    return loop(px.checkpoint(lambda h, x: lax.sin(matmul(h, lax.cos(w))) * x), xs)


def mapped(w, xs):
    one = lambda x: loop(lambda h, row: lax.sin(matmul(h, lax.cos(w))) * row, x, H[0])
    return total(px.vmap(one, in_axes=1)(xs))


def used_twice(w, xs):
    def step(h, x):
        a = h * x
        return lax.sin(a) * a * a

    return loop(step, xs)


@pytest.mark.parametrize(
    ("fun", "per_step", "matrices"),
    [
        (recurrent, [ROWS] * 2, 1),
        (unchanging, [ROWS] * 3, 2),
        (unchanging_in_jit, [ROWS] * 3, 2),
        (jitted_body, [ROWS] * 3, 2),
        (nested, [ROWS, (7, 3, 2, 4), (7, 3, 2, 4)], 2),
        (rematerialized, [ROWS], 1),
        (mapped, [ROWS] * 3, 2),
        (used_twice, [ROWS] * 5, 0),
    ],
    ids=lambda v: getattr(v, "__name__", None),
)
def test_saved_residuals(fun, per_step, matrices):
    jaxpr = px.make_jaxpr(px.grad(fun, argnums=(0, 1)))(W, XS)
    forward, backward = (e for e in jaxpr.eqns if e.primitive.name == "scan")
    assert sorted(v.aval.shape for v in forward.outvars[1:]) == sorted(per_step)
    fixed = [v.aval.shape for v in backward.invars[: backward.params["num_consts"]]]
    assert fixed.count(W.shape) == matrices
    stacked = [v for v in backward.invars if v.aval.shape == (7, *W.shape)]
    assert not stacked


@pytest.mark.parametrize("fun", [unchanging_in_jit, jitted_body])
def test_split_jaxprs_compute_the_same(fun):
    for transform in (lambda f: f, px.jit):
        grads = transform(px.grad(fun, argnums=(0, 1)))(W, XS)
        for g, e in zip(grads, px.grad(unchanging, argnums=(0, 1))(W, XS)):
            np.testing.assert_allclose(g, e, rtol=1e-5, atol=1e-6)
    tangents = px.jvp(px.grad(fun), (W, XS), (W, XS))[1]
    expected = px.jvp(px.grad(unchanging), (W, XS), (W, XS))[1]
    np.testing.assert_allclose(tangents, expected, rtol=1e-4, atol=1e-5)


def test_scans_without_derivatives_are_valid_jaxprs() -> None:
    def fun(x):
        def body(count, point):
            return count + lax.convert_element_type(lax.gt(x, point), np.int32), None

        count = lax.scan(body, np.int32(0), np.arange(4, dtype=np.float32))[0]
        return lax.mul(lax.convert_element_type(count, np.float32), x)

    with px.enable_checks(True):
        assert px.grad(fun)(np.float32(1.5)) == 2
