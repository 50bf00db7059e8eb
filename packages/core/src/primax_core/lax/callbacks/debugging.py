"""``debug_callback``: a Python function that receives values and returns nothing."""

from __future__ import annotations

from typing import Final

from ..._base import pytree
from ..._ir.effects import NamedEffect
from ..._ir.primitive import Primitive, abstract, batch, effects, jvp, lower, transpose
from ..._ir.samples import Sample, f32, i32, samples
from ..._runtime.dispatch import impl
from ..._transform.batching import move_axis
from .functions import FlatCallback, PerExample, emit

debug_callback_p: Final = Primitive("debug_callback", multiple_results=True)


class DebugEffect(NamedEffect):
    """Effect of an unordered debug callback."""

    name: str = "Debug"
    shows: bool = True


class OrderedDebugEffect(NamedEffect):
    """Effect of a debug callback in program order."""

    name: str = "OrderedDebug"
    shows: bool = True
    ordered: bool = True


debug_effect: Final = DebugEffect()
ordered_debug_effect: Final = OrderedDebugEffect()


@debug_callback_p.rule(abstract)
def _abstract(*avals, **_):
    return []


@debug_callback_p.rule(effects)
def _effects(*avals, effect, **_):
    return frozenset([effect])


@debug_callback_p.rule(impl)
def _impl(*arrays, callback, **_):
    callback(*arrays)
    return []


@debug_callback_p.rule(lower)
def _lower(ctx, *values, callback, effect, partitioned):
    return emit(
        ctx, "debug callback", callback, values, (), stays=True, ordered=effect.ordered,
        partitioned=partitioned,
    )  # fmt: skip


@debug_callback_p.rule(jvp)
def _jvp(primals, tangents, **params):
    return debug_callback_p.bind(*primals, **params), []


@debug_callback_p.rule(transpose)
def _transpose(cts, *args, **params):
    # The operands are tangents, which reverse mode does not compute.
    return [None for _ in args]


@debug_callback_p.rule(batch)
def _batch(axis, args, dims, *, callback, effect, partitioned):
    mapped = tuple(d is not None for d in dims)
    args = [x if d is None else move_axis(x, d, 0, axis.size) for x, d in zip(args, dims)]
    callback = PerExample(callback, axis.size, mapped)
    return debug_callback_p.bind(
        *args, callback=callback, effect=effect, partitioned=partitioned
    ), []


@debug_callback_p.rule(samples)
def _samples():
    def shown(x):
        tree = pytree.tree_structure(((0,), {}))
        debug_callback_p.bind(
            x, callback=FlatCallback(id, tree, None), effect=debug_effect, partitioned=False
        )
        return [x]

    yield Sample(f32(3)).set(call=shown)
    yield Sample(i32()).set(call=shown)
