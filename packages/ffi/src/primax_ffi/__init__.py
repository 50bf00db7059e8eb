"""primax-ffi: native functions (C, C++ and others) as parts of compiled programs."""

from . import _core_version as _core_version
from primax_core.extend import register_internal_path as _register
from . import _trusted as _trusted
from . import buffer_callback as buffer_callback
from primax_core.extend.native import abstract_token as abstract_token
from primax_core.extend.native import include_dir as include_dir
from ._call import ffi_call as ffi_call
from ._lowering import build_ffi_lowering_function as build_ffi_lowering_function
from ._lowering import ffi_lowering as ffi_lowering
from ._native_function import NativeFunction as NativeFunction
from ._native_function import native_function as native_function
from ._rust import rust_bindings as rust_bindings
from ._signatures import Signature as Signature
from ._targets import load_library as load_library
from ._targets import pycapsule as pycapsule
from ._targets import register_ffi_target as register_ffi_target
from ._targets import (
    register_ffi_target_as_batch_partitionable as register_ffi_target_as_batch_partitionable,
)
from ._targets import register_ffi_type as register_ffi_type
from ._targets import register_ffi_type_id as register_ffi_type_id

__version__ = "0.1.0"

# Errors and jaxprs show the caller's line, not one of this package.
_register(__path__[0])
