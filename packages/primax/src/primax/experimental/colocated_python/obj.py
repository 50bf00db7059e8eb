"""Classes whose methods run on the hosts of their arguments' devices."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from typing import Any

from .func import Specialization, specialized
from .serialization import copy_of


class Instance:
    """An object that is made, of copies, by the first call of a method."""

    def __init__(self, cls: type[object], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._made_of: tuple[type[object], tuple[Any, ...], dict[str, Any]] = (cls, args, kwargs)
        self._object: Any = None
        self._is_made: bool = False
        self._lock: threading.RLock = threading.RLock()

    def call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Call a method of the object."""
        with self._lock:
            if not self._is_made:
                cls, init_args, init_kwargs = copy_of(self._made_of)
                self._object = cls(*init_args, **init_kwargs)
                self._is_made = True
        return getattr(self._object, method)(*args, **kwargs)


def wrap_class(cls: type[object]) -> type[object]:
    """Return the class as :func:`..api.colocated_python_class` does."""
    if not isinstance(cls, type):
        raise TypeError(f"colocated_python_class expects a class, not {cls!r}")

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        instance = Instance(cls, args, kwargs)
        for name, method in methods_of(cls).items():
            new = functools.partial(functools.partial, instance.call, name)
            setattr(
                self, name, specialized(method, f"{cls.__name__}.{name}", new, Specialization())
            )

    functools.update_wrapper(__init__, cls.__init__, updated=())
    members = {
        "__init__": __init__, "__doc__": cls.__doc__, "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
    }  # fmt: skip
    return type(cls.__name__, (), members)


def methods_of(cls: type[object]) -> dict[str, Callable[..., Any]]:
    """The functions of a class and its bases, except those with names such as ``__len__``."""
    return {
        name: value
        for name, value in inspect.getmembers(cls, inspect.isfunction)
        if not (name.startswith("__") and name.endswith("__"))
    }
