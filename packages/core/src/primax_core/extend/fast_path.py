"""Fast paths: executables of a library function found by a key of the caller's own.

A library function finds its executable by the types of its arguments and by its static parameters,
which the caller computes from its own arguments. If that takes longer than the execution, a caller
keeps the executable under its own arguments instead.
"""

from __future__ import annotations

import functools
import warnings
import weakref
from collections.abc import Callable, Hashable
from typing import Any, Final, TypeVar

from .._base import caches
from .._base.config import state
from .._base.pytree import tree_structure
from .._base.weak_sets import members
from .._engine.jit_cache import JitCache, compile_for
from .._runtime.array import ArrayImpl
from .._runtime.dispatch import as_operand, check_may_run
from .._runtime.launch import launch
from .._trace.array import Array

_all: Final[weakref.WeakSet[FastPath]] = weakref.WeakSet()


@caches.register
def _clear_all() -> None:
    for path in members(_all):
        path.clear()


class FastPath:
    """The dispatch cache of a library function, by keys of the caller's choice.

    Args:
      function: a :func:`library_function` with one result.

    >>> from primax_core import device_put, lax
    >>> from primax_core.extend import library_function
    >>> power = FastPath(library_function(lax.integer_pow, static_argnames=("y",)))
    >>> x = device_put(3.0)
    >>> power.lookup("cubed", x) is None  # the first call
    True
    >>> float(power.call("cubed", (x,), y=3)), float(power.lookup("cubed", x))
    (27.0, 27.0)
    """

    __slots__ = ("__weakref__", "_entries", "_name", "function")

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function: Callable[..., Any] = function
        self._name: str = function.__name__
        self._entries: dict[Any, Any] = caches.Bounded()
        _all.add(self)

    def clear(self) -> None:
        """Drop all entries."""
        self._entries.clear()

    def lookup(self, key: Hashable, *arrays: Any) -> Any:
        """The result on concrete arrays, or ``None`` while tracing and for an unknown key.

        Args:
          key: equal for calls with equal static parameters. Note that ``1 == 1.0 == True``.

        Raises:
          RuntimeError: if an array was deleted or donated.
        """
        if state.trace is not None:
            return None
        entries = self._entries
        try:
            try:
                # Up to three arrays without comprehensions, which cost 5 % of a call.
                if len(arrays) == 1:
                    (x,) = arrays
                    entry, buffers = entries[state.key, key, x._spec], [x._buf]
                elif len(arrays) == 2:
                    x, y = arrays
                    entry, buffers = entries[state.key, key, x._spec, y._spec], [x._buf, y._buf]
                elif len(arrays) == 3:
                    x, y, z = arrays
                    if type(y) is not ArrayImpl or type(z) is not ArrayImpl:
                        y, z = as_operand(y), as_operand(z)  # an exception takes longer
                        arrays = (x, y, z)
                    entry = entries[state.key, key, x._spec, y._spec, z._spec]
                    buffers = [x._buf, y._buf, z._buf]
                else:
                    entry = entries[state.key, key, *[x._spec for x in arrays]]
                    buffers = [x._buf for x in arrays]
            except AttributeError:  # a number, or a NumPy array
                arrays = tuple([as_operand(x) for x in arrays])
                entry = entries[state.key, key, *[x._spec for x in arrays]]
                buffers = [x._buf for x in arrays]
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
            return None
        return launch(entry, buffers, arrays, self._name)[0]

    def call(self, key: Hashable, arrays: tuple[Any, ...], /, **static: Any) -> Array:
        """Call the function, and keep its executable under ``key``."""
        out: Array = self.function(*arrays, **static)
        if state.trace is None:
            self._remember(key, arrays, static)
        return out

    def _remember(self, key: Hashable, arrays: tuple[Any, ...], static: dict[str, Any]) -> None:
        try:
            specs = [as_operand(x)._spec for x in arrays]
        except (AttributeError, TypeError):
            return
        # The key under which `make_callable` keeps this call.
        values = tuple(static.values())
        types = (tuple(static), values, tuple(map(type, values))) if static else ()
        cache = self.function.jit_cache  # type: ignore[attr-defined]
        entry = cache.fast_entries.get((state.key, *types, *specs))
        if entry is not None and entry.single:
            self._entries[state.key, key, *specs] = entry

    def quick(self, key: Hashable, *arrays: Any) -> Any:
        """The name of :meth:`lookup` in versions 1.0 to 1.3."""
        _warn("quick", "lookup")
        return self.lookup(key, *arrays)

    def slow(self, key: Hashable, arrays: tuple[Any, ...], /, **static: Any) -> Array:
        """The name of :meth:`call` in versions 1.0 to 1.3."""
        _warn("slow", "call")
        return self.call(key, arrays, **static)


def _warn(name: str, current: str) -> None:
    warnings.warn(
        f"{__name__}.FastPath.{name} is called {current} since version 1.4 of the extension API; "
        "the old name is removed in version 2.0",
        DeprecationWarning,
        stacklevel=3,
    )


_F = TypeVar("_F", bound=Callable[..., Any])
_FIXED: Final = (int, bool, float, str, type(None))


def one_call(*static: str) -> Callable[[_F], _F]:
    """Compile eager calls of a public function as a whole, and find them by their arguments.

    The executable of a call whose other arguments are concrete arrays or ``None`` is found by the
    types of the arrays and the values of ``static``, without running the function. Other calls,
    and those of functions that need the values of arrays, run the function.

    Args:
      static: parameters that are not arrays; their values may be numbers, strings, ``None`` and
        tuples of these.

    Returns:
      A decorator of a function of arrays.

    >>> from primax_core import lax
    >>> @one_call("axis")
    ... def total(x, axis=0):
    ...     return lax.reduce_sum(x, (axis % x.ndim,))
    >>> float(total(lax.iota("float32", 4)))
    6.0
    """
    names = frozenset(static)

    def declare(fun: _F) -> _F:
        whole: Any = _OneCall(fun, names).make()
        return whole

    return declare


class _OneCall:
    """The executables of a function by its arguments."""

    __slots__ = ("cache", "fun", "positional", "static")

    def __init__(self, fun: Any, static: frozenset[str]) -> None:
        name = fun.__name__
        self.fun = fun
        code = fun.__code__
        self.positional = code.co_varnames[: code.co_argcount]
        if code.co_flags & 0x04:  # *args
            self.positional += ("*",) * 8
        self.static = static
        self.cache = JitCache(fun, name, inline=True, compile=compile_for(name))

    def make(self) -> Any:
        """The function with the fast path."""
        fun, cache, new = self.fun, self.cache, self.new
        entries, name = cache.fast_entries, cache.name

        @functools.wraps(fun)
        def call(*args: Any, **kwargs: Any) -> Any:
            if state.trace is None:
                try:
                    if len(args) == 1 and not kwargs:
                        arrays: Any = args
                        key: tuple[Any, ...] = (state.key, args[0]._spec)
                    else:
                        arrays = (*args, *kwargs.values()) if kwargs else args
                        key = (
                            state.key, *kwargs,
                            *[a._spec if type(a) is ArrayImpl else (type(a), a) for a in arrays],
                        )  # fmt: skip
                        arrays = [a for a in arrays if type(a) is ArrayImpl]
                    entry = entries.get(key)
                    if entry is None:
                        entry = new(key, args, kwargs, arrays)
                except (AttributeError, TypeError):  # not an array; unhashable
                    entry = False
                if entry:
                    outs = launch(entry, [a._buf for a in arrays], arrays, name)
                    return outs[0] if entry.single else entry.out_tree.unflatten(outs)
            return fun(*args, **kwargs)

        call.jit_cache = cache  # type: ignore[attr-defined]
        return call

    def new(self, key: Any, args: tuple[Any, ...], kwargs: dict[str, Any], arrays: Any) -> Any:
        """The entry of a call, stored under its key; false if the call cannot be compiled."""
        n = len(args)
        values = (*args, *kwargs.values())
        if n > len(self.positional):
            return False
        for name, value in zip((*self.positional[:n], *kwargs), values, strict=True):
            if isinstance(value, ArrayImpl):
                if name in self.static:
                    return False
            elif value is not None and not (name in self.static and _is_fixed(value)):
                return False
        tree = tree_structure(((0,) * len(arrays), {}))

        def bound(*operands: Any) -> Any:
            rest = iter(operands)
            full = [next(rest) if isinstance(v, ArrayImpl) else v for v in values]
            return self.fun(*full[:n], **dict(zip(kwargs, full[n:])))

        entry: Any = False
        try:
            check_may_run(self.cache.name)
            traced = self.cache.trace(bound, key, tree, [a.aval for a in arrays])
            jaxpr = traced.jaxpr
            if not (
                traced.consts or jaxpr.effects or any(v in jaxpr.invars for v in jaxpr.outvars)
            ):
                entry = self.cache.make_entry(traced, key, arrays, tree, (key, "whole"))
        except Exception:
            entry = False  # the function raises the error, if it is one
        if entry and not entry.plain:
            entry = False
        self.cache.fast_entries[key] = entry
        return entry


def _is_fixed(value: Any) -> bool:
    if type(value) is tuple:
        return all(map(_is_fixed, value))
    return type(value) in _FIXED
