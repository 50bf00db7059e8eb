"""Operations of kernels that GPUs have: inline assembly, an approximation, and hints."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from primax_core import lax, tree_util
from primax_core.dtypes import canonicalize_dtype
from primax_core.extend import (
    Primitive,
    ShapedArray,
    Tracer,
    abstract,
    current_trace,
    expand,
    lower,
    typeof,
)

from ._typing import ArrayLike, Types

inline_asm_p: Final[Primitive] = Primitive("elementwise_inline_asm", multiple_results=True)
approx_tanh_p: Final[Primitive] = Primitive("approx_tanh")
barrier_p: Final[Primitive] = Primitive("debug_barrier", multiple_results=True)
multiple_of_p: Final[Primitive] = Primitive("multiple_of")
max_contiguous_p: Final[Primitive] = Primitive("max_contiguous")


@inline_asm_p.rule(abstract)
def _inline_asm_types(*avals: Any, results: Any, **_: Any) -> list[Any]:
    return list(results)


@inline_asm_p.rule(lower)
def _no_inline_asm(ctx: Any, *_: Any, **__: Any) -> Any:
    raise NotImplementedError(
        f"elementwise_inline_asm is PTX, for kernels on NVIDIA GPUs; the program is compiled for "
        f"{ctx.platform}: write it with operations of lax"
    )


def elementwise_inline_asm(
    asm: str, *, args: Sequence[Any], constraints: str, pack: int, result_shape_dtypes: Types
) -> Any:
    """PTX instructions on each element, in kernels on NVIDIA GPUs.

    Args:
      asm: the instructions; ``$0`` is the first result, the numbers of operands follow those of
        the results.
      args: arrays of one shape.
      constraints: LLVM's constraints of results and operands, such as ``"=r,r"``: ``r`` is a
        register of 32 bits, ``l`` of 64, ``h`` of 16, ``f`` a ``float32``, ``d`` a ``float64``.
      pack: number of elements that the instructions compute at a time; those of less than 32 bits
        are packed into registers.
      result_shape_dtypes: pytree of shapes and dtypes of the results.

    Returns:
      Arrays like ``result_shape_dtypes``.

    Raises:
      TypeError, ValueError: for arguments of other types and shapes, or other constraints.
      NotImplementedError: while lowering for other platforms.
    """
    if not isinstance(asm, str) or not isinstance(constraints, str):
        raise TypeError("elementwise_inline_asm takes asm and constraints as texts")
    pack = operator.index(pack)
    if pack < 1 or pack & (pack - 1):
        raise ValueError(f"pack is a power of two, got {pack}")
    leaves, tree = tree_util.tree_flatten(result_shape_dtypes)
    results = tuple(ShapedArray(tuple(x.shape), canonicalize_dtype(x.dtype)) for x in leaves)
    shapes = {tuple(typeof(x).shape) for x in args} | {r.shape for r in results}
    if len(shapes) != 1:
        raise ValueError(
            f"elementwise_inline_asm takes arrays and results of one shape, got {sorted(shapes)}"
        )
    listed = [c for c in constraints.split(",") if c and not c.strip().startswith("~")]
    n_results = sum(c.strip().startswith("=") for c in listed)
    if n_results < len(results) or len(listed) - n_results < len(args):
        raise ValueError(
            f"constraints is {constraints!r}, with {n_results} results and "
            f"{len(listed) - n_results} operands; there are {len(results)} and {len(args)}"
        )
    outs = inline_asm_p.bind(*args, asm=asm, constraints=constraints, pack=pack, results=results)
    return tree_util.tree_unflatten(tree, outs)


@approx_tanh_p.rule(expand)
def _approx_tanh(x: Any) -> Any:
    return lax.tanh(x)


def approx_tanh(x: ArrayLike) -> Any:
    """``tanh(x)``, on NVIDIA GPUs by an instruction whose error is up to ``2**-11`` of the result.

    Args:
      x: array of floating-point numbers; those of 64 bits are computed by ``tanh``.
    """
    dtype = typeof(x).dtype
    return lax.tanh(x) if dtype == np.float64 else approx_tanh_p.bind(x)


@barrier_p.rule(abstract)
@barrier_p.rule(expand)
def _nothing() -> list[Any]:
    return []


def debug_barrier() -> None:
    """Wait until all threads of a step have come here, on GPUs. Steps on a CPU have one thread."""
    if current_trace() is not None:
        barrier_p.bind()


# Hints


@multiple_of_p.rule(expand)
@max_contiguous_p.rule(expand)
def _same(x: Any, **_: Any) -> Any:
    return x


def multiple_of(x: ArrayLike, values: int | Sequence[int]) -> Any:
    """``x``, for which the caller promises that it is a multiple of ``values``.

    In kernels on GPUs the promise of a computed position allows wider loads. Elsewhere nothing
    follows from it.

    Args:
      x: an integer or an array of integers.
      values: an integer, or one for each axis.

    Raises:
      TypeError: if ``values`` are not integers.
      ValueError: if one is not positive, or their number is not the number of axes.

    >>> multiple_of(16, 8)
    16
    """
    return _hint(multiple_of_p, x, values)


def max_contiguous(x: ArrayLike, values: int | Sequence[int]) -> Any:
    """``x``, for which the caller promises runs of ``values`` consecutive integers.

    Arguments and errors are those of `multiple_of`.
    """
    return _hint(max_contiguous_p, x, values)


def _hint(prim: Primitive, x: Any, values: Any) -> Any:
    listed = values if isinstance(values, (list, tuple)) else [values]
    for value in listed:
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{prim.name} takes integers, got {value!r}")
        if value < 1:
            raise ValueError(f"{prim.name} takes positive integers, got {value}")
    if not isinstance(x, Tracer):
        return x
    rank = max(len(typeof(x).shape), 1)
    if isinstance(values, (list, tuple)) and len(listed) != rank:
        raise ValueError(f"{prim.name} takes {rank} values for {typeof(x)}, got {values!r}")
    numbers = tuple(listed) if len(listed) == rank else tuple(listed) * rank
    return prim.bind(x, values=numbers)
