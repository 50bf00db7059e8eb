"""Named axes in scope."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .._ir.primitive import Primitive

if TYPE_CHECKING:
    from .axis_owners import AxisOwner


class _AxisEnv(threading.local):
    def __init__(self):
        self.sizes: dict[Any, int] = {}
        self.owners: dict[Any, AxisOwner] = {}  # of axes that are not vmap's, innermost last
        self.key: tuple = ()


axis_env = _AxisEnv()


@contextmanager
def extend_axis_env(name: Any, size: int):
    """Context manager that binds an axis name; it does nothing for ``None``."""
    if name is None:
        yield
        return
    names = name if isinstance(name, tuple) else (name,)
    with named_axes(dict.fromkeys(names, size)):
        yield


@contextmanager
def named_axes(sizes: Mapping[Any, int], owner: AxisOwner | None = None) -> Iterator[None]:
    """Context manager that binds named axes.

    Args:
      sizes: the size of each axis, by name.
      owner: binds the collectives over these axes; ``None`` for axes of ``vmap``. Owners are part
        of the keys of traced functions: equal owners must be equal objects.

    Returns:
      A context manager for the current thread.

    In it, :func:`axes_in_scope` contains the axes, and collectives over them are accepted.

    >>> from primax_core.extend.traces import axes_in_scope, named_axes
    >>> with named_axes({"i": 4}):
    ...     axes_in_scope()
    {'i': 4}
    """
    saved = axis_env.sizes, axis_env.owners, axis_env.key
    axis_env.sizes = {**axis_env.sizes, **sizes}
    if owner is not None or axis_env.owners:
        owners = {n: o for n, o in axis_env.owners.items() if n not in sizes}
        axis_env.owners = owners if owner is None else {**owners, **dict.fromkeys(sizes, owner)}
    axis_env.key = (*axis_env.sizes.items(), *axis_env.owners.items())
    try:
        yield
    finally:
        axis_env.sizes, axis_env.owners, axis_env.key = saved


def owner_of(names: Sequence[Any]) -> AxisOwner | None:
    """The owner of the innermost of some axes.

    Args:
      names: names of axes.

    Returns:
      An owner, the object that was passed to :func:`named_axes`; ``None`` if all are axes of
      ``vmap`` or not in scope.

    Collectives are bound by the owner of their axes.

    >>> from primax_core.extend.traces import named_axes, owner_of
    >>> with named_axes({"i": 4}):
    ...     owner_of(["i"]) is None
    True
    """
    owners = axis_env.owners
    if owners:
        for name in reversed(owners):
            if name in names:
                return owners[name]
    return None


def axes_in_scope() -> dict[Any, int]:
    """Sizes of the named axes that enclosing transformations bind.

    Returns:
      A dict of sizes by name, the outermost axis first.

    Traced functions are retraced if it differs.

    >>> import numpy as np
    >>> from primax_core import vmap
    >>> from primax_core.extend.traces import axes_in_scope
    >>> sizes = []
    >>> _ = vmap(lambda x: sizes.append(axes_in_scope()) or x, axis_name="i")(np.zeros(3))
    >>> sizes, axes_in_scope()
    ([{'i': 3}], {})
    """
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
            f"vmap(..., axis_name={name!r}) around the call, or with shard_map over a mesh that "
            "has an axis of this name."
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
