"""Import several transformation libraries in a given order, compute with each, and print JSON.

``python compute.py primax_core,jax,acme_core``: the libraries share the names ``jit``, ``grad``,
``vmap``, ``lax`` and ``tree_util``, so one program runs on all. During each step of Primax,
jaxlib's process-wide state is monitored.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import sys
from collections.abc import Callable
from typing import Any

import jaxlib_state
import ml_dtypes
import numpy as np


class Pair:
    """A container that each library registers separately as a pytree."""

    def __init__(self, left: Any, right: Any) -> None:
        self.left, self.right = left, right


def register(ns: Any) -> type[Pair]:
    """Create a class like Pair that only ``ns`` registers."""
    cls: type[Pair] = type("Pair", (Pair,), {})

    def flatten(pair: Pair) -> tuple[tuple[Any, Any], None]:
        return (pair.left, pair.right), None

    ns.tree_util.register_pytree_node(cls, flatten, lambda _, children: cls(*children))
    return cls


def program(ns: Any) -> dict[str, Callable[[], Any]]:
    """The computation, the same for each library."""
    lax = ns.lax
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    v = x[0]

    def loss(w: Any) -> Any:
        h = lax.tanh(lax.dot(w, v))
        return lax.dot(h, h)

    def swing(a: Any) -> Any:
        return lax.dot(lax.sin(a), a)

    def sum_of_parts(pair: Pair) -> Any:
        return pair.left + 2 * pair.right

    pair = register(ns)
    return {
        "eager": lambda: lax.add(lax.sin(x), x),
        "lapack": lambda: lax.linalg.lu(x[:, :3])[0],
        "compiled lapack": lambda: ns.jit(lambda a: lax.linalg.qr(a)[1])(x),
        "bfloat16": lambda: lax.mul(x.astype(ml_dtypes.bfloat16), x.astype(ml_dtypes.bfloat16)),
        "jit": lambda: ns.jit(loss)(x),
        "grad": lambda: ns.grad(loss)(x),
        "jit of grad": lambda: ns.jit(ns.grad(loss))(x),
        "vmap of grad": lambda: ns.vmap(ns.grad(swing))(x),
        "hessian": lambda: ns.hessian(swing)(v),
        "loop": lambda: ns.jit(lambda c: lax.fori_loop(0, 5, lambda i, c: c * 1.5 + i, c))(v),
        "tree": lambda: ns.jit(sum_of_parts)(pair(x, x)),
    }


def results(ns: Any) -> dict[str, Any]:
    """Return each result of ``program`` as nested lists with its dtype."""
    out = {}
    for name, thunk in program(ns).items():
        value = thunk()
        array = np.asarray(value)
        out[name] = [str(value.dtype), array.astype(np.float64).tolist()]
    return out


def step(name: str) -> dict[str, Any]:
    """Import the library ``name`` and compute with it."""
    watched = contextlib.nullcontext() if name == "jax" else jaxlib_state.untouched(name)
    with watched:
        ns = importlib.import_module(name)
        importlib.import_module(f"{name}.lax")
        importlib.import_module(f"{name}.tree_util")
        return results(ns)


def main() -> None:
    """Compute with each library after its import, then with all in reverse order."""
    order = sys.argv[1].split(",")
    jaxlib_state.watch()
    jaxlib_state.self_test()
    rounds = [{name: step(name) for name in order} for _ in range(2)]
    rounds.append({name: step(name) for name in reversed(order)})
    if not jaxlib_state.is_default_leaf(Pair(1, 2)):
        raise AssertionError("a class that only we know is a node of jax's registry")
    if "jax" not in order and "jax" in sys.modules:
        raise AssertionError("jax was imported unexpectedly")
    print(json.dumps(rounds))


if __name__ == "__main__":
    main()
