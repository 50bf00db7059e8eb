"""RMS normalization: a native forward and backward pass."""

from __future__ import annotations

from functools import partial

import primax
from primax.ffi import ffi_call
from primax_ffi import Signature, load_library

from . import library

SIGNATURES = {
    "examples_rms_norm": Signature(
        ["f32[... n]", "f32[n]"], ["f32[... n]", "f32[...]"], {"eps": "f32"}
    ),
    "examples_rms_norm_backward": Signature(
        ["f32[... n]", "f32[n]", "f32[...]", "f32[... n]"], ["f32[... n]", "f32[n]"]
    ),
}
load_library(library.path(), list(SIGNATURES), signatures=SIGNATURES)


@partial(primax.custom_vjp, nondiff_argnums=(2,))
def rms_norm(x, weights, eps=1e-6):
    """``weights * x / sqrt(mean(x**2) + eps)`` for the rows of ``x: float32[..., n]``."""
    return _forward(x, weights, eps)[0]


def _forward(x, weights, eps):
    # "broadcast_all" gives both operands the mapped axis, for which the handler is written.
    y, scales = ffi_call("examples_rms_norm", vmap_method="broadcast_all")(x, weights, eps=eps)
    return y, (x, weights, scales)


def _backward(eps, saved, g):
    call = ffi_call("examples_rms_norm_backward", vmap_method="broadcast_all")
    return tuple(call(*saved, g))


rms_norm.defvjp(_forward, _backward)
