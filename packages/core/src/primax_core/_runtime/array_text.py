"""Text of concrete arrays: ``repr``, ``str`` and ``format``."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from .._ir.avals import ShapedArray

_OPEN = "Array("

# The largest number of axes of a buffer in Python, and of an array in NumPy 2.
NUMPY_AXES: Final = 64


def unshaped(aval: ShapedArray, error: ValueError) -> ValueError:
    """The error of a conversion to NumPy, explained if the array has too many axes."""
    if aval.ndim <= NUMPY_AXES:
        return error
    return ValueError(
        f"an array with {aval.ndim} axes has no NumPy values: NumPy permits at most {NUMPY_AXES} "
        f"axes. Reshape it to fewer axes first. Its shape is {aval.shape}."
    )


def repr_of(aval: ShapedArray, value: np.ndarray | None) -> str:
    """``Array([0., 1.], dtype=float32)``; without values ``Array(shape=..., dtype=...)``."""
    tail = f"dtype={aval.dtype.name}{', weak_type=True' if aval.weak_type else ''})"
    if value is None:
        return f"{_OPEN}shape={aval.shape}, {tail}"
    if aval.size:
        body = np.array2string(value, separator=", ", prefix=_OPEN, suffix=",")
    else:
        body = f"[], shape={aval.shape}"
    last = body[body.rfind("\n") + 1 :]
    # If the dtype does not fit on the line, it is padded with spaces, while NumPy begins a new
    # line. Doctests of user code contain this format.
    fits = len(last) + len(tail) + 3 <= np.get_printoptions()["linewidth"]
    return f"{_OPEN}{body},{' ' if fits else ' ' * len(_OPEN)}{tail}"


def format_of(value: np.ndarray, spec: str) -> str:
    """A scalar in the format of a Python number; other arrays accept no format."""
    if not value.ndim:
        return format(value.item(), spec)
    if spec:
        raise TypeError("unsupported format string passed to Array.__format__")
    return str(value)


def deleted_text(array: Any) -> str:
    """``Array has been deleted with shape=float32[3].``, or why its values are lost."""
    lost = getattr(array._buf, "lost", None)  # only of an array of a left generation
    if lost is not None:
        return f"the array of type {array._spec.aval.str_short()} {lost}"
    return f"Array has been deleted with shape={array._spec.aval.strip_weak_type()}."
