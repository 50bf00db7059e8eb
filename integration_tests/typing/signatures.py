"""Transformations keep the signatures of functions; for the type checkers, never run."""

from __future__ import annotations

from typing import Any, assert_type

import numpy as np

import primax
import primax.numpy as jnp
from primax import Array, lax


def scaled(x: Array, n: int = 2) -> Array:
    """A function with a default."""
    return x * n


@primax.jit
def halves(x: Array) -> tuple[Array, int]:
    """A jitted function."""
    return x / 2, 1


@primax.jit(static_argnums=1)
def repeated(x: Array, n: int) -> list[Array]:
    """A jitted function with a static argument."""
    return [x] * n


@primax.custom_vjp
def doubled(x: Array) -> Array:
    """A function with a backward rule."""
    return 2 * x


def check(x: Array) -> None:
    """The types of calls."""
    assert_type(primax.jit(scaled)(x, n=3), Array)
    assert_type(halves(x), tuple[Array, int])
    assert_type(repeated(x, 2), list[Array])
    assert_type(primax.vmap(scaled)(x), Array)
    assert_type(primax.checkpoint(scaled)(x), Array)
    assert_type(doubled(x), Array)
    assert_type(primax.value_and_grad(scaled)(x), tuple[Array, Any])
    assert_type(x.dtype, np.dtype[Any])


def loops(x: Array) -> None:
    """The types of loops and branches."""

    def body(carry: Array, row: Array) -> tuple[Array, Array]:
        return carry + row, carry

    def step(i: int, v: Array) -> Array:
        return v * i

    def negated(v: Array) -> Array:
        return -v

    assert_type(lax.scan(body, x[0], x), tuple[Array, Array])
    out = lax.while_loop(lambda v: v.sum() < 1, scaled, x)
    assert_type(out, Array)
    out = lax.fori_loop(0, 3, step, x)
    assert_type(out, Array)
    out = lax.cond(x.sum() > 0, negated, jnp.sin, x)
    assert_type(out, Array)
    assert_type(lax.associative_scan(lax.add, x), Array)


def mistakes(x: Array) -> None:
    """Calls that the checkers refuse."""
    primax.jit(scaled)(x, m=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    primax.vmap(scaled)()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    primax.grad(scaled)(x, "2")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
