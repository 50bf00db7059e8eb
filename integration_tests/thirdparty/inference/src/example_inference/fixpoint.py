"""Fixed points ``x = f(a, x)`` by iteration, with derivatives by the implicit function theorem."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.extend import (
    Primitive,
    Sample,
    Zero,
    batch,
    batch_jaxpr,
    dtypes,
    eval_jaxpr,
    expand,
    f32,
    is_zero,
    jvp,
    jvp_jaxpr,
    move_axis,
    register_internal_path,
    samples,
    staged,
    typeof,
)
from primax_core.extend.runtime import structure_differences
from primax_core.tree_util import tree_flatten, tree_unflatten
from primax_interpreters import Check, error_checks
from primax_interpreters.checkify import FailedCheckError

register_internal_path(__file__)

fixpoint_p: Final = Primitive(
    "fixpoint", multiple_results=True, cache_on=lambda params: params["jaxpr"].cache
)
"""The iteration. Operands: ``count`` parameters of ``jaxpr``, then the first ``x``. Results: ``x``,
then the distance of the last step. ``jaxpr`` maps the parameters and ``x`` to the next ``x``. The
first ``lanes`` axes of ``x`` are independent iterations, each with its own distance."""


def fixed_point(
    fun: Callable[[Any, Any], Any],
    a: Any,
    x: Any,
    *,
    tolerance: float = 1e-6,
    max_steps: int = 1000,
) -> Any:
    """The solution of ``x == fun(a, x)``, by iteration from a first guess.

    Args:
      fun: from ``a`` and ``x`` to the next ``x``, of the same structure, shapes and dtypes.
      a: a pytree of arrays. The result is differentiable with respect to it, in both modes and any
        order, and to arrays that ``fun`` closes over; not with respect to the first guess.
      x: the first guess, a pytree of floating-point arrays.
      tolerance: the iteration ends when no element changes by more, relative to ``1 + abs(x)``.
      max_steps: the iteration ends after so many steps. ``checkify`` reports that it did not
        arrive.

    Raises:
      TypeError: if ``x`` is not of floats, or ``fun`` returns another structure or type.
    """
    leaves, tree = tree_flatten(x)
    for leaf in leaves:
        if not dtypes.issubdtype(typeof(leaf).dtype, np.floating):
            raise TypeError(f"fixed_point iterates floats, got {typeof(leaf).str_short()} in x")
    # Python numbers are weakly typed, but the results of ``fun`` may not be.
    leaves = [lax.convert_element_type(v, typeof(v).dtype) for v in leaves]
    traced = staged(fun, (a, tree_unflatten(tree, leaves)), "fixed_point")
    _check_result(traced, tree, leaves)
    a_leaves = tree_flatten(a)[0]
    outs = fixpoint_p.bind(
        *traced.consts, *a_leaves, *leaves, jaxpr=traced.jaxpr,
        count=len(traced.consts) + len(a_leaves), lanes=0, tolerance=float(tolerance),
        max_steps=int(max_steps),
    )  # fmt: skip
    return tree_unflatten(tree, outs[:-1])


def _check_result(traced: Any, tree: Any, leaves: Sequence[Any]) -> None:
    if traced.out_tree != tree:
        (_, result, guess, *_), *_ = structure_differences(traced.out_tree, tree)
        raise TypeError(f"fixed_point: fun returned {result} where x has {guess}")
    for leaf, out in zip(leaves, traced.jaxpr.out_avals):
        aval = typeof(leaf)
        if (aval.shape, aval.dtype) != (out.shape, out.dtype):
            raise TypeError(
                f"fixed_point: fun returned {out.str_short()} where x has {aval.str_short()}"
            )


def _split(operands: Sequence[Any], count: int) -> tuple[list[Any], list[Any]]:
    return list(operands[:count]), list(operands[count:])


def _over_lanes(x: Any, like: Any) -> Any:
    """A value for each lane, broadcast to the shape of an array."""
    return lax.broadcast_in_dim(x, typeof(like).shape, range(typeof(x).ndim))


@fixpoint_p.rule(expand)
def _expand(*operands, jaxpr, count, lanes, tolerance, max_steps):
    a, first = _split(operands, count)
    shape = typeof(first[0]).shape[:lanes]
    dtype = typeof(first[0]).dtype

    def distance(x, new):
        total = lax.full(shape, 0, dtype)
        for old, value in zip(x, new):
            change = lax.abs(value - old) / (1 + lax.abs(value))
            axes = tuple(range(lanes, typeof(change).ndim))
            total = lax.max(total, lax.convert_element_type(lax.reduce_max(change, axes), dtype))
        return total

    def running(last):  # NaN ends the iteration
        return last > tolerance

    def going(state):
        step, _, last = state
        axes = tuple(range(lanes))
        return lax.bitwise_and(step < max_steps, lax.reduce_or(running(last), axes))

    def advance(state):
        step, x, last = state
        new = eval_jaxpr(jaxpr, [*a, *x])
        moving = running(last)  # lanes that arrived keep their values
        kept = [lax.select(_over_lanes(moving, o), n, o) for o, n in zip(x, new)]
        return step + 1, kept, lax.select(moving, distance(x, new), last)

    far = lax.full(shape, np.inf, dtype)
    _, x, last = lax.while_loop(going, advance, (np.int32(0), first, far))
    return [*x, last]


@fixpoint_p.rule(batch)
def _batch(axis, args, dims, *, jaxpr, count, lanes, **options):
    a, x = _split(args, count)
    a_dims, x_dims = _split(dims, count)
    x = [move_axis(v, d, 0, axis.size) for v, d in zip(x, x_dims)]
    mapped = [0] * len(x)
    batched, _ = batch_jaxpr(jaxpr, (*a_dims, *mapped), axis, mapped)
    outs = fixpoint_p.bind(*a, *x, jaxpr=batched, count=count, lanes=lanes + 1, **options)
    return outs, [0] * len(outs)


@fixpoint_p.rule(jvp)
def _jvp(primals, tangents, *, jaxpr, count, lanes, **options):
    """From ``x = f(a, x)`` follows ``dx = (df/dx) dx + (df/da) da``, a linear equation for dx."""
    outs = fixpoint_p.bind(*primals, jaxpr=jaxpr, count=count, lanes=lanes, **options)
    (a, _), x = _split(primals, count), list(outs[:-1])
    da = list(tangents[:count])
    mask = [not is_zero(t) for t in da]
    if not any(mask):
        return outs, [Zero.like(o) for o in outs]
    n = len(x)
    by_a, _ = jvp_jaxpr(jaxpr, [*mask, *[False] * n], True)
    by_x, _ = jvp_jaxpr(jaxpr, [*[False] * count, *[True] * n], True)
    b = eval_jaxpr(by_a, [*a, *x, *[t for t in da if not is_zero(t)]])[n:]

    def matvec(dx):
        return [t - s for t, s in zip(dx, eval_jaxpr(by_x, [*a, *x, *dx])[n:])]

    def solve(matvec, b):
        def next_dx(b, dx):
            return [r + t - m for r, t, m in zip(b, dx, matvec(dx))]

        traced = staged(next_dx, (b, b), "fixed_point")
        return fixpoint_p.bind(
            *traced.consts, *b, *b, jaxpr=traced.jaxpr, count=len(traced.consts) + n,
            lanes=lanes, **options,
        )[:-1]  # fmt: skip

    dx = lax.custom_linear_solve(matvec, b, solve, transpose_solve=solve)
    return outs, [*dx, Zero.like(outs[-1])]


@fixpoint_p.rule(error_checks)
def _error_checks(args, outs, *, tolerance, max_steps, **_):
    last = outs[-1]

    def failed():
        arrived = last <= tolerance  # false for NaN
        return lax.bitwise_not(lax.reduce_and(arrived, tuple(range(typeof(last).ndim))))

    def describe(worst):
        return (
            f"fixed_point did not arrive: a change of {worst:.1e} in the last step, more than "
            f"tolerance={tolerance:.1e}, with max_steps={max_steps}"
        )

    worst = lambda: [lax.reduce_max(last, tuple(range(typeof(last).ndim)))]
    return [Check(FailedCheckError, failed, describe, worst)]


def _babylonian(a: Any, x: Any) -> Any:
    return 0.5 * (x + a / x)


def _contracted(a: Any, x: Any) -> Any:
    """It halves the error in each step. The kit also runs it in ``float64``."""
    body = lambda a, x: 0.5 * lax.cos(x) + 0.3 * a
    return fixed_point(body, a, x, tolerance=1e-13, max_steps=60)


@fixpoint_p.rule(samples)
def _samples():
    positive: dict[str, float] = {"low": 0.5, "high": 4.0}
    root = lambda a, x: fixed_point(_babylonian, a, x)
    yield Sample(f32(3, **positive), f32(3, **positive)).set(
        call=root, expect=lambda a, x: np.sqrt(a)
    )
    yield Sample(f32(2, 2), f32(2, 2)).set(call=_contracted)
