"""Avals: the type of a value, known before it is computed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, NoReturn

import numpy as np

from . import dtypes
from .symbolic_dims import as_size, is_static, is_symbolic_dim


class Unplaced:
    """The sharding of an aval without placement information."""

    __slots__ = ()

    is_fully_replicated = True

    def __repr__(self) -> str:
        return "unplaced"

    def __reduce__(self) -> str:
        return "unplaced"


unplaced: Final = Unplaced()


class ShapedArray:
    """Shape, dtype and weak type of an array.

    ``sharding`` is :data:`unplaced`, unless the aval specifies how the value is sharded.

    Instances are interned: avals of the same type are the same object, so that caches can compare
    them by identity.
    """

    __slots__ = ("shape", "dtype", "weak_type", "sharding", "ndim", "size", "__weakref__")

    shape: tuple[int, ...]
    dtype: np.dtype
    weak_type: bool
    sharding: Any
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
            return cls._intern(sizes, dtype, bool(weak_type), sharding)

    @classmethod
    def _intern(cls, shape, dtype, weak_type, sharding):
        if not isinstance(dtype, (np.dtype, dtypes.ExtendedDType)):
            dtype = np.dtype(dtype)
        if sharding is None:
            sharding = unplaced
        key = (cls, shape, dtype, weak_type, sharding)
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
            ("sharding", sharding),
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

    def update(self, **changes: Any) -> ShapedArray:
        """A copy with some fields changed."""
        fields = {n: getattr(self, n) for n in ("shape", "dtype", "weak_type", "sharding")}
        fields.update(changes)
        return ShapedArray(**fields)

    def strip_weak_type(self) -> ShapedArray:
        """The same aval without weak type."""
        return ShapedArray(self.shape, self.dtype, False, self.sharding) if self.weak_type else self

    def tangent_aval(self) -> ShapedArray:
        """The aval of a tangent: the same for inexact dtypes, ``float0`` for the others."""
        if dtypes.issubdtype(self.dtype, np.inexact):
            return self
        return ShapedArray(self.shape, dtypes.float0, False, self.sharding)

    def str_short(self) -> str:
        """``f32[2,3]``."""
        return f"{dtypes.short_name(self.dtype)}[{','.join(map(str, self.shape))}]"

    def __str__(self) -> str:
        weak = "~" if self.weak_type else ""
        return f"{weak}{self.dtype.name}[{','.join(map(str, self.shape))}]"

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self.dtype.name}[{','.join(map(str, self.shape))}]{weak})"

    def __bool__(self) -> bool:
        return True  # also with length 0

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __reduce__(self) -> tuple[Any, ...]:
        return ShapedArray, (self.shape, self.dtype, self.weak_type, self.sharding)

    def __copy__(self) -> ShapedArray:
        return self

    def __deepcopy__(self, memo: Any) -> ShapedArray:
        return self


_interned: dict[tuple, ShapedArray] = {}


class AbstractToken:
    """The aval of a token, which only orders effects."""

    __slots__ = ()
    shape = ()
    weak_type = False
    ndim = 0

    def str_short(self) -> str:
        return "Tok"

    __str__ = __repr__ = str_short


abstract_token = AbstractToken()
