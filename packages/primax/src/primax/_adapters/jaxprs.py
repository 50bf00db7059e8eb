"""Jaxprs in the reference's convention: constructors, evaluation, contents.

The core has one class for open and closed jaxprs, like current versions of the reference.
Constructors take the reference's arguments and create core objects, which pass ``isinstance``.
"""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import primax_core.errors as errors
from primax_core import extend, lax
from primax_core.extend import (
    AbstractRef,
    Effect,
    Eqn,
    Literal,
    Primitive,
    ShapedArray,
    Var,
    jaxprs_in,
    typeof,
)
from primax_core.extend.facade import SourceInfo
from primax_core.typing import DTypeLike

Atom = Var | Literal
no_effects: Final[frozenset[Effect]] = frozenset()


class _JaxprMeta(ABCMeta):
    """Metaclass of the class of jaxprs: jaxprs of the core are its instances."""

    def __call__(cls, *args: Any, **kwargs: Any) -> extend.Jaxpr:
        return _new_jaxpr(*args, **kwargs)


class Jaxpr(metaclass=_JaxprMeta):
    """Typed jaxpr; the constructor returns a jaxpr of the core.

    ``Jaxpr(constvars, invars, outvars, eqns, effects, debug_info, is_high, consts)``: without
    ``consts``, the constants' variables become leading arguments.
    ``Jaxpr(jaxpr, consts)`` binds the first variables of a jaxpr to values.
    """

    def __init__(
        self,
        constvars: Sequence[Var] | extend.Jaxpr,
        invars: Sequence[Var] | None = None,
        outvars: Sequence[Atom] | None = None,
        eqns: Sequence[Eqn] | None = None,
        effects: frozenset[Any] = no_effects,
        debug_info: extend.DebugInfo | None = None,
        is_high: bool = False,
        consts: Sequence[Any] | None = None,
    ) -> None:
        raise AssertionError("the metaclass creates the jaxpr")


Jaxpr.register(extend.Jaxpr)
ClosedJaxpr = Jaxpr


def _new_jaxpr(
    constvars: Any = (),
    invars: Any = None,
    outvars: Sequence[Atom] | None = None,
    eqns: Sequence[Eqn] | None = None,
    effects: frozenset[Any] = no_effects,
    debug_info: Any = None,
    is_high: bool = False,
    consts: Sequence[Any] | None = None,
    *,
    jaxpr: extend.Jaxpr | None = None,
) -> extend.Jaxpr:
    if isinstance(constvars, extend.Jaxpr):
        jaxpr, constvars = constvars, ()
    if jaxpr is not None:
        return with_consts(jaxpr, invars if consts is None else consts)
    if invars is None or outvars is None or eqns is None:
        raise TypeError("a Jaxpr needs constvars, invars, outvars and eqns, or a jaxpr and consts")
    if is_high:
        raise NotImplementedError("is_high=True: Primax has no jaxprs with higher-level types")
    binders = [*constvars, *invars]
    consts = [] if consts is None else consts
    core_jaxpr = extend.Jaxpr(
        binders[: len(consts)],
        consts,
        binders[len(consts) :],
        outvars,
        eqns,
        frozenset(effects) or None,  # the equations have their own
    )
    if debug_info is None:
        return core_jaxpr
    return core_jaxpr.replace(debug_info=core_debug_info(debug_info))


def with_consts(jaxpr: extend.Jaxpr, consts: Sequence[Any] | None) -> extend.Jaxpr:
    """Bind the first variables of a jaxpr to values; the others are its arguments."""
    consts = [] if consts is None else list(consts)
    binders = [*jaxpr.constvars, *jaxpr.invars]
    if len(consts) > len(binders):
        raise TypeError(f"{len(consts)} constants for a jaxpr with {len(binders)} variables")
    if len(consts) == len(jaxpr.constvars):
        same = all(a is b for a, b in zip(consts, jaxpr.consts))
        return jaxpr if same else jaxpr.replace(consts=consts)
    return jaxpr.replace(
        constvars=binders[: len(consts)], consts=consts, invars=binders[len(consts) :]
    )


class _DebugInfoMeta(ABCMeta):
    def __call__(
        cls,
        traced_for: str,
        func_src_info: str | None,
        arg_names: Sequence[str] | None,
        result_paths: Any = None,
    ) -> extend.DebugInfo:
        return _new_debug_info(traced_for, func_src_info, arg_names, result_paths)


class DebugInfo(metaclass=_DebugInfoMeta):
    """Debug info of a jaxpr; the constructor returns the core's object.

    ``DebugInfo(traced_for, func_src_info, arg_names, result_paths)``, where ``func_src_info`` is
    ``name at file:line``.
    """


DebugInfo.register(extend.DebugInfo)


def _new_debug_info(
    traced_for: str, text: str | None, arg_names: Sequence[str] | None, result_paths: Any
) -> extend.DebugInfo:
    name, file, line = parse_location(text)
    names = None if arg_names is None else tuple(arg_names)
    paths = result_paths() if callable(result_paths) else result_paths
    return extend.DebugInfo(
        traced_for, name, file, line, names, None if paths is None else tuple(paths)
    )


def parse_location(text: str | None) -> tuple[str, str | None, int | None]:
    """Parse ``name at file:line`` to name, file and line."""
    name, _, place = (text or "<unknown>").partition(" at ")
    file, _, line = place.rpartition(":")
    return name, file or None, int(line) if line.isdigit() else None


def core_debug_info(info: Any) -> extend.DebugInfo:
    """Convert to the core's debug info."""
    if isinstance(info, extend.DebugInfo):
        return info
    return _new_debug_info(info.traced_for, info.func_src_info, info.arg_names, info.result_paths)


# Equations


class _EqnMeta(ABCMeta):
    def __call__(
        cls,
        invars: Sequence[Atom],
        outvars: Sequence[Var],
        primitive: Primitive,
        params: dict[str, Any],
        effs: frozenset[Any] = no_effects,
        source_info: Any = None,
        ctx: Any = None,
    ) -> Eqn:
        return new_jaxpr_eqn(invars, outvars, primitive, params, effs, source_info, ctx)


class JaxprEqn(metaclass=_EqnMeta):
    """Application of a primitive; the constructor returns an equation of the core."""


JaxprEqn.register(Eqn)


def new_jaxpr_eqn(
    invars: Sequence[Atom],
    outvars: Sequence[Var],
    primitive: Primitive,
    params: dict[str, Any],
    effects: frozenset[Any],
    source_info: SourceInfo | tuple[Any, ...] | None = None,
    ctx: Any = None,
) -> Eqn:
    """Create an equation ``outvars = primitive[params] invars``.

    Args:
      source_info: the location, from another equation or ``source_info_util.current()``.
      ctx: named scopes from another equation; by default those of ``source_info``.
    """
    if isinstance(source_info, SourceInfo):
        ctx = source_info.ctx if ctx is None else ctx
        source_info = tuple(source_info) or None
    scopes = ctx if isinstance(ctx, tuple) else ()
    return Eqn(primitive, invars, outvars, params, frozenset(effects), source_info, scopes)


def gensym() -> Callable[[Any], Var]:
    """Return a function that creates variables of a type; variables are compared by identity."""
    return Var


# Evaluation


def eval_jaxpr(
    jaxpr: extend.Jaxpr, consts: Sequence[Any], *args: Any, propagate_source_info: bool = True
) -> list[Any]:
    """Evaluate a jaxpr, equation by equation, under the current trace.

    Args:
      consts: values of the jaxpr's constants (``jaxpr.consts``).
      args: arrays, one for each argument.
      propagate_source_info: ignored; errors always name the locations of the equations.

    Raises:
      ValueError: if the number of values does not match the jaxpr's variables.
    """
    binders = [*jaxpr.constvars, *jaxpr.invars]
    values = [*consts, *args]
    if len(values) != len(binders):
        raise ValueError(
            f"the jaxpr takes {len(jaxpr.constvars)} constants and {len(jaxpr.invars)} "
            f"arguments, but got {len(consts)} constants and {len(args)} arguments"
        )
    n = len(jaxpr.constvars)
    if len(jaxpr.consts) == n and all(a is b for a, b in zip(values, jaxpr.consts)):
        opened = jaxpr
    else:
        opened = jaxpr.replace(consts=values[:n])
    return [extend.as_result(out) for out in extend.eval_jaxpr(opened, values[n:])]


def jaxpr_as_fun(closed_jaxpr: extend.Jaxpr, *args: Any) -> Any:
    """Return a function of arrays that evaluates the jaxpr and returns the list of its results."""

    def run(*values: Any) -> list[Any]:
        return eval_jaxpr(closed_jaxpr, closed_jaxpr.consts, *values)

    run.__name__ = run.__qualname__ = "jaxpr_as_fun"
    return run(*args) if args else run


def check_jaxpr(jaxpr: extend.Jaxpr) -> None:
    """Check that a jaxpr is well formed and well typed.

    Raises:
      JaxprTypeError: names the first invalid equation.
    """
    try:
        extend.check_jaxpr(jaxpr)
    except extend.JaxprCheckError as e:
        raise errors.JaxprTypeError(f"{e.args[0]}, in the jaxpr\n{jaxpr}") from e


# Sub-jaxprs


def jaxprs_in_params(params: Mapping[str, Any]) -> Iterator[extend.Jaxpr]:
    """Return the sub-jaxprs among an equation's parameters."""
    return iter(jaxprs_in(dict(params)))


def subjaxprs(jaxpr: extend.Jaxpr) -> Iterator[extend.Jaxpr]:
    """Return the sub-jaxprs of a jaxpr's equations, not recursively."""
    for eqn in jaxpr.eqns:
        yield from jaxprs_in(eqn.params)


# Types


class AbstractValue(metaclass=ABCMeta):  # noqa: B024 - subclasses are types of any kind
    """Base class of types of values; the core's types are its instances."""

    __slots__ = ()


AbstractValue.register(ShapedArray)
AbstractValue.register(AbstractRef)


class _AbstractTokenMeta(ABCMeta):
    def __instancecheck__(cls, instance: Any) -> bool:
        return instance is abstract_token()

    def __call__(cls) -> Any:
        return abstract_token()


class AbstractToken(metaclass=_AbstractTokenMeta):
    """Type of tokens, which order effects; the constructor returns the core's type."""


def abstract_token() -> Any:
    """The core's type of tokens."""
    return typeof(lax.create_token())


class _TokenMeta(ABCMeta):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, extend.Array) and instance.aval is abstract_token()

    def __call__(cls, buf: Any = None) -> Any:
        return lax.create_token(buf)


class Token(metaclass=_TokenMeta):
    """Token, which orders effects; the constructor returns the core's object."""


def mapped_aval(size: int, axis: int | None, aval: ShapedArray) -> Any:
    """Return the type of one example of a batch.

    Args:
      size: number of examples.
      axis: the batch axis, or ``None`` for an unbatched value.
    """
    if axis is None:
        return aval
    if not isinstance(aval, ShapedArray):
        raise TypeError(f"a value of type {aval} has no axis to map over")
    if not 0 <= axis < aval.ndim or aval.shape[axis] != size:
        raise ValueError(f"axis {axis} of {aval} is not one of {size} examples")
    return aval.without_axis(axis)


def unmapped_aval(
    size: int, axis: int | None, aval: ShapedArray, explicit_mesh_axis: None = None
) -> Any:
    """Return the type of a batch of ``size`` examples along ``axis``; ``None`` for no batch.

    Args:
      explicit_mesh_axis: must be ``None``, because meshes are not supported.
    """
    if explicit_mesh_axis is not None:
        raise NotImplementedError(
            "explicit_mesh_axis: Primax computes on one device, without meshes"
        )
    if axis is None:
        return aval
    if not isinstance(aval, ShapedArray):
        raise TypeError(f"values of type {aval} cannot be batched")
    return aval.with_axis(axis, size)


def primal_dtype_to_tangent_dtype(primal_dtype: DTypeLike) -> Any:
    """Return the tangent dtype: the same for inexact dtypes, otherwise ``float0``."""
    return ShapedArray((), primal_dtype).tangent_aval().dtype


def valid_jaxtype(x: object) -> bool:
    """Return True if a value can be an operand: an array, NumPy array, number or tracer."""
    try:
        typeof(x)
    except TypeError:
        return False
    return True


def concrete_or_error(force: Callable[[Any], Any] | None, val: object, context: str = "") -> Any:
    """Return the concrete value of ``val``, converted by ``force`` (``int``, ``bool``,
    ``np.asarray``).

    Args:
      context: included in the error message: the purpose of the value.

    Raises:
      ConcretizationTypeError: if ``val`` is a tracer.
    """
    if isinstance(val, extend.Tracer):
        raise errors.ConcretizationTypeError(val, context)
    return val if force is None else force(val)
