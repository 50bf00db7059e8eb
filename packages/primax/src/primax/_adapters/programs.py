"""Programs in the reference's convention: constructors, evaluation, what is in them.

The core has one class for open and closed programs, as the reference has now. Constructors take
what the reference's take and make objects of the core; ``isinstance`` holds for those.
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

from .naming import SourceInfo

Atom = Var | Literal
no_effects: Final[frozenset[Effect]] = frozenset()


class _Program(ABCMeta):
    """The class of programs: programs of the core are its instances."""

    def __call__(cls, *args: Any, **kwargs: Any) -> extend.Jaxpr:
        return _make_program(*args, **kwargs)


class Jaxpr(metaclass=_Program):
    """A typed program; making one gives a program of the core.

    ``Jaxpr(constvars, invars, outvars, eqns, effects, debug_info, is_high, consts)``: without
    ``consts``, the constants' variables are arguments before the others.
    ``Jaxpr(program, consts)`` gives values to the first variables of a program.
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
        raise AssertionError("its metaclass makes programs of the core")


Jaxpr.register(extend.Jaxpr)
ClosedJaxpr = Jaxpr


def _make_program(
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
        raise TypeError(
            "a Jaxpr needs constvars, invars, outvars and eqns, or a program and consts"
        )
    if is_high:
        raise NotImplementedError(
            "is_high=True: programs of Primax have no operations on types of a higher level"
        )
    binders = [*constvars, *invars]
    consts = [] if consts is None else consts
    made = extend.Jaxpr(
        binders[: len(consts)],
        consts,
        binders[len(consts) :],
        outvars,
        eqns,
        frozenset(effects) or None,  # the equations know theirs
    )
    return made if debug_info is None else made.replace(debug_info=core_debug_info(debug_info))


def with_consts(jaxpr: extend.Jaxpr, consts: Sequence[Any] | None) -> extend.Jaxpr:
    """A program whose first variables have values; the others are its arguments."""
    consts = [] if consts is None else list(consts)
    binders = [*jaxpr.constvars, *jaxpr.invars]
    if len(consts) > len(binders):
        raise TypeError(f"{len(consts)} constants for a program with {len(binders)} variables")
    if len(consts) == len(jaxpr.constvars):
        same = all(a is b for a, b in zip(consts, jaxpr.consts))
        return jaxpr if same else jaxpr.replace(consts=consts)
    return jaxpr.replace(
        constvars=binders[: len(consts)], consts=consts, invars=binders[len(consts) :]
    )


class _Information(ABCMeta):
    def __call__(
        cls,
        traced_for: str,
        func_src_info: str | None,
        arg_names: Sequence[str] | None,
        result_paths: Any = None,
    ) -> extend.DebugInfo:
        return _made_debug_info(traced_for, func_src_info, arg_names, result_paths)


class DebugInfo(metaclass=_Information):
    """Where a program comes from; making one gives the core's.

    ``DebugInfo(traced_for, func_src_info, arg_names, result_paths)``, where ``func_src_info`` is
    ``name at file:line``.
    """


DebugInfo.register(extend.DebugInfo)


def _made_debug_info(
    traced_for: str, text: str | None, arg_names: Sequence[str] | None, result_paths: Any
) -> extend.DebugInfo:
    name, file, line = parsed_place(text)
    names = None if arg_names is None else tuple(arg_names)
    paths = result_paths() if callable(result_paths) else result_paths
    return extend.DebugInfo(
        traced_for, name, file, line, names, None if paths is None else tuple(paths)
    )


def parsed_place(text: str | None) -> tuple[str, str | None, int | None]:
    """Name, file and line of ``name at file:line``."""
    name, _, place = (text or "<unknown>").partition(" at ")
    file, _, line = place.rpartition(":")
    return name, file or None, int(line) if line.isdigit() else None


def core_debug_info(info: Any) -> extend.DebugInfo:
    """What the core keeps of where a program comes from."""
    if isinstance(info, extend.DebugInfo):
        return info
    return _made_debug_info(info.traced_for, info.func_src_info, info.arg_names, info.result_paths)


# Equations


class _Equation(ABCMeta):
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


class JaxprEqn(metaclass=_Equation):
    """One application of a primitive; making one gives an equation of the core."""


JaxprEqn.register(Eqn)


def new_jaxpr_eqn(
    invars: Sequence[Atom],
    outvars: Sequence[Var],
    primitive: Primitive,
    params: dict[str, Any],
    effects: frozenset[Any],
    source_info: Any = None,
    ctx: Any = None,
) -> Eqn:
    """An equation ``outvars = primitive[params] invars``.

    Args:
      source_info: where it comes from: of another equation, or ``source_info_util.current()``.
      ctx: its named scopes, those of another equation; by default those of ``source_info``.
    """
    if isinstance(source_info, SourceInfo):
        if ctx is None:
            ctx = source_info.name_stack.names()
        source_info = source_info.traceback
    scopes = ctx if isinstance(ctx, tuple) else ()
    return Eqn(primitive, invars, outvars, params, frozenset(effects), source_info, scopes)


def gensym() -> Callable[[Any], Var]:
    """A function from a type to a new variable; a variable's identity is its name."""
    return Var


# Evaluation


def eval_jaxpr(
    jaxpr: extend.Jaxpr, consts: Sequence[Any], *args: Any, propagate_source_info: bool = True
) -> list[Any]:
    """Run a program, equation by equation, under the current trace.

    Args:
      consts: values of the program's constants (``jaxpr.consts``).
      args: arrays, one for each argument.
      propagate_source_info: has no influence: errors name the places that the equations have.

    Raises:
      ValueError: if the number of values is not that of the program's variables.
    """
    binders = [*jaxpr.constvars, *jaxpr.invars]
    values = [*consts, *args]
    if len(values) != len(binders):
        raise ValueError(
            f"the program takes {len(jaxpr.constvars)} constants and {len(jaxpr.invars)} "
            f"arguments, but got {len(consts)} constants and {len(args)} arguments"
        )
    n = len(jaxpr.constvars)
    if len(jaxpr.consts) == n and all(a is b for a, b in zip(values, jaxpr.consts)):
        opened = jaxpr
    else:
        opened = jaxpr.replace(consts=values[:n])
    return [extend.as_result(out) for out in extend.eval_jaxpr(opened, values[n:])]


def jaxpr_as_fun(closed_jaxpr: extend.Jaxpr, *args: Any) -> Any:
    """``jaxpr_as_fun(program)`` is a function of arrays to the list of the program's results."""

    def run(*values: Any) -> list[Any]:
        return eval_jaxpr(closed_jaxpr, closed_jaxpr.consts, *values)

    run.__name__ = run.__qualname__ = "jaxpr_as_fun"
    return run(*args) if args else run


def check_jaxpr(jaxpr: extend.Jaxpr) -> None:
    """Check that a program is well formed and well typed.

    Raises:
      JaxprTypeError: naming the first equation that is not.
    """
    try:
        extend.check_jaxpr(jaxpr)
    except extend.JaxprCheckError as e:
        raise errors.JaxprTypeError(f"{e}, in the program\n{jaxpr}") from e


# Programs in programs


def jaxprs_in_params(params: Mapping[str, Any]) -> Iterator[extend.Jaxpr]:
    """The programs among an equation's parameters."""
    return iter(jaxprs_in(dict(params)))


def subjaxprs(jaxpr: extend.Jaxpr) -> Iterator[extend.Jaxpr]:
    """The programs that a program's equations hold, without those inside these."""
    for eqn in jaxpr.eqns:
        yield from jaxprs_in(eqn.params)


# Types


class AbstractValue(metaclass=ABCMeta):  # noqa: B024 - subclasses are types of any kind
    """Base of types of values; the core's types are its instances."""

    __slots__ = ()


AbstractValue.register(ShapedArray)
AbstractValue.register(AbstractRef)


class _TokenType(ABCMeta):
    def __instancecheck__(cls, instance: Any) -> bool:
        return instance is abstract_token()

    def __call__(cls) -> Any:
        return abstract_token()


class AbstractToken(metaclass=_TokenType):
    """The type of a value that only orders effects; making one gives the core's."""


def abstract_token() -> Any:
    """The core's type of tokens."""
    return typeof(lax.create_token())


class _TokenClass(ABCMeta):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, extend.Array) and instance.aval is abstract_token()

    def __call__(cls, buf: Any = None) -> Any:
        return lax.create_token(buf)


class Token(metaclass=_TokenClass):
    """A value that only orders effects; making one gives the core's."""


def mapped_aval(size: int, axis: int | None, aval: Any) -> Any:
    """The type of one example of a batch.

    Args:
      size: number of examples.
      axis: the axis of the batch, or ``None`` for what is no batch.
    """
    if axis is None:
        return aval
    if not isinstance(aval, ShapedArray):
        raise TypeError(f"a value of type {aval} has no axis to map over")
    if not 0 <= axis < aval.ndim or aval.shape[axis] != size:
        raise ValueError(f"axis {axis} of {aval} is not one of {size} examples")
    return aval.update(shape=aval.shape[:axis] + aval.shape[axis + 1 :])


def unmapped_aval(size: int, axis: int | None, aval: Any, explicit_mesh_axis: Any = None) -> Any:
    """The type of a batch of ``size`` examples along ``axis``; ``None`` for no batch.

    Args:
      explicit_mesh_axis: must be ``None``, since there are no meshes.
    """
    if explicit_mesh_axis is not None:
        raise NotImplementedError("explicit_mesh_axis: Primax computes on one device, without mesh")
    if axis is None:
        return aval
    if not isinstance(aval, ShapedArray):
        raise TypeError(f"there are no batches of values of type {aval}")
    return aval.update(shape=(*aval.shape[:axis], size, *aval.shape[axis:]))


def primal_dtype_to_tangent_dtype(primal_dtype: Any) -> Any:
    """The dtype of tangents: the same for inexact dtypes, ``float0`` for the others."""
    return ShapedArray((), primal_dtype).tangent_aval().dtype


def valid_jaxtype(x: Any) -> bool:
    """Whether a value may be an operand: an array, a NumPy array, a number or a tracer."""
    try:
        typeof(x)
    except TypeError:
        return False
    return True


def concrete_or_error(force: Callable[[Any], Any] | None, val: Any, context: str = "") -> Any:
    """The value behind ``val``, through ``force`` (``int``, ``bool``, ``np.asarray``) if given.

    Args:
      context: said in the error's text: what the value is needed for.

    Raises:
      ConcretizationTypeError: if ``val`` is a tracer.
    """
    if isinstance(val, extend.Tracer):
        raise errors.ConcretizationTypeError(val, context)
    return val if force is None else force(val)
