"""Restoring: the whole tree or parts of it, on any mesh, or as NumPy arrays."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from primax_core import Array, ShapeDtypeStruct, device_put, tree_util
from primax_core.extend import dtypes, random_wrap_p
from primax_core.extend.runtime import Sharding, as_sharding
from primax_core.typing import PyTree

from .._mesh import Mesh
from .._named import NamedSharding
from .._spec import PartitionSpec
from ._database import open_array
from ._errors import CheckpointError, CheckpointMismatchError
from ._folders import Folder, Place, checked_path, folder_of
from ._leaves import SCALAR_TYPES, decoded, is_key_dtype
from ._metadata import read
from ._stores import ByteLimiter, finished, read_parts, run
from ._structure import ABSENT, Path, below, decode, leaves_of, listed, path_of, path_text
from ._together import Group

_PYTHON: Final = tuple(SCALAR_TYPES.values())


@dataclass
class _Saved:
    """A complete checkpoint, and what is read of it."""

    folder: Folder
    structure: Any
    records: list[dict[str, Any]]
    limiter: ByteLimiter

    def name(self, number: int) -> str:
        return path_text(tuple(self.records[number]["path"]))


@dataclass
class _Words:
    """Random keys before they get their dtype."""

    words: Any
    impl: Any
    sharding: Sharding | None

    def keys(self) -> Any:
        keys = random_wrap_p.bind(self.words, impl=self.impl)
        if self.sharding is None or keys.sharding == self.sharding:
            return keys
        return device_put(keys, self.sharding)


def restore(
    path: str | os.PathLike[str],
    target: PyTree = None,
    *,
    step: int | None = None,
    partial: bool = False,
    concurrent_bytes: int = 4 << 30,
    timeout_seconds: float = 300,
) -> Any:
    """Read a checkpoint, on any devices.

    The mesh, the number of devices and the number of processes may differ from those that saved.
    Each process reads the parts of its devices only, each part once.

    Args:
      path: the folder or address of :func:`save`.
      target: a tree that says for each leaf how it is returned:

        - a sharding: an array with it (also a partition spec under ``set_mesh``);
        - a ``ShapeDtypeStruct`` or an array: an array of the same shape, dtype and sharding;
        - a ``Mesh``: an array that is divided along the axes with the names that it was divided
          along when it was saved; other axes are ignored, and NumPy arrays stay such;
        - ``numpy.ndarray`` or a NumPy array: a NumPy array;
        - a Python number or string: a value of this type.

        A sharding, a mesh or ``numpy.ndarray`` may also stand for a whole subtree. By default,
        all arrays are NumPy arrays, except random keys. Nodes are matched by their keys, so that a
        dict can be restored as a class with the same fields. Where ``target`` has no class, nodes
        of classes that are registered for serialization are restored as such
        (``export.register_pytree_node_serialization``), other classes as dicts.
      step: the number of the checkpoint, by default the last one.
      partial: accept a target without some leaves of the checkpoint, which are not read.
      concurrent_bytes: limit of the bytes on the host at the same time.
      timeout_seconds: limit of the time to wait for rank 0, which chooses the step.

    Raises:
      CheckpointNotFoundError: the path has no complete checkpoint.
      CheckpointDamagedError: files are missing, truncated or changed.
      CheckpointMismatchError: the structure, a shape or a dtype is another one.
      ValueError: a size is not divisible by the sharding.

    >>> import tempfile, numpy as np
    >>> from primax_distributed import NamedSharding, P, checkpoint, make_mesh
    >>> folder = tempfile.mkdtemp()
    >>> checkpoint.save(folder, {"w": np.arange(4, dtype=np.float32), "step": 7}, step=7)
    >>> sharding = NamedSharding(make_mesh((1,), ("x",)), P("x"))
    >>> checkpoint.restore(folder, sharding)
    {'step': 7, 'w': Array([0., 1., 2., 3.], dtype=float32)}
    """
    step, folder = _chosen(checked_path(path), step, timeout_seconds)
    metadata = read(folder)
    saved = _Saved(folder, metadata["structure"], metadata["leaves"], ByteLimiter(concurrent_bytes))
    if target is None:
        target = np.ndarray
    paths: dict[Path, int] = {tuple(r["path"]): n for n, r in enumerate(saved.records)}
    requests, definition = tree_util.tree_flatten_with_path(target)
    plan = [_subtree(saved, paths, path_of(keys), request) for keys, request in requests]
    _check_complete(saved, paths, plan, partial)
    jobs = {n: _leaf(saved, n, request) for (_, numbers, request) in plan for n in numbers}
    values = dict(zip(jobs, run(_all(list(jobs.values()))), strict=True))
    # Reads end in any order, but all processes must begin executables in the same order.
    for number, value in values.items():
        if isinstance(value, _Words):
            values[number] = value.keys()
    return tree_util.tree_unflatten(
        definition, [decode(node, values.__getitem__) for node, _, _ in plan]
    )


def _chosen(path: Place, step: int | None, timeout: float) -> tuple[int, Folder]:
    group = Group(timeout) if step is None else None
    if group is None or group.size == 1:
        return folder_of(path, step)
    if group.rank:
        step = group.share("step")
        return folder_of(path, step)
    try:
        step, folder = folder_of(path, None)
    except BaseException as e:
        group.share("step", error=e)
        raise
    group.share("step", step)
    return step, folder


async def _all(jobs: list[Callable[[], Coroutine[Any, Any, Any]]]) -> list[Any]:
    return await finished([job() for job in jobs])


# Matching


def _subtree(saved: _Saved, paths: dict[Path, int], path: Path, request: Any) -> Any:
    if path in paths:
        return paths[path], [paths[path]], request
    node = below(saved.structure, path)
    if node is not ABSENT and _is_prefix(request):
        return node, leaves_of(node), request
    text = "has no leaf" if node is ABSENT else "has a subtree, and the target a leaf,"
    raise CheckpointMismatchError(
        f"the checkpoint in {saved.folder} {text} at {path_text(path)}. Its leaves are "
        f"{listed([*paths])}"
    )


def _is_prefix(request: Any) -> bool:
    return request is np.ndarray or isinstance(request, (Sharding, Mesh, PartitionSpec))


def _check_complete(saved: _Saved, paths: dict[Path, int], plan: list[Any], partial: bool) -> None:
    read_leaves = {n for _, numbers, _ in plan for n in numbers}
    missing = [p for p, n in paths.items() if n not in read_leaves]
    if missing and not partial:
        raise CheckpointMismatchError(
            f"the target has no leaf at {listed(missing)}, but the checkpoint in {saved.folder} "
            "has: add it, or pass partial=True to read the others only"
        )


# Leaves


def _leaf(saved: _Saved, number: int, request: Any) -> Callable[[], Coroutine[Any, Any, Any]]:
    record = saved.records[number]
    if not _is_prefix(request):
        _check_type(saved, number, request)
    if record["kind"] in SCALAR_TYPES:
        value = decoded(record)

        async def constant() -> Any:
            return _placed_scalar(value, request)

        return constant
    return lambda: _array(saved, number, record, request)


def _check_type(saved: _Saved, number: int, request: Any) -> None:
    record = saved.records[number]
    kind = record["kind"]
    scalar = SCALAR_TYPES.get(kind)
    text = f"{kind} in Python" if scalar else f"{record['dtype']}{record['shape']}"
    if isinstance(request, _PYTHON):
        same = type(request) is scalar if scalar else not record["shape"]
        requested = f"{type(request).__name__} in Python"
    elif isinstance(request, (ShapeDtypeStruct, Array, np.ndarray, np.generic)):
        shape, dtype = list(request.shape), str(request.dtype)
        if scalar:
            same = not shape and scalar in (bool, int, float, complex)
        else:
            same = shape == record["shape"] and dtype == record["dtype"]
        requested = f"{dtype}{shape}"
    else:
        raise TypeError(
            f"the target has a {type(request).__name__} at {saved.name(number)}: pass a sharding, "
            "a mesh, a ShapeDtypeStruct, an array, numpy.ndarray or a Python number"
        )
    if not same:
        raise CheckpointMismatchError(
            f"the leaf at {saved.name(number)} of the checkpoint in {saved.folder} is {text}, but "
            f"the target asks for {requested}"
        )


def _placed_scalar(value: Any, request: Any) -> Any:
    if isinstance(request, (np.ndarray, np.generic)):
        return np.asarray(value, request.dtype)
    if isinstance(request, (ShapeDtypeStruct, Array)):
        return device_put(np.asarray(value, request.dtype), _sharding_of(request))
    return value


def _sharding_of(request: Any) -> Any:
    if isinstance(request, Array):
        return request.sharding if request.committed else None
    return request.sharding


async def _array(saved: _Saved, number: int, record: dict[str, Any], request: Any) -> Any:
    dtype = _dtype(saved, number, record)
    is_key = is_key_dtype(dtype)
    read = await open_array(saved.folder, number, record, saved.name(number))
    stored_shape = tuple(record["stored_shape"])
    host = dtypes.as_dtype(record["stored"]) if is_key else dtype

    async def part(bounds: Any) -> np.ndarray:
        if any(a == b for a, b in bounds):
            return np.empty([b - a for a, b in bounds], host)
        values: np.ndarray = (await read(bounds)).view(host)
        return values

    sharding = _requested_sharding(saved, number, record, request)
    if sharding is None:
        everything = tuple([(0, n) for n in stored_shape])
        size = int(np.prod(stored_shape)) * host.itemsize
        await saved.limiter.wait_for_bytes(size)
        try:
            values: Any = await part(everything)
        finally:
            await saved.limiter.release_bytes(size)
        if is_key:
            return _Words(values, dtype.impl, None)
        if isinstance(request, _PYTHON):
            return type(request)(values[()])
        if isinstance(request, (Array, ShapeDtypeStruct)):
            return device_put(_canonical(saved, number, values))
        return values
    if not is_key:
        _canonical(saved, number, np.empty((0,), dtype))
    words = await read_parts(part, stored_shape, host, sharding, saved.limiter)
    if not is_key:
        return words
    return _Words(words, dtype.impl, sharding)


def _canonical(saved: _Saved, number: int, values: np.ndarray) -> np.ndarray:
    if dtypes.canonicalize_dtype(values.dtype) != values.dtype:
        raise CheckpointMismatchError(
            f"the leaf at {saved.name(number)} of the checkpoint in {saved.folder} has dtype "
            f"{values.dtype}, which arrays on devices have only with the option enable_x64. Set "
            "it, or pass numpy.ndarray"
        )
    return values


def _dtype(saved: _Saved, number: int, record: dict[str, Any]) -> Any:
    name = record["dtype"]
    if "key_impl" not in record:
        return dtypes.as_dtype(name)
    dtype = dtypes.extended_dtypes.get(name)
    if dtype is None:
        raise CheckpointError(
            f"the leaf at {saved.name(number)} of the checkpoint in {saved.folder} has random keys "
            f"of {record['key_impl']!r}, which is not defined in this process: import the package "
            "that defines it first (primax_numpy.random, or one that calls register_prng_impl)"
        )
    return dtype


def _requested_sharding(
    saved: _Saved, number: int, record: dict[str, Any], request: Any
) -> Sharding | None:
    if request is np.ndarray or isinstance(request, (np.ndarray, np.generic, *_PYTHON)):
        return None
    if isinstance(request, Mesh):
        sharding: Sharding | None = None if record["kind"] == "numpy" else _along(request, record)
    else:
        requested = as_sharding(request)
        sharding = requested if isinstance(requested, Sharding) else _sharding_of(request)
    if sharding is not None:
        try:
            sharding.shard_shape(tuple(record["shape"]))
        except ValueError as e:
            raise ValueError(
                f"the leaf at {saved.name(number)} of the checkpoint in {saved.folder} cannot have "
                f"the requested sharding: {e}"
            ) from e
    return sharding


def _along(mesh: Mesh, record: dict[str, Any]) -> NamedSharding:
    entries = record.get("sharding", {"spec": []})["spec"]
    names = [tuple([n for n in entry if n in mesh.axis_names]) for entry in entries]
    return NamedSharding(mesh, PartitionSpec(*[n or None for n in names]))
