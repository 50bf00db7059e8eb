"""Errors about what rules return.

A rule runs once for each signature, so its result is checked there and costs nothing afterwards.
The errors name the kind, the primitive and the rule's line, which is the traceback's last entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from types import CodeType
from typing import TYPE_CHECKING, Any, NoReturn

from .._base.errors import ErrorWithPage
from .avals import AbstractToken, ShapedArray
from .effects import Effect
from .rules import RuleKind, location_of

if TYPE_CHECKING:
    from .primitive import Primitive


class RuleResultError(ErrorWithPage, TypeError, page=True):
    """A rule of a primitive returned something else than its kind and the primitive's type ask for.

    >>> from primax_core.extend import Primitive, abstract
    >>> import primax_core as pc
    >>> half_p = Primitive("half")
    >>> rule = half_p.rule(abstract)(lambda x: [x])
    >>> pc.make_jaxpr(half_p.bind)(1.0)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
      ...
    primax_core...RuleResultError: the abstract rule of half (...) returned a list of 1; ...
    """


def invalid_result(
    prim: Primitive, kind: RuleKind[Any], rule: Callable[..., Any], problem: str
) -> NoReturn:
    """Raise the error about the result of a rule.

    Interpreters that check what rules return use it, so that errors have one form.

    Args:
      prim: the primitive.
      kind: the rule kind, such as :data:`jvp`.
      rule: the rule.
      problem: the end of a sentence that begins with "the jvp rule of sin".

    Returns:
      Nothing: it always raises.

    Raises:
      RuleResultError: with the location of the rule and the result that the kind requires.

    >>> from primax_core import lax
    >>> from primax_core.extend import invalid_result, jvp
    >>> def rule(primals, tangents): ...
    >>> try:
    ...     invalid_result(lax.sin_p, jvp, rule, "returned one value")
    ... except Exception as error:
    ...     print(error.args[0].partition("(")[0] + "... " + error.args[0].partition(") ")[2])
    the jvp rule of sin ... returned one value; it must return `(out, tangent_out)`
    """
    _, _, expected = kind.signature.partition(" -> ")
    each = ", with a list of results" if prim.multiple_results else ""
    error = RuleResultError(
        f"the {kind.name} rule of {prim.name} ({location_of(_function(rule))}) {problem}; it must "
        f"return `{expected}`{each}"
    )
    _raise_in(rule, error)


def _function(rule: Any) -> Any:
    while isinstance(rule, partial):
        rule = rule.func
    return getattr(rule, "__wrapped__", rule)


def code_of(rule: Callable[..., Any]) -> CodeType | None:
    """The code object of a rule, or ``None``."""
    return getattr(_function(rule), "__code__", None)


def _raise_in(rule: Callable[..., Any], error: Exception) -> NoReturn:
    """Raise an error whose traceback ends at the first line of a rule."""
    code = code_of(rule)
    if code is not None:
        raising = compile("raise error", code.co_filename, "exec")
        raising = raising.replace(co_name=code.co_name, co_firstlineno=code.co_firstlineno)
        exec(raising, {"error": error})
    raise error


def described(x: Any) -> str:
    """A result of a rule in the text of an error."""
    if x is None:
        return "None"
    if isinstance(x, (tuple, list)):
        return f"a {type(x).__name__} of {len(x)}"
    aval = x if isinstance(x, ShapedArray) else getattr(x, "aval", None)
    if isinstance(aval, ShapedArray):
        what = "an aval" if aval is x else "a symbolic zero" if type(x).__name__ == "Zero" else None
        return f"{what or 'a value'} of type {aval.str_short()}"
    text = repr(x)
    return f"{text if len(text) <= 60 else text[:57] + '...'}, of type {type(x).__name__}"


def is_list(x: Any) -> bool:
    """Return True for the sequences that stand for several results."""
    return isinstance(x, (list, tuple))


def check_pair(prim: Primitive, kind: RuleKind[Any], rule: Any, result: Any) -> tuple[Any, Any]:
    """The two parts of a rule's result."""
    if not is_list(result) or len(result) != 2:
        invalid_result(prim, kind, rule, f"returned {described(result)}")
    return result[0], result[1]


def result_avals(prim: Primitive, kind: RuleKind[Any], rule: Any, result: Any) -> list[Any]:
    """The avals that an abstract rule returned."""
    if prim.multiple_results and not is_list(result):
        invalid_result(prim, kind, rule, f"returned {described(result)}")
    avals = list(result) if prim.multiple_results else [result]
    for aval in avals:
        if not (isinstance(aval, (ShapedArray, AbstractToken)) or hasattr(aval, "tangent_aval")):
            place = " among its results" if prim.multiple_results else ""
            invalid_result(prim, kind, rule, f"returned {described(aval)}{place}")
    return avals


def check_effects(
    prim: Primitive, kind: RuleKind[Any], rule: Any, result: Any
) -> frozenset[Effect]:
    """The effects that an effects rule returned."""
    if not isinstance(result, (frozenset, set)):
        invalid_result(prim, kind, rule, f"returned {described(result)}")
    for effect in result:
        if not isinstance(effect, Effect):
            invalid_result(
                prim, kind, rule,
                f"returned a set with {described(effect)}, which is not an instance of a subclass "
                "of Effect",
            )  # fmt: skip
    return frozenset(result)


def check_count(
    prim: Primitive, kind: RuleKind[Any], rule: Any, items: Iterable[Any], count: int, what: str
) -> Sequence[Any]:
    """A list of one item for each operand or result."""
    if not is_list(items):
        invalid_result(prim, kind, rule, f"returned {described(items)} as {what}")
    listed = list(items)
    if len(listed) != count:
        invalid_result(prim, kind, rule, f"returned {len(listed)} {what}, but there are {count}")
    return listed


def check_like(
    prim: Primitive,
    kind: RuleKind[Any],
    rule: Any,
    actual: Any,
    expected: Any,
    what: str,
) -> None:
    """Compare the aval of a value that a rule returned, up to its weak type."""
    if not isinstance(actual, ShapedArray) or not isinstance(expected, ShapedArray):
        return
    if actual.shape == expected.shape and actual.dtype == expected.dtype:
        return
    invalid_result(
        prim, kind, rule,
        f"returned {what} of type {actual.str_short()} where the type is {expected.str_short()}",
    )  # fmt: skip
