"""Comparison of results with expected values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from primax_core import float0
from primax_core.extend import dtypes

# By dtype; complex dtypes have the tolerances of their parts, narrower floats the last one.
_TOLERANCES: Final = {"float64": 1e-12, "float32": 1e-5, "float16": 2e-2, "bfloat16": 2e-2}
_PARTS: Final = {"complex64": "float32", "complex128": "float64"}
_NARROW: Final = 0.25


def tolerance(dtype: Any, by_dtype: Mapping[str, float] | None = None) -> float:
    """The error allowed in results of a dtype: 0 for integers and booleans.

    Args:
      by_dtype: tolerances by names of real floating-point dtypes, instead of the usual ones.

    >>> tolerance(np.dtype("complex64")), tolerance(np.dtype("float16"), {"float16": 1e-3})
    (1e-05, 0.001)
    """
    dtype = np.dtype(dtype)
    if not dtypes.issubdtype(dtype, np.inexact):
        return 0.0
    name = _PARTS.get(dtype.name, dtype.name)
    return {**_TOLERANCES, **(by_dtype or {})}.get(name, _NARROW)


def wide(x: Any) -> np.ndarray:
    """The values in NumPy's widest float, which represents all 64-bit integers."""
    x = np.asarray(x)
    return x.astype(np.clongdouble if x.dtype.kind == "c" else np.longdouble)


def largest(x: Any) -> float:
    """The largest magnitude of the finite values, or 0."""
    x = wide(x)
    return float(np.max(np.abs(np.where(np.isfinite(x), x, 0)), initial=0.0))


def assert_close(
    actual: Any,
    expected: Any,
    *,
    rtol: float | Mapping[str, float] | None = None,
    atol: float | None = None,
    scaled: bool = False,
    check_dtype: bool = False,
    err_msg: str = "",
) -> None:
    """Raise ``AssertionError`` unless shapes are equal and values agree up to rounding.

    Lists, tuples and dictionaries are compared item by item if both sides are such. NaN equals
    NaN, and infinities must be equal.

    Args:
      rtol: relative error, by default :func:`tolerance` of the actual dtype; or a table for it.
      atol: absolute error, by default the same number.
      scaled: multiply the absolute error by the largest finite magnitude of ``expected``.
      check_dtype: require equal dtypes.
      err_msg: the first line of the error.

    >>> assert_close([np.float32(1), np.float32(2)], (1.000001, 2.0))
    """
    options = {"rtol": rtol, "atol": atol, "scaled": scaled, "check_dtype": check_dtype}
    if isinstance(actual, (list, tuple)) and isinstance(expected, (list, tuple)):
        if len(actual) != len(expected):
            lengths = f"{len(actual)} results where {len(expected)} are expected"
            raise AssertionError(_text(err_msg, lengths))
        for a, b in zip(actual, expected):
            assert_close(a, b, **options, err_msg=err_msg)
    elif isinstance(actual, dict) and isinstance(expected, dict):
        if actual.keys() != expected.keys():
            keys = f"keys {sorted(actual)} where {sorted(expected)} are expected"
            raise AssertionError(_text(err_msg, keys))
        for key, a in actual.items():
            assert_close(a, expected[key], **options, err_msg=err_msg)
    elif actual is None or expected is None:
        if actual is not expected:
            raise AssertionError(_text(err_msg, f"{actual!r} where {expected!r} is expected"))
    else:
        _assert_arrays_close(np.asarray(actual), np.asarray(expected), **options, err_msg=err_msg)


def _assert_arrays_close(
    actual: np.ndarray,
    expected: np.ndarray,
    rtol: float | Mapping[str, float] | None,
    atol: float | None,
    scaled: bool,
    check_dtype: bool,
    err_msg: str,
) -> None:
    if actual.shape != expected.shape:
        shapes = f"shape {actual.shape} where {expected.shape} is expected"
        raise AssertionError(_text(err_msg, shapes))
    zero_tangent = float0 in (actual.dtype, expected.dtype)
    if actual.dtype != expected.dtype and (check_dtype or zero_tangent):
        types = f"dtype {actual.dtype} where {expected.dtype} is expected"
        raise AssertionError(_text(err_msg, types))
    if zero_tangent:
        return
    by_dtype = rtol is None or isinstance(rtol, Mapping)
    relative = tolerance(actual.dtype, rtol) if by_dtype else rtol
    absolute = relative if atol is None else atol
    if scaled:
        absolute *= largest(expected)
    np.testing.assert_allclose(wide(actual), wide(expected), relative, absolute, err_msg=err_msg)


def _text(err_msg: str, problem: str) -> str:
    return f"{err_msg}: {problem}" if err_msg else problem
