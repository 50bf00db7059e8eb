"""``jvp``, ``linearize`` and ``linear_transpose``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._base import pytree
from .._base.config import state
from .._base.operand_trees import flatten_operands, same_structure
from .._base.source import api_boundary
from .._engine.results import as_result
from .._ir import dtypes
from .._ir.jaxpr import Jaxpr
from .._ir.rule_results import RuleResultError
from .._trace.core import call_on, check_leaks, placed_like, set_trace, typeof
from .._trace.staging import close_over, stage_with_aux
from .._transform.jvp import JVPTrace, JVPTracer, tracers
from .._transform.linearize import tape_to_jaxpr
from .._transform.transpose import transpose_jaxpr
from .._transform.zeros import Zero, instantiate
from .arguments import check_callable, debug_info, describe
from .shape_struct import type_like
from .vjp import differentiable, output_aval, pull_back, split_aux

tree_flatten, tree_unflatten = flatten_operands, pytree.tree_unflatten


@api_boundary
def jvp(
    fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> Any:
    """Value of a function, and its derivative along tangents.

    Args:
      fun: takes and returns pytrees of arrays.
      primals: a tuple or list of arguments, at which the function is differentiated.
      tangents: a tuple or list of the structure of ``primals``. Tangents have the shapes and
        dtypes of their primals, and the dtype ``float0`` for integers and booleans.
      has_aux: ``fun`` returns a pair with an auxiliary second element, which has no tangent.

    Returns:
      ``(value, tangent)`` or ``(value, tangent, aux)``; the tangent has the structure of the
      value.

    Raises:
      TypeError: if ``primals`` and ``tangents`` are not tuples or lists of one structure, or a
        dtype differs.
      ValueError: if the shape of a tangent differs.

    Value and tangent are computed together, in memory independent of the length of the
    computation. For many tangents at the same primals see :func:`linearize`; :func:`jacfwd`
    computes all columns of a Jacobian.

    >>> y, dy = jvp(lambda x: x * x, (3.0,), (1.0,))
    >>> float(y), float(dy)
    (9.0, 6.0)
    >>> _, dy = jvp(lambda x, y: x * y, (3.0, 4.0), (1.0, 0.5))
    >>> float(dy)
    5.5
    """
    check_callable(fun)
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise TypeError(
            "primal and tangent arguments to jvp must be tuples or lists; found "
            f"{type(primals).__name__} and {type(tangents).__name__}."
        )
    leaves, in_tree = tree_flatten(tuple(primals))
    tangent_leaves, tangent_tree = tree_flatten(tuple(tangents))
    if not same_structure(tangent_tree, in_tree):
        raise TypeError(
            "primal and tangent arguments to jvp must have the same tree structure; primals have "
            f"tree structure {in_tree} whereas tangents have tree structure {tangent_tree}."
        )
    parent = state.trace
    trace = JVPTrace(parent, fun)
    ins = [_with_tangent(trace, p, t, i) for i, (p, t) in enumerate(zip(leaves, tangent_leaves))]
    aux_parts: tuple = ()
    scopes = state.name_stack
    if parent is not None:
        state.name_stack = (*scopes, "jvp()")
    try:
        with set_trace(trace):
            out = fun(*tree_unflatten(in_tree, ins))
            if has_aux:
                out, aux = split_aux(out, fun)
                aux_leaves, aux_tree = tree_flatten(aux)
                aux_parts = (
                    tree_unflatten(aux_tree, [as_result(trace.split(a)[0]) for a in aux_leaves]),
                )
        outs, out_tree = tree_flatten(out)
        split = [trace.split(o) for o in outs]
    finally:
        trace.live = False
        state.name_stack = scopes
    if state.check_tracer_leaks:
        del ins, out, outs
        check_leaks(trace, f"of differentiation of {describe(fun)}")
    values = [as_result(p) for p, _ in split]
    dots = [
        as_result(instantiate(Zero(output_aval(p, fun).tangent_aval())) if t is None else t)
        for p, t in split
    ]
    return (tree_unflatten(out_tree, values), tree_unflatten(out_tree, dots), *aux_parts)


def _with_tangent(trace: JVPTrace, p: Any, t: Any, i: int):
    aval = typeof(p)
    expected = aval.tangent_aval()
    is_float0 = isinstance(t, np.ndarray) and t.dtype == dtypes.float0
    got_dtype = dtypes.float0 if is_float0 else typeof(t).dtype
    if got_dtype != expected.dtype:
        raise TypeError(
            "primal and tangent arguments to jvp do not match; dtypes must be equal, or in case of "
            "int/bool primal dtype the tangent dtype must be float0. Got primal dtype "
            f"{aval.dtype.name} and so expected tangent dtype {_dtype_name(expected.dtype)}, but "
            f"got tangent dtype {_dtype_name(got_dtype)} instead (leaf {i})."
        )
    shape = t.shape if is_float0 else typeof(t).shape
    if shape != expected.shape:
        raise ValueError(
            "jvp called with different primal and tangent shapes; Got primal shape "
            f"{aval.shape} and tangent shape as {shape}"
        )
    if is_float0:
        return p
    return tracers.get(type(p), JVPTracer)(trace, p, placed_like(t, expected))


def _dtype_name(dtype) -> str:
    return "float0" if dtype == dtypes.float0 else dtype.name


@api_boundary
def linearize(
    fun: Callable[..., Any],
    *primals: Any,
    has_aux: bool = False,
    in_nzs: Any = None,
) -> Any:
    """Value of a function, and its derivative there as a reusable linear function.

    Args:
      fun: takes and returns pytrees of arrays.
      primals: the arguments, at which it is differentiated.
      has_aux: ``fun`` returns a pair with an auxiliary second element.
      in_nzs: a bool, or nested tuples of bools that are a prefix of the arguments: those that are
        differentiated. The tangents of the others are ignored.

    Returns:
      ``(value, f_jvp)`` or ``(value, f_jvp, aux)``. ``f_jvp(*tangents)`` returns the tangent of
      the value; the residuals are computed once.

    Raises:
      TypeError: if an argument or a result is not an array, or ``fun`` does not return a pair for
        ``has_aux``.
      ValueError: raised by ``f_jvp`` if tangents do not have the types of the primals.

    ``f_jvp`` contains only linear operations, so that :func:`linear_transpose` applies to it. One
    call of :func:`jvp` is cheaper for a single tangent.

    >>> y, f_jvp = linearize(lambda x: x * x, 3.0)
    >>> float(y)
    9.0
    >>> [float(f_jvp(t)) for t in (1.0, 2.0)]
    [6.0, 12.0]
    """
    check_callable(fun)
    out, pullback, aux = pull_back(fun, primals, has_aux, in_nzs)
    ins = [t for t in pullback._ins if t is not None]
    linear, out_mask = tape_to_jaxpr(pullback._out_avals, pullback._outs, pullback._tape, ins)
    jaxpr, consts = close_over(linear)
    aux_data = (
        jaxpr, tuple(out_mask), tuple(pullback._out_avals), tuple(pullback._in_avals),
        tuple([t is not None for t in pullback._ins]), pullback.in_tree, pullback.out_tree,
    )  # fmt: skip
    f_jvp = pytree.Partial(_Linearized(*aux_data), list(consts))
    if in_nzs is not None:
        f_jvp.out_nzs = pullback.out_nzs
    return (out, f_jvp, aux) if has_aux else (out, f_jvp)


class _Linearized:
    """The linear function returned by ``linearize``; its first argument are the residuals."""

    def __init__(self, jaxpr, out_mask, out_avals, in_avals, in_mask, in_tree, out_tree):
        self.key = (jaxpr, out_mask, out_avals, in_avals, in_mask, in_tree, out_tree)

    __name__ = "f_jvp"

    def __eq__(self, other):
        return type(other) is _Linearized and self.key == other.key

    def __hash__(self):
        return hash(self.key[:2])

    @api_boundary
    def __call__(self, consts, *tangents):
        jaxpr, out_mask, out_avals, in_avals, in_mask, in_tree, out_tree = self.key
        leaves, tree = tree_flatten(tangents)
        if not same_structure(tree, in_tree):
            raise TypeError(
                "the linearized function was called with a tree of tangents "
                f"{tree}, but expected {in_tree}"
            )
        nonzero = []
        for t, aval, differentiated in zip(leaves, in_avals, in_mask):
            is_float0 = isinstance(t, np.ndarray) and t.dtype == dtypes.float0
            expected = aval.tangent_aval()
            if expected.dtype == dtypes.float0:
                continue
            got = None if is_float0 else typeof(t)
            if got is None or got.shape != expected.shape or got.dtype != expected.dtype:
                raise ValueError(
                    "linearized function called on tangent values inconsistent with the original "
                    f"primal values: got {'float0' if got is None else got.strip_weak_type()} for "
                    f"primal {aval.strip_weak_type()}"
                )
            if differentiated:
                nonzero.append(placed_like(t, expected))
        tangents_out = iter(call_on(state.trace, jaxpr, [*consts, *nonzero]))
        outs = [
            as_result(next(tangents_out) if m else instantiate(Zero(a.tangent_aval())))
            for m, a in zip(out_mask, out_avals)
        ]
        return tree_unflatten(out_tree, outs)


@api_boundary
def linear_transpose(fun: Callable[..., Any], *primals: Any) -> Callable[..., Any]:
    """The transpose of a function that is linear in its arguments.

    Args:
      fun: a linear function; constants added to its result are ignored.
      primals: arrays or ``ShapeDtypeStruct`` with the types of the arguments. Values are not
        read.

    Returns:
      A function from a cotangent of the result to a tuple of cotangents of the arguments.

    Raises:
      TypeError: if the function is not linear, an argument is a float and the result an integer
        or the reverse, or a cotangent does not have the type of the result.

    The function is not evaluated. For a matrix ``A`` the transpose of ``lambda x: A @ x``
    multiplies by the transposed matrix. It can be transposed, differentiated and mapped again.

    >>> (ct,) = linear_transpose(lambda x: 3.0 * x, 1.0)(2.0)
    >>> float(ct)
    6.0
    >>> from primax_core import ShapeDtypeStruct, lax
    >>> x = ShapeDtypeStruct((3,), "float32")
    >>> (ct,) = linear_transpose(lambda x: lax.reduce_sum(x, (0,)), x)(2.0)
    >>> ct.tolist()
    [2.0, 2.0, 2.0]
    """
    check_callable(fun)
    leaves, in_tree = tree_flatten(primals)
    avals = [type_like(x) for x in leaves]
    for a in avals:
        if not differentiable(a) and not dtypes.issubdtype(a.dtype, np.integer):
            raise TypeError(
                f"linear_transpose only supports [float or complex] inputs, but got {a.dtype.name}"
            )

    def flat(*args):
        return tree_flatten(fun(*tree_unflatten(in_tree, args)))

    jaxpr, out_tree = stage_with_aux(
        flat, avals, debug_info(fun, "linear_transpose", primals, {}), state.trace
    )
    jaxpr, consts = close_over(jaxpr)
    out_avals = jaxpr.out_avals
    for a, o in zip(avals, out_avals):
        if differentiable(a) != differentiable(o):
            raise TypeError(
                "linear_transpose only supports transposing linear functions from floats to "
                f"floats or integers to integers, but got input dtype {a.dtype.name} and output "
                f"dtype {o.dtype.name}"
            )

    @api_boundary
    def transposed(ct):
        cts, tree = tree_flatten(ct)
        if not same_structure(tree, out_tree):
            raise TypeError(
                f"cotangent tree does not match function output, expected {out_tree} but got {tree}"
            )
        for i, (c, aval) in enumerate(zip(cts, out_avals)):
            got = typeof(c)
            if got.shape != aval.shape or got.dtype != aval.dtype:
                raise TypeError(
                    "cotangent type does not match function output, expected "
                    f"{aval.strip_weak_type()} but got {got.strip_weak_type()}"
                )
            cts[i] = placed_like(c, aval)
        transposed_jaxpr = _transposed(fun, jaxpr, len(consts), tuple(typeof(c) for c in cts))
        arg_cts = call_on(state.trace, transposed_jaxpr, [*consts, *cts])
        return tree_unflatten(in_tree, [as_result(c) for c in arg_cts])

    return transposed


def _transposed(fun: Callable, jaxpr: Jaxpr, n_consts: int, ct_types: tuple) -> Jaxpr:
    """The transposed jaxpr; raise an error if it is not linear in its arguments."""
    n = len(jaxpr.invars) - n_consts
    linear = (False,) * n_consts + (True,) * n
    try:
        return transpose_jaxpr(jaxpr, linear, ct_types, True)[0]
    except RuleResultError:
        raise
    except (TypeError, AttributeError, AssertionError) as e:
        raise TypeError(
            f"linear_transpose requires a function that is linear in its arguments, but "
            f"{describe(fun)} is not: an operation combines several of them, or one with itself. "
            "Use linearize or vjp for the derivative of a nonlinear function."
        ) from e
