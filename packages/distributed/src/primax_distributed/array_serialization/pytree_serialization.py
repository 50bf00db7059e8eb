"""Trees of arrays in a folder, with the reference's interface.

Each folder has one tree; a later one replaces it. The folder is one of
:mod:`primax_distributed.checkpoint`, whose guarantees hold: a tree appears at once when it is
complete, and damage is detected. It is not the reference's format.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Final

from primax_core import Array, ShapeDtypeStruct, device_put, tree_util
from primax_core.extend import node_serialization
from primax_core.extend.runtime import Sharding
from primax_core.layout import Format
from primax_core.typing import PyTree

from ..checkpoint import CheckpointNotFoundError, describe, restore
from ..checkpoint._folders import Place, checked_path, folders, is_own_name
from ..checkpoint._save import prepare
from ..checkpoint._steps import structure
from ..checkpoint._structure import unregistered_classes

_STEP: Final = 0
_BYTES: Final = 4 << 30
_SECONDS: Final = 300.0
_CONTAINERS: Final = (dict, list, tuple, OrderedDict)


class PyTreeFuture(Future[Any]):
    """A future of a tree; ``pytree`` is the tree with a ``ShapeDtypeStruct`` for each array."""

    def __init__(self, pytree: Any) -> None:
        super().__init__()
        self.pytree: Any = pytree


def save(
    data: PyTree,
    directory: str | os.PathLike[str],
    *,
    overwrite: bool = True,
    ts_specs: None = None,
) -> None:
    """Write a tree of arrays to a folder, and wait until it is complete.

    All processes call it with the same tree; each writes the parts of its devices.

    Args:
      data: a tree whose leaves are arrays, of dicts with string keys, lists, tuples,
        ``OrderedDict``, ``None``, and classes that are registered for serialization
        (``export.register_pytree_node_serialization``, ``register_namedtuple_serialization``).
      directory: a folder of a file system, which is created, or an address in an object store.
      overwrite: replace the tree of the folder.
      ts_specs: must be ``None``: arrays at addresses or in formats of your choice are written by
        ``serialization.run_serialization``.

    Raises:
      TypeError: a node is of another class, a key is not a string, or ``ts_specs`` is given.
      ValueError: a leaf is not an array, or the folder has a tree and ``overwrite`` is false.
      RuntimeError: the folder contains something else.
      CheckpointWriteError: no space, no permission, or another process failed.

    >>> import tempfile, primax_core as pc
    >>> folder, x = tempfile.mkdtemp(), pc.device_put(2.0)
    >>> save({"w": x, "bias": None}, folder)
    >>> load(folder, x.sharding)
    {'bias': None, 'w': Array(2., dtype=float32)}
    """
    _prepared(data, directory, overwrite, ts_specs)()


def nonblocking_save(
    data: PyTree,
    directory: str | os.PathLike[str],
    *,
    overwrite: bool = True,
    ts_specs: None = None,
) -> PyTreeFuture:
    """Copy a tree to the host, and write it in a thread; arguments and errors as for :func:`save`.

    The arrays may be donated or deleted afterwards.

    Returns:
      A future whose result is ``None`` when the tree is complete in all processes. Errors of the
      writing are raised by its ``result``.
    """
    write = _prepared(data, directory, overwrite, ts_specs)
    return _in_thread(write, tree_util.tree_map(_type_of, data))


def load(
    directory: str | os.PathLike[str],
    shardings: PyTree,
    *,
    mask: PyTree = None,
    ts_specs: None = None,
) -> Any:
    """Read a tree; each process reads the parts of its devices.

    Args:
      directory: a folder of :func:`save`.
      shardings: a sharding or ``Format`` for each array, or for subtrees.
      mask: a bool for each array, or for subtrees; where it is false the array is not read, and the
        result is ``None``.
      ts_specs: must be ``None``, as for :func:`save`.

    Raises:
      TypeError: an element of ``shardings`` is no sharding over devices.
      ValueError: ``shardings`` or ``mask`` does not match the tree, or a size is not divisible.
      CheckpointNotFoundError: a ``FileNotFoundError``; the folder has no complete tree.
      CheckpointDamagedError: files are missing, truncated or changed.
    """
    return _prepared_load(directory, shardings, mask, ts_specs)[0]()


def nonblocking_load(
    directory: str | os.PathLike[str],
    shardings: PyTree,
    *,
    mask: PyTree = None,
    ts_specs: None = None,
) -> PyTreeFuture:
    """Read a tree in a thread; arguments and errors as for :func:`load`.

    Returns:
      A future whose result is the tree.
    """
    return _in_thread(*_prepared_load(directory, shardings, mask, ts_specs))


def load_pytreedef(directory: str | os.PathLike[str]) -> Any:
    """The tree of a folder with a ``ShapeDtypeStruct`` for each array.

    Raises:
      CheckpointNotFoundError: a ``FileNotFoundError``; the folder has no complete tree.
      ValueError: a class of the tree is not registered for serialization in this process.
    """
    try:
        unregistered = unregistered_classes(structure(directory, _STEP))
    except CheckpointNotFoundError as e:
        raise CheckpointNotFoundError(f"{directory} has no tree of pytree_serialization") from e
    if unregistered:
        raise ValueError(
            f"{directory} has nodes of classes that are not registered here, saved as "
            f"{', '.join(map(repr, unregistered[:5]))}: import the module that registers them with "
            "export.register_pytree_node_serialization or register_namedtuple_serialization"
        )
    return describe(directory, _STEP)


def _check_no_specs(ts_specs: Any) -> None:
    if tree_util.tree_leaves(ts_specs):
        raise TypeError(
            "ts_specs must be None: pytree_serialization chooses addresses and formats. Write "
            "arrays with your own specs by array_serialization.serialization.run_serialization"
        )


def _prepared(data: Any, directory: Any, overwrite: bool, ts_specs: Any) -> Callable[[], None]:
    _check_no_specs(ts_specs)
    _check_node(data)
    path = checked_path(directory)
    _check_folder(path, overwrite)
    return prepare(path, data, _STEP, overwrite, _BYTES, _SECONDS).write


def _check_node(x: Any) -> None:
    if x is None or tree_util.all_leaves([x]):
        if x is not None and not isinstance(x, Array):
            raise ValueError(
                f"leaves must be arrays or None, got {x!r} of type {type(x).__name__}: convert it "
                "with device_put, or use primax_distributed.checkpoint.save"
            )
        return
    if type(x) not in _CONTAINERS and node_serialization(type(x)) is None:
        raise TypeError(
            f"a node of class {type(x).__name__} cannot be saved: register the class with "
            "export.register_pytree_node_serialization or register_namedtuple_serialization, or "
            "use primax_distributed.checkpoint.save, which restores it as a given class"
        )
    for key in x if type(x) in (dict, OrderedDict) else ():
        if type(key) is not str:
            raise TypeError(f"keys of saved dicts must be strings, got {key!r}")
    for child in tree_util.tree_leaves(x, is_leaf=lambda y: y is not x):
        _check_node(child)


def _check_folder(path: Place, overwrite: bool) -> None:
    if isinstance(path, Path):
        if not path.exists():
            return
        foreign = [name for name in sorted(os.listdir(path)) if not is_own_name(name, _STEP)]
    else:
        foreign = path.foreign(_STEP)
    if foreign:
        raise RuntimeError(
            f"{path} contains something else than a tree of pytree_serialization: "
            f"{', '.join(foreign[:5])}. Choose another folder"
        )
    if not overwrite and folders(path):
        raise ValueError(f"{path} has a tree already, and overwrite is false")


def _prepared_load(
    directory: Any, shardings: Any, mask: Any, ts_specs: Any
) -> tuple[Callable[[], Any], Any]:
    _check_no_specs(ts_specs)
    tree = load_pytreedef(directory)
    formats = tree_util.tree_broadcast(shardings, tree, is_leaf=lambda x: x is None)
    is_read = tree_util.tree_map(lambda _: True, tree)
    if mask is not None:
        is_read = tree_util.tree_broadcast(mask, tree)
    target = tree_util.tree_map(_target, tree, formats, is_read)
    types = tree_util.tree_map(lambda t, w: t if w else None, tree, is_read)

    def read() -> Any:
        values = restore(directory, target, step=_STEP, partial=True)
        return tree_util.tree_map(_formatted, values, tree_util.tree_map(_kept, formats, is_read))

    return read, types


def _target(_: Any, format: Any, is_read: bool) -> Any:
    sharding = format.sharding if isinstance(format, Format) else format
    if not isinstance(sharding, Sharding) or sharding._is_abstract:
        raise TypeError(
            "shardings must contain a sharding over devices, or a Format that has one, for each "
            f"array or subtree, got {format!r}"
        )
    return sharding if is_read else None


def _kept(format: Any, is_read: bool) -> Any:
    return format if is_read else None


def _formatted(value: Any, format: Any) -> Any:
    has_layout = isinstance(format, Format) and format.layout is not None
    return device_put(value, format) if has_layout else value


def _type_of(x: Array) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(x.shape, x.dtype)


def _in_thread(work: Callable[[], Any], pytree: Any) -> PyTreeFuture:
    future = PyTreeFuture(pytree)

    def run() -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            result = work()
        except BaseException as e:
            future.set_exception(e)
        else:
            future.set_result(result)

    # A thread that the interpreter waits for, so that the last tree is completed.
    threading.Thread(target=run, name="pytree_serialization").start()
    return future
