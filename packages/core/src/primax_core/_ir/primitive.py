"""Primitives: named operations and their rules."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from .._base import caches
from .._base.config import renew_keys, state
from .._base.weak_sets import members
from .rules import (
    MissingRule as MissingRule,
    R,
    RuleKind as RuleKind,
    RuleState,
    Unsupported as Unsupported,
    UnsupportedRule,
    abstract as abstract,
    batch as batch,
    check as check,
    dce as dce,
    discharge as discharge,
    effects as effects,
    expand as expand,
    jvp as jvp,
    linearize as linearize,
    location_of,
    lower as lower,
    partial_eval as partial_eval,
    trace_rule as trace_rule,
    transpose as transpose,
    transpose_direct as transpose_direct,
)

if TYPE_CHECKING:
    from .overrides import RuleOverride

_all: weakref.WeakSet[Primitive] = weakref.WeakSet()


@caches.register
def _forget_all() -> None:
    for prim in members(_all):
        prim.forget()


def known_primitives() -> list[Primitive]:
    """All existing primitives.

    Returns:
      A list, in the order of their creation. Primitives of modules that are not imported yet are
      not in it.

    Tools that compare the rules of all primitives use it. Interpreters need no list: they meet
    primitives in equations.

    >>> import primax_core.lax as lax
    >>> from primax_core.extend import known_primitives
    >>> lax.sin_p in known_primitives()
    True
    """
    return members(_all)


def calling_module(depth: int) -> str:
    """The name of the module of the function ``depth`` frames up the stack."""
    return sys._getframe(depth).f_globals.get("__name__", "?")


class Primitive:
    """A named operation. Rules for interpreters are added with :meth:`rule`.

    Args:
      name: the name that jaxprs print.
      multiple_results: ``bind`` returns a list.
      home: the module of the primitive, for errors; by default the caller's.
      cache_on: for primitives with jaxprs or functions among their parameters: a function from the
        parameters to the dict that stores derived jaxprs (usually a jaxpr's ``cache``), so that
        both are freed together.
      applies_jaxprs: the jaxprs among the parameters are applied to the operands themselves, so
        that the types of their results say the placements of the results. By default true for
        primitives with ``cache_on``; false for jaxprs that combine single elements.
      any_params: parameters may be unhashable. Jaxprs derived with unhashable parameters are not
        cached.
    """

    __slots__ = (
        "name",
        "multiple_results",
        "rules",
        "home",
        "cache_on",
        "applies_jaxprs",
        "derived",
        "types",
        "executables",
        "stored_elsewhere",
        "_replaced",
        "__weakref__",
    )

    def __init__(
        self,
        name: str,
        multiple_results: bool = False,
        cache_on: Callable[..., dict[Any, Any]] | None = None,
        home: str | None = None,
        any_params: bool = False,
        applies_jaxprs: bool | None = None,
    ):
        self.name: str = name
        self.multiple_results: bool = multiple_results
        self.cache_on: Callable[..., dict[Any, Any]] | None = cache_on
        self.applies_jaxprs: bool = (
            cache_on is not None if applies_jaxprs is None else applies_jaxprs
        )
        self.rules: dict[RuleKind[Any], Any] = {}
        self._replaced: dict[RuleKind[Any], list[Any]] = {}
        self.home: str = home or calling_module(2)
        cache = caches.Lenient if any_params else caches.Bounded
        self.derived: dict[Any, Any] = cache()
        self.types: dict[Any, Any] = cache()
        self.executables: dict[Any, Any] = cache()
        self.stored_elsewhere: bool = False  # something derived is in a dict of ``cache_on``
        _all.add(self)

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"primitive {self.name} cannot be pickled")

    def __copy__(self) -> Primitive:
        return self

    def __deepcopy__(self, memo: Any) -> Primitive:
        return self

    def bind(self, *args: Any, **params: Any) -> Any:
        """Apply the primitive under the current trace, or eagerly if there is none."""
        trace = state.trace
        if trace is None:
            return eager(self, args, params)
        return trace.process(self, args, params)

    # Registration

    def rule(self, kind: RuleKind[R], *, override: bool = False) -> Callable[[R], R]:
        """Decorator that registers a function as this primitive's rule of a rule kind.

        Raises:
          TypeError: if the function does not fit the signature of the rule kind.
          ValueError: if a rule exists and ``override`` is false.
        """
        if not isinstance(kind, RuleKind):
            raise TypeError(f"expected a RuleKind, got {kind!r}")

        def register(fun: R) -> R:
            kind.check(fun)
            self._set(kind, fun, override)
            return fun

        return register

    def unsupported(self, kind: RuleKind[Any], reason: str, *, override: bool = False) -> None:
        """Declare that this primitive has no rule of a rule kind, with the reason."""
        self._set(kind, Unsupported(reason), override)

    def override(self, kind: RuleKind[R], rule: R) -> RuleOverride:
        """Replace the rule of a rule kind until the override is taken back.

        Overrides of one rule may be nested, and taken back in any order.

        Returns:
          A context manager; ``undo()`` takes the override back without one.

        Raises:
          TypeError: if the function does not fit the signature of the rule kind.

        >>> from primax_core import lax
        >>> from primax_core.extend import lower
        >>> def noisy(ctx, x, **params):
        ...     print("lowering sin")
        ...     (before, *_) = lax.sin_p.rules_before(lower, noisy)
        ...     return before(ctx, x, **params)
        >>> with lax.sin_p.override(lower, noisy):
        ...     _ = lax.sin(3.0)
        lowering sin
        """
        from .overrides import RuleOverride

        kind.check(rule)
        return RuleOverride(self, kind, rule)

    def rules_before(self, kind: RuleKind[R], rule: R | None = None) -> list[R]:
        """The rules that a rule replaced, the last first.

        A rule that replaces another can call it to do what the primitive did before. A rule of one
        platform, ``lower.on("cpu")``, replaces the general one.

        Args:
          rule: the rule in question, by default the present one.

        Raises:
          ValueError: ``rule`` is not a rule of this kind, or was taken back.
        """
        rules = [*self._replaced.get(kind, ()), self.rules.get(kind)]
        if rule is not None:
            if rule not in rules:
                raise ValueError(
                    f"{location_of(rule)} is no {kind.name} rule of primitive {self.name}"
                )
            del rules[rules.index(rule) + 1 :]
        before = rules[-2::-1]
        if kind.general is not None:
            before += [self.rules.get(kind.general), *self.rules_before(kind.general)]
        return [r for r in before if r is not None and type(r) is not Unsupported]

    def all_rules(self, kind: RuleKind[R]) -> list[R]:
        """The rule of a rule kind, and those that it replaced."""
        rules = [*self._replaced.get(kind, ()), self.rules.get(kind)]
        return [r for r in rules if r is not None and type(r) is not Unsupported]

    def _set(self, kind: RuleKind[Any], rule: Any, override: bool) -> None:
        existing = self.rules.get(kind)
        if existing is not None and not override:
            what = "is declared not to have" if type(existing) is Unsupported else "already has"
            where = "" if type(existing) is Unsupported else f", from {location_of(existing)}"
            raise ValueError(
                f"primitive {self.name} {what} a rule for {kind.name}{where}; pass override=True "
                "to replace it"
            )
        if existing is not None:
            self._replaced.setdefault(kind, []).append(existing)
        self.rules[kind] = rule
        self._changed(kind, existing is not None)

    def _changed(self, kind: RuleKind[Any], replaced: bool) -> None:
        kind.version += 1
        if kind.versioned:
            return
        if replaced or self.stored_elsewhere or self.derived or self.types or self.executables:
            caches.clear_all()
            renew_keys()

    def forget(self) -> None:
        """Clear the caches of everything derived from the rules."""
        self.derived.clear()
        self.types.clear()
        self.executables.clear()
        self.stored_elsewhere = False

    # Lookup

    def find(self, kind: RuleKind[R]) -> R | None:
        """The rule of a rule kind, if needed from the kind's fallback; ``None`` if there is
        none.
        """
        rule = self.rules.get(kind)
        if rule is None:
            return None if kind.fallback is None else kind.fallback(self)
        return None if type(rule) is Unsupported else rule

    def state_of(self, kind: RuleKind[Any]) -> RuleState:
        """State of the rule of a rule kind: present, from a fallback, unsupported or missing."""
        rule = self.rules.get(kind)
        if type(rule) is Unsupported:
            return RuleState.UNSUPPORTED
        if rule is not None:
            return RuleState.PRESENT
        return RuleState.MISSING if self.find(kind) is None else RuleState.FALLBACK

    def require(self, kind: RuleKind[R], needed_by: str = "") -> R:
        """The rule of a rule kind.

        Raises:
          MissingRule: with a template of the rule, or the reason why it is declared unsupported.
        """
        rule = self.find(kind)
        if rule is not None:
            return rule
        declared = self.rules.get(kind)
        if declared is not None:
            raise UnsupportedRule(
                f"primitive {self.name} does not support {needed_by or kind.name}: "
                f"{declared.reason}"
            )
        function = kind.name.replace('.on("', "_").removesuffix('")')
        arguments, _, result = kind.signature.partition(" -> ")
        raise MissingRule(
            f"primitive {self.name} (defined in {self.home}) has no {kind.name} rule"
            f"{', which ' + needed_by + ' needs' if needed_by else ''}. Write one with\n"
            f"  @{self.name}_p.rule({kind.name})\n"
            f"  def _{function}{arguments}: ...   # returns {result}"
        )


def _no_runtime(prim, args, params):
    raise RuntimeError("no runtime is installed")


eager: Callable[..., Any] = _no_runtime


def install_eager(fun: Callable[..., Any]) -> None:
    """Install the function that evaluates primitives while no trace is active; called once."""
    global eager
    eager = fun
