"""Batched matrix algebra for the rules of the decompositions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from ..._ir import dtypes
from ..._ir.avals import ShapedArray
from ..._ir.element_types import DTypeLike
from ..._ir.primitive import Primitive, batch
from ..._trace.core import typeof
from ..._trace.typing import ArrayLike
from ..._transform.batching import move_axis
from ..arithmetic import add, mul
from ..broadcasting import broadcasted_iota
from ..comparison import eq, ge
from ..contracting import dot_general
from ..conversion import convert
from ..elementwise import broadcast_in_dim, full_like
from ..gathering import gather
from ..index_numbers import GatherDimensionNumbers, GatherScatterMode
from ..magnitude import conj, real
from ..permuting import transpose
from ..precision import Precision
from ..reducing import reduce_sum
from ..reshaping import expand_dims
from ..selection import select_n
from ..slicing import pad, slice_in_dim

# Types

REAL: Final = (np.dtype(np.float32), np.dtype(np.float64))
NUMBERS: Final = (*REAL, np.dtype(np.complex64), np.dtype(np.complex128))


def check_operands(
    name: str, avals: Sequence[ShapedArray], ranks: Sequence[int], accepted: Sequence[Any] = NUMBERS
) -> None:
    """Check that operands have accepted and equal dtypes, and enough axes.

    Raises:
      TypeError: if not, with the index of the operand.
    """
    for i, (a, rank) in enumerate(zip(avals, ranks)):
        if a.dtype not in accepted:
            raise TypeError(
                f"{name} does not accept dtype {a.dtype.name} at position {i}. Accepted dtypes at "
                f"position {i} are {', '.join(d.name for d in accepted)}."
            )
        check_rank(name, a, rank, i)
    if any(a.dtype != avals[0].dtype for a in avals):
        raise TypeError(
            f"lax.{name} requires arguments to have the same dtypes, got "
            f"{', '.join(a.dtype.name for a in avals)}."
        )


def check_rank(name: str, aval: ShapedArray, rank: int, position: int = 0) -> None:
    """Raise TypeError if an operand has too few axes."""
    if aval.ndim < rank:
        raise TypeError(
            f"Input {position} to {name} must have rank at least {rank}, but got shape={aval.shape}"
        )


def check_batches(name: str, avals: Sequence[ShapedArray], ranks: Sequence[int]) -> None:
    """Raise TypeError if batch axes differ; ``ranks`` are the numbers of axes of one example."""
    stacks = [a.shape[: a.ndim - r] for a, r in zip(avals, ranks)]
    if any(len(s) != len(stacks[0]) for s in stacks):
        raise TypeError(
            f"All inputs to {name} must have the same number of batch dimensions, but got "
            f"{[len(s) for s in stacks]} batch dimensions for the inputs."
        )
    if any(s != stacks[0] for s in stacks):
        raise ValueError(
            f"All inputs to {name} must have the same batch dimensions, but got "
            f"{', '.join(map(str, stacks))}."
        )


def check_square(name: str, aval: ShapedArray, what: str = "input") -> int:
    """The size of a square matrix.

    Raises:
      ValueError: if it is not square.
    """
    m, n = aval.shape[-2:]
    if m != n:
        raise ValueError(f"The {what} to {name} must be a square matrix. Got shape {aval.shape}.")
    return n


def real_dtype(dtype: DTypeLike) -> Any:
    """The dtype of the parts of a complex dtype; a real dtype is returned unchanged."""
    return np.dtype(f"f{dtype.itemsize // 2}") if is_complex(dtype) else dtype


def complex_dtype(dtype: DTypeLike) -> Any:
    """The complex dtype with parts of a real dtype; a complex dtype is returned unchanged."""
    return dtype if is_complex(dtype) else np.dtype(f"c{dtype.itemsize * 2}")


def is_complex(dtype: DTypeLike) -> bool:
    """Return True if a dtype is complex."""
    return dtypes.issubdtype(dtype, np.complexfloating)


# Algebra


def matmul(x: ArrayLike, y: ArrayLike) -> Any:
    """Batched matrix products, at full precision."""
    n = typeof(x).ndim
    stack = tuple(range(n - 2))
    return dot_general(x, y, (((n - 1,), (n - 2,)), (stack, stack)), Precision.HIGHEST)


def matvec(x: ArrayLike, y: ArrayLike) -> Any:
    """Batched matrix-vector products, at full precision."""
    n = typeof(x).ndim
    stack = tuple(range(n - 2))
    return dot_general(x, y, (((n - 1,), (n - 2,)), (stack, stack)), Precision.HIGHEST)


def transposed(x: ArrayLike) -> Any:
    """The transposed matrices."""
    n = typeof(x).ndim
    return transpose(x, (*range(n - 2), n - 1, n - 2))


def conjugate(x: ArrayLike) -> Any:
    """The complex conjugate; real arrays are returned unchanged."""
    return conj(x) if is_complex(typeof(x).dtype) else x


def adjoint(x: ArrayLike) -> Any:
    """The conjugate transposes."""
    return conjugate(transposed(x))


def real_part(x: ArrayLike) -> Any:
    """The real part; real arrays are returned unchanged."""
    return real(x) if is_complex(typeof(x).dtype) else x


def as_row(w: ArrayLike) -> Any:
    """Vectors as matrices of one row, which scale columns."""
    return expand_dims(w, (typeof(w).ndim - 1,))


def as_column(w: ArrayLike) -> Any:
    """Vectors as matrices of one column, which scale rows."""
    return expand_dims(w, (typeof(w).ndim,))


def scale_columns(x: ArrayLike, w: ArrayLike) -> Any:
    """Each column times an element of ``w``, which may be real if ``x`` is complex."""
    return mul(x, as_row(convert(w, typeof(x).dtype)))


def lower_mask(shape: Sequence[int], k: int = 0) -> Any:
    """True on and below the ``k``-th diagonal above the main diagonal."""
    return over_stack(_band(shape, k, ge), shape)


def eye_mask(shape: Sequence[int]) -> Any:
    """True on the main diagonal."""
    return over_stack(_band(shape, 0, eq), shape)


def _band(shape: Sequence[int], k: int, compare: Callable) -> Any:
    size = tuple(shape[-2:])
    row = add(broadcasted_iota(np.int32, size, 0), np.int32(k))
    return compare(row, broadcasted_iota(np.int32, size, 1))


def over_stack(x: ArrayLike, shape: Sequence[int]) -> Any:
    """One matrix, broadcast to a stack of a shape."""
    n = len(shape)
    return x if n == 2 else broadcast_in_dim(x, tuple(shape), (n - 2, n - 1))


def tril(x: ArrayLike, k: int = 0) -> Any:
    """The elements on and below a diagonal, zero elsewhere."""
    return select_n(lower_mask(typeof(x).shape, k), full_like(x, 0), x)


def triu(x: ArrayLike, k: int = 0) -> Any:
    """The elements on and above a diagonal, zero elsewhere."""
    return select_n(lower_mask(typeof(x).shape, k - 1), x, full_like(x, 0))


def eye_like(x: ArrayLike) -> Any:
    """Ones on the main diagonal, with the shape and dtype of ``x``."""
    return convert(eye_mask(typeof(x).shape), typeof(x).dtype)


def diagonal(x: ArrayLike) -> Any:
    """The elements on the main diagonal of square matrices."""
    shape = typeof(x).shape
    return reduce_sum(select_n(eye_mask(shape), full_like(x, 0), x), (len(shape) - 1,))


def rows(x: ArrayLike, start: int, stop: int) -> Any:
    """Some rows of matrices."""
    return slice_in_dim(x, start, stop, 1, typeof(x).ndim - 2)


def columns(x: ArrayLike, start: int, stop: int) -> Any:
    """Some columns of matrices."""
    return slice_in_dim(x, start, stop, 1, typeof(x).ndim - 1)


def padded(x: ArrayLike, m: int, n: int) -> Any:
    """Matrices padded to a size with zeros."""
    shape = typeof(x).shape
    if shape[-2:] == (m, n):
        return x
    config = [(0, 0, 0)] * (len(shape) - 2) + [(0, m - shape[-2], 0), (0, n - shape[-1], 0)]
    return pad(x, np.zeros((), typeof(x).dtype)[()], config)


def taken_rows(x: ArrayLike, order: ArrayLike) -> Any:
    """The rows at indices that are known to be in bounds."""
    *stack, _, n = typeof(x).shape
    axes = tuple(range(len(stack)))
    row = len(stack)
    numbers = GatherDimensionNumbers((row + 1,), (row,), (row,), axes, axes)
    # A slice of an empty stack has size zero along the empty axis.
    sizes = (*[min(d, 1) for d in stack], min(1, typeof(x).shape[-2]), n)
    mode = GatherScatterMode.PROMISE_IN_BOUNDS
    return gather(x, expand_dims(order, (row + 1,)), numbers, sizes, mode=mode)


def nan_where_failed(info: ArrayLike, *outs: Any) -> list[Any]:
    """Results of LAPACK, NaN where the status code reports a failure."""
    ok = eq(info, full_like(info, 0))
    depth = typeof(info).ndim
    masked = []
    for out in outs:
        shape = typeof(out).shape
        mask = broadcast_in_dim(ok, shape, tuple(range(depth)))
        masked.append(select_n(mask, full_like(out, np.nan), out))
    return masked


# Batching


def batched_in_front(prim: Primitive) -> None:
    """Define the batching of a primitive on stacks: the mapped axis becomes the first axis."""

    @prim.rule(batch)
    def _batch(axis, args, dims, **params):
        moved = [move_axis(x, d, 0, axis.size) for x, d in zip(args, dims)]
        outs = prim.bind(*moved, **params)
        return outs, [0] * len(outs) if prim.multiple_results else 0
