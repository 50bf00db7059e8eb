"""primax-scipy: special functions, distributions, linear algebra, solvers, sparse
arrays, signals, images, interpolation.

Modules are imported on first use.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

from . import _core_version as _core_version
from primax_core.extend import register_internal_path as _register

if TYPE_CHECKING:
    from . import cluster as cluster
    from . import experimental as experimental
    from . import fft as fft
    from . import integrate as integrate
    from . import interpolate as interpolate
    from . import linalg as linalg
    from . import ndimage as ndimage
    from . import optimize as optimize
    from . import signal as signal
    from . import sparse as sparse
    from . import spatial as spatial
    from . import special as special
    from . import stats as stats

__version__ = "0.1.0"

# Errors and jaxprs show the caller's line, not one of this package.
_register(__path__[0])

_MODULES = (
    "cluster", "experimental", "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize",
    "signal", "sparse", "spatial", "special", "stats",
)  # fmt: skip


def __getattr__(name: str) -> _Any:
    if name in _MODULES:
        return _import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES} - {"TYPE_CHECKING"})
