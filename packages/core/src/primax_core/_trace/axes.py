"""Named axes in scope."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import Any

from .._ir.primitive import Primitive


class _AxisEnv(threading.local):
    def __init__(self):
        self.sizes: dict[Any, int] = {}
        self.key: tuple = ()


axis_env = _AxisEnv()


@contextmanager
def extend_axis_env(name: Any, size: int):
    """Context manager that binds an axis name; it does nothing for ``None``."""
    if name is None:
        yield
        return
    saved, saved_key = axis_env.sizes, axis_env.key
    names = name if isinstance(name, tuple) else (name,)
    axis_env.sizes = {**saved, **dict.fromkeys(names, size)}
    axis_env.key = tuple(axis_env.sizes.items())
    try:
        yield
    finally:
        axis_env.sizes, axis_env.key = saved, saved_key


def axes_in_scope() -> dict[Any, int]:
    """Sizes of the named axes that enclosing transformations bind, outermost first."""
    return dict(axis_env.sizes)


def axis_size_in_scope(name: Any) -> int:
    """Size of a named axis.

    Raises:
      NameError: if no enclosing transformation binds the name.
    """
    try:
        return axis_env.sizes[name]
    except KeyError:
        bound = ", ".join(map(str, axis_env.sizes)) or "none"
        raise NameError(
            f"Found an unbound axis name: {name}. Names in scope: {bound}. Bind it with "
            f"vmap(..., axis_name={name!r}) around the call."
        ) from None


def named_axes_of(prim: Primitive, params: dict) -> tuple:
    """Axis names used by an operation: its parameter ``axis_name`` or ``axes``."""
    names = params.get("axis_name", params.get("axes", ()))
    if type(names) is not tuple:
        names = (names,)
    if any(isinstance(n, str) for n in names) or "axis_name" in params:
        return names
    if prim.cache_on is not None:
        names_of_effects: set = set()
        for value in params.values():
            for v in value if type(value) is tuple else (value,):
                effects = getattr(v, "effects", None)
                if effects:
                    names_of_effects.update(getattr(e, "name", None) for e in effects)
        return tuple(names_of_effects)
    return ()
