"""Linear recurrences."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from primax_core import ShapeDtypeStruct, ds, jit, lax
from primax_core.extend import typeof

from .._block_specs import BlockSpec
from .._call import pallas_call
from .._control import when
from .._grid import program_id
from .._helpers import cdiv
from .._typing import ArrayLike
from ..tpu import VMEM
from ._backward_kernels import with_backward
from ._blocks import recurrence_block
from ._common import accumulator, axis_in, block_sizes, cast, filled, operand, same_dtype

_NAME = "linear_recurrence"


class _Config(NamedTuple):
    axis: int
    reverse: bool
    block: tuple[int, ...]


def linear_recurrence(
    a: ArrayLike,
    b: ArrayLike,
    initial: ArrayLike | None = None,
    *,
    axis: int = -2,
    reverse: bool = False,
    block: tuple[int | None, int | None] | None = None,
) -> Any:
    """Solution of ``h[t] = a[t] * h[t - 1] + b[t]`` along an axis, element by element.

    For gated linear recurrences and diagonal state space models (Martin and Cundy, 2018). Each
    element of the operands is read once. States are ``float32`` for 16-bit floats.

    Args:
      a: factors, an array of floats.
      b: terms of the same shape and dtype.
      initial: state before the first position, of the shape of ``a`` without the axis; default 0.
      axis: axis of the positions.
      reverse: whether to go from the last position to the first.
      block: positions and elements of a step; ``None`` stands for a default of the platform.

    Returns:
      The states ``h``, with the shape and dtype of ``a``.

    Raises:
      TypeError, ValueError: for other dtypes and shapes, and axes that the arrays do not have.

    The reverse derivative is the same recurrence in the other direction. Forward mode runs
    operations on arrays.

    >>> a, b = np.full(3, 0.5, np.float32), np.array([8, 0, 0], np.float32)
    >>> linear_recurrence(a, b, axis=0)
    Array([8., 4., 2.], dtype=float32)
    """
    x, y = operand(_NAME, "a", a), operand(_NAME, "b", b)
    same_dtype(_NAME, a=x, b=y)
    if x.shape != y.shape:
        raise ValueError(f"{_NAME}: a and b have different shapes {x.shape} and {y.shape}")
    axis = axis_in(_NAME, axis, x.ndim)
    rest = (*x.shape[:axis], *x.shape[axis + 1 :])
    if initial is not None:
        start = operand(_NAME, "initial", initial)
        same_dtype(_NAME, a=x, initial=start)
        if start.shape != rest:
            raise ValueError(
                f"{_NAME}: initial has the shape {rest}, that of a without axis {axis}, got "
                f"{start.shape}"
            )
    length, channels = x.shape[axis], math.prod(x.shape[axis + 1 :])
    parts, default = ("positions", "elements"), recurrence_block(length, channels)
    sizes = block_sizes(_NAME, "block", block, parts, default, (length, channels))
    return _states(_Config(axis, bool(reverse), sizes), a, b, initial)


@functools.partial(jit, static_argnums=0)
def _states(config: _Config, a: Any, b: Any, initial: Any) -> Any:
    if not a.size:
        return a
    axis = config.axis
    outer, inner = math.prod(a.shape[:axis]), math.prod(a.shape[axis + 1 :])
    shape = outer, a.shape[axis], inner
    start = (outer, 1, inner)
    first = filled(start, 0, typeof(a).dtype) if initial is None else lax.reshape(initial, start)
    flat = (lax.reshape(x, shape) for x in (a, b))
    return lax.reshape(_recurrence(config, *flat, first), a.shape)


def _recurrence_of_arrays(config: _Config, a: Any, b: Any, initial: Any) -> Any:
    outer, length, inner = a.shape
    size, channels = config.block
    dtype, wide, steps = typeof(a).dtype, accumulator(typeof(a).dtype), cdiv(length, size)

    def number(step: Any) -> Any:
        """Number of the block along the positions."""
        return np.int32(steps - 1) - step if config.reverse else step

    def kernel(a_ref: Any, b_ref: Any, initial_ref: Any, out: Any, state: Any) -> None:
        step = program_id(2)

        @when(step == 0)
        def _start() -> None:
            state[...] = cast(initial_ref[...], wide)

        def body(t: Any, h: Any) -> Any:
            i = np.int32(size - 1) - t if config.reverse else t
            factor, term = (cast(r[ds(i, 1), :], wide) for r in (a_ref, b_ref))
            if length % size:  # positions beyond the end come first in reverse
                beyond = number(step) * np.int32(size) + i >= np.int32(length)
                beyond = lax.broadcast_in_dim(beyond, factor.shape, ())
                factor = lax.select(beyond, filled(factor.shape, 1, wide), factor)
                term = lax.select(beyond, filled(term.shape, 0, wide), term)
            h = factor * h + term
            out[ds(i, 1), :] = cast(h, dtype)
            return h

        state[...] = lax.fori_loop(np.int32(0), np.int32(size), body, state[...])

    spec = BlockSpec((None, size, channels), lambda o, c, t: (o, number(t), c))
    return pallas_call(
        kernel, ShapeDtypeStruct(a.shape, dtype), name=_NAME,
        grid=(outer, cdiv(inner, channels), steps),
        in_specs=[spec, spec, BlockSpec((None, 1, channels), lambda o, c, t: (o, 0, c))],
        out_specs=spec, scratch_shapes=[VMEM((1, channels), wide)],
    )(a, b, initial)  # fmt: skip


def _forward(config: _Config, a: Any, b: Any, initial: Any) -> tuple[Any, Any]:
    states = _recurrence(config, a, b, initial)
    return states, (a, initial, states)


def _backward(config: _Config, residuals: Any, ct: Any) -> tuple[Any, Any, Any]:
    """The cotangents ``λ[t] = ct[t] + a[t + 1] λ[t + 1]`` of the terms, and those of the rest."""
    a, initial, states = residuals
    outer, length, inner = a.shape
    zeros = filled((outer, 1, inner), 0, typeof(a).dtype)

    def moved(x: Any, end: Any, ahead: bool) -> Any:
        """The next or the former position in the direction of the recurrence."""
        if ahead != config.reverse:
            return lax.concatenate([lax.slice_in_dim(x, 1, length, axis=1), end], 1)
        return lax.concatenate([end, lax.slice_in_dim(x, 0, length - 1, axis=1)], 1)

    backwards = config._replace(reverse=not config.reverse)
    terms = _recurrence(backwards, moved(a, zeros, True), ct, zeros)
    factors = terms * moved(states, initial, False)
    first = length - 1 if config.reverse else 0
    start = lax.slice_in_dim(a * terms, first, first + 1, axis=1)
    return factors, terms, start


_recurrence = with_backward(_recurrence_of_arrays, _forward, _backward)
