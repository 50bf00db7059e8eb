"""A user program over the core alone, for the type checkers; never run."""

from __future__ import annotations

import numpy as np

import primax_core
from primax_core import Array, lax, typing


def energy(x: primax_core.Array) -> primax_core.Array:
    """A scalar function of one array."""
    return lax.dot(lax.sin(x), x)


def derivative(values: np.ndarray) -> np.ndarray:
    """The compiled gradient of ``energy``."""
    x = primax_core.device_put(values)
    return np.asarray(primax_core.jit(primax_core.grad(energy))(x))


def filled(shape: typing.Shape, value: typing.ArrayLike, dtype: typing.DTypeLike) -> Array:
    """A user's function that takes what ``lax`` takes."""
    return lax.add(lax.full(shape, value, dtype), lax.full_like(value, 0))


def calls() -> list[Array]:
    """Accepted shapes, operands and dtypes."""
    x = filled((2, 3), 1.0, "float32")
    y = filled(x.shape, np.float32(1), np.float32)
    return [x, y, filled([2], x, x.dtype), lax.iota(int, 3), lax.mul(np.ones(3), 2)]


def refused() -> None:
    """Operands that are no arrays; the checkers report them."""
    lax.sin("x")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    lax.add([1.0], 2.0)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    lax.full(("a",), 1.0)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
