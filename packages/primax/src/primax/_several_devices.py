"""What needs several devices: known by name, and not part of this version."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NoReturn

_NAMES: Final = frozenset(
    "AbstractDevice AbstractMesh AxisType ManualAxisType Mesh NamedSharding P PartitionSpec "
    "UnreducedKind auto_axes explicit_axes get_abstract_mesh get_mesh make_array_from_callback "
    "make_array_from_process_local_data make_array_from_single_device_arrays make_mesh "
    "make_single_device_sharding no_collectives reshard set_mesh shard_map smap "
    "use_abstract_mesh".split()
)


def missing(module: str, name: str) -> AttributeError:
    """The error for a name of ``module`` that does not exist; it tells why, where that is known."""
    text = f"module {module!r} has no attribute {name!r}"
    if name in _NAMES:
        text += ": this version of Primax computes on one device at a time, without meshes"
    return AttributeError(text, name=name)


class OverDevices(type):
    """The class of classes of which there are no instances without several devices."""

    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(
            f"{cls.__name__}: this version of Primax computes on one device at a time, without "
            "meshes"
        )


class Unavailable:
    """A function over several devices, which cannot be called."""

    def __init__(self, what: str, fun: Callable[..., Any]) -> None:
        self.what: str = what
        self.__wrapped__: Callable[..., Any] = fun

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        name = getattr(self.__wrapped__, "__name__", self.__wrapped__)
        raise NotImplementedError(
            f"{self.what} of {name!r}: this version of Primax computes on one device at a time. "
            "Use vmap, which maps over an axis on one device (with axis_name for collectives such "
            "as lax.psum)."
        )


def pmap(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Unavailable:
    """One call for each device; not part of this version, so what it gives raises when called.

    The name exists because libraries mention it, and apply it, where they are imported.
    :func:`primax.vmap` maps a function over an axis on one device.
    """
    return Unavailable("pmap", fun)
