"""``select_and_scatter``: values scattered to the selected element of each window."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from .._ir.avals import ShapedArray
from .._ir.jaxpr import Jaxpr
from .._ir.primitive import Primitive, abstract, batch, jvp, lower
from .._ir.samples import Sample, f32, samples
from .._lower.lazy import hlo, ir, mlir
from .._trace.staging import stage
from .._transform.batching import move_axis
from .arithmetic import add
from .comparison import ge
from .reduce_any import region
from .windows import reduce_window_shape_tuple, with_mapped_axis

select_and_scatter_p: Final = Primitive(
    "select_and_scatter",
    cache_on=lambda params: params["scatter_jaxpr"].cache,
    applies_jaxprs=False,
)


@select_and_scatter_p.rule(abstract)
def _abstract(operand, source, init, *, select_jaxpr, scatter_jaxpr, **window):
    expected = reduce_window_shape_tuple(operand.shape, *_sizes(window))
    if source.shape != expected:
        raise TypeError(
            f"select_and_scatter source must have one element for each window, {expected}, got "
            f"{source.shape}."
        )
    if init.shape or not operand.dtype == source.dtype == init.dtype:
        raise TypeError(
            "select_and_scatter takes operand, source and a scalar of one dtype, got "
            f"{operand}, {source} and {init}."
        )
    return ShapedArray(operand.shape, operand.dtype)


def _sizes(window: dict) -> tuple:
    return window["window_dimensions"], window["window_strides"], window["padding"]


@select_and_scatter_p.rule(lower)
def _lower(ctx, operand, source, init, *, select_jaxpr, scatter_jaxpr, **window):
    aval = ctx.in_avals[0]
    if not aval.ndim:  # XLA aborts the process
        combine = region(ctx, scatter_jaxpr)
        return combine([source], [init])[0]
    sizes, strides, padding = _sizes(window)
    op = hlo.SelectAndScatterOp(
        mlir.type_of(aval),
        operand,
        source,
        init,
        window_dimensions=mlir.i64s(sizes),
        window_strides=mlir.i64s(strides),
        padding=ir.DenseElementsAttr.get(np.array(padding, np.int64).reshape(-1, 2)),
    )
    scalar = mlir.tensor_type((), aval.dtype)
    for block, jaxpr in ((op.select.blocks, select_jaxpr), (op.scatter.blocks, scatter_jaxpr)):
        body = block.append(scalar, scalar)
        with ir.InsertionPoint(body):
            x, y = list(body.arguments)
            hlo.return_(region(ctx, jaxpr)([x], [y]))
    return op.result


select_and_scatter_p.unsupported(
    jvp,
    "it selects by an arbitrary function; reduce_window of a maximum or minimum has derivatives",
)


@select_and_scatter_p.rule(batch)
def _batch(axis, args, dims, **params):
    operand, source, init = args
    if dims[2] is not None:
        raise NotImplementedError(
            "select_and_scatter with an initial value that differs between examples: add it to the "
            "result instead"
        )
    operand, source = (move_axis(x, d, 0, axis.size) for x, d in zip(args[:2], dims[:2]))
    return select_and_scatter_p.bind(operand, source, init, **with_mapped_axis(params, 0)), 0


def _scalars(fun: Any) -> Jaxpr:
    scalar = ShapedArray((), np.dtype(np.float32))
    return stage(lambda *xs: [fun(*xs)], [scalar, scalar])


@select_and_scatter_p.rule(samples)
def _samples():
    def scatter(operand, source):
        return select_and_scatter_p.bind(
            operand, source, np.float32(0), select_jaxpr=_scalars(ge), scatter_jaxpr=_scalars(add),
            window_dimensions=(2,), window_strides=(2,), padding=((0, 0),),
        )  # fmt: skip

    no = "selection by an arbitrary function has no derivative"
    without = dict.fromkeys(("jvp", "transpose", "second order", "symbolic zeros"), no)
    yield Sample(f32(4), f32(2)).set(call=scatter, without=without)
