"""primax-ffi-cpu: native kernels for operations on CPUs."""

from . import _core_version as _core_version
from primax_core.extend import register_internal_path as _register
from . import _trusted as _trusted
from ._library import register as _register_handlers
from ._option import native_kernels as native_kernels

_register_handlers()  # before the rules: without the library operations keep the core's

from . import _cumulative as _cumulative  # noqa: E402
from . import _selection as _selection  # noqa: E402
from . import _sorting as _sorting  # noqa: E402

__version__ = "0.1.0"

# Errors and jaxprs show the caller's line, not one of this package.
_register(__path__[0])
