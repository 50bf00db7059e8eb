"""Comparison of results in the tests of libraries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from primax import dtypes, test_util, tree

check_grads = test_util.check_grads
check_jvp = test_util.check_jvp
check_vjp = test_util.check_vjp

_BY_BITS: Final = {64: 1e-15, 32: 1e-6, 16: 1e-3}


def _tolerance(dtype: np.dtype[Any], chosen: Any) -> float:
    if isinstance(chosen, Mapping):
        chosen = {np.dtype(d): value for d, value in chosen.items()}.get(dtype)
    if chosen is not None:
        return float(chosen)
    if not dtypes.issubdtype(dtype, np.inexact):
        return 0.0
    if dtype == dtypes.bfloat16:
        return 1e-2
    bits = dtype.itemsize * (4 if dtype.kind == "c" else 8)
    return _BY_BITS.get(bits, 1e-1)


def _check(x: Any, y: Any, atol: Any, rtol: Any, message: str) -> None:
    a, b = np.asarray(x), np.asarray(y)
    assert a.shape == b.shape, f"shapes {a.shape} and {b.shape} differ. {message}"
    kinds = [dtypes.canonicalize_dtype(v.dtype) for v in (a, b)]
    absolute = max(_tolerance(dtype, atol) for dtype in kinds)
    relative = max(_tolerance(dtype, rtol) for dtype in kinds)
    a, b = (v.astype(np.float32) if v.dtype.kind == "V" else v for v in (a, b))
    np.testing.assert_allclose(a, b, atol=absolute, rtol=relative, err_msg=message)


def check_close(xs: Any, ys: Any, atol: Any = None, rtol: Any = None, err_msg: str = "") -> None:
    """Check that two pytrees of arrays agree within tolerances.

    Args:
      xs, ys: pytrees of the same structure; leaves have equal shapes.
      atol, rtol: numbers, or mappings from dtypes to numbers; by default the rounding of the less
        precise dtype.
      err_msg: text for the error.

    Raises:
      AssertionError: if values or shapes differ.
      ValueError: if the structures differ.
    """
    tree.map(lambda x, y: _check(x, y, atol, rtol, err_msg), xs, ys)
