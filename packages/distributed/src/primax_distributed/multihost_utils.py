"""Values of all processes: gathered, broadcast, compared; barriers; processes that live.

Every process calls these functions, in the same order.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np

from primax_core import (
    Array,
    device_put,
    devices as all_devices,
    jit,
    local_device_count,
    process_count,
    process_index,
    tree,
    tree_util,
)
from primax_core.extend import dtypes
from primax_core.typing import PyTree

from ._mesh import Mesh
from ._named import NamedSharding
from ._spec import PartitionSpec
from .processes._errors import ProcessFailure
from .processes._initialize import joined

_AXES = ("processes", "local_devices")


class ProcessFailureError(ProcessFailure):
    """Devices of :func:`live_devices` failed while they were in use.

    Attributes:
      failed_devices: those of the processes that died.
    """

    def __init__(self, failed_devices: set[Any], message: str = ""):
        super().__init__(message or f"devices failed: {sorted(failed_devices, key=lambda d: d.id)}")
        self.failed_devices = failed_devices

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.failed_devices, *self.args)


def _mesh() -> Mesh:
    """All devices, a row for each process."""
    grid = np.array(all_devices(), dtype=object).reshape(process_count(), local_device_count())
    return Mesh(grid, _AXES)


def _identity(x: Array) -> Array:
    return x


def _gathered(value: np.ndarray, mesh: Mesh) -> np.ndarray:
    """The values of all processes, along a new first axis."""
    rows = NamedSharding(mesh, PartitionSpec(_AXES[0]))
    # Only the row of this process is read.
    whole = np.broadcast_to(value, (process_count(), *value.shape))
    everywhere = NamedSharding(mesh, PartitionSpec())
    return np.asarray(jit(_identity, out_shardings=everywhere)(device_put(whole, rows)))


def _host_value(x: Any) -> np.ndarray:
    value = np.asarray(x)
    dtype = dtypes.canonicalize_dtype(value.dtype)
    return value if value.dtype == dtype else value.astype(dtype)


def process_allgather(in_tree: PyTree, tiled: bool = False) -> Any:
    """The values of all processes, on each of them, as NumPy arrays.

    Args:
      in_tree: a pytree of arrays with the same shapes in all processes, or of arrays that are
        divided among the processes, which need ``tiled=True``.
      tiled: concatenate along the first axis; by default, stack along a new first axis.

    Raises:
      ValueError: an array is divided among the processes and ``tiled`` is false.

    >>> import numpy as np
    >>> process_allgather({"a": np.arange(3, dtype=np.int32)})  # of one process
    {'a': array([[0, 1, 2]], dtype=int32)}
    >>> process_allgather({"a": np.arange(3, dtype=np.int32)}, tiled=True)
    {'a': array([0, 1, 2], dtype=int32)}
    """
    mesh = _mesh()

    def gather(x: Any) -> np.ndarray:
        if isinstance(x, Array) and not x.is_fully_addressable:
            if not tiled:
                raise ValueError(
                    "an array that is divided among the processes is gathered with tiled=True only"
                )
            if x.is_fully_replicated:
                return np.asarray(x)
            everywhere = NamedSharding(mesh, PartitionSpec())
            return np.asarray(jit(_identity, out_shardings=everywhere)(x))
        value = _host_value(x)
        stacked = _gathered(value, mesh)
        if not tiled or not value.ndim:
            return stacked
        return stacked.reshape(-1, *value.shape[1:]) if value.size else np.concatenate(stacked)

    return tree.map(gather, in_tree)


def broadcast_one_to_all(in_tree: PyTree, is_source: bool | None = None) -> Any:
    """The values of one process, on all of them, as NumPy arrays.

    Args:
      in_tree: a pytree of arrays, with the same shapes in all processes.
      is_source: true in the process whose values count; by default in rank 0.

    >>> import numpy as np
    >>> broadcast_one_to_all(np.float32(2))  # of one process
    array(2., dtype=float32)
    """
    if is_source is None:
        is_source = process_index() == 0
    mesh = _mesh()
    sources = np.flatnonzero(_gathered(np.asarray(bool(is_source)), mesh))
    if len(sources) != 1:
        raise ValueError(
            f"is_source must be true in one process, but it is in {len(sources)}: "
            f"{sources.tolist()}"
        )
    source = int(sources[0])
    return tree.map(lambda x: np.array(_gathered(_host_value(x), mesh)[source]), in_tree)


def sync_global_devices(name: str) -> None:
    """Wait until all processes have called this, with the same name.

    Raises:
      AssertionError: the names differ.

    >>> sync_global_devices("after loading")
    """
    number = np.uint32(zlib.crc32(name.encode()))
    numbers = _gathered(np.asarray(number), _mesh())
    if (numbers != number).any():
        raise AssertionError(
            f"sync_global_devices name mismatch ({name!r}). Expected: {numbers}; got: {number}."
        )


def assert_equal(in_tree: PyTree, fail_message: str = "") -> None:
    """Check that a pytree has the same values in all processes as in rank 0.

    Raises:
      AssertionError: it has not.

    >>> assert_equal({"steps": 3})
    """
    expected = broadcast_one_to_all(in_tree)
    same = tree.map(lambda a, b: bool(np.array_equal(np.asarray(a), b)), in_tree, expected)
    # All processes raise, or none.
    equal = _gathered(np.asarray(all(tree.leaves(same))), _mesh())
    if not equal.all():
        different = [int(r) for r in np.flatnonzero(~equal)]
        raise AssertionError(
            f"{fail_message} Expected: {expected}; got: {in_tree}. It differs in processes "
            f"{different}."
        )


def reached_preemption_sync_point(step_id: int) -> bool:
    """Return True at the step at which all processes stop, because one has to end soon.

    A batch system sends SIGTERM before it ends a process. The processes then agree on a step that
    none of them has begun, and there this function is true in all of them, to save a checkpoint.

    Args:
      step_id: number of the step; it grows from call to call.

    Returns:
      False in a process that computes alone.

    >>> reached_preemption_sync_point(1)
    False
    """
    this = joined()
    if this is None or this.member is None:
        return False
    return bool(this.member.reached_sync_point(step_id))


@contextmanager
def live_devices(devices: Sequence[Any]) -> Iterator[list[Any]]:
    """The devices of those processes that live, the same in all of them.

    It waits until each process has called it or is known to be dead.

    Raises:
      ProcessFailureError: at the end of the block, if one of them died in it.

    >>> from primax_core import devices
    >>> with live_devices(devices()) as alive:
    ...     assert alive == devices()
    """
    this = joined()
    if this is None or this.member is None:
        yield list(devices)
        return
    ranks = set(this.member.alive())
    alive = [d for d in devices if d.process_index in ranks]
    try:
        yield alive
    except ProcessFailure as e:
        failed = {d for d in alive if d.process_index in e.ranks}
        raise ProcessFailureError(failed, str(e)) from e
    gone = ranks - set(this.member.alive())
    failed = {d for d in alive if d.process_index in gone}
    if failed:
        raise ProcessFailureError(failed)


# Parts of arrays


def _specs_of(values: Any, pspecs: Any) -> list[tuple[Any, PartitionSpec]]:
    if pspecs is None:
        raise ValueError(
            "`None` is not a valid input to the pspecs argument. Please use PartitionSpec() if you "
            "wanted to replicate your input."
        )
    is_spec = lambda x: x is None or isinstance(x, PartitionSpec)
    specs: list[PartitionSpec] = []
    tree_util.tree_map(
        lambda spec, part: specs.extend([spec] * len(tree_util.tree_leaves(part))),
        pspecs, values, is_leaf=is_spec,
    )  # fmt: skip
    leaves = tree_util.tree_leaves(values)
    if len(specs) != len(leaves):
        raise ValueError(
            f"pspecs must be a prefix of the tree of inputs, which has {len(leaves)} leaves; "
            f"pspecs has specs for {len(specs)}"
        )
    return list(zip(leaves, specs, strict=True))


def _own_bounds(sharding: NamedSharding, shape: Sequence[int]) -> list[tuple[int, int]]:
    """The region of an array that the devices of this process have."""
    indices = sharding.addressable_devices_indices_map(tuple(shape)).values()
    bounds = []
    for axis, size in enumerate(shape):
        intervals = sorted({index[axis].indices(size)[:2] for index in indices})
        if any(a[1] != b[0] for a, b in pairwise(intervals)):
            raise ValueError(
                f"the parts of this process along axis {axis} do not touch under {sharding}, so "
                "they are no array"
            )
        bounds.append((intervals[0][0], intervals[-1][1]))
    return bounds


def host_local_array_to_global_array(
    local_inputs: PyTree, global_mesh: Mesh, pspecs: PyTree
) -> Any:
    """Arrays of all processes, each of which has the part of its devices.

    Args:
      local_inputs: a pytree of arrays, each the part of this process.
      global_mesh: a mesh of the devices of all processes.
      pspecs: a prefix of that pytree, of specs.

    Raises:
      ValueError: the specs do not fit.
    """

    def to_global(x: Any, spec: PartitionSpec) -> Any:
        if isinstance(x, Array) and not x.is_fully_addressable:
            return x
        value = _host_value(x)
        sharding = NamedSharding(global_mesh, spec)
        tiles = [_tiles(sharding, axis, value.ndim) for axis in range(value.ndim)]
        own = _own_bounds(sharding, tiles)
        shape = []
        for size, n, (a, b) in zip(value.shape, tiles, own, strict=True):
            if size % (b - a):
                raise ValueError(
                    f"a local array of shape {value.shape} cannot be divided by {spec} over the "
                    f"devices of this process: {size} is no multiple of {b - a}"
                )
            shape.append(size // (b - a) * n)
        # Memory is used for the own part only: the rest is neither written nor read.
        whole = np.empty(shape, value.dtype)
        whole[tuple(slice(a, b) for a, b in _own_bounds(sharding, shape))] = value
        return device_put(whole, sharding)

    converted = [to_global(x, s) for x, s in _specs_of(local_inputs, pspecs)]
    return tree_util.tree_unflatten(tree_util.tree_structure(local_inputs), converted)


def _tiles(sharding: NamedSharding, axis: int, ndim: int) -> int:
    """Number of parts along an axis."""
    entry = tuple(sharding.spec)[axis] if axis < len(tuple(sharding.spec)) else None
    names = () if entry is None else entry if isinstance(entry, tuple) else (entry,)
    return int(np.prod([sharding.mesh.shape[name] for name in names], dtype=np.int64))


def global_array_to_host_local_array(
    global_inputs: PyTree, global_mesh: Mesh, pspecs: PyTree
) -> Any:
    """The parts of arrays that the devices of this process have, each as one array.

    The inverse of :func:`host_local_array_to_global_array`, with the same arguments.
    """

    def to_local(x: Any, spec: PartitionSpec) -> Any:
        sharding = NamedSharding(global_mesh, spec)
        x = x if x.sharding == sharding else jit(_identity, out_shardings=sharding)(x)
        bounds = _own_bounds(sharding, x.shape)
        local = np.empty([b - a for a, b in bounds], x.dtype)
        for shard in x.addressable_shards:
            where = zip(shard.index, x.shape, bounds, strict=True)
            index = tuple(slice(s.indices(n)[0] - a, s.indices(n)[1] - a) for s, n, (a, _) in where)
            local[index] = np.asarray(shard.data)
        return device_put(local)

    converted = [to_local(x, s) for x, s in _specs_of(global_inputs, pspecs)]
    return tree_util.tree_unflatten(tree_util.tree_structure(global_inputs), converted)
