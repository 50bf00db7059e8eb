"""Checks of operations that crash XLA if their parts are inconsistent, although StableHLO accepts
them.

Found by mutating the modules of every primitive's samples and compiling the accepted ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from jaxlib.mlir import ir

from . import comparators, solver_calls


def _compare(op: Any) -> str:
    """Comparing integers as floats crashes LLVM."""
    if "compare_type" not in op.attributes:
        return ""
    kind = str(op.attributes["compare_type"])
    element = ir.RankedTensorType(op.operands[0].type).element_type
    integers = isinstance(element, ir.IntegerType)
    suits = ("SIGNED", "UNSIGNED", "NOTYPE") if integers else ("FLOAT", "TOTALORDER", "NOTYPE")
    return "" if any(f" {s}>" in kind for s in suits) else f"it compares {element} by {kind}"


def _fft(op: Any) -> str:
    """The CPU routine ends the process if the lengths are not those of the operand."""
    operand, result = (ir.RankedTensorType(v.type) for v in (op.operands[0], op.results[0]))
    if not (operand.has_static_shape and result.has_static_shape):
        return ""
    lengths = list(ir.DenseI64ArrayAttr(op.attributes["fft_length"]))
    kind = str(op.attributes["fft_type"])
    n = len(lengths)
    if not 1 <= n <= min(operand.rank, result.rank) or min(lengths) < 1:
        return f"its lengths are {lengths}"
    half = [*lengths[:-1], lengths[-1] // 2 + 1]
    taken = half if " IRFFT>" in kind else lengths
    returned = half if " RFFT>" in kind else lengths
    fits = operand.shape[-n:] == taken and result.shape[-n:] == returned
    return "" if fits else f"its lengths are {lengths} for {operand} and {result}"


# Custom calls that return their operands unchanged.
_SAME: Final = frozenset(("LayoutConstraint", "Sharding", "annotate_device_placement"))


def _custom_call(op: Any) -> str:
    target = ir.StringAttr(op.attributes["call_target_name"]).value
    if target in _SAME and [v.type for v in op.operands] != [v.type for v in op.results]:
        return f"{target} returns another type than its operand's"
    return solver_calls.problem_of(target, op) if solver_calls.is_known(target) else ""


def _sort(op: Any) -> str:
    """A comparator that is not an order makes the sort leave its buffer, or not end."""
    if comparators.is_order(op.regions[0]):
        return ""
    return "its comparator is not recognized as a strict order"


# Windows, strides, dilations and padding; XLA multiplies them without checks of overflow, and its
# loops visit every element of a window.
_WINDOW: Final = (
    "window_dimensions", "window_strides", "window_dilations", "base_dilations", "padding",
    "lhs_dilation", "rhs_dilation", "edge_padding_low", "edge_padding_high", "interior_padding",
)  # fmt: skip
_LARGEST: Final = 2**31


def _windows(op: Any) -> str:
    for name in _WINDOW:
        if name not in op.attributes:
            continue
        attribute = op.attributes[name]
        if isinstance(attribute, ir.DenseI64ArrayAttr):
            sizes = list(attribute)
        else:
            sizes = np.asarray(ir.DenseIntElementsAttr(attribute)).ravel().tolist()
        if any(abs(n) >= _LARGEST for n in sizes):
            return f"its {name} are {sizes}"
        if name == "window_dimensions" and math.prod(sizes) >= _LARGEST:
            return f"its windows have {math.prod(sizes)} elements"
    return ""


_CHECKS: Final[dict[str, Callable[[Any], str]]] = {
    "stablehlo.compare": _compare,
    "stablehlo.custom_call": _custom_call,
    "stablehlo.convolution": _windows,
    "stablehlo.fft": _fft,
    "stablehlo.pad": _windows,
    "stablehlo.reduce_window": _windows,
    "stablehlo.select_and_scatter": _windows,
    "stablehlo.sort": _sort,
}


def problem_of(op: Any) -> str:
    """The error in an operation, or ``""``."""
    check = _CHECKS.get(op.name)
    return "" if check is None else check(op)
