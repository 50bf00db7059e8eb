"""Module aliases of the facade, such as ``primax.lax``.

A module of an optional wheel is imported on first use; if the wheel is missing, the error contains
the command that installs it. Type checkers read the files beside this module.
"""

from __future__ import annotations

from typing import Final

import primax_core

from . import _aliases

CORE: Final = (
    "ad",
    "ad_checkpoint",
    "custom_batching",
    "dlpack",
    "dtypes",
    "flatten_util",
    "lax",
    "memory",
    "monitoring",
    "ref",
    "stages",
    "test_util",
    "tree",
    "tree_util",
    "typing",
)

EXPERIMENTAL: Final = ("layout", "serialize_executable")
"""Modules of the core that appear below ``primax.experimental``."""

OPTIONAL: Final = {
    "distributed": "primax_distributed.processes",
    "example_libraries": "primax_nn.example_libraries",
    "experimental.array_serialization": "primax_distributed.array_serialization",
    "experimental.buffer_callback": "primax_ffi.buffer_callback",
    "experimental.checkify": "primax_interpreters.checkify",
    "experimental.custom_partitioning": "primax_distributed.custom_partitioning",
    "experimental.jet": "primax_interpreters.jet",
    "experimental.mesh_utils": "primax_distributed.mesh_utils",
    "experimental.multihost_utils": "primax_distributed.multihost_utils",
    "experimental.ode": "primax_scipy.experimental.ode",
    "experimental.pallas": "primax_kernels",
    "experimental.pallas.tpu": "primax_kernels.tpu",
    "experimental.pallas.triton": "primax_kernels.triton",
    "experimental.sparse": "primax_scipy.experimental.sparse",
    "ffi": "primax_ffi",
    "image": "primax_numpy.image",
    "insight": "primax_interpreters.insight",
    "nn": "primax_nn",
    "numpy": "primax_numpy",
    "ops": "primax_numpy.ops",
    "profiler": "primax_interpreters.profiler",
    "random": "primax_numpy.random",
    "scipy": "primax_scipy",
}
"""Modules of optional wheels by facade name."""

OWN: Final = (
    "api_util",
    "core",
    "debug",
    "experimental",
    "export",
    "extend",
    "interpreters",
    "sharding",
)
"""Modules of the facade itself, imported on first use."""

EXTENDED: Final = ("custom_derivatives", "debug", "errors", "export")
"""Modules of the facade with the names of the core's module, and names of the reference or of an
optional wheel."""

EXTENSION_API: Final = (
    "dimensions",
    "elementwise",
    "fast_path",
    "jaxprs",
    "lowering",
    "portable_modules",
    "runtime",
    "traces",
)
"""Modules of the extension API that appear below ``primax.extend``."""

EXTRAS: Final = {
    "primax_distributed": "distributed",
    "primax_ffi": "ffi",
    "primax_ffi_cpu": "native",
    "primax_interpreters": "interpreters",
    "primax_kernels": "kernels",
    "primax_nn": "nn",
    "primax_numpy": "numpy",
    "primax_scipy": "scipy",
}
"""Extras of the facade by optional wheel."""

_BELOW: Final = {"": CORE, ".experimental": EXPERIMENTAL, ".extend": EXTENSION_API}


def _in_core(below: str, name: str) -> str:
    """Return the core module with the aliased ``name`` below a part of the facade."""
    return f"{primax_core.__name__}{'.extend' if below == '.extend' else ''}.{name}"


_aliases.install(
    {
        **{
            f"{__package__}{below}.{name}": _in_core(below, name)
            for below, names in _BELOW.items()
            for name in names
        },
        **{f"{__package__}.{name}": module for name, module in OPTIONAL.items()},
    },
    EXTRAS,
)
