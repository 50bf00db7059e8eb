"""Eager calls of functions that run as one executable, found by the arguments."""

from __future__ import annotations

import numpy as np
import pytest

import primax_core as px
import primax_numpy as jnp

VECTOR = np.array([3.0, np.nan, 1.0, 2.0], np.float32)
MATRIX = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 5.0]], np.float32)


def cases():
    for name in (
        "cumsum cumprod nancumsum nancumprod nanvar nanstd nansum nanprod nanmean nanmax nanmin "
        "nanargmax nanargmin median nanmedian average sort argsort argmax argmin ptp "
        "count_nonzero flip gradient diff trapezoid"
    ).split():
        for kwargs in ({}, {"axis": 0}, {"axis": 1}, {"axis": -1}):
            yield name, (MATRIX,), kwargs
    for name in "trace diagonal diag tril triu".split():
        for args in ((), (1,), (-1,)):
            yield name, (MATRIX, *args), {}
    for name in (
        "modf nan_to_num cov corrcoef rot90 fliplr flipud matrix_transpose transpose atleast_3d "
        "round angle sort_complex isposinf isneginf linalg.matrix_rank linalg.norm "
        "linalg.cholesky linalg.slogdet linalg.svdvals linalg.qr linalg.eigvalsh linalg.cond "
        "linalg.pinv linalg.trace linalg.diagonal linalg.matrix_norm linalg.eigh linalg.svd"
    ).split():
        yield name, (MATRIX,), {}
    for name in "modf nan_to_num cumsum sort argsort nanmax atleast_2d ediff1d flip".split():
        yield name, (VECTOR,), {}
    yield "cov", (MATRIX,), {"rowvar": False, "ddof": 0}
    yield "round", (MATRIX, 1), {}
    yield "outer", (VECTOR, VECTOR), {}
    yield "convolve", (VECTOR, VECTOR, "same"), {}
    yield "swapaxes", (MATRIX, 0, 1), {}
    yield "moveaxis", (MATRIX, 0, 1), {}
    yield "transpose", (MATRIX, (1, 0)), {}
    yield "partition", (MATRIX, 1), {}
    yield "linalg.norm", (MATRIX,), {"ord": np.inf}
    yield "linalg.matrix_power", (MATRIX, 3), {}
    yield "isclose", (MATRIX, MATRIX), {"equal_nan": True}
    yield "average", (MATRIX,), {"weights": MATRIX}
    yield "average", (MATRIX, 0), {"returned": True}


def function(name):
    out = jnp
    for part in name.split("."):
        out = getattr(out, part)
    return out


@pytest.mark.parametrize(("name", "args", "kwargs"), list(cases()))
def test_repeated_calls_equal_the_call_of_the_plain_function(name, args, kwargs):
    fun = function(name)

    def convert(x):
        return jnp.asarray(x) if isinstance(x, np.ndarray) else x

    args = [convert(a) for a in args]
    kwargs = {k: convert(v) for k, v in kwargs.items()}
    expected = fun.__wrapped__(*args, **kwargs)
    for _ in range(2):
        out = fun(*args, **kwargs)
        assert px.tree_util.tree_structure(out) == px.tree_util.tree_structure(expected)
        for value, want in zip(px.tree_util.tree_leaves(out), px.tree_util.tree_leaves(expected)):
            assert value.dtype == want.dtype and value.weak_type == want.weak_type
            np.testing.assert_allclose(value, want, rtol=1e-5, atol=1e-6)
    assert any(fun.jit_cache.fast_entries.values()), "no call is on the fast path"


def test_types_and_options_are_part_of_the_key():
    x, weak = jnp.arange(4), jnp.asarray(2)
    for _ in range(2):
        assert jnp.cumsum(x).dtype == np.int32
        assert jnp.cumsum(x, None).dtype == np.int32
        assert jnp.round(weak).weak_type and not jnp.round(x).weak_type
        with px.enable_x64(True):
            assert jnp.cumsum(jnp.arange(4)).dtype == np.int64
        assert jnp.flip(x, 0).tolist() == jnp.flip(x, -1).tolist() == [3, 2, 1, 0]


def test_errors_are_those_of_the_function_in_every_call():
    x = jnp.arange(4.0)
    for _ in range(3):
        with pytest.raises(ValueError, match="axis"):
            jnp.cumsum(x, 3)
        with pytest.raises(NotImplementedError, match="out"):
            jnp.cumsum(x, out=x)
        with pytest.raises(TypeError):
            jnp.sort(x, unknown=1)
        with pytest.raises((TypeError, ValueError)):
            jnp.cumsum(x, [1])


def test_warnings_of_dtypes_are_issued_in_every_call():
    x = jnp.arange(4.0)
    for _ in range(3):
        with pytest.warns(UserWarning, match="float64"):
            jnp.cumsum(x, dtype="float64")


def test_tracers_numbers_and_host_arrays_run_the_function():
    x = jnp.arange(4.0)
    for _ in range(3):
        jnp.cumsum(x)
        np.testing.assert_array_equal(jnp.cumsum(np.arange(4.0, dtype=np.float32)), [0, 1, 3, 6])
        assert float(jnp.cumsum(2.0)[0]) == 2.0
        np.testing.assert_array_equal(px.jit(jnp.cumsum)(x), [0, 1, 3, 6])
        np.testing.assert_array_equal(px.vmap(jnp.cumsum)(x[None]), [[0, 1, 3, 6]])
        np.testing.assert_array_equal(px.grad(lambda v: jnp.cumsum(v)[-1])(x), [1, 1, 1, 1])


def test_deleted_arrays_are_named():
    x = jnp.arange(4.0)
    jnp.cumsum(x)
    x.delete()
    with pytest.raises(RuntimeError, match="argument number 0 of cumsum"):
        jnp.cumsum(x)
