"""Arrays of 64-bit types, used where these types are disabled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from primax_core import custom_jvp, device_put, enable_x64, grad, jit, lax

with enable_x64(True):
    WIDE = device_put(np.arange(1.0, 4.0))
    LONG = device_put(np.arange(2000.0))
    COUNT = device_put(np.int64(3))


def _total(x: Any) -> Any:
    return lax.reduce_sum(x, (0,))


@pytest.mark.parametrize("constant", [WIDE, LONG], ids=["embedded", "argument"])
def test_constants_of_compiled_functions_keep_their_type(constant: Any) -> None:
    out = jit(lambda x: x * constant)(constant)
    assert out.dtype == np.float64
    assert np.array_equal(out, np.asarray(constant) ** 2)


def test_constants_of_numpy_have_the_type_of_the_trace() -> None:
    values = np.array([0.1, 0.2, 0.3])
    with enable_x64(True):
        traced = jit(lambda x: x * values).trace(WIDE)
    out = traced.lower().compile()(WIDE)
    assert out.dtype == np.float64
    assert np.array_equal(out, values * np.arange(1.0, 4.0))


@pytest.mark.parametrize("compiled", [False, True])
def test_derivatives_keep_their_type(compiled: bool) -> None:
    @custom_jvp
    def cube(x: Any) -> Any:
        return x * x * x

    @cube.defjvp
    def _jvp(primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        return cube(x), 3 * x * x * t

    fun = grad(lambda x: _total(cube(x) * WIDE))
    actual = (jit(fun) if compiled else fun)(WIDE)
    assert actual.dtype == np.float64
    assert np.array_equal(actual, 3 * np.arange(1.0, 4.0) ** 3)


@pytest.mark.parametrize("compiled", [False, True])
def test_control_flow_with_wide_integers(compiled: bool) -> None:
    def fun(n: Any) -> Any:
        steps = lax.fori_loop(n - n, n, lambda i, c: c + i, n)
        return lax.cond(n, lambda: steps, lambda: n), lax.dynamic_index_in_dim(WIDE, n - 4)

    total, last = (jit(fun) if compiled else fun)(COUNT)
    assert total.dtype == np.int64 and int(total) == 6
    assert last.tolist() == [3.0]
