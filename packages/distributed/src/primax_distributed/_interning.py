"""Interned objects: equal ones that exist at the same time are one object."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, NoReturn, TypeVar
from weakref import WeakValueDictionary

from primax_core.extend.runtime import new_lock

_T = TypeVar("_T", bound=object)


class Interned(Generic[_T]):
    """The objects of one class by their contents, as long as they are referenced."""

    def __init__(self) -> None:
        self._objects: WeakValueDictionary[Hashable, _T] = WeakValueDictionary()
        self._lock = new_lock()

    def get(self, key: Hashable) -> _T | None:
        """The object with these contents, if it exists.

        Raises:
          TypeError: if the contents are not hashable.
        """
        return self._objects.get(key)

    def add(self, key: Hashable, create: Callable[[], _T]) -> _T:
        """The object with these contents, created if it does not exist."""
        with self._lock:
            known = self._objects.get(key)
            if known is None:
                known = self._objects[key] = create()
            return known


class Immutable:
    """Base class of interned objects: they are compared by identity and cannot be changed.

    A constructor sets attributes with :func:`put`.
    """

    __slots__ = ("__weakref__",)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(
            f"cannot assign to {name!r}: {type(self).__name__} is immutable; see its method update"
        )

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"cannot delete {name!r}: {type(self).__name__} is immutable")

    def __copy__(self: _T) -> _T:
        return self

    def __deepcopy__(self: _T, memo: object) -> _T:
        return self


put = object.__setattr__
"""Set an attribute of a new immutable object."""
