"""Transformations of jaxprs, with checks of their arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .._base import pytree
from .._base.source import api_boundary
from .._ir.avals import ShapedArray
from .._ir.jaxpr import Jaxpr
from .._ir.primitive import Primitive
from .._trace.core import close_over as _close_over, typeof
from .._trace.staging import eval_jaxpr as _eval_jaxpr
from .._transform.batching import Axis, batch_jaxpr as _batch_jaxpr
from .._transform.dce import dce_jaxpr as _dce_jaxpr
from .._transform.expansion import expanded as _expanded
from .._transform.jvp import jvp_jaxpr as _jvp_jaxpr
from .._transform.linearize import Linearized, linearize_jaxpr as _linearize_jaxpr
from .._transform.transpose import transpose_jaxpr as _transpose_jaxpr
from ..lax.control.bodies import trace_body


class TracedFunction(NamedTuple):
    """A function of pytrees as a jaxpr.

    Attributes:
      jaxpr: takes ``consts`` and then the leaves of the arguments.
      consts: tracers of enclosing traces, and arrays, that the function closes over.
      out_tree: structure of the result.
    """

    jaxpr: Jaxpr
    consts: Sequence[Any]
    out_tree: Any


@api_boundary
def staged(fun: Callable[..., Any], args: Sequence[Any], name: str) -> TracedFunction:
    """The jaxpr of a user's function of pytrees, traced once for arguments of the same types.

    Primitives of higher order call it for the bodies that users pass: an eager loop over a body
    that was traced before costs as much as ``lax.scan``. The result is remembered with the
    function, and freed with it. It is traced again if it closes over tracers.

    Args:
      fun: a function of pytrees of arrays.
      args: example arguments, pytrees of arrays or avals; only the types count.
      name: the function that takes ``fun``, for messages.

    Returns:
      A jaxpr ``(*consts, *leaves) -> leaves``; ``consts`` become operands of the primitive.

    >>> from primax_core import lax
    >>> def body(c):
    ...     return {"y": lax.sin(c["x"])}
    >>> traced = staged(body, ({"x": 1.0},), "foreach")
    >>> print(traced.jaxpr)
    { lambda ; a:f32[]. let b:f32[] = sin a in (b,) }
    >>> traced.jaxpr is staged(body, ({"x": 2.0},), "foreach").jaxpr
    True
    """
    if not callable(fun):
        raise TypeError(f"{name} takes a function, got {fun!r}")
    leaves, tree = pytree.tree_flatten(tuple(args))
    body = trace_body(fun, tree, [typeof(x) for x in leaves], name)
    return TracedFunction(body.jaxpr, body.consts, body.out_tree)


def close_over(jaxpr: Jaxpr) -> tuple[Jaxpr, list[Any]]:
    """The jaxpr with its constants as leading arguments, and the constants.

    A primitive whose parameters contain a jaxpr takes the constants as operands, because they may
    be tracers of an enclosing trace, to be differentiated and batched with the other operands.

    Args:
      jaxpr: a jaxpr, such as the result of ``make_jaxpr``.

    Returns:
      A pair: a jaxpr without constants, and the list of their values.

    Calls with the same function have equal jaxprs only without constants, so caches find them.

    >>> import numpy as np
    >>> import primax_core as px
    >>> table = np.ones(3, np.float32)
    >>> jaxpr, consts = close_over(px.make_jaxpr(lambda x: px.lax.add(x, table))(table))
    >>> print(jaxpr, len(consts))
    { lambda ; a:f32[3] b:f32[3]. let c:f32[3] = add b a in (c,) } 1
    """
    _check_jaxpr("close_over", jaxpr)
    closed, consts = _close_over(jaxpr)
    return closed, list(consts)


def _check_jaxpr(name: str, jaxpr: Any) -> None:
    if not isinstance(jaxpr, Jaxpr):
        raise TypeError(f"{name} takes a Jaxpr, got {jaxpr!r}")


def _mask(name: str, what: str, mask: Any, count: int) -> tuple[bool, ...]:
    """A mask as a tuple of Booleans, one for each argument or result."""
    try:
        listed = tuple(mask)
    except TypeError:
        raise TypeError(f"{name} takes a sequence of Booleans as {what}, got {mask!r}") from None
    if len(listed) != count:
        raise ValueError(f"{name}: {what} has {len(listed)} entries, but the jaxpr has {count}")
    for m in listed:
        if m is not True and m is not False:
            raise TypeError(f"{name} takes Booleans in {what}, got {m!r}")
    return listed


@api_boundary
def eval_jaxpr(jaxpr: Jaxpr, args: Sequence[Any]) -> list[Any]:
    """Apply the primitives of a jaxpr under the current trace.

    Args:
      jaxpr: a jaxpr, such as the result of ``make_jaxpr``.
      args: arrays or tracers, one for each argument, of its shape and dtype.

    Returns:
      A list of results.

    Raises:
      TypeError: if an argument has another type.
      ValueError: if the number of arguments is wrong.

    Equations keep the lines of the function that the jaxpr was traced from. It can be
    differentiated, mapped and traced again.

    >>> import primax_core as px
    >>> jaxpr = px.make_jaxpr(lambda x, y: px.lax.mul(x, y))(2.0, 3.0)
    >>> [float(y) for y in eval_jaxpr(jaxpr, [4.0, 5.0])]
    [20.0]
    """
    _check_jaxpr("eval_jaxpr", jaxpr)
    if len(args) != len(jaxpr.invars):
        raise ValueError(f"the jaxpr takes {len(jaxpr.invars)} arguments, got {len(args)}")
    for i, (x, v) in enumerate(zip(args, jaxpr.invars)):
        expected, actual = v.aval, typeof(x)
        if isinstance(expected, ShapedArray) and (
            actual.shape != expected.shape or actual.dtype != expected.dtype
        ):
            raise TypeError(
                f"argument {i} of the jaxpr has type {expected.str_short()}, got a value of type "
                f"{actual.str_short()}"
            )
    return _eval_jaxpr(jaxpr, args)


@api_boundary
def jvp_jaxpr(
    jaxpr: Jaxpr, mask: Sequence[bool], instantiate_outs: bool | Sequence[bool] = False
) -> tuple[Jaxpr, tuple[bool, ...]]:
    """The forward derivative of a jaxpr.

    Args:
      jaxpr: a jaxpr, such as the result of ``make_jaxpr``.
      mask: the arguments with a tangent that may be nonzero, a bool for each.
      instantiate_outs: the results whose tangent is always an array, or ``True`` for all.

    Returns:
      A jaxpr ``(*args, *tangents of marked args) -> (*results, *tangents of some results)``, and
      the mask of these results.

    Raises:
      MissingRule: if a primitive has no jvp rule.

    It is computed once for each mask and stored in the jaxpr.

    >>> import primax_core as px
    >>> jaxpr = px.make_jaxpr(lambda x, y: px.lax.mul(x, y))(2.0, 3.0)
    >>> derivative, mask = jvp_jaxpr(jaxpr, [True, False])
    >>> mask, [float(y) for y in eval_jaxpr(derivative, [2.0, 3.0, 1.0])]
    ((True,), [6.0, 3.0])
    """
    _check_jaxpr("jvp_jaxpr", jaxpr)
    marks = _mask("jvp_jaxpr", "mask", mask, len(jaxpr.invars))
    forced: Any = instantiate_outs
    if not isinstance(instantiate_outs, bool):
        forced = _mask("jvp_jaxpr", "instantiate_outs", instantiate_outs, len(jaxpr.outvars))
    return _jvp_jaxpr(jaxpr, marks, forced)


@api_boundary
def linearize_jaxpr(
    jaxpr: Jaxpr, mask: Sequence[bool], instantiate_outs: Sequence[bool] | None = None
) -> Linearized:
    """The values of a jaxpr and its derivative as two jaxprs.

    Args:
      jaxpr: the jaxpr.
      mask: the arguments with a tangent.
      instantiate_outs: the results whose tangent is always an array.

    Returns:
      An object with ``forward``, a jaxpr ``(*args) -> (*results, *further residuals)``; ``linear``,
      a jaxpr ``(*residuals, *tangents) -> tangents of results``; ``out_mask``, the results that
      have a tangent; and ``residual_values(args, results of forward)``, the residuals.

    >>> import numpy as np
    >>> import primax_core as px
    >>> jaxpr = px.make_jaxpr(lambda x, y: px.lax.mul(x, y))(2.0, 3.0)
    >>> derived = linearize_jaxpr(jaxpr, [True, False])
    >>> args = [np.float32(2), np.float32(3)]
    >>> residuals = derived.residual_values(args, eval_jaxpr(derived.forward, args))
    >>> float(eval_jaxpr(derived.linear, [*residuals, np.float32(1)])[0])
    3.0
    """
    _check_jaxpr("linearize_jaxpr", jaxpr)
    marks = _mask("linearize_jaxpr", "mask", mask, len(jaxpr.invars))
    forced = None
    if instantiate_outs is not None:
        forced = _mask("linearize_jaxpr", "instantiate_outs", instantiate_outs, len(jaxpr.outvars))
    return _linearize_jaxpr(jaxpr, marks, forced)


@api_boundary
def transpose_jaxpr(
    jaxpr: Jaxpr, linear: Sequence[bool], cotangents: Sequence[bool] | None = None
) -> tuple[Jaxpr, tuple[bool, ...]]:
    """The transpose of a jaxpr that is linear in some of its arguments.

    Args:
      jaxpr: a jaxpr that is linear in the marked arguments.
      linear: the arguments in which the jaxpr is linear; the others are known.
      cotangents: the results with a cotangent that may be nonzero, by default all.

    Returns:
      A jaxpr ``(*known arguments, *cotangents of results) -> cotangents of some linear arguments``,
      and the mask of the arguments that have one.

    >>> import primax_core as px
    >>> jaxpr = px.make_jaxpr(lambda k, x: px.lax.mul(k, x))(2.0, 3.0)
    >>> transposed, mask = transpose_jaxpr(jaxpr, [False, True])
    >>> mask, float(eval_jaxpr(transposed, [2.0, 1.0])[0])
    ((False, True), 2.0)
    """
    _check_jaxpr("transpose_jaxpr", jaxpr)
    marks = _mask("transpose_jaxpr", "linear", linear, len(jaxpr.invars))
    n = len(jaxpr.outvars)
    nonzero = (True,) * n
    if cotangents is not None:
        nonzero = _mask("transpose_jaxpr", "cotangents", cotangents, n)
    return _transpose_jaxpr(jaxpr, marks, nonzero)


@api_boundary
def batch_jaxpr(
    jaxpr: Jaxpr,
    dims: Sequence[int | None],
    axis: Axis,
    out_dims: Sequence[int | None] | None = None,
) -> tuple[Jaxpr, tuple[int | None, ...]]:
    """A jaxpr of batches: the jaxpr with one more axis on some arguments and results.

    Args:
      jaxpr: a jaxpr, such as the result of ``make_jaxpr``.
      dims: the mapped axis of each argument, ``None`` for arguments without one.
      axis: size and name of the mapped axis, an :class:`Axis`.
      out_dims: the mapped axis that each result must have; ``None`` accepts any.

    Returns:
      The jaxpr, and the mapped axis of each of its results.

    Raises:
      MissingRule: if a primitive has no batching rule.

    It is computed once for each signature and stored in the jaxpr.

    >>> import primax_core as px
    >>> from primax_core.extend import Axis
    >>> jaxpr = px.make_jaxpr(lambda x, y: px.lax.mul(x, y))(2.0, 3.0)
    >>> print(*batch_jaxpr(jaxpr, [0, None], Axis(3)))
    { lambda ; a:f32[3] b:f32[]. let c:f32[3] = mul a b in (c,) } (0,)
    """
    _check_jaxpr("batch_jaxpr", jaxpr)
    if not isinstance(axis, Axis):
        raise TypeError(f"batch_jaxpr takes an Axis, such as Axis(8), got {axis!r}")
    listed = _dims("dims", dims, [v.aval for v in jaxpr.invars])
    required = None if out_dims is None else _dims("out_dims", out_dims, jaxpr.out_avals)
    return _batch_jaxpr(jaxpr, listed, axis, required)


def _dims(what: str, dims: Any, avals: Sequence[Any]) -> tuple[int | None, ...]:
    if not isinstance(dims, (tuple, list)):
        raise TypeError(f"batch_jaxpr takes a sequence of mapped axes as {what}, got {dims!r}")
    if len(dims) != len(avals):
        raise ValueError(
            f"batch_jaxpr: {what} has {len(dims)} entries, but the jaxpr has {len(avals)}"
        )
    for d, aval in zip(dims, avals):
        if d is None:
            continue
        rank = getattr(aval, "ndim", 0)
        if type(d) is not int or not 0 <= d <= rank:
            raise ValueError(
                f"batch_jaxpr: {what} has the entry {d!r}, but the mapped axis of a batch of "
                f"{aval} is from 0 to {rank}"
            )
    return tuple(dims)


@api_boundary
def dce_jaxpr(
    jaxpr: Jaxpr, used_outputs: Sequence[bool], keep_inputs: bool | Sequence[bool] = False
) -> tuple[Jaxpr, tuple[bool, ...]]:
    """The jaxpr with only the used results, and a mask of the arguments that it still reads.

    Args:
      jaxpr: a jaxpr, such as the result of ``make_jaxpr``.
      used_outputs: the results to keep, a bool for each.
      keep_inputs: arguments that stay even if they are not read, or ``True`` for all.

    Returns:
      The jaxpr, without equations whose results and effects are not needed, and the mask.

    Raises:
      ValueError: if the length of a mask is wrong.

    Sub-jaxprs are reduced too, where the primitive has a rule of the kind ``dce``.

    >>> import primax_core as px
    >>> jaxpr = px.make_jaxpr(lambda x, y: (px.lax.sin(x), px.lax.cos(y)))(1.0, 2.0)
    >>> print(*dce_jaxpr(jaxpr, [True, False]))
    { lambda ; a:f32[]. let b:f32[] = sin a in (b,) } (True, False)
    """
    _check_jaxpr("dce_jaxpr", jaxpr)
    used = _mask("dce_jaxpr", "used_outputs", used_outputs, len(jaxpr.outvars))
    keep: Any = keep_inputs
    if not isinstance(keep_inputs, bool):
        keep = _mask("dce_jaxpr", "keep_inputs", keep_inputs, len(jaxpr.invars))
    return _dce_jaxpr(jaxpr, used, keep)


@api_boundary
def expanded(prim: Primitive, avals: Sequence[Any], params: dict[str, Any]) -> Jaxpr | None:
    """The jaxpr of the expansion of a primitive.

    An expansion rewrites an operation in other primitives. Interpreters without a rule for the
    primitive use it.

    Args:
      prim: the primitive.
      avals: types of the operands.
      params: parameters of the operation.

    Returns:
      A jaxpr of the operands; ``None`` if the primitive has no expand rule.

    It is computed once for each signature.

    >>> import primax_core as px
    >>> (eqn,) = px.make_jaxpr(px.jit(lambda x: px.lax.sin(x)))(1.0).eqns
    >>> avals = [px.typeof(1.0)]
    >>> [e.primitive.name for e in expanded(eqn.primitive, avals, eqn.params).eqns]
    ['sin']
    >>> expanded(px.lax.sin_p, avals, {}) is None
    True
    """
    for aval in avals:
        if not hasattr(aval, "tangent_aval"):
            raise TypeError(f"expanded takes avals, such as typeof(x), got {aval!r}")
    return _expanded(prim, avals, params)
