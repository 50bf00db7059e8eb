"""Calls of the functions of ``lax`` with each of their optional parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

import primax
from primax import lax

F32 = np.float32
V = np.arange(6, dtype=F32)
M = np.arange(12, dtype=F32).reshape(3, 4)
S = np.ones((3, 3), F32)
I = np.array([[0], [2]], np.int32)
IMAGE, KERNEL = np.ones((2, 2, 6, 6), F32), np.ones((2, 2, 3, 3), F32)
DOT = (((1,), (0,)), ((), ()))
ON_DEVICE = primax.sharding.SingleDeviceSharding(primax.devices()[0])
SPEC = primax.sharding.PartitionSpec("x")
GATHER = lax.GatherDimensionNumbers((), (0,), (0,))
SCATTER = lax.ScatterDimensionNumbers((), (0,), (0,))
RAGGED = lax.RaggedDotDimensionNumbers(DOT, (0,), (0,))
SIZES = np.array([1, 2], np.int32)
GROUPS = np.ones((2, 4, 5), F32)
KEY = np.zeros(4, np.uint32)


class Calls:
    """A function of keyword arguments, and a value other than the default for each parameter."""

    def __init__(self, call: Callable[..., Any], **values: Any) -> None:
        self.call = call
        self.values = values


def mapped(call: Callable[..., Any], **values: Any) -> Calls:
    """Calls of a collective over an axis of size 2 or 4."""
    size = 4 if "axis_index_groups" in values else 2
    x = np.ones((size, 4, 4), F32)
    return Calls(lambda **k: primax.vmap(lambda v: call(v, **k), axis_name="i")(x), **values)


def of(name: str, *args: Any, **values: Any) -> Calls:
    return Calls(lambda **k: getattr(lax, name)(*args, **k), **values)


_ACCURACY = {"accuracy": lax.AccuracyMode.HIGHEST}
_CUMULATIVE = {"axis": 1, "reverse": True}
_DILATED = {"lhs_dilation": (2, 2), "rhs_dilation": (2, 2)}
_ORDER = {"dimension_numbers": ("NHWC", "OIHW", "NCHW")}
_EXACT = {"precision": "highest", "preferred_element_type": np.float64}
_HINTS = {"indices_are_sorted": True, "unique_indices": True, "mode": "clip"}
_GROUPS = {"axis_index_groups": [[0, 1], [2, 3]]}
_APPROXIMATE = {
    "reduction_dimension": 0, "recall_target": 0.5, "reduction_input_size_override": 100,
    "aggregate_to_topk": False,
}  # fmt: skip
_NOT_NEGATIVE = {"allow_negative_indices": False}


def _start() -> Any:
    return lax.add(np.int32(1), lax.convert_element_type(V[0], np.int32))


def _gather(**k: Any) -> Any:
    return lax.gather(V, I, GATHER, (1,), **{"mode": "fill", **k})


def _scan(**k: Any) -> Any:
    given = k if k.keys() & {"xs", "length"} else {"length": 6, **k}
    return lax.scan(lambda c, x: (c, c if x is None else x), V, **{**given, **k})


def _scatter_apply(**k: Any) -> Any:
    given = {"update_shape": (2,), **k}
    return lax.scatter_apply(V, I, lax.sin, SCATTER, **given)


def _windows(**k: Any) -> Any:
    return lax.reduce_window(M, 0.0, lax.add, (2, 2), **k)


def _solve(**k: Any) -> Any:
    def solve(matvec: Any, b: Any) -> Any:
        out = lax.mul(b, 0.5)
        return (out, out) if k.get("has_aux") else out

    return primax.grad(
        lambda b: lax.reduce_sum(
            lax.custom_linear_solve(lambda v: lax.mul(v, 2.0), b, solve, **k), (0,)
        )
    )(V)


def _root(**k: Any) -> Any:
    def solve(f: Any, x: Any) -> Any:
        return (x, x) if k.get("has_aux") else x

    return lax.custom_root(lambda x: lax.sub(x, 1.0), 1.0, solve, lambda g, y: y, **k)


CALLS: Final[dict[str, Calls]] = {
    "all_gather": mapped(lambda v, **k: lax.all_gather(v, "i", **k), axis=1, tiled=True,
                         to="reduced", **_GROUPS),
    "all_to_all": mapped(lambda v, **k: lax.all_to_all(v, "i", 0, 0, **k), tiled=True, **_GROUPS),
    "approx_max_k": of("approx_max_k", M, 2, **_APPROXIMATE),
    "approx_min_k": of("approx_min_k", M, 2, **_APPROXIMATE),
    "associative_scan": of("associative_scan", lax.add, M, reverse=True, axis=1),
    "batch_matmul": of("batch_matmul", S[None], S[None], precision="highest"),
    "broadcast": of("broadcast", V, (2,), out_sharding=SPEC),
    "broadcast_in_dim": of("broadcast_in_dim", V, (2, 6), (1,), out_sharding=SPEC),
    "broadcasted_iota": of("broadcasted_iota", np.int32, (2, 3), 0, out_sharding=SPEC),
    "cbrt": of("cbrt", V, **_ACCURACY),
    "collapse": of("collapse", GROUPS, 0, stop_dimension=2),
    "composite": Calls(lambda **k: lax.composite(lax.sin, "my.sin", **k)(V), version=1),
    "cond": Calls(lambda **k: lax.cond(True, *_branches(k), **k), operand=V),
    "conv": of("conv", IMAGE, KERNEL, (1, 1), "SAME", **_EXACT),
    "conv_general_dilated": of(
        "conv_general_dilated", IMAGE, KERNEL, (1, 1), "VALID", **_DILATED, **_EXACT,
        dimension_numbers=("NCHW", "IOHW", "NCHW"), feature_group_count=2, batch_group_count=2,
        out_sharding=SPEC,
    ),
    "conv_general_dilated_local": of(
        "conv_general_dilated_local", IMAGE[:, :, :5, :5], np.ones((2, 18, 3, 3), F32), (1, 1),
        "VALID", (3, 3), lhs_dilation=(1, 2), rhs_dilation=(1, 2), precision="highest",
        dimension_numbers=("NCHW", "IOHW", "NCHW"),
    ),
    "conv_general_dilated_patches": of(
        "conv_general_dilated_patches", IMAGE, (3, 3), (1, 1), "VALID", **_DILATED, **_EXACT,
        dimension_numbers=("NHWC", "OIHW", "NCHW"),
    ),
    "conv_shape_tuple": of("conv_shape_tuple", (2, 2, 6, 6), (2, 2, 3, 3), (1, 1),
                           [(0, 0), (0, 0)], batch_group_count=2),
    "conv_transpose": of(
        "conv_transpose", np.ones((2, 6, 6, 2), F32), np.ones((5, 5, 2, 2), F32), (3, 3),
        [(1, 1), (1, 1)], rhs_dilation=(2, 2),
        dimension_numbers=("NCHW", "IOHW", "NCHW"), transpose_kernel=True,
        use_consistent_padding=True, **_EXACT,
    ),
    "conv_with_general_padding": of("conv_with_general_padding", IMAGE, KERNEL, (1, 1), "VALID",
                                    None, None, **_EXACT),
    "cos": of("cos", V, **_ACCURACY),
    "cumlogsumexp": of("cumlogsumexp", M, **_CUMULATIVE),
    "cummax": of("cummax", M, **_CUMULATIVE),
    "cummin": of("cummin", M, **_CUMULATIVE),
    "cumprod": of("cumprod", M, **_CUMULATIVE),
    "cumsum": of("cumsum", M, **_CUMULATIVE),
    "custom_linear_solve": Calls(_solve, transpose_solve=lambda f, b: b, symmetric=True,
                                 has_aux=True),
    "custom_root": Calls(_root, has_aux=True),
    "dce_sink": of("dce_sink", V, prevent_mlir_dce=True),
    "dot": of("dot", S, S, dimension_numbers=(((0,), (0,)), ((), ())), out_sharding=SPEC, **_EXACT),
    "dot_general": of("dot_general", S, S, DOT, out_sharding=SPEC, **_EXACT),
    "dynamic_index_in_dim": Calls(lambda **k: lax.dynamic_index_in_dim(M, _start(), **k), axis=1,
                                  keepdims=False, **_NOT_NEGATIVE),
    "dynamic_slice": Calls(lambda **k: lax.dynamic_slice(V, (_start(),), (2,), **k),
                           **_NOT_NEGATIVE),
    "dynamic_slice_in_dim": Calls(lambda **k: lax.dynamic_slice_in_dim(M, _start(), 2, **k), axis=1,
                                  **_NOT_NEGATIVE),
    "dynamic_update_index_in_dim": Calls(
        lambda **k: lax.dynamic_update_index_in_dim(V, F32(1), _start(), 0, **k), **_NOT_NEGATIVE),
    "dynamic_update_slice": Calls(lambda **k: lax.dynamic_update_slice(V, V[:2], (_start(),), **k),
                                  **_NOT_NEGATIVE),
    "dynamic_update_slice_in_dim": Calls(
        lambda **k: lax.dynamic_update_slice_in_dim(V, V[:2], _start(), 0, **k), **_NOT_NEGATIVE),
    "empty": of("empty", (2,), F32, out_sharding=SPEC),
    "erfc": of("erfc", V, **_ACCURACY),
    "exp": of("exp", V, **_ACCURACY),
    "exp2": of("exp2", V, **_ACCURACY),
    "expm1": of("expm1", V, **_ACCURACY),
    "fori_loop": of("fori_loop", 0, 4, lambda i, c: lax.add(c, V), V, unroll=2),
    "full": of("full", (2,), 3, dtype=F32, sharding=SPEC),
    "full_like": of("full_like", V, 3, dtype=np.int32, shape=(2,), sharding=SPEC),
    "gather": Calls(_gather, fill_value=7.0, **_HINTS),
    "index_in_dim": of("index_in_dim", M, 1, axis=1, keepdims=False),
    "log": of("log", V, **_ACCURACY),
    "log1p": of("log1p", V, **_ACCURACY),
    "log2": of("log2", V, **_ACCURACY),
    "logistic": of("logistic", V, **_ACCURACY),
    "map": of("map", lax.sin, V, batch_size=2),
    "mul": of("mul", V, V, out_dtype=np.float64),
    "platform_dependent": Calls(lambda **k: lax.platform_dependent(V, cpu=lax.sin, **k),
                                default=lax.cos),
    "pmax": mapped(lambda v, **k: lax.pmax(v, "i", **k), **_GROUPS),
    "pmean": mapped(lambda v, **k: lax.pmean(v, "i", **k), **_GROUPS),
    "pmin": mapped(lambda v, **k: lax.pmin(v, "i", **k), **_GROUPS),
    "polynomial": of("polynomial", V, V, unroll=2),
    "psum": mapped(lambda v, **k: lax.psum(v, "i", **k), **_GROUPS),
    "psum_scatter": mapped(lambda v, **k: lax.psum_scatter(v, "i", **k), scatter_dimension=1,
                           tiled=True, **_GROUPS),
    "pswapaxes": mapped(lambda v, **k: lax.pswapaxes(v, "i", 0, **k), **_GROUPS),
    "ragged_dot": of("ragged_dot", M, GROUPS, SIZES, group_offset=np.array([1], np.int32),
                     out_sharding=SPEC, **_EXACT),
    "ragged_dot_general": of("ragged_dot_general", M, GROUPS, SIZES,
                             lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,)),
                             group_offset=np.array([1], np.int32), out_sharding=SPEC, **_EXACT),
    "reduce": of("reduce", V, F32(0), lax.add, (0,), out_sharding=SPEC),
    "reduce_max": of("reduce_max", V, (0,), out_sharding=SPEC),
    "reduce_min": of("reduce_min", V, (0,), out_sharding=SPEC),
    "reduce_sum": of("reduce_sum", V, (0,), out_sharding=SPEC),
    "reduce_window": Calls(_windows, window_strides=(2, 2), padding="SAME", base_dilation=(2, 2),
                           window_dilation=(2, 2)),
    "reduce_window_shape_tuple": of("reduce_window_shape_tuple", (6, 6), (2, 2), (1, 1),
                                    [(0, 0), (0, 0)], base_dilation=(2, 2), window_dilation=(2, 2)),
    "reshape": of("reshape", M, (4, 3), dimensions=(1, 0), out_sharding=SPEC),
    "rng_bit_generator": of("rng_bit_generator", KEY, (2,), dtype=np.uint16, out_sharding=SPEC,
                            algorithm=lax.RandomAlgorithm.RNG_PHILOX),
    "round": of("round", V, rounding_method=lax.RoundingMethod.TO_NEAREST_EVEN),
    "rsqrt": of("rsqrt", V, **_ACCURACY),
    "scaled_dot": of("scaled_dot", S, S, lhs_scale=S[:, :1], rhs_scale=S[:1],
                     dimension_numbers=(((0,), (0,)), ((), ())),
                     preferred_element_type=np.float16),
    "scan": Calls(_scan, length=5, xs=V, reverse=True, unroll=2,
               _split_transpose=True),
    "scatter_apply": Calls(_scatter_apply, update_shape=(1,), **_HINTS),
    "sin": of("sin", V, **_ACCURACY),
    "slice": of("slice", V, (0,), (4,), strides=(2,)),
    "slice_in_dim": of("slice_in_dim", M, 0, 2, stride=2, axis=1),
    "sort": of("sort", (M, M), dimension=0, is_stable=False, num_keys=2),
    "sort_key_val": of("sort_key_val", M, M, dimension=0, is_stable=False),
    "split": of("split", np.ones((3, 3), F32), (1, 2), axis=1),
    "sqrt": of("sqrt", V, **_ACCURACY),
    "stack": of("stack", (M, M), axis=1),
    "switch": Calls(lambda **k: lax.switch(1, _switched(k), **k), operand=V),
    "tan": of("tan", V, **_ACCURACY),
    "tanh": of("tanh", V, **_ACCURACY),
    "top_k": of("top_k", M, 2, axis=0, is_stable=False),
    "unstack": of("unstack", M, axis=1),
    **{
        name: of(name, V, I, V[:2], SCATTER, **_HINTS)
        for name in ("scatter", "scatter_add", "scatter_max", "scatter_min", "scatter_mul",
                     "scatter_sub")
    },
}  # fmt: skip


def _branches(k: dict[str, Any]) -> Any:
    return (lax.sin, lax.cos) if "operand" in k else (lambda: V, lambda: V)


def _switched(k: dict[str, Any]) -> Any:
    return [lax.sin, lax.cos] if "operand" in k else [lambda: V, lambda: V]
