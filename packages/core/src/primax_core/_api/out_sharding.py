"""The argument ``out_sharding`` of functions whose operations do not take it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._base import caches, pytree
from .._base.config import state
from .._runtime.sharding import ShardingLike
from .._trace.array import Array
from ..lax.out_sharding import out_sharding_of
from .jit import jit
from .transfer import device_put

_compiled: dict[tuple, Callable[..., Any]] = caches.bounded_cache(512)


def with_out_sharding(
    fun: Callable[..., Any], out_sharding: ShardingLike | None, *args: Any, **kwargs: Any
) -> Any:
    """The results of a function of arrays, with a sharding.

    Called directly, it is compiled, so that no device has the whole result. In the function,
    types of values do not say how they are divided: the compiler divides them as the result
    requires.

    Args:
      fun: the function; its arguments other than arrays are static.
      out_sharding: a ``NamedSharding``, or a ``PartitionSpec`` for the mesh in effect.
      args: positional arguments.
      kwargs: keyword arguments.

    Returns:
      The results of ``fun``.

    Raises:
      TypeError: if ``out_sharding`` is something else.
      ValueError: if it names axes whose type is not ``Explicit``, or if sizes are not divisible.

    A library function with an argument ``out_sharding`` calls it where the argument is not
    ``None``: ``with_out_sharding(lax.iota, out_sharding, "float32", 3)``.
    """
    sharding = out_sharding_of(fun.__name__, out_sharding)
    assert sharding is not None
    if sharding.num_devices == 1:
        return device_put(fun(*args, **kwargs), sharding)
    leaves, tree = pytree.tree_flatten([[*args], kwargs], is_leaf=lambda x: type(x) is tuple)
    arrays = [x for x in leaves if isinstance(x, (Array, np.ndarray))]
    static = [_ARRAY if isinstance(x, (Array, np.ndarray)) else x for x in leaves]

    def run(*values: Any) -> Any:
        rest = iter(values)
        filled = [next(rest) if x is _ARRAY else x for x in static]
        positional, keywords = tree.unflatten(filled)
        out = fun(*positional, **keywords)
        return pytree.tree_map(lambda y: sharding._applied(_identity, y), out)

    def applied(*values: Any) -> Any:
        return sharding._applied(run, *values)

    if state.trace is not None:
        return applied(*arrays)
    try:
        key = (fun, sharding, tree, *map(_hashable, static), state.trace_key)
        compiled = _compiled.get(key)
    except TypeError:
        return jit(applied)(*arrays)
    if compiled is None:
        compiled = _compiled[key] = jit(applied)
    return compiled(*arrays)


_ARRAY = object()


def _identity(x: Any) -> Any:
    return x


def _hashable(x: Any) -> Any:
    return (type(x), x)
