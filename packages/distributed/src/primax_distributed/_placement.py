"""Placements in types, and the part of them that is manual."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Any, Final

from primax_core.extend import ShapedArray
from primax_core.extend.placements import is_placed, unplaced as unplaced

from ._interning import Immutable, Interned, put
from ._named import Placement as Placement
from ._spec import UnreducedKind, checked_axes, checked_kind

Names = frozenset[Hashable]

_instances: Final[Interned[ManualAxisType]] = Interned()


class ManualAxisType(Immutable):
    """The manual mesh axes in the type of a value. Equal ones are one object.

    Args:
      varying: the axes along which the values of devices differ.
      unreduced: the axes along which devices have partial values.
      reduced: the axes along which the cotangent is unreduced.
      unreduced_kind: the reduction of the unreduced axes, by default the sum.

    Raises:
      TypeError: if an argument has the wrong type.
      ValueError: if an axis varies and is unreduced or reduced.

    >>> ManualAxisType(varying={"x"}).varying
    frozenset({'x'})
    """

    __slots__ = ("reduced", "unreduced", "unreduced_kind", "varying")

    varying: Names
    unreduced: Names
    reduced: Names
    unreduced_kind: UnreducedKind | None

    def __new__(
        cls,
        *,
        varying: Collection[Hashable] = frozenset(),
        unreduced: Collection[Hashable] = frozenset(),
        reduced: Collection[Hashable] = frozenset(),
        unreduced_kind: UnreducedKind | None = None,
    ) -> ManualAxisType:
        owner = "ManualAxisType"
        varying = checked_axes("varying", varying, owner)
        unreduced = checked_axes("unreduced", unreduced, owner)
        reduced = checked_axes("reduced", reduced, owner)
        for role, names in (("unreduced", unreduced), ("reduced", reduced)):
            if both := varying & names:
                listed = ", ".join(sorted(map(repr, both)))
                raise ValueError(
                    f"varying and {role} of a ManualAxisType both contain {listed}: along an axis "
                    "values vary, or are partial or equal"
                )
        key = (varying, unreduced, reduced, checked_kind(unreduced_kind, unreduced))
        known = _instances.get(key)
        if known is not None:
            return known
        self = object.__new__(cls)
        for name, value in zip(("varying", "unreduced", "reduced", "unreduced_kind"), key):
            put(self, name, value)
        return _instances.add(key, lambda: self)

    @property
    def vur(self) -> Names:
        """All of the axes."""
        return self.varying | self.unreduced | self.reduced

    @property
    def empty(self) -> bool:
        """True if there are no axes."""
        return not self.vur

    def invarying(self, mesh: Any) -> Names:
        """The manual axes of a mesh that are not among the axes."""
        return frozenset(mesh.manual_axes) - self.vur

    def to_ct_mat(self) -> ManualAxisType:
        """The type of a cotangent: unreduced and reduced axes are exchanged."""
        return ManualAxisType(varying=self.varying, unreduced=self.reduced, reduced=self.unreduced)

    def update(self, **changes: Any) -> ManualAxisType:
        """A type with some arguments of the constructor replaced.

        >>> ManualAxisType(varying={"x"}).update(varying=frozenset()).empty
        True
        """
        unreduced = changes.get("unreduced", self.unreduced)
        parts = {
            "varying": self.varying,
            "unreduced": unreduced,
            "reduced": self.reduced,
            "unreduced_kind": self.unreduced_kind if unreduced else None,
        }
        return ManualAxisType(**{**parts, **changes})

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.varying, self.unreduced, self.reduced, self.unreduced_kind)

    def __repr__(self) -> str:
        return (
            f"ManualAxisType(varying={self.varying}, unreduced={self.unreduced}, "
            f"reduced={self.reduced}, unreduced_kind={self.unreduced_kind})"
        )


def _restored(
    varying: Names, unreduced: Names, reduced: Names, kind: UnreducedKind | None
) -> ManualAxisType:
    return ManualAxisType(
        varying=varying, unreduced=unreduced, reduced=reduced, unreduced_kind=kind
    )


def manual_axis_type(aval: ShapedArray) -> ManualAxisType:
    """The manual mesh axes in a type.

    >>> import numpy as np
    >>> from primax_core import typeof
    >>> manual_axis_type(typeof(np.float32(1))).empty
    True
    """
    if not is_placed(aval):
        return ManualAxisType()
    placement = aval.placement
    unreduced = placement.manual(placement.unreduced)
    return ManualAxisType(
        varying=placement.varying,
        unreduced=unreduced,
        reduced=placement.manual(placement.reduced),
        unreduced_kind=placement.unreduced_kind if unreduced else None,
    )
