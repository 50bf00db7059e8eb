"""Devices of a mesh that run one kernel: positions along its axes, and numbers of devices."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from primax_core import dtypes, lax
from primax_core.extend import Primitive, ShapedArray, abstract, expand, place, typeof
from primax_core.extend.placements import is_placed
from primax_core.extend.traces import AxisOwner, axes_in_scope, named_axes, owner_of

Axes = tuple[tuple[Any, int], ...]
"""Names and sizes of the axes of a mesh, in its order."""


class DeviceIdType(enum.Enum):
    """Forms of the number of a device.

    ``MESH``: its positions along the axes of the mesh. ``LOGICAL``: one number, which counts the
    devices of the mesh in row-major order.
    """

    MESH = "mesh"
    LOGICAL = "logical"


device_position_p: Final[Primitive] = Primitive("device_position")
"""The position of the device along an axis of the mesh, in a kernel."""


@device_position_p.rule(abstract)
def _abstract(*, axis_name: Any, mesh: Axes) -> ShapedArray:
    return ShapedArray((), np.dtype(np.int32))


@device_position_p.rule(place)
def _place(abstract: Any, in_avals: Any, params: Any) -> Any:
    """The type of ``lax.axis_index`` over the same axis, outside of kernels too."""
    rule = lax.axis_index_p.rules.get(place)  # of the wheel that has meshes
    if rule is None:
        return abstract(*in_avals), None
    return rule(abstract, in_avals, {"axis_name": params["axis_name"]})


@device_position_p.rule(expand)
def _expand(*, axis_name: Any, mesh: Axes) -> Any:
    with unchecked(mesh):
        return lax.axis_index_p.bind(axis_name=axis_name)


class _DevicesOwner(AxisOwner):
    """Binds ``lax.axis_index`` over the axes of a mesh inside of a kernel."""

    def __init__(self, axes: Axes) -> None:
        self.axes = axes

    def __eq__(self, other: object) -> bool:
        return type(other) is _DevicesOwner and other.axes == self.axes

    def __hash__(self) -> int:
        return hash((_DevicesOwner, self.axes))

    def bind(
        self, prim: Primitive, args: Sequence[Any], params: dict[str, Any], to: str = "varying"
    ) -> Any:
        """The position of the device; other collectives are bound as they are."""
        if prim is lax.axis_index_p:
            return device_position_p.bind(axis_name=params["axis_name"], mesh=self.axes)
        return prim.bind(*args, **params)

    def cast(self, x: Any, names: tuple[Any, ...], to: str) -> Any:
        """The value itself: types inside of kernels do not say how devices differ."""
        return x


class _PlainOwner(_DevicesOwner):
    """Binds collectives over the axes of a mesh as they are, in expansions."""

    def __eq__(self, other: object) -> bool:
        return type(other) is _PlainOwner and other.axes == self.axes

    def __hash__(self) -> int:
        return hash((_PlainOwner, self.axes))

    def bind(
        self, prim: Primitive, args: Sequence[Any], params: dict[str, Any], to: str = "varying"
    ) -> Any:
        """The result of the primitive."""
        return prim.bind(*args, **params)


def _mesh() -> Any:
    """The mesh whose manual axes are in scope, or ``None``."""
    for name in reversed(axes_in_scope()):
        mesh = getattr(owner_of((name,)), "mesh", None)
        if mesh is not None:
            return mesh
    return None


def mesh_axes() -> Axes:
    """The axes of the mesh whose devices run the current function; ``()`` if there is none."""
    mesh = _mesh()
    return () if mesh is None else tuple(mesh.shape.items())


def _own_axes() -> Axes:
    """The axes of the mesh for the kernel that is traced."""
    for name in reversed(axes_in_scope()):
        owner = owner_of((name,))
        if isinstance(owner, _DevicesOwner):
            return owner.axes
    return ()


@contextmanager
def devices_of_kernel() -> Iterator[None]:
    """Bind the axes of the mesh around while a kernel is traced."""
    axes = mesh_axes()
    if not axes:
        yield
        return
    manual = {n: size for n, size in axes if n in axes_in_scope()}
    with named_axes(manual, _DevicesOwner(axes)):
        yield


@contextmanager
def unchecked(axes: Axes) -> Iterator[None]:
    """Bind collectives over the axes of a mesh without checks of types, for expansions."""
    with named_axes(dict(axes), _PlainOwner(axes)):
        yield


def varying(x: Any) -> Any:
    """An operand or result of a kernel whose devices differ, with a type that says so."""
    aval = typeof(x)
    known = aval.placement.varying if is_placed(aval) else frozenset()
    missing = tuple(n for n, _ in mesh_axes() if n in axes_in_scope() and n not in known)
    return lax.pcast(x, missing, to="varying") if missing else x


# Numbers of devices


def logical_device(function: str, device_id: Any, device_id_type: Any) -> tuple[Any, Axes]:
    """The number of a device, an ``int32`` scalar, and the axes of its mesh.

    Args:
      function: the caller, for errors.
      device_id: an integer scalar, a sequence with a position for each axis of the mesh, or a
        mapping from names of axes to positions; the other positions are those of this device.
      device_id_type: a `DeviceIdType`, its value, or ``None``: a scalar is then the position along
        the only axis.

    Raises:
      RuntimeError: if no mesh is around.
      TypeError: for a position that is no integer.
      ValueError: for a number that does not fit the mesh.
    """
    axes = _own_axes()
    if not axes:
        raise RuntimeError(
            f"{function} to another device, but no mesh is around the kernel: call the kernel "
            "inside of shard_map, with all axes of the mesh manual"
        )
    automatic = [n for n, _ in axes if n not in axes_in_scope()]
    if automatic:
        raise ValueError(
            f"{function} to another device, but the axes {automatic} of the mesh are not manual in "
            "the shard_map around the kernel: leave its axis_names away"
        )
    kind = _kind(function, device_id_type)
    if kind is DeviceIdType.LOGICAL:
        count = math.prod(n for _, n in axes)
        return _position(function, device_id, count, "the device"), axes
    number: Any = np.int32(0)
    positions = _positions(function, device_id, axes)
    for name, size in axes:
        if name in positions:
            at = positions[name]
        else:
            at = device_position_p.bind(axis_name=name, mesh=axes)
        number = lax.add(lax.mul(number, np.int32(size)), at)
    return number, axes


def _kind(function: str, device_id_type: Any) -> DeviceIdType:
    value = getattr(device_id_type, "value", device_id_type)
    try:
        return DeviceIdType.MESH if value is None else DeviceIdType(value)
    except ValueError:
        raise ValueError(
            f"{function}: device_id_type is DeviceIdType.MESH, DeviceIdType.LOGICAL or None, got "
            f"{device_id_type!r}"
        ) from None


def _positions(function: str, device_id: Any, axes: Axes) -> dict[Any, Any]:
    """The positions along the axes that a number of a device names."""
    sizes = dict(axes)
    if not isinstance(device_id, Mapping):
        several = isinstance(device_id, (tuple, list))
        entries = list(device_id) if several else [device_id]
        if len(entries) != len(axes):
            names = ", ".join(map(repr, sizes))
            raise ValueError(
                f"{function}: device_id has {len(entries)} positions and the mesh {len(axes)} axes "
                f"({names}): pass a position for each, a dict such as {{{axes[-1][0]!r}: 0}}, or "
                "device_id_type=DeviceIdType.LOGICAL"
            )
        device_id = dict(zip(sizes, entries))
    positions: dict[Any, Any] = {}
    for key, value in device_id.items():
        names = key if isinstance(key, tuple) else (key,)
        for name in names:
            if name not in sizes:
                raise ValueError(
                    f"{function}: device_id has the axis {name!r}; the axes of the mesh are "
                    f"{', '.join(map(repr, sizes))}"
                )
            if name in positions:
                raise ValueError(f"{function}: device_id has the axis {name!r} twice")
            positions[name] = None
        count = math.prod(sizes[n] for n in names)
        rest = _position(function, value, count, f"the position along {key!r}")
        for name in reversed(names):
            if name == names[0]:
                positions[name] = rest
                break
            positions[name] = lax.rem(rest, np.int32(sizes[name]))
            rest = lax.div(rest, np.int32(sizes[name]))
    return positions


def _position(function: str, x: Any, count: int, what: str) -> Any:
    """An ``int32`` scalar from 0 to ``count - 1``."""
    listed = x is None or isinstance(x, (tuple, list, dict))
    aval = None if listed else typeof(x)
    dtype, shape = getattr(aval, "dtype", None), getattr(aval, "shape", None)
    if isinstance(x, bool) or dtype is None or not dtypes.issubdtype(dtype, np.integer):
        raise TypeError(f"{function}: {what} is an integer scalar, got {x!r}")
    if shape != ():
        raise ValueError(f"{function}: {what} is a scalar, got an array of shape {shape}")
    if isinstance(x, (int, np.integer)) and not 0 <= x < count:
        raise ValueError(f"{function}: {what} is {x}; it is from 0 to {count - 1}")
    return lax.convert_element_type(x, np.int32)
