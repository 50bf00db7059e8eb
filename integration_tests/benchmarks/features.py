"""Features beyond arrays: callbacks, checks, references, Taylor mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .case import Cases, Namespace

CASES = Cases()
Call = Callable[[], Any]
RNG = np.random.default_rng(0)


def small(ns: Namespace) -> Any:
    """An array of eight floats."""
    return ns.jax.device_put(np.arange(8, dtype=np.float32))


@CASES.timed("features", "pure_callback of one small array, jitted")
def _(ns: Namespace) -> Call:
    x = small(ns)
    f = ns.jax.jit(lambda x: ns.jax.pure_callback(lambda v: v, x, x))
    return lambda: ns.jax.block_until_ready(f(x))


@CASES.timed("features", "a jitted call without callback, waited for")
def _(ns: Namespace) -> Call:
    x = small(ns)
    f = ns.jax.jit(ns.lax.sin)
    return lambda: ns.jax.block_until_ready(f(x))


def layers(ns: Namespace) -> tuple[Any, Any]:
    """Weights of a small network, and its input."""
    weights = [RNG.standard_normal((64, 64)).astype(np.float32) * 0.1 for _ in range(4)]
    x = RNG.standard_normal((32, 64)).astype(np.float32)
    return ns.jax.device_put(weights), ns.jax.device_put(x)


def loss(ns: Namespace, weights: Any, x: Any) -> Any:
    """Loss of a small network."""
    for w in weights:
        x = ns.jnp.tanh(x @ w)
    return (x * x).sum()


@CASES.timed("features", "a checkified gradient step, all checks", 1.0)
def _(ns: Namespace) -> Call:
    checkify = ns._module(".experimental.checkify")
    weights, x = layers(ns)
    step = ns.jax.jit(
        checkify.checkify(ns.jax.grad(lambda w: loss(ns, w, x)), errors=checkify.all_checks)
    )
    return lambda: ns.jax.block_until_ready(step(weights)[1])


@CASES.timed("features", "a checkified loop of 200 steps, user checks", 1.0)
def _(ns: Namespace) -> Call:
    checkify = ns._module(".experimental.checkify")

    def body(c, _):
        checkify.check(c.sum() < 1e6, "too big: {c}", c=c.sum())
        return c * 0.99 + ns.jnp.sin(c), None

    x = small(ns)
    run = ns.jax.jit(checkify.checkify(lambda x: ns.lax.scan(body, x, None, length=200)[0]))
    return lambda: ns.jax.block_until_ready(run(x)[1])


@CASES.timed("features", "jet of order 5 of a small network, jitted")
def _(ns: Namespace) -> Call:
    jet = ns._module(".experimental.jet")
    weights, x = layers(ns)
    f = ns.jax.jit(lambda x: jet.jet(lambda x: loss(ns, weights, x), (x,), ([x] * 5,)))
    return lambda: ns.jax.block_until_ready(f(x))


@CASES.timed("features", "jet of order 5 of exp(sin(x)), eager")
def _(ns: Namespace) -> Call:
    jet = ns._module(".experimental.jet")
    x = small(ns)
    f = lambda x: ns.jnp.exp(ns.jnp.sin(x))
    return lambda: ns.jax.block_until_ready(jet.jet(f, (x,), ([x] * 5,)))


@CASES.timed("features", "a reference to 4 MB updated in a jitted function")
def _(ns: Namespace) -> Call:
    ref = ns.jax.new_ref(ns.jnp.zeros(1_000_000))

    @ns.jax.jit
    def step(ref):
        ref[...] += 1.0

    def call():
        step(ref)
        return ref[0:1]

    return call


@CASES.timed("features", "a reference read and written eagerly")
def _(ns: Namespace) -> Call:
    ref = ns.jax.new_ref(small(ns))

    def call():
        ref[1] = 2.0
        return ref[...]

    return call
