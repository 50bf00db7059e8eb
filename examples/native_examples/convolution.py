"""Causal convolution of real rows, with its derivative and a function for ``vmap``."""

from __future__ import annotations

import primax
from primax.ffi import ffi_call
from primax_ffi import Signature, load_library

from . import library

load_library(
    library.path(),
    ["examples_convolve", "examples_convolve_backward"],
    signatures={
        "examples_convolve": Signature(["f32[... n]", "f32[m]"], "f32[... n]"),
        "examples_convolve_backward": Signature(
            ["f32[... n]", "f32[m]", "f32[... n]"], ["f32[... n]", "f32[m]"]
        ),
    },
)


@primax.custom_vjp
def convolve(x, kernel):
    """``y[t] = sum(kernel[j] * x[t - j])`` along the last axis of ``x: float32[..., n]``."""
    return ffi_call("examples_convolve", vmap_method=_mapped)(x, kernel)


def _mapped(axis_size, in_batched, x, kernel):
    """One call for all examples if they have the same kernel, and a loop otherwise."""
    if in_batched == [True, False]:
        return convolve(x, kernel), True
    if not in_batched[0]:
        x = primax.numpy.broadcast_to(x, (axis_size, *x.shape))
    return primax.lax.map(lambda pair: convolve(*pair), (x, kernel)), True


def _forward(x, kernel):
    return convolve(x, kernel), (x, kernel)


def _backward(saved, g):
    return tuple(ffi_call("examples_convolve_backward", vmap_method="sequential")(*saved, g))


convolve.defvjp(_forward, _backward)
