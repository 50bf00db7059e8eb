"""Evaluation of jaxprs by rules that emit text, for any backend."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from primax_core.extend import (
    Eqn,
    Jaxpr,
    Literal,
    Primitive,
    RuleKind,
    expand,
    expanded,
    interpret,
)

from .emitter import TextEmitter
from .usage import used_variables

E = TypeVar("E", bound=TextEmitter[Any])

Rule = Callable[..., Any]
"""From a context, values and the parameters of an equation to its results."""


@dataclass(frozen=True)
class Backend(Generic[E]):
    """A compiler of kernels, by the rules that emit operations for it.

    Attributes:
      title: its name in errors.
      kind: the rule kind.
      elements: the names of dtypes that arrays may have.
      rewrites: for primitives without a rule, what to write instead.
      located: the error with a message, for a kernel and one of its equations.
      refusal: from an operation's name and the type of a result to why it cannot be, or ``None``.
    """

    title: str
    kind: RuleKind[Rule]
    elements: Mapping[str, str]
    rewrites: dict[str, str]
    located: Callable[..., Exception]
    refusal: Callable[[str, Any], str | None]

    def lower(self, emitter: E, jaxpr: Jaxpr, values: Sequence[Any]) -> list[Any]:
        """Emit a jaxpr.

        Args:
          values: values and references, one for each argument.

        Returns:
          A value for each result.

        Raises:
          NotImplementedError: for operations and types that are not supported, as `located` has it.
        """
        used = used_variables(jaxpr)

        def evaluate(eqn: Eqn, operands: Sequence[Any]) -> Sequence[Any]:
            context = Context(self, emitter, eqn, used)
            emitter.locate(eqn.source)
            self._check_types(context)
            operands = [
                self._typed(emitter, x, v) if type(v) is Literal else x
                for x, v in zip(operands, eqn.invars)
            ]
            replaced = emitter.replaced.get(id(eqn))
            if replaced is not None:
                return [replaced(*operands)]
            results: Any = self._rule_of(context)(context, *operands, **eqn.params)
            return results if isinstance(results, (list, tuple)) else [results]

        return list(interpret(jaxpr, values, evaluate, lambda x: self.constant(emitter, x)))

    def constant(self, emitter: E, x: Any) -> Any:
        """A constant of the kernel; elements of an array are equal.

        Raises:
          NotImplementedError: for an array with different elements.
        """
        array = np.asarray(x)
        flat = array.reshape(-1)
        if array.size == 0 or flat.tobytes() != flat[:1].tobytes() * flat.size:
            raise self.located(
                f"a constant array of shape {array.shape} is used: compute it with iota, or pass "
                "it as an operand",
                emitter.kernel,
            )
        if array.dtype.name not in self.elements:
            array = array.astype(np.float32 if array.dtype.kind == "f" else np.int32)
        return emitter.constant(flat[0], array.dtype, array.shape)

    def from_expansion(self, prim: Primitive) -> Rule | None:
        """The rule of a primitive with an expansion; ``None`` if it has none."""
        if not prim.applies_jaxprs and prim.find(expand) is None:
            return None

        def rule(ctx: Context[E], *values: Any, **params: Any) -> Any:
            jaxpr = expanded(prim, ctx.in_avals, params)
            if jaxpr is None:
                raise ctx.error(self._reason(prim))
            results = ctx.lower(jaxpr, values)
            return results if prim.multiple_results else results[0]

        return rule

    def _typed(self, emitter: E, x: Any, literal: Literal) -> Any:
        """A literal with the type that the jaxpr gives it."""
        dtype = np.dtype(literal.aval.dtype)
        return x if x.dtype == dtype else emitter.constant(literal.scalar, dtype, x.shape)

    def _rule_of(self, context: Context[E]) -> Rule:
        prim = context.eqn.primitive
        try:
            return prim.require(self.kind, f"the {self.title} backend")
        except NotImplementedError:  # or MissingRule, a subclass
            raise context.error(self._reason(prim)) from None

    def _reason(self, prim: Primitive) -> str:
        """The first sentence of the error for a primitive without a rule."""
        rewrite = self.rewrites.get(prim.name)
        reason = f"the operation {prim.name} has no rule for {self.title}"
        if rewrite is not None:
            return f"{reason}; {rewrite}"
        return (
            f"{reason}; compute it before or after the kernel, or add a rule with "
            f"@{prim.name}_p.rule({self.kind.name})"
        )

    def _check_types(self, context: Context[E]) -> None:
        for v in context.eqn.outvars:
            aval = v.aval
            if not hasattr(aval, "dtype") or not hasattr(aval, "shape"):
                continue
            operation = context.eqn.primitive.name
            reason = self.refusal(operation, aval)
            if reason is None and 0 in aval.shape:
                reason = (
                    f"the operation {operation} gives an array of shape {aval.shape} without "
                    "elements; leave it away"
                )
            if reason is not None:
                raise context.error(reason)


class Context(Generic[E]):
    """The argument of a rule besides the operands.

    Attributes:
      emitter: the builder of the text.
      eqn: the equation; ``None`` for accesses that belong to none.
    """

    __slots__ = ("emitter", "eqn", "_backend", "_used")

    def __init__(self, backend: Backend[E], emitter: E, eqn: Eqn | None, used: set[Any]):
        self.emitter = emitter
        self.eqn: Any = eqn
        self._backend = backend
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

    def error(self, message: str) -> Exception:
        """An error with the lines of the operation and of the kernel."""
        return self._backend.located(message, self.emitter.kernel, self.eqn)

    def lower(self, jaxpr: Jaxpr, values: Sequence[Any]) -> list[Any]:
        """Emit a jaxpr at this place."""
        return self._backend.lower(self.emitter, jaxpr, values)
