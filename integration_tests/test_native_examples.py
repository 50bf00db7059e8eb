"""Tests of examples/native_examples: values, derivatives, transformations, threads, errors."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

if not (shutil.which("g++") or shutil.which("clang++")):
    pytest.skip("install g++ or clang++: the examples are C++", allow_module_level=True)
sys.path.append(str(Path(__file__).resolve().parents[1] / "examples"))

from native_examples import library
from native_examples.add_at import add_at
from native_examples.cholesky import cholesky
from native_examples.convolution import convolve
from native_examples.rms_norm import rms_norm
from native_examples.sort_rows import sort_rows
from native_examples.spectrum import plans, spectrum

import primax
import primax.numpy as jnp
from primax.ffi import ffi_call
from primax_core.errors import JaxRuntimeError
from primax_ffi import load_library
from test_support import assert_close

load_library(library.path(), ["examples_address"])

RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def finite_differences(f, args, cotangent, step=1e-5):
    """The cotangents of arguments of a NumPy function, by central differences in float64."""
    args = [np.asarray(x, np.float64) for x in args]
    out = [np.zeros_like(x) for x in args]
    for x, derivative in zip(args, out):
        for index in np.ndindex(x.shape):
            before = x[index]
            sides = []
            for x[index] in (before + step, before - step):
                sides.append(np.sum(f(*args) * cotangent))
            x[index] = before
            derivative[index] = (sides[0] - sides[1]) / (2 * step)
    return out


def check_gradients(f, reference, *args):
    """Compare reverse mode with finite differences of a NumPy function."""
    cotangent = normal(*reference(*args).shape)
    loss = lambda *args: jnp.sum(f(*args) * cotangent)
    gradients = primax.jit(primax.grad(loss, argnums=tuple(range(len(args)))))(*args)
    expected = finite_differences(reference, args, cotangent)
    for gradient, derivative in zip(gradients, expected, strict=True):
        assert_close(gradient, derivative, rtol=1e-3, atol=1e-4)


# RMS normalization


def normalized(x, weights, eps=1e-3):
    return weights * x / np.sqrt(np.mean(x * x, -1, keepdims=True) + eps)


@pytest.mark.parametrize("shape", [(6,), (4, 6), (2, 3, 6), (0, 6)])
def test_rms_norm(shape):
    x, weights = normal(*shape), normal(6)
    out = primax.jit(lambda x, w: rms_norm(x, w, 1e-3))(x, weights)
    assert_close(out, normalized(x, weights), rtol=1e-5)
    check_gradients(lambda x, w: rms_norm(x, w, 1e-3), normalized, x, weights)


def test_rms_norm_is_mapped():
    x, weights = normal(5, 4, 6), normal(5, 6)
    f = lambda x, w: rms_norm(x, w, 1e-3)
    for axes in [(0, 0), (0, None), (None, 0)]:
        args = [v if a == 0 else v[0] for v, a in zip((x, weights), axes)]
        each = [[v[i] if a == 0 else v for v, a in zip(args, axes)] for i in range(5)]
        assert_close(
            primax.vmap(f, axes)(*args), np.stack([normalized(*a) for a in each]), rtol=1e-5
        )
        gradient = primax.grad(lambda x, w: jnp.sum(f(x, w) ** 2), (0, 1))
        mapped = primax.vmap(gradient, axes)(*args)
        for i, expected in enumerate(gradient(*a) for a in each):
            assert_close([m[i] for m in mapped], [*expected], rtol=1e-4, atol=1e-5)
    twice = primax.vmap(primax.vmap(f, (0, None)))(x, weights)
    assert_close(twice, normalized(x, weights[:, None]), rtol=1e-5)


# Convolution


def convolved(x, kernel):
    rows = [np.convolve(row, kernel)[: x.shape[-1]] for row in x.reshape(-1, x.shape[-1])]
    return np.stack(rows).reshape(x.shape) if rows else x


@pytest.mark.parametrize(("shape", "m"), [((9,), 3), ((2, 9), 9), ((2, 2, 4), 7), ((3, 5), 1)])
def test_convolution(shape, m):
    x, kernel = normal(*shape), normal(m)
    assert_close(primax.jit(convolve)(x, kernel), convolved(x, kernel), rtol=1e-5, atol=1e-6)
    check_gradients(convolve, convolved, x, kernel)


@pytest.mark.parametrize("axes", [(0, None), (None, 0), (0, 0)])
def test_convolution_is_mapped(axes):
    args = [normal(4, 2, 9), normal(4, 3)]
    args = [v if a == 0 else v[0] for v, a in zip(args, axes)]
    each = [[v[i] if a == 0 else v for v, a in zip(args, axes)] for i in range(4)]
    expected = np.stack([convolved(*a) for a in each])
    assert_close(primax.vmap(convolve, axes)(*args), expected, rtol=1e-5, atol=1e-6)
    gradient = primax.grad(lambda x, k: jnp.sum(convolve(x, k) ** 2), (0, 1))
    mapped = primax.vmap(gradient, axes)(*args)
    for i, expected in enumerate(gradient(*a) for a in each):
        assert_close([m[i] for m in mapped], [*expected], rtol=1e-4, atol=1e-5)
    jaxpr = primax.make_jaxpr(primax.vmap(convolve, axes))(*args)
    assert ("scan" in str(jaxpr)) == (axes != (0, None))


# States


@pytest.mark.parametrize("shape", [(2,), (8,), (3, 64), (2, 2, 16)])
def test_spectrum(shape):
    x = normal(*shape)
    assert_close(spectrum(x), np.abs(np.fft.rfft(x)) ** 2, rtol=1e-4, atol=1e-4)


def test_plans_are_made_once_for_each_shape():
    x = normal(3, 32)
    spectrum(x)
    before = plans()
    for _ in range(5):
        spectrum(x + 1)
    assert plans() == before
    spectrum(normal(3, 128))
    assert plans() == before + 1
    assert_close(primax.vmap(spectrum)(x), spectrum(x), rtol=1e-5)


def test_a_plan_that_cannot_be_made_is_an_error_of_the_compilation():
    with pytest.raises(JaxRuntimeError, match="the length is 12, which is not a power of two"):
        primax.jit(spectrum).lower(normal(12)).compile()


# Threads


@pytest.mark.parametrize(
    "shape", [(5,), (1000, 100), (3, 40000), (2, 3, 4), (0, 3), (3, 0), (7, 1)]
)
def test_sorted_rows(shape):
    x = normal(*shape)
    x.flat[::3] = np.nan
    np.testing.assert_array_equal(sort_rows(x), np.sort(x, axis=-1))
    np.testing.assert_array_equal(primax.vmap(sort_rows)(x[None])[0], np.sort(x, axis=-1))


def run(code):
    """The output of a program in a new process, which may not take more than two minutes."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_handlers_in_all_threads_of_the_pool_end():
    """XLA runs parts of a large program in its pool, so all of its threads may be in handlers."""
    out = run("""
        import threading
        import numpy as np
        import primax
        import primax.numpy as jnp
        from native_examples.sort_rows import sort_rows

        x = np.random.default_rng(0).normal(size=(40, 12, 1000)).astype(np.float32)
        several = primax.jit(lambda x: [sort_rows(jnp.cumsum(sort_rows(row), 1)) for row in x])
        expected = np.sort(np.cumsum(np.sort(x, -1), -1), -1)
        faults = []

        def call():
            for _ in range(3):
                for a, b in zip(several(x), expected):
                    if not np.allclose(a, b, rtol=1e-3, atol=1e-3):
                        faults.append("other values")

        threads = [threading.Thread(target=call) for _ in range(4)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        print(len(faults))
    """)
    assert out == "0"


def test_threads_share_the_work():
    out = (
        run("""
        import os, pathlib
        import numpy as np
        import primax
        from native_examples.sort_rows import sort_rows

        def times():
            tasks = pathlib.Path("/proc/self/task")
            return {t.name: int((t / "schedstat").read_text().split()[0]) for t in tasks.iterdir()}

        x = primax.device_put(np.random.default_rng(0).normal(size=(200, 20000)).astype(np.float32))
        f = primax.jit(sort_rows)
        f(x).block_until_ready()
        before = times()
        for _ in range(3):
            f(x).block_until_ready()
        worked = sorted(t - before.get(n, 0) for n, t in times().items())
        print(os.cpu_count() == 1 or worked[-2] > 0.1 * worked[-1])
    """)
        if Path("/proc/self/schedstat").exists()
        else "True"
    )
    assert out == "True"


# Errors


def test_cholesky():
    a = normal(3, 4, 4)
    a = a @ a.transpose(0, 2, 1) + np.eye(4, dtype=np.float32)
    assert_close(cholesky(a), np.linalg.cholesky(a), rtol=1e-4, atol=1e-5)
    assert_close(primax.vmap(cholesky)(a), np.linalg.cholesky(a), rtol=1e-4, atol=1e-5)


def test_errors_and_exceptions_have_their_text():
    out = run("""
        import numpy as np
        from native_examples.cholesky import cholesky
        from primax_core.errors import JaxRuntimeError

        a = np.stack([np.eye(3), np.diag([1, 0, 1]), np.full((3, 3), np.nan)]).astype(np.float32)
        for x in (a[:2], a[2]):
            try:
                np.asarray(cholesky(x))
            except JaxRuntimeError as error:
                print(error)
        print(np.asarray(cholesky(a[0])).tolist() == np.eye(3).tolist())
    """).splitlines()
    assert "INVALID_ARGUMENT" in out[0]
    assert "pivot 1 of matrix 1 is not positive" in out[0]
    assert "cholesky: the matrix contains NaN" in out[1]
    assert out[2] == "True"
    with pytest.raises(TypeError, match="for axis 1 the size n is 2 in operand 0"):
        cholesky(np.ones((2, 3), np.float32))


# Memory


def test_add_at():
    x, indices, values = normal(5), np.int32([4, 0, 4]), normal(3)
    expected = x.copy()
    np.add.at(expected, indices, values)
    assert_close(add_at(x, indices, values), expected, rtol=1e-6)
    stacked = [np.stack([v, v[::-1]]) for v in (x, indices, values)]
    mapped = primax.vmap(add_at)(*stacked)
    assert_close(mapped[0], expected, rtol=1e-6)
    for index in (5, -1):
        with pytest.raises(JaxRuntimeError, match=f"OUT_OF_RANGE: add_at: index {index} of 5"):
            np.asarray(add_at(x, np.int32([0, index]), values[:2]))


def address(x):
    high, low = np.asarray(
        ffi_call("examples_address", primax.ShapeDtypeStruct((2,), np.uint32))(x)
    )
    return (int(high) << 32) + int(low)


def test_updates_are_in_place():
    donated = primax.device_put(np.arange(1000, dtype=np.float32)) + 0
    before = address(donated)
    one = np.int32([1]), np.float32([1])
    out = primax.jit(add_at, donate_argnums=0)(donated, *one)
    assert address(out) == before
    assert donated.is_deleted()
    # An array that is used again is copied, and does not change.
    x = primax.device_put(np.arange(1000, dtype=np.float32))
    y, total = primax.jit(lambda x: (add_at(x, *one), jnp.sum(x)))(x)
    assert float(total) == 999 * 500 and float(x[1]) == 1 and float(y[1]) == 2
