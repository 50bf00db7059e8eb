"""Matrix units of a TPU, one instruction at a time: staged operands, accumulators and a queue.

Here the registers are memory of the kernel, and the instructions are products and copies on all
platforms.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from primax_core import dtypes, lax
from primax_core.extend import typeof

from ._memory_spaces import memory_ref
from ._on_demand import request, requested
from ._semaphores import SemaphoreType
from ._tpu_memory import ACC, VMEM, accumulators
from ._typing import ArrayLike, DTypeLike, Reference

FIFO_LENGTH: Final = 16
"""The most results in a queue."""


def matmul_push_rhs(
    rhs: ArrayLike, staging_register: int, mxu_index: int, *, transpose: bool = False
) -> None:
    """Put the right operand of products into a staging register of a matrix unit.

    Args:
      rhs: matrix of shape ``(k, n)``.
      staging_register, mxu_index: numbers of the register and of the unit.
      transpose: whether ``rhs`` has the shape ``(n, k)``.

    Raises:
      RuntimeError: outside of a kernel.
      ValueError: for an array that is no matrix, or one of another shape or dtype than the register
        has from an earlier call.

    >>> from primax_core import ShapeDtypeStruct
    >>> from primax_kernels import pallas_call
    >>> from primax_kernels.tpu import ACC
    >>> def kernel(x, y, out, acc):
    ...     matmul_push_rhs(y[...], 0, 0)
    ...     matmul_acc_lhs(acc, x[...], load_staged_rhs=0)
    ...     matmul_acc_lhs(acc, x[...])
    ...     out[...] = matmul_pop(acc)
    >>> x, y = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)
    >>> out = ShapeDtypeStruct((2, 4), np.float32)
    >>> pallas_call(kernel, out, scratch_shapes=[ACC(0)((2, 4), np.float32)])(x, y)
    Array([[6., 6., 6., 6.],
           [6., 6., 6., 6.]], dtype=float32)
    """
    _matrix("matmul_push_rhs", "rhs", rhs)
    if transpose:
        rhs = lax.transpose(rhs, (1, 0))
    unit = _number("mxu_index", mxu_index)
    tag = "staged", unit, _number("staging_register", staging_register)
    _memory("matmul_push_rhs", tag, rhs.shape, typeof(rhs).dtype)[...] = rhs


def matmul_acc_lhs(acc: Reference, lhs: ArrayLike, load_staged_rhs: int | None = None) -> None:
    """Add a product to an accumulator.

    Args:
      acc: a reference in the memory `ACC`, or a view of one; its unit makes the product.
      lhs: matrix of shape ``(m, k)``.
      load_staged_rhs: the staging register whose matrix becomes the right operand first; by default
        the unit keeps its operand.

    Raises:
      TypeError: for a reference in another memory.
      RuntimeError: without a right operand: `matmul_push_rhs` comes before, in the same kernel.
      ValueError: for shapes that do not match.
    """
    terms = _product("matmul_acc_lhs", lhs, _unit_of(acc), load_staged_rhs)
    if tuple(acc.shape) != terms.shape:
        raise ValueError(
            f"matmul_acc_lhs: the product has the shape {terms.shape}, the accumulator "
            f"{tuple(acc.shape)}"
        )
    _write(acc, lax.add(_read(acc), lax.convert_element_type(terms, acc.dtype)))


def matmul_pop(acc: Reference) -> Any:
    """The sums in an accumulator, which is 0 afterwards.

    Args:
      acc: a reference in the memory `ACC`, or a view of one.

    Raises:
      TypeError: for a reference in another memory.
    """
    _unit_of(acc)
    sums = _read(acc)
    _write(acc, lax.full(sums.shape, 0, sums.dtype))
    return sums


def matmul_lhs_fifo(lhs: ArrayLike, mxu_index: int, *, load_staged_rhs: int | None = None) -> None:
    """Put a product at the end of the queue of a matrix unit.

    Args:
      lhs: matrix of shape ``(m, k)``.
      mxu_index: the number of the unit.
      load_staged_rhs: see `matmul_acc_lhs`.

    Raises the errors of `matmul_acc_lhs`, and ValueError for a product of another shape than
    those before. The queue has 16 results: one more replaces the oldest. `matmul_pop_fifo` has to
    take all of them before the kernel ends.
    """
    mxu = _number("mxu_index", mxu_index)
    terms = _product("matmul_lhs_fifo", lhs, mxu, load_staged_rhs)
    queue = _memory("matmul_lhs_fifo", ("queue", mxu), (FIFO_LENGTH, *terms.shape), terms.dtype)
    head, length = _counts("matmul_lhs_fifo", mxu)
    n = length[...]
    queue[lax.rem(lax.add(head[...], n), np.int32(FIFO_LENGTH))] = terms
    length[...] = lax.add(n, np.int32(1))


def matmul_pop_fifo(shape: tuple[int, int], dtype: DTypeLike, mxu_index: int) -> Any:
    """The result at the head of the queue of a matrix unit, which is removed.

    Args:
      shape: its shape, that of the products of `matmul_lhs_fifo`.
      dtype: its dtype: ``int32`` for integers, ``float32`` for floats, or one to convert it to.
      mxu_index: the number of the unit.

    Raises:
      RuntimeError: outside of a kernel.
      ValueError: for another shape.
    """
    mxu, dtype = _number("mxu_index", mxu_index), np.dtype(dtype)
    wide = _sums_dtype(dtype)
    queue = _memory("matmul_pop_fifo", ("queue", mxu), (FIFO_LENGTH, *shape), wide)
    head, length = _counts("matmul_pop_fifo", mxu)
    number, n = lax.rem(head[...], np.int32(FIFO_LENGTH)), lax.sub(length[...], np.int32(1))
    result = queue[number]
    length[...] = n
    # An empty queue is as at the beginning: the checks find results that are left.
    head[...] = lax.select(lax.eq(n, np.int32(0)), np.int32(0), lax.add(number, np.int32(1)))
    return lax.convert_element_type(result, dtype)


def _product(function: str, lhs: Any, mxu: int, load_staged_rhs: int | None) -> Any:
    """The product of a matrix and the right operand of a unit, which may be loaded first."""
    _matrix(function, "lhs", lhs)
    if load_staged_rhs is not None:
        staged = _known(function, ("staged", mxu, _number("load_staged_rhs", load_staged_rhs)))
        value = staged[...]
        _memory(function, ("rhs", mxu), value.shape, value.dtype)[...] = value
    rhs = _known(function, ("rhs", mxu))[...]
    if lhs.shape[1] != rhs.shape[0]:
        raise ValueError(
            f"{function}: lhs has the shape {lhs.shape} and the right operand {rhs.shape}: the "
            "last axis of lhs is the first one of the right operand"
        )
    dims = (((1,), (0,)), ((), ()))
    wide = _sums_dtype(typeof(lhs).dtype)
    rhs = lax.convert_element_type(rhs, typeof(lhs).dtype)
    return lax.dot_general(lhs, rhs, dims, preferred_element_type=wide)


def _sums_dtype(dtype: Any) -> np.dtype[Any]:
    """The dtype of sums of products."""
    return np.dtype(np.int32 if dtypes.issubdtype(dtype, np.integer) else np.float32)


def _matrix(function: str, name: str, x: Any) -> None:
    if not hasattr(x, "shape") or len(x.shape) != 2:
        raise ValueError(
            f"{function}: {name} is a matrix, got {getattr(x, 'shape', type(x).__name__)}"
        )


def _number(name: str, value: Any) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__") or value.__index__() < 0:
        raise ValueError(f"{name} is a number known while tracing, not negative, got {value!r}")
    return int(value.__index__())


def _memory(function: str, tag: tuple[Any, ...], shape: tuple[int, ...], dtype: Any) -> Any:
    """The memory of a register, which all steps share."""
    ref = request(function, memory_ref(shape, dtype, VMEM).get_ref_aval(), tag)
    if tuple(ref.shape) != tuple(shape) or ref.dtype != np.dtype(dtype):
        raise ValueError(
            f"{function}: {tag[0]} of unit {tag[1]} is {np.dtype(dtype)}{list(shape)}, and was "
            f"{np.dtype(ref.dtype)}{list(ref.shape)} before; a kernel has one shape for it"
        )  # fmt: skip
    return ref


def _known(function: str, tag: tuple[Any, ...]) -> Any:
    ref = requested(tag)
    if ref is None:
        raise RuntimeError(
            f"{function}: unit {tag[1]} has no right operand: matmul_push_rhs puts one into a "
            "staging register, and load_staged_rhs loads it, before in the kernel"
        )
    return ref


def _counts(function: str, mxu: int) -> list[Any]:
    """The number of the first result in a queue, and how many it has; both begin with 0."""
    aval = SemaphoreType.REGULAR.get_ref_aval()
    return [request(function, aval, (name, mxu)) for name in ("head", "length")]


def _unit_of(acc: Any) -> int:
    base = getattr(acc, "base", acc)
    space = getattr(getattr(base, "aval", None), "memory_space", None)
    space = accumulators.get(base) if space is None and accumulators else space
    if not isinstance(space, ACC):
        raise TypeError(
            f"an accumulator is a reference in the memory ACC(mxu_id), got one in {space}: write "
            "ACC(0)(shape, dtype) in scratch_shapes"
        )
    return space.mxu_id


def _read(ref: Any) -> Any:
    return ref.get() if hasattr(ref, "base") else ref[...]


def _write(ref: Any, value: Any) -> None:
    if hasattr(ref, "base"):
        ref.set(value)
    else:
        ref[...] = value
