"""Walking through programs, rewriting them, and interpreting them in another domain."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from .._base.config import state
from .._base.source import is_internal
from .._ir.avals import ShapedArray
from .._ir.jaxpr import DebugInfo, Eqn, Jaxpr, jaxprs_in
from .._trace.core import Trace
from .._trace.interpret import interpret as _interpret
from .._trace.staging import stage as _stage

_CURRENT: Final[Any] = object()


def stage(
    fun: Callable[..., Sequence[Any]],
    avals: Sequence[ShapedArray],
    name: str | None = None,
    *,
    debug_info: DebugInfo | None = None,
    parent: Trace | None = _CURRENT,
) -> Jaxpr:
    """The jaxpr of a function from arrays to a list of arrays.

    Args:
      fun: a function of arrays that returns a list of arrays.
      avals: types of the arguments.
      name: the name of the function in errors, by default its own.
      debug_info: name, location and argument names for errors, instead of ``name``.
      parent: the trace that operations on no argument are passed to, by default the current one;
        ``None`` for jaxprs that are kept and reused.

    Returns:
      A jaxpr.

    The constants of the jaxpr may be tracers of ``parent`` and of traces around it; see
    ``jaxpr.consts``.

    >>> import numpy as np
    >>> from primax_core import lax
    >>> print(stage(lambda x: [lax.sin(x)], [ShapedArray((2,), np.dtype("float32"))]))
    { lambda ; a:f32[2]. let b:f32[2] = sin a in (b,) }
    """
    if not callable(fun):
        raise TypeError(f"stage takes a function, got {fun!r}")
    if not isinstance(avals, (list, tuple)):
        raise TypeError(f"stage takes a sequence of avals, got {avals!r}")
    for aval in avals:
        if not hasattr(aval, "tangent_aval"):
            raise TypeError(f"stage takes the avals of the arguments, got {aval!r}; see typeof")

    def listed(*args):
        outs = fun(*args)
        if not isinstance(outs, (list, tuple)):
            raise TypeError(
                f"stage takes a function that returns a list of results, but {info.func_src_info} "
                f"returned {outs!r}"
            )
        return outs

    info = _origin(fun, name) if debug_info is None else debug_info
    return _stage(listed, avals, info, state.trace if parent is _CURRENT else parent)


def _origin(fun: Callable[..., Any], name: str | None) -> DebugInfo:
    """The location of a function. Equations of a jaxpr with a location keep their own."""
    code = getattr(getattr(fun, "__wrapped__", fun), "__code__", None)
    name = name or getattr(fun, "__name__", "fn")
    if code is None or is_internal(code):
        return DebugInfo("a jaxpr", name)
    return DebugInfo("a jaxpr", name, code.co_filename, code.co_firstlineno)


def interpret(
    jaxpr: Jaxpr,
    args: Sequence[Any],
    step: Callable[[Eqn, list[Any]], Sequence[Any]],
    constant: Callable[[Any], Any] | None = lambda x: x,
) -> list[Any]:
    """Evaluate a jaxpr in another domain, equation by equation.

    Domains are intervals, costs, names, or arrays of another library.

    Args:
      jaxpr: a jaxpr, such as the result of ``make_jaxpr``.
      args: values of the domain, one for each argument of the jaxpr.
      step: ``(eqn, values) -> values``: what one equation does; values of the domain, as many as
        the equation has operands and results.
      constant: the value of the domain for an array (a constant, a literal). ``None`` if the
        domain is that of arrays and tracers: literals are passed on as :class:`Literal`, which
        keeps their weak types.

    Returns:
      Values of the domain, one for each result.

    Raises:
      ValueError: if the number of arguments, or of the values that ``step`` returns, is wrong.
      TypeError: if ``step`` does not return a sequence.

    The example counts the operations on which a result depends.

    >>> from primax_core import lax, make_jaxpr
    >>> from primax_core.extend import interpret
    >>> jaxpr = make_jaxpr(lambda x: lax.mul(lax.sin(x), x))(1.0)
    >>> interpret(jaxpr, [0], lambda eqn, counts: [1 + sum(counts)], lambda x: 0)
    [2]
    """
    if len(args) != len(jaxpr.invars):
        raise ValueError(f"the jaxpr takes {len(jaxpr.invars)} arguments, got {len(args)}")

    def checked_step(eqn: Eqn, values: list[Any]) -> list[Any]:
        outs = step(eqn, values)
        try:
            outs = list(outs)
        except TypeError:
            raise TypeError(
                f"interpret: step must return a sequence of values, one for each result of "
                f"{eqn.primitive.name}, got {outs!r}"
            ) from None
        if len(outs) != len(eqn.outvars):
            raise ValueError(
                f"interpret: step returned {len(outs)} values for {eqn.primitive.name}, which has "
                f"{len(eqn.outvars)} results: return one value for each of eqn.outvars"
            )
        return outs

    return _interpret(jaxpr, args, checked_step, constant, None if constant is None else True)


def walk(jaxpr: Jaxpr) -> Iterator[Eqn]:
    """All equations of a jaxpr, with those of its sub-jaxprs.

    Args:
      jaxpr: a jaxpr, such as the result of ``make_jaxpr``.

    Returns:
      An iterator. The equations of a sub-jaxpr follow the equation that contains it.

    Branches and bodies of loops are visited once.

    >>> from primax_core import jit, lax, make_jaxpr
    >>> from primax_core.extend import walk
    >>> jaxpr = make_jaxpr(jit(lambda x: lax.sin(x) * 2.0))(1.0)
    >>> [eqn.primitive.name for eqn in walk(jaxpr)]
    ['jit', 'sin', 'mul']
    """
    for eqn in jaxpr.eqns:
        yield eqn
        for held in jaxprs_in(eqn.params):
            yield from walk(held)


def map_jaxprs(eqn: Eqn, fun: Callable[[Jaxpr], Jaxpr]) -> Eqn:
    """The equation with each of its sub-jaxprs replaced by a function of it.

    Args:
      eqn: an equation.
      fun: a function from a jaxpr to a jaxpr that takes and returns the same types.

    Returns:
      A new equation with the operands and results of ``eqn``.

    Passes that rewrite jaxprs apply themselves to sub-jaxprs by it.

    >>> from primax_core import jit, lax, make_jaxpr
    >>> from primax_core.extend import dce_jaxpr, map_jaxprs
    >>> (eqn,) = make_jaxpr(jit(lambda x: lax.sin(x) * 2.0))(1.0).eqns
    >>> map_jaxprs(eqn, lambda jaxpr: dce_jaxpr(jaxpr, [True], True)[0]).primitive.name
    'jit'
    """

    def mapped(value):
        if type(value) is Jaxpr:
            return fun(value)
        if type(value) is tuple:
            return tuple(map(mapped, value))
        return value

    return eqn.replace(params={k: mapped(v) for k, v in eqn.params.items()})
