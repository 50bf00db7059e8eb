"""Declaration of functions whose array part is compiled."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from primax_core.extend import library_function

from ._checks import check_arrays

_F = TypeVar("_F", bound=Callable[..., Any])


def compiled(*static: str, name: str | None = None) -> Callable[[Callable[..., Any]], Any]:
    """Compile the array part of a function: one call eagerly, inlined operations under a trace.

    The function takes arrays (pytrees of them) positionally and static parameters, which are
    hashable, as keywords. A public function checks its arguments, normalizes them, so that
    equivalent calls share an executable, and calls it::

        @compiled("axis")
        def _ptp(a, *, axis): ...


        def ptp(a, axis=None, out=None, keepdims=False): ...

    Args:
      static: the names of the static parameters.
      name: the name in jaxprs and profiles, by default that of the function without its underscore.
    """

    def declare(fun: Callable[..., Any]) -> Any:
        fun.__name__ = name or fun.__name__.strip("_")
        return library_function(fun, static_argnames=static)

    return declare


def checked(check: Callable[..., None]) -> Callable[[_F], _F]:
    """Compile a public function whose arguments are all arrays.

    Args:
      check: raises an error for bad arguments; called for argument types that are not in the cache.
    """

    def declare(fun: _F) -> _F:
        front: Any = library_function(fun, check=check)
        return front

    return declare


def elementwise(fun: _F) -> _F:
    """As `checked`, for functions whose arguments are arrays and numbers; errors contain the name
    of the function.
    """
    return checked(partial(check_arrays, fun.__name__))(fun)


def trim_none(*arrays: Any) -> tuple[Any, ...]:
    """Arguments without trailing ``None``, the defaults of compiled functions.

    A call with arrays alone uses the fast path.

    >>> trim_none(1, None, 2, None, None)
    (1, None, 2)
    """
    n = len(arrays)
    while n and arrays[n - 1] is None:
        n -= 1
    return arrays[:n]
