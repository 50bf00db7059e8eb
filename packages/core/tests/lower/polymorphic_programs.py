"""Functions of lax operations with symbolic shapes: name, function, shapes, sizes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import primax_core as px
from primax_core import lax
from primax_core._ir.symbolic_dims import max_dim, min_dim
from primax_core.lax import linalg


class Program(NamedTuple):
    name: str
    fun: Any
    specs: tuple[str, ...]
    shapes: tuple[tuple[tuple[int, ...], ...], ...]
    constraints: tuple[str, ...] = ()
    dtype: str = "float32"


def _dim(d, like=np.float32):
    return lax.convert_element_type(d, like)


def _mean(x, axis):
    return lax.div(lax.reduce_sum(x, (axis,)), _dim(x.shape[axis]))


def _softmax(x):
    top = lax.reduce_max(x, (1,))
    shifted = x - lax.broadcast_in_dim(top, x.shape, (0,))
    e = lax.exp(shifted)
    return e / lax.broadcast_in_dim(lax.reduce_sum(e, (1,)), x.shape, (0,))


def _window(x, sizes, strides, padding, init=-np.inf, f=lax.max):
    return lax.reduce_window(x, np.float32(init), f, sizes, strides, padding)


def _conv(x, strides=(1, 1), padding="SAME", **k):
    kernel = lax.reshape(lax.iota(np.float32, 9), (3, 3, 1, 1))
    return lax.conv_general_dilated(
        x, kernel, strides, padding, dimension_numbers=("NHWC", "HWIO", "NHWC"), **k
    )


def _gather_rows(x, rows, mode="fill"):
    numbers = lax.GatherDimensionNumbers((1,), (0,), (0,))
    return lax.gather(x, np.asarray(rows, np.int32)[:, None], numbers, (1, x.shape[1]), mode=mode)


def _scatter_rows(x, rows, mode="clip"):
    numbers = lax.ScatterDimensionNumbers((1,), (0,), (0,))
    updates = lax.full((len(rows), x.shape[1]), 2.0)
    return lax.scatter_add(x, np.asarray(rows, np.int32)[:, None], updates, numbers, mode=mode)


def _scan(x, reverse=False):
    return lax.scan(lambda c, r: (c + r, r * 2.0), lax.full((x.shape[1],), 0.0), x, reverse=reverse)


def _while(x):
    def cond(s):
        return s[0] < x.shape[0]

    def body(s):
        return s[0] + 1, s[1] + lax.dynamic_index_in_dim(x, s[0], 0, keepdims=False)

    return lax.while_loop(cond, body, (np.int32(0), lax.full((x.shape[1],), 0.0)))[1]


def _solve_lower(a, b):
    eye = lax.convert_element_type(
        lax.eq(
            lax.broadcasted_iota(np.int32, a.shape, 0), lax.broadcasted_iota(np.int32, a.shape, 1)
        ),
        np.float32,
    )
    return linalg.triangular_solve(a + eye * 5.0, b, left_side=True, lower=True)


def _spd(x):
    eye = lax.eq(
        lax.broadcasted_iota(np.int32, x.shape, 0), lax.broadcasted_iota(np.int32, x.shape, 1)
    )
    return lax.dot(x, lax.transpose(x, (1, 0))) + lax.convert_element_type(eye, np.float32)


M = (((4, 6),), ((2, 3),))
V = (((5,),), ((2,),))
SQ = (((3, 3),), ((5, 5),))
NHWC = (((2, 6, 5, 1),), ((1, 7, 8, 1),))

PROGRAMS = [
    Program("add", lambda x: x + x, ("a, b",), M),
    Program("unary", lambda x: lax.exp(lax.sin(x) * 0.5), ("a, b",), M),
    Program("scalar operand", lambda x: lax.max(x, np.float32(0.5)) * 2.0, ("a, b",), M),
    Program("two arguments", lambda x, y: x * y - y, ("a, b", "a, b"),
            (((4, 6), (4, 6)), ((2, 3), (2, 3)))),
    Program("broadcast by size 1", lambda x, y: x + y, ("a, b", "a, 1"),
            (((4, 6), (4, 1)), ((2, 3), (2, 1)))),
    Program("dimension as value", lambda x: x * x.shape[0], ("a, b",), M),
    Program("dimension divided", lambda x: x / (x.shape[0] + x.shape[1]), ("a, b",), M),
    Program("dimension results", lambda x: (x.shape[0] * 1.5, lax.add(np.int32(1), x.size)),
            ("a, b",), M),
    Program("dimension arithmetic", lambda x: [
        lax.convert_element_type(d, np.float32) for d in (
            x.shape[0] // 2, x.shape[0] % 3, (x.shape[0] - x.shape[1]) // 2,
            (x.shape[0] - x.shape[1]) % 3, (x.shape[1] - x.shape[0]) // -2,
            (x.shape[0] - 3) % -2, max_dim(x.shape[0], x.shape[1]),
            min_dim(x.shape[0], 3), x.shape[0] ** 2 * x.shape[1] - 1)],
            ("a, b",), (((4, 6),), ((7, 3),), ((3, 3),))),
    Program("mean", lambda x: _mean(x, 0), ("a, b",), M),
    Program("softmax", _softmax, ("a, b",), M),
    Program("reductions", lambda x: [
        lax.reduce_sum(x, (0,)), lax.reduce_max(x, (1,)), lax.reduce_min(x, (0, 1)),
        lax.reduce_prod(x, (0,)), lax.argmax(x, 1, np.int32), lax.argmin(x, 0, np.int32),
        lax.reduce_and(x > 0, (0,)), lax.reduce_or(x > 0, (1,))], ("a, b",), M),
    Program("general reduce", lambda x: lax.reduce(
        x, np.float32(0), lambda p, q: lax.max(p, q) + 0.0, (0,)), ("a, b",), M),
    Program("reduce_precision", lambda x: lax.reduce_precision(x, 5, 3), ("a, b",), M),
    Program("reshape flat", lambda x: lax.reshape(x, (x.size,)), ("a, b",), M),
    Program("reshape swap", lambda x: lax.reshape(x, (x.shape[1], x.shape[0])), ("a, b",), M),
    Program("reshape split", lambda x: lax.reshape(x, (x.shape[0] // 2, 2, x.shape[1])),
            ("2*a, b",), M),
    Program("reshape dimensions", lambda x: lax.reshape(x, (x.size,), (1, 0)), ("a, b",), M),
    Program("collapse", lambda x: lax.collapse(x, 0), ("a, b",), M),
    Program("expand and squeeze", lambda x: lax.squeeze(lax.expand_dims(x, (0, 2)), (0,)),
            ("a, b",), M),
    Program("transpose", lambda x: lax.transpose(x, (1, 0)), ("a, b",), M),
    Program("rev", lambda x: lax.rev(x, (0, 1)), ("a, b",), M),
    Program("broadcast", lambda x: lax.broadcast(x, (2, x.shape[0])), ("a, b",), M),
    Program("full", lambda x: lax.full((x.shape[0], 2 * x.shape[1] + 1), 3.0), ("a, b",), M),
    Program("full_like", lambda x: lax.full_like(x, 2), ("a, b",), M),
    Program("iota", lambda x: lax.iota(np.int32, x.shape[0]), ("a, b",), M),
    Program("broadcasted_iota", lambda x: lax.broadcasted_iota(np.float32, x.shape, 1),
            ("a, b",), M),
    Program("tile", lambda x: lax.tile(x, (2, x.shape[0])), ("a, b",), M),
    Program("concatenate", lambda x: lax.concatenate([x, x, lax.full((1, x.shape[1]), 1.0)], 0),
            ("a, b",), M),
    Program("split", lambda x: lax.split(x, (x.shape[0] - 1, 1), 0), ("a, b",), M),
    Program("stack", lambda x: lax.stack([x, x + 1.0], 1), ("a, b",), M),
    Program("unstack", lambda x: lax.unstack(x, 1), ("a, 3",), (((4, 3),), ((2, 3),))),
    Program("slice", lambda x: lax.slice(x, (1, 0), (x.shape[0], x.shape[1] - 1)), ("a, b",), M),
    Program("slice strides", lambda x: lax.slice(x, (0, 1), x.shape, (2, 3)), ("a, b",), M),
    Program("slice static", lambda x: lax.slice(x, (1, 0), (3, 2), (1, 2)), ("a, b",),
            (((4, 6),), ((3, 3),)), ("a >= 3", "b >= 2")),
    Program("slice_in_dim", lambda x: lax.slice_in_dim(x, 0, -1, axis=1), ("a, b",), M),
    Program("index_in_dim", lambda x: lax.index_in_dim(x, 0, 1), ("a, b",), M),
    Program("pad", lambda x: lax.pad(x, np.float32(7), ((1, 2, 0), (0, 1, 2))), ("a, b",), M),
    Program("pad by dimension", lambda x: lax.pad(x, np.float32(7), (
        (x.shape[1], 0, 0), (-1, x.shape[0], 0))), ("a, b",), M),
    Program("dynamic_slice", lambda x: lax.dynamic_slice(x, (1, 5), (x.shape[0] - 1, 1)),
            ("a, b",), M),
    Program("dynamic_slice of computed place", lambda x, i: lax.dynamic_slice(
        x, (i, 0), (1, x.shape[1])), ("a, b", ""), (((4, 6), ()), ((2, 3), ()))),
    Program("dynamic_slice negative", lambda x: lax.dynamic_slice(x, (-1, 0), (1, x.shape[1])),
            ("a, b",), M),
    Program("dynamic_update_slice", lambda x: lax.dynamic_update_slice(
        x, lax.full((1, x.shape[1]), 9.0), (x.shape[0] - 1, 0)), ("a, b",), M),
    Program("dynamic_index_in_dim", lambda x: lax.dynamic_index_in_dim(x, -1, 0), ("a, b",), M),
    Program("gather", lambda x: [_gather_rows(x, [0, 3, 1], m) for m in ("fill", "clip")],
            ("a, b",), M),
    Program("scatter", lambda x: [_scatter_rows(x, [0, 3, 1], m) for m in ("drop", "clip")],
            ("a, b",), M),
    Program("dot", lambda x, y: lax.dot(x, y), ("a, b", "b, c"),
            (((4, 6), (6, 2)), ((2, 3), (3, 5)))),
    Program("dot_general", lambda x, y: lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,)))),
            ("n, a, b", "n, b, c"), (((2, 4, 6), (2, 6, 2)), ((1, 2, 3), (1, 3, 5)))),
    Program("select", lambda x: lax.select(x > 0, x, lax.full_like(x, 0)), ("a, b",), M),
    Program("clamp", lambda x: lax.clamp(np.float32(-0.5), x, np.float32(0.5)), ("a, b",), M),
    Program("convert", lambda x: lax.convert_element_type(x * 3.0, np.int32), ("a, b",), M),
    Program("bitcast", lambda x: lax.bitcast_convert_type(x, np.int32), ("a, b",), M),
    Program("complex", lambda x: lax.abs(lax.complex(x, x * 2.0) * (1 + 2j)), ("a, b",), M),
    Program("integer_pow", lambda x: lax.integer_pow(x, -3), ("a, b",), M),
    Program("special", lambda x: lax.erf(x) + lax.lgamma(lax.abs(x) + 1.0) + lax.cbrt(x),
            ("a, b",), M),
    Program("sort", lambda x: lax.sort(x, dimension=0), ("a, b",), M),
    Program("sort with keys", lambda x: lax.sort(
        (x, lax.broadcasted_iota(np.int32, x.shape, 1)), dimension=1, num_keys=1), ("a, b",), M),
    Program("top_k", lambda x: lax.top_k(x, 2), ("a, b",), M, ("b >= 2",)),
    Program("top_k of a dimension", lambda x: lax.top_k(x, x.shape[1] - 1), ("a, b",), M),
    Program("rng_bit_generator", lambda x: lax.rng_bit_generator(
        np.array([1, 2, 3, 4], np.uint32), (x.shape[0], 3))[1], ("a, b",), M),
    Program("cumulative", lambda x: [lax.cumsum(x, 0), lax.cummax(x, 1), lax.cumprod(x, 1),
                                     lax.cumlogsumexp(x, 0, reverse=True)], ("a, b",), M),
    Program("reduce_window valid", lambda x: _window(x, (2, 2), (1, 1), "VALID"), ("a, b",),
            (((4, 6),), ((2, 3),)), ("a >= 2", "b >= 2")),
    Program("reduce_window same", lambda x: _window(x, (2, 3), (2, 2), "SAME"), ("a, b",), M),
    Program("reduce_window sum", lambda x: _window(x, (2, 2), (2, 1), "SAME", 0.0, lax.add),
            ("a, b",), M),
    Program("convolution valid", lambda x: _conv(x, padding="VALID"), ("n, h, w, 1",), NHWC,
            ("h >= 3", "w >= 3")),
    Program("convolution same", lambda x: _conv(x), ("n, h, w, 1",), NHWC),
    Program("convolution strided", lambda x: _conv(x, (2, 3)), ("n, h, w, 1",), NHWC),
    Program("convolution dilated", lambda x: _conv(x, rhs_dilation=(2, 1)), ("n, h, w, 1",), NHWC),
    Program("convolution of batch", lambda x: _conv(x, padding="VALID"), ("n, 6, 5, 1",),
            (((2, 6, 5, 1),), ((1, 6, 5, 1),))),
    Program("scan", _scan, ("a, b",), M),
    Program("scan reversed", lambda x: _scan(x, True), ("a, b",), M),
    Program("scan of static length", lambda x: lax.scan(
        lambda c, _: (c * 2.0 + 1.0, lax.reduce_sum(c, (0,))), x, None, length=3), ("a, b",), M),
    Program("scan unrolled", lambda x: lax.scan(
        lambda c, r: (c + r, c), lax.full((x.shape[1],), 0.0), x, unroll=2), ("4, b",),
            (((4, 6),), ((4, 3),))),
    Program("fori_loop", lambda x: lax.fori_loop(
        0, x.shape[0], lambda i, s: s + lax.dynamic_index_in_dim(x, i, 0, keepdims=False),
        lax.full((x.shape[1],), 0.0)), ("a, b",), M),
    Program("while_loop", _while, ("a, b",), M),
    Program("cond", lambda x: lax.cond(
        lax.reduce_max(x, (0, 1)) > 0.5, lambda y: y + 1.0,
        lambda y: y * y.shape[0], x), ("a, b",), M),
    Program("switch", lambda x: lax.switch(
        lax.rem(lax.add(np.int32(0), x.shape[0]), np.int32(3)),
        [lambda y: y, lambda y: y + 1.0, lambda y: y * 3.0], x), ("a, b",), M),
    Program("map", lambda x: lax.map(lambda r: lax.reduce_sum(r, (0,)), x), ("a, b",), M),
    Program("nested jit", lambda x: px.jit(lambda y: px.jit(lambda z: z * z.shape[0])(y) + 1.0)(x),
            ("a, b",), M),
    Program("jit without dimensions", lambda x: px.jit(lambda y: y * 2.0)(
        lax.reduce_sum(x, (0, 1))) * x, ("a, b",), M),
    Program("grad of mean", px.grad(lambda x: lax.reduce_sum(_mean(x * x, 0), (0,))),
            ("a, b",), M),
    Program("grad of softmax", px.grad(lambda x: lax.reduce_sum(_softmax(x) ** 2, (0, 1))),
            ("a, b",), M),
    Program("grad of slices", px.grad(lambda x: lax.reduce_sum(
        lax.slice(x, (1, 0), x.shape, (2, 1)) ** 2, (0, 1))), ("a, b",), M),
    Program("grad of gather", px.grad(lambda x: lax.reduce_sum(
        _gather_rows(x, [0, 1, 1], "clip") ** 2, (0, 1))), ("a, b",), M),
    Program("grad of pad", px.grad(lambda x: lax.reduce_sum(
        lax.pad(x, np.float32(1), ((1, 0, 1), (0, 2, 0))) ** 2, (0, 1))), ("a, b",), M),
    Program("grad of concatenate", px.grad(lambda x: lax.reduce_sum(
        lax.concatenate([x, x * 2.0], 0) ** 2, (0, 1))), ("a, b",), M),
    Program("grad of scan", px.grad(lambda x: lax.reduce_sum(_scan(x)[0] ** 2, (0,))),
            ("a, b",), M),
    Program("grad of dot", px.grad(lambda x, y: lax.reduce_sum(lax.dot(x, y) ** 2, (0, 1)), (0, 1)),
            ("a, b", "b, c"), (((4, 6), (6, 2)), ((2, 3), (3, 5)))),
    Program("grad of convolution", px.grad(lambda x: lax.reduce_sum(
        _conv(x, (2, 2)) ** 2, (0, 1, 2, 3))), ("n, h, w, 1",), NHWC),
    Program("grad of max pool", px.grad(lambda x: lax.reduce_sum(
        _window(x, (2, 2), (1, 2), "SAME") ** 2, (0, 1))), ("a, b",), M),
    Program("grad of cumsum", px.grad(lambda x: lax.reduce_sum(lax.cumsum(x, 0) ** 2, (0, 1))),
            ("a, b",), M),
    Program("grad of sort", px.grad(lambda x: lax.reduce_sum(
        lax.sort(x, dimension=0) * lax.broadcasted_iota(np.float32, x.shape, 0), (0, 1))),
            ("a, b",), M),
    Program("grad of checkpoint", px.grad(lambda x: lax.reduce_sum(
        px.checkpoint(lambda y: lax.sin(y) * y.shape[0])(x), (0, 1))), ("a, b",), M),
    Program("jvp", lambda x: px.jvp(_softmax, (x,), (x * 2.0,)), ("a, b",), M),
    Program("hessian product", lambda x: px.jvp(
        px.grad(lambda y: lax.reduce_sum(lax.sin(y) * y.shape[0], (0, 1))), (x,), (x,))[1],
            ("a, b",), M),
    Program("vmap", px.vmap(lambda r: r * r.shape[0] - lax.reduce_max(r, (0,))), ("a, b",), M),
    Program("vmap with axis", lambda x: px.vmap(
        lambda r: r - lax.pmean(r, "i"), axis_name="i")(x), ("a, b",), M),
    Program("vmap of grad", px.vmap(px.grad(lambda r: lax.reduce_sum(r ** 3, (0,)))),
            ("a, b",), M),
    Program("vmap of gather", px.vmap(lambda r: lax.dynamic_index_in_dim(
        r, r.shape[0] - 1, 0)), ("a, b",), M),
    Program("cholesky", lambda x: linalg.cholesky(_spd(x)), ("a, a",), SQ),
    Program("triangular_solve", _solve_lower, ("a, a", "a, b"),
            (((3, 3), (3, 2)), ((5, 5), (5, 1)))),
    Program("lu", lambda x: linalg.lu(x)[0], ("a, a",), SQ),
    Program("qr", lambda x: lax.abs(linalg.qr(x, full_matrices=False)[1]), ("a, b",),
            (((4, 3),), ((5, 2),)), ("a >= b",)),
    Program("eigh", lambda x: linalg.eigh(_spd(x))[1], ("a, a",), SQ),
    Program("svd", lambda x: linalg.svd(x, compute_uv=False), ("a, b",), M),
    Program("fft of batch", lambda x: lax.abs(lax.fft(
        lax.complex(x, x), "fft", (8,))), ("a, 8",), (((2, 8),), ((3, 8),))),
    Program("zero size", lambda x: x * 2.0, ("a - 1, b",), (((0, 3),), ((2, 3),))),
    Program("integers", lambda x: lax.rem(x, np.int32(3)) + x // 2, ("a, b",), M, (), "int32"),
    Program("constants", lambda x: x + lax.slice(
        np.arange(40, dtype=np.float32).reshape(4, 10), (0, 0), (1, 1)), ("a, b",), M),
    Program("optimization_barrier", lambda x: lax.optimization_barrier((x, x * 2.0)),
            ("a, b",), M),
    Program("custom_jvp", lambda x: px.grad(lambda y: lax.reduce_sum(_cubed(y), (0, 1)))(x),
            ("a, b",), M),
]  # fmt: skip


@px.custom_jvp
def _cubed(x):
    return x * x * x


@_cubed.defjvp
def _jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    return _cubed(x), 3.0 * x * x * t * (x.shape[0] / x.shape[0])
