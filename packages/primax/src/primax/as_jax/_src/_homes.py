"""Public homes of the names of the reference's private modules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any, Final

_PRIMITIVES: Final = "primax.extend.core.primitives"
_LAX: Final = ("primax.lax", _PRIMITIVES)
_NUMPY: Final = ("primax.numpy",)

HOMES: Final[Mapping[str, Sequence[str]]] = {
    "ad_checkpoint": ("primax.ad_checkpoint", "primax", _PRIMITIVES),
    "ad_util": ("primax.interpreters.ad", _PRIMITIVES),
    "api": ("primax", "primax.api_util"),
    "api_util": ("primax.api_util",),
    "array": ("primax",),
    "callback": ("primax", "primax.experimental"),
    "checkify": ("primax.experimental.checkify",),
    "compilation_cache": ("primax.experimental.compilation_cache.compilation_cache",),
    "config": (),
    "core": ("primax.core", "primax.extend.core", _PRIMITIVES),
    "custom_batching": ("primax.custom_batching",),
    "custom_derivatives": ("primax.custom_derivatives", _PRIMITIVES),
    "debugging": ("primax.debug", _PRIMITIVES),
    "dlpack": ("primax.dlpack",),
    "dtypes": ("primax.dtypes",),
    "errors": ("primax.errors",),
    "export": (),
    "export._export": ("primax.export",),
    "export.shape_poly": ("primax.export", "primax.core"),
    "flatten_util": ("primax.flatten_util",),
    "hijax": ("primax.experimental.hijax",),
    "image": (),
    "image.scale": ("primax.image",),
    "initializers": ("primax.nn.initializers",),
    "interpreters": (),
    "interpreters.ad": ("primax.interpreters.ad",),
    "interpreters.batching": ("primax.interpreters.batching",),
    "interpreters.mlir": ("primax.interpreters.mlir",),
    "interpreters.partial_eval": ("primax.interpreters.partial_eval",),
    "interpreters.pxla": ("primax.interpreters.pxla",),
    "interpreters.xla": ("primax.interpreters.xla",),
    "lax": ("primax.lax",),
    "lax.ann": _LAX,
    "lax.control_flow": _LAX,
    "lax.control_flow.common": _LAX,
    "lax.control_flow.conditionals": _LAX,
    "lax.control_flow.loops": _LAX,
    "lax.control_flow.solves": _LAX,
    "lax.convolution": _LAX,
    "lax.fft": _LAX,
    "lax.lax": _LAX,
    "lax.linalg": ("primax.lax.linalg", _PRIMITIVES),
    "lax.other": _LAX,
    "lax.parallel": _LAX,
    "lax.slicing": _LAX,
    "lax.special": _LAX,
    "lax.windowed_reductions": _LAX,
    "layout": ("primax.experimental.layout",),
    "linear_util": ("primax.extend.linear_util",),
    "mesh": ("primax.sharding",),
    "mesh_utils": ("primax.experimental.mesh_utils",),
    "monitoring": ("primax.monitoring",),
    "named_sharding": ("primax.sharding",),
    "nn": ("primax.nn",),
    "nn.functions": ("primax.nn",),
    "nn.initializers": ("primax.nn.initializers",),
    "numpy": _NUMPY,
    "numpy.array": _NUMPY,
    "numpy.array_creation": _NUMPY,
    "numpy.einsum": _NUMPY,
    "numpy.fft": ("primax.numpy.fft",),
    "numpy.index_tricks": _NUMPY,
    "numpy.indexing": _NUMPY,
    "numpy.lax_numpy": _NUMPY,
    "numpy.linalg": ("primax.numpy.linalg",),
    "numpy.polynomial": _NUMPY,
    "numpy.reductions": _NUMPY,
    "numpy.setops": _NUMPY,
    "numpy.sorting": _NUMPY,
    "numpy.tensor_contractions": _NUMPY,
    "numpy.ufunc_api": _NUMPY,
    "numpy.ufuncs": _NUMPY,
    "numpy.vectorize": _NUMPY,
    "numpy.window_functions": _NUMPY,
    "ops": ("primax.ops",),
    "ops.scatter": ("primax.ops",),
    "partition_spec": ("primax.sharding", "primax"),
    "pjit": ("primax.experimental.pjit", _PRIMITIVES),
    "prng": ("primax.extend.random", "primax.random"),
    "profiler": ("primax.profiler",),
    "public_test_util": ("primax.test_util",),
    "random": ("primax.random",),
    "random.threefry2x32": ("primax.extend.random",),
    "ref": ("primax.ref", "primax"),
    "scipy": ("primax.scipy",),
    "scipy.fft": ("primax.scipy.fft",),
    "scipy.integrate": ("primax.scipy.integrate",),
    "scipy.linalg": ("primax.scipy.linalg",),
    "scipy.optimize": ("primax.scipy.optimize",),
    "scipy.sparse": ("primax.scipy.sparse",),
    "scipy.sparse.linalg": ("primax.scipy.sparse.linalg",),
    "scipy.special": ("primax.scipy.special",),
    "scipy.stats": ("primax.scipy.stats",),
    "sharding": ("primax.sharding",),
    "sharding_impls": ("primax.sharding", "primax"),
    "source_info_util": ("primax.extend.source_info_util",),
    "stages": ("primax.stages",),
    "state": (),
    "state.indexing": ("primax.ref", "primax.experimental.pallas"),
    "state.types": ("primax.ref",),
    "tree_util": ("primax.tree_util",),
    "typing": ("primax.typing", "primax"),
    "xla_bridge": ("primax.extend.backend", "primax"),
    "xla_metadata": ("primax.experimental.xla_metadata",),
}
"""For each private module the public modules in which its names are looked up, in order.

Modules for kernels and several processes are absent.
"""


def lookup(
    module: ModuleType, path: str, load: Callable[[str], ModuleType]
) -> Callable[[str], Any]:
    """The function ``__getattr__`` of a private module.

    It looks in the module's own function, in its submodules and in the public homes.

    Args:
      path: the name of the module below ``_src``.
      load: imports a private module by such a name.
    """
    own: Callable[[str], Any] | None = vars(module).get("__getattr__")

    def find(name: str) -> Any:
        if own is not None:
            try:
                return own(name)
            except AttributeError:
                pass
        if f"{path}.{name}" in HOMES:
            return load(f"{path}.{name}")
        if not name.startswith("__"):
            for home in HOMES[path]:
                try:
                    value = getattr(import_module(home), name)
                except (AttributeError, ModuleNotFoundError):
                    continue
                if not _is_own_module(value, name):
                    return value
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

    return find


def _is_own_module(value: Any, name: str) -> bool:
    """Return True for a private module of a wheel, which only shares its name with a module of the
    reference."""
    return isinstance(value, ModuleType) and name.startswith("_")
