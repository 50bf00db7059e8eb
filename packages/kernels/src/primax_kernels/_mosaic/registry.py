"""The rule kind ``mosaic``, and the evaluation of jaxprs by its rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from primax_core.extend import (
    Eqn,
    Jaxpr,
    Literal,
    MissingRule,
    Primitive,
    RuleKind,
    expand,
    expanded,
    interpret,
)

from .._emission.usage import used_variables
from . import types
from .emitter import Emitter
from .errors import MosaicError, located
from .values import Value

mosaic: Final[RuleKind[Callable[..., Any]]] = RuleKind(
    "mosaic",
    "(ctx, *values, **params) -> values",
    versioned=True,
    doc="""The operation in a kernel that Mosaic compiles for TPUs.

    ctx: a `Context`, with the emitter of operations.
    values: a `Value` for each operand, or an object with ``read`` and ``write`` for references.

    Returns a `Value`, or a sequence of them if the primitive has several results.""",
)
"""Rules that emit operations of Mosaic's dialects."""


class Context:
    """The argument of a rule besides the operands.

    Attributes:
      emitter: the builder of the text.
      eqn: the equation; ``None`` for accesses that belong to none.
    """

    __slots__ = ("emitter", "eqn", "_used")

    def __init__(self, emitter: Emitter, eqn: Eqn | None, used: set[Any]):
        self.emitter = emitter
        self.eqn: Any = eqn
        self._used = used

    @property
    def out_aval(self) -> Any:
        """Type of the first result."""
        return self.eqn.outvars[0].aval

    @property
    def in_avals(self) -> list[Any]:
        """Types of the operands."""
        return [v.aval for v in self.eqn.invars]

    def is_used(self, result: int = 0) -> bool:
        """Return True if a result is used."""
        return self.eqn.outvars[result] in self._used

    def error(self, message: str) -> MosaicError:
        """An error with the lines of the operation and of the kernel."""
        return located(message, self.emitter.kernel, self.eqn)

    def lower(self, jaxpr: Jaxpr, values: Sequence[Any]) -> list[Any]:
        """Emit a jaxpr at this place."""
        return lower_jaxpr(self.emitter, jaxpr, values)


def lower_jaxpr(emitter: Emitter, jaxpr: Jaxpr, values: Sequence[Any]) -> list[Any]:
    """Emit a jaxpr.

    Args:
      values: values and references, one for each argument.

    Returns:
      A value for each result.

    Raises:
      MosaicError: for operations and types that are not supported.
    """
    used = used_variables(jaxpr)

    def evaluate(eqn: Eqn, operands: Sequence[Any]) -> Sequence[Any]:
        context = Context(emitter, eqn, used)
        _check_types(context)
        operands = [
            _typed(emitter, x, v) if type(v) is Literal else x for x, v in zip(operands, eqn.invars)
        ]
        replaced = emitter.replaced.get(id(eqn))
        if replaced is not None:
            return [replaced(*operands)]
        results: Any = rule_of(context)(context, *operands, **eqn.params)
        return results if isinstance(results, (list, tuple)) else [results]

    def constant(x: Any) -> Any:
        return constant_value(emitter, x)

    return list(interpret(jaxpr, values, evaluate, constant))


def constant_value(emitter: Emitter, x: Any) -> Value:
    """A constant of the kernel; elements of an array are equal.

    Raises:
      MosaicError: for an array with different elements.
    """
    array = np.asarray(x)
    flat = array.reshape(-1)
    if array.size == 0 or not (flat == flat[0]).all():
        raise located(
            f"a constant array of shape {array.shape} is used: compute it with iota, or pass it as "
            "an operand",
            emitter.kernel,
        )
    if array.dtype.name not in types.ELEMENTS:
        array = array.astype(np.float32 if array.dtype.kind == "f" else np.int32)
    return emitter.constant(flat[0], array.dtype, array.shape)


def _typed(emitter: Emitter, x: Value, literal: Literal) -> Value:
    """A literal with the type that the jaxpr gives it."""
    dtype = np.dtype(literal.aval.dtype)
    return x if x.dtype == dtype else emitter.constant(literal.scalar, dtype, x.shape)


def rule_of(context: Context) -> Callable[..., Any]:
    """The rule of an equation.

    Raises:
      MosaicError: if there is none.
    """
    prim = context.eqn.primitive
    try:
        return prim.require(mosaic, "the Mosaic backend")
    except MissingRule:
        raise context.error(reason_of(prim)) from None


REWRITES: Final[dict[str, str]] = {}
"""For primitives without a rule, what to write instead."""


def reason_of(prim: Primitive) -> str:
    """The first sentence of the error for a primitive without a rule."""
    rewrite = REWRITES.get(prim.name)
    said = f"the operation {prim.name} has no rule for Mosaic"
    if rewrite is not None:
        return f"{said}; {rewrite}"
    return (
        f"{said}; compute it before or after the kernel, or add a rule with "
        f"@{prim.name}_p.rule(mosaic)"
    )


def _check_types(context: Context) -> None:
    """Check that all results fit into vectors."""
    for v in context.eqn.outvars:
        aval = v.aval
        if not hasattr(aval, "dtype") or not hasattr(aval, "shape"):
            continue
        try:
            types.element(aval.dtype)
        except MosaicError as error:
            raise context.error(str(error)) from None
        if 0 in aval.shape:
            raise context.error(
                f"the operation {context.eqn.primitive.name} gives an array of shape {aval.shape} "
                "without elements; leave it away"
            )


@mosaic.falls_back
def _from_expansion(prim: Primitive) -> Callable[..., Any] | None:
    """The rule of a primitive with an expansion."""
    if not prim.applies_jaxprs and prim.find(expand) is None:
        return None

    def rule(ctx: Context, *values: Any, **params: Any) -> Any:
        jaxpr = expanded(prim, ctx.in_avals, params)
        if jaxpr is None:
            raise ctx.error(reason_of(prim))
        results = ctx.lower(jaxpr, values)
        return results if prim.multiple_results else results[0]

    return rule
