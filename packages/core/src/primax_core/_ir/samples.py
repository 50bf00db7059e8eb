"""Samples: calls of a primitive for the conformance kit, defined next to the primitive.

    @cumsum_p.rule(samples)
    def _():
        yield Sample(f32(4), axis=0, reverse=False)
        yield Sample(f32(0, 3), axis=1, reverse=True)

A sample specifies types, not values. The kit draws the values, in ``float64`` for the comparison of
derivatives with finite differences. The rule runs only when the kit needs the samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import ml_dtypes
import numpy as np

from .primitive import RuleKind

samples: Final[RuleKind[Callable[[], Iterable[Sample]]]] = RuleKind(
    "samples",
    "() -> iterable of Sample",
    doc="""Operand types and parameters with which the conformance kit tests the primitive.

    Returns ``Sample`` objects, usually by ``yield``.
    """,
)


class Operand:
    """The type of a sample's operand, and the distribution of its values.

    Attributes:
      low, high: bounds of the values, and of both parts of complex values.
      make: draws the values instead: ``(generator, shape) -> array``; the result is cast.
      weak_type: the operand has a weak type.
    """

    __slots__ = ("dtype", "shape", "low", "high", "make", "weak_type")

    def __init__(
        self,
        dtype: Any,
        shape: tuple[int, ...] = (),
        low: float = -2.0,
        high: float = 2.0,
        make: Callable[[np.random.Generator, tuple[int, ...]], Any] | None = None,
        weak_type: bool = False,
    ):
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.shape: tuple[int, ...] = shape
        self.low: float = low
        self.high: float = high
        self.make: Callable[[np.random.Generator, tuple[int, ...]], Any] | None = make
        self.weak_type: bool = weak_type

    def __repr__(self) -> str:
        parts = [str(d) for d in self.shape]
        low, high = _usual.get(self.dtype, (-2, 2))
        usual = (("low", low), ("high", high), ("make", None), ("weak_type", False))
        for name, default in usual:
            value = getattr(self, name)
            if value != default:
                parts.append(f"{name}={value!r}")
        return f"{_names.get(self.dtype, self.dtype.name)}({', '.join(parts)})"


class Sample:
    """One call of a primitive: its operands and parameters.

    Operands other than :class:`Operand` (NumPy arrays, numbers) are passed unchanged, and are not
    differentiated.

    Attributes:
      call: the function to call instead of ``prim.bind``, for primitives with sub-jaxprs: a
        function of arrays that binds the primitive.
      observe: for results that are not unique (eigenvectors): a function of lax operations from the
        list of results to the list of arrays that are compared.
      tolerance: the allowed relative error, instead of the default for the dtype.
      raises: the error that the call must raise, for samples of invalid input.
      without: names of checks that do not apply, with the reason.
      expect: the expected results, as a function of the operands' values as NumPy arrays. Without
        it, the kit compares the rules with each other only.
      xfail: names of checks that are known to fail, with the reason.
    """

    __slots__ = (
        "operands", "params", "call", "observe", "tolerance", "raises", "without", "expect",
        "xfail",
    )  # fmt: skip

    def __init__(self, *operands: Any, **params: Any):
        self.operands: tuple[Any, ...] = operands
        self.params: dict[str, Any] = params
        self.call: Callable[..., Any] | None = None
        self.observe: Callable[[Sequence[Any]], Sequence[Any]] | None = None
        self.tolerance: float | None = None
        self.raises: type[Exception] | None = None
        self.without: dict[str, str] = {}
        self.expect: Callable[..., Any] | None = None
        self.xfail: dict[str, str] = {}

    def set(self, **options: Any) -> Sample:
        """A copy of the sample with some of its other attributes set."""
        new = Sample(*self.operands, **self.params)
        for name in self.__slots__[2:]:
            setattr(new, name, options.pop(name, getattr(self, name)))
        if options:
            raise TypeError(f"a sample has no option {', '.join(options)}")
        return new

    def __repr__(self) -> str:
        parts = [*map(repr, self.operands), *(f"{k}={v!r}" for k, v in self.params.items())]
        options = [f"{n}={v!r}" for n in self.__slots__[2:] if (v := getattr(self, n))]
        return f"Sample({', '.join(parts)})" + (f".set({', '.join(options)})" if options else "")


_names: Final[dict[np.dtype, str]] = {}
_usual: Final[dict[np.dtype, tuple[float, float]]] = {}


def _operands(name: str, dtype: Any, low: float, high: float) -> Callable[..., Operand]:
    dtype = np.dtype(dtype)
    _names[dtype], _usual[dtype] = name, (low, high)

    def operand(*shape: int, **options: Any) -> Operand:
        return Operand(dtype, shape, **{"low": low, "high": high, **options})

    operand.__doc__ = f"An operand of dtype {dtype.name} and a shape, with options."
    return operand


f32: Final = _operands("f32", np.float32, -2, 2)
f16: Final = _operands("f16", np.float16, -2, 2)
bf16: Final = _operands("bf16", ml_dtypes.bfloat16, -2, 2)
c64: Final = _operands("c64", np.complex64, -2, 2)
i32: Final = _operands("i32", np.int32, -9, 9)
i8: Final = _operands("i8", np.int8, -9, 9)
u8: Final = _operands("u8", np.uint8, 0, 9)
u32: Final = _operands("u32", np.uint32, 0, 9)
b1: Final = _operands("b1", np.bool_, 0, 1)
