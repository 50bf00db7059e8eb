"""Cholesky factors: a handler that returns errors and throws exceptions."""

from __future__ import annotations

from primax.ffi import ffi_call
from primax_ffi import Signature, load_library

from . import library

load_library(
    library.path(),
    ["examples_cholesky"],
    signatures={"examples_cholesky": Signature(["f32[... n n]"], "f32[... n n]")},
)


def cholesky(a):
    """The lower factors of ``a: float32[..., n, n]``.

    Raises:
      JaxRuntimeError: where the result is used, if a matrix is not positive definite, or has NaN
        in its lower part.
    """
    return ffi_call("examples_cholesky", vmap_method="broadcast_all")(a)
