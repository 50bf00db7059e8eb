"""Concurrent tracing, compilation and execution."""

from __future__ import annotations

import sys
import threading

import numpy as np

import primax_core as px
from primax_core import lax

SHARED = px.jit(px.grad(lambda x: lax.reduce_sum(lax.sin(x) * x, (0,))))


def work(seed: int) -> None:
    x = np.linspace(0.1, 1.0, 3 + seed % 3).astype(np.float32)
    for _ in range(4):
        got = px.grad(lambda v: lax.reduce_sum(lax.sin(v) * v, (0,)))(x)
        expected = np.sin(x) + x * np.cos(x)
        np.testing.assert_allclose(got, expected, rtol=1e-4)
        np.testing.assert_allclose(SHARED(x), expected, rtol=1e-4)
        c, _ = lax.scan(lambda c, t: (c * t + seed, None), 1.0, x)
        value = 1.0
        for t in x:
            value = value * float(t) + seed
        np.testing.assert_allclose(c, value, rtol=1e-4)
        with px.named_scope(f"thread {seed}"):
            jaxpr = px.make_jaxpr(px.jit(lambda v: lax.sin(v) * seed))(x)
        assert jaxpr.eqns[0].ctx == ()
        mapped = px.vmap(lambda v: lax.psum(v, "i"), axis_name="i")(x)
        np.testing.assert_allclose(mapped, np.full_like(x, x.sum()), rtol=1e-5)
        with px.enable_x64(seed % 2 == 1):
            assert lax.sin(1.0).dtype == (np.float64 if seed % 2 else np.float32)


def test_eight_threads():
    errors = []

    def run(seed):
        try:
            work(seed)
        except BaseException as e:
            errors.append((seed, e))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=run, args=(seed,)) for seed in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        sys.setswitchinterval(interval)
    assert not errors
