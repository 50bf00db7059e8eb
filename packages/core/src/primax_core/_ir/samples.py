"""Samples: calls of a primitive that the conformance kit tries, written on the primitive's page.

    @cumsum_p.rule(samples)
    def _():
        yield Sample(f32(4), axis=0, reverse=False)
        yield Sample(f32(0, 3), axis=1, reverse=True)

A sample names types, not values: the kit draws the values, in ``float64`` where it compares
derivatives with differences. The rule runs when the kit asks for it, so it costs nothing before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import ml_dtypes
import numpy as np

from .primitive import RuleKind

samples: Final = RuleKind("samples", "() -> iterable of Sample")


@dataclass(frozen=True)
class Operand:
    """The type of a sample's operand, and where its values are drawn from.

    Attributes:
      low, high: bounds of the values, of both parts of complex ones.
      make: draws the values instead: ``(generator, shape) -> array``; the result is cast.
      weak_type: whether the operand is weakly typed.
    """

    dtype: np.dtype
    shape: tuple[int, ...] = ()
    low: float = -2.0
    high: float = 2.0
    make: Callable[[np.random.Generator, tuple[int, ...]], Any] | None = None
    weak_type: bool = False


@dataclass(frozen=True)
class Sample:
    """One call of a primitive: its operands and parameters.

    Operands that are not :class:`Operand` (NumPy arrays, numbers) are passed as they are, and are
    not differentiated.

    Attributes:
      call: what is called instead of ``prim.bind``, for primitives whose parameters hold programs:
        a function of arrays in which the primitive is bound.
      observe: what is compared where results are not unique (eigenvectors): a function of lax
        operations from the list of results to a list of arrays.
      tolerance: the relative error allowed, instead of the one for the dtype.
      without: names of checks that do not apply, with the reason.
    """

    operands: tuple = ()
    params: dict[str, Any] = field(default_factory=dict)
    call: Callable | None = None
    observe: Callable[[Sequence], Sequence] | None = None
    tolerance: float | None = None
    without: dict[str, str] = field(default_factory=dict)

    def __init__(self, *operands: Any, **params: Any):
        object.__setattr__(self, "operands", operands)
        object.__setattr__(self, "params", params)
        object.__setattr__(self, "without", {})

    def set(self, **options: Any) -> Sample:
        """The sample with ``call``, ``observe``, ``tolerance`` or ``without`` set."""
        new = object.__new__(Sample)
        for name in ("operands", "params", "call", "observe", "tolerance", "without"):
            object.__setattr__(new, name, options.pop(name, getattr(self, name)))
        if options:
            raise TypeError(f"a sample has no option {', '.join(options)}")
        return new


def _operands(dtype: Any, low: float, high: float) -> Callable[..., Operand]:
    plain = Operand(np.dtype(dtype), (), low, high)

    def operand(*shape: int, **options: Any) -> Operand:
        return replace(plain, shape=shape, **options)

    operand.__doc__ = f"An operand of dtype {np.dtype(dtype).name} and a shape, with options."
    return operand


f32: Final = _operands(np.float32, -2, 2)
f16: Final = _operands(np.float16, -2, 2)
bf16: Final = _operands(ml_dtypes.bfloat16, -2, 2)
c64: Final = _operands(np.complex64, -2, 2)
i32: Final = _operands(np.int32, -9, 9)
i8: Final = _operands(np.int8, -9, 9)
u8: Final = _operands(np.uint8, 0, 9)
u32: Final = _operands(np.uint32, 0, 9)
b1: Final = _operands(np.bool_, 0, 1)
