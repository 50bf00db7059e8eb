"""Primitives, rule kinds and the rules that join them."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from typing import Any

from .._base import caches
from .._base.config import state


class RuleKind:
    """What one interpreter wants to know of a primitive.

    Args:
      name: how error messages and documentation call it.
      signature: the rule's signature in words, shown when a rule is missing.
      arity: parameter names a rule must accept positionally; a starred name stands for any number.
    """

    __slots__ = ("name", "signature", "_platforms", "fallback")

    def __init__(self, name: str, signature: str, fallback: Callable | None = None):
        self.name = name
        self.signature = signature
        self.fallback = fallback
        self._platforms: dict[str, RuleKind] = {}

    def on(self, platform: str) -> RuleKind:
        """The same kind for one platform (``lower.on("cuda")``)."""
        kind = self._platforms.get(platform)
        if kind is None:
            kind = RuleKind(f'{self.name}.on("{platform}")', self.signature)
            kind = self._platforms.setdefault(platform, kind)
        return kind

    def __repr__(self):
        return f"RuleKind({self.name})"


abstract = RuleKind("abstract", "(*avals, **params) -> aval")
effects = RuleKind("effects", "(*avals, **params) -> frozenset of effects")
lower = RuleKind("lower", "(ctx, *ir_values, **params) -> ir value")
jvp = RuleKind("jvp", "(primals, tangents, **params) -> (out, tangent_out)")
linearize = RuleKind("linearize", "(primals, mask, **params) -> (outs, linear function)")
transpose = RuleKind("transpose", "(ct, *args, **params) -> cotangents")
backward = RuleKind("backward", "(cts, values, linear, avals, **params) -> cotangents")
batch = RuleKind("batch", "(axis, args, dims, **params) -> (out, out_dim)")
save = RuleKind(
    "save", "(split, eqn) -> (forward eqn, eqn that takes saved values, values) or None"
)
check = RuleKind("check", "(*avals, **params) -> None, or JaxprCheckError")
dce = RuleKind("dce", "(used_outputs, eqn) -> (used_inputs, new_eqn)")
process = RuleKind("process", "(trace, args, **params) -> outs")


class Unsupported:
    """A rule that is declared not to exist, with the reason."""

    __slots__ = ("reason",)

    def __init__(self, reason: str):
        self.reason = reason


class MissingRule(NotImplementedError):
    """A transformation met a primitive that has no rule for it."""


_all: weakref.WeakSet[Primitive] = weakref.WeakSet()


@caches.register
def _forget_all() -> None:
    for prim in list(_all):
        prim.forget()


class Primitive:
    """A named operation; what interpreters know about it is added by :meth:`rule`.

    Args:
      name: the name that jaxprs print.
      multiple_results: whether ``bind`` returns a list.
      cache_on: for primitives whose parameters hold jaxprs or functions: a function from the
        parameters to the dict in which derived programs are kept (usually a jaxpr's ``cache``),
        so that they die with it.
    """

    __slots__ = (
        "name",
        "multiple_results",
        "rules",
        "home",
        "cache_on",
        "pieces",
        "types",
        "executables",
        "__weakref__",
    )

    def __init__(self, name: str, multiple_results: bool = False, cache_on: Callable | None = None):
        self.name = name
        self.multiple_results = multiple_results
        self.cache_on = cache_on
        self.rules: dict[RuleKind, Any] = {}
        self.home = sys._getframe(1).f_globals.get("__name__", "?")
        self.pieces: dict = caches.Bounded()
        self.types: dict = caches.Bounded()
        self.executables: dict = caches.Bounded()
        _all.add(self)

    def __repr__(self):
        return self.name

    def __reduce__(self):
        raise TypeError(f"primitive {self.name} cannot be pickled")

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def bind(self, *args, **params):
        """Apply the primitive under the current trace, or eagerly if there is none."""
        trace = state.trace
        if trace is None:
            return eager(self, args, params)
        return trace.process(self, args, params)

    # Registration

    def rule(self, kind: RuleKind, *, override: bool = False) -> Callable[[Callable], Callable]:
        """Decorator that registers a function as this primitive's rule of ``kind``."""

        def register(fun: Callable) -> Callable:
            if not isinstance(kind, RuleKind):
                raise TypeError(f"expected a RuleKind, got {kind!r}")
            if not callable(fun):
                raise TypeError(f"a rule must be callable, got {fun!r}")
            if kind in self.rules and not override:
                raise ValueError(
                    f"primitive {self.name} already has a rule for {kind.name}, from "
                    f"{_where(self.rules[kind])}; pass override=True to replace it"
                )
            self.rules[kind] = fun
            self.forget()
            return fun

        return register

    def unsupported(self, kind: RuleKind, reason: str) -> None:
        """Declare that this primitive has no rule of ``kind``, and why."""
        self.rules[kind] = Unsupported(reason)
        self.forget()

    def forget(self) -> None:
        """Drop everything derived from the rules."""
        self.pieces.clear()
        self.types.clear()
        self.executables.clear()

    def require(self, kind: RuleKind, wanted_by: str = "") -> Callable:
        """The rule of ``kind``, or an error that says how to write it."""
        rule = self.rules.get(kind) or kind.fallback
        if rule is None:
            raise MissingRule(
                f"primitive {self.name} (defined in {self.home}) has no {kind.name} rule"
                f"{', which ' + wanted_by + ' needs' if wanted_by else ''}. Write one with\n"
                f"  @{self.name}_p.rule({kind.name})\n"
                f"  def _{kind.signature.split(' -> ')[0]}: ...   # returns"
                f" {kind.signature.split(' -> ')[-1]}"
            )
        if type(rule) is Unsupported:
            raise MissingRule(
                f"primitive {self.name} does not support {wanted_by or kind.name}: {rule.reason}"
            )
        return rule


def _where(rule) -> str:
    code = getattr(getattr(rule, "__wrapped__", rule), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else repr(rule)


def _no_runtime(prim, args, params):
    raise RuntimeError("no runtime is installed")


eager: Callable = _no_runtime


def install_eager(fun: Callable) -> None:
    """Called once by the runtime, which evaluates primitives when no trace is active."""
    global eager
    eager = fun
