"""Rule kinds: the sets of rules that interpreters define."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from .._base.errors import ErrorWithPage

if TYPE_CHECKING:
    from .avals import ShapedArray
    from .primitive import Primitive
    from .ref_types import AbstractRef

R = TypeVar("R", bound=Callable[..., Any])


class RuleState(Enum):
    """State of a rule of a primitive."""

    PRESENT = "present"
    FALLBACK = "from the fallback of the rule kind"
    UNSUPPORTED = "declared unsupported"
    MISSING = "missing"


class _Documentation:
    """The docstring of a class, and of an instance its own, which ``help`` shows."""

    def __init__(self, text: str | None) -> None:
        self.text = text

    def __get__(self, kind: RuleKind[Any] | None, owner: type) -> str | None:
        return self.text if kind is None else kind.documentation()


class RuleKind(Generic[R]):
    """The set of rules of one interpreter.

    An interpreter begins by declaring a rule kind. Any package can then add rules of the kind to
    any primitive. ``RuleKind[Callable[..., T]]`` declares the return type of the rules to type
    checkers.

    Args:
      name: the name in errors and documentation.
      signature: the call signature of rules, ``"(axis, args, dims, **params) -> (out, out_dim)"``.
        It is checked at registration: a rule must accept the plain names as positional arguments,
        and more of them only if the signature has ``*name``.
      fallback: from a primitive without a rule to a rule, or to ``None``.
      versioned: the keys of jaxprs derived with rules of the kind include ``kind.version``, so that
        adding a rule later does not clear other caches.
      doc: arguments and result of rules, shown by ``help(kind)``.

    >>> flops = RuleKind("flops", "(in_avals, out_avals, **params) -> int")
    >>> flops
    RuleKind(flops)
    """

    __doc__: Any = _Documentation(__doc__)

    __slots__ = (
        "name", "signature", "fallback", "general", "versioned", "version", "doc", "_positional",
        "_variadic", "_platforms",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        signature: str,
        fallback: Callable[[Primitive], R | None] | None = None,
        versioned: bool = False,
        doc: str = "",
    ):
        self.doc: str = doc
        self.name: str = name
        self.versioned: bool = versioned
        self.version: int = 0
        self.signature: str = signature
        self.fallback: Callable[[Primitive], R | None] | None = fallback
        self.general: RuleKind[R] | None = None
        self._platforms: dict[str, RuleKind[R]] = {}
        arguments = signature[1:].split(") ->")[0].split(", ")
        self._positional = sum(1 for a in arguments if a and a[0] != "*")
        self._variadic = any(a[0] == "*" and a[:2] != "**" for a in arguments if a)

    def on(self, platform: str) -> RuleKind[R]:
        """The rule kind for one platform (``lower.on("cuda")``)."""
        kind = self._platforms.get(platform)
        if kind is None:
            kind = RuleKind(f'{self.name}.on("{platform}")', self.signature, doc=self.doc)
            kind.general = self
            kind = self._platforms.setdefault(platform, kind)
        return kind

    def falls_back(
        self, fallback: Callable[[Primitive], R | None], *, override: bool = False
    ) -> Callable[[Primitive], R | None]:
        """Decorator that sets the fallback of the rule kind.

        Raises:
          ValueError: if the kind has a fallback, which other primitives rely on, and ``override``
            is false.
        """
        if self.fallback is not None and not override:
            raise ValueError(
                f"the rule kind {self.name} has a fallback, from {location_of(self.fallback)}, "
                "which all primitives without a rule use; pass override=True to replace it"
            )
        self.fallback = fallback
        return fallback

    def check(self, rule: Any) -> None:
        """Raise an error for a rule that does not fit the signature.

        Raises:
          TypeError: with the rule and the signature.
        """
        if not callable(rule):
            raise TypeError(f"a rule must be callable, got {rule!r}")
        least, most = _positional_range(rule)
        n = self._positional
        if least > n and not self._variadic or most < n:
            raise TypeError(
                f"{self.name} rules are called as {self.signature}, but the rule defined at "
                f"{location_of(rule)} takes {_shown(least, most)} by position"
            )

    def documentation(self) -> str:
        """The signature of rules, their arguments and result, and the way to register one."""
        lines = [f"Rule kind {self.name}: {self.signature}", ""]
        if self.doc:
            lines += [inspect.cleandoc(self.doc), ""]
        lines.append(f"Register a rule with @primitive.rule({self.name}).")
        if self.fallback is not None:
            lines.append(f"Primitives without one use the fallback, {location_of(self.fallback)}.")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"RuleKind({self.name})"


def _positional_range(rule: Any) -> tuple[int, float]:
    """The least and the greatest number of positional arguments of a function."""
    code = getattr(rule, "__code__", None)
    if code is not None and not hasattr(rule, "__wrapped__"):
        bound = 1 if getattr(rule, "__self__", None) is not None else 0
        count = code.co_argcount - bound
        most = float("inf") if code.co_flags & inspect.CO_VARARGS else count
        return count - len(rule.__defaults__ or ()), most
    try:
        parameters = list(inspect.signature(rule).parameters.values())
    except (TypeError, ValueError):
        return 0, float("inf")
    plain = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    least = sum(1 for p in plain if p.default is p.empty)
    return least, float("inf") if any(p.kind is p.VAR_POSITIONAL for p in parameters) else len(
        plain
    )


def _shown(least: int, most: float) -> str:
    if most == float("inf"):
        return f"{least} or more arguments"
    return f"{most} argument{'' if most == 1 else 's'}"


def location_of(rule: Any) -> str:
    """``file:line`` of a rule."""
    code = getattr(getattr(rule, "__wrapped__", rule), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else repr(rule)


class Unsupported:
    """A rule that is declared unsupported, with the reason."""

    __slots__ = ("reason",)

    def __init__(self, reason: str):
        self.reason: str = reason


class MissingRule(ErrorWithPage, NotImplementedError, page=True):
    """A primitive has no rule for an interpreter."""


class UnsupportedRule(MissingRule):
    """A rule is declared unsupported."""


# The rule kinds of the core. For a primitive with several results, read a list in place of a value.

Types = Callable[..., "ShapedArray | AbstractRef | Sequence[ShapedArray | AbstractRef]"]

abstract: Final[RuleKind[Types]] = RuleKind(
    "abstract",
    "(*avals, **params) -> aval",
    doc="""The type of the result, from those of the operands. Invalid operands and parameters raise
    here.

    avals: a ``ShapedArray`` for each operand, or another aval for references.
    Returns an aval; a list of avals if the primitive has ``multiple_results``.
    """,
)
place: Final[RuleKind[Callable[..., tuple[Any, ...]]]] = RuleKind(
    "place",
    "(abstract, in_avals, params) -> (out avals, casts or None)",
    doc="""The types of the results with their placements (``ShapedArray.placement``), in place of
    the installed inference. It is asked for unplaced operands too.

    abstract: from the types of the operands to a list of types of the results, without placements.
    in_avals: a list of the types of the operands.
    params: a dict of the parameters.
    Returns a list of types; and for each operand a function that it passes before the operation
    (or ``None``), or ``None`` for all.
    """,
)
effects: Final[RuleKind[Callable[..., frozenset[Any]]]] = RuleKind(
    "effects",
    "(*avals, **params) -> frozenset of effects",
    doc="""The side effects of an operation.

    avals: the types of the operands.
    Returns a frozenset of instances of subclasses of ``Effect``.
    """,
)
expand: Final[RuleKind[Callable[..., Any]]] = RuleKind(
    "expand",
    "(*args, **params) -> out",
    doc="""The result, computed with other primitives. Every other rule can be derived from it.

    args: tracers.
    Returns the result; a list if the primitive has ``multiple_results``.
    """,
)
lower: Final[RuleKind[Callable[..., Any]]] = RuleKind(
    "lower",
    "(ctx, *ir_values, **params) -> ir value",
    doc="""The StableHLO operations of a primitive.

    ctx: ``in_avals``, ``out_avals``, ``platform``, ``eqn``; ``call(fun, *values)`` lowers a
      function.
    ir_values: an MLIR value for each operand.
    Returns an MLIR value; a list if the primitive has ``multiple_results``.
    """,
)
jvp: Final[RuleKind[Callable[..., tuple[Any, ...]]]] = RuleKind(
    "jvp",
    "(primals, tangents, **params) -> (out, tangent_out)",
    doc="""The result and its derivative in a direction. Must be linear in the tangents.

    primals: tracers, one for each operand.
    tangents: one for each operand: a tracer of the operand's shape, or ``Zero``.
    Returns the result and its tangent, an array or ``Zero``; two lists if the primitive has
    ``multiple_results``.
    """,
)
linearize: Final[RuleKind[Callable[..., tuple[Any, ...]]]] = RuleKind(
    "linearize",
    "(primals, mask, **params) -> (outs, linear jaxpr, mask of results)",
    doc="""The results and their derivative as a jaxpr, instead of a jvp rule in reverse mode.

    primals: tracers, one for each operand.
    mask: the operands with a tangent, a tuple of Booleans.
    Returns a list of results; a jaxpr from the tangents of the marked operands to those of the
    marked results, whose constants are the residuals; and the mask of these results.
    """,
)
transpose: Final[RuleKind[Callable[..., Sequence[Any]]]] = RuleKind(
    "transpose",
    "(ct, *args, **params) -> cotangents",
    doc="""The cotangents of operands in which the primitive is linear.

    ct: the cotangent of the result, or ``Zero``; a list if the primitive has
      ``multiple_results``.
    args: ``Linear(aval)`` for linear operands, tracers for the others.
    Returns a list with a cotangent (or ``Zero``) for each linear operand and ``None`` for the
    others.
    """,
)
transpose_direct: Final[RuleKind[Callable[..., Sequence[Any]]]] = RuleKind(
    "transpose_direct",
    "(cts, values, linear, avals, **params) -> cotangents",
    doc="""Like transpose, but computed under the current trace, for call primitives and references.

    cts: a list of cotangents.
    values: one for each operand; those of linear operands are not read.
    linear: the mask of linear operands.
    avals: the types of the operands.
    Returns a list of cotangents, one for each operand.
    """,
)
batch: Final[RuleKind[Callable[..., tuple[Any, ...]]]] = RuleKind(
    "batch",
    "(axis, args, dims, **params) -> (out, out_dim)",
    doc="""The operation on a batch of operands.

    axis: the mapped ``Axis``, with ``size`` and ``name``.
    args: tracers, one for each operand; batches have one more axis than an example.
    dims: the mapped axis of each operand, ``None`` for operands that are equal for all examples.
    Returns the batch of results and its mapped axis, from 0 up, or ``None``; two lists if the
    primitive has ``multiple_results``.
    """,
)
partial_eval: Final[RuleKind[Callable[..., Any]]] = RuleKind(
    "partial_eval",
    "(split, eqn) -> (forward eqn, eqn that takes saved values, values) or None",
    doc="""The parts of an equation for a ``checkpoint`` policy: before and after the saved values.

    split: the policy applied to the equations inside.
    eqn: the equation.
    Returns the equation of the forward pass, the equation that takes saved values, and these
    values; ``None`` to keep the equation whole.
    """,
)
check: Final[RuleKind[Callable[..., None]]] = RuleKind(
    "check",
    "(*avals, **params) -> None, or JaxprCheckError",
    doc="""A check of an equation by ``check_jaxpr``, beyond its types.

    avals: the types of the operands.
    Raises ``JaxprCheckError``.
    """,
)
dce: Final[RuleKind[Callable[..., tuple[Any, ...]]]] = RuleKind(
    "dce",
    "(used_outputs, eqn) -> (used_inputs, new_eqn)",
    doc="""The part of an equation that computes the used results.

    used_outputs: the mask of used results.
    eqn: the equation.
    Returns the mask of operands that are still read, and the new equation, or ``None`` if nothing
    is left.
    """,
)
discharge: Final[RuleKind[Callable[..., tuple[Any, ...]]]] = RuleKind(
    "discharge",
    "(refs, args, **params) -> (outs, new values)",
    versioned=True,
    doc="""The operation on the contents of references.

    refs: for each operand ``None``, or a number for a reference, equal for equal references.
    args: values of operands; for references their contents.
    Returns the results, and for each operand the new contents, or ``None``.
    """,
)
memory_kinds: Final[RuleKind[Callable[..., Sequence[str | None]]]] = RuleKind(
    "memory_kinds",
    "(eqn) -> memory kinds of the results, None for the default",
    doc="""The memory kinds of the results.

    eqn: the equation.
    Returns a list, ``None`` for the default.
    """,
)
devices: Final[RuleKind[Callable[..., Any]]] = RuleKind(
    "devices",
    "(eqn) -> a sharding over the devices of the operation, or None",
    doc="""The devices on which the operation runs, if its parameters name them.

    eqn: the equation.
    Returns a ``Sharding`` with the whole array on each of the devices, or ``None``.
    """,
)
partition: Final[RuleKind[Callable[..., Any]]] = RuleKind(
    "partition",
    "(eqn, everywhere) -> Partitioning",
    doc="""The division over several devices, outside of manual regions, in place of ``lower``.

    eqn: the equation.
    everywhere: the sharding with the whole array on each device of the executable.
    Returns an ``extend.lowering.Partitioning``.
    """,
)
trace_rule: Final[RuleKind[Callable[..., Any]]] = RuleKind(
    "trace_rule",
    "(trace, args, **params) -> outs",
    doc="""Evaluation under any trace, in place of the operation of the trace.

    trace: the current trace.
    args: arrays and tracers.
    Returns the result; a list if the primitive has ``multiple_results``.
    """,
)
run_jaxprs: Final[RuleKind[Callable[..., Sequence[Any] | None]]] = RuleKind(
    "run_jaxprs",
    "(run, args, **params) -> results, or None",
    doc="""Eager evaluation of an operation with sub-jaxprs. ``debug_nans`` searches inside with it.

    run: ``run(jaxpr, args)`` evaluates a sub-jaxpr and returns a list of results.
    args: arrays.
    Returns a list of results; ``None`` if the operation must be evaluated as a whole.
    """,
)
extended_body: Final[RuleKind[Callable[..., tuple[Sequence[Any], Sequence[Any]]]]] = RuleKind(
    "extended_body",
    "(change, args, **params) -> (outs, more)",
    doc="""Application of an operation over the positions of a mesh, with more results of its body.

    change: from the jaxpr of the body to one with further results.
    args: arrays and tracers.
    Returns the results, and the further ones with a leading axis over the positions.
    """,
)
