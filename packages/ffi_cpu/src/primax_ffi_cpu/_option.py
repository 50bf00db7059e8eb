"""The option that switches the native kernels off."""

from __future__ import annotations

from typing import Final

from primax_core.extend.runtime import define_option

native_kernels: Final = define_option(
    "native",
    bool,
    True,
    "trace",  # lowering rules read it, so it belongs to the keys of executables on disk
    "run operations on CPUs with the native kernels of primax-ffi-cpu",
)
