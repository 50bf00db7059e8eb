"""Attributes of the reference that the core's classes have under other names or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from primax_core import Inline, vjp
from primax_core.extend import Jaxpr, ShapedArray, Tracer, typeof
from primax_core.extend.facade import SourceInfo, add_attributes, describe_unplaced
from primax_core.extend.runtime import Sharding


def _jaxpr(self: Jaxpr) -> Jaxpr:
    """The jaxpr itself: one class is both the open and the closed form."""
    return self


def _literals(self: Jaxpr) -> list[Any]:
    """The values of the constants: ``consts``."""
    return self.consts


def _map_jaxpr(self: Jaxpr, f: Callable[[Jaxpr], Jaxpr]) -> Jaxpr:
    """Return ``f`` of the jaxpr."""
    return f(self)


def _traceback(self: SourceInfo) -> Any:
    """The source location in the core's representation; ``None`` if unknown."""
    return tuple(self) or None


def _name_stack(self: SourceInfo) -> Any:
    """The enclosing scopes."""
    from ._adapters.naming import NameStack

    return NameStack.of(self.ctx)


def _replace(self: SourceInfo, *, traceback: Any = None, name_stack: Any = None) -> SourceInfo:
    """Return a copy with other fields."""
    info = SourceInfo(self if traceback is None else traceback)
    info.ctx = self.ctx if name_stack is None else name_stack.names()
    return info


add_attributes(
    SourceInfo,
    traceback=property(_traceback),
    name_stack=property(_name_stack),
    replace=_replace,
)
add_attributes(Jaxpr, jaxpr=property(_jaxpr), literals=property(_literals), map_jaxpr=_map_jaxpr)
add_attributes(type(vjp(lambda: ())[1]), structured_residuals=())


class _OfBatch:
    """An attribute that the core's tracers of ``vmap`` have; other classes may define their own."""

    def __init__(self, name: str, attribute: str) -> None:
        self.name = name
        self.attribute = attribute

    def __get__(self, instance: Any, owner: type) -> Any:
        from primax_core.extend.traces import BatchTrace

        trace = getattr(instance, "_trace", None)
        if isinstance(trace, BatchTrace) and hasattr(owner, self.attribute):
            return getattr(instance, self.attribute)
        raise AttributeError(f"{owner.__name__!r} object has no attribute {self.name!r}")


add_attributes(Tracer, val=_OfBatch("val", "value"), batch_dim=_OfBatch("batch_dim", "dim"))


class _NoMesh:
    """The mesh of values that are not sharded over devices."""

    __slots__ = ()

    axis_names: tuple[str, ...] = ()
    axis_types: tuple[Any, ...] = ()
    devices: tuple[Any, ...] = ()
    empty = True
    shape_tuple: tuple[Any, ...] = ()
    size = 0

    @property
    def shape(self) -> dict[str, int]:
        """Sizes of the axes by name."""
        return {}

    def __repr__(self) -> str:
        return "Mesh()"


def _spec(self: Any) -> Any:
    """The mesh axes of each array axis: none."""
    from .sharding import PartitionSpec

    return PartitionSpec()


def _own_devices(self: Sharding) -> tuple[Any, ...]:
    """The devices of this process, in order."""
    own = self.addressable_devices
    return tuple([d for d in self._devices if d in own])


def _in_order(self: Sharding) -> tuple[Any, ...]:
    """The devices in the order of the parts."""
    devices: tuple[Any, ...] = self._devices
    return devices


add_attributes(
    Sharding,
    _addressable_device_assignment=property(_own_devices),
    _device_assignment=property(_in_order),
    _internal_device_list=property(_in_order),
)
_unplaced = typeof(1.0).sharding


def _sharding_of_unplaced(ndim: int) -> Any:
    """A sharding over the axes of the current mesh that divides no axis."""
    from . import _several_devices

    if not _several_devices.is_installed():
        return _unplaced
    named = _several_devices.of_wheel("primax", "NamedSharding")
    spec = _several_devices.of_wheel("primax", "PartitionSpec")
    mesh = _several_devices.of_wheel("primax", "get_abstract_mesh")
    return named(mesh(), spec(*[None] * ndim))


describe_unplaced(_sharding_of_unplaced)
add_attributes(type(_unplaced), mesh=_NoMesh(), spec=property(_spec))
add_attributes(Inline, JAX_EARLY=Inline.TRACING, JAX_LATE=Inline.LOWERING)


def _manual_axis_type(self: ShapedArray) -> Any:
    """The manual mesh axes in the type, of the wheel for several devices."""
    from ._several_devices import of_wheel

    return of_wheel("primax", "manual_axis_type")(self)


def _vma(self: ShapedArray) -> Any:
    """The manual mesh axes along which values vary."""
    return _manual_axis_type(self).varying


add_attributes(
    ShapedArray,
    manual_axis_type=property(_manual_axis_type),
    mat=property(_manual_axis_type),
    vma=property(_vma),
)
