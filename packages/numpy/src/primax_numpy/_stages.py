"""Ahead-of-time methods of the functions of this package: ``cos.lower``, ``cos.trace``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final

import primax_core as _core

_STATIC: Final = frozenset(
    "axis axes axis1 axis2 copy ddof decimals deg descending dtype endpoint increasing indexing "
    "keepdims kind method mode N M ndmin newshape num offset order ord out precision "
    "preferred_element_type rowvar shape side size sorted stable subscripts total_repeat_length "
    "return_index return_inverse return_counts equal_nan".split()
)
"""Parameters that are static also if their value is a number."""


class _Stage:
    """A method of a jitted function, as an attribute of a plain function."""

    __slots__ = ("method", "stage_of")

    def __init__(self, stage_of: Callable[..., Any], method: str):
        self.stage_of = stage_of
        self.method = method

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return getattr(jitted(self.stage_of, args, kwargs), self.method)(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<method {self.method} of {self.stage_of.__name__}>"


def jitted(fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``jit`` of a function in which the arguments that are not arrays are static."""
    parameters = list(inspect.signature(fun).parameters.values())
    positional = [p.name for p in parameters if p.kind < p.VAR_POSITIONAL]
    names = dict(enumerate(positional[: len(args)]))
    static = [i for i, x in enumerate(args) if names.get(i) in _STATIC or not _is_arrays(x)]
    static_names = [k for k, x in kwargs.items() if k in _STATIC or not _is_arrays(x)]
    return _core.jit(fun, static_argnums=static, static_argnames=static_names)


def _is_arrays(x: Any) -> bool:
    leaves = _core.tree.leaves(x)
    return bool(leaves) and not any(isinstance(v, (str, type)) or callable(v) for v in leaves)


def _clear(fun: Any) -> Callable[[], None]:
    def clear_cache() -> None:
        """Delete the executables of this function."""
        cache = getattr(fun, "jit_cache", None)
        if cache is not None:
            cache.clear()

    clear_cache.stage_of = fun  # type: ignore[attr-defined]
    return clear_cache


def add_stages(fun: Any) -> None:
    """Add ``lower``, ``trace``, ``eval_shape`` and ``clear_cache`` to a function."""
    members = vars(fun)
    for method in ("lower", "trace", "eval_shape"):
        members.setdefault(method, _Stage(fun, method))
    members.setdefault("clear_cache", _clear(fun))
