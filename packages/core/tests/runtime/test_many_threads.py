"""Sixteen concurrent threads that trace, compile, run and use the cache on disk."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import primax_core as px
from primax_core import lax, monitoring

THREADS = 16
COMPILED = "/jax/core/compile/backend_compile_duration"


@pytest.fixture
def compilations():
    """The number of compiled or loaded executables, by name."""
    names: list[str] = []
    lock = threading.Lock()

    def listen(event, duration, **about):
        if event == COMPILED:
            with lock:
                names.append(about.get("fun_name", "?"))

    monitoring.register_event_duration_secs_listener(listen)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield names
    sys.setswitchinterval(interval)
    monitoring.unregister_event_duration_listener(listen)


def together(work):
    """Results of a function in all threads, which start simultaneously."""
    barrier = threading.Barrier(THREADS)

    def run(i):
        barrier.wait()
        return work(i)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(run, range(THREADS)))


def test_one_function_is_compiled_once(compilations):
    @px.jit
    def once_for_all(x):
        return lax.fori_loop(0, 5, lambda i, c: lax.sin(c) + i, x)

    x = np.linspace(0, 1, 7).astype(np.float32)
    results = together(lambda i: np.asarray(once_for_all(x)))
    assert all((f == results[0]).all() for f in results)
    assert sum("once_for_all" in name for name in compilations) == 1


def test_equal_functions_are_compiled_once(compilations):
    x = np.linspace(0, 1, 11).astype(np.float32)

    def work(i):
        def each_its_own(x):
            return lax.tanh(lax.cos(x) * 3.5) - x

        return np.asarray(px.jit(each_its_own)(x))

    results = together(work)
    assert all((f == results[0]).all() for f in results)
    assert sum("each_its_own" in name for name in compilations) == 1


def test_a_function_with_callbacks_is_compiled_once(compilations):
    @px.jit
    def calls_back(x):
        return px.pure_callback(np.sin, x, x) * 2

    x = np.linspace(0, 1, 5).astype(np.float32)
    results = together(lambda i: np.asarray(calls_back(x)))
    assert all((f == results[0]).all() for f in results)
    assert sum("calls_back" in name for name in compilations) == 1


def test_shapes_are_compiled_once_each(compilations):
    @px.jit
    def of_many_shapes(x):
        return lax.exp(x) * lax.reduce_sum(x, (0,))

    def work(i):
        outs = [np.asarray(of_many_shapes(np.ones(n, np.float32))) for n in range(1, 6)]
        return [float(o[0]) for o in outs]

    results = together(work)
    assert all(f == results[0] for f in results)
    assert sum("of_many_shapes" in name for name in compilations) == 5


def test_eager_operations_and_transformations():
    x = np.linspace(0.1, 1, 13).astype(np.float32)

    def f(x):
        return lax.reduce_sum(lax.log(x) * lax.sqrt(x), (0,))

    def work(i):
        g = px.grad(f)(x)
        h = px.vmap(lambda a: lax.atan2(a, a + 1))(x)
        c, _ = lax.scan(lambda c, a: (c * a + 1, None), np.float32(1), x)
        return [np.asarray(v) for v in (g, h, c, lax.sort(lax.neg(x)), lax.cumsum(x))]

    results = together(work)
    for f_ in results:
        for a, b in zip(f_, results[0]):
            np.testing.assert_array_equal(a, b)


def test_caches_are_cleared_concurrently():
    x = np.ones(5, np.float32)

    def work(i):
        for n in range(5):
            if i == 0:
                px.clear_caches()
            y = px.jit(lambda x, n=n: lax.sin(x) + n)(x)
            np.testing.assert_allclose(y, np.sin(1) + n, rtol=1e-6)

    together(work)


CODE = """
import sys, threading
import numpy as np
import primax_core as px
from primax_core import lax
sys.setswitchinterval(1e-5)
barrier = threading.Barrier(16)
failures = []
def work(i):
    try:
        barrier.wait()
        for n in range(6):
            x = np.linspace(0, 1, 4 + n).astype(np.float32)
            y = px.jit(lambda x: lax.sin(x) * n + lax.cumsum(x))(x)
            np.testing.assert_allclose(y, np.sin(x) * n + np.cumsum(x), rtol=1e-5, atol=1e-6)
            g = px.grad(lambda x: lax.reduce_sum(lax.exp(x) * x, (0,)))(x)
            np.testing.assert_allclose(g, np.exp(x) * (1 + x), rtol=1e-5)
    except BaseException as e:
        failures.append(e)
threads = [threading.Thread(target=work, args=(i,)) for i in range(16)]
for t in threads: t.start()
for t in threads: t.join()
if failures: raise failures[0]
print('fine')
"""


def test_first_use_and_the_cache_on_disk(tmp_path):
    """Clients, MLIR and the cache start in sixteen threads at once; then the cache is full."""
    import os

    env = {**os.environ, "PRIMAX_COMPILATION_CACHE_DIR": str(tmp_path / "cache")}
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", CODE], env=env, capture_output=True, text=True, timeout=300
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "fine\n", "")
