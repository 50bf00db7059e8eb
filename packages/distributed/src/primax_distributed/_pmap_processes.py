"""`pmap` over the devices of several processes, each of which has a part of the mapped axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primax_core import Array, jit, process_index, tree_util

from ._arrays import make_array_from_single_device_arrays
from ._mesh import Mesh
from ._named import NamedSharding
from ._spec import PartitionSpec
from .multihost_utils import host_local_array_to_global_array


def local_devices_of(devices: Sequence[Any]) -> list[Any]:
    """Those of some devices that belong to this process."""
    here = process_index()
    return [d for d in devices if d.process_index == here]


def global_leaves(
    name: str, leaves: Sequence[Any], axes: Sequence[int | None], mesh: Mesh
) -> list[Any]:
    """The arrays over a mesh of which each process has a part, or which are equal in all.

    Args:
      name: the name of the function, for messages.
      axes: the mapped axis of each leaf, not negative.

    Raises:
      ValueError: if the part of this process has another size than the number of its devices.
    """
    n = len(local_devices_of([*mesh.devices.flat]))
    out = []
    for x, axis in zip(leaves, axes):
        spec = _spec(mesh, axis)
        if isinstance(x, Array) and not x.is_fully_addressable:
            out.append(x)
            continue
        if axis is not None and (size := np.shape(x)[axis]) != n:
            raise ValueError(
                f"pmap of {name} over the devices of several processes takes in each process the "
                f"part of its {n} devices, but the mapped axis of an argument has the size {size}. "
                f"Pass an array of size {n}, or devices=primax.local_devices()"
            )
        out.append(host_local_array_to_global_array(x, mesh, spec))
    return out


def local_leaves(leaves: Sequence[Any], axes: Sequence[int | None], mesh: Mesh) -> list[Any]:
    """The parts of results that this process has, as arrays over its devices.

    Args:
      axes: the mapped axis of each leaf, also negative.
    """
    devices = local_devices_of([*mesh.devices.flat])
    here = Mesh(np.array(devices, object), mesh.axis_names)
    out = []
    for x, axis in zip(leaves, axes):
        front = axis if axis is None else axis % x.ndim
        whole = NamedSharding(mesh, _spec(mesh, front))
        x = x if x.sharding == whole else jit(_identity, out_shardings=whole)(x)
        shape = [len(devices) if i == front else size for i, size in enumerate(x.shape)]
        parts = {s.device: s.data for s in x.addressable_shards}
        sharding = NamedSharding(here, _spec(mesh, front))
        out.append(
            make_array_from_single_device_arrays(shape, sharding, [parts[d] for d in devices])
        )
    return out


def _spec(mesh: Mesh, axis: int | None) -> PartitionSpec:
    return PartitionSpec() if axis is None else PartitionSpec(*[None] * axis, *mesh.axis_names)


def _identity(x: Any) -> Any:
    return x


def call(mapped: Any, compiled: Any, mesh: Mesh, args: tuple[Any, ...], kwargs: Any) -> Any:
    """Call the jitted function of a `pmap` with the parts of this process.

    Args:
      mapped: the arguments of `pmap`.
      mesh: the devices of all processes.
    """
    static = mapped.static_of(args)
    rest = tuple([a for i, a in enumerate(args) if i not in static])
    leaves, tree = tree_util.tree_flatten((rest, kwargs))
    axes = [
        a if a is None else mapped.from_front(a, np.ndim(x))
        for a, x in zip(mapped.axes_of(args, static, kwargs), leaves)
    ]
    rest, kwargs = tree_util.tree_unflatten(tree, global_leaves(mapped.name, leaves, axes, mesh))
    values = iter(rest)
    out = compiled(*[a if i in static else next(values) for i, a in enumerate(args)], **kwargs)
    outs, out_tree = tree_util.tree_flatten(out)
    return tree_util.tree_unflatten(out_tree, local_leaves(outs, mapped.axes_of_results(out), mesh))
