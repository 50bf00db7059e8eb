"""Where transpose rules put cotangents: objects that add up what they are given."""

from __future__ import annotations

from typing import Any

import primax_core
from primax_core.extend import Zero, add_tangents, instantiate, is_zero


class GradAccum:
    """Base of accumulators; ``aval`` is the type of the cotangents that are added up."""

    aval: Any

    def accum(self, x: Any) -> None:
        """Add a cotangent; a ``Zero`` adds nothing."""
        raise NotImplementedError(f"{type(self).__name__} must define accum")

    def freeze(self) -> Any:
        """The sum, which may be a ``Zero``."""
        raise NotImplementedError(f"{type(self).__name__} must define freeze")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.aval})"


class ValAccum(GradAccum):
    """Adds up arrays.

    Args:
      aval: the type of the sum.
      val: what to begin with; zero by default.
    """

    def __init__(self, aval: Any, val: Any = None) -> None:
        self.aval: Any = aval
        self.val: Any = Zero(aval) if val is None else val

    def accum(self, x: Any) -> None:
        """Add a cotangent."""
        if x is not None and not is_zero(x):
            self.val = x if is_zero(self.val) else add_tangents(self.val, x)

    def freeze(self) -> Any:
        """The sum."""
        return self.val


class RefAccum(GradAccum):
    """Adds up in a reference.

    Args:
      aval: the type of the sum.
      ref: the reference; made, with zeros, when the first cotangent comes.
    """

    def __init__(self, aval: Any, ref: Any = None) -> None:
        self.aval: Any = aval
        self.ref: Any = ref

    def inst(self) -> RefAccum:
        """This accumulator, with its reference made."""
        if self.ref is None:
            self.ref = primax_core.new_ref(instantiate(Zero(self.aval)))
        return self

    def accum(self, x: Any) -> None:
        """Add a cotangent."""
        if x is not None and not is_zero(x):
            from primax_core.ref import addupdate

            addupdate(self.inst().ref, (), x)

    def freeze(self) -> Any:
        """The sum; the reference is used up."""
        return Zero(self.aval) if self.ref is None else primax_core.freeze(self.ref)


class NullAccum(GradAccum):
    """Takes cotangents that nobody wants."""

    def __init__(self, aval: Any) -> None:
        self.aval: Any = aval

    def accum(self, x: Any) -> None:
        """Do nothing."""

    def freeze(self) -> Any:
        """A ``Zero``."""
        return Zero(self.aval)
