"""Reductions over sliding windows.

A window has five parameters, each with an element for each axis of the array: its size, the stride
between windows, the padding of the array, the dilation of the array, and the dilation of the
window.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from .._base import pytree
from .._base.pytree import PyTree
from .._ir.avals import ShapedArray
from .._ir.primitive import Primitive, abstract, batch, jvp, lower, transpose
from .._ir.samples import Sample, bf16, f32, i32, samples
from .._ir.symbolic_dims import is_static, max_dim
from .._lower.lazy import hlo, ir, mlir, shaped
from .._trace.array import Array
from .._trace.core import Tracer, typeof
from .._trace.typing import ArrayLike, Shape
from .._transform.batching import batch_of, move_axis
from .._transform.jvp import jvp_of
from .._transform.zeros import Zero, add_tangents
from . import arithmetic as b
from .bitwise import bitwise_and, bitwise_or
from .broadcasting import broadcast_in_dim, full_like
from .comparison import compare, eq, ge_p, le_p
from .conv_numbers import dilated, int_pairs, is_pairs, padtype_to_pads, strided
from .elementwise import accepts, check_kind, linear
from .joining import concatenate
from .reduce_any import by_pairs, elementwise, reducer_jaxpr, region
from .reducing import greatest, least
from .reshaping import expand_dims, reshape
from .selection import select_n
from .shapes import inserted, int_tuple
from .slicing import pad, slice as slice_of

Padding = str | Sequence[tuple[int, int]]
Window = dict[str, Any]

reduce_window_p: Final = Primitive(
    "reduce_window",
    multiple_results=True,
    cache_on=lambda params: params["jaxpr"].cache,
    applies_jaxprs=False,
)
reduce_window_sum_p: Final = Primitive("reduce_window_sum")
reduce_window_max_p: Final = Primitive("reduce_window_max")
reduce_window_min_p: Final = Primitive("reduce_window_min")
select_and_gather_add_p: Final = Primitive("select_and_gather_add")
select_and_scatter_add_p: Final = Primitive("select_and_scatter_add")


def reduce_window(
    operand: PyTree,
    init_value: PyTree,
    computation: Callable[[Any, Any], Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:
    """Reduction of the elements of each sliding window by an associative function.

    Args:
      operand: an array, or a pytree of arrays of one shape.
      init_value: scalars of the same structure and dtypes: the initial value of each window, and
        the value of padding and of the gaps between dilated elements. They may be combined any
        number of times, so they should be neutral elements.
      computation: function of two scalars (or pytrees of scalars) that returns their combination.
      window_dimensions: size of the window along each axis.
      window_strides: distance between windows, 1 by default.
      padding: ``"VALID"``, ``"SAME"`` or ``"SAME_LOWER"`` (see :func:`padtype_to_pads`, for the
        sizes before dilation), or pairs: numbers of elements to add before and after each axis.
      base_dilation: distance between the operand's elements, 1 by default.
      window_dilation: distance between a window's elements, 1 by default.

    Returns:
      An array, or a pytree of arrays, with the number of windows along each axis.

    Sums, maxima and minima (with this library's functions and their neutral elements) use
    specialized primitives. The derivative of a maximum or minimum is that of one element of each
    window.

    Raises:
      TypeError: if the window's rank differs from the operand's, or dtypes differ.
      ValueError: if the structures differ.

    >>> import primax_core.lax.arithmetic as ops
    >>> reduce_window(np.arange(5), 0, ops.add, (2,)).tolist()
    [1, 3, 5, 7]
    """
    leaves, tree = pytree.tree_flatten(operand)
    inits, init_tree = pytree.tree_flatten(init_value)
    if tree != init_tree:
        raise ValueError(
            f"Operands must have the same tree structure as init_values: {tree} vs. {init_tree}"
        )
    if not leaves:
        raise ValueError("reduce_window must have at least one operand.")
    avals = [typeof(x) for x in leaves]
    inits = [_as_init(i, a.dtype) for i, a in zip(inits, avals)]
    window = _window(
        avals[0].shape, window_dimensions, window_strides, padding, base_dilation, window_dilation
    )
    known = _known(computation, avals[0].dtype, inits[0]) if len(leaves) == 1 else None
    if known is not None:
        return tree.unflatten([known.bind(leaves[0], **window)])
    jaxpr = reducer_jaxpr("reduce_window", computation, tree, avals)
    outs = reduce_window_p.bind(*leaves, *inits, jaxpr=jaxpr, consts=(), **window)
    return tree.unflatten(outs)


def _as_init(value: Any, dtype: Any) -> Any:
    """An initial value; Python numbers are converted, infinities to the extreme integers."""
    if isinstance(value, float) and math.isinf(value) and accepts(dtype, ("integer",)):
        value = (greatest if value > 0 else least)(dtype)
    if isinstance(value, (bool, int, float, complex)):
        return np.asarray(value).astype(dtype)[()]
    return value


def _known(computation: Callable, dtype: Any, init: Any) -> Primitive | None:
    """The specialized primitive of a function with its neutral element, otherwise ``None``."""
    if isinstance(init, Tracer) or np.shape(init) != ():
        return None
    for fun, prim, neutral in (
        (b.add, reduce_window_sum_p, 0 if accepts(dtype, ("number",)) else None),
        (b.max, reduce_window_max_p, least(dtype)),
        (b.min, reduce_window_min_p, greatest(dtype)),
    ):
        if computation is fun and neutral is not None:
            return prim if bool(np.asarray(init) == neutral) else None
    return None


# Parameters and types


def _window(shape, sizes, strides, padding, base, within) -> Window:
    """The five parameters, checked against the operand's shape."""
    name = "reduce_window"
    n = len(shape)
    sizes = int_tuple(name, "window_dimensions", sizes)
    if len(sizes) != n:
        raise TypeError(
            f"{name} got the wrong number of window_dimensions for operand: got operand shape "
            f"{shape} with window_dimensions {sizes}."
        )
    rows = {"window_strides": strides, "base_dilation": base, "window_dilation": within}
    window: Window = {"window_dimensions": sizes}
    for what, values in rows.items():
        window[what] = (1,) * n if values is None else int_tuple(name, what, values)
        if len(window[what]) != n:
            raise TypeError(
                f"{name} got inconsistent {what} and window_dimensions: got {what} "
                f"{window[what]} and window_dimensions {sizes}."
            )
    for what in ("window_dimensions", "window_strides"):
        if any(v <= 0 for v in window[what]):
            raise TypeError(
                f"{name} {what} must have every element be strictly positive, got {window[what]}."
            )
    for what in ("base_dilation", "window_dilation"):
        if any(v <= 0 for v in window[what]):
            raise TypeError(f"All dilations must be positive, got {window[what]}.")
    if isinstance(padding, str):
        pads: Any = padtype_to_pads(
            shape,
            list(map(dilated, sizes, window["window_dilation"])),
            window["window_strides"],
            padding,
        )
    elif is_pairs(padding) and len(padding) == n:
        pads = padding
    else:
        raise ValueError(
            f"{name} padding must be a string or a (low, high) pair for each of the {n} axes, got "
            f"{padding}"
        )
    window["padding"] = int_pairs(name, pads)
    return window


def reduce_window_shape_tuple(
    operand_shape: Shape,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> tuple[int, ...]:
    """The shape of a reduction over windows: the number of windows along each axis.

    Args:
      operand_shape: shape of the operand.
      window_dimensions: size of the window along each axis.
      window_strides: distance of windows along each axis.
      padding: pairs ``(low, high)`` for each axis.
      base_dilation: distance of the operand's elements; ``None`` is 1.
      window_dilation: distance of the window's elements; ``None`` is 1.

    Returns:
      A tuple of sizes; 0 where no window fits.

    Raises:
      ValueError: if the numbers of entries differ.

    :func:`reduce_window` computes the reduction.

    >>> reduce_window_shape_tuple((7,), (3,), (2,), ((1, 0),))
    (3,)
    >>> reduce_window_shape_tuple((7,), (3,), (2,), ((1, 0),), (2,), (1,))
    (6,)
    """
    ones = (1,) * len(operand_shape)
    rows = zip(
        operand_shape, window_dimensions, window_strides, padding,
        ones if base_dilation is None else base_dilation,
        ones if window_dilation is None else window_dilation,
        strict=True,
    )  # fmt: skip
    return tuple([
        strided(dilated(n, base) + low + high, dilated(w, within), stride)
        for n, w, stride, (low, high), base, within in rows
    ])  # fmt: skip


def window_shape(aval: ShapedArray, window: Window) -> tuple[int, ...]:
    """The shape of a reduction of a value over windows."""
    return reduce_window_shape_tuple(
        aval.shape, window["window_dimensions"], window["window_strides"], window["padding"],
        window["base_dilation"], window["window_dilation"],
    )  # fmt: skip


_ALONG: Final = {
    "window_dimensions": 1,
    "window_strides": 1,
    "padding": (0, 0),
    "base_dilation": 1,
    "window_dilation": 1,
}


def with_mapped_axis(params: dict[str, Any], dim: int) -> dict[str, Any]:
    """Parameters for an operand with an additional axis that is not reduced."""
    return {
        name: inserted(value, dim, _ALONG[name]) if name in _ALONG else value
        for name, value in params.items()
    }


def _padded(ctx: Any, values: Sequence[Any], inits: Sequence[Any], window: Window):
    """Operands with explicit padding of symbolic sizes, and the window without padding."""
    shape, base = ctx.in_avals[0].shape, window["base_dilation"]
    low, high = zip(*window["padding"])
    between = [d - 1 for d in base]
    padded = tuple(
        [n + a + z + max_dim(n - 1, 0) * b for n, a, z, b in zip(shape, low, high, between)]
    )
    values = [shaped.pad(v, i, padded, low, high, between) for v, i in zip(values, inits)]
    rest = {"base_dilation": (1,) * len(base), "padding": ((0, 0),) * len(base)}
    return values, {**window, **rest}


def emit_windows(
    ctx: Any, values: Sequence[Any], inits: Sequence[Any], window: Window, body: Callable[..., Any]
) -> list[Any]:
    """An MLIR ``reduce_window`` of several operands, with the current equation's result types."""
    shape = ctx.out_avals[0].shape
    elements = [ir.RankedTensorType(v.type).element_type for v in values]
    if not is_static([p for pair in window["padding"] for p in pair]):
        values, window = _padded(ctx, values, inits, window)
    op = hlo.ReduceWindowOp(
        [ir.RankedTensorType.get(mlir.extents(shape), e) for e in elements],
        values,
        inits,
        mlir.i64s(window["window_dimensions"]),
        window_strides=mlir.i64s(window["window_strides"]),
        base_dilations=mlir.i64s(window["base_dilation"]),
        window_dilations=mlir.i64s(window["window_dilation"]),
        padding=ir.DenseElementsAttr.get(np.array(window["padding"], np.int64).reshape(-1, 2)),
    )
    scalars = [ir.RankedTensorType.get((), e) for e in elements]
    block = op.body.blocks.append(*scalars, *scalars)
    with ir.InsertionPoint(block):
        args = list(block.arguments)
        hlo.return_(body(args[: len(values)], args[len(values) :]))
    return list(op.results)


# Any function


@reduce_window_p.rule(abstract)
def _reduce_window_abstract(*args, jaxpr, consts, **window):
    half = len(args) // 2
    xs, inits = args[:half], args[half:]
    if any(x.shape != xs[0].shape for x in xs):
        raise TypeError(
            "reduce_window operands must have equal shapes, got "
            f"{', '.join(str(x.shape) for x in xs)}."
        )
    if any(i.shape for i in inits):
        raise TypeError(
            "reduce_window expected init_values to be scalars but init_values have shapes "
            f"{[i.shape for i in inits]}."
        )
    if any(x.dtype != i.dtype for x, i in zip(xs, inits)):
        raise TypeError(
            "reduce_window got inconsistent dtypes for operands and init_values: got operand "
            f"dtypes {[x.dtype.name for x in xs]} and init_value dtypes "
            f"{[i.dtype.name for i in inits]}."
        )
    return [ShapedArray(window_shape(x, window), x.dtype) for x in xs]


@reduce_window_p.rule(lower)
def _reduce_window_lower(ctx, *args, jaxpr, consts, **window):
    half = len(args) // 2
    return emit_windows(ctx, args[:half], args[half:], window, region(ctx, jaxpr))


def window_elements(x: ArrayLike, fill: ArrayLike, window: Window) -> list[Array]:
    """For each index in a window, the elements at that index of all windows."""
    gaps = [d - 1 for d in window["base_dilation"]]
    pads = [(low, high, gap) for (low, high), gap in zip(window["padding"], gaps)]
    counts = window_shape(typeof(x), window)
    x = pad(x, fill, pads)
    strides = window["window_strides"]
    elements = []
    for starts in _offsets(window):
        limits = [s + dilated(c, stride) for s, c, stride in zip(starts, counts, strides)]
        elements.append(slice_of(x, starts, limits, strides))
    return elements


def _offsets(window: Window) -> list[list[int]]:
    """Offset of each element of a window from the window's first element."""
    within = window["window_dilation"]
    return [
        [p * d for p, d in zip(index, within)]
        for index in itertools.product(*map(range, window["window_dimensions"]))
    ]


def _as_reduction(args: Sequence, jaxpr, window: Window) -> list:
    """The reduction as a composition of operations with derivative and batch rules.

    Padding and gaps are omitted: a function may have no derivative if both arguments are its
    neutral element.
    """
    half = len(args) // 2
    xs, inits = args[:half], args[half:]
    if not typeof(xs[0]).size:
        fills = inits
    else:
        first = (0,) * typeof(xs[0]).ndim
        fills = [reshape(slice_of(x, first, (1,) * len(first)), ()) for x in xs]
    stacked = [_stacked(window_elements(x, fill, window)) for x, fill in zip(xs, fills)]
    real = _stacked(window_elements(full_like(xs[0], True, np.bool_), np.False_, window))
    combine = elementwise(jaxpr)

    def choose(mask, p, q):
        return [select_n(mask, v, u) for u, v in zip(p, q)]

    def join(p, q):
        (*p, p_real), (*q, q_real) = p, q
        both = combine(choose(p_real, p, q), choose(q_real, q, p))
        either = choose(bitwise_and(p_real, q_real), both, choose(p_real, p, q))
        return [*either, bitwise_or(p_real, q_real)]

    *reduced, some = by_pairs(join, [*stacked, real])
    full = [broadcast_in_dim(i, typeof(some).shape, ()) for i in inits]
    return choose(some, combine(full, reduced), full)


def _stacked(parts: Sequence) -> Array:
    return concatenate([expand_dims(p, (0,)) for p in parts], 0)


@reduce_window_p.rule(jvp)
def _reduce_window_jvp(primals, tangents, *, jaxpr, consts, **window):
    outs = reduce_window_p.bind(*primals, jaxpr=jaxpr, consts=consts, **window)
    in_tangents = [None if type(t) is Zero else t for t in tangents]
    out_tangents = jvp_of(lambda *a: _as_reduction(a, jaxpr, window), primals, in_tangents)[1]
    return outs, [Zero.like(o) if t is None else t for o, t in zip(outs, out_tangents)]


@reduce_window_p.rule(batch)
def _reduce_window_batch(axis, args, dims, *, jaxpr, consts, **window):
    half = len(args) // 2
    if any(d is not None for d in dims[half:]):
        outs, out_dims = batch_of(lambda *a: _as_reduction(a, jaxpr, window), args, dims, axis)
        return outs, out_dims
    at = next(d for d in dims if d is not None)
    moved = [move_axis(x, d, at, axis.size) for x, d in zip(args[:half], dims)]
    outs = reduce_window_p.bind(
        *moved, *args[half:], jaxpr=jaxpr, consts=consts, **with_mapped_axis(window, at)
    )
    return outs, [at] * half


# Sums and extrema


def _window_reducer(
    prim: Primitive, kinds: Sequence[str], op: Callable, neutral: Callable[[Any], Any]
) -> None:
    """Define the type, lowering and batching of a specialized reduction over windows."""

    @prim.rule(abstract)
    def _abstract(x, **window):
        check_kind(prim.name, x.dtype, kinds)
        return ShapedArray(window_shape(x, window), x.dtype, x.weak_type)

    @prim.rule(lower)
    def _lower(ctx, x, **window):
        init = mlir.constant(np.asarray(neutral(ctx.in_avals[0].dtype), ctx.in_avals[0].dtype))
        (out,) = emit_windows(
            ctx, [x], [init], window, lambda p, q: ctx.call(lambda u, v: [op(u, v)], *p, *q,
                                                            in_avals=_scalars(ctx))
        )  # fmt: skip
        return out

    @prim.rule(batch)
    def _batch(axis, args, dims, **window):
        return prim.bind(args[0], **with_mapped_axis(window, dims[0])), dims[0]


def _scalars(ctx) -> list[ShapedArray]:
    aval = ShapedArray((), ctx.in_avals[0].dtype)
    return [aval, aval]


_window_reducer(reduce_window_sum_p, ("number",), b.add, lambda dtype: 0)
_window_reducer(reduce_window_max_p, ("number", "bool"), b.max, least)
_window_reducer(reduce_window_min_p, ("number", "bool"), b.min, greatest)


def _extremum_jvp(prim: Primitive, select_prim: Primitive) -> None:
    @prim.rule(jvp)
    def _jvp(primals, tangents, **window):
        ((x,), (t,)) = primals, tangents
        out = prim.bind(x, **window)
        if type(t) is Zero:
            return out, Zero.like(out)
        return out, select_and_gather_add_p.bind(t, x, select_prim=select_prim, **window)


_extremum_jvp(reduce_window_max_p, ge_p)
_extremum_jvp(reduce_window_min_p, le_p)


def back_pads(shape: Sequence[int], counts: Sequence[int], window: Window) -> list[Any]:
    """``pad`` configuration that moves values of windows to the windows' last elements."""
    pads = []
    for n, c, w, stride, (low, _), base, within in zip(
        shape, counts, window["window_dimensions"], window["window_strides"], window["padding"],
        window["base_dilation"], window["window_dilation"],
    ):  # fmt: skip
        first = dilated(w, within) - 1 - low
        pads.append((first, dilated(n, base) + low - dilated(c, stride), stride - 1))
    return pads


def _sum_back(ct, x: ShapedArray, **window):
    """Transpose of a window sum: for each element, the sum of the windows that contain it."""
    zero = np.zeros((), x.dtype)[()]
    spread = pad(ct, zero, back_pads(x.shape, typeof(ct).shape, window))
    n = x.ndim
    return reduce_window_sum_p.bind(
        spread,
        window_dimensions=window["window_dimensions"],
        window_strides=window["base_dilation"],
        padding=((0, 0),) * n,
        base_dilation=(1,) * n,
        window_dilation=window["window_dilation"],
    )


linear(reduce_window_sum_p, _sum_back)


# Gather and scatter at the elements selected by a comparison

_DIRECTIONS: Final = {ge_p: "GE", le_p: "LE"}


def _worst(select_prim: Primitive, dtype: Any) -> Any:
    """The value that is selected last."""
    return np.asarray((least if select_prim is ge_p else greatest)(dtype), dtype)[()]


def _linear_in_first(prim: Primitive, transpose_rule: Callable) -> None:
    """Define the derivatives of an operation whose second operand only affects the selection."""

    @prim.rule(jvp)
    def _jvp(primals, tangents, **params):
        out = prim.bind(*primals, **params)
        if type(tangents[0]) is Zero:
            return out, Zero.like(out)
        return out, prim.bind(tangents[0], primals[1], **params)

    @prim.rule(transpose)
    def _transpose(ct, values, selector, **params):
        if type(ct) is Zero:
            return [None, None]
        return [transpose_rule(ct, values.aval, selector, **params), None]

    @prim.rule(batch)
    def _batch(axis, args, dims, **params):
        at = next(d for d in dims if d is not None)
        values, selector = (move_axis(x, d, at, axis.size) for x, d in zip(args, dims))
        return prim.bind(values, selector, **with_mapped_axis(params, at)), at


@select_and_gather_add_p.rule(abstract)
def _select_and_gather_add_abstract(values, selector, *, select_prim, **window):
    check_kind("select_and_gather_add", selector.dtype, ("integer", "float", "bool"), 1)
    if values.shape != selector.shape:
        raise TypeError(
            "select_and_gather_add operands must have equal shapes, got "
            f"{values.shape} and {selector.shape}."
        )
    return ShapedArray(window_shape(selector, window), values.dtype)


@select_and_gather_add_p.rule(lower)
def _select_and_gather_add_lower(ctx, values, selector, *, select_prim, **window):
    dtypes_in = [a.dtype for a in ctx.in_avals]
    inits = [np.zeros((), dtypes_in[0]), _worst(select_prim, dtypes_in[1])]

    def body(p, q):
        first = compare(_DIRECTIONS[select_prim], p[1], q[1], dtypes_in[1])
        return [hlo.select(first, u, v) for u, v in zip(p, q)]

    return emit_windows(ctx, [values, selector], list(map(mlir.constant, inits)), window, body)[0]


@select_and_scatter_add_p.rule(abstract)
def _select_and_scatter_add_abstract(
    source, selector, *, select_prim, window_dimensions, window_strides, padding
):
    check_kind("select_and_scatter_add", selector.dtype, ("integer", "float", "bool"), 1)
    expected = reduce_window_shape_tuple(selector.shape, window_dimensions, window_strides, padding)
    if source.shape != expected:
        raise TypeError(
            f"select_and_scatter_add source must have one element for each window, {expected}, got "
            f"{source.shape}."
        )
    return ShapedArray(selector.shape, source.dtype)


@select_and_scatter_add_p.rule(lower)
def _select_and_scatter_add_lower(
    ctx, source, selector, *, select_prim, window_dimensions, window_strides, padding
):
    aval, dtype = ctx.in_avals[1], ctx.in_avals[1].dtype
    zero = np.zeros((), ctx.out_avals[0].dtype)
    if not aval.ndim:
        return source  # XLA aborts the process
    # The padding is explicit, because the selection could select XLA's padding values.
    low, high = [p[0] for p in padding], [p[1] for p in padding]
    zeros = [0] * aval.ndim

    def padded(x, fill, low, high):
        return shaped.pad(x, mlir.constant(fill), shape, low, high, zeros)

    shape = [n + a + z for n, a, z in zip(aval.shape, low, high)]
    selector = padded(selector, _worst(select_prim, dtype), low, high)
    op = hlo.SelectAndScatterOp(
        mlir.tensor_type(tuple(shape), ctx.out_avals[0].dtype),
        selector,
        source,
        mlir.constant(zero),
        window_dimensions=mlir.i64s(window_dimensions),
        window_strides=mlir.i64s(window_strides),
        padding=ir.DenseElementsAttr.get(np.zeros((aval.ndim, 2), np.int64)),
    )
    selected, added = mlir.tensor_type((), dtype), mlir.tensor_type((), ctx.out_avals[0].dtype)
    block = op.select.blocks.append(selected, selected)
    with ir.InsertionPoint(block):
        hlo.return_([compare(_DIRECTIONS[select_prim], *block.arguments, dtype)])
    block = op.scatter.blocks.append(added, added)
    with ir.InsertionPoint(block):
        hlo.return_([hlo.add(*block.arguments)])
    shape = aval.shape
    return padded(op.result, zero, [-n for n in low], [-n for n in high])


def _scatter(ct, aval: ShapedArray, selector, *, select_prim, **window):
    plain = (1,) * aval.ndim
    if window["base_dilation"] != plain or window["window_dilation"] != plain:
        return _scatter_at_offsets(ct, aval, selector, select_prim, window)
    rest = {name: window[name] for name in ("window_dimensions", "window_strides", "padding")}
    return select_and_scatter_add_p.bind(ct, selector, select_prim=select_prim, **rest)


def _gather(ct, aval: ShapedArray, selector, **params):
    plain = (1,) * typeof(selector).ndim
    return select_and_gather_add_p.bind(
        ct, selector, base_dilation=plain, window_dilation=plain, **params
    )


def _scatter_at_offsets(ct, aval: ShapedArray, selector, select_prim, window: Window) -> Any:
    """The same for dilated windows: a sum over the indices in the window."""
    worst = _worst(select_prim, typeof(selector).dtype)
    elements = window_elements(selector, worst, window)
    best = full_like(elements[0], worst)
    chosen = full_like(elements[0], -1, np.int32)
    for k, element in enumerate(elements):
        first = select_prim.bind(best, element)
        best = select_n(first, element, best)
        chosen = select_n(first, full_like(chosen, k), chosen)
    zero = np.zeros((), aval.dtype)[()]
    total: Any = Zero(aval)
    for k, starts in enumerate(_offsets(window)):
        part = select_n(eq(chosen, np.int32(k)), full_like(ct, 0), ct)
        config = []
        for start, n, c, stride, (low, high), base in zip(
            starts, aval.shape, typeof(ct).shape, window["window_strides"], window["padding"],
            window["base_dilation"],
        ):  # fmt: skip
            behind = dilated(n, base) + low + high - start - dilated(c, stride)
            config.append((start - low, behind - high, stride - 1))
        total = add_tangents(total, pad(part, zero, config))
    return slice_of(total, (0,) * aval.ndim, typeof(total).shape, window["base_dilation"])


_linear_in_first(select_and_gather_add_p, _scatter)
_linear_in_first(select_and_scatter_add_p, _gather)


def _along(n: int, size: int, step: int = 1, pads: tuple[int, int] = (0, 0)) -> dict[str, Any]:
    """Parameters of a window along the last of ``n`` axes."""
    ones = (1,) * (n - 1)
    return {
        "window_dimensions": (*ones, size),
        "window_strides": (*ones, step),
        "padding": ((0, 0),) * (n - 1) + (pads,),
    }


def _window_samples(prim: Primitive) -> None:
    @prim.rule(samples)
    def _samples():
        dilated = {"base_dilation": (1,), "window_dilation": (1,)}
        yield Sample(f32(6), **_along(1, 3, 2, (1, 0)), **dilated)
        yield Sample(f32(2, 5), **_along(2, 2), base_dilation=(1, 1), window_dilation=(1, 2))
        yield Sample(bf16(4), **_along(1, 2), **dilated).set(tolerance=0.05)
        yield Sample(i32(5), **_along(1, 2, 2), **dilated)


for _prim in (reduce_window_sum_p, reduce_window_max_p, reduce_window_min_p):
    _window_samples(_prim)


@reduce_window_p.rule(samples)
def _reduce_window_samples():
    def twice_sum(x):
        return reduce_window(x, np.int32(0), lambda a, b: a + b * 2, (2,), (1,), ((0, 0),))

    yield Sample(i32(5)).set(call=twice_sum)


@select_and_gather_add_p.rule(samples)
def _select_and_gather_add_samples():
    dilated = {"base_dilation": (1,), "window_dilation": (1,)}
    yield Sample(f32(6), f32(6), select_prim=ge_p, **_along(1, 3, 2), **dilated)
    yield Sample(f32(5), f32(5), select_prim=le_p, **_along(1, 2), **dilated)


@select_and_scatter_add_p.rule(samples)
def _select_and_scatter_add_samples():
    yield Sample(f32(2), f32(6), select_prim=ge_p, **_along(1, 3, 3))
    yield Sample(f32(2, 4), f32(2, 5), select_prim=le_p, **_along(2, 2))
