"""Names of the wheel for several devices, which is imported on first use of one of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from importlib.util import find_spec
from typing import Any, Final, NoReturn

from primax_core.typing import PyTree

from ._wheels import wheel

WHEEL: Final = "primax_distributed"
EXTRA: Final = "distributed"

OF_SHARDING: Final = frozenset(
    (
        "AbstractDevice",
        "AbstractMesh",
        "AxisType",
        "Infer",
        "ManualAxisType",
        "Mesh",
        "NamedSharding",
        "PartitionSpec",
        "UnreducedKind",
        "auto_axes",
        "explicit_axes",
        "get_abstract_mesh",
        "get_mesh",
        "make_single_device_sharding",
        "no_collectives",
        "reshard",
        "set_mesh",
        "use_abstract_mesh",
    )
)
"""Names of ``primax.sharding``."""

OF_ROOT: Final = frozenset(
    (
        "NamedSharding",
        "P",
        "get_abstract_mesh",
        "get_mesh",
        "make_array_from_callback",
        "make_array_from_process_local_data",
        "make_array_from_single_device_arrays",
        "make_mesh",
        "reshard",
        "set_mesh",
        "shard_map",
        "smap",
        "use_abstract_mesh",
    )
)
"""Names of ``primax``."""


def is_installed() -> bool:
    """Return True if the wheel can be imported."""
    return find_spec(WHEEL) is not None


def of_wheel(module: str, name: str) -> Any:
    """An attribute of the wheel, for a module of the facade.

    Raises:
      AttributeError: if the wheel is not installed, with the command that installs it; or if it
        does not have the name.
    """
    text = f"module {module!r} has no attribute {name!r}"
    try:
        distributed = wheel(WHEEL, EXTRA)
    except ImportError as e:
        if is_installed():
            raise
        raise AttributeError(f"{text}: {e}") from None
    try:
        return getattr(distributed, name)
    except AttributeError:
        raise AttributeError(text) from None


class NeedsWheel(type):
    """Metaclass of classes that stand for those of the wheel if it is not installed."""

    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise ImportError(
            f"{cls.__name__}: {WHEEL} is not installed; get it with: pip install 'primax[{EXTRA}]'"
        )


class Unavailable:
    """Function over several devices without the wheel: an error when called."""

    def __init__(self, what: str, fun: Callable[..., Any]) -> None:
        self.what: str = what
        self.__wrapped__: Callable[..., Any] = fun

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        name = getattr(self.__wrapped__, "__name__", self.__wrapped__)
        raise NotImplementedError(
            f"{self.what} of {name!r} needs {WHEEL}, which is not installed; get it with: pip "
            f"install 'primax[{EXTRA}]'. Or use vmap, which maps over an axis on one device (with "
            "axis_name for collectives such as lax.psum)."
        )


def pmap(
    fun: Callable[..., Any],
    axis_name: Hashable | None = None,
    *,
    in_axes: PyTree = 0,
    out_axes: PyTree = 0,
    static_broadcasted_argnums: int | Iterable[int] = (),
    devices: Sequence[Any] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Iterable[int] = (),
) -> Any:
    """Map a function over devices, as ``primax_distributed.pmap`` does.

    Without the wheel, calling the result raises an error: libraries refer to the name, and apply
    it, at import. Use :func:`primax.vmap` to map a function over an axis on one device.
    """
    if not is_installed():
        return Unavailable("pmap", fun)
    return of_wheel("primax", "pmap")(
        fun, axis_name, in_axes=in_axes, out_axes=out_axes,
        static_broadcasted_argnums=static_broadcasted_argnums, devices=devices, backend=backend,
        axis_size=axis_size, donate_argnums=donate_argnums,
    )  # fmt: skip
