"""Hints for the TPU's compiler, which have no effect on CPUs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from primax_core import lax
from primax_core.extend import typeof

from ._memory_spaces import MemorySpace
from ._typing import ArrayLike, DTypeLike, Memory, PrecisionLike, Reference


def touch(ref: Reference) -> None:
    """Mark a reference as used, so that the compiler keeps its copies.

    Raises:
      TypeError: if ``ref`` is no reference.
    """
    _check_ref("touch", ref)


def annotate(
    ref: Reference,
    *,
    no_store: bool = False,
    no_bank_conflict: bool = False,
    no_hazard: bool = False,
    no_hazard_no_deps: bool = False,
) -> Any:
    """A reference for which the caller promises properties of its accesses.

    Args:
      ref: a reference or a view of one.
      no_store: it is not written.
      no_bank_conflict, no_hazard, no_hazard_no_deps: accesses do not meet in the same bank, or in
        the same element.

    Raises:
      TypeError: if ``ref`` is no reference.
    """
    _check_ref("annotate", ref)
    return ref


def trace_value(label: str, value: ArrayLike) -> None:
    """Add a scalar to the profile of a kernel; CPUs have no such profile.

    Raises:
      TypeError: if the label is no string, or the value no scalar.
    """
    if not isinstance(label, str):
        raise TypeError(f"trace_value takes a label, got {label!r}")
    if typeof(value).shape != ():
        raise TypeError(f"trace_value takes a scalar, got {typeof(value)}")


def with_memory_space_constraint(x: ArrayLike, memory_space: Memory) -> Any:
    """An array that is an operand of a kernel in a memory; all memories of a CPU are one.

    Args:
      x: an array.
      memory_space: a memory, such as ``HBM``.

    Raises:
      TypeError: if ``memory_space`` is none.
    """
    if not callable(memory_space) or not hasattr(memory_space, "value"):
        raise TypeError(
            f"with_memory_space_constraint takes a memory such as {MemorySpace.ANY!r}, got "
            f"{memory_space!r}"
        )
    return x


def conv(
    lhs: ArrayLike,
    rhs: ArrayLike,
    acc: ArrayLike | None = None,
    *,
    dimension_numbers: lax.ConvGeneralDilatedDimensionNumbers,
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] | None = None,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    window_reversal: Sequence[bool] | None = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: PrecisionLike | None = None,
    preferred_element_type: DTypeLike | None = None,
) -> Any:
    """A convolution, added to ``acc`` if there is one.

    Args:
      lhs, rhs: input and filter.
      acc: an array of the result's shape and dtype.
      padding: pairs of numbers, or ``"SAME"`` or ``"VALID"``; by default none.

    The other arguments, and the errors, are those of `lax.conv_general_dilated`.
    """
    rank = lhs.ndim - 2
    if window_reversal is not None and any(window_reversal):
        raise NotImplementedError("conv with window_reversal: reverse the filter with lax.rev")
    out = lax.conv_general_dilated(
        lhs, rhs, window_strides or (1,) * rank, "VALID" if padding is None else padding,
        lhs_dilation, rhs_dilation, dimension_numbers, feature_group_count, batch_group_count,
        precision, preferred_element_type,
    )  # fmt: skip
    return out if acc is None else lax.add(acc, out)


def _check_ref(function: str, ref: Any) -> None:
    if not hasattr(ref, "at") and not hasattr(ref, "base"):
        raise TypeError(f"{function} takes a reference, got {ref!r}")
