"""Callbacks that compute, called from many threads: termination and results."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import primax_core as px
from primax_core import lax

THREADS = 16


@px.jit
def helper(m):
    return lax.fori_loop(0, 3, lambda i, c: lax.dot(lax.sin(c), m), m)


def host(m):
    return helper(m)


def total(m, width):
    parts = [px.pure_callback(host, m, m * (i + 1)) for i in range(width)]
    out = parts[0]
    for p in parts[1:]:
        out = out + p
    return out


program = px.jit(total, static_argnums=1)


@pytest.mark.parametrize("size", [3, 80])
def test_callbacks_that_compute(size):
    m = np.random.default_rng(0).normal(size=(size, size)).astype(np.float32) / size
    expected = np.sum([np.asarray(helper(m * np.float32(i + 1))) for i in range(6)], axis=0)
    with ThreadPoolExecutor(THREADS) as pool:
        results = list(pool.map(lambda _: np.asarray(program(m, 6)), range(3 * THREADS)))
    for f in results:
        np.testing.assert_allclose(f, expected, rtol=1e-4, atol=1e-5)


def test_many_in_flight():
    m = np.eye(40, dtype=np.float32)
    outs = [program(m * i, 4) for i in range(40)]
    for i, out in enumerate(outs):
        np.testing.assert_allclose(out, total(m * i, 4), rtol=1e-5)


def test_callbacks_within_callbacks():
    def deep(x, n):
        if n == 0:
            return lax.sin(x)
        f = px.jit(lambda x: px.pure_callback(lambda x: deep(x, n - 1), x, x))
        return f(x)

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: float(px.jit(lambda x: deep(x, 6))(0.5)), range(8)))
    np.testing.assert_allclose(results, np.sin(0.5), rtol=1e-6)


def test_ordered_effects_within_callbacks():
    seen = []

    def outer(x):
        px.jit(lambda x: px.io_callback(lambda x: seen.append(int(x)), None, x, ordered=True))(
            x + 10
        )
        seen.append(int(x))

    f = px.jit(lambda x: px.io_callback(outer, None, x, ordered=True))
    for i in range(5):
        f(np.int32(i))
    px.effects_barrier()
    assert sorted(seen) == [0, 1, 2, 3, 4, 10, 11, 12, 13, 14]
    assert [x for x in seen if x < 10] == list(range(5))


def test_each_thread_keeps_its_order():
    logs = {i: [] for i in range(THREADS)}

    @px.jit
    def note(i, n):
        px.io_callback(lambda i, n: logs[int(i)].append(int(n)), None, i, n, ordered=True)

    def work(i):
        for n in range(20):
            note(np.int32(i), np.int32(n))

    threads = [threading.Thread(target=work, args=(i,)) for i in logs]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    px.effects_barrier()
    assert all(seen == list(range(20)) for seen in logs.values())


@pytest.mark.parametrize("cpus", ["0", "0,1"])
def test_few_processors(cpus):
    code = (
        "import os\n"
        f"os.sched_setaffinity(0, {{{cpus}}})\n"
        "import numpy as np, primax_core as px\n"
        "from primax_core import lax\n"
        "inner = px.jit(lambda m: lax.dot(m, m))\n"
        "def f(m):\n"
        "    outs = [px.pure_callback(lambda m: inner(m), m, m * i) for i in range(8)]\n"
        "    return [lax.reduce_sum(o, (0, 1)) for o in outs]\n"
        "m = np.eye(200, dtype=np.float32)\n"
        "g = px.jit(f)\n"
        "outs = [g(m) for _ in range(10)]\n"
        "assert [float(x) for x in outs[-1]] == [200.0 * i * i for i in range(8)]\n"
    )
    if not hasattr(__import__("os"), "sched_setaffinity"):
        pytest.skip("this system does not bind processes to processors")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
