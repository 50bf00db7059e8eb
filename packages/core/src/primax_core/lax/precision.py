"""Precision of matrix products and convolutions."""

from __future__ import annotations

import enum
from typing import Any, Final, NamedTuple

import ml_dtypes
import numpy as np

from .._base.config import state
from .._ir import dtypes
from .._lower.lazy import hlo, ir, mlir


class Precision(enum.Enum):
    """Precision of ``float32`` products on an accelerator; a CPU always uses full precision.

    ``DEFAULT`` is the fastest mode, ``HIGH`` an intermediate one, ``HIGHEST`` full ``float32``.
    It is the argument ``precision`` of products and convolutions; a pair has one for each
    operand. The option ``default_matmul_precision`` sets it where the argument is ``None``.

    Args:
      value: a member, or a text: the lowercase names of the members, ``"float32"``,
        ``"tensorfloat32"``, ``"bfloat16_3x"``, ``"bfloat16"`` and ``"fastest"``.

    Raises:
      ValueError: for another text.

    >>> Precision("float32")
    Precision.HIGHEST
    >>> from primax_core import lax
    >>> x = np.ones((2, 2), np.float32)
    >>> lax.dot(x, x, precision=Precision.HIGHEST).tolist()
    [[2.0, 2.0], [2.0, 2.0]]
    """

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    @classmethod
    def _missing_(cls, value):
        return cls.__members__.get(_NAMES.get(value, ""))

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    def __str__(self) -> str:
        return self.name


_NAMES: Final[dict[Any, str]] = {
    "highest": "HIGHEST",
    "float32": "HIGHEST",
    "high": "HIGH",
    "bfloat16_3x": "HIGH",
    "tensorfloat32": "HIGH",
    "default": "DEFAULT",
    "bfloat16": "DEFAULT",
    "fastest": "DEFAULT",
    None: "DEFAULT",
}


class DotAlgorithm(NamedTuple):
    """Full description of the algorithm of a product.

    Attributes:
      lhs_precision_type, rhs_precision_type: dtypes to which the operands are rounded.
      accumulation_type: dtype of the sums.
      lhs_component_count, rhs_component_count: number of parts into which an operand is split.
      num_primitive_operations: number of products of parts that are summed.
      allow_imprecise_accumulation: permit sums with fewer bits.
    """

    lhs_precision_type: Any
    rhs_precision_type: Any
    accumulation_type: Any
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False


class DotAlgorithmPreset(enum.Enum):
    """Named algorithms of hardware: ``LHS_RHS_ACCUMULATION``.

    ``X3``, ``X6`` and ``X9`` are the number of products of parts of the operands that are summed.
    Operands of other dtypes are converted, and the result is converted back.
    """

    DEFAULT = enum.auto()
    ANY_F8_ANY_F8_F32 = enum.auto()
    ANY_F8_ANY_F8_F32_FAST_ACCUM = enum.auto()
    ANY_F8_ANY_F8_ANY = enum.auto()
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = enum.auto()
    F16_F16_F16 = enum.auto()
    F16_F16_F32 = enum.auto()
    BF16_BF16_BF16 = enum.auto()
    BF16_BF16_F32 = enum.auto()
    BF16_BF16_F32_X3 = enum.auto()
    BF16_BF16_F32_X6 = enum.auto()
    BF16_BF16_F32_X9 = enum.auto()
    TF32_TF32_F32 = enum.auto()
    TF32_TF32_F32_X3 = enum.auto()
    F32_F32_F32 = enum.auto()
    F64_F64_F64 = enum.auto()

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    def __str__(self) -> str:
        return self.name

    @property
    def supported_lhs_types(self) -> tuple[Any, ...] | None:
        """Dtypes of a left operand that need no conversion; ``None`` if all are accepted."""
        return _PRESETS[self.name].operands

    @property
    def supported_rhs_types(self) -> tuple[Any, ...] | None:
        """Dtypes of a right operand that need no conversion; ``None`` if all are accepted."""
        return _PRESETS[self.name].operands

    @property
    def accumulation_type(self) -> Any:
        """The dtype of the sums; ``None`` if it depends on the operands."""
        return _PRESETS[self.name].sums

    def supported_output_types(self, lhs_dtype: Any, rhs_dtype: Any) -> tuple[Any, ...] | None:
        """Dtypes of results that need no conversion; ``None`` if all are supported."""
        sums = self.accumulation_type
        if sums is None:
            return None
        if self.name.startswith("ANY_F8"):
            return (np.float32, np.float16, ml_dtypes.bfloat16, *_F8)
        both_bf16 = np.dtype(lhs_dtype) == np.dtype(rhs_dtype) == dtypes.bf16
        if self is DotAlgorithmPreset.BF16_BF16_F32 and both_bf16:
            return (sums, ml_dtypes.bfloat16)
        return (sums,)


class _Preset(NamedTuple):
    operands: tuple[Any, ...] | None  # accepted dtypes; others are converted to the first
    rounded: str | None  # dtype to which operands are rounded within the product
    sums: Any
    operations: int = 1
    imprecise: bool = False


_F8: Final = (
    ml_dtypes.float8_e4m3fn,
    ml_dtypes.float8_e5m2,
    ml_dtypes.float8_e5m2fnuz,
    ml_dtypes.float8_e4m3fnuz,
    ml_dtypes.float8_e4m3b11fnuz,
)
_BF16_OR_F32: Final = (ml_dtypes.bfloat16, np.float32)

_PRESETS: Final[dict[str, _Preset]] = {
    "DEFAULT": _Preset(None, None, None),
    "ANY_F8_ANY_F8_F32": _Preset(None, "f8", np.float32),
    "ANY_F8_ANY_F8_F32_FAST_ACCUM": _Preset(None, "f8", np.float32, imprecise=True),
    "ANY_F8_ANY_F8_ANY": _Preset(None, "f8", None),
    "ANY_F8_ANY_F8_ANY_FAST_ACCUM": _Preset(None, "f8", None, imprecise=True),
    "F16_F16_F16": _Preset((np.float16,), "f16", np.float16),
    "F16_F16_F32": _Preset((np.float16,), "f16", np.float32),
    "BF16_BF16_BF16": _Preset(_BF16_OR_F32, "bf16", ml_dtypes.bfloat16),
    "BF16_BF16_F32": _Preset(_BF16_OR_F32, "bf16", np.float32),
    "BF16_BF16_F32_X3": _Preset((np.float32,), "bf16", np.float32, 3),
    "BF16_BF16_F32_X6": _Preset((np.float32,), "bf16", np.float32, 6),
    "BF16_BF16_F32_X9": _Preset((np.float32,), "bf16", np.float32, 9),
    "TF32_TF32_F32": _Preset((np.float32,), "tf32", np.float32),
    "TF32_TF32_F32_X3": _Preset((np.float32,), "tf32", np.float32, 3),
    "F32_F32_F32": _Preset((np.float32,), "f32", np.float32),
    "F64_F64_F64": _Preset((np.float64,), "f64", np.float64),
}

PrecisionLike = (
    Precision
    | str
    | tuple[str, str]
    | tuple[Precision, Precision]
    | DotAlgorithm
    | DotAlgorithmPreset
    | None
)

CanonicalPrecision = tuple[Precision, Precision] | DotAlgorithm | DotAlgorithmPreset | None


def canonical_precision(precision: PrecisionLike) -> CanonicalPrecision:
    """The parameter for a ``precision`` argument; the configured precision for ``None``.

    Raises:
      ValueError: if the argument is not of an accepted form.
    """
    if precision is None:
        precision = state.default_matmul_precision
        if precision is None:
            return None
    if isinstance(precision, (DotAlgorithm, DotAlgorithmPreset)):
        return precision
    if isinstance(precision, str) and precision in DotAlgorithmPreset.__members__:
        return DotAlgorithmPreset[precision]
    parts = precision if isinstance(precision, (tuple, list)) else (precision, precision)
    if len(parts) == 2 and all(isinstance(p, (Precision, str, type(None))) for p in parts):
        try:
            return (Precision(parts[0]), Precision(parts[1]))
        except ValueError:
            pass
    names = ", ".join(repr(n) for n in _NAMES if n)
    raise ValueError(
        f"Precision argument must be one of: None, one of the strings {names}; a lax.Precision; a "
        "tuple of two of these; a lax.DotAlgorithmPreset or its name; or a lax.DotAlgorithm; but "
        f"got {precision}."
    )


# Lowering


def precision_attr(precision: CanonicalPrecision) -> Any:
    """The attribute ``precision = [...]`` of an MLIR operation."""
    pair = precision if type(precision) is tuple else (Precision.DEFAULT, Precision.DEFAULT)
    return ir.ArrayAttr.get([hlo.PrecisionAttr.get(p.name) for p in pair])


# The algorithms that XLA's CPU backend supports.
_ON_CPU: Final = frozenset({
    "F16_F16_F16", "F32_F32_F32", "F64_F64_F64",
    "BF16_BF16_F32", "BF16_BF16_F32_X3", "BF16_BF16_F32_X6",
})  # fmt: skip


class Algorithm(NamedTuple):
    """Dtypes and attribute of a lowered product."""

    lhs: Any  # dtypes to which the operands are converted
    rhs: Any
    out: Any  # the dtype of the product
    attr: Any


def lowered_algorithm(
    platform: str, precision: CanonicalPrecision, lhs: Any, rhs: Any, out: Any
) -> Algorithm | None:
    """The algorithm for operands and result dtypes; ``None`` for the platform's default.

    Raises:
      ValueError: if the platform does not support the algorithm.
    """
    if precision is None or type(precision) is tuple or precision is DotAlgorithmPreset.DEFAULT:
        return None
    if isinstance(precision, DotAlgorithmPreset):
        preset = _PRESETS[precision.name]
        if platform == "cpu" and precision.name not in _ON_CPU:
            raise _unsupported(precision, platform)
        lhs, rhs = _accepted(lhs, preset.operands), _accepted(rhs, preset.operands)
        outs = precision.supported_output_types(lhs, rhs)
        out = out if outs is None or any(out == np.dtype(d) for d in outs) else np.dtype(outs[0])
        types = [
            mlir.element_type(d) if preset.rounded == "f8" else _float_type(preset.rounded)
            for d in (lhs, rhs)
        ]
        sums = mlir.element_type(out if preset.sums is None else np.dtype(preset.sums))
        attr = hlo.DotAlgorithm.get(*types, sums, 1, 1, preset.operations, preset.imprecise)
        return Algorithm(lhs, rhs, out, attr)
    assert isinstance(precision, DotAlgorithm)
    if platform == "cpu" and precision not in _same_as_presets():
        raise _unsupported(precision, platform)
    precision_dtypes = [np.dtype(d) for d in precision[:3]]
    attr = hlo.DotAlgorithm.get(*[mlir.element_type(d) for d in precision_dtypes], *precision[3:])
    return Algorithm(precision_dtypes[0], precision_dtypes[1], precision_dtypes[2], attr)


def _accepted(dtype: Any, operands: tuple[Any, ...] | None) -> Any:
    if operands is None or any(dtype == np.dtype(d) for d in operands):
        return dtype
    return np.dtype(operands[0])


def _float_type(name: str | None) -> Any:
    kinds = {"f16": "F16Type", "bf16": "BF16Type", "tf32": "FloatTF32Type", "f32": "F32Type"}
    return getattr(ir, kinds.get(name or "", "F64Type")).get()


def _same_as_presets() -> list[DotAlgorithm]:
    """The algorithms of the CPU as full descriptions."""
    rounded = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}
    rows = [_PRESETS[name] for name in _ON_CPU]
    return [
        DotAlgorithm(rounded[r.rounded or ""], rounded[r.rounded or ""], r.sums, 1, 1, r.operations)
        for r in rows
    ]


def _unsupported(precision: Any, platform: str) -> ValueError:
    return ValueError(
        f"The precision '{precision}' is not supported by dot_general on {platform.upper()}, which "
        f"supports {', '.join(sorted(_ON_CPU))}. A lax.Precision works on every platform."
    )
