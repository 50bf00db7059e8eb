"""Power spectrum of real rows: a handler whose state is a plan for one length."""

from __future__ import annotations

import ctypes

import numpy as np

import primax
from primax.ffi import ffi_call, pycapsule, register_ffi_type
from primax_ffi import load_library

from . import library

native = ctypes.CDLL(str(library.path()))
native.examples_plan_id.restype = native.examples_plan_info.restype = ctypes.c_void_p

# The type of the state is registered before the handlers that use it.
register_ffi_type(
    "examples_plan",
    {
        "type_id": pycapsule(native.examples_plan_id()),
        "type_info": pycapsule(native.examples_plan_info()),
    },
)
load_library(
    library.path(),
    {
        "examples_spectrum": {
            "instantiate": "examples_spectrum_instantiate",
            "execute": "examples_spectrum",
        }
    },
)


@primax.jit
def spectrum(x):
    """``abs(fft(x))**2`` of the frequencies 0 to n/2, for the rows of ``x: float32[..., n]``.

    A compiled program has a plan for each call, so ``jit`` keeps one for each shape.
    """
    if np.ndim(x) == 0:
        raise TypeError("spectrum takes rows of numbers, float32[..., n], not a scalar")
    n = x.shape[-1]
    # The last axis of the result is no size of the operand, so there is no signature.
    result = primax.ShapeDtypeStruct((*x.shape[:-1], n // 2 + 1), np.float32)
    return ffi_call("examples_spectrum", result, vmap_method="broadcast_all")(x, n=n)


def plans() -> int:
    """The number of plans that were made."""
    return native.examples_plans()
