"""Transfers of trees of values to devices and to the host, and waiting for values."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base import pytree
from .._base.config import state
from .._base.pytree import PyTree
from .._base.tree_prefix import flatten_axes
from .._ir import dtypes
from .._runtime import guards
from .._runtime.array import ArrayImpl
from .._runtime.devices import Device
from .._runtime.jaxlib_versions import start_copies_to_host
from .._runtime.layouts import Format, PlacementLike
from .._runtime.live import live_arrays as live_arrays
from .._runtime.sharding import Sharding, as_sharding
from .._trace.core import Tracer
from ..lax.placement import ArrayCopySemantics, Place, Space, moved, place

_flatten, _unflatten = pytree.tree_flatten, pytree.tree_unflatten


def device_put(
    x: PyTree,
    device: PlacementLike | PyTree | None = None,
    *,
    src: PlacementLike | PyTree | None = None,
    donate: bool | PyTree = False,
    may_alias: bool | PyTree | None = None,
) -> Any:
    """A tree of values as arrays on a device.

    Args:
      x: a tree of arrays, NumPy arrays and numbers.
      device: a device, a sharding, a format (a sharding with a layout), a memory kind
        (`memory.Space`) or ``None``, or a prefix of the tree with these as leaves. Arrays with a
        placement are *committed*: computations with them run there. ``None`` leaves arrays in
        place, and transfers other values, uncommitted, to the default device.
      src: the source of the values, like ``device``; cotangents are sent back there. By default
        the placement of the values.
      donate: the operand's memory may be reused; a hint. A bool, or a prefix of the tree.
      may_alias: the result may share the operand's memory, by default if possible. ``False``
        copies.

    Returns:
      A tree of the structure of ``x`` with arrays.

    Raises:
      TypeError: if a leaf is not an array or a number.
      ValueError: if a placement is invalid, or the prefix does not match the tree.

    Transfers are asynchronous. The function is the identity in derivatives, with cotangents on
    the source's device; under ``jit`` it is part of the executable.

    >>> import numpy as np
    >>> device_put({"a": np.arange(3), "b": 1.0})
    {'a': Array([0, 1, 2], dtype=int32), 'b': Array(1., dtype=float32, weak_type=True)}
    """
    leaves, tree = _flatten(x)
    devices = _placements("device_put device", tree, device)
    srcs = _placements("device_put src", tree, src)
    semantics = [
        _semantics(d, a)
        for d, a in zip(
            flatten_axes("device_put donate", tree, donate),
            flatten_axes("device_put may_alias", tree, may_alias),
        )
    ]
    if state.trace is None and not any(isinstance(leaf, Tracer) for leaf in leaves):
        arrays: list[Any] = []
        try:
            arrays.extend(map(moved, leaves, devices, semantics))
        except (TypeError, ValueError) as e:
            raise _at_leaf(e, tree, len(arrays)) from e.__cause__
        return _unflatten(tree, arrays)
    if not leaves:
        return x
    srcs = [_source(leaf, d, s) for leaf, d, s in zip(leaves, devices, srcs)]
    return _unflatten(tree, place(leaves, devices, srcs, semantics))


def _at_leaf(error: Exception, tree: Any, number: int) -> Exception:
    """The error of a leaf with its path, if it is one of a tree."""
    if type(error) not in (TypeError, ValueError):
        return error
    path, _ = pytree.tree_leaves_with_path(_unflatten(tree, range(tree.num_leaves)))[number]
    return type(error)(f"device_put of the leaf {pytree.keystr(path)}: {error}") if path else error


def _placements(name: str, tree, placement: Any) -> list[Place]:
    if placement is None or isinstance(placement, (Device, Sharding, Space, Format)):
        return [placement] * tree.num_leaves
    placements = list(map(as_sharding, flatten_axes(name, tree, placement)))
    for p in placements:
        if p is not None and not isinstance(p, (Device, Sharding, Space, Format)):
            raise ValueError(
                f"{name} takes a device, a sharding, a memory.Space or None, or a tree of these; "
                f"got {p!r} of type {type(p)}. See primax.devices()"
            )
    return placements


def _semantics(donate: bool, may_alias: bool | None) -> ArrayCopySemantics:
    if donate and may_alias:
        raise ValueError("may_alias and donate cannot be True at the same time.")
    if donate:
        return ArrayCopySemantics.DONATE_INPUT
    if may_alias is False:
        return ArrayCopySemantics.ALWAYS_COPY
    return ArrayCopySemantics.REUSE_INPUT


def _source(leaf: Any, device: Place, src: Place) -> Place:
    if src is not None or device is None:
        return src
    value = leaf._concrete() if isinstance(leaf, Tracer) else leaf
    return value.sharding if isinstance(value, ArrayImpl) else None


def device_get(x: PyTree) -> Any:
    """A tree of values on the host: arrays become NumPy arrays, other values are unchanged.

    All transfers are started before the first one is waited for.

    Args:
      x: a pytree of arrays and other values.

    Returns:
      The pytree with NumPy arrays. A result may share memory with the array and is read-only.

    Raises:
      JaxRuntimeError: if the computation of an array failed.

    Tracers are returned unchanged, because they have no values.

    >>> device_get({"a": device_put(1.5), "b": 2})
    {'a': array(1.5, dtype=float32), 'b': 2}
    >>> device_get(device_put([1, 2]))
    [array(1, dtype=int32), array(2, dtype=int32)]
    """
    leaves, tree = _flatten(x)
    _start_copies(leaves)
    with guards.checked("device_to_host"):
        return _unflatten(tree, [_on_host(leaf) for leaf in leaves])


def _on_host(leaf: Any) -> Any:
    if isinstance(leaf, ArrayImpl):
        return leaf if isinstance(leaf.dtype, dtypes.ExtendedDType) else leaf._value
    if isinstance(leaf, (Tracer, np.ndarray)) or not hasattr(leaf, "__array__"):
        return leaf
    return np.asarray(leaf)


def _start_copies(leaves: list[Any]) -> None:
    arrays = [a for a in leaves if isinstance(a, ArrayImpl)]
    for a in arrays:
        a._check_alive()
    remote = [a._buf for a in arrays if a.platform() != "cpu"]
    if remote:
        start_copies_to_host(remote)


def block_until_ready(x: PyTree) -> Any:
    """Wait until all arrays of a tree are computed; return the tree.

    Computations are asynchronous: a call returns before its results are computed. Time
    measurements need this function.

    Args:
      x: a pytree. Leaves that are not arrays are ignored.

    Returns:
      ``x``.

    Raises:
      JaxRuntimeError: if a computation failed, for example because a callback raised an error.

    Tracers are ignored too, so the function may stay in a function that is traced.

    >>> import numpy as np
    >>> block_until_ready({"a": device_put(np.arange(3)), "b": "text"})
    {'a': Array([0, 1, 2], dtype=int32), 'b': 'text'}
    """
    for leaf in _flatten(x)[0]:
        wait = getattr(leaf, "block_until_ready", None)
        if wait is not None:
            wait()
    return x


def copy_to_host_async(x: PyTree) -> Any:
    """Start the transfer of all arrays of a tree to the host; return the tree.

    A later conversion to NumPy waits for the transfers, which run while other work goes on.

    Args:
      x: a pytree. Leaves that are not arrays are ignored.

    Returns:
      ``x``.

    Raises:
      RuntimeError: if an array was deleted or donated.

    On CPUs nothing is copied.

    >>> import numpy as np
    >>> x = copy_to_host_async(device_put(np.arange(3)))
    >>> np.asarray(x).tolist()
    [0, 1, 2]
    """
    _start_copies(_flatten(x)[0])
    return x
