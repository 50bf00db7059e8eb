"""Rules of semaphores, and of copies and signals to other devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._devices import Axes, device_position_p
from .._remote_operations import (
    Part,
    RemoteParts,
    remote_copy_start_p,
    remote_copy_wait_p,
    remote_signal_p,
)
from .._semaphore_operations import semaphore_signal_p, semaphore_wait_p
from . import types
from .copies import View, view_of
from .memory import Reference
from .registry import Context, mosaic
from .types import INT32
from .values import Value


@device_position_p.rule(mosaic)
def _position(ctx: Context, *, axis_name: Any, mesh: Axes) -> Value:
    e = ctx.emitter
    number = e.op("tpu.device_id : i32", INT32, (), (0, int(np.prod([n for _, n in mesh])) - 1))
    for name, size in reversed(mesh):
        last = name == mesh[0][0]
        if name == axis_name:
            whole = e.constant(size, INT32)
            return number if last else e.binary("arith.remui", number, whole, (0, size - 1))
        bounds = None if number.bounds is None else (0, number.bounds[1] // size)
        number = e.binary("arith.divui", number, e.constant(size, INT32), bounds)
    raise ctx.error(f"the axis {axis_name!r}, which the mesh around the kernel does not have")


def _view(ctx: Context, part: Part) -> View:
    pieces, _ = part.ref.pieces(ctx, part.index, part.operands)
    return view_of(ctx, part.ref, pieces)


# Counters in scalar memory, and semaphores of the chip


def _add(
    ctx: Context, ref: Reference, number: Value, operands: Sequence[Value], index: Any
) -> None:
    e = ctx.emitter
    ref.write(ctx, e.add(ref.read(ctx, index, operands), number), index, operands)


@semaphore_signal_p.rule(mosaic)
def _signal(
    ctx: Context, ref: Reference, number: Value, *operands: Value, index: Any
) -> list[Value]:  # fmt: skip
    if not ref.is_semaphore:
        _add(ctx, ref, number, operands, index)
        return []
    view = _view(ctx, Part(ref, index, list(operands)))
    ctx.emitter.line(f"tpu.sem_signal {view.name}, {number.name} : {view.type}")
    return []


@semaphore_wait_p.rule(mosaic)
def _wait(
    ctx: Context, ref: Reference, number: Value, *operands: Value, index: Any, decrement: bool
) -> list[Value]:  # fmt: skip
    e = ctx.emitter
    if not ref.is_semaphore:
        if decrement:
            zero = e.constant(0, number.dtype)
            _add(ctx, ref, e.binary("arith.subi", zero, number), operands, index)
        return []
    view = _view(ctx, Part(ref, index, list(operands)))
    e.line(f"tpu.sem_wait {view.name}, {number.name} : {view.type}")
    if not decrement:
        e.line(f"tpu.sem_signal {view.name}, {number.name} : {view.type}")
    return []


# Other devices


@remote_signal_p.rule(mosaic)
def _remote_signal(ctx: Context, *operands: Any, parts: RemoteParts, mesh: Axes) -> list[Value]:
    (semaphore,), (number, device) = parts.of(operands)
    view = _view(ctx, semaphore)
    ctx.emitter.line(
        f"tpu.sem_signal {view.name}, {number.name} device_id {device.name} : {view.type}"
    )
    return []


@remote_copy_start_p.rule(mosaic)
def _start(
    ctx: Context, *operands: Any, parts: RemoteParts, nbytes: int, mesh: Axes
) -> list[Value]:  # fmt: skip
    own, (device,) = parts.of(operands)
    source, target, sent, received = (_view(ctx, part) for part in own)
    ctx.emitter.line(
        f"tpu.enqueue_dma source({_typed(source)}) target({_typed(target)}) "
        f"source_semaphore({_typed(sent)}) target_semaphore({_typed(received)}) "
        f"device_id({device.name})"
    )
    return []


@remote_copy_wait_p.rule(mosaic)
def _remote_wait(
    ctx: Context, *operands: Any, parts: RemoteParts, nbytes: int, mesh: Axes, arrived: bool
) -> list[Value]:
    e = ctx.emitter
    (source, target, sent, received), (device,) = parts.of(operands)
    if arrived:
        views = [_view(ctx, part) for part in (received, source, target)]
        at = f"device_id({device.name})"
    else:  # the other end of the copy is this device, whatever the reference names
        views = [_view(ctx, part) for part in (sent, target, source)]
        zero = e.constant(0, INT32).name
        at = f"device_id({zero}) core_id({zero})"
    semaphore, begin, end = map(_typed, views)
    e.line(f"tpu.wait_dma2 semaphore({semaphore}) src({begin}) dst({end}) {at}")
    return []


def _typed(view: View) -> str:
    return f"{view.name} : {view.type}"


def barrier_semaphore(ctx: Context) -> Reference:
    """The semaphore of the devices that run the kernel."""
    type_ = types.memory(types.SEMAPHORE, (), "semaphore_mem")
    name = ctx.emitter.op(f"tpu.sem_barrier : {type_}", INT32).name
    return Reference(name, INT32, (), "semaphore_mem", semaphore=types.SEMAPHORE)
