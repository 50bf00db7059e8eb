"""Arrays over several devices and processes, made of their parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primax_core import Array, process_count, process_index, tree_util
from primax_core.extend.runtime import (
    Sharding,
    array_from_callback,
    array_from_parts,
    array_from_values,
    as_sharding,
)
from primax_core.typing import DTypeLike, PyTree

from ._named import NamedSharding

Index = tuple[slice, ...]
Shape = Sequence[int]


def make_array_from_callback(
    shape: Shape,
    sharding: Sharding,
    data_callback: Callable[[Index], Any],
    dtype: DTypeLike | None = None,
) -> Array:
    """An array whose parts a function returns, so that no host needs all values.

    Args:
      shape: the shape of the whole array.
      sharding: its sharding.
      data_callback: from the index of a part in the whole array (a tuple of slices) to its values.
        It is called once for each part that devices of this process have; devices with copies of
        a part receive the same values.
      dtype: the dtype of the values; needed where this process has no part.

    Returns:
      An array with this sharding, committed to its devices.

    Raises:
      TypeError: if ``sharding`` is not a sharding.
      ValueError: if a size is not divisible, a part has another shape, or parts differ in dtype.

    >>> from primax_distributed import NamedSharding, P, make_mesh
    >>> sharding = NamedSharding(make_mesh((1,), ("x",)), P("x"))
    >>> values = np.arange(4.0)
    >>> make_array_from_callback((4,), sharding, lambda index: values[index])
    Array([0., 1., 2., 3.], dtype=float32)
    """
    sharding = _checked_whole("make_array_from_callback", sharding)
    return array_from_callback(tuple(shape), sharding, data_callback, dtype)


def make_array_from_single_device_arrays(
    shape: Shape, sharding: Sharding, arrays: Sequence[Array], *, dtype: DTypeLike | None = None
) -> Array:
    """An array of arrays on one device each, without copies.

    Args:
      shape: the shape of the whole array.
      sharding: its sharding.
      arrays: one array on each device of this process, in any order.
      dtype: the dtype; needed where this process has no part.

    Raises:
      TypeError: if an element of ``arrays`` is not an array.
      ValueError: if the arrays do not fit the shape and the sharding; the message names the array.

    >>> import primax_core as pc
    >>> from primax_distributed import NamedSharding, P, make_mesh
    >>> sharding = NamedSharding(make_mesh((1,), ("x",)), P("x"))
    >>> part = pc.device_put(np.arange(2.0), pc.devices()[0])
    >>> make_array_from_single_device_arrays((2,), sharding, [part])
    Array([0., 1.], dtype=float32)
    """
    sharding = _checked("make_array_from_single_device_arrays", sharding)
    return array_from_parts(tuple(shape), sharding, list(arrays), dtype)


def make_array_from_process_local_data(
    sharding: Sharding, local_data: PyTree, global_shape: PyTree = None
) -> Any:
    """Arrays over all processes, of the values that each process has.

    Args:
      sharding: the sharding of the whole arrays, or a prefix of the tree with shardings.
      local_data: a tree of NumPy arrays with the values of this process. Along an axis that is
        divided among processes these are the values of its own devices, otherwise all of them.
      global_shape: the shapes of the whole arrays, a tree like ``local_data`` or one shape. A size
        that is ``None`` follows from the local one, as all of them without ``global_shape``.

    Raises:
      ValueError: if the values are neither those of this process nor all of them along an axis,
        or ``global_shape`` is a tree of another structure.

    >>> from primax_distributed import NamedSharding, P, make_mesh
    >>> sharding = NamedSharding(make_mesh((1,), ("x",)), P("x"))
    >>> make_array_from_process_local_data(sharding, np.arange(4.0))
    Array([0., 1., 2., 3.], dtype=float32)
    """
    leaves, tree = tree_util.tree_flatten(local_data)
    shardings = tree_util.tree_leaves(tree_util.tree_broadcast(sharding, local_data))
    shapes = _global_shapes(global_shape, tree)
    arrays = [_from_local(*parts) for parts in zip(shardings, leaves, shapes)]
    return tree_util.tree_unflatten(tree, arrays)


def _global_shapes(global_shape: Any, tree: Any) -> list[Any]:
    def is_shape(x: Any) -> bool:
        return x is None or (
            isinstance(x, (tuple, list)) and all(d is None or isinstance(d, int) for d in x)
        )

    if is_shape(global_shape):
        return [global_shape] * tree.num_leaves
    shapes, tree_of_shapes = tree_util.tree_flatten(global_shape, is_leaf=is_shape)
    if tree_of_shapes != tree:
        raise ValueError(
            "global_shape is a shape, or a tree of shapes with the structure of local_data, "
            f"{tree}; got the structure {tree_of_shapes}"
        )
    return shapes


def _from_local(sharding: Any, data: Any, global_shape: Any) -> Array:
    sharding = _checked_whole("make_array_from_process_local_data", sharding)
    data = np.asarray(data)
    requested = [None] * data.ndim if global_shape is None else list(global_shape)
    if len(requested) != data.ndim:
        raise ValueError(
            f"global_shape {tuple(requested)} has {len(requested)} axes, and the values of this "
            f"process have {data.ndim}: {data.shape}"
        )
    bounds = _bounds_of_process(sharding, data.ndim)
    shape, offsets = [], []
    for axis, (size, local, (start, stop, parts)) in enumerate(zip(requested, data.shape, bounds)):
        own = stop - start
        if size is None:
            if local % own:
                raise ValueError(
                    f"axis {axis} of the values of this process has size {local}, which is not "
                    f"divisible by {own}, the number of its parts in this process ({sharding})"
                )
            size = local // own * parts
        if local == size:  # all values along this axis
            offset = 0
        elif local * parts == size * own:
            offset = start * size // parts
        else:
            raise ValueError(
                f"axis {axis} of the values of this process has size {local}. The whole array has "
                f"size {size}, of which this process has {own} of {parts} parts ({sharding}): "
                f"give {size * own // parts} values or all {size}"
            )
        shape.append(size)
        offsets.append(offset)
    values = {}
    for device, index in sharding.addressable_devices_indices_map(tuple(shape)).items():
        local_index = tuple(
            slice(*(edge - offset for edge in part.indices(size)[:2]))
            for part, size, offset in zip(index, shape, offsets)
        )
        values[device] = data[local_index]
    return array_from_values(tuple(shape), sharding, values)


def _bounds_of_process(sharding: Sharding, ndim: int) -> list[tuple[int, int, int]]:
    """The first part of this process along each axis, the one after the last, and all parts."""
    # With as many elements as parts, the shape of the parts is 1 and their indices are numbers.
    tiles = sharding_tiles(sharding, ndim)
    indices = sharding.addressable_devices_indices_map(tiles).values()
    bounds = []
    for axis, parts in enumerate(tiles):
        edges = [index[axis].indices(parts)[:2] for index in indices]
        start, stop = min(a for a, _ in edges), max(b for _, b in edges)
        if len({*edges}) != stop - start and parts > 1:
            raise ValueError(
                f"the devices of process {process_index()} of {process_count()} do not have "
                f"neighbouring parts along axis {axis} ({sharding}): make the array with "
                "make_array_from_callback"
            )
        bounds.append((start, stop, parts))
    return bounds


def sharding_tiles(sharding: Sharding, ndim: int) -> tuple[int, ...]:
    """The number of parts along each axis of an array with this sharding."""
    many = (sharding.num_devices,) * ndim  # every number of parts divides it
    return tuple([n // part for n, part in zip(many, sharding.shard_shape(many))])


def _checked(name: str, sharding: Any) -> Sharding:
    sharding = as_sharding(sharding)
    if not isinstance(sharding, Sharding):
        raise TypeError(
            f"{name} needs a sharding, such as a NamedSharding, got {sharding!r} of type "
            f"{type(sharding).__name__}"
        )
    return sharding


def _checked_whole(name: str, sharding: Any) -> Sharding:
    """A sharding with which values of the whole array determine those of each device."""
    sharding = _checked(name, sharding)
    if isinstance(sharding, NamedSharding) and sharding.spec.unreduced:
        raise ValueError(
            f"{name} got {sharding.spec}, with which devices have partial values: make the array "
            "without `unreduced`, and apply reshard(x, spec)"
        )
    return sharding
