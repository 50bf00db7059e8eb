"""Liveness: the equations of a jaxpr that are compiled, and the inputs that they read.

The module does not need MLIR.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._ir.dtypes import ExtendedDType
from .._ir.effects import must_stay
from .._ir.jaxpr import Eqn, Jaxpr, Var, jaxprs_in
from .._ir.rules import devices
from .._ir.symbolic_dims import Dimension, is_static

# Array constants up to this number of elements are embedded in the module, larger ones are
# arguments.
INLINE_CONSTANT_SIZE = 16


def live_eqns(jaxpr: Jaxpr) -> list[Eqn]:
    """The equations whose results or effects are needed, in order.

    Args:
      jaxpr: a jaxpr, such as the result of ``make_jaxpr``.

    Returns:
      A list of equations of the jaxpr.

    Equations with an effect that must be kept are live. Sub-jaxprs are not searched; see
    :func:`dce_jaxpr`.

    >>> from primax_core import lax, make_jaxpr
    >>> from primax_core.extend import live_eqns
    >>> def f(x):
    ...     lax.cos(x)
    ...     return lax.sin(x)
    >>> [eqn.primitive.name for eqn in live_eqns(make_jaxpr(f)(1.0))]
    ['sin']
    """
    return liveness(jaxpr)[0]


def liveness(jaxpr: Jaxpr) -> tuple[list, set]:
    """The live equations, and the variables read by them and by the results."""
    cached = jaxpr.cache.get("live")
    if cached is not None:
        return cached
    needed = {v for v in jaxpr.outvars if type(v) is Var}
    live = []
    for eqn in reversed(jaxpr.eqns):
        for v in eqn.outvars:
            if v in needed:
                break
        else:
            if not must_stay(eqn.effects):
                continue
        live.append(eqn)
        needed.update(eqn.invars)
    live.reverse()
    jaxpr.cache["live"] = live, needed
    return live, needed


def kept_inputs(jaxpr: Jaxpr) -> list[int] | None:
    """Indices of the arguments that a jaxpr reads; ``None`` for all of them."""
    used = liveness(jaxpr)[1]
    indices = [i for i, v in enumerate(jaxpr.invars) if v in used]
    return None if len(indices) == len(jaxpr.invars) else indices


def has_symbolic_dims(jaxpr: Jaxpr) -> bool:
    """Return True if a jaxpr or one of its sub-jaxprs has symbolic dimensions."""
    has_dims = jaxpr.cache.get("symbolic dims")
    if has_dims is None:
        has_dims = any(not is_static(getattr(v.aval, "shape", ())) for v in jaxpr.invars)
        for eqn in () if has_dims else jaxpr.eqns:
            if (
                any(not is_static(getattr(v.aval, "shape", ())) for v in eqn.outvars)
                or any(isinstance(p, Dimension) for p in eqn.params.values())
                or any(has_symbolic_dims(sub_jaxpr) for sub_jaxpr in jaxprs_in(eqn.params))
            ):
                has_dims = True
                break
        jaxpr.cache["symbolic dims"] = has_dims
    return has_dims


def largest_result(jaxpr: Jaxpr) -> tuple[int, Any]:
    """The most elements of a result in a jaxpr and its sub-jaxprs, and the equation that has it."""
    largest: tuple[int, Any] | None = jaxpr.cache.get("largest result")
    if largest is None:
        largest = 0, None
        for eqn in jaxpr.eqns:
            inner = [largest_result(sub_jaxpr) for sub_jaxpr in jaxprs_in(eqn.params)]
            shapes = [getattr(v.aval, "shape", ()) for v in eqn.outvars]
            own = [(math.prod(shape), eqn) for shape in shapes if is_static(shape)]
            largest = max([largest, *inner, *own], key=lambda pair: pair[0])
        jaxpr.cache["largest result"] = largest
    return largest


def devices_of(jaxpr: Jaxpr, abstract: bool = False) -> Any:
    """The sharding over the devices that operations of a jaxpr name, or ``None``.

    Args:
      abstract: also shardings over abstract meshes count.
    """
    key = "devices", abstract
    if key not in jaxpr.cache:
        jaxpr.cache[key] = _find_devices(jaxpr, abstract)
    return jaxpr.cache[key]


def _find_devices(jaxpr: Jaxpr, abstract: bool) -> Any:
    for eqn in jaxpr.eqns:
        rule = eqn.primitive.rules.get(devices)
        named = None if rule is None else rule(eqn)
        if named is None or named._is_abstract and not abstract:
            inner = (devices_of(j, abstract) for j in jaxprs_in(eqn.params))
            named = next((s for s in inner if s is not None), None)
        if named is not None:
            return named
    return None


def is_hoisted(const) -> bool:
    """Return True if a constant becomes an argument instead of being embedded in the module."""
    return hasattr(const, "_spec") and const.size > INLINE_CONSTANT_SIZE


def large_consts(jaxpr: Jaxpr) -> dict[int, Any]:
    """Array constants of a jaxpr and its sub-jaxprs that become arguments of its function; by
    identity."""
    consts = jaxpr.cache.get("large consts")
    if consts is None:
        eqns, needed = liveness(jaxpr)
        pairs = zip(jaxpr.constvars, jaxpr.consts)
        consts = {id(c): c for v, c in pairs if v in needed and is_hoisted(c)}
        for eqn in eqns:
            if eqn.primitive.cache_on is not None:
                for sub_jaxpr in jaxprs_in(eqn.params):
                    consts.update(large_consts(sub_jaxpr))
        jaxpr.cache["large consts"] = consts
    return consts


def stored_value(const: Any) -> np.ndarray:
    """The values of an array constant; for an extended dtype, of its buffer."""
    if isinstance(getattr(const, "dtype", None), ExtendedDType):
        stored: np.ndarray = const._stored
        return stored
    return np.asarray(const)


def aliases_of(jaxpr: Jaxpr, donated: Sequence[int]) -> dict[int, int]:
    """Pairs of a donated argument and a result of the same type, as a dict."""
    free: dict[Any, list[int]] = {}
    for j, v in enumerate(jaxpr.outvars):
        free.setdefault((v.aval.shape, v.aval.dtype), []).append(j)
    aliases = {}
    for i in donated:
        aval = jaxpr.invars[i].aval
        results = free.get((aval.shape, aval.dtype))
        if results:
            aliases[i] = results.pop(0)
    return aliases


def unusable_donations(jaxpr: Jaxpr, donated: Sequence[int]) -> list[int]:
    """Donated arguments whose buffers no result can use."""
    aliases = aliases_of(jaxpr, donated)
    return [i for i in donated if i not in aliases]
