"""Former names of the functions about processes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Final

import primax_core

from ._deprecations import REMOVAL


def _renamed(old: str, new: str) -> Callable[..., Any]:
    current = getattr(primax_core, new)

    def call(backend: str | None = None) -> Any:
        warnings.warn(
            f"primax.{old} has been renamed to primax.{new} and will be "
            f"removed in Primax {REMOVAL}: please update your code.",
            UserWarning,
            stacklevel=2,
        )
        return current() if backend is None else current(backend)

    call.__name__ = call.__qualname__ = old
    call.__doc__ = f"A former name of :func:`primax.{new}`."
    return call


host_count: Final = _renamed("host_count", "process_count")
host_id: Final = _renamed("host_id", "process_index")
host_ids: Final = _renamed("host_ids", "process_indices")
