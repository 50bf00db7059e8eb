"""Derived jaxprs: the result of a transformation of one operation, cached by signature.

The rule of a transformation runs once, on tracers, for each signature: primitive, parameters, avals
and the mask of the arguments that take part. The result is a small jaxpr. In eager mode it is one
compiled call; under a trace it is inlined. Rules have no cost after their first use, and composed
transformations compose their jaxprs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._base.config import state
from .._ir.jaxpr import Jaxpr
from .._ir.primitive import Primitive
from .._trace.axes import axis_env, named_axes_of


def derive(
    kind: str,
    prim: Primitive,
    params: dict[str, Any],
    key: tuple[Any, ...],
    make: Callable[[], Any],
) -> Any:
    """The derived jaxpr of an operation for a signature, created on first use.

    Args:
      kind: name of the derivation, unique for each interpreter.
      prim: the primitive.
      params: the parameters, hashable.
      key: the rest of the signature: types of the operands, masks.
      make: creates the derived jaxpr, or any other value.

    Returns:
      The value, stored on the primitive, or in a jaxpr among its parameters.

    It is derived again if options change that are part of the trace key, or if a rule is
    replaced.

    >>> from primax_core import lax
    >>> from primax_core.extend.traces import derive
    >>> calls = []
    >>> make = lambda: calls.append("made") or len(calls)
    >>> derive("acme", lax.sin_p, {}, (1,), make), derive("acme", lax.sin_p, {}, (1,), make)
    (1, 1)
    """
    cache = prim.derived if prim.cache_on is None else prim.cache_on(params)
    full = (kind, prim, state.trace_key, tuple(params.items()), key)
    try:
        result = cache.get(full)
    except TypeError as e:
        raise TypeError(
            f"parameters of primitive {prim.name} must be hashable, got {params}"
        ) from e
    if result:
        return result
    if result is False or named_axes_of(prim, params):  # it depends on the named axes in scope
        cache[full] = False
        full = (*full, axis_env.key)
        result = cache.get(full)
    if result is None:
        prim.stored_elsewhere |= prim.cache_on is not None
        result = cache[full] = make()
    return result


def key_of_derived(kind: str, key: Any) -> tuple[Any, ...]:
    """The key of a derived jaxpr in the cache of a jaxpr."""
    return kind, state.trace_key, key


def derive_from_jaxpr(jaxpr: Jaxpr, kind: str, key: Any, make: Callable[[], Any]) -> Any:
    """The derived jaxpr of a whole jaxpr, created on first use.

    Args:
      jaxpr: the jaxpr, in whose ``cache`` the result is stored.
      kind: name of the derivation, unique for each interpreter.
      key: the rest of the signature.
      make: creates the derived jaxpr, or any other value.

    Returns:
      The value. It is freed with the jaxpr.

    Derivatives of bodies of loops and of jitted functions are stored in this way.

    >>> from primax_core import lax, make_jaxpr
    >>> from primax_core.extend.traces import derive_from_jaxpr
    >>> jaxpr = make_jaxpr(lax.sin)(1.0)
    >>> derive_from_jaxpr(jaxpr, "acme count", (), lambda: len(jaxpr.eqns))
    1
    """
    full = key_of_derived(kind, key)
    result = jaxpr.cache.get(full)
    if result is None:
        result = jaxpr.cache[full] = make()
    return result
