"""Functions of ``float32`` that compute in ``float64``, for series that lose digits.

The result is rounded once, so its error is about half an ulp. Conversions do not depend on the
option ``enable_x64``. A TPU has no ``float64``; there such functions compute in ``float32``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from primax_core import custom_jvp, enable_x64, lax, tree

from ._custom_rules import jvp_along, moving
from ._elementary import is_double

_SINGLE = np.dtype(np.float32)
_DOUBLE = np.dtype(np.float64)


def _converted(x: Any, dtype: Any) -> Any:
    return lax.convert_element_type_p.bind(x, new_dtype=dtype, weak_type=False)


def _converting(fun: Callable[..., Any], *xs: Any) -> Any:
    """``fun`` of ``float32`` arrays in ``float64``, but on a TPU in ``float32``."""

    def converted(*xs: Any) -> Any:
        # Python numbers among the operations are rounded to float32 without the option.
        with enable_x64(True):
            out = fun(*[_converted(x, _DOUBLE) for x in xs])
            return tree.map(lambda y: _converted(y, _SINGLE), out)

    return lax.platform_dependent(*xs, tpu=fun, default=converted)


def in_double(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function of arrays of one dtype, ``float32`` or ``float64``, computed in ``float64``.

    Its derivatives are those of ``fun``, computed in ``float64`` too.

    Args:
      fun: a function that returns a pytree of floats of the dtype of its operands.
    """

    @custom_jvp
    def of_single(*xs: Any) -> Any:
        return _converting(fun, *xs)

    def _of_single_jvp(primals: Any, tangents: Any) -> Any:
        positions, n = moving(tangents), len(primals)
        change = lambda *args: jvp_along(fun, args[:n], positions, args[n:])
        return _converting(change, *primals, *[tangents[i] for i in positions])

    of_single.defjvp(_of_single_jvp, symbolic_zeros=True)

    @wraps(fun)
    def outer(*xs: Any) -> Any:
        return fun(*xs) if is_double(xs[0]) else of_single(*xs)

    return outer
