"""Approximate top-k: the largest and smallest elements, approximated where that is faster."""

from __future__ import annotations

import operator
from typing import Any, Final

import numpy as np

from .._ir.avals import ShapedArray
from .._ir.primitive import Primitive, abstract, batch, jvp, lower
from .._ir.samples import Sample, bf16, f32, samples
from .._ir.symbolic_dims import index, is_static
from .._lower.lazy import hlo, ir, mlir, shaped
from .._runtime.jaxlib_versions import approximate_top_k_size
from .._trace.array import Array
from .._trace.core import typeof
from .._trace.typing import ArrayLike
from .._transform.zeros import Zero
from .comparison import compare
from .elementwise import accepts
from .shapes import canonical_axis
from .sorting import take_along

approx_top_k_p: Final = Primitive("approx_top_k", multiple_results=True)


def approx_max_k(
    operand: ArrayLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> tuple[Array, Array]:
    """The ``k`` largest elements along an axis, in descending order, and their indices.

    The result is exact, except on a TPU. There the elements are divided into bins and each bin
    contributes its largest element, so some elements can be missed (Chern et al., "TPU-KNN: K
    Nearest Neighbor Search at Peak FLOP/s", 2022).

    Args:
      operand: floats.
      k: number of elements to return.
      reduction_dimension: the axis.
      recall_target: expected share of the ``k`` largest elements in the result, in (0, 1].
      reduction_input_size_override: size of the axis from which the number of bins is computed,
        if the operand is a part of a larger array; -1 for the operand's own size.
      aggregate_to_topk: if True, return the ``k`` largest elements; if False, return the result
        of every bin. The number of bins depends on the other arguments.

    Returns:
      A pair of arrays: the elements, and their indices of dtype ``int32``.

    The derivative is that of the selected elements.

    Raises:
      ValueError: if the axis has fewer than ``k`` elements, the operand is not of floating dtype,
        or an argument is out of range.

    >>> [x.tolist() for x in approx_max_k(np.array([1, 3, 2], np.float32), 2)]
    [[3.0, 2.0], [1, 2]]
    """
    return _approximate(
        operand, k, reduction_dimension, recall_target, True, reduction_input_size_override,
        aggregate_to_topk,
    )  # fmt: skip


def approx_min_k(
    operand: ArrayLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> tuple[Array, Array]:
    """The ``k`` smallest elements along an axis, in ascending order, and their indices.

    On TPUs some of the elements may be missed; on other platforms the result is exact.

    Args:
      operand: an array of floating dtype.
      k: number of elements to return.
      reduction_dimension: the axis; a negative one counts from the end.
      recall_target: expected share of the smallest elements that are found, on TPUs.
      reduction_input_size_override: size for which the number of groups is chosen, if the operand
        is a part of a larger array; -1 means the size of the axis.
      aggregate_to_topk: return exactly ``k`` elements, otherwise the candidates of all groups.

    Returns:
      A pair of arrays: the elements, and their indices of dtype ``int32``.

    Raises:
      ValueError: if the operand is not of floating dtype, or ``k`` or the axis is out of range.

    The derivative is that of the selected elements. The algorithm is that of
    :func:`approx_max_k`.

    >>> [x.tolist() for x in approx_min_k(np.array([3.0, 1.0, 2.0]), 2)]
    [[1.0, 2.0], [1, 2]]
    """
    return _approximate(
        operand, k, reduction_dimension, recall_target, False, reduction_input_size_override,
        aggregate_to_topk,
    )  # fmt: skip


def _approximate(operand, k, axis, recall, is_max, size, aggregate) -> tuple[Array, Array]:
    aval = typeof(operand)
    try:
        k = index(k)
    except (TypeError, AttributeError) as e:
        raise TypeError(f"k must be an integer, got {k!r}") from e
    if k <= 0:
        raise ValueError(f"k must be positive, got {k}")
    if not aval.shape:
        raise TypeError(f"approx_top_k operand must have >= 1 dimension, got {aval.shape}")
    values, indices = approx_top_k_p.bind(
        operand, k=k, reduction_dimension=canonical_axis(axis, aval.ndim),
        recall_target=float(recall), is_max_k=is_max,
        reduction_input_size_override=operator.index(size), aggregate_to_topk=bool(aggregate),
    )  # fmt: skip
    return values, indices


@approx_top_k_p.rule(abstract)
def _abstract(
    x, *, k, reduction_dimension, recall_target, is_max_k, reduction_input_size_override,
    aggregate_to_topk,
):  # fmt: skip
    size = x.shape[reduction_dimension]
    override = reduction_input_size_override
    if k > size:
        raise ValueError(f"k must be smaller than the size of reduction_dim {size}, got {k}")
    if not accepts(x.dtype, ("float",)):
        raise ValueError(f"operand must be a floating type, got {x.dtype.name}")
    if not 0 < recall_target <= 1:
        raise ValueError(f"recall_target must be in (0, 1], got {recall_target}")
    if override != -1 and override < size:
        raise ValueError(
            f"reduction_input_size_override must be -1 or at least the size {size} of the axis, "
            f"got {override}"
        )
    n = k
    if not aggregate_to_topk:
        if not is_static((size, k)):
            raise ValueError(
                f"aggregate_to_topk=False needs a static size and k, got {size} and {k}: the "
                "number of bins depends on them"
            )
        n = approximate_top_k_size(size, x.ndim, k, recall_target, override)
    shape = (*x.shape[:reduction_dimension], n, *x.shape[reduction_dimension + 1 :])
    return [x.update(shape=shape), ShapedArray(shape, np.dtype(np.int32))]


@approx_top_k_p.rule(lower)
def _lower(ctx, x, *, reduction_dimension, is_max_k, **_):
    n = ctx.out_avals[0].shape[reduction_dimension]
    axes = list(range(ctx.in_avals[0].ndim))
    axes.append(axes.pop(reduction_dimension))
    x = x if is_max_k else hlo.negate(x)
    shape = (*(ctx.in_avals[0].shape[i] for i in axes[:-1]), n)
    outs = shaped.top_k(hlo.transpose(x, mlir.i64s(axes)), n, shape)
    outs = [hlo.transpose(o, mlir.i64s(np.argsort(axes).tolist())) for o in outs]
    return outs if is_max_k else [hlo.negate(outs[0]), outs[1]]


@approx_top_k_p.rule(lower.on("tpu"))
def _lower_tpu(
    ctx, x, *, k, reduction_dimension, recall_target, is_max_k, reduction_input_size_override,
    aggregate_to_topk,
):  # fmt: skip
    aval, index_dtype = ctx.in_avals[0], ctx.out_avals[1].dtype
    worst = np.asarray(-np.inf if is_max_k else np.inf).astype(aval.dtype)
    iota = hlo.iota(mlir.tensor_type(aval.shape, index_dtype), mlir.i64(reduction_dimension))
    options = {
        "top_k": mlir.i64(k),
        "reduction_dim": mlir.i64(reduction_dimension),
        "recall_target": ir.FloatAttr.get(ir.F32Type.get(), recall_target),
        "aggregate_to_topk": ir.BoolAttr.get(aggregate_to_topk),
        "reduction_input_size_override": mlir.i64(reduction_input_size_override),
    }
    call = hlo.CustomCallOp(
        [mlir.type_of(a) for a in ctx.out_avals],
        [x, iota, mlir.constant(worst), mlir.constant(np.asarray(-1, index_dtype))],
        call_target_name="ApproxTopK",
        called_computations=ir.ArrayAttr.get([_comparator(ctx, aval.dtype, index_dtype, is_max_k)]),
    )
    call.operation.attributes["mhlo.backend_config"] = ir.DictAttr.get(options)
    return list(call.results)


def _comparator(ctx, dtype: Any, index_dtype: Any, is_max_k: bool) -> Any:
    """The symbol of the comparator function of (element, index) pairs."""
    direction = "GT" if is_max_k else "LT"
    key = ("approx_top_k", dtype, direction)
    function = ctx.functions.get(key)
    if function is None:
        scalars = [mlir.tensor_type((), d) for d in (dtype, dtype, index_dtype, index_dtype)]
        function = ctx.functions[key] = mlir.func.FuncOp(
            ctx.unique(f"approx_top_k_{direction}"),
            (scalars, [mlir.tensor_type((), np.dtype(np.bool_))]),
            ip=ir.InsertionPoint(ctx.module.body),
            visibility="private",
        )
        x, y, *_ = function.add_entry_block().arguments
        with ir.InsertionPoint(function.entry_block):
            mlir.func.ReturnOp([compare(direction, x, y, dtype)])
    return ir.FlatSymbolRefAttr.get(function.name.value)


@approx_top_k_p.rule(jvp)
def _jvp(primals, tangents, *, reduction_dimension, **params):
    (x,), (t,) = primals, tangents
    values, indices = approx_top_k_p.bind(x, reduction_dimension=reduction_dimension, **params)
    none = Zero.like(indices)
    if type(t) is Zero:
        return [values, indices], [Zero.like(values), none]
    return [values, indices], [take_along(t, indices, reduction_dimension), none]


@approx_top_k_p.rule(batch)
def _batch(axis, args, dims, *, reduction_dimension, **params):
    (dim,) = dims
    at = reduction_dimension + (reduction_dimension >= dim)
    outs = approx_top_k_p.bind(args[0], reduction_dimension=at, **params)
    return outs, [dim, dim]


@approx_top_k_p.rule(samples)
def _samples():
    options = {
        "k": 2, "reduction_dimension": 0, "recall_target": 0.95, "is_max_k": True,
        "reduction_input_size_override": -1, "aggregate_to_topk": True,
    }  # fmt: skip
    yield Sample(f32(5), **options)
    yield Sample(f32(3, 4), **{**options, "reduction_dimension": 1, "is_max_k": False})
    yield Sample(f32(2, 3), **{**options, "reduction_dimension": 1, "aggregate_to_topk": False})
    yield Sample(bf16(4, make=_apart), **options)


def _apart(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Distinct elements, whose order does not depend on rounding."""
    return generator.permutation(np.prod(shape, dtype=int)).reshape(shape)
