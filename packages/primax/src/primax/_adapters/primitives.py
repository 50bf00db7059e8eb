"""Primitives in the reference's convention: ``Primitive(name)``, then ``def_impl`` and so on.

These definitions become rules of the core's kinds, so the primitive works in jaxprs and under every
transformation. Its rules run at each application, because code written for the reference may read
concrete values in them, use parameters that are not hashable, and rely on being called.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final, TypeVar

import primax_core.extend as core
from primax_core.extend.runtime import as_operand
from primax_core.extend.traces import Trace, Tracer, bind_directly, current_trace

from . import binding as binding  # adds methods to the core's primitives

F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")

_WAYS: Final = {
    "abstract": "{p}.def_abstract_eval(function of types)",
    "batch": "batching.primitive_batchers[{p}] = rule",
    "jvp": "ad.primitive_jvps[{p}] = rule",
    "lower": "mlir.register_lowering({p}, rule)",
    "transpose": "ad.primitive_transposes[{p}] = rule",
}
"""How a missing rule is defined in the reference's convention, by the name of its kind."""


class _AnyPrimitive(type):
    """Metaclass that makes the core's primitives pass ``isinstance``."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if cls is Primitive:
            return isinstance(instance, core.Primitive)
        return type.__instancecheck__(cls, instance)


class Primitive(core.Primitive, metaclass=_AnyPrimitive):
    """Named operation, defined in the reference's style.

    Args:
      name: the name printed in jaxprs.

    Attributes:
      multiple_results: whether ``bind`` returns a list; set it after creating the primitive.
      impl: the argument of :meth:`def_impl`.

    Define rules with :meth:`def_impl`, :meth:`def_abstract_eval`, the tables of
    ``interpreters.ad``, ``batching`` and ``mlir``, or the core's decorator ``@prim.rule(kind)``.
    A subclass can define ``impl``, ``abstract_eval``, which returns the type and the effects, and
    ``multiple_results`` as a class attribute.
    """

    call_primitive: bool = False
    map_primitive: bool = False
    ref_primitive: bool = False
    skip_canonicalization: bool = False

    def __init__(self, name: str) -> None:
        home = sys._getframe(1).f_globals.get("__name__", "?")
        cls = type(self)
        multiple_results = cls.multiple_results is True  # otherwise the slot of the core's class
        super().__init__(name, multiple_results, home=home, any_params=True)
        self._impl: Callable[..., Any] | None = None
        if cls.abstract_eval is not Primitive.abstract_eval:
            self.def_effectful_abstract_eval(self.abstract_eval)

    # Definitions

    def def_impl(self, impl: F) -> F:
        """Define the eager implementation: ``impl(*arrays, **params)``."""
        self._impl = impl
        return impl

    def def_abstract_eval(self, abstract_eval: F) -> F:
        """Define the abstract rule: ``abstract_eval(*avals, **params)``.

        It returns the result's type, or a list of types.
        """
        self.rule(core.abstract, override=True)(abstract_eval)
        if core.effects in self.rules:
            self.rule(core.effects, override=True)(lambda *avals, **params: frozenset())
        return abstract_eval

    def def_effectful_abstract_eval(self, abstract_eval: F) -> F:
        """Define the abstract rule of an operation with effects: it returns the type and the
        effects.
        """

        def types(*avals: Any, **params: Any) -> Any:
            return abstract_eval(*avals, **params)[0]

        def effects(*avals: Any, **params: Any) -> frozenset[Any]:
            return frozenset(abstract_eval(*avals, **params)[1])

        self.rule(core.abstract, override=True)(types)
        self.rule(core.effects, override=True)(effects)
        return abstract_eval

    def def_bind_with_trace(self, bind_with_trace: F) -> F:
        """Define the trace rule: ``bind_with_trace(trace, args, params)``.

        It applies to all traces; the trace is ``None`` for eager evaluation.
        """

        def process(trace: Trace | None, args: tuple[Any, ...], **params: Any) -> Any:
            return bind_with_trace(trace, args, params)

        self.rule(core.trace_rule, override=True)(process)
        return bind_with_trace

    # Application

    def require(self, kind: core.RuleKind[R], needed_by: str = "") -> R:
        """The rule of a rule kind.

        Raises:
          NotImplementedError: itself, not a subclass, as in the reference: without the rule.
        """
        try:
            return super().require(kind, needed_by)
        except core.UnsupportedRule:
            raise
        except core.MissingRule:
            pass
        needed = f", which {needed_by} needs" if needed_by else ""
        way = _WAYS.get(kind.name.partition(".")[0], f"@{self.name}_p.rule({kind.name})")
        raise NotImplementedError(
            f"primitive {self.name} (defined in {self.home}) has no {kind.name} rule{needed}. "
            f"Define it with {way.format(p=f'{self.name}_p')}"
        )

    def bind(self, *args: Any, **params: Any) -> Any:
        """Apply the primitive under the current trace, or eagerly without one.

        Raises:
          NotImplementedError: if a required rule is missing, or, eagerly, both ``def_impl`` and a
            lowering rule.
        """
        if core.trace_rule in self.rules:
            return super().bind(*args, **params)
        if current_trace() is None and not any(isinstance(a, Tracer) for a in args):
            return self._eager(args, params)
        return bind_directly(self, args, params)

    def impl(self, *args: Any, **params: Any) -> Any:
        """The eager implementation.

        Raises:
          NotImplementedError: if it is not defined.
        """
        if self._impl is not None:
            return self._impl(*args, **params)
        if any(kind.name.startswith("lower") for kind in self.rules) or self.find(core.lower):
            return apply_primitive(self, *args, **params)
        raise NotImplementedError(
            f"Evaluation rule for {self.name!r} not implemented: define it with "
            f"{self.name}_p.def_impl(function of arrays), or register a lowering with "
            "mlir.register_lowering"
        )

    def _eager(self, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        if not self.skip_canonicalization:
            args = tuple([a if _is_special(a) else as_operand(a) for a in args])
        return self.impl(*args, **params)

    def abstract_eval(self, *avals: Any, **params: Any) -> tuple[Any, frozenset[Any]]:
        """Return the result's type, or a list of types, and the effects."""
        return abstract_eval(self, *avals, **params)

    def is_effectful(self, params: dict[str, Any]) -> bool:
        """Return True if the operation may have effects."""
        return core.effects in self.rules


def _is_special(x: Any) -> bool:
    """Return True for values that are not arrays: references and tokens."""
    aval = getattr(x, "aval", None)
    return aval is not None and not isinstance(aval, core.ShapedArray)


def abstract_eval(prim: core.Primitive, *avals: Any, **params: Any) -> tuple[Any, frozenset[Any]]:
    """Return the type of a primitive's result, or a list of types, and its effects."""
    types = prim.require(core.abstract, "the type of its result")(*avals, **params)
    effects = prim.find(core.effects)
    return types, effects(*avals, **params) if effects is not None else frozenset()


def apply_primitive(prim: core.Primitive, /, *args: Any, **params: Any) -> Any:
    """Compile one operation with its lowering rule and run it, ignoring its ``def_impl``.

    Executables are cached by operand types and parameters if the parameters are hashable.
    """
    if not issubclass(type(prim), Primitive):
        return prim.bind(*args, **params)
    return core.Primitive.bind(prim, *args, **params)
