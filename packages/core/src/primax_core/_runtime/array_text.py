"""Concrete arrays as text: ``repr``, ``str`` and ``format``."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._ir.avals import ShapedArray

_OPEN = "Array("


def repr_of(aval: ShapedArray, value: np.ndarray) -> str:
    """``Array([0., 1.], dtype=float32)``."""
    notes = [f"dtype={aval.dtype.name}"]
    if aval.weak_type:
        notes.append("weak_type=True")
    if not aval.size:
        return f"{_OPEN}[], shape={aval.shape}, {', '.join(notes)})"
    body = np.array2string(value, separator=", ", prefix=_OPEN, suffix=",")
    tail = f"{', '.join(notes)})"
    last = body.rpartition("\n")[2]
    used = len(last) + (0 if "\n" in body else len(_OPEN))
    if used + len(", ") + len(tail) > np.get_printoptions()["linewidth"]:
        return f"{_OPEN}{body},\n{' ' * len(_OPEN)}{tail}"
    return f"{_OPEN}{body}, {tail}"


def format_of(value: np.ndarray, spec: str) -> str:
    """A scalar formatted as Python's number is; other arrays take no format."""
    if not value.ndim:
        return format(value.item(), spec)
    if spec:
        raise TypeError("unsupported format string passed to Array.__format__")
    return str(value)


def deleted_text(aval: Any) -> str:
    """``Array has been deleted with shape=float32[3].``"""
    return f"Array has been deleted with shape={aval.strip_weak_type()}."
