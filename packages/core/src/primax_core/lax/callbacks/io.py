"""``io_callback``: a Python function with side effects."""

from __future__ import annotations

from typing import Final

from ..._base import pytree
from ..._ir.effects import NamedEffect
from ..._ir.primitive import Primitive, abstract, batch, effects, jvp, lower, transpose
from ..._ir.samples import Sample, f32, samples
from ..._runtime.dispatch import impl
from ..._trace.core import typeof
from ..._transform.batching import move_axis
from .functions import FlatCallback, PerExample, batched_avals, emit, of_no_example, run_now

io_callback_p: Final = Primitive("io_callback", multiple_results=True)

_NO_JVP: Final = "IO callbacks do not support JVP."


class IOEffect(NamedEffect):
    """Effect of an unordered I/O callback."""

    name: str = "IO"
    exact: bool = True


class OrderedIOEffect(NamedEffect):
    """Effect of an I/O callback in program order."""

    name: str = "OrderedIO"
    ordered: bool = True
    exact: bool = True


_EFFECTS: Final = {False: frozenset([IOEffect()]), True: frozenset([OrderedIOEffect()])}


@io_callback_p.rule(abstract)
def _abstract(*avals, result_avals, **_):
    return list(result_avals)


@io_callback_p.rule(effects)
def _effects(*avals, ordered, **_):
    return _EFFECTS[ordered]


@io_callback_p.rule(impl)
def _impl(*arrays, callback, result_avals, **_):
    return run_now("io_callback", callback, arrays, result_avals)


@io_callback_p.rule(lower)
def _lower(ctx, *values, callback, result_avals, ordered, **_):
    return emit(ctx, "io_callback", callback, values, result_avals, stays=True, ordered=ordered)


@io_callback_p.rule(jvp)
def _jvp(primals, tangents, **_):
    raise ValueError(_NO_JVP)


io_callback_p.unsupported(transpose, "IO callbacks are not linear")


@io_callback_p.rule(batch)
def _batch(axis, args, dims, *, callback, result_avals, ordered, sharding):
    if ordered:
        raise ValueError(
            "Cannot `vmap` ordered IO callback. The examples of a batch have no order: pass "
            "ordered=False, or loop with scan."
        )
    if not axis.size:
        return of_no_example(result_avals), [0] * len(result_avals)
    mapped = tuple(d is not None for d in dims)
    args = [x if d is None else move_axis(x, d, 0, axis.size) for x, d in zip(args, dims)]
    outs = io_callback_p.bind(
        *args, callback=PerExample(callback, axis.size, mapped),
        result_avals=batched_avals(result_avals, axis.size), ordered=False, sharding=sharding,
    )  # fmt: skip
    return outs, [0] * len(outs)


@io_callback_p.rule(samples)
def _samples():
    def same(x):
        tree = pytree.tree_structure(((0,), {}))
        callback = FlatCallback(_same, tree, pytree.tree_structure(0))
        out = typeof(x).strip_weak_type()
        return io_callback_p.bind(
            x, callback=callback, result_avals=(out,), ordered=False, sharding=None
        )

    no_jvp = dict.fromkeys(("jvp", "transpose", "second order", "symbolic zeros"), _NO_JVP)
    yield Sample(f32(3)).set(call=same, without=no_jvp)


def _same(x):
    return x
