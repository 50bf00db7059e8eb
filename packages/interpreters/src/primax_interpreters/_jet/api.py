"""``jet``: derivatives of all orders along a curve, and short forms of its rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import factorial
from typing import Any

import numpy as np

from primax_core.extend import (
    Primitive,
    Zero,
    dtypes,
    instantiate,
    summarize_function,
    typeof,
)
from primax_core.extend.elementwise import scalar_like
from primax_core.extend.runtime import api_boundary, as_result, state
from primax_core.extend.traces import (
    check_callable,
    check_leaks,
    current_trace,
    set_trace,
)
from primax_core.lax import add, convert_element_type, exp, lgamma, mul, round
from primax_core.tree_util import tree_flatten as _flatten, tree_unflatten as _unflatten
from primax_core.typing import ArrayLike

from . import control as _control, elementary as _elementary, products as _products  # noqa: F401
from .interpreter import TaylorTrace, mask_of, taylor, taylor_of
from .series import by_equation, is_moving


def fact(n: ArrayLike) -> Any:
    """The factorial, elementwise, as a float.

    >>> float(fact(3))
    6.0
    """
    return round(exp(lgamma(add(convert_element_type(n, float), 1.0))))


@api_boundary
def jet(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    series: Sequence[Any],
    factorial_scaled: bool = True,
    **_: Any,
) -> tuple[Any, Any]:
    """The value of a function and its derivatives along a curve, up to any order.

    With arguments that move as ``x(t) = x + x' t + x'' t²/2 + ...`` the result moves too, and its
    derivatives by ``t`` at 0 come from those of the arguments in one go: the work grows with the
    square of the order, while that of repeated ``jvp`` doubles with each.

    Args:
      fun: a function of arrays, or of pytrees of them.
      primals: the arguments at 0, a tuple or list.
      series: for each argument its derivatives ``[x', x'', ...]``, as many for each; each is like
        the argument (a pytree has a list of pytrees). The number 0 stands for zeros and costs
        nothing. Integers do not move: their derivatives are zeros.
      factorial_scaled: whether derivatives are given and returned as they are; if not, both are
        divided by ``k!``, as the coefficients of a power series.

    Returns:
      ``(value, derivatives)``: the tree of the value, and the same tree with a list of derivatives
      in the place of each leaf.

    Functions with ``custom_jvp`` are differentiated by their rules, ``custom_vjp`` functions by
    what they compute. It may be jitted, mapped, differentiated, and applied to itself.

    Raises:
      TypeError: for derivatives that do not have their argument's shape or dtype.
      ValueError: if the numbers of derivatives differ.

    >>> from primax_core import lax
    >>> y, (dy, d2y) = jet(lambda x: x * x * x, (2.0,), ([1.0, 0.0],))
    >>> float(y), float(dy), float(d2y)
    (8.0, 12.0, 12.0)
    """
    check_callable(fun)
    primals, series, order = _checked(primals, series)
    trace = TaylorTrace(current_trace(), order, fun)
    args = [
        _moving(trace, p, terms, i, factorial_scaled)
        for i, (p, terms) in enumerate(zip(primals, series))
    ]
    try:
        with set_trace(trace):
            out = fun(*args)
        outs, out_tree = _flatten(out)
        split = [_parts(trace, o, fun) for o in outs]
    finally:
        trace.live = False
    if state.check_tracer_leaks:
        del args, out, outs
        check_leaks(trace, f"of Taylor-mode differentiation of {summarize_function(fun)}")
    derivatives = [_derivatives(p, terms, order, factorial_scaled) for p, terms in split]
    return _unflatten(out_tree, [as_result(p) for p, _ in split]), _unflatten(out_tree, derivatives)


def _parts(trace: TaylorTrace, out: Any, fun: Callable[..., Any]) -> Any:
    """The value of a result and its derivatives."""
    try:
        typeof(out)
    except TypeError:
        raise TypeError(
            f"the function {summarize_function(fun)} returned a value of type {type(out)}, "
            "which is not a valid Primax type"
        ) from None
    return trace.split(out)


def _moving(trace: TaylorTrace, primal: Any, terms: list, i: int, factorial_scaled: bool) -> Any:
    """An argument as the function receives it."""
    leaves, tree = _flatten(primal)
    rows = _rows(terms, tree, len(leaves), i)
    scaled = [_terms(x, [r[j] for r in rows], i) for j, x in enumerate(leaves)]
    if not factorial_scaled:
        scaled = [[_times(t, factorial(k + 1)) for k, t in enumerate(ts)] for ts in scaled]
    lifted = [trace.lift(x, ts) for x, ts in zip(leaves, scaled)]
    return _unflatten(tree, lifted)


def _derivatives(value: Any, terms: Any, order: int, factorial_scaled: bool) -> list:
    """The derivatives of a result, as they are returned."""
    derivatives = [_presented(value, t) for t in terms or [None] * order]
    if not factorial_scaled:
        derivatives = [_times(t, 1 / factorial(k + 1)) for k, t in enumerate(derivatives)]
    return derivatives


def _checked(primals: Any, series: Any) -> tuple[list, list, int]:
    for what, sequence in (("primals", primals), ("series", series)):
        if not isinstance(sequence, (tuple, list)):
            raise TypeError(
                f"the {what} given to jet must be a tuple or list with an item for each argument, "
                f"got {type(sequence).__name__}"
            )
    if len(primals) != len(series):
        raise ValueError(
            f"jet was given {len(primals)} arguments and derivatives of {len(series)}: give a list "
            "of derivatives for each argument"
        )
    rows = [_as_row(terms, i) for i, terms in enumerate(series)]
    orders = {len(r) for r in rows}
    if len(orders) > 1:
        raise ValueError(
            "jet terms have inconsistent lengths for different arguments: "
            f"{[len(r) for r in rows]}. Give as many derivatives for each, zeros where need be."
        )
    return list(primals), rows, orders.pop() if orders else 0


def _as_row(terms: Any, i: int) -> list:
    if isinstance(terms, (tuple, list)):
        return list(terms)
    if getattr(terms, "ndim", 0) and hasattr(terms, "dtype"):
        return [terms[k] for k in range(terms.shape[0])]
    raise TypeError(
        f"the derivatives of argument {i} given to jet must be a list [x', x'', ...], got "
        f"{type(terms).__name__}"
    )


def _rows(terms: list, tree: Any, n: int, i: int) -> list[list]:
    """The leaves of each derivative of an argument."""
    rows = []
    for k, term in enumerate(terms):
        if type(term) in (int, float) and term == 0:
            rows.append([0] * n)
            continue
        leaves, structure = _flatten(term)
        if structure != tree:
            raise TypeError(
                f"derivative {k + 1} of argument {i} given to jet has the tree structure "
                f"{structure}, but the argument has {tree}"
            )
        rows.append(leaves)
    return rows


def _terms(x: Any, terms: list, i: int) -> list:
    """Checked derivatives of a leaf; ``None`` for zeros."""
    aval = typeof(x)
    tangent_aval = aval.tangent_aval()
    checked: list[Any] = []
    for k, t in enumerate(terms):
        if type(t) in (int, float) and t == 0 or getattr(t, "dtype", None) == dtypes.float0:
            checked.append(None)
            continue
        got = typeof(t)
        if not _moves(aval):
            raise TypeError(
                f"argument {i} of jet holds {aval.str_short()}, which does not move: its "
                f"derivatives must be the number 0, but derivative {k + 1} is {got.str_short()}"
            )
        if got.shape != aval.shape:
            raise TypeError(
                f"derivative {k + 1} of argument {i} given to jet has shape {got.shape}, but the "
                f"argument has shape {aval.shape}"
            )
        if dtypes.issubdtype(got.dtype, np.complexfloating) and not dtypes.issubdtype(
            aval.dtype, np.complexfloating
        ):
            raise TypeError(
                f"derivative {k + 1} of argument {i} given to jet is {got.str_short()}, which does "
                f"not fit the argument, {aval.str_short()}"
            )
        same = got.dtype == tangent_aval.dtype
        checked.append(t if same else convert_element_type(t, tangent_aval.dtype))
    return checked


def _moves(aval: Any) -> bool:
    """Return True if values of a type have derivatives."""
    return dtypes.issubdtype(aval.dtype, np.inexact)


def _times(t: Any, factor: float) -> Any:
    return t if t is None or factor == 1 else mul(t, scalar_like(t, factor))


def _presented(value: Any, t: Any) -> Any:
    """A derivative as an array; zeros for that of an integer."""
    if t is not None:
        return as_result(t)
    aval = typeof(value)
    if not _moves(aval):
        aval = aval.update(dtype=dtypes.canonicalize_dtype(np.float64), weak_type=True)
    return as_result(instantiate(Zero(aval)))


# Rules, in short


def deflinear(prim: Primitive) -> None:
    """Declare a primitive linear in its operands: each derivative is the primitive of theirs.

    >>> from primax_core.extend import Primitive
    >>> deflinear(Primitive("twice"))
    """

    def rule(primals, series, **params):
        out = prim.bind(*primals, **params)
        outs = out if prim.multiple_results else [out]
        derivatives: list[list] = [[] for _ in outs]
        for now in zip(*series):
            if not is_moving(now):
                terms = [Zero.like(o) for o in outs]
            else:
                terms_in = [instantiate(t) for t in now]
                terms = prim.bind(*terms_in, **params)
                terms = terms if prim.multiple_results else [terms]
            for row, t in zip(derivatives, terms):
                row.append(t)
        return (out, derivatives) if prim.multiple_results else (out, derivatives[0])

    prim.rule(taylor, override=True)(rule)


def defzero(prim: Primitive) -> None:
    """Declare the derivatives of a primitive zero everywhere."""

    def rule(primals, series, **params):
        out = prim.bind(*primals, **params)
        n = len(series[0])
        if prim.multiple_results:
            return out, [[Zero.like(o)] * n for o in out]
        return out, [Zero.like(out)] * n

    prim.rule(taylor, override=True)(rule)


def def_deriv(prim: Primitive, deriv: Callable[..., Any]) -> None:
    """Declare the derivative of a primitive with one operand.

    Args:
      deriv: a function of the operand, elementwise like the primitive.
    """

    def rule(primals, series, **params):
        (x,), (xs,) = primals, series
        out, order = prim.bind(x, **params), len(xs)
        if not order:
            return out, []
        terms = [None if type(t) is Zero else t for t in xs]
        if order == 1 or mask_of(terms[:-1]) is None:
            factors = [deriv(x)]
        else:
            (first,), (rest,) = taylor_of(lambda a: [deriv(a)], [x], [terms[:-1]], order - 1)
            factors = [first, *(rest or [None] * (order - 1))]
        factors += [None] * (order - len(factors))
        factors = [Zero.like(out) if s is None else s for s in factors]
        return by_equation(out, xs, lambda ys: factors[len(ys) - 1])

    prim.rule(taylor, override=True)(rule)


def def_comp(prim: Primitive, comp: Callable[..., Any], **kwargs: Any) -> None:
    """Declare a primitive as a composition of other functions.

    Args:
      comp: a function of the same operands, called with ``kwargs`` too; it may leave out the
        primitive's parameters, which are passed as keywords.
    """

    def rule(primals, series, **params):
        order = len(series[0])
        terms = [[None if type(t) is Zero else t for t in ts] for ts in series]
        terms = [None if mask_of(t) is None else t for t in terms]

        def run(*args):
            out = comp(*args, **{**params, **kwargs})
            return list(out) if prim.multiple_results else [out]

        outs, derivatives = taylor_of(run, primals, terms, order)
        full = [
            [Zero.like(o) if t is None else t for t in ts or [None] * order]
            for o, ts in zip(outs, derivatives)
        ]
        return (outs, full) if prim.multiple_results else (outs[0], full[0])

    prim.rule(taylor, override=True)(rule)
