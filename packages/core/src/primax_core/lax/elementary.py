"""Lowering of ``exp2`` and ``erfc`` in ``float32`` and ``float64`` by polynomials.

XLA computes ``exp2(x)`` as ``exp(x log 2)`` and ``erfc(x)`` as a multiple of ``exp(-x²)`` with a
rounded exponent: the error grows with its size, to several hundred ulp. Here the exponent is
reduced exactly before it is rounded. Errors are below 1 and 4 ulp; the time is that of XLA's
operations or less.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from .._ir import dtypes
from .._lower.lazy import hlo, mlir, shaped
from .comparison import compare

# Interpolation of (2^f - 1) / f and (exp(r) - 1) / r at Chebyshev nodes of |f| <= 1/2 and
# |r| <= log(2)/2.
_POWER_DOUBLE: Final = (
    0.6931471805599453, 0.24022650695910097, 0.0555041086648216, 0.009618129107606888,
    0.0013333558146416936, 0.0001540353044173605, 1.525273382983612e-05, 1.321544258792169e-06,
    1.0178062445845774e-07, 7.072585949269223e-09, 4.4549605981865186e-10,
)  # fmt: skip
_POWER_SINGLE: Final = (
    0.6931472, 0.2402265, 0.05550357, 0.009618083, 0.0013390863, 0.00015453163,
)  # fmt: skip
_EXP_DOUBLE: Final = (
    1.0, 0.5000000000000006, 0.1666666666666667, 0.04166666666657314, 0.008333333333326141,
    0.0013888888932488599, 0.00019841269874800493, 2.4801504346997686e-05,
    2.7557255425746435e-06, 2.7626357241447223e-07, 2.510520637395701e-08,
)  # fmt: skip
_EXP_SINGLE: Final = (
    1.0, 0.5, 0.16666505, 0.041666467, 0.008369149, 0.0013933642,
)  # fmt: skip

# ((1 + 2z) exp(z²) erfc(z) - 1) / (1 + t) in t = (z - c) / (z + c), for z up to 28 and 10.5. The
# form is that of M. Shepherd and J. Laframboise, "Chebyshev approximation of (1 + 2x) exp(x²)
# erfc x" (1981), with the exact value at 0.
_ERFC_DOUBLE: Final = (
    0.22484804273841424, -0.3615551425938496, 0.3948992065620611, -0.35152698650347436,
    0.26794863205643416, -0.17761502602241924, 0.10241758056935743, -0.05080373737180887,
    0.021121945199009288, -0.006955106743277877, 0.0015508887308830351, -6.657164367997985e-05,
    -0.0001156162143007748, 4.7843419930980806e-05, -3.780297188489994e-06,
    -4.0614956725213415e-06, 1.516222347709214e-06, 1.3717614544144478e-07,
    -2.032728590140783e-07, 6.41667182315955e-09, 1.63795039557639e-08,
)  # fmt: skip
_ERFC_SINGLE: Final = (
    0.2769784, -0.3697425, 0.20371076, -0.039653193, -0.014547304, 0.0064792377, 0.002137872,
    -0.0008184605, -0.0003938706,
)  # fmt: skip


class _Tables(NamedTuple):
    """Constants of a dtype.

    Attributes:
      power, exponential: coefficients.
      erfc, center, largest: coefficients, ``c``, and an argument beyond which ``erfc`` is 0.
      log2: ``log 2`` in two parts; products of the first with exponents are exact.
    """

    power: Sequence[float]
    exponential: Sequence[float]
    erfc: Sequence[float]
    center: float
    largest: float
    log2: tuple[float, float]


_TABLES: Final = {
    dtypes.f64: _Tables(
        _POWER_DOUBLE,
        _EXP_DOUBLE,
        _ERFC_DOUBLE,
        4.5,
        28.0,
        (0.6931471805592082, 7.371002565167799e-13),
    ),
    dtypes.f32: _Tables(
        _POWER_SINGLE, _EXP_SINGLE, _ERFC_SINGLE, 2.0, 10.5, (0.69314575, 1.4286068e-06)
    ),
}


class _Floats:
    """Operations on arrays of the dtype and shape of the result."""

    def __init__(self, ctx: Any):
        (aval,) = ctx.out_avals
        self.dtype: Any = aval.dtype
        self.shape: Any = aval.shape
        self.info: Any = np.finfo(aval.dtype)
        self.integer: Any = np.dtype(f"int{self.info.bits}")
        self.tables: _Tables = _TABLES[aval.dtype]

    def full(self, value: float) -> Any:
        return shaped.full(np.asarray(value, self.dtype), self.shape)

    def bits(self, x: Any) -> Any:
        return hlo.bitcast_convert(mlir.tensor_type(self.shape, self.integer), x)

    def of_bits(self, x: Any) -> Any:
        return hlo.bitcast_convert(mlir.tensor_type(self.shape, self.dtype), x)

    def integers(self, value: int) -> Any:
        return shaped.full(np.asarray(value, self.integer), self.shape)

    def horner(self, x: Any, coefficients: Sequence[float]) -> Any:
        out = self.full(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            out = hlo.add(hlo.multiply(out, x), self.full(c))
        return out

    def power(self, n: Any) -> Any:
        """``2^n`` for exponents of normal numbers: a sum moves them to the last bits."""
        moved = hlo.add(n, self.full(1.5 * 2.0**self.info.nmant + self.info.maxexp - 1))
        return self.of_bits(hlo.shift_left(self.bits(moved), self.integers(self.info.nmant)))

    def scaled(self, x: Any, n: Any) -> Any:
        """``x 2^n``, in two steps because the result may be subnormal or infinite."""
        half = hlo.round_nearest_even(hlo.multiply(n, self.full(0.5)))
        return hlo.multiply(hlo.multiply(x, self.power(half)), self.power(hlo.subtract(n, half)))

    def head(self, x: Any) -> Any:
        """The leading half of the digits of ``x``, whose square is exact."""
        digits = self.integers(-1 << (self.info.nmant + 3) // 2)
        return self.of_bits(hlo.and_(self.bits(x), digits))


def emit_exp2(ctx: Any, x: Any) -> Any:
    """``2^x`` as ``2^n 2^(x - n)`` for the nearest integer ``n``."""
    floats = _Floats(ctx)
    low = floats.info.minexp - floats.info.nmant - 6
    x = hlo.clamp(floats.full(low), x, floats.full(floats.info.maxexp + 1))
    n = hlo.round_nearest_even(x)
    power = floats.horner(hlo.subtract(x, n), (1.0, *floats.tables.power))
    return floats.scaled(power, n)


def emit_erfc(ctx: Any, x: Any) -> Any:
    """``exp(-z²) (1 + (1 + t) p(t)) / (1 + 2z)``, ``z = |x|``; for negative ``x``, 2 minus that."""
    floats = _Floats(ctx)
    full, tables = floats.full, floats.tables
    z = hlo.clamp(full(0), hlo.abs(x), full(tables.largest))
    center = full(tables.center)
    inverse = hlo.divide(full(1), hlo.add(z, center))
    t = hlo.multiply(hlo.subtract(z, center), inverse)
    factor = hlo.multiply(hlo.multiply(hlo.add(z, z), inverse), floats.horner(t, tables.erfc))
    n = hlo.round_nearest_even(hlo.multiply(hlo.multiply(z, z), full(-1 / math.log(2))))
    # -z² - n log 2. No product is rounded before a sum: LLVM may contract the two operations.
    head = floats.head(z)
    rest = hlo.negate(hlo.multiply(head, head))
    for part in tables.log2:
        rest = hlo.subtract(rest, hlo.multiply(n, full(part)))
    rest = hlo.subtract(rest, hlo.multiply(hlo.subtract(z, head), hlo.add(z, head)))
    bell = floats.horner(rest, (1.0, *tables.exponential))
    value = hlo.divide(hlo.add(bell, hlo.multiply(bell, factor)), hlo.add(full(1), hlo.add(z, z)))
    value = floats.scaled(value, n)
    negative = compare("LT", x, full(0), floats.dtype)
    return hlo.select(negative, hlo.subtract(full(2), value), value)
