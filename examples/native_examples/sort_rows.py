"""Sorted rows: a handler that divides its work among XLA's threads."""

from __future__ import annotations

from primax.ffi import ffi_call
from primax_ffi import Signature, load_library

from . import library

load_library(
    library.path(),
    ["examples_sort_rows"],
    signatures={"examples_sort_rows": Signature(["f32[... n]"], "f32[... n]")},
)


def sort_rows(x):
    """The rows of ``x: float32[..., n]`` in ascending order, NaN last."""
    return ffi_call("examples_sort_rows", vmap_method="broadcast_all")(x)
