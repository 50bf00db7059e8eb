"""Avals: the type of a value, known before it is computed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, NoReturn

import numpy as np

from . import dtypes
from .placement import unplaced as unplaced
from .symbolic_dims import as_size, is_static, is_symbolic_dim


class ShapedArray:
    """The type of an array: shape, dtype, weak type and placement.

    ``placement`` is :data:`unplaced`, unless the aval says how values are divided over devices.
    ``sharding`` is its sharding; as an argument it may be a sharding or a placement.

    Instances are interned: avals of the same type are the same object, so that caches can compare
    them by identity. They are immutable; ``update`` returns another one.

    >>> import numpy as np
    >>> from primax_core.extend import ShapedArray
    >>> aval = ShapedArray((2, 3), np.dtype("float32"))
    >>> aval.ndim, aval.size, aval is ShapedArray((2, 3), np.dtype("float32"))
    (2, 6, True)
    >>> aval.update(shape=(4,))
    ShapedArray(float32[4])
    """

    __slots__ = ("shape", "dtype", "weak_type", "placement", "ndim", "size", "__weakref__")

    shape: tuple[int, ...]
    dtype: np.dtype
    weak_type: bool
    placement: Any
    ndim: int
    size: int

    def __new__(
        cls, shape: Sequence[int], dtype: Any, weak_type: bool = False, sharding: Any = unplaced
    ) -> ShapedArray:
        key = (cls, shape, dtype, weak_type, sharding)
        try:
            return _interned[key]
        except (KeyError, TypeError):  # a list has no hash
            sizes = tuple([d if type(d) is int else as_size(d) for d in shape])
            return cls._intern(sizes, dtype, bool(weak_type), _placement(sharding, len(sizes)))

    @classmethod
    def _intern(cls, shape, dtype, weak_type, placement):
        if not isinstance(dtype, (np.dtype, dtypes.ExtendedDType)):
            dtype = np.dtype(dtype)
        key = (cls, shape, dtype, weak_type, placement)
        known = _interned
        if not is_static(shape):  # interned in the scope of its dimensions, to be freed with it
            known = next(d.scope.avals for d in shape if is_symbolic_dim(d))
            if key in known:
                return known[key]
        self = object.__new__(cls)
        for name, value in (
            ("shape", shape),
            ("dtype", dtype),
            ("weak_type", weak_type),
            ("placement", placement),
            ("ndim", len(shape)),
            ("size", math.prod(shape)),
        ):
            object.__setattr__(self, name, value)
        return known.setdefault(key, self)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"ShapedArray is immutable: cannot set {name!r}; use .update(...)")

    @property
    def aval(self) -> ShapedArray:
        """The aval itself, so that an aval can be used as an argument for tracing, like
        ``ShapeDtypeStruct``."""
        return self

    @property
    def sharding(self) -> Any:
        """The sharding that the placement gives; without one, see ``describe_unplaced``."""
        placement = self.placement
        if placement is unplaced and unplaced.of_rank is not None:
            return unplaced.of_rank(len(self.shape))
        return placement.sharding

    def update(self, **changes: Any) -> ShapedArray:
        """A copy with some fields changed.

        Raises:
          ValueError: ``shape`` has another rank, and the placement is not changed.
        """
        if "placement" in changes:
            changes["sharding"] = changes.pop("placement")
        elif self.placement is not unplaced and "sharding" not in changes:
            if len(changes.get("shape", self.shape)) != self.ndim:
                raise ValueError(
                    f"the type {self} has a placement, so its rank cannot be changed by "
                    "update(shape=...): use without_axis or with_axis, or give placement= too"
                )
            changes["sharding"] = self.placement
        fields = {n: getattr(self, n) for n in ("shape", "dtype", "weak_type")}
        fields.update(changes)
        return ShapedArray(**fields)

    def without_axis(self, i: int) -> ShapedArray:
        """The aval of one slice along axis ``i``."""
        p = self.placement
        placement = p if p is unplaced else p.without_axis(i)
        return ShapedArray(
            self.shape[:i] + self.shape[i + 1 :], self.dtype, self.weak_type, placement
        )

    def with_axis(self, i: int, size: Any, division: Any = None) -> ShapedArray:
        """The aval of ``size`` values stacked along a new axis ``i``.

        Args:
          division: the placement of a vector that is divided as the new axis; ``None`` if it is not
            divided.
        """
        p = self.placement
        if division is not None:
            placement = division.stacked(p, self.ndim, i)
        else:
            placement = p if p is unplaced else p.with_axis(i)
        return ShapedArray(
            (*self.shape[:i], size, *self.shape[i:]), self.dtype, self.weak_type, placement
        )

    def strip_weak_type(self) -> ShapedArray:
        """The same aval without weak type."""
        if not self.weak_type:
            return self
        return ShapedArray(self.shape, self.dtype, False, self.placement)

    def tangent_aval(self) -> ShapedArray:
        """The aval of a tangent: the same for inexact dtypes, ``float0`` for the others."""
        if dtypes.issubdtype(self.dtype, np.inexact):
            return self
        return ShapedArray(self.shape, dtypes.float0)

    def str_short(self, short_dtypes: bool = True, mesh_axis_types: bool = False) -> str:
        """``f32[2,3]`` or ``float32[2,3]``, with the axes of the mesh if the array is divided."""
        name = dtypes.short_name(self.dtype) if short_dtypes else self.dtype.name
        p = self.placement
        divided = mesh_axis_types and p is not unplaced
        return name + self._sizes() + (f"({{Explicit: {p.mesh.explicit_axes}}})" if divided else "")

    def _sizes(self) -> str:
        p = self.placement
        return f"[{','.join(map(str, self.shape))}]" if p is unplaced else p.text(self.shape)

    def __str__(self) -> str:
        weak = "~" if self.weak_type else ""
        return f"{weak}{self.dtype.name}{self._sizes()}"

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self.dtype.name}{self._sizes()}{weak})"

    def __bool__(self) -> bool:
        return True  # also with length 0

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __reduce__(self) -> tuple[Any, ...]:
        return ShapedArray, (self.shape, self.dtype, self.weak_type, self.placement)

    def __copy__(self) -> ShapedArray:
        return self

    def __deepcopy__(self, memo: Any) -> ShapedArray:
        return self


_interned: dict[tuple, ShapedArray] = {}


def _placement(sharding: Any, ndim: int) -> Any:
    """The placement of a sharding, a placement or ``None``."""
    if sharding is None:
        return unplaced
    convert = getattr(sharding, "_placement", None)
    if convert is None:
        raise TypeError(
            f"the sharding of an aval must be a Sharding, a placement or None, got {sharding!r}"
        )
    return convert(ndim)


class AbstractToken:
    """The aval of a token, which only orders effects."""

    __slots__ = ()
    shape: tuple[int, ...] = ()
    weak_type: bool = False
    ndim: int = 0
    placement: Any = unplaced

    def str_short(self) -> str:
        """The text in jaxprs."""
        return "Tok"

    def __repr__(self) -> str:
        return "Tok"


abstract_token: Final[AbstractToken] = AbstractToken()
