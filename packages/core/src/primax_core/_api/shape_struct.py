"""``ShapeDtypeStruct``: the type of an array without an array."""

from __future__ import annotations

import math
from typing import Any

from .._ir import dtypes
from .._ir.avals import ShapedArray
from .._ir.symbolic_dims import as_size
from .._runtime.layouts import Format
from .._runtime.sharding import Sharding, as_sharding
from .._trace.core import typeof
from .._trace.typing import DTypeLike, Shape


class ShapeDtypeStruct:
    """Shape and dtype, accepted in place of an array wherever a function is traced.

    Args:
      shape: a sequence of sizes, numbers or symbolic dimensions.
      dtype: a dtype, its name or a scalar class. One of 64 bits is described as it is; a function
        that is traced with it gets a tracer of 32 bits unless ``enable_x64`` is on.
      sharding: the sharding, or a format with a layout.
      weak_type: True for a dtype that adapts to other operands.
      manual_axis_type: how the values vary over manual mesh axes.
      is_ref: True for the type of a reference to an array.
      _memory_space: ignored; arguments have no memory space before they exist.

    Raises:
      TypeError: if the shape or the dtype is not valid.
      ValueError: if the dtype is ``None``.

    ``eval_shape``, ``make_jaxpr``, ``jit(f).lower`` and ``linear_transpose`` accept it. It is a
    leaf of pytrees, and can be compared and hashed.

    >>> import numpy as np
    >>> ShapeDtypeStruct((2, 3), np.float32)
    ShapeDtypeStruct(shape=(2, 3), dtype=float32)
    >>> from primax_core import jit
    >>> jit(lambda x: x * 2).lower(ShapeDtypeStruct((4,), "int8")).out_info
    ShapeDtypeStruct(shape=(4,), dtype=int8)
    """

    __slots__ = ("shape", "dtype", "sharding", "weak_type", "manual_axis_type", "is_ref", "_layout")

    def __init__(
        self,
        shape: Shape,
        dtype: DTypeLike,
        *,
        sharding: Any = None,
        weak_type: bool = False,
        manual_axis_type: Any = None,
        is_ref: bool = False,
        _memory_space: Any = None,
    ):
        if dtype is None:
            raise ValueError("ShapeDtypeStruct: dtype must be specified.")
        try:
            self.shape: tuple[int, ...] = tuple([as_size(d) for d in shape])
        except TypeError:
            raise TypeError(
                f"ShapeDtypeStruct: shape must be a sequence of integers, got {shape!r}"
            ) from None
        # Checkpoints describe arrays of NumPy: of 64 bits, of strings and objects.
        self.dtype: Any = dtypes.as_dtype(dtype)
        if isinstance(dtype, str) or self.dtype.kind not in "SUO":
            dtypes.check_valid_dtype(self.dtype)
        # A Format is a sharding with a layout.
        self._layout: Any = sharding.layout if isinstance(sharding, Format) else None
        sharding = sharding.sharding if isinstance(sharding, Format) else sharding
        self.sharding: Any = as_sharding(sharding)
        self.weak_type: bool = weak_type
        self.manual_axis_type: Any = manual_axis_type
        self.is_ref: bool = is_ref

    @property
    def aval(self) -> Any:
        """The aval: of an array, or of a reference to one."""
        dtype = dtypes.canonicalize_user_dtype(self.dtype, "ShapeDtypeStruct")
        placing = self.sharding if isinstance(self.sharding, Sharding) else None
        aval = ShapedArray(self.shape, dtype, self.weak_type, placing)
        if self.is_ref:
            from .references import AbstractRef  # loads the references

            return AbstractRef(aval.strip_weak_type())
        return aval

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def format(self) -> Any:
        """The layout and sharding; ``None`` if the layout is unknown."""
        return None if self._layout is None else Format(self._layout, self.sharding)

    def update(self, **changes: Any) -> ShapeDtypeStruct:
        """A copy with some fields changed.

        Args:
          changes: arguments of :class:`ShapeDtypeStruct`.

        Returns:
          A ``ShapeDtypeStruct``.

        Raises:
          TypeError: for an unknown argument.

        >>> ShapeDtypeStruct((2,), "float32").update(shape=(3,))
        ShapeDtypeStruct(shape=(3,), dtype=float32)
        """
        fields = {n: getattr(self, n) for n in self.__slots__ if n != "_layout"}
        if self._layout is not None:
            fields["sharding"] = self.format
        fields.update(changes)
        shape, dtype = fields.pop("shape"), fields.pop("dtype")
        return ShapeDtypeStruct(shape, dtype, **fields)

    @staticmethod
    def like(x: Any) -> ShapeDtypeStruct:
        """The type of an array."""
        aval = x.aval
        return ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __eq__(self, other: object) -> bool:
        if type(other) is not ShapeDtypeStruct:
            return False
        return all(getattr(self, n) == getattr(other, n) for n in self.__slots__)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype, self.weak_type))

    def __repr__(self) -> str:
        notes = "".join(
            f", {n}={getattr(self, n)!r}"
            for n in ("sharding", "weak_type", "is_ref")
            if getattr(self, n)
        )
        if self._layout is not None:
            notes += f", format={self._layout}"
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}{notes})"


def type_like(x: Any) -> Any:
    """The aval of an operand, or of any object with the attributes ``shape`` and ``dtype``."""
    try:
        return typeof(x)
    except TypeError as e:
        from .described import described_aval

        return described_aval(x, e)
