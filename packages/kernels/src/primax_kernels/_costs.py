"""Costs of kernels."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from primax_core import make_jaxpr
from primax_core.extend import Eqn, Jaxpr, jaxprs_in, total_bytes

from ._block_specs import CostEstimate

_TRANSCENDENTAL: Final = frozenset({
    "exp", "exp2", "expm1", "log", "log1p", "sin", "cos", "tan", "tanh", "sinh", "cosh", "asin",
    "acos", "atan", "atan2", "asinh", "acosh", "atanh", "logistic", "erf", "erfc", "erf_inv", "pow",
    "sqrt", "rsqrt", "cbrt", "lgamma", "digamma",
})  # fmt: skip
_ARITHMETIC: Final = frozenset({
    "add", "sub", "mul", "div", "rem", "neg", "abs", "sign", "max", "min", "floor", "ceil", "round",
    "integer_pow", "square", "select_n", "clamp", "eq", "ne", "lt", "le", "gt", "ge", "and", "or",
    "xor", "not", "add_any",
})  # fmt: skip


def estimate_cost(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> CostEstimate:
    """The cost of a function, for ``cost_estimate`` of a kernel that computes it.

    Products of matrices count two operations for each product of elements, elementwise operations
    one for each element, reductions one for each operand element. Bytes are those of arguments and
    results. Bodies of loops of known length count for each iteration, of other loops once.

    Args:
      fun: a function of arrays.
      args, kwargs: its arguments, or their shapes and dtypes.

    >>> import numpy as np
    >>> from primax_core import lax
    >>> x = np.zeros((4, 4), np.float32)
    >>> estimate_cost(lambda x: lax.dot(lax.exp(x), x), x)
    CostEstimate(flops=128, transcendentals=16, bytes_accessed=128, remote_bytes_transferred=0)
    """
    jaxpr: Jaxpr = make_jaxpr(fun)(*args, **kwargs)
    flops, transcendentals = costs_of(jaxpr)
    accessed = total_bytes([v.aval for v in (*jaxpr.invars, *jaxpr.outvars)])
    return CostEstimate(flops, transcendentals, int(accessed))


def costs_of(jaxpr: Jaxpr) -> tuple[int, int]:
    """The arithmetic and the transcendental operations of a jaxpr."""
    flops = transcendentals = 0
    for eqn in jaxpr.eqns:
        own = _of_eqn(eqn)
        flops, transcendentals = flops + own[0], transcendentals + own[1]
    return flops, transcendentals


def _of_eqn(eqn: Eqn) -> tuple[int, int]:
    name = eqn.primitive.name
    if name == "cond":
        costs = [costs_of(branch) for branch in eqn.params["branches"]]
        return max(c[0] for c in costs), max(c[1] for c in costs)
    bodies = list(jaxprs_in(eqn.params))
    if bodies:
        times = eqn.params.get("length", 1) if name == "scan" else 1
        costs = [costs_of(body) for body in bodies]
        return times * sum(c[0] for c in costs), times * sum(c[1] for c in costs)
    size = math.prod(eqn.outvars[0].aval.shape) if eqn.outvars else 0
    if name == "dot_general":
        (contracted, _), _ = eqn.params["dimension_numbers"]
        lhs = eqn.invars[0].aval.shape
        return 2 * size * math.prod(lhs[a] for a in contracted), 0
    if name.startswith(("reduce_", "arg")):
        return math.prod(eqn.invars[0].aval.shape), 0
    if name in _TRANSCENDENTAL:
        return 0, size
    return (size, 0) if name in _ARITHMETIC else (0, 0)
