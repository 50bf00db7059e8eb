"""How functions are declared: the part that works on arrays, compiled as one program."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from primax_core.extend import library_function

from ._checks import check_arrays

_F = TypeVar("_F", bound=Callable[..., Any])


def compiled(*static: str, name: str | None = None) -> Callable[[Callable[..., Any]], Any]:
    """Make a function of arrays one compiled call eagerly, and one spliced program in traces.

    The function takes arrays (pytrees of them) positionally and the static parameters, hashable
    values, as keywords. A public function checks its arguments, brings them into one form, so that
    calls that mean the same share a program, and calls it::

        @compiled("axis")
        def _ptp(a, *, axis): ...


        def ptp(a, axis=None, out=None, keepdims=False): ...

    Args:
      static: the names of the static parameters.
      name: what the program is called, by default the function without its underscore.
    """

    def declare(fun: Callable[..., Any]) -> Any:
        fun.__name__ = name or fun.__name__.strip("_")
        return library_function(fun, static_argnames=static)

    return declare


def checked(check: Callable[..., None]) -> Callable[[_F], _F]:
    """Make a public function whose arguments are all arrays one compiled call, as it stands.

    Args:
      check: refuses bad arguments; called where they are not of types that were met before.
    """

    def declare(fun: _F) -> _F:
        front: Any = library_function(fun, check=check)
        return front

    return declare


def elementwise(fun: _F) -> _F:
    """As `checked`, for functions that take any arrays and numbers; others are refused in its
    name."""
    return checked(partial(check_arrays, fun.__name__))(fun)


def given(*arrays: Any) -> tuple[Any, ...]:
    """Arguments without the last ones that are ``None``, the defaults of compiled functions.

    A call of arrays alone finds its executable at once.

    >>> given(1, None, 2, None, None)
    (1, None, 2)
    """
    n = len(arrays)
    while n and arrays[n - 1] is None:
        n -= 1
    return arrays[:n]
