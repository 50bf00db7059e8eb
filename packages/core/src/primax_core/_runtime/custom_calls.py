"""Native functions that compiled programs call, registered when a program first needs them.

A lowering rule names what its custom calls need (``ctx.needs.add("lapack")``); the name goes with
the module, with the executable and into the cache on disk, and :func:`ensure` runs before the
program is compiled or loaded: XLA finds targets by name in a table of the process, and a program
loaded from disk that calls a missing one crashes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from .._base.locks import new_rlock

_providers: dict[str, Callable[[], None]] = {}
_done: set[str] = set()
_lock = new_rlock()


def provides_custom_calls(name: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Decorator of the function that registers what ``name`` stands for; it runs once."""

    def register(fun: Callable[[], None]) -> Callable[[], None]:
        if name in _providers:
            raise ValueError(f"custom calls named {name!r} are provided already")
        _providers[name] = fun
        return fun

    return register


def ensure(names: Iterable[str]) -> None:
    """Register the native functions that go by these names.

    Raises:
      LookupError: if nothing provides one of them.
    """
    for name in names:
        if name not in _done:
            with _lock:
                if name not in _providers:
                    raise LookupError(
                        f"a program calls native functions {name!r}: nothing here "
                        "provides them. Import the package that made the program."
                    )
                if name not in _done:
                    _providers[name]()
                    _done.add(name)
