"""Loops with loop-invariant code, and ordinary ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .case import Cases, Namespace

CASES = Cases()
Call = Callable[[], Any]
RNG = np.random.default_rng(0)


def floats(ns: Namespace, *shape: int) -> Any:
    """A device array of small random floats."""
    return ns.jax.device_put((RNG.normal(size=shape) * 0.05).astype(np.float32))


def sliced(ns: Namespace) -> Callable[[Any], Any]:
    """A loop of 1000 steps whose body slices a matrix that it closes over."""
    m = floats(ns, 1000, 1000)
    step = lambda h, _: (ns.jnp.tanh(h @ m[:64, :64]), None)
    return lambda h: ns.lax.scan(step, h, None, length=1000)[0]


def waited(ns: Namespace, fun: Callable[..., Any], *args: Any) -> Call:
    """A jitted call that waits for its results."""
    jitted = ns.jax.jit(fun)
    return lambda: ns.jax.block_until_ready(jitted(*args))


@CASES.timed("loops", "scan of a product with a slice of a captured matrix", 1.2)
def _(ns: Namespace) -> Call:
    return waited(ns, sliced(ns), floats(ns, 64))


@CASES.timed("loops", "its gradient", 1.2)
def _(ns: Namespace) -> Call:
    fun = sliced(ns)
    return waited(ns, ns.jax.grad(lambda h: fun(h).sum()), floats(ns, 64))


@CASES.timed("loops", "its vmap over 8 vectors", 1.2)
def _(ns: Namespace) -> Call:
    return waited(ns, ns.jax.vmap(sliced(ns)), floats(ns, 8, 64))


@CASES.timed("loops", "a recurrent network of 200 steps", 1.2)
def _(ns: Namespace) -> Call:
    wx, wh, b = floats(ns, 64, 64), floats(ns, 64, 64), floats(ns, 64)

    def step(h, x):
        h = ns.jnp.tanh(x @ wx + h @ wh + b)
        return h, h

    run = lambda h, xs: ns.lax.scan(step, h, xs)
    return waited(ns, run, floats(ns, 16, 64), floats(ns, 200, 16, 64))


@CASES.timed("loops", "a cumulative sum by scan of 1000 steps")
def _(ns: Namespace) -> Call:
    run = lambda c, xs: ns.lax.scan(lambda c, x: (c + x, c), c, xs)
    return waited(ns, run, floats(ns), floats(ns, 1000))
