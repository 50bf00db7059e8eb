"""Python functions on the buffers of programs: the module ``primax_ffi.buffer_callback``.

This file is for type checkers; an import returns the wheel's module itself.
"""

from primax_ffi.buffer_callback import *
