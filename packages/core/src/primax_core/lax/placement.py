"""``device_put``: transfers between devices, memory kinds and layouts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from .._ir import dtypes
from .._ir.primitive import abstract, batch, dce, jvp, lower, transpose
from .._ir.rules import devices as device_rule, memory_kinds
from .._ir.samples import Sample, c64, f32, i32, samples
from .._ir.symbolic_dims import is_static
from .._lower.lazy import hlo, ir
from .._runtime.array import ArrayImpl, copy_array, default_sharding, move, put
from .._runtime.devices import Device
from .._runtime.dispatch import check_range, impl, relaid
from .._runtime.layouts import Format, Layout, canonical
from .._runtime.memory_spaces import ArrayCopySemantics as ArrayCopySemantics, Space as Space
from .._runtime.sharding import Sharding, SingleDeviceSharding, default_memory_kind
from .._trace.array import Array, register_method
from .._trace.core import typeof
from .._trace.structural import device_put_p as device_put_p
from .._trace.typing import ArrayLike
from .._transform.zeros import Zero
from .out_sharding import constrain, devices_named

Place: TypeAlias = Device | Sharding | Format | Space | None


def place(
    operands: Sequence[Any],
    devices: Sequence[Place],
    srcs: Sequence[Place],
    copy_semantics: Sequence[ArrayCopySemantics],
) -> list[Array]:
    """Move each array to a device, sharding or memory kind; ``None`` does not move it.

    Transformations treat this as an ordinary operation. When compiled it is the identity, because
    an executable runs on the devices of its arguments.
    """
    for d in devices:
        target = d.sharding if isinstance(d, Format) else d
        if isinstance(target, Sharding):
            target._check_axes("device_put")
    return device_put_p.bind(
        *operands,
        devices=tuple(devices),
        srcs=tuple(srcs),
        copy_semantics=tuple(copy_semantics),
    )


@device_put_p.rule(abstract)
def _abstract(*avals, devices, **_):
    return [_placed(a, d) for a, d in zip(avals, devices)]


def _placed(aval: Any, device: Place) -> Any:
    """The aval of an array on its target."""
    target = device.sharding if isinstance(device, Format) else device
    if not isinstance(target, Sharding):
        return aval
    return aval.update(placement=target._placement(aval.ndim))


@device_put_p.rule(lower)
def _lower(ctx, *values, devices, srcs, **_):
    return [_emit(x, d, a) for x, d, a in zip(values, devices, ctx.in_avals)]


def _emit(x: Any, device: Place, aval: Any) -> Any:
    """The value, annotated with a sharding, a memory kind or a layout for the compiler."""
    if isinstance(device, Format):
        layout = canonical(device.layout, aval.shape)
        x = x if layout is None or layout is Layout.AUTO else emit_layout(x, layout)
        device = device.sharding
    if isinstance(device, Sharding) and device.num_devices > 1:
        if device._summed:  # otherwise the values themselves become partial ones
            x = constrain(x, device._summed, aval)
        x = constrain(x, device, aval)
    kind = "device" if device is Space.Device else _kind_of(device)
    if kind is None or not is_static(aval.shape):
        return x  # StableHLO cannot refine a native function; kinds of results have a rule
    op = hlo.CustomCallOp(
        [x.type], [x], call_target_name=ir.StringAttr.get("annotate_device_placement"),
        has_side_effect=ir.BoolAttr.get(True),
    )  # fmt: skip
    op.operation.attributes["mhlo.frontend_attributes"] = ir.DictAttr.get(
        {"_xla_buffer_placement": ir.StringAttr.get(kind)}
    )
    return op.results[0]


@device_put_p.rule(device_rule)
def _devices(eqn):
    for d in eqn.params["devices"]:
        named = devices_named(d.sharding if isinstance(d, Format) else d)
        if named is not None:
            return named
    return None


def _kind_of(device: Place) -> str | None:
    """The memory kind of a target; ``None`` for the memory in which executables compute."""
    if isinstance(device, Format):
        device = device.sharding
    if device is Space.Host:
        return "pinned_host"
    if isinstance(device, Sharding) and not device._on_default_memory():
        return device.memory_kind
    return None


def emit_layout(x: Any, layout: Layout) -> Any:
    """The value, annotated with a layout for the compiler."""
    order = ir.DenseIntElementsAttr.get(
        np.asarray(layout.major_to_minor[::-1], np.int64), type=ir.IndexType.get()
    )
    op = hlo.CustomCallOp(
        [x.type], [x], call_target_name=ir.StringAttr.get("LayoutConstraint"),
        operand_layouts=ir.ArrayAttr.get([order]), result_layouts=ir.ArrayAttr.get([order]),
    )  # fmt: skip
    return op.results[0]


device_put_p.rule(memory_kinds)(lambda eqn: [_kind_of(d) for d in eqn.params["devices"]])


@device_put_p.rule(impl)
def _impl(*arrays, devices, srcs, copy_semantics):
    return [moved(*transfer) for transfer in zip(arrays, devices, copy_semantics)]


def moved(x: ArrayLike, device: Place, semantics: ArrayCopySemantics) -> Any:
    """Move one concrete value to its target; the result is always an array."""
    if isinstance(device, Format):
        layout = canonical(device.layout, typeof(x).shape)
        x = moved(x, device.sharding, semantics)
        if device.layout is None or layout is Layout.AUTO:
            return x
        return relaid(x, layout)
    own = None
    if isinstance(x, ArrayImpl):
        x._check_alive()
        if device is None:
            return _anew(x, semantics)
        own = x.sharding
    target = None if device is None else _sharding_for(device, own or default_sharding())
    if target is not own:
        if own and own._summed:
            x = own._summed._reshard(x)
        if target and target._summed:
            return target._reshard(moved(x, target._summed, ArrayCopySemantics.REUSE_INPUT))
    if isinstance(x, ArrayImpl):
        if target is x.sharding:
            x = _anew(x, semantics)
        elif target.num_devices > 1:
            from .._runtime.resharding import can_reshard, resharded  # loaded on first use

            if can_reshard(x.sharding, target):
                return resharded(x, target)
        return move(x, target)
    aval = typeof(x)
    if aval.dtype == dtypes.float0:
        return x
    if not hasattr(x, "dtype"):
        check_range(x, aval)
    return put(x, target, aval, explicit=True)


def _anew(x: ArrayImpl, semantics: ArrayCopySemantics) -> ArrayImpl:
    if semantics is ArrayCopySemantics.REUSE_INPUT:
        return x
    return copy_array(x) if semantics is ArrayCopySemantics.ALWAYS_COPY else x._spec.wrap(x._buf)


def _sharding_for(device: Place, own: Sharding) -> Sharding:
    """The sharding of a target, for an array with sharding ``own``."""
    if isinstance(device, Sharding):
        return device
    if isinstance(device, Format):
        return own if device.sharding is None else device.sharding
    if isinstance(device, Space):
        if device is Space.Any:
            return own
        kind = "pinned_host" if device is Space.Host else default_memory_kind(own._devices[0])
        return own.with_memory_kind(kind)
    return SingleDeviceSharding(device)


# A transfer is linear: tangents have the same target as the values, cotangents move back.


@device_put_p.rule(jvp)
def _jvp(primals, tangents, **params):
    outs = device_put_p.bind(*primals, **params)
    nonzero = [i for i, t in enumerate(tangents) if type(t) is not Zero]
    out_tangents: list[Any] = [Zero(typeof(o).tangent_aval()) for o in outs]
    if nonzero:
        selected = {name: tuple(values[i] for i in nonzero) for name, values in params.items()}
        for i, t in zip(nonzero, device_put_p.bind(*(tangents[i] for i in nonzero), **selected)):
            out_tangents[i] = t
    return outs, out_tangents


@device_put_p.rule(transpose)
def _transpose(cts, *operands, devices, srcs, copy_semantics):
    nonzero = [i for i, ct in enumerate(cts) if type(ct) is not Zero]
    cotangents: list[Any] = [None] * len(cts)
    if nonzero:
        back = place(
            [cts[i] for i in nonzero],
            [srcs[i] for i in nonzero],
            [devices[i] for i in nonzero],
            [copy_semantics[i] for i in nonzero],
        )
        for i, ct in zip(nonzero, back):
            cotangents[i] = ct
    return cotangents


@device_put_p.rule(batch)
def _batch(axis, args, dims, *, devices, srcs, **params):
    devices, srcs = (
        tuple([p if d is None else _batched(p, d) for p, d in zip(places, dims)])
        for places in (devices, srcs)
    )
    return device_put_p.bind(*args, devices=devices, srcs=srcs, **params), list(dims)


def _batched(device: Place, dim: int) -> Place:
    return device._batched(dim) if isinstance(device, Sharding) else device


@device_put_p.rule(dce)
def _dce(used, eqn):
    if not any(used):
        return [False] * len(eqn.invars), None
    live = [i for i, u in enumerate(used) if u]
    new = eqn.replace(
        invars=[eqn.invars[i] for i in live],
        outvars=[eqn.outvars[i] for i in live],
        params={name: tuple(values[i] for i in live) for name, values in eqn.params.items()},
    )
    return list(used), new


def _to_device(self: Array, device: Device | Sharding, *, stream: int | None = None) -> Array:
    """Move the array to another device."""
    if stream is not None:
        raise NotImplementedError("to_device takes no stream: results are ordered by themselves")
    (out,) = place([self], [device], [None], [ArrayCopySemantics.REUSE_INPUT])
    return out


register_method("to_device", _to_device)


@device_put_p.rule(samples)
def _samples():
    nowhere, copied = (None, None), (ArrayCopySemantics.ALWAYS_COPY,) * 2
    yield Sample(f32(3), f32(), devices=nowhere, srcs=nowhere, copy_semantics=copied)
    yield Sample(c64(0, 2), i32(), devices=nowhere, srcs=nowhere, copy_semantics=copied)
