"""Primitives that create, read and write references, with their rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ..._base.config import state
from ..._engine.ref_calls import evaluate
from ..._engine.ref_transforms import access
from ..._ir.avals import ShapedArray
from ..._ir.jaxpr import Eqn, Literal
from ..._ir.placement import is_placed
from ..._ir.primitive import Primitive, abstract, discharge, effects, trace_rule
from ..._ir.printer import print_as
from ..._ir.ref_types import (
    AbstractRef,
    AccumEffect,
    ReadEffect,
    WriteEffect,
    is_ref,
    local_ref_effect,
)
from ..._ir.samples import Sample, c64, f32, i32, samples
from ..._runtime.array import ArrayImpl, copy_array, retyped
from ..._runtime.dispatch import as_operand
from ..._trace.core import Tracer, check_live, placed_like, set_trace, typeof
from ..._trace.refs import (
    Ref,
    RefCell,
    RefOperations,
    RefTracer,
    check_not_ended,
    get_p,
    new_ref_p,
    swap_p,
)
from ..._trace.staging import StagingTrace
from ..broadcasting import full
from ..conversion import convert
from .indexing import INTEGER, INTEGER_ARRAY, Index, StaticSlice, parse_index, selected_shape
from .parts import add_at, known_position, read_at, write_at
from .transformed_access import access_part

addupdate_p: Final = Primitive("addupdate", multiple_results=True)
empty_ref_p: Final = Primitive("empty_ref")
freeze_p: Final = Primitive("freeze")
free_ref_p: Final = Primitive("free_ref", multiple_results=True)


# Types


def _inner(name: str, ref: Any) -> ShapedArray:
    if not is_ref(ref):
        raise TypeError(f"`{name}` must be called on `Ref` types: {ref}.")
    return ref.inner_aval


def _check_value(name: str, ref: Any, value: Any, index: Index, operands: Sequence[Any]) -> None:
    """Check that a value has the type of the selected part.

    Raises:
      ValueError: if the types differ, with both types.
    """
    inner = _inner(name, ref)
    shape = selected_shape(inner.shape, index, operands)
    if value.shape != shape:
        raise ValueError(
            f"Invalid shape for `{name}`. Ref shape: {inner.shape}. Expected shape: {shape}. "
            f"Value shape: {value.shape}. Values are not broadcast: use a value with the shape of "
            "the part."
        )
    if value.dtype != inner.dtype:
        raise ValueError(
            f"Invalid dtype for `{name}`. Ref dtype: {inner.dtype.name}. Value dtype: "
            f"{value.dtype.name}. Values are not converted: use the reference's dtype."
        )


@new_ref_p.rule(abstract)
def _new_ref_abstract(x, *, memory_space, kind, pin):
    return AbstractRef(x.strip_weak_type(), memory_space, kind)


@empty_ref_p.rule(abstract)
def _empty_ref_abstract(*, ty, memory_space, pin):
    return AbstractRef(ty, memory_space)


@get_p.rule(abstract)
def _get_abstract(ref, *operands, index):
    inner = _inner("get", ref)
    return ShapedArray(selected_shape(inner.shape, index, operands), inner.dtype)


@swap_p.rule(abstract)
def _swap_abstract(ref, value, *operands, index):
    _check_value("swap", ref, value, index, operands)
    return value.strip_weak_type()


@addupdate_p.rule(abstract)
def _addupdate_abstract(ref, value, *operands, index):
    _check_value("addupdate", ref, value, index, operands)
    return []


@freeze_p.rule(abstract)
def _freeze_abstract(ref):
    return _inner("freeze", ref)


@free_ref_p.rule(abstract)
def _free_ref_abstract(ref):
    _inner("free_ref", ref)
    return []


# Effects


def _does(prim: Primitive, *effect_objects: Any) -> None:
    @prim.rule(effects)
    def _effects(*avals, **params):
        return frozenset(effect_objects)


_does(new_ref_p, local_ref_effect)
_does(empty_ref_p, local_ref_effect)
_does(get_p, ReadEffect(0))
_does(swap_p, ReadEffect(0), WriteEffect(0))
_does(addupdate_p, AccumEffect(0))
_does(freeze_p, ReadEffect(0))
_does(free_ref_p, WriteEffect(0))


# Discharge


@new_ref_p.rule(discharge)
def _new_ref_discharge(refs, args, **_):
    return _array(args[0]), [None]


@empty_ref_p.rule(discharge)
def _empty_ref_discharge(refs, args, *, ty, **_):
    return full(ty.shape, 0, ty.dtype), []


@get_p.rule(discharge)
def _get_discharge(refs, args, *, index):
    return read_at(args[0], index, args[1:]), [None] * len(args)


@swap_p.rule(discharge)
def _swap_discharge(refs, args, *, index):
    x, new, *operands = args
    old = read_at(x, index, operands)
    new = _placed_as(x, write_at(x, index, operands, _array(new)))
    return old, [new, *[None] * (len(args) - 1)]


@addupdate_p.rule(discharge)
def _addupdate_discharge(refs, args, *, index):
    x, more, *operands = args
    new = _placed_as(x, add_at(x, index, operands, _array(more)))
    return [], [new, *[None] * (len(args) - 1)]


@freeze_p.rule(discharge)
def _freeze_discharge(refs, args):
    return args[0], [None]


@free_ref_p.rule(discharge)
def _free_ref_discharge(refs, args):
    return [], [None]


def _placed_as(old: Any, new: Any) -> Any:
    """New contents, divided over devices as the type of the old contents says."""
    aval = typeof(old)
    return placed_like(new, aval) if is_placed(aval) else new


def _array(x: Any) -> Any:
    """A value that can be stored in a reference: an array or tracer without weak type."""
    trace = state.trace
    if not isinstance(x, Tracer):
        if isinstance(trace, StagingTrace):
            x = trace.lift(x)
        elif not isinstance(x, ArrayImpl):
            x = as_operand(x)
    if typeof(x).weak_type:
        if isinstance(x, ArrayImpl):
            return copy_array(retyped(x, x.aval.strip_weak_type()))
        return convert(x, typeof(x).dtype)
    return x


# Evaluation


def _is_writing(trace: Any) -> bool:
    return isinstance(trace, StagingTrace)


def _under_tracers(prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Bind without a current trace, on the innermost trace of the tracers among the arguments."""
    live = [a._trace for a in args if isinstance(a, Tracer)]

    def depth(trace):
        return 0 if trace is None else 1 + depth(trace.parent)

    with set_trace(max(live, key=depth)):
        return prim.bind(*args, **params)


@new_ref_p.rule(trace_rule)
def _new_ref_trace_rule(trace, args, **params):
    if trace is None:
        if isinstance(args[0], Tracer):
            return _under_tracers(new_ref_p, args, params)
        return _made_now(args[0], **params)
    if _is_writing(trace):
        new = trace.emit(new_ref_p, args, params)
        return RefTracer(trace, new.aval, new._var)
    aval = AbstractRef(
        typeof(args[0]).strip_weak_type(), params["memory_space"], params["kind"]
    )  # fmt: skip
    return RefCell(trace, aval, _array(args[0]))


def _made_now(x: Any, *, memory_space: Any, kind: Any, pin: bool) -> Ref:
    if memory_space is not None or pin:
        what = "memory space" if memory_space is not None else "pinned memory"
        raise NotImplementedError(f"a reference with {what} can only be made inside of a `jit`.")
    value = _array(x)
    return Ref(AbstractRef(value.aval, memory_space, kind), value)


@empty_ref_p.rule(trace_rule)
def _empty_ref_trace_rule(trace, args, *, ty, memory_space, pin):
    if _is_writing(trace):
        new = trace.emit(empty_ref_p, (), {"ty": ty, "memory_space": memory_space, "pin": pin})
        return RefTracer(trace, new.aval, new._var)
    zeros = full(ty.shape, 0, ty.dtype)
    return new_ref_p.bind(zeros, memory_space=memory_space, kind=None, pin=pin)


def _accesses(prim: Primitive, ends: bool = False) -> None:
    @prim.rule(trace_rule)
    def _trace_rule(trace, args, **params):
        ref = args[0]
        if not isinstance(ref, RefOperations):
            raise ValueError(f"Can only call `{prim.name}` on a `Ref`: {ref}.")
        check_not_ended(ref)
        tracers = [a for a in args if isinstance(a, Tracer)]
        for a in tracers:
            check_live(a)
        if trace is None:
            if tracers:
                return _under_tracers(prim, args, params)
            out = _now(prim, args, params)
        elif _is_writing(trace):
            if ends and not _made_by(trace, ref):
                raise ValueError(
                    f"`{prim.name}` was called on a reference of type {ref.aval} that the function "
                    "was passed or closes over: only the function that makes a reference can end "
                    "it. Read it with `ref[...]`."
                )
            out = trace.emit(prim, args, params)
        elif ends:
            out = access(trace, prim, args, params)
        else:
            if prim is not get_p:
                types = [typeof(x) for x in args[1:]]
                _check_value(prim.name, ref.aval, types[0], params["index"], types[1:])
            out = access_part(trace, prim, args, params)
        if ends:
            ref._ended = f"`{prim.name}`"  # type: ignore[attr-defined]
        return out


def write_part(ref: Ref, value: Any, operands: Sequence[Any], index: Index) -> None:
    """Write a part of a reference immediately, without reading its old value."""
    check_not_ended(ref)
    evaluate(swap_p, (ref, value, *operands), {"index": index}, with_results=False)


def _made_by(trace: StagingTrace, ref: Any) -> bool:
    return isinstance(ref, RefTracer) and ref._trace is trace and ref._var not in trace.invars


def _now(prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
    ref = args[0]
    if prim is freeze_p or prim is get_p and params["index"] is None:
        with ref._lock:
            ref._value._check_alive()
            return ref.share()
    if prim is free_ref_p:
        return []
    if prim is swap_p and params["index"] is None:
        value = _array(args[1])
        _check_value("swap", ref.aval, value.aval, None, ())
        value = _placed_as(ref, value)
        with ref._lock:
            old, ref._value, ref._shared = ref._value, value, False
            ref.share()
        return old
    return evaluate(prim, args, params)


_accesses(get_p)
_accesses(swap_p)
_accesses(addupdate_p)
_accesses(freeze_p, ends=True)
_accesses(free_ref_p, ends=True)


# Text


def _selection(index: Index, operands: Sequence[str], shape: Sequence[int]) -> str:
    """``[0,1:,i]``."""
    if index is None:
        return "[...]"
    remaining = iter(operands)
    parts = []
    for e, n in zip(index, shape):
        if e == INTEGER or e == INTEGER_ARRAY:
            parts.append(next(remaining))
        elif type(e) is StaticSlice:
            end = e.start + (e.size - 1) * e.stride + 1 if e.size else e.start
            start = str(e.start) if e.start else ""
            stop = str(end) if end < n and e.start + e.size * e.stride < n else ""
            parts.append(f"{start}:{stop}" + (f":{e.stride}" if e.stride > 1 else ""))
        else:
            at = next(remaining)
            step = f":{e.stride}" if e.stride > 1 else ""
            parts.append(f"{at}:{at}+{e.size * e.stride}{step}")
    return f"[{','.join(parts)}]"


def _part_text(eqn: Eqn, name: Any, first: int) -> str:
    operands = []
    for v in eqn.invars[first:]:
        known = known_position(v) if type(v) is Literal else None
        operands.append(name(v) if known is None else str(known))
    shape = eqn.invars[0].aval.shape
    return name(eqn.invars[0]) + _selection(eqn.params["index"], operands, shape)


@print_as("get")
def _print_get(eqn, name, results):
    return f"{results[0]} <- {_part_text(eqn, name, 1)}"


@print_as("swap")
def _print_swap(eqn, name, results):
    part = _part_text(eqn, name, 2)
    value = name(eqn.invars[1])
    if results[0].startswith("_"):
        return f"{part} <- {value}"
    return f"{results[0]}, {part} <- {part}, {value}"


@print_as("addupdate")
def _print_addupdate(eqn, name, results):
    return f"{_part_text(eqn, name, 2)} += {name(eqn.invars[1])}"


# Samples


def _uses(change):
    def call(x, *rest):
        ref = new_ref_p.bind(x, memory_space=None, kind=None, pin=False)
        return change(ref, *rest)

    return call


def _added(ref, more):
    index, operands = parse_index(ref.shape, np.int32(1))
    addupdate_p.bind(ref, more, *operands, index=index)
    return freeze_p.bind(ref)


def _swapped(ref, value):
    index, operands = parse_index(ref.shape, (slice(0, None, 2),))
    old = swap_p.bind(ref, value, *operands, index=index)
    return [old, get_p.bind(ref, index=None)]


def _got(ref, at):
    index, operands = parse_index(ref.shape, (at,))
    return get_p.bind(ref, *operands, index=index)


@new_ref_p.rule(samples)
@get_p.rule(samples)
def _new_ref_samples():
    yield Sample(f32(4, 2), i32(low=-4, high=4)).set(call=_uses(_got))
    yield Sample(f32(4, 2), i32(3, low=-4, high=4)).set(call=_uses(_got))
    yield Sample(c64(3), i32(low=0, high=3)).set(call=_uses(_got))


@swap_p.rule(samples)
def _swap_samples():
    yield Sample(f32(4, 2), f32(2, 2)).set(call=_uses(_swapped))
    yield Sample(c64(3), c64(2)).set(call=_uses(_swapped))


@addupdate_p.rule(samples)
@freeze_p.rule(samples)
def _addupdate_samples():
    yield Sample(f32(4, 2), f32(2)).set(call=_uses(_added))
    yield Sample(c64(3), c64()).set(call=_uses(_added))


empty_ref_p.unsupported(samples, "its contents are unspecified")
free_ref_p.unsupported(samples, "it has no results")
