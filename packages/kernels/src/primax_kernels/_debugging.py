"""Checks inside of kernels, and the option that switches them on."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from primax_core import debug, lax
from primax_core.extend import typeof
from primax_core.extend.runtime import ErrorWithPage, define_option

from ._typing import ArrayLike


class KernelCheckError(ErrorWithPage, RuntimeError, page=True):
    """An access that the check of a kernel refuses, or a failed `debug_check`.

    The message has the step, the reference, the element, and the line of the kernel.
    """


enable_debug_checks: Final[Any] = define_option(
    "pallas_enable_debug_checks",
    bool,
    False,
    "trace",
    "evaluate the conditions of debug_check in kernels",
)
"""The option, and a context manager that sets it: ``with enable_debug_checks(True): ...``."""


def debug_check(condition: ArrayLike, message: str) -> None:
    """Check a condition when the kernel runs, if `enable_debug_checks` is set while tracing.

    Args:
      condition: a Boolean scalar.
      message: the text of the error.

    Raises:
      TypeError: if the condition is no Boolean scalar.
      KernelCheckError: where a result of the kernel is used, if the condition does not hold.
    """
    aval = typeof(condition)
    if aval.shape != () or aval.dtype != np.dtype(bool):
        raise TypeError(f"debug_check takes a Boolean scalar, got {aval}")
    if enable_debug_checks.value:

        def check(holds: Any) -> None:
            if not holds:
                raise KernelCheckError(f"debug_check failed: {message}")

        debug.callback(check, lax.convert_element_type(condition, bool))


def delay(nanos: ArrayLike) -> None:
    """Wait, on accelerators, for a number of nanoseconds. Steps on a CPU have nothing to wait for.

    Raises:
      TypeError: if ``nanos`` is no integer.
    """
    if typeof(nanos).dtype.kind not in "iu":
        raise TypeError(f"delay takes an integer, got {nanos!r}")
