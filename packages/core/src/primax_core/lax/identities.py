"""Identity operations: copies, staged constants, and sinks against dead-code elimination."""

from __future__ import annotations

from typing import Final

from .._base import pytree
from .._base.pytree import PyTree
from .._base.source import api_boundary
from .._ir.effects import Effect
from .._ir.primitive import Primitive, abstract, batch, effects, jvp, lower, trace_rule
from .._ir.samples import Sample, bf16, c64, f32, i32, samples
from .._lower.lazy import native
from .._runtime.dispatch import as_operand
from .._trace.array import Array
from .._trace.core import Tracer, bind_on, typeof
from .._trace.staging import StagingTrace
from .._trace.typing import ArrayLike
from .elementwise import linear

copy_p: Final = Primitive("copy")
stage_p: Final = Primitive("stage")
dce_sink_p: Final = Primitive("dce_sink", multiple_results=True)


# A copy: an eager call allocates a new buffer


@copy_p.rule(abstract)
def _copy_abstract(x):
    return x


@copy_p.rule(lower)
def _copy_lower(ctx, x):
    return x


linear(copy_p, lambda ct, x: copy_p.bind(ct))


@copy_p.rule(batch)
def _copy_batch(axis, args, dims):
    return copy_p.bind(*args), dims[0]


@copy_p.rule(samples)
def _copy_samples():
    yield Sample(f32(2, 3))
    yield Sample(bf16())
    yield Sample(c64(0))
    yield Sample(i32(2))


# A value in the jaxpr under construction


@api_boundary
def stage(x: ArrayLike, /) -> Array:
    """Lift a value to the current trace, or convert it to an array without a trace.

    Numbers and NumPy arrays become constants of the jaxpr under construction, so that operations
    on them are traced too.

    Args:
      x: an array or a number.

    Returns:
      A tracer in a traced function, otherwise an array with the value of ``x``.

    Raises:
      TypeError: if ``x`` is not an array or a number.

    The function is the identity in all transformations.

    >>> float(stage(1.0))
    1.0
    >>> from primax_core import make_jaxpr
    >>> make_jaxpr(lambda: stage(1.0) * 2.0)()
    { lambda ;. let a:f32[] = mul 1.0:f32[] 2.0:f32[] in (a,) }
    """
    typeof(x)
    return stage_p.bind(x)


@stage_p.rule(trace_rule)
def _stage_trace_rule(trace, args):
    (x,) = args
    if trace is None:
        return x if isinstance(x, Tracer) else as_operand(x)
    if isinstance(x, Tracer) and x._trace is trace:
        return x
    if isinstance(trace, StagingTrace):
        return trace.lift(x)
    return bind_on(trace.parent, stage_p, [x], {})[0]


@stage_p.rule(abstract)
def _stage_abstract(x):
    return x


@stage_p.rule(samples)
def _stage_samples():
    without = {"parameters": "it leaves no equation behind"}
    yield Sample(f32(2, 3)).set(without=without)
    yield Sample(i32()).set(without=without)


# A use that keeps values alive


class SinkEffect(Effect):
    """Effect that protects an operation without results from dead-code elimination."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is SinkEffect

    def __hash__(self) -> int:
        return hash(SinkEffect)

    def __repr__(self) -> str:
        return "Sink"


_SINK: Final = frozenset({SinkEffect()})


@api_boundary
def dce_sink(val: PyTree, *, prevent_mlir_dce: bool = False) -> None:
    """Protect the computation of values from dead-code elimination in the jaxpr.

    Equations whose results are not used are removed. The call is a use of the values, for
    measurements and for checks of intermediate values.

    Args:
      val: a pytree of arrays.
      prevent_mlir_dce: protect the computation in the compiled executable too.

    Returns:
      ``None``.

    Raises:
      TypeError: if a leaf is not an array.

    It has no derivative, and no effect outside of traced functions.

    >>> from primax_core import jit, lax
    >>> def f(x):
    ...     dce_sink(lax.sin(x))
    ...     return x
    >>> "sine" in jit(f).lower(1.0).as_text()
    True
    """
    dce_sink_p.bind(*pytree.tree_leaves(val), prevent_mlir_dce=bool(prevent_mlir_dce))


@dce_sink_p.rule(abstract)
def _dce_sink_abstract(*avals, prevent_mlir_dce):
    return []


@dce_sink_p.rule(effects)
def _dce_sink_effects(*avals, prevent_mlir_dce):
    return _SINK


@dce_sink_p.rule(lower)
def _dce_sink_lower(ctx, *values, prevent_mlir_dce):
    if prevent_mlir_dce and values:
        native.custom_call("dce_sink", values, [], has_side_effect=True)
    return []


@dce_sink_p.rule(jvp)
def _dce_sink_jvp(primals, tangents, **params):
    dce_sink_p.bind(*primals, **params)
    return [], []


@dce_sink_p.rule(batch)
def _dce_sink_batch(axis, args, dims, **params):
    dce_sink_p.bind(*args, **params)
    return [], []


@dce_sink_p.rule(samples)
def _dce_sink_samples():
    yield Sample(f32(2), i32(), prevent_mlir_dce=False)
