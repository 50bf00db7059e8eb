"""Pieces: what a transformation makes of one operation, remembered by the operation's signature.

A transformation's rule is run once for each (primitive, parameters, types, which arguments take
part), on tracers, and the result is a small program. Eagerly that program is one compiled call;
inside a trace it is spliced in. So rules cost nothing after their first use, and composed
transformations compose their programs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._base.config import state
from .._ir.jaxpr import Jaxpr
from .._ir.primitive import Primitive


def derive(
    kind: str,
    prim: Primitive,
    params: dict[str, Any],
    key: tuple[Any, ...],
    make: Callable[[], Any],
) -> Any:
    """The piece of a kind for a signature, made on first use."""
    cache = prim.pieces if prim.cache_on is None else prim.cache_on(params)
    full = (kind, prim, state.trace_key, tuple(params.items()), key)
    try:
        result = cache.get(full)
    except TypeError as e:
        raise TypeError(
            f"parameters of primitive {prim.name} must be hashable, got {params}"
        ) from e
    if result is None:
        result = cache[full] = make()
    return result


def derive_from_jaxpr(jaxpr: Jaxpr, kind: str, key: Any, make: Callable[[], Any]) -> Any:
    """The same for a whole program."""
    full = (kind, state.trace_key, key)
    result = jaxpr.cache.get(full)
    if result is None:
        result = jaxpr.cache[full] = make()
    return result
