"""Native functions called by executables, registered when an executable first needs them.

A lowering rule declares the custom calls that it needs (``ctx.needs.add("lapack")``). The name is
stored with the module, with the executable and in the cache on disk, and :func:`ensure` runs before
an executable is compiled or loaded. XLA looks up targets by name in a process-wide table, and an
executable loaded from disk that calls a missing target crashes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from .._base.identity import ROOT
from .._base.locks import new_rlock

_providers: Final[dict[str, Callable[[], bool | None]]] = {}
_loaders: Final[dict[str, Callable[[], None]]] = {}
_done: Final[set[str]] = set()
lock: Final = new_rlock()


def provides_custom_calls(
    name: str,
) -> Callable[[Callable[[], bool | None]], Callable[[], bool | None]]:
    """Decorator of the function that registers the custom calls of a name.

    The function runs when an executable that needs the name is compiled or loaded: native
    libraries are loaded only for programs that use them.

    Args:
      name: the name of the custom call.

    Returns:
      A decorator. The decorated function returns ``None``, or ``False`` if it has to be called
      again.

    Raises:
      ValueError: if the name already has a function.

    It runs once in a process, or until it does not return ``False``.

    >>> from primax_core.extend.lowering import provides_custom_calls
    >>> @provides_custom_calls("acme_kernel")
    ... def register():
    ...     pass  # load the library and register its handlers
    """

    def register(fun: Callable[[], bool | None]) -> Callable[[], bool | None]:
        if name in _providers:
            raise ValueError(f"custom calls named {name!r} are already provided")
        _providers[name] = fun
        return fun

    return register


def load_before(name: str, load: Callable[[], None]) -> None:
    """Call a function before the provider of a name, without the lock that providers run under.

    It may run other code, which waits for other locks.
    """
    _loaders[name] = load


def is_provided(name: str) -> bool:
    """Return True if the custom calls of a name can be registered."""
    return name in _providers


def is_known_to_xla(name: str) -> bool:
    """Return True if XLA has a native function of this name for the CPU: its own, or one that
    was registered by other means."""
    from .jaxlib_versions import _jax  # loaded on first use

    return name in _jax.custom_call_targets("Host")


def renew(names: Iterable[str]) -> None:
    """Let the providers of these names run again when they are next needed."""
    _done.difference_update(names)


def ensure(names: Iterable[str]) -> None:
    """Register the native functions of these names.

    Raises:
      LookupError: if a name has no provider.
    """
    for name in names:
        while name not in _done:
            if (load := _loaders.get(name)) is not None:
                load()
            with lock:
                if name not in _providers:
                    if is_known_to_xla(name):
                        break
                    raise LookupError(
                        f"an executable calls the native functions {name!r}, which no imported "
                        "package provides. Import the package that created it, or register them: "
                        f"{ROOT}.extend.native.register({name!r}, handler)."
                    )
                if name not in _done and _providers[name]() is not False:
                    _done.add(name)
