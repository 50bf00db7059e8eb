"""The exponential of an operator times a matrix, by truncated Taylor series, with derivatives."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np

import primax_numpy as pnp
from primax_core import custom_jvp, jvp, lax, linear_transpose, tree, vjp
from primax_core.custom_derivatives import linear_call
from primax_core.extend import dtypes, typeof
from primax_numpy.declaring import is_complex

Product = Callable[[Any, Any], Any]

_DEGREES: Final = tuple(range(5, 60, 5))
_LIMITS: Final = {
    4: (1.308487e-01, 9.951841e-01, 2.217044, 3.550926, 4.926900, 6.321082, 7.723804, 9.130654,
        10.53945, 11.94904, 13.35880),
    8: (2.400876e-03, 1.441830e-01, 6.410835e-01, 1.438253, 2.428583, 3.539666, 4.728347, 5.968803,
        7.245068, 8.546902, 9.867497),
}  # fmt: skip
"""Norms up to which the series of each degree has a backward error below rounding (equation 3.6 of
Al-Mohy and Higham, 2011, computed with 80 digits), by the bytes of a real number."""

_CHECKPOINTS: Final = 32
"""Positions of each of the two levels of states that reverse mode stores."""

_FAR: Final = 30.0
"""The norm beyond which norms of powers are estimated, which may permit fewer stages."""


class Plan(NamedTuple):
    """The number of stages, the degree of the series, and the factor of each stage."""

    stages: Any
    degree: Any
    factor: Any


def _real_info(x: Any) -> Any:
    return dtypes.finfo(typeof(x).dtype)


def _column_sizes(x: Any) -> Any:
    return pnp.max(pnp.abs(x), -2)


def plan_for(norm: Any, shift: Any) -> Plan:
    """The cheapest plan for an operator of a norm, from which a multiple of the identity has been
    subtracted."""
    width = 8 if typeof(norm).dtype.itemsize == 8 else 4
    limits = pnp.asarray(np.array(_LIMITS[width]), typeof(norm).dtype)
    degrees = pnp.asarray(np.array(_DEGREES), typeof(norm).dtype)
    norm = pnp.where(pnp.isfinite(norm), norm, pnp.zeros_like(norm))
    stages = pnp.clip(pnp.ceil(norm / limits), 1, 2.0**30)
    best = pnp.argmin(degrees * stages)
    stages = stages[best]
    return Plan(
        stages.astype(np.int32), degrees[best].astype(np.int32),
        pnp.exp(shift / stages.astype(typeof(shift).dtype)),
    )  # fmt: skip


# Norms


def _norm_of_power(product: Callable[[Any], Any], x: Any, p: int) -> Any:
    """An estimate of the 1-norm of the power ``p`` of an operator on columns like ``x``.

    The estimator of Hager (SIAM J. Sci. Stat. Comput. 5, 1984): a lower bound, usually the norm.
    """
    (n, _) = typeof(x).shape
    transposed = linear_transpose(product, x)

    def powered(x: Any) -> Any:
        return lax.fori_loop(0, p, lambda _, y: product(y), x)

    def adjoint_powered(x: Any) -> Any:
        y = pnp.conj(x)
        return lax.fori_loop(0, p, lambda _, y: transposed(y)[0], y)

    def step(_: Any, state: Any) -> Any:
        x, largest = state
        y = powered(x)
        size = pnp.abs(y)
        signs = pnp.where(size > 0, y / pnp.where(size > 0, size, 1), pnp.ones_like(y))
        z = pnp.abs(adjoint_powered(signs.astype(typeof(x).dtype)))
        position = pnp.argmax(z[:, 0])
        unit = (pnp.arange(n) == position)[:, None].astype(typeof(x).dtype)
        return unit, pnp.maximum(largest, pnp.sum(size))

    start = pnp.full_like(x, 1 / n), pnp.zeros((), _real_info(x).dtype)
    return lax.fori_loop(0, 5, step, start)[1]


def operator_norm(product: Callable[[Any], Any], x: Any, known: Any = None) -> Any:
    """A number that bounds the growth of the powers of an operator: its 1-norm, or less.

    Args:
      product: the product with a column.
      x: a column.
      known: the 1-norm, which is estimated by default.

    It is the smallest of the norm and the numbers ``max(‖A^p‖^(1/p), ‖A^(p+1)‖^(1/(p+1)))`` for
    ``p`` of 2 and 3, which are valid for all degrees in the table (Al-Mohy and Higham, 2011,
    theorem 4.2 of their article of 2009).
    """
    norm = _norm_of_power(product, x, 1) if known is None else known

    def refined(norm: Any) -> Any:
        roots = [_norm_of_power(product, x, p) ** (1 / p) for p in (2, 3, 4)]
        less = pnp.minimum(*(pnp.maximum(a, b) for a, b in pairwise(roots)))
        return pnp.where(pnp.isfinite(less), pnp.minimum(norm, less), norm)

    return lax.cond(norm > _FAR, refined, lambda norm: norm, norm)


# Stages


def _stage(product: Product, params: Any, x: Any, plan: Plan, terms: Any = None) -> Any:
    """The product of the exponential of one stage with ``x``, the number of terms, and the terms
    in a buffer, if one is passed."""
    tolerance = float(_real_info(x).eps) / 2
    step = 1 / plan.stages.astype(_real_info(x).dtype)

    def going(state: Any) -> Any:
        j, _, total, size, before, _ = state
        more = pnp.any(~(size + before <= tolerance * _column_sizes(total)))
        return (j < plan.degree) & more

    def add(state: Any) -> Any:
        j, term, total, size, _, terms = state
        if terms is not None:
            terms = terms.at[j].set(term)
        factor = (step / (j + 1).astype(typeof(step).dtype)).astype(typeof(x).dtype)
        term = factor * product(params, term)
        return j + 1, term, total + term, _column_sizes(term), size, terms

    large = pnp.full_like(_column_sizes(x), np.inf)
    size = _column_sizes(x)
    state = (pnp.zeros((), np.int32), x, x, size, large, terms)
    count, _, total, _, _, terms = lax.while_loop(going, add, state)
    return plan.factor * total, count, terms


def _advanced(product: Product, params: Any, x: Any, plan: Plan, count: Any) -> Any:
    """The state after a number of stages."""
    return lax.fori_loop(0, count, lambda _, y: _stage(product, params, y, plan)[0], x)


def _stage_cotangents(product: Product, params: Any, x: Any, plan: Plan, bar: Any) -> Any:
    """Cotangents of the parameters and of the state before one stage."""
    terms = pnp.zeros((_DEGREES[-1], *typeof(x).shape), typeof(x).dtype)
    _, count, terms = _stage(product, params, x, plan, terms)
    step = 1 / plan.stages.astype(_real_info(x).dtype)
    bar = plan.factor * bar

    def back(i: Any, state: Any) -> Any:
        params_bar, term_bar = state
        j = count - 1 - i
        factor = (step / (j + 1).astype(typeof(step).dtype)).astype(typeof(x).dtype)
        _, pull = vjp(product, params, terms[j])
        more, before = pull(factor * term_bar)
        return tree.map(lambda a, b: a + b, params_bar, more), bar + before

    return lax.fori_loop(0, count, back, (tree.map(pnp.zeros_like, params), bar))


def _cotangents(product: Product, params: Any, x: Any, plan: Plan, bar: Any) -> Any:
    """Cotangents of the parameters and of ``x``, by the stages in reverse.

    States are stored in two levels of ``_CHECKPOINTS`` positions, so that up to 1024 stages are
    computed two times more. Beyond, those between two positions are repeated.
    """
    stages = plan.stages
    stride = -(-stages // _CHECKPOINTS)
    inner = -(-stride // _CHECKPOINTS)
    empty = pnp.zeros((_CHECKPOINTS, *typeof(x).shape), typeof(x).dtype)

    def filled(buffer: Any, x: Any, stride: Any, count: Any) -> Any:
        """The states before the stages 0, ``stride``, ... below ``count``."""

        def store(i: Any, state: Any) -> Any:
            buffer, x = state
            buffer = buffer.at[i].set(x)
            return buffer, _advanced(product, params, x, plan, stride)

        return lax.fori_loop(0, -(-count // stride), store, (buffer, x))[0]

    outer = filled(empty, x, stride, stages)

    def back(i: Any, state: Any) -> Any:
        params_bar, bar, near = state
        stage = stages - 1 - i
        chunk, place = stage // stride, stage % stride
        # The last stage of a chunk comes first: its states are computed again.
        first = (i == 0) | (place == stride - 1)
        near = filled(near, outer[chunk], inner, pnp.where(first, place + 1, 0))
        before = _advanced(product, params, near[place // inner], plan, place % inner)
        more, bar = _stage_cotangents(product, params, before, plan, bar)
        return tree.map(lambda a, b: a + b, params_bar, more), bar, near

    zeros = tree.map(pnp.zeros_like, params)
    params_bar, bar, _ = lax.fori_loop(0, stages, back, (zeros, bar, empty))
    return params_bar, bar


def exponential_action(product: Product, params: Any, x: Any, plan: Plan) -> Any:
    """The exponential of an operator times ``x``, an array ``[..., n, k]``.

    Args:
      product: ``product(params, x)``, linear in ``x``.
      params: arrays of floats.
      x: an inexact array, in whose precision the series is computed.
      plan: the stages, for the norm of the operator; it is not differentiated.

    The derivative in direction of the parameters is the action of ``[[A, dA], [0, A]]``, again one
    with derivatives. Its transpose goes through the stages in reverse.
    """

    @custom_jvp
    def action(params: Any, x: Any, plan: Plan) -> Any:
        return _advanced(product, params, x, plan, plan.stages)

    @action.defjvp
    def _action_jvp(primals: Any, tangents: Any) -> Any:
        def forward(known: Any, moving: Any) -> Any:
            (params, x, plan), (params_dot, x_dot) = known, moving

            def augmented(both: Any, pair: Any) -> Any:
                change = lambda q: product(q, pair[1])
                below, beside = jvp(change, both[:1], both[1:])
                return pnp.stack([product(both[0], pair[0]) + beside, below])

            pair = pnp.stack([x_dot, x])
            return exponential_action(augmented, (params, params_dot), pair, plan)[0]

        def backward(known: Any, bar: Any) -> Any:
            params, x, plan = known
            return _cotangents(product, params, x, plan, bar)

        return action(*primals), linear_call(forward, backward, primals, tangents[:2])

    return action(params, x, lax.stop_gradient(plan))


def in_dtype(x: Any, dtype: Any) -> Any:
    """The values in a dtype; the real part of complex values in a real one."""
    x = pnp.asarray(x)
    if is_complex(x) and not dtypes.issubdtype(dtype, np.complexfloating):
        x = lax.real(x)
    return lax.convert_element_type(x, dtype)
