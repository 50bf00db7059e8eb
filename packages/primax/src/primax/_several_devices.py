"""Names that need several devices: they exist, but raise errors in this version."""

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
    """Return the error for a missing name of ``module``, with the reason if it is known."""
    text = f"module {module!r} has no attribute {name!r}"
    if name in _NAMES:
        text += ": this version of Primax computes on one device at a time, without meshes"
    return AttributeError(text, name=name)


class OverDevices(type):
    """Metaclass of classes that cannot be instantiated on a single device."""

    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(
            f"{cls.__name__}: this version of Primax computes on one device at a time, without "
            "meshes"
        )


class Unavailable:
    """Function over several devices, which raises an error when called."""

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
    """Unsupported: map a function over devices; calling the result raises an error.

    The name exists because libraries refer to it, and apply it, at import. Use :func:`primax.vmap`
    to map a function over an axis on one device.
    """
    return Unavailable("pmap", fun)
