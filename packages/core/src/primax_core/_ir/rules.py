"""Rule kinds: the sets of rules that interpreters define."""

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
    """State of a rule of a primitive."""

    PRESENT = "present"
    FALLBACK = "from the fallback of the rule kind"
    UNSUPPORTED = "declared unsupported"
    MISSING = "missing"


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

    >>> flops = RuleKind("flops", "(in_avals, out_avals, **params) -> int")
    >>> flops
    RuleKind(flops)
    """

    __slots__ = (
        "name", "signature", "fallback", "general", "versioned", "version", "_positional",
        "_variadic", "_platforms",
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
        self.general: RuleKind[R] | None = None
        self._platforms: dict[str, RuleKind[R]] = {}
        arguments = signature[1:].split(") ->")[0].split(", ")
        self._positional = sum(1 for a in arguments if a and a[0] != "*")
        self._variadic = any(a[0] == "*" and a[:2] != "**" for a in arguments if a)

    def on(self, platform: str) -> RuleKind[R]:
        """The rule kind for one platform (``lower.on("cuda")``)."""
        kind = self._platforms.get(platform)
        if kind is None:
            kind = RuleKind(f'{self.name}.on("{platform}")', self.signature)
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


class MissingRule(NotImplementedError):
    """A primitive has no rule for an interpreter."""


class UnsupportedRule(MissingRule):
    """A rule is declared unsupported."""


# The rule kinds of the core. For a primitive with several results, read a list in place of a value.

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
    "linearize", "(primals, mask, **params) -> (outs, linear jaxpr, mask of results)"
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
    "memory_kinds", "(eqn) -> memory kinds of the results, None for the default"
)
trace_rule: Final[RuleKind[Callable[..., Any]]] = RuleKind(
    "trace_rule", "(trace, args, **params) -> outs"
)
run_jaxprs: Final[RuleKind[Callable[..., Sequence[Any] | None]]] = RuleKind(
    "run_jaxprs", "(run, args, **params) -> results, or None"
)
"""Eager evaluation of an operation with sub-jaxprs, by calls of ``run(jaxpr, args)``; ``None`` if
it must be evaluated as a whole. ``debug_nans`` searches inside such operations with it."""
