"""Kinds of rules: what an interpreter wants to know of each primitive."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

if TYPE_CHECKING:
    from .avals import ShapedArray
    from .primitive import Primitive
    from .ref_types import AbstractRef

R = TypeVar("R", bound=Callable[..., Any])


class RuleState(Enum):
    """What is known of a rule: whether it exists, and if not, whether it could."""

    PRESENT = "present"
    FALLBACK = "given by the kind's fallback"
    UNSUPPORTED = "declared unsupported"
    MISSING = "missing"


class RuleKind(Generic[R]):
    """One interpreter's question to every primitive.

    Declaring a kind is how an interpreter begins: rules of the kind can then be added to any
    primitive, whoever owns it. ``RuleKind[Callable[..., T]]`` tells type checkers what rules
    return.

    Args:
      name: how errors and documentation call it.
      signature: how rules are called, ``"(axis, args, dims, **params) -> (out, out_dim)"``. Rules
        are held to it when they are registered: each must take the plain names by position, and
        only a signature with ``*name`` allows more of them.
      fallback: asked for a rule where a primitive has none: a function from the primitive to a
        rule, or to ``None``.
      versioned: programs that are derived with the kind's rules have ``kind.version`` in their
        keys, so a rule that is added later makes nothing else be forgotten.

    >>> flops = RuleKind("flops", "(in_avals, out_avals, **params) -> int")
    >>> flops
    RuleKind(flops)
    """

    __slots__ = (
        "name", "signature", "fallback", "home", "versioned", "version", "_positional", "_variadic",
        "_platforms",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        signature: str,
        fallback: Callable[[Primitive], R | None] | None = None,
        versioned: bool = False,
    ):
        self.name: str = name
        self.versioned: bool = versioned
        self.version: int = 0
        self.signature: str = signature
        self.fallback: Callable[[Primitive], R | None] | None = fallback
        self._platforms: dict[str, RuleKind[R]] = {}
        arguments = signature[1:].split(") ->")[0].split(", ")
        self._positional = sum(1 for a in arguments if a and a[0] != "*")
        self._variadic = any(a[0] == "*" and a[:2] != "**" for a in arguments if a)

    def on(self, platform: str) -> RuleKind[R]:
        """The same kind for one platform (``lower.on("cuda")``)."""
        kind = self._platforms.get(platform)
        if kind is None:
            kind = RuleKind(f'{self.name}.on("{platform}")', self.signature)
            kind = self._platforms.setdefault(platform, kind)
        return kind

    def falls_back(
        self, fallback: Callable[[Primitive], R | None]
    ) -> Callable[[Primitive], R | None]:
        """Decorator that sets the kind's fallback."""
        self.fallback = fallback
        return fallback

    def check(self, rule: Any) -> None:
        """Refuse what cannot be called as the signature says.

        Raises:
          TypeError: naming the rule and the signature.
        """
        if not callable(rule):
            raise TypeError(f"a rule must be callable, got {rule!r}")
        least, most = _positional_range(rule)
        n = self._positional
        if least > n and not self._variadic or most < n:
            raise TypeError(
                f"{self.name} rules are called as {self.signature}, but the rule defined at "
                f"{place_of(rule)} takes {_shown(least, most)} by position"
            )

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


def place_of(rule: Any) -> str:
    """``file:line`` of a rule."""
    code = getattr(getattr(rule, "__wrapped__", rule), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else repr(rule)


class Unsupported:
    """Stands for a rule that is declared not to exist, with the reason."""

    __slots__ = ("reason",)

    def __init__(self, reason: str):
        self.reason: str = reason


class MissingRule(NotImplementedError):
    """An interpreter met a primitive that has no rule for it."""


class UnsupportedRule(MissingRule):
    """The rule is declared not to exist."""


# The core's kinds. A list stands wherever a primitive has several results.

Types = Callable[..., "ShapedArray | AbstractRef | Sequence[ShapedArray | AbstractRef]"]

abstract: Final[RuleKind[Types]] = RuleKind("abstract", "(*avals, **params) -> aval")
effects: Final[RuleKind[Callable[..., frozenset[Any]]]] = RuleKind(
    "effects", "(*avals, **params) -> frozenset of effects"
)
expand: Final[RuleKind[Callable[..., Any]]] = RuleKind("expand", "(*args, **params) -> out")
lower: Final[RuleKind[Callable[..., Any]]] = RuleKind(
    "lower", "(ctx, *ir_values, **params) -> ir value"
)
jvp: Final[RuleKind[Callable[..., tuple[Any, ...]]]] = RuleKind(
    "jvp", "(primals, tangents, **params) -> (out, tangent_out)"
)
linearize: Final[RuleKind[Callable[..., tuple[Any, ...]]]] = RuleKind(
    "linearize", "(primals, mask, **params) -> (outs, linear program, mask of results)"
)
transpose: Final[RuleKind[Callable[..., Sequence[Any]]]] = RuleKind(
    "transpose", "(ct, *args, **params) -> cotangents"
)
transpose_direct: Final[RuleKind[Callable[..., Sequence[Any]]]] = RuleKind(
    "transpose_direct", "(cts, values, linear, avals, **params) -> cotangents"
)
batch: Final[RuleKind[Callable[..., tuple[Any, ...]]]] = RuleKind(
    "batch", "(axis, args, dims, **params) -> (out, out_dim)"
)
partial_eval: Final[RuleKind[Callable[..., Any]]] = RuleKind(
    "partial_eval", "(split, eqn) -> (forward eqn, eqn that takes saved values, values) or None"
)
check: Final[RuleKind[Callable[..., None]]] = RuleKind(
    "check", "(*avals, **params) -> None, or JaxprCheckError"
)
dce: Final[RuleKind[Callable[..., tuple[Any, ...]]]] = RuleKind(
    "dce", "(used_outputs, eqn) -> (used_inputs, new_eqn)"
)
discharge: Final[RuleKind[Callable[..., tuple[Any, ...]]]] = RuleKind(
    "discharge", "(refs, args, **params) -> (outs, new values)", versioned=True
)
memory_kinds: Final[RuleKind[Callable[..., Sequence[str | None]]]] = RuleKind(
    "memory_kinds", "(eqn) -> kinds of memory of the results, None for the usual one"
)
trace_rule: Final[RuleKind[Callable[..., Any]]] = RuleKind(
    "trace_rule", "(trace, args, **params) -> outs"
)
run_jaxprs: Final[RuleKind[Callable[..., Sequence[Any] | None]]] = RuleKind(
    "run_jaxprs", "(run, args, **params) -> results, or None"
)
"""Eager evaluation of an operation that holds jaxprs, by calls ``run(jaxpr, args)``; ``None`` if it
has to be evaluated as a whole. ``debug_nans`` looks inside such operations by it."""
