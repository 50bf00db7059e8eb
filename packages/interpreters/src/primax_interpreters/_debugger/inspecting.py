"""``inspect_sharding``: a Python callback that receives the sharding of an intermediate value."""

from __future__ import annotations

from typing import Final

from primax_core.debug import DebugEffect
from primax_core.extend import (
    Primitive,
    Sample,
    abstract,
    batch,
    effects,
    f32,
    impl,
    jvp,
    lower,
    samples,
    transpose,
)

inspect_sharding_p: Final = Primitive("inspect_sharding", multiple_results=True)

_EFFECTS: Final = frozenset([DebugEffect()])


@inspect_sharding_p.rule(abstract)
def _abstract(x, *, callback):
    return []


@inspect_sharding_p.rule(effects)
def _effects(x, *, callback):
    return _EFFECTS


@inspect_sharding_p.rule(impl)
def _impl(x, *, callback):
    callback(x.sharding)
    return []


@inspect_sharding_p.rule(lower)
def _lower(ctx, x, *, callback):
    ctx.inspect_sharding(x, callback)
    return []


@inspect_sharding_p.rule(jvp)
def _jvp(primals, tangents, *, callback):
    inspect_sharding_p.bind(*primals, callback=callback)
    return [], []


@inspect_sharding_p.rule(transpose)
def _transpose(cts, x, *, callback):
    return [None]


@inspect_sharding_p.rule(batch)
def _batch(axis, args, dims, *, callback):
    inspect_sharding_p.bind(*args, callback=callback)
    return [], []


@inspect_sharding_p.rule(samples)
def _samples():
    def inspected(x):
        inspect_sharding_p.bind(x, callback=id)
        return [x]

    yield Sample(f32(3)).set(call=inspected)
