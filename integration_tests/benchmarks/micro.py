"""Small operations timed in a warm process: eager operations, transformations, jitted calls.

Uses ``jnp``: asarray, concatenate, reshape, sum, tanh, where, and array indexing with ``.at``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .case import Cases, Namespace

CASES = Cases()
HOST = np.arange(8, dtype=np.float32)
Call = Callable[[], Any]


def vector(ns: Namespace) -> Any:
    """An array of eight floats."""
    return ns.jax.device_put(HOST)


@CASES.timed("eager", "x + x", 0.75)
def _(ns: Namespace) -> Call:
    x = vector(ns)
    return lambda: x + x


@CASES.timed("eager", "x * 2.0", 0.75)
def _(ns: Namespace) -> Call:
    x = vector(ns)
    return lambda: x * 2.0


@CASES.timed("eager", "lax.sin(x)", 0.5)
def _(ns: Namespace) -> Call:
    x, sin = vector(ns), ns.lax.sin
    return lambda: sin(x)


@CASES.timed("eager", "jnp.where(c, x, 0.)", 0.5)
def _(ns: Namespace) -> Call:
    x, where = vector(ns), ns.jnp.where
    c = x > 3
    return lambda: where(c, x, 0.0)


@CASES.timed("eager", "x[1]", 0.15)
def _(ns: Namespace) -> Call:
    x = vector(ns)
    return lambda: x[1]


@CASES.timed("eager", "x[1:3]", 0.2)
def _(ns: Namespace) -> Call:
    x = vector(ns)
    return lambda: x[1:3]


@CASES.timed("eager", "x[idx]", 0.1)
def _(ns: Namespace) -> Call:
    x = vector(ns)
    idx = ns.jax.device_put(np.array([0, 3, 1], np.int32))
    return lambda: x[idx]


@CASES.timed("eager", "x.at[1].set(2.)", 0.1)
def _(ns: Namespace) -> Call:
    x = vector(ns)
    return lambda: x.at[1].set(2.0)


@CASES.timed("eager", "jnp.reshape", 0.4)
def _(ns: Namespace) -> Call:
    x, reshape = vector(ns), ns.jnp.reshape
    return lambda: reshape(x, (2, 4))


@CASES.timed("eager", "jnp.concatenate", 0.4)
def _(ns: Namespace) -> Call:
    x, concatenate = vector(ns), ns.jnp.concatenate
    return lambda: concatenate([x, x])


@CASES.timed("eager", "jnp.asarray", 0.4)
def _(ns: Namespace) -> Call:
    asarray = ns.jnp.asarray
    return lambda: asarray(HOST)


@CASES.timed("eager", "random.split(key)", 0.4)
def _(ns: Namespace) -> Call:
    key, split = ns.random.PRNGKey(0), ns.random.split
    return lambda: split(key)


def one_array(name: str) -> Callable[[Namespace], Call]:
    """Prepare eager calls of a function of ``jnp`` on one array."""

    def prepare(ns: Namespace) -> Call:
        x, fun = vector(ns), ns.jnp
        for part in name.split("."):
            fun = getattr(fun, part)
        return lambda: fun(x)

    return prepare


for _name in ("sin", "cumsum", "sort", "nanmean", "median", "cov", "linalg.norm"):
    CASES.timed("eager", f"jnp.{_name}", 1.2)(one_array(_name))


def small(ns: Namespace) -> Callable[[Any], Any]:
    """The function that the transformation benchmarks use."""
    jnp = ns.jnp
    return lambda x: jnp.sum(jnp.tanh(x * 2.0 + 1.0) ** 2)


@CASES.timed("transform", "eager grad", 0.15)
def _(ns: Namespace) -> Call:
    x, f = vector(ns), small(ns)
    return lambda: ns.jax.grad(f)(x)


@CASES.timed("transform", "eager vmap", 0.2)
def _(ns: Namespace) -> Call:
    xs, f = ns.jax.device_put(HOST.reshape(4, 2)), small(ns)
    return lambda: ns.jax.vmap(f)(xs)


@CASES.timed("transform", "eager hessian", 0.15)
def _(ns: Namespace) -> Call:
    x, f = vector(ns), small(ns)
    return lambda: ns.jax.hessian(f)(x)


def dispatch(leaves: int) -> Callable[[Namespace], Call]:
    """Prepare calls of a jitted function from ``leaves`` arrays to as many."""

    def prepare(ns: Namespace) -> Call:
        if leaves == 1:
            x = vector(ns)
            one = ns.jax.jit(lambda x: x + 1)
            return lambda: one(x)
        tree = {f"layer{i}": {"w": vector(ns), "b": vector(ns)} for i in range(leaves // 2)}
        add = ns.jax.jit(lambda tree: ns.jax.tree.map(lambda leaf: leaf + 1, tree))
        return lambda: add(tree)

    return prepare


for _leaves, _budget in {1: 1.2, 10: 1.0, 200: None, 1000: 0.8}.items():
    _what = "1 array" if _leaves == 1 else f"tree of {_leaves}"
    CASES.timed("dispatch", f"jitted call, {_what}", _budget)(dispatch(_leaves))


@CASES.timed("dispatch", "jitted call, static argument", 1.2)
def _(ns: Namespace) -> Call:
    x, scale = vector(ns), ns.jax.jit(lambda x, n: x * n, static_argnums=1)
    return lambda: scale(x, 3)


@CASES.timed("dispatch", "jitted call, static keyword argument", 1.3)
def _(ns: Namespace) -> Call:
    x, scale = vector(ns), ns.jax.jit(lambda x, n: x * n, static_argnames="n")
    return lambda: scale(x, n=3)


@CASES.timed("dispatch", "jitted call, array and tree", 1.3)
def _(ns: Namespace) -> Call:
    x, add = vector(ns), ns.jax.jit(lambda x, tree: x + tree["w"])
    tree = {"w": vector(ns)}
    return lambda: add(x, tree)
