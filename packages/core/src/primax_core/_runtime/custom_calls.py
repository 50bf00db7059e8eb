"""Native functions called by executables, registered when an executable first needs them.

A lowering rule declares the custom calls that it needs (``ctx.needs.add("lapack")``). The name is
stored with the module, with the executable and in the cache on disk, and :func:`ensure` runs before
an executable is compiled or loaded. XLA looks up targets by name in a process-wide table, and an
executable loaded from disk that calls a missing target crashes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from .._base.locks import new_rlock

_providers: dict[str, Callable[[], None]] = {}
_done: set[str] = set()
_lock = new_rlock()


def provides_custom_calls(name: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Decorator of the function that registers the custom calls of a name; it runs once."""

    def register(fun: Callable[[], None]) -> Callable[[], None]:
        if name in _providers:
            raise ValueError(f"custom calls named {name!r} are already provided")
        _providers[name] = fun
        return fun

    return register


def ensure(names: Iterable[str]) -> None:
    """Register the native functions of these names.

    Raises:
      LookupError: if a name has no provider.
    """
    for name in names:
        if name not in _done:
            with _lock:
                if name not in _providers:
                    raise LookupError(
                        f"an executable calls the native functions {name!r}, which no imported "
                        "package provides. Import the package that created it."
                    )
                if name not in _done:
                    _providers[name]()
                    _done.add(name)
