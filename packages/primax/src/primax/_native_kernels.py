"""Native kernels for operations on CPUs, where the wheel primax-ffi-cpu is installed.

Its rules must be in place before the first key of a cache is computed, so it is imported with the
facade, in about 1 % of its import time. ``PRIMAX_NATIVE=0`` prevents that.
"""

from __future__ import annotations

import os
import warnings
from importlib import import_module
from importlib.util import find_spec
from typing import Final

_OFF: Final = frozenset(("0", "false", "no", "off", "n", "f"))


def _load() -> None:
    if os.environ.get("PRIMAX_NATIVE", "").lower() in _OFF or find_spec("primax_ffi_cpu") is None:
        return
    try:
        import_module("primax_ffi_cpu")
    except (ImportError, OSError) as error:
        warnings.warn(
            f"primax-ffi-cpu is installed but cannot be used, so operations run without its "
            f"kernels: {error}",
            stacklevel=2,
        )


_load()
