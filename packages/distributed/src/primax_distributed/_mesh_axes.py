"""Names, sizes and types of the axes of meshes."""

from __future__ import annotations

import enum
import operator
from collections import OrderedDict
from collections.abc import Hashable
from typing import Any

from ._interning import Immutable, put


class AxisType(enum.Enum):
    """The way in which arrays are divided along an axis of a mesh.

    Attributes:
      Auto: the compiler chooses.
      Explicit: the types of arrays contain it, and operations determine it for their results.
      Manual: the function is written for the part of one device (`shard_map`).
    """

    Auto = 1
    Explicit = 2
    Manual = 3

    def __repr__(self) -> str:
        return self.name


class BaseMesh(Immutable):
    """Names, sizes and types of axes: what `Mesh` and `AbstractMesh` have in common."""

    __slots__ = ("_sizes", "axis_names", "axis_sizes", "axis_types")

    axis_names: tuple[Hashable, ...]
    axis_sizes: tuple[int, ...]
    axis_types: tuple[AxisType, ...]
    _sizes: dict[Hashable, int]

    def _set_axes(self, axes: Axes) -> None:
        put(self, "axis_sizes", axes.sizes)
        put(self, "axis_names", axes.names)
        put(self, "axis_types", axes.types)
        put(self, "_sizes", dict(zip(axes.names, axes.sizes)))

    @property
    def shape(self) -> OrderedDict[Hashable, int]:
        """Sizes of the axes by name."""
        return OrderedDict(self._sizes)

    @property
    def shape_tuple(self) -> tuple[tuple[Hashable, int], ...]:
        """Pairs of a name and a size."""
        return tuple(self._sizes.items())

    def _key_on_disk(self) -> tuple[Any, ...]:
        """The contents, for keys of the cache on disk."""
        return self.axis_sizes, self.axis_names, self.axis_types

    def _of_type(self, kind: AxisType) -> tuple[Hashable, ...]:
        return tuple([n for n, t in zip(self.axis_names, self.axis_types) if t is kind])

    @property
    def auto_axes(self) -> tuple[Hashable, ...]:
        """Names of the axes of type ``Auto``."""
        return self._of_type(AxisType.Auto)

    @property
    def explicit_axes(self) -> tuple[Hashable, ...]:
        """Names of the axes of type ``Explicit``."""
        return self._of_type(AxisType.Explicit)

    @property
    def manual_axes(self) -> tuple[Hashable, ...]:
        """Names of the axes of type ``Manual``."""
        return self._of_type(AxisType.Manual)

    def _all_of(self, *kinds: AxisType) -> bool:
        return bool(self.axis_types) and all(t in kinds for t in self.axis_types)

    @property
    def are_all_axes_auto(self) -> bool:
        """True if there are axes and all have the type ``Auto``."""
        return self._all_of(AxisType.Auto)

    @property
    def are_all_axes_explicit(self) -> bool:
        """True if there are axes and all have the type ``Explicit``."""
        return self._all_of(AxisType.Explicit)

    @property
    def are_all_axes_manual(self) -> bool:
        """True if there are axes and all have the type ``Manual``."""
        return self._all_of(AxisType.Manual)

    @property
    def are_all_axes_explicit_or_manual(self) -> bool:
        """True if there are axes and none has the type ``Auto``."""
        return self._all_of(AxisType.Explicit, AxisType.Manual)

    @property
    def _are_all_axes_auto_or_manual(self) -> bool:
        return self._all_of(AxisType.Auto, AxisType.Manual)

    @property
    def _any_axis_auto(self) -> bool:
        return AxisType.Auto in self.axis_types

    @property
    def _any_axis_explicit(self) -> bool:
        return AxisType.Explicit in self.axis_types

    @property
    def _any_axis_manual(self) -> bool:
        return AxisType.Manual in self.axis_types

    @property
    def _any_axis_auto_or_manual(self) -> bool:
        return self._any_axis_auto or self._any_axis_manual

    @property
    def _name_to_type(self) -> dict[Hashable, AxisType]:
        return dict(zip(self.axis_names, self.axis_types))

    def _axes_text(self) -> str:
        sizes = ", ".join(f"'{name}': {size}" for name, size in self._sizes.items())
        return f"{sizes}, axis_types={self.axis_types}"


class Axes:
    """Checked names, sizes and types of axes."""

    __slots__ = ("names", "sizes", "types")

    def __init__(self, owner: str, sizes: Any, names: Any, types: Any, default: AxisType) -> None:
        self.sizes: tuple[int, ...] = _checked_sizes(owner, sizes)
        self.names: tuple[Hashable, ...] = checked_names(owner, names)
        if len(self.sizes) != len(self.names):
            raise ValueError(
                f"{owner} needs one name for each axis, got sizes {self.sizes} and names "
                f"{self.names}"
            )
        self.types: tuple[AxisType, ...] = _checked_types(owner, types, self.names, default)

    @property
    def key(self) -> tuple[Any, ...]:
        """The contents."""
        return self.sizes, self.names, self.types


def _checked_sizes(owner: str, sizes: Any) -> tuple[int, ...]:
    try:
        checked = tuple([operator.index(size) for size in sizes])
    except TypeError:
        raise TypeError(
            f"{owner} takes a sequence of integers as sizes of axes, such as (2, 4), got {sizes!r}"
        ) from None
    if any(size <= 0 for size in checked):
        raise ValueError(f"{owner} needs positive sizes of axes, got {checked}")
    return checked


def checked_names(owner: str, names: Any) -> tuple[Hashable, ...]:
    """Names of axes as a tuple; a string is one name.

    Raises:
      TypeError: if a name is not hashable.
      ValueError: if a name is ``None`` or occurs twice.
    """
    checked = (names,) if isinstance(names, str) else tuple(names)
    try:
        doubled = [name for i, name in enumerate(checked) if name in {*checked[:i]}]
    except TypeError:
        raise TypeError(f"names of axes must be hashable, {owner} got {checked}") from None
    if None in checked:
        raise ValueError(f"the axes of {owner} need names other than None, got {checked}")
    if doubled:
        raise ValueError(
            f"the axes of {owner} need different names, but {doubled[0]!r} occurs twice in "
            f"{checked}"
        )
    return checked


def _checked_types(
    owner: str, types: Any, names: tuple[Hashable, ...], default: AxisType
) -> tuple[AxisType, ...]:
    if types is None:
        return (default,) * len(names)
    checked = tuple(types) if isinstance(types, (tuple, list)) else (types,)
    for kind in checked:
        if not isinstance(kind, AxisType):
            raise TypeError(
                f"axis_types of {owner} must be members of AxisType, such as AxisType.Auto, got "
                f"{kind!r} of type {type(kind).__name__}"
            )
    if len(checked) != len(names):
        raise ValueError(
            f"{owner} needs one axis type for each axis, got {checked} for the axes {names}"
        )
    return checked
