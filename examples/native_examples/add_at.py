"""Numbers added to elements of an array: a handler that works in place."""

from __future__ import annotations

from primax.ffi import ffi_call
from primax_ffi import Signature, load_library

from . import library

# The alias of the signature is the default of each call.
load_library(
    library.path(),
    ["examples_add_at"],
    signatures={
        "examples_add_at": Signature(["f32[n]", "i32[m]", "f32[m]"], "f32[n]", aliases={0: 0})
    },
)


def add_at(x, indices, values):
    """``x`` with ``values`` added at ``indices``, which may contain one several times.

    The result has the memory of ``x`` if that is not used elsewhere: in a loop, or if the caller
    donates it. Otherwise XLA copies it first.

    Raises:
      JaxRuntimeError: where the result is used, if an index is out of range.
    """
    return ffi_call("examples_add_at", vmap_method="sequential")(x, indices, values)
