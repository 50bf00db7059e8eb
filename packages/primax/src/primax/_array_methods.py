"""Array methods and indexing, loaded from the NumPy wheel on first use."""

from __future__ import annotations

from typing import Any, Final

from primax_core.extend import Array, Tracer, register_method

from ._wheels import wheel

_NAMES: Final = (
    "__getitem__ __matmul__ __rmatmul__ __contains__ __iter__ __array_namespace__ at flat T mT "
    "real imag astype view byteswap copy reshape transpose ravel flatten squeeze swapaxes repeat "
    "take choose compress nonzero diagonal trace dot clip round conj conjugate searchsorted sort "
    "argsort argpartition cumsum cumprod sum prod max min ptp mean var std all any argmax argmin"
).split()

_OF_ARRAYS: Final = (
    "addressable_data", "addressable_shards", "committed", "copy_to_host_async", "device",
    "global_shards", "is_fully_addressable", "is_fully_replicated", "item", "sharding",
)  # fmt: skip


# The class of the arrays that have values. Creating one would start a client, after which the
# number of devices can no longer be set.
CLASS_OF_ARRAYS: Final[type[Array]] = next(
    c for c in Array.__subclasses__() if not issubclass(c, Tracer)
)


class _Loading:
    """Placeholder for a method; loading the wheel replaces it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, obj: Any, owner: type | None = None) -> Any:
        if obj is None:
            return self
        try:
            wheel("primax_numpy", "numpy")
        except ImportError as e:
            if self.name.startswith("__"):
                raise
            # An AttributeError makes hasattr() return False.
            raise AttributeError(str(e), name=self.name, obj=obj) from e
        return getattr(obj, self.name)


class _OfArrays:
    """Attribute of arrays that tracers lack or define themselves.

    The class ``Array`` returns that of arrays, for libraries which wrap methods by the class.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, obj: Any, owner: type | None = None) -> Any:
        if obj is None:
            return getattr(CLASS_OF_ARRAYS, self.name)
        raise AttributeError(
            f"{type(obj).__name__!r} object has no attribute {self.name!r}", name=self.name, obj=obj
        )


for _name in (*_NAMES, *_OF_ARRAYS):
    _attribute = _OfArrays(_name) if _name in _OF_ARRAYS else _Loading(_name)
    try:
        register_method(_name, _attribute)
    except ValueError:  # the wheel is loaded, or the core has the method
        continue
