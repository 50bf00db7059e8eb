"""Comparison of the results of two runs."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

# Relative tolerance by the width of the narrowest floating-point type of a program.
TOLERANCES = {"bfloat16": 0.05, "float16": 0.01, "float32": 2e-4, "float64": 1e-8}
# Relative disturbance of the inputs; a result may move by this many times its own movement.
DISTURBANCES = {"bfloat16": 4e-3, "float16": 1e-3, "float32": 1e-6, "float64": 1e-11}
MOVEMENT = 100.0
# Errors of the reference where Primax has an answer: limits of the reference.
LIMITS = (
    "NotImplementedError",
    "AssertionError",
    "Linearization failed to produce known values",
    "gt does not accept dtype complex",  # derivatives of the maximum of complex numbers
    "can't apply forward-mode autodiff (jvp) to a custom_vjp function",  # with integer results
    "at vmap out_axes[0], got axis spec None but output was batched",  # jacfwd and references
    "Can only use `unroll` in `fori_loop` if the loop bounds are statically known",
    "index is out of bounds for axis",  # trapezoid of no points
    "Slice size at index 0 in gather op is out of range",  # derivatives at an axis of size 0
    "reduce operand dtypes should match",
    "rev dimensions must have every element be nonnegative",  # associative_scan, axis < 0
    "reduce_window got inconsistent dtypes",  # Python scalars as initial values
    "No constant handler for type",  # compiled functions with custom rules around loops
    "select cases must have the same shapes",  # second derivatives of clamp with a scalar bound
    # Here, carried values that do not depend on the carried values have derivatives.
    "Reverse-mode differentiation does not work for lax.while_loop",
)
# Errors of Primax where the reference has an answer, by design.
OURS = (
    # The reference passes on carried values that the body returns unchanged.
    "Reverse-mode differentiation does not work for lax.while_loop",
)


def array(leaf: dict[str, Any]) -> np.ndarray:
    """The elements of a result."""
    data = np.frombuffer(base64.b64decode(leaf["data"]), np.dtype(leaf["kind"]))
    return data.reshape(leaf["shape"])


def differs(
    ours: dict[str, Any], theirs: dict[str, Any], width: str, weak: bool = True
) -> str | None:
    """How two answers differ; None if they agree."""
    if "error" in ours or "error" in theirs:
        if "error" in ours and "error" in theirs:
            return None
        if any(text in theirs.get("error", "") for text in LIMITS):
            return None
        if any(text in ours.get("error", "") for text in OURS):
            return None
        side = "Primax" if "error" in ours else "the reference"
        return f"only {side} raises: {ours.get('error') or theirs.get('error')}"
    a, b = ours["leaves"], theirs["leaves"]
    if len(a) != len(b):
        return f"{len(a)} results, expected {len(b)}"
    for i, (x, y) in enumerate(zip(a, b, strict=True)):
        for what in ("shape", "dtype", "weak"):
            if x[what] != y[what] and (what != "weak" or weak):
                return f"result {i}: {what} {x[what]}, expected {y[what]}"
        if problem := _values(array(x), array(y), TOLERANCES[width]):
            return f"result {i}: {problem}"
    return None


def _values(a: np.ndarray, b: np.ndarray, tolerance: float) -> str | None:
    if a.dtype.kind in "biuV":
        same = np.array_equal(a, b)
    else:
        wide = np.complex128 if a.dtype.kind == "c" else np.float64
        x, y = a.astype(wide), b.astype(wide)
        same = not (_distance(x, y) > tolerance * (np.abs(y) + _scale(y))).any()
    if same:
        return None
    return f"value {_short(a)}, expected {_short(b)}"


def _scale(y: np.ndarray) -> float:
    finite = np.abs(y[np.isfinite(y)])
    return min(1.0, max(1e-3, float(finite.max()))) if finite.size else 0.0


def _distance(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Absolute differences; infinite where one is no number or infinite and the other is not."""
    with np.errstate(all="ignore"):
        d = np.abs(x - y)
    d = np.where((x == y) | (np.isnan(x) & np.isnan(y)), 0.0, d)
    return np.where(np.isnan(d), np.inf, d)


def unstable(
    ours: dict[str, Any], theirs: dict[str, Any], moved: dict[str, Any], width: str
) -> bool:
    """True if the difference of two answers is no larger than an ill-conditioned program's.

    Args:
      moved: the answer of one of them for disturbed inputs.
    """
    if any("error" in x for x in (ours, theirs, moved)):
        return False
    for x, y, z in zip(ours["leaves"], theirs["leaves"], moved["leaves"], strict=True):
        if x["shape"] != y["shape"] or x["dtype"] != y["dtype"]:
            return False
        a, b, c = array(x), array(y), array(z)
        if _values(a, b, TOLERANCES[width]) is None:
            continue
        if a.dtype.kind in "biuV":
            if np.array_equal(b, c):
                return False
            continue
        wide = np.complex128 if a.dtype.kind == "c" else np.float64
        a, b, c = a.astype(wide), b.astype(wide), c.astype(wide)
        allowed = TOLERANCES[width] * (np.abs(b) + _scale(b)) + MOVEMENT * _largest(_distance(b, c))
        if (_distance(a, b) > allowed).any():
            return False
    return True


def _largest(d: np.ndarray) -> float:
    return float(d.max()) if d.size else 0.0


def _short(x: np.ndarray) -> str:
    return np.array2string(x.ravel(), threshold=12, precision=9, separator=", ").replace("\n", "")
