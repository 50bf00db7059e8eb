"""Random bits inside of kernels: a generator whose state passes from step to step."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.extend import AbstractRef, ShapedArray, typeof

from ._typing import ArrayLike, DTypeLike, Shape

U32 = np.dtype(np.uint32)
STATE: Final = AbstractRef(ShapedArray((3,), U32))
"""The type of the state: a key of two words, and the number of draws."""


class NeedsState(Exception):
    """The kernel uses random bits, for which it needs one more scratch memory."""


class _States(threading.local):
    def __init__(self) -> None:
        self.stack: list[Any] = []


_states = _States()


@contextmanager
def state_in(ref: Any) -> Iterator[None]:
    """Use a reference for the state; ``None``: the kernel has none yet."""
    _states.stack.append(ref)
    try:
        yield
    finally:
        _states.stack.pop()


def _state() -> Any:
    if not _states.stack:
        raise RuntimeError("random bits of a kernel are drawn outside of a kernel")
    if _states.stack[-1] is None:
        raise NeedsState
    return _states.stack[-1]


def prng_seed(*seeds: Any) -> None:
    """Seed the generator of the kernel, which the steps share.

    Args:
      seeds: integers or integer scalars, such as a seed and ``program_id(0)``. Equal seeds give
        equal bits.

    Raises:
      RuntimeError: outside of a kernel.
      ValueError: without seeds.
      TypeError: for a seed that is no integer scalar.
    """
    if not seeds:
        raise ValueError("prng_seed takes at least one seed")
    state = _state()
    words = [np.uint32(0x9E3779B9), np.uint32(0)]
    for seed in seeds:
        aval = typeof(seed)
        if aval.shape != () or aval.dtype.kind not in "iu":
            raise TypeError(f"prng_seed takes integer scalars, got {aval}")
        words = threefry(words, [lax.convert_element_type(seed, U32), np.uint32(1)])
    rows = [lax.broadcast(lax.convert_element_type(w, U32), (1,)) for w in (*words, 0)]
    state[...] = lax.concatenate(rows, 0)  # at once: a step that seeds reads no former state


def prng_random_bits(shape: Shape) -> Any:
    """Random bits, an ``int32`` array. Each call draws other bits; `prng_seed` has to come before.

    On CPUs they are those of Threefry-2x32 with 20 rounds (Salmon et al., 2011), which differ from
    the bits of a TPU's generator.

    Args:
      shape: sizes of the axes.

    Raises:
      RuntimeError: outside of a kernel.
    """
    return lax.bitcast_convert_type(_draw(tuple(shape)), np.dtype(np.int32))


def stateful_bits(shape: Shape = (), dtype: DTypeLike = np.uint32) -> Any:
    """Random bits as unsigned integers, from the generator of the kernel.

    Args:
      shape: sizes of the axes.
      dtype: ``uint8``, ``uint16`` or ``uint32``.

    Raises:
      TypeError: for another dtype.
    """
    if np.dtype(dtype) not in (np.uint8, np.uint16, np.uint32):
        raise TypeError(f"stateful_bits draws uint8, uint16 or uint32, got {np.dtype(dtype)}")
    bits = _draw(tuple(shape))
    bits = lax.shift_right_logical(bits, _full(bits, 32 - 8 * np.dtype(dtype).itemsize))
    return lax.convert_element_type(bits, np.dtype(dtype))


def stateful_uniform(
    shape: Shape = (),
    dtype: DTypeLike = np.float32,
    minval: ArrayLike = 0.0,
    maxval: ArrayLike = 1.0,
) -> Any:
    """Uniform numbers in ``[minval, maxval)``, from the generator of the kernel.

    Args:
      shape: sizes of the axes.
      dtype: a floating-point dtype of at most 32 bits.
      minval, maxval: numbers or scalars.

    Raises:
      TypeError: for another dtype.
    """
    dtype = _floating("stateful_uniform", dtype)
    unit = _unit(tuple(shape))
    low, high = (lax.convert_element_type(x, np.float32) for x in (minval, maxval))
    low, width = (lax.broadcast(x, unit.shape) for x in (low, lax.sub(high, low)))
    numbers = lax.max(low, lax.add(lax.mul(unit, width), low))
    return lax.convert_element_type(numbers, dtype)


def stateful_normal(shape: Shape = (), dtype: DTypeLike = np.float32) -> Any:
    """Normally distributed numbers, from the generator of the kernel.

    Arguments and errors are those of `stateful_uniform`.
    """
    dtype = _floating("stateful_normal", dtype)
    unit = _unit(tuple(shape))
    least = np.nextafter(np.float32(-1), np.float32(0))
    symmetric = lax.max(lax.sub(lax.mul(unit, _full(unit, 2)), _full(unit, 1)), _full(unit, least))
    numbers = lax.mul(_full(unit, math.sqrt(2)), lax.erf_inv(symmetric))
    return lax.convert_element_type(numbers, dtype)


def stateful_bernoulli(p: ArrayLike = 0.5, shape: Shape = ()) -> Any:
    """Booleans that are true with probability ``p``, from the generator of the kernel.

    Args:
      p: a number or scalar.
      shape: sizes of the axes.
    """
    unit = _unit(tuple(shape))
    return lax.lt(unit, lax.broadcast(lax.convert_element_type(p, np.float32), unit.shape))


def stochastic_round(x: ArrayLike, random_bits: ArrayLike, *, target_dtype: DTypeLike) -> Any:
    """``float32`` numbers rounded to ``bfloat16``, up with the probability of the remainder.

    Args:
      x: a ``float32`` array.
      random_bits: a ``uint32`` array of its shape, of which the lower 16 bits count.
      target_dtype: ``bfloat16``.

    Raises:
      TypeError: for other dtypes.
      ValueError: for bits of another shape.

    Infinities and NaN are not changed. A number beyond the largest finite one becomes infinite.
    """
    target = np.dtype(target_dtype)
    if typeof(x).dtype != np.float32 or target.name != "bfloat16":
        raise TypeError(
            f"stochastic_round takes float32 and target_dtype=bfloat16, got {typeof(x).dtype} and "
            f"{target}"
        )
    if typeof(random_bits).dtype != U32:
        raise TypeError(f"stochastic_round takes uint32 bits, got {typeof(random_bits).dtype}")
    if x.shape != random_bits.shape:
        raise ValueError(f"{x.shape} numbers need bits of that shape, got {random_bits.shape}")
    bits = lax.bitcast_convert_type(x, U32)
    low = _full(bits, 0xFFFF)
    moved = lax.add(bits, lax.bitwise_and(random_bits, low))
    moved = lax.bitwise_and(moved, lax.bitwise_not(low))
    finite = lax.select(lax.is_finite(x), moved, bits)
    return lax.convert_element_type(lax.bitcast_convert_type(finite, np.dtype(np.float32)), target)


def _floating(name: str, dtype: Any) -> np.dtype[Any]:
    dtype = np.dtype(dtype)
    if dtype.name not in ("float32", "float16", "bfloat16"):
        raise TypeError(f"{name} draws float32, float16 or bfloat16, got {dtype}")
    return dtype


def _full(like: Any, value: Any) -> Any:
    return lax.full(like.shape, value, typeof(like).dtype)


def _unit(shape: tuple[int, ...]) -> Any:
    """Uniform numbers in ``[0, 1)``: 24 random bits."""
    bits = _draw(shape)
    bits = lax.convert_element_type(lax.shift_right_logical(bits, _full(bits, 8)), np.float32)
    return lax.mul(bits, _full(bits, 2.0**-24))


def _draw(shape: tuple[int, ...]) -> Any:
    """The next bits, and the state after them."""
    state = _state()
    size = math.prod(shape)
    key = [lax.broadcast(state[i], (size,)) for i in range(2)]
    draw = state[2]
    bits, _ = threefry(key, [lax.iota(U32, size), lax.broadcast(draw, (size,))])
    state[2] = lax.add(draw, np.uint32(1))
    return lax.reshape(bits, shape)


def threefry(key: list[Any], block: list[Any]) -> list[Any]:
    """Threefry-2x32 with 20 rounds: J. Salmon et al., Parallel random numbers, SC 2011."""

    def const(x: Any, value: int) -> Any:
        return lax.full(np.shape(x), value, U32)

    a, b = key
    keys = [a, b, lax.bitwise_xor(lax.bitwise_xor(a, b), const(a, 0x1BD11BDA))]
    x, y = lax.add(block[0], keys[0]), lax.add(block[1], keys[1])
    for group in range(5):
        for r in _ROTATIONS[group % 2]:
            x = lax.add(x, y)
            left = lax.shift_left(y, const(y, r))
            right = lax.shift_right_logical(y, const(y, 32 - r))
            y = lax.bitwise_xor(x, lax.bitwise_or(left, right))
        x = lax.add(x, keys[(group + 1) % 3])
        y = lax.add(lax.add(y, keys[(group + 2) % 3]), const(y, group + 1))
    return [x, y]


_ROTATIONS: Final = (13, 15, 26, 6), (17, 29, 16, 24)
