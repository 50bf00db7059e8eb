"""The compiled library, and the registration of its handlers."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Final

from primax_core.extend import native

_SUFFIX: Final = ".dylib" if sys.platform == "darwin" else ".so"
PATH: Final = Path(__file__).with_name(f"libprimax_ffi_cpu{_SUFFIX}")

PREFIX: Final = "primax_cpu_"
"""First part of the names of all handlers."""

HANDLERS: Final = (
    "cumlogsumexp", "cummax", "cummin", "cumprod", "cumsum", "order_statistics", "sort",
    "top_k",
)  # fmt: skip
"""Names of the library's handlers, without the prefix."""


def _load() -> ctypes.CDLL:
    if not PATH.is_file():
        raise ImportError(
            f"primax-ffi-cpu has no compiled library: {PATH} does not exist. Install the wheel "
            "(pip install primax-ffi-cpu), or build the library of a checkout: "
            "cmake -S packages/ffi_cpu -B build/ffi_cpu && cmake --build build/ffi_cpu && "
            "cmake --install build/ffi_cpu"
        )
    return ctypes.CDLL(str(PATH))


def register() -> None:
    """Register the handlers; XLA receives them when a program needs one."""
    library = _load()
    for name in HANDLERS:
        native.register(PREFIX + name, getattr(library, PREFIX + name))
