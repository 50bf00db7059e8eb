"""Lowered kernels as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from primax_core import jit


def lower_as_mlir(
    f: Callable[..., Any], *args: Any, dynamic_shapes: bool = False, device: None = None,
    static_argnames: Sequence[str] = (), platforms: Sequence[str] | None = None, **kwargs: Any,
) -> str:  # fmt: skip
    """The module of a function, as text in StableHLO.

    Args:
      f: a function of arrays that may call kernels.
      args, kwargs: its arguments, or their shapes and dtypes.
      dynamic_shapes: not supported.
      device: not supported; use ``platforms``.
      static_argnames: names of arguments that are compile-time constants.
      platforms: one platform to lower for, by default that of the default device.

    Raises:
      NotImplementedError: for ``dynamic_shapes`` or ``device``.
      ValueError: for several platforms.
    """
    if dynamic_shapes or device is not None:
        what = "dynamic_shapes" if dynamic_shapes else "a device"
        raise NotImplementedError(f"lower_as_mlir with {what} is not supported")
    if platforms is not None and len(platforms) != 1:
        raise ValueError(f"lower_as_mlir lowers for one platform, got {platforms!r}")
    traced = jit(f, static_argnames=tuple(static_argnames)).trace(*args, **kwargs)
    options = {} if platforms is None else {"lowering_platforms": tuple(platforms)}
    return traced.lower(**options).as_text()
