"""Call primitive of portable modules, used for exported functions."""

from __future__ import annotations

from typing import Any, Final

from .._ir.placement import is_placed
from .._ir.primitive import Primitive, abstract, batch, jvp, lower, transpose
from .._ir.rules import memory_kinds, place
from .._ir.samples import Sample, f32, samples
from .._lower.exported import PortableProgram
from .._lower.lazy import platforms, portable
from .._trace.core import typeof
from .._trace.staging import stage
from .trigonometric import sin

call_exported_p: Final = Primitive(
    "call_exported",
    multiple_results=True,
    cache_on=lambda params: params["exported"].cache,
    applies_jaxprs=False,
)

_NO_BATCHES = (
    "an exported program is compiled for the shapes it was exported for. Export the function with "
    "vmap in it, or with a symbolic dimension for the batch"
)
_NO_JVP = (
    "an exported program has its reverse derivative only (`Exported.vjp`). Export the function "
    "with jvp in it"
)


@call_exported_p.rule(abstract)
def _abstract(*avals, exported, out_avals):
    return list(out_avals)


@call_exported_p.rule(place)
def _place(abstract, in_avals, params):
    if params["exported"].nr_devices > 1:
        return list(params["out_avals"]), None
    if not any(map(is_placed, in_avals)):
        return abstract(*in_avals), None
    from .._ir.placed_types import placements  # loaded with the first placement

    return placements.inference.infer(call_exported_p, abstract, in_avals, params)


@call_exported_p.rule(memory_kinds)
def _memory_kinds(eqn):
    return eqn.params["exported"].out_kinds or [None] * len(eqn.outvars)


@call_exported_p.rule(lower)
def _lower(ctx, *values, exported, **_):
    return exported.lower(ctx, values)


call_exported_p.unsupported(jvp, _NO_JVP)
call_exported_p.unsupported(transpose, _NO_JVP)
call_exported_p.unsupported(batch, _NO_BATCHES)


def _sample_call(x: Any) -> Any:
    aval = typeof(x)
    known = ("cpu", "cuda", "rocm", "tpu")
    module = platforms.lower_for(stage(lambda a: [sin(a)], [aval]), "sample", known).module
    program = PortableProgram(
        "sample", portable.to_bytes(module), known, (aval,), (aval,), kept_args=(0,)
    )
    return call_exported_p.bind(x, exported=program, out_avals=(aval,))[0]


@call_exported_p.rule(samples)
def _samples():
    without = dict.fromkeys(("jvp", "transpose", "second order", "symbolic zeros"), _NO_JVP)
    without |= dict.fromkeys(("batching", "nested batching"), _NO_BATCHES)
    yield Sample(f32(3)).set(call=_sample_call, without=without)
    yield Sample(f32(0, 2)).set(call=_sample_call, without=without)
