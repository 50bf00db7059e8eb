"""Primitives in the reference's convention: ``Primitive(name)``, then ``def_impl`` and the like.

What such a primitive is told becomes rules of the core's kinds, so that it works in programs and
under every transformation. Its rules are run anew for each application, since code written for the
reference may look at concrete values in them, pass parameters that cannot be hashed, and count on
being called.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import primax_core.extend as core
from primax_core.extend import Trace, Tracer, as_operand, bind_directly, current_trace

from . import binding as binding  # gives primitives the methods that interpreters call

F = TypeVar("F", bound=Callable[..., Any])


class _AnyPrimitive(type):
    """Lets the core's primitives pass for instances."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if cls is Primitive:
            return isinstance(instance, core.Primitive)
        return type.__instancecheck__(cls, instance)


class Primitive(core.Primitive, metaclass=_AnyPrimitive):
    """A named operation, made the reference's way.

    Args:
      name: the name that jaxprs print.

    Attributes:
      multiple_results: whether ``bind`` returns a list; set it after making the primitive.
      impl: what :meth:`def_impl` was given.

    Rules are added with :meth:`def_impl`, :meth:`def_abstract_eval` and by the tables of
    ``interpreters.ad``, ``batching`` and ``mlir``, or as the core's with ``@prim.rule(kind)``.
    """

    call_primitive: bool = False
    map_primitive: bool = False
    ref_primitive: bool = False
    skip_canonicalization: bool = False

    def __init__(self, name: str) -> None:
        home = sys._getframe(1).f_globals.get("__name__", "?")
        super().__init__(name, home=home, any_params=True)
        self._impl: Callable[..., Any] | None = None

    # Being told

    def def_impl(self, impl: F) -> F:
        """Say what the operation does eagerly: ``impl(*arrays, **params)``."""
        self._impl = impl
        return impl

    def def_abstract_eval(self, abstract_eval: F) -> F:
        """Give the type rule: ``abstract_eval(*avals, **params)`` returns the result's type, or a
        list of types."""
        self.rule(core.abstract, override=True)(abstract_eval)
        if core.effects in self.rules:
            self.rule(core.effects, override=True)(lambda *avals, **params: frozenset())
        return abstract_eval

    def def_effectful_abstract_eval(self, abstract_eval: F) -> F:
        """Give the type rule of an operation with effects: it returns the type and the effects."""

        def types(*avals: Any, **params: Any) -> Any:
            return abstract_eval(*avals, **params)[0]

        def effects(*avals: Any, **params: Any) -> frozenset[Any]:
            return frozenset(abstract_eval(*avals, **params)[1])

        self.rule(core.abstract, override=True)(types)
        self.rule(core.effects, override=True)(effects)
        return abstract_eval

    def def_bind_with_trace(self, bind_with_trace: F) -> F:
        """Say what a trace does with the operation, whatever trace it is (``None`` for none):
        ``bind_with_trace(trace, args, params)``."""

        def process(trace: Trace | None, args: tuple[Any, ...], **params: Any) -> Any:
            return bind_with_trace(trace, args, params)

        self.rule(core.trace_rule, override=True)(process)
        return bind_with_trace

    # Being used

    def bind(self, *args: Any, **params: Any) -> Any:
        """Apply the primitive under the current trace, or eagerly if there is none.

        Raises:
          NotImplementedError: if a rule is missing that this takes, or, eagerly, both ``def_impl``
            and a lowering.
        """
        if core.trace_rule in self.rules:
            return super().bind(*args, **params)
        if current_trace() is None and not any(isinstance(a, Tracer) for a in args):
            return self._eager(args, params)
        return bind_directly(self, args, params)

    def impl(self, *args: Any, **params: Any) -> Any:
        """What the operation does eagerly.

        Raises:
          NotImplementedError: if nobody said so.
        """
        if self._impl is not None:
            return self._impl(*args, **params)
        if any(kind.name.startswith("lower") for kind in self.rules) or self.find(core.lower):
            return apply_primitive(self, *args, **params)
        raise NotImplementedError(
            f"Evaluation rule for {self.name!r} not implemented: give it one with "
            f"{self.name}_p.def_impl(function of arrays), or register a lowering with "
            "mlir.register_lowering"
        )

    def _eager(self, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        if not self.skip_canonicalization:
            args = tuple([a if _is_special(a) else as_operand(a) for a in args])
        return self.impl(*args, **params)

    def abstract_eval(self, *avals: Any, **params: Any) -> tuple[Any, frozenset[Any]]:
        """The type of the result, or a list of types, and the effects."""
        return abstract_eval(self, *avals, **params)

    def is_effectful(self, params: dict[str, Any]) -> bool:
        """Whether the operation may have effects."""
        return core.effects in self.rules


def _is_special(x: Any) -> bool:
    """Whether a value is no array that could be brought to a device: a reference, a token."""
    aval = getattr(x, "aval", None)
    return aval is not None and not isinstance(aval, core.ShapedArray)


def abstract_eval(prim: core.Primitive, *avals: Any, **params: Any) -> tuple[Any, frozenset[Any]]:
    """The type of a primitive's result, or a list of types, and its effects."""
    types = prim.require(core.abstract, "the type of its result")(*avals, **params)
    effects = prim.find(core.effects)
    return types, effects(*avals, **params) if effects is not None else frozenset()


def apply_primitive(prim: core.Primitive, /, *args: Any, **params: Any) -> Any:
    """Compile one operation by its lowering and run it, whatever its ``def_impl`` says.

    What was compiled is remembered by the types of the operands and the parameters, if these can be
    hashed.
    """
    if not issubclass(type(prim), Primitive):
        return prim.bind(*args, **params)
    return core.Primitive.bind(prim, *args, **params)
