"""Rules that collectives have in common: effects, lowering, derivatives, mapped axes, samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from .._base.pytree import PyTree
from .._ir.effects import NamedAxisEffect
from .._ir.primitive import Primitive, batch, effects, jvp, lower, transpose
from .._ir.samples import Sample, samples
from .._trace.core import typeof
from .._transform.batching import Axis, at_front, batch_of
from .._transform.zeros import Zero, instantiate
from .axis_binding import names_of
from .permuting import transpose as transpose_array


def uses_axes(prim: Primitive, parameter: str = "axis_name") -> None:
    """Add the effects of a collective: the named axes in one of its parameters."""

    @prim.rule(effects)
    def _effects(*_, **params):
        names = params[parameter]
        names = names if isinstance(names, tuple) else (names,)
        return frozenset(NamedAxisEffect(n) for n in names if not isinstance(n, int))


def unbound(ctx: Any, *_: Any, **params: Any) -> NoReturn:
    """Raise the error of a collective whose axis no transformation binds."""
    names = params.get("axis_name", params.get("axes"))
    raise NameError(
        f"Found an unbound axis name: {names}. A collective was compiled outside of the vmap (or "
        "mesh) that binds its axis."
    )


def lower_over_mesh(prim: Primitive) -> None:
    """Add the lowering rule of a collective: over the axes of a mesh, in a manual region."""

    @prim.rule(lower)
    def _lower(ctx, *values, **params):
        names = names_of(params.get("axis_name", params.get("axes")))
        if ctx.axes is None or not ctx.axes.manual.issuperset(names):
            unbound(ctx, **params)
        from .mesh_collectives import EMITTED

        return EMITTED[prim](ctx, *values, **params)


def linear(prim: Primitive, transposed: Callable) -> None:
    """Add the derivatives of a linear collective, from ``(ct, aval of x, **params) -> ct of x``."""

    @prim.rule(jvp)
    def _jvp(primals, tangents, **params):
        out = prim.bind(*primals, **params)
        (t,) = tangents
        return out, Zero.like(out) if type(t) is Zero else prim.bind(t, **params)

    @prim.rule(transpose)
    def _transpose(ct, x, **params):
        return [transposed(instantiate(ct), x.aval, **params)]


def mapped(prim: Primitive, on_front: Callable, shift: tuple[str, ...]) -> None:
    """Batch rule of an operation over one axis name.

    Args:
      on_front: ``(x with the mapped axis first, axis, **params) -> (result, its mapped axis)``.
      shift: parameters that are array axes, which shift if another axis is mapped.
    """

    @prim.rule(batch)
    def _batch(axis, args, dims, *, axis_name, **params):
        (x,), (d,) = args, dims
        x = at_front(x, d, axis.size)
        if axis.name not in axis_name:
            moved = {k: params[k] + 1 for k in shift}
            return prim.bind(x, axis_name=axis_name, **{**params, **moved}), 0
        if len(axis_name) > 1:
            raise ValueError(
                f"{prim.name} over several axis names at once cannot be mapped over one of them "
                f"({axis.name} of {axis_name}): apply it to one axis at a time"
            )
        return on_front(x, axis, **params)


def moveaxis(x: PyTree, source: int, target: int) -> Any:
    """The array with one axis at another position."""
    order = [i for i in range(typeof(x).ndim) if i != source]
    order.insert(target, source)
    return transpose_array(x, tuple(order))


def collective_samples(prim: Primitive, fun: Callable, *operands: Any) -> None:
    """Samples in which the last axis of the operand is mapped and named."""
    gone = {"parameters": "nothing is left of an operation over a mapped axis"}

    def over_axis(x):
        axis = Axis(typeof(x).shape[-1], "i")
        return batch_of(lambda y: [fun(y)], [x], [typeof(x).ndim - 1], axis)[0]

    @prim.rule(samples)
    def _samples():
        for operand in operands:
            yield Sample(operand).set(call=over_axis, without=gone)
