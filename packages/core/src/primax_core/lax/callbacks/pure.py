"""``pure_callback``: a Python function without side effects."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..._base import pytree
from ..._ir.avals import ShapedArray
from ..._ir.primitive import Primitive, abstract, batch, jvp, lower, transpose
from ..._ir.samples import Sample, bf16, f32, samples
from ..._runtime.dispatch import impl
from ..._trace.core import typeof
from ..._transform.batching import move_axis
from ..broadcasting import broadcast_in_dim
from .functions import FlatCallback, PerExample, batched_avals, emit, of_no_example, run_now

pure_callback_p: Final = Primitive("pure_callback", multiple_results=True)

VMAP_METHODS: Final = (
    "sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized", None,
)  # fmt: skip
_NO_JVP: Final = (
    "Pure callbacks do not support JVP. Please use `custom_jvp` to use callbacks while taking "
    "gradients: give the derivative of the function that calls Python."
)


@pure_callback_p.rule(abstract)
def _abstract(*avals, result_avals, **_):
    return list(result_avals)


@pure_callback_p.rule(impl)
def _impl(*arrays, callback, result_avals, **_):
    return run_now("pure_callback", callback, arrays, result_avals)


@pure_callback_p.rule(lower)
def _lower(ctx, *values, callback, result_avals, **_):
    return emit(ctx, "pure_callback", callback, values, result_avals, stays=False)


@pure_callback_p.rule(jvp)
def _jvp(primals, tangents, **_):
    raise ValueError(_NO_JVP)


pure_callback_p.unsupported(transpose, "pure callbacks are not linear")


@pure_callback_p.rule(batch)
def _batch(axis, args, dims, *, callback, result_avals, sharding, vmap_method):
    mapped = tuple(d is not None for d in dims)
    args = [x if d is None else move_axis(x, d, 0, axis.size) for x, d in zip(args, dims)]
    if vmap_method is None:
        raise NotImplementedError(
            "vmap is only supported for the pure_callback primitive when vmap_method is one of "
            "'sequential', 'sequential_unrolled', 'expand_dims', 'broadcast_all', or "
            "'legacy_vectorized'. Got vmap_method=None."
        )
    if vmap_method in ("sequential", "sequential_unrolled"):
        if not axis.size:
            return of_no_example(result_avals), [0] * len(result_avals)
        callback = PerExample(callback, axis.size, mapped)
    elif vmap_method != "legacy_vectorized":
        length = 1 if vmap_method == "expand_dims" else axis.size
        args = [x if m else _lengthened(x, length) for x, m in zip(args, mapped)]
    outs = pure_callback_p.bind(
        *args, callback=callback, result_avals=batched_avals(result_avals, axis.size),
        sharding=sharding, vmap_method=vmap_method,
    )  # fmt: skip
    return outs, [0] * len(outs)


def _lengthened(x: Any, length: int) -> Any:
    shape = typeof(x).shape
    return broadcast_in_dim(x, (length, *shape), range(1, len(shape) + 1))


@pure_callback_p.rule(samples)
def _samples():
    def doubled(x, method):
        aval = typeof(x)
        out = ShapedArray(aval.shape, aval.dtype)
        tree = pytree.tree_structure(((0,), {}))
        callback = FlatCallback(_double, tree, pytree.tree_structure(0))
        return pure_callback_p.bind(
            x, callback=callback, result_avals=(out,), sharding=None, vmap_method=method
        )

    no_jvp = dict.fromkeys(("jvp", "transpose", "second order", "symbolic zeros"), _NO_JVP)
    for sample, method in (
        (Sample(f32(3)), "sequential"),
        (Sample(f32()), "expand_dims"),
        (Sample(bf16(0, 2)), "broadcast_all"),
    ):
        yield sample.set(call=lambda x, method=method: doubled(x, method), without=no_jvp)


def _double(x: Any) -> Any:
    return np.asarray(x) * np.asarray(2, x.dtype)
