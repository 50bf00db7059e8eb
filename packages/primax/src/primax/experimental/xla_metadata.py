"""Metadata for XLA: the reference's ``jax.experimental.xla_metadata``.

Primax does not pass metadata to XLA. It would change the schedule of a program, but no results, so
these functions warn and continue.
"""

from __future__ import annotations

import contextlib as _contextlib
import warnings as _warnings
from collections.abc import Callable
from typing import Any


def set_xla_metadata(x: Any = None, **kwargs: Any) -> Any:
    """The value ``x``, or a context manager without ``x``; the metadata have no effect."""
    _warn("set_xla_metadata", kwargs)
    return _contextlib.nullcontext() if x is None else x


def xla_metadata_call(f: Callable[..., Any] | None = None, /, **meta: Any) -> Any:
    """The function ``f``, or a decorator without ``f``; the metadata have no effect."""
    _warn("xla_metadata_call", meta)
    return (lambda fun: fun) if f is None else f


def _warn(function: str, metadata: dict[str, Any]) -> None:
    if metadata:
        _warnings.warn(
            f"{function}: the metadata {', '.join(metadata)} are ignored: Primax does not pass "
            "metadata to XLA",
            UserWarning,
            stacklevel=3,
        )
