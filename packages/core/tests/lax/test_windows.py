"""Reductions over windows against loops, their derivatives against differences."""

from __future__ import annotations

import numpy as np
import pytest

import primax_core as px
from primax_core import lax
from primax_core.lax import arithmetic as ar, windows
from test_support import check_derivatives

rng = np.random.default_rng(0)
INF = float("inf")


def distinct(*shape):
    """Values separated enough for numerical differences."""
    n = int(np.prod(shape))
    return rng.permutation(np.arange(n)).reshape(shape).astype(np.float32) / 4


def by_loops(x, init, op, size, stride, pads, base, within):
    wide = np.full((len(x) - 1) * base + 1, init, float)
    wide[::base] = x
    wide = np.pad(wide, pads, constant_values=init)
    reach = (size - 1) * within + 1
    return [
        op.reduce(wide[i : i + reach : within], initial=init)
        for i in range(0, len(wide) - reach + 1, stride)
    ]


FUNCTIONS = [(ar.add, np.add, 0.0), (ar.max, np.maximum, -INF), (ar.min, np.minimum, INF),
             (ar.mul, np.multiply, 1.0), (ar.max, np.maximum, 1.0)]  # fmt: skip
LAYOUTS = [(2, 1, (0, 0), 1, 1), (3, 2, (1, 2), 1, 1), (3, 2, (2, 1), 2, 2), (2, 3, (0, 1), 1, 3)]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("fun, exact, init", FUNCTIONS)
def test_values_and_derivatives(fun, exact, init, layout):
    size, stride, pads, base, within = layout
    x = distinct(9)

    def run(x):
        return windows.reduce_window(x, init, fun, (size,), (stride,), [pads], (base,), (within,))

    np.testing.assert_allclose(run(x), by_loops(x, init, exact, *layout), rtol=1e-5)
    if fun is not ar.mul:
        check_derivatives(run, x)


def test_batches_are_loops():
    x = distinct(4, 5, 3)
    for fun, _, init in FUNCTIONS:
        run = lambda x, f=fun, i=init: windows.reduce_window(x, i, f, (2, 2), (1, 2), "SAME")
        grad = lambda x, run=run: px.vjp(run, x)[1](np.ones(run(x).shape, np.float32))[0]
        for axis in range(3):
            for g in (run, grad):
                actual = px.vmap(g, axis, axis)(x)
                for i in range(x.shape[axis]):
                    expected = g(np.take(x, i, axis))
                    np.testing.assert_allclose(np.take(actual, i, axis), expected, rtol=1e-5)


def test_trees():
    x = distinct(6)
    low, high = windows.reduce_window(
        (x, x), (INF, -INF), lambda p, q: (ar.min(p[0], q[0]), ar.max(p[1], q[1])), (3,), (3,)
    )
    assert np.array_equal(low, x.reshape(2, 3).min(1))
    assert np.array_equal(high, x.reshape(2, 3).max(1))


def test_without_axes_and_without_windows():
    for shape, sizes in [((), ()), ((2,), (3,)), ((0,), (1,))]:
        x = np.ones(shape, np.float32)
        for fun, _, init in FUNCTIONS:
            run = lambda x, f=fun, i=init, n=sizes: windows.reduce_window(x, i, f, n)
            out, pull = px.vjp(run, x)
            assert pull(out)[0].shape == shape


def test_errors():
    x = distinct(4, 6)
    with pytest.raises(TypeError, match="wrong number of window_dimensions"):
        windows.reduce_window(x, 0.0, ar.add, (2,))
    with pytest.raises(TypeError, match="strictly positive"):
        windows.reduce_window(x, 0.0, ar.add, (2, 0))
    with pytest.raises(TypeError, match="inconsistent dtypes"):
        windows.reduce_window(x, np.int32(1), ar.add, (2, 2))
    with pytest.raises(TypeError, match="must have one element for each window"):
        windows.select_and_scatter_add_p.bind(
            x, x, select_prim=windows.ge_p, window_dimensions=(2, 2), window_strides=(2, 2),
            padding=((0, 0), (0, 0)),
        )  # fmt: skip


class TestAnyFunctionAtTheEdge:
    """Derivatives ignore padding and gaps: two neutral elements may have no derivative."""

    @staticmethod
    def log_sum_exp(a, b):
        return lax.max(a, b) + lax.log1p(lax.exp(-lax.abs(a - b)))

    @pytest.mark.parametrize(
        "options",
        [{"padding": "SAME"}, {"padding": ((1, 0), (0, 1))}, {"base_dilation": (2, 1)}],
        ids=str,
    )
    def test_derivatives(self, options):
        x = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)

        window = {"window_dimensions": (2, 2), "window_strides": (1, 2), **options}

        def pooled(x):
            return lax.reduce_window(x, np.float32(-np.inf), self.log_sum_exp, **window)

        def by_sums(x):
            return lax.log(lax.reduce_window(lax.exp(x), 0.0, lax.add, **window))

        np.testing.assert_allclose(pooled(x), by_sums(x), rtol=1e-5)
        (out, dot), expected = px.jvp(pooled, (x,), (x + 1,)), px.jvp(by_sums, (x,), (x + 1,))[1]
        np.testing.assert_allclose(dot, expected, rtol=1e-4)
        ct = np.ones(out.shape, np.float32)
        np.testing.assert_allclose(
            px.vjp(pooled, x)[1](ct)[0], px.vjp(by_sums, x)[1](ct)[0], rtol=1e-4
        )


def test_a_reduction_of_no_axes_returns_its_operand():
    x = np.array([1.0, 5.0], np.float32)
    f = lambda x: lax.reduce(x, np.float32(2), lax.max, ())
    np.testing.assert_array_equal(f(x), x)
    np.testing.assert_array_equal(px.jvp(f, (x,), (x,))[1], x)


def test_jaxprs_of_reductions_depend_on_the_settings():
    from primax_core._base.config import enable_x64

    def count(a, b):
        return (a + b) * float(px.typeof(1.0).dtype.itemsize)

    f = lambda: float(lax.reduce(np.ones(2, np.float32), np.float32(0), count, (0,)))
    before = f()
    with enable_x64(True):
        assert f() != before
    assert f() == before
