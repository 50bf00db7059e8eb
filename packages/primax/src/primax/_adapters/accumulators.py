"""Cotangent accumulators for transpose rules."""

from __future__ import annotations

from typing import Any

import primax_core
from primax_core.extend import Zero, add_tangents, instantiate, is_zero


class GradAccum:
    """Base class of accumulators; ``aval`` is the type of the accumulated cotangents."""

    aval: Any

    def accum(self, x: Any) -> None:
        """Add a cotangent; a ``Zero`` adds nothing."""
        raise NotImplementedError(f"{type(self).__name__} must define accum")

    def freeze(self) -> Any:
        """Return the sum, which may be a ``Zero``."""
        raise NotImplementedError(f"{type(self).__name__} must define freeze")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.aval})"


class ValAccum(GradAccum):
    """Accumulator with an array as its sum.

    Args:
      aval: the type of the sum.
      val: the initial value; zero by default.
    """

    def __init__(self, aval: Any, val: Any = None) -> None:
        self.aval: Any = aval
        self.val: Any = Zero(aval) if val is None else val

    def accum(self, x: Any) -> None:
        """Add a cotangent."""
        if x is not None and not is_zero(x):
            if is_zero(self.val):
                self.val = x
            elif getattr(self.aval, "is_high", False):
                self.val = self.aval.vspace_add(self.val, x)
            else:
                self.val = add_tangents(self.val, x)

    def freeze(self) -> Any:
        """Return the sum."""
        return self.val


class RefAccum(GradAccum):
    """Accumulator that adds into a reference.

    Args:
      aval: the type of the sum.
      ref: the reference; created with zeros at the first cotangent by default.
    """

    def __init__(self, aval: Any, ref: Any = None) -> None:
        self.aval: Any = aval
        self.ref: Any = ref

    def inst(self) -> RefAccum:
        """Return this accumulator after creating its reference."""
        if self.ref is None:
            self.ref = primax_core.new_ref(instantiate(Zero(self.aval)))
        return self

    def accum(self, x: Any) -> None:
        """Add a cotangent."""
        if x is not None and not is_zero(x):
            from primax_core.ref import addupdate

            addupdate(self.inst().ref, (), x)

    def freeze(self) -> Any:
        """Return the sum; the reference cannot be used afterwards."""
        return Zero(self.aval) if self.ref is None else primax_core.freeze(self.ref)


class NullAccum(GradAccum):
    """Accumulator that discards cotangents."""

    def __init__(self, aval: Any) -> None:
        self.aval: Any = aval

    def accum(self, x: Any) -> None:
        """Do nothing."""

    def freeze(self) -> Any:
        """Return a ``Zero``."""
        return Zero(self.aval)
