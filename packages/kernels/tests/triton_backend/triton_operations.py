"""Small kernels for each operation that Triton supports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from primax_core import ShapeDtypeStruct, eval_shape, jit, lax, make_jaxpr
from primax_core.dtypes import bfloat16
from primax_kernels import BlockSpec, ds, pallas_call, program_id, run_scoped, when
from primax_kernels.triton import atomic_add, load, store

F32, BF16, F16, I32 = np.float32, np.dtype(bfloat16), np.float16, np.int32


class Case:
    """A kernel with whole arrays as blocks, or with a grid, and its operands."""

    def __init__(
        self, kernel: Callable[..., None], out: Any, *args: Any, grid: Any = (), ins: Any = None,
        outs: Any = None, scratch: Any = (), aliases: Any = (), tolerance: float = 1e-6,
    ):  # fmt: skip
        self.kernel, self.args, self.grid = kernel, args, grid
        self.out = out if isinstance(out, tuple) or callable(out) else (out,)
        self.ins, self.outs, self.scratch = ins, outs, scratch
        self.aliases, self.tolerance = aliases, tolerance


def array(shape: Any, dtype: Any = F32, seed: int = 0, low: float = -2, high: float = 2) -> Any:
    """Random numbers."""
    rng = np.random.default_rng(seed)
    if np.dtype(dtype) == np.bool_:
        return rng.random(shape) < 0.5
    if np.dtype(dtype).kind in "iu":
        return rng.integers(max(int(low * 10), 0 if np.dtype(dtype).kind == "u" else -100),
                            int(high * 10), shape).astype(dtype)  # fmt: skip
    return rng.uniform(low, high, shape).astype(dtype)


def like(*shape: int, dtype: Any = F32) -> ShapeDtypeStruct:
    """The type of a result."""
    return ShapeDtypeStruct(shape, dtype)


def maps(fun: Callable[..., Any], *args: Any, tolerance: float = 1e-6) -> Case:
    """A kernel that applies a function to whole blocks."""

    def kernel(*refs: Any) -> None:
        refs[-1][...] = fun(*(r[...] for r in refs[:-1]))

    return Case(kernel, lambda: eval_shape(fun, *args), *args, tolerance=tolerance)


def _column(x: Any) -> Any:
    return lax.broadcast_in_dim(x, (*x.shape, 1), tuple(range(len(x.shape))))


def _scalars(x: Any) -> list[Any]:
    return [lax.squeeze(lax.slice(x, (i,), (i + 1,)), (0,)) for i in range(2)]


X, Y = array((5, 12)), array((5, 12), seed=1)
POSITIVE = array((5, 12), low=0.1, high=3)
UNIT = array((5, 12), low=-0.95, high=0.95)
INTS, MORE = array((40,), I32), array((40,), I32, seed=1)
DIVISORS = array((40,), I32, seed=1, low=-0.1, high=0.3)
WORDS = array((40,), np.uint32, high=2e8)
SPECIAL = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 2.5, 3.5, -2.5, 1e30, 300], F32)

ELEMENTWISE: dict[str, Case] = {
    **{n: maps(getattr(lax, n), X) for n in (
        "sin cos tan tanh exp exp2 expm1 floor ceil sign abs neg square sinh cosh asinh atan cbrt "
        "erf logistic is_finite"
    ).split()},
    **{n: maps(getattr(lax, n), POSITIVE) for n in "log log1p sqrt rsqrt".split()},
    **{n: maps(getattr(lax, n), UNIT, tolerance=3e-6) for n in "asin acos atanh".split()},
    **{n: maps(getattr(lax, n), X, Y) for n in (
        "add sub mul div max min rem atan2 eq ne lt le gt ge nextafter"
    ).split()},
    "acosh": maps(lambda x: lax.acosh(x + F32(1)), POSITIVE),
    "log2": maps(lambda x: lax.log2_p.bind(x), POSITIVE),
    "pow": maps(lax.pow, POSITIVE, X),
    "pow_negative": maps(lambda x: lax.integer_pow(x, -3), POSITIVE),
    "pow_integer": maps(lambda x: lax.integer_pow(x, 5), INTS),
    "round": maps(lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO), SPECIAL),
    "round_even": maps(lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), SPECIAL),
    "clamp": maps(lambda x: lax.clamp(F32(-1), x, F32(0.5)), X),
    "max_nan": maps(lambda x: lax.max(x, F32(0.5)), SPECIAL),
    "sign_special": maps(lax.sign, SPECIAL),
    "select": maps(lambda x, y: lax.select(lax.lt(x, y), x, y), X, Y),
    "select_scalar": maps(lambda x, y: lax.select_n(
        lax.lt(lax.reduce_max(x, (0, 1)), F32(9)), x, y), X, Y),
    "select_three": maps(lambda i, x: lax.select_n(
        lax.rem(lax.abs(i), I32(3)), x, x * I32(2), x * I32(3)), INTS, MORE),
    "div_integers": maps(lambda x, y: lax.div(x, y), INTS, DIVISORS),
    "rem_integers": maps(lambda x, y: lax.rem(x, y), INTS, DIVISORS),
    "div_words": maps(lambda x: lax.div(x, np.uint32(7)), WORDS),
    "abs_integers": maps(lax.abs, INTS),
    "sign_integers": maps(lax.sign, INTS),
    "shift": maps(lambda x: lax.shift_left(x, I32(3)) + lax.shift_right_arithmetic(x, I32(2)),
                  INTS),
    "shift_far": maps(lambda x, y: lax.shift_right_logical(x, lax.abs(y)), INTS, MORE),
    "shift_sign": maps(lambda x, y: lax.shift_right_arithmetic(x, lax.abs(y)), INTS, MORE),
    "bits": maps(lambda x, y: (x & y) | lax.bitwise_xor(x, lax.bitwise_not(y)), INTS, MORE),
    "bits_boolean": maps(lambda x: lax.bitwise_not(lax.lt(x, F32(0))), X),
    "population_count": maps(lax.population_count, WORDS),
    "clz": maps(lax.clz, WORDS),
    "clz_short": maps(lax.clz, array((9,), np.int16)),
    "bfloat16": maps(lambda x, y: x * y + lax.exp(x) / y, array((64,), BF16),
                     array((64,), BF16, 1, 0.5), tolerance=2e-2),
    "float16": maps(lambda x, y: lax.tanh(x) - y, array((64,), F16), array((64,), F16, 1),
                    tolerance=1e-3),
    "boolean_blocks": maps(lambda x, y: x & lax.bitwise_not(y), array((33,), np.bool_),
                           array((33,), np.bool_, 1)),
    "uint8_blocks": maps(lambda x: lax.div(x, np.uint8(3)), array((33,), np.uint8, high=20)),
}  # fmt: skip

_TYPES = [F32, F16, BF16, I32, np.int8, np.uint8, np.uint32, np.bool_]
CONVERSIONS: dict[str, Case] = {
    f"{np.dtype(a).name}_to_{np.dtype(b).name}": maps(
        lambda x, b=b: lax.convert_element_type(x, b), array((20,), a)
    )
    for a in _TYPES
    for b in _TYPES
    if a != b and not (np.dtype(a).kind == "f" and np.dtype(b).kind == "u")
}
CONVERSIONS["saturated"] = maps(lambda x: lax.convert_element_type(x, I32), SPECIAL)
CONVERSIONS["saturated_short"] = maps(lambda x: lax.convert_element_type(x, np.int8), SPECIAL)
CONVERSIONS["bitcast"] = maps(lambda x: lax.bitcast_convert_type(x, I32), X)

CUBE = array((3, 5, 6))
SQUARE = array((8, 16))
SHAPES: dict[str, Case] = {
    "broadcast": maps(lambda x: lax.broadcast_in_dim(x, (5, 3, 12), (0, 2)), X),
    "expand": maps(lambda x: lax.reshape(x, (1, 5, 1, 12)), X),
    "squeeze": maps(lambda x: lax.squeeze(x, (0,)), array((1, 12))),
    "to_scalar": maps(lambda x, y: y * lax.squeeze(x, (0, 1)), array((1, 1)), X),
    "merge": maps(lambda x: lax.reshape(x, (128,)), SQUARE),
    "split_axis": maps(lambda x: lax.reshape(x, (8, 4, 4)), SQUARE),
    "transpose": maps(lambda x: lax.transpose(x, (2, 0, 1)), CUBE),
    "iota": maps(lambda x: x + lax.broadcasted_iota(F32, x.shape, 1), X),
    "slice": maps(lambda x: lax.slice(x, (1, 2), (4, 11), (1, 3)), X),
    "slice_head": maps(lambda x: lax.slice(x, (0, 0), (5, 9)), X),
    "dynamic_slice": maps(lambda x, i: lax.dynamic_slice(x, _scalars(i), (2, 7)), X,
                          np.array([2, 50], I32)),
    "dynamic_update_slice": maps(lambda x, y, i: lax.dynamic_update_slice(x, y, _scalars(i)), X,
                                 array((2, 7), seed=3), np.array([-1, 4], I32)),
    "concatenate": maps(lambda x, y: lax.concatenate([x, y, x], 1), X, array((5, 3))),
    "rev": maps(lambda x: lax.rev(x, (0, 1)), X),
    "pad": maps(lambda x: lax.pad(x, F32(7), ((1, 2, 0), (0, 3, 0))), X),
    "pad_negative": maps(lambda x: lax.pad(x, F32(7), ((-1, 2, 0), (2, -3, 0))), X),
}  # fmt: skip

REDUCTIONS: dict[str, Case] = {
    **{f"{n}_{a}": maps(lambda x, n=n, a=a: getattr(lax, n)(x, (a,)), CUBE, tolerance=1e-5)
       for n in ("reduce_sum", "reduce_max", "reduce_min", "reduce_prod") for a in range(3)},
    "sum_all": maps(lambda x: lax.reduce_sum(x, (0, 1, 2)), CUBE, tolerance=1e-5),
    "sum_bfloat16": maps(lambda x: lax.reduce_sum(x, (1,)), array((4, 100), BF16), tolerance=4e-2),
    "max_integers": maps(lambda x: lax.reduce_max(x, (0,)), INTS),
    "max_words": maps(lambda x: lax.reduce_max(x, (0,)), WORDS),
    "max_nan": maps(lambda x: lax.reduce_max(x, (0,)), SPECIAL),
    "and": maps(lambda x: lax.reduce_and(lax.lt(x, F32(1.5)), (1,)), X),
    "or": maps(lambda x: lax.reduce_or(lax.lt(x, F32(-1.5)), (1,)), X),
    "xor": maps(lambda x: lax.reduce_xor(x, (0,)), INTS),
    "argmax": maps(lambda x: lax.argmax(x, 1, I32), X),
    "argmin": maps(lambda x: lax.argmin(x, 0, I32), X),
    "argmax_equal": maps(lambda x: lax.argmax(lax.round(x), 1, I32), X),
    "argmax_nan": maps(lambda x: lax.argmax(x, 0, I32), SPECIAL),
    "argmin_integers": maps(lambda x: lax.argmin(x, 0, I32), INTS),
    **{n: maps(lambda x, n=n: getattr(lax, n)(x, 1), X, tolerance=1e-5)
       for n in ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")},
    "cumsum_reverse": maps(lambda x: lax.cumsum(x, 1, reverse=True), X, tolerance=1e-5),
    "cummax_reverse": maps(lambda x: lax.cummax(x, 0, reverse=True), X),
    "cumsum_integers": maps(lambda x: lax.cumsum(x, 0), INTS),
    "keepdims": maps(lambda x: x - _column(lax.reduce_max(x, (1,))), X),
}  # fmt: skip


def _dot(dims: Any, **options: Any) -> Callable[[Any, Any], Any]:
    return lambda x, y: lax.dot_general(x, y, dims, **options)


_MM = (((1,), (0,)), ((), ()))
DOTS: dict[str, Case] = {
    "plain": maps(_dot(_MM), array((16, 32)), array((32, 16)), tolerance=1e-5),
    "highest": maps(_dot(_MM, precision=lax.Precision.HIGHEST), array((16, 32)), array((32, 16)),
                    tolerance=1e-5),
    "high": maps(_dot(_MM, precision=lax.Precision.HIGH), array((16, 32)), array((32, 16)),
                 tolerance=1e-5),
    "odd": maps(_dot(_MM), array((20, 50)), array((50, 24)), tolerance=1e-5),
    "transposed": maps(_dot((((0,), (1,)), ((), ()))), array((32, 16)), array((16, 32)),
                       tolerance=1e-5),
    "batch": maps(_dot((((2,), (1,)), ((0,), (0,)))), array((2, 16, 32)), array((2, 32, 16)),
                  tolerance=1e-5),
    "vector": maps(_dot((((1,), (0,)), ((), ()))), array((16, 32)), array((32,)), tolerance=1e-5),
    "several": maps(_dot((((1, 2), (0, 1)), ((), ()))), array((16, 3, 8)), array((3, 8, 16)),
                    tolerance=1e-5),
    "free": maps(_dot((((2,), (0,)), ((), ()))), array((3, 5, 16)), array((16, 7)), tolerance=1e-5),
    "bfloat16": maps(_dot(_MM, preferred_element_type=F32), array((16, 32), BF16),
                     array((32, 16), BF16), tolerance=1e-5),
    "bfloat16_result": maps(_dot(_MM), array((16, 32), BF16), array((32, 16), BF16),
                            tolerance=4e-2),
    "float16": maps(_dot(_MM, preferred_element_type=F32), array((16, 32), F16),
                    array((32, 16), F16), tolerance=1e-5),
    "int8": maps(_dot(_MM, preferred_element_type=I32), array((16, 32), np.int8),
                 array((32, 16), np.int8)),
    **{n: maps(_dot(_MM, preferred_element_type=F32), array((16, 32), getattr(ml_dtypes, n)),
               array((32, 16), getattr(ml_dtypes, n)), tolerance=1e-5)
       for n in ("float8_e4m3fn", "float8_e5m2")},
    "integers": maps(_dot(_MM), array((16, 8), I32), array((8, 16), I32)),
    "short": maps(_dot(_MM), array((16, 3)), array((3, 16)), tolerance=1e-5),
    "narrow": maps(_dot(_MM), array((1, 32)), array((32, 4)), tolerance=1e-5),
}  # fmt: skip


# References


def _parts(x: Any, o: Any) -> None:
    o[...] = x[...]
    o[0] = x[1, :]
    o[1:3, 2:9] = x[2:4, 1:8]
    o[4, ds(1, 5)] = x[3, ds(2, 5)]
    o[-1, 11] = x[0, 0]


def _strided(x: Any, o: Any) -> None:
    o[...] = x[:, ds(1, 4, 2)]


def _computed(x: Any, i: Any, o: Any) -> None:
    o[0] = x[i[0], ds(i[1], 4)]
    o[1] = x[i[2], ds(i[3], 4)]


def _positions(x: Any, p: Any, o: Any) -> None:
    o[...] = x[p[...]]


def _positions_apart(x: Any, p: Any, o: Any) -> None:
    o[...] = x[p[...], :, p[...]]


def _scattered(x: Any, p: Any, o: Any) -> None:
    o[...] = lax.full(o.shape, 0, F32)
    o[p[...], 3] = x[...]


def _accumulated(x: Any, o: Any) -> None:
    o[...] = lax.full(o.shape, 0, F32)
    for i in range(4):
        o[...] += x[i]
    o[1] += F32(5)


def _masked(x: Any, o: Any) -> None:
    i = program_id(0)
    where = lax.iota(I32, 8) + i * I32(8)
    o[...] = load(x.at[ds(i * I32(8), 8)], mask=lax.lt(where, I32(21)), other=F32(-1))


def _masked_store(x: Any, o: Any) -> None:
    store(o.at[...], x[...], mask=lax.gt(x[...], F32(0)))


def _swapped(x: Any, o: Any) -> None:
    o[...] = x[...]
    half = o[2:4]
    o[2:4] = half * F32(2) + o[0:2]


def _atomic(p: Any, o: Any) -> None:
    o[...] = lax.full(o.shape, 0, I32)
    atomic_add(o, (p[...],), lax.full(p.shape, 1, I32))


ACCESSES: dict[str, Case] = {
    "parts": Case(_parts, like(5, 12), X),
    "strided": Case(_strided, like(5, 4), X),
    "computed": Case(_computed, like(2, 4), X, np.array([2, 3, 99, 99], I32)),
    "positions": Case(_positions, like(3, 12), X, np.array([4, 0, 2], I32)),
    "positions_apart": Case(_positions_apart, like(3, 5), CUBE, np.array([2, 0, 1], I32)),
    "scattered": Case(_scattered, like(6, 5), array((4,)), np.array([5, 0, 2, 3], I32)),
    "accumulated": Case(_accumulated, like(12), X),
    "masked": Case(_masked, like(24), array((24,)), grid=(3,),
                   outs=BlockSpec((8,), lambda i: (i,))),
    "masked_store": Case(_masked_store, like(5, 12), X),
    "swapped": Case(_swapped, like(5, 12), X),
    "atomic": Case(_atomic, like(8, dtype=I32), np.array([1, 1, 7, 1, 0], I32)),
}  # fmt: skip


# Control flow


def _for(x: Any, o: Any) -> None:
    o[...] = lax.fori_loop(0, 5, lambda i, s: s + x[i] * lax.convert_element_type(i, F32),
                           lax.full((12,), 0, F32))  # fmt: skip


def _scan(x: Any, o: Any, q: Any) -> None:
    total, rows = lax.scan(lambda c, r: (c + r, c * r), lax.full((12,), 1, F32), x[...])
    o[...] = total
    q[...] = rows


def _scan_reverse(x: Any, o: Any) -> None:
    _, o[...] = lax.scan(lambda c, r: (c + r, c), F32(0), x[0], reverse=True)


def _while(x: Any, o: Any) -> None:
    done = lambda c: lax.lt(c[1], F32(100))
    o[...] = lax.while_loop(done, lambda c: (c[0] * F32(2), c[1] + lax.reduce_max(lax.abs(c[0]),
                            (0, 1))), (x[...], F32(0)))[0]  # fmt: skip


def _cond(x: Any, i: Any, o: Any) -> None:
    o[...] = lax.cond(lax.gt(i[0], I32(3)), lambda: x[...], lambda: x[...] * F32(2))


def _switch(x: Any, o: Any) -> None:
    i = program_id(0)
    o[...] = lax.switch(i, [lambda: x[...], lambda: x[...] + F32(1), lambda: lax.exp(x[...])])


def _when(x: Any, o: Any) -> None:
    o[...] = x[...]

    @when(lax.gt(x[0, 0], F32(5)))
    def _upper() -> None:
        o[...] = lax.full(o.shape, 0, F32)

    @when(lax.lt(x[0, 0], F32(5)))
    def _lower() -> None:
        o[1] = x[0]


def _jitted(x: Any, o: Any) -> None:
    o[...] = jit(lambda v: lax.tanh(v) + v)(x[...])


def _scoped(x: Any, o: Any) -> None:
    def body(ref: Any) -> None:
        ref[...] = x[...]
        ref[0] = ref[1] + ref[2]
        lax.fori_loop(0, 3, lambda i, _: ref.__setitem__(3, ref[3] * F32(2)), None)
        o[...] = ref[...]

    run_scoped(body, ShapeDtypeStruct(x.shape, F32))


def _loop_writes(x: Any, o: Any) -> None:
    def body(i: Any, _: Any) -> None:
        o[ds(i * I32(2), 4)] = x[ds(i, 4)] * F32(2)

    o[...] = lax.full(o.shape, 0, F32)
    lax.fori_loop(0, 3, body, None)


CONTROL: dict[str, Case] = {
    "for": Case(_for, like(12), X, tolerance=1e-5),
    "scan": Case(_scan, (like(12), like(5, 12)), X, tolerance=1e-5),
    "scan_reverse": Case(_scan_reverse, like(12), X, tolerance=1e-5),
    "while": Case(_while, like(5, 12), X),
    "cond": Case(_cond, like(5, 12), X, np.array([4], I32)),
    "switch": Case(_switch, like(15, 12), X, grid=(3,), outs=BlockSpec((5, 12), lambda i: (i, 0))),
    "when": Case(_when, like(5, 12), X),
    "jitted": Case(_jitted, like(5, 12), X),
    "scoped": Case(_scoped, like(5, 12), X),
    "loop_writes": Case(_loop_writes, like(8), array((9,))),
}


# Grids and blocks


def _double(x: Any, o: Any) -> None:
    o[...] = x[...] * F32(2)


def _window(x: Any, o: Any) -> None:
    o[...] = x[ds(0, 8)] + x[ds(1, 8)] + x[ds(2, 8)]


def _row_sums(x: Any, o: Any) -> None:
    @when(program_id(1) == 0)
    def _start() -> None:
        o[...] = lax.full(o.shape, 0, F32)

    o[...] += lax.reduce_sum(x[...], (1,))


def _running(x: Any, o: Any, total: Any) -> None:
    @when(program_id(0) == 0)
    def _start() -> None:
        total[...] = lax.full(total.shape, 0, F32)

    total[...] += x[...]
    o[...] = total[...]


def _sometimes(x: Any, o: Any) -> None:
    @when(lax.gt(x[0], F32(0)))
    def _upper() -> None:
        o[...] = x[...]


def _first_half(x: Any, o: Any) -> None:
    o[0:2] = x[0:2]


def _increment(x: Any, o: Any) -> None:
    o[...] = x[...] + F32(1)


def _neighbour(x: Any, o: Any) -> None:
    o[...] = x[...] * F32(10)


ROW = BlockSpec((4,), lambda i: (i,))
GRIDS: dict[str, Case] = {
    "partial": Case(_double, like(21), array((21,)), grid=(3,),
                    ins=[BlockSpec((8,), lambda i: (i,))], outs=BlockSpec((8,), lambda i: (i,))),
    "odd": Case(_double, like(21), array((21,)), grid=(4,),
                ins=[BlockSpec((6,), lambda i: (i,))], outs=BlockSpec((6,), lambda i: (i,))),
    "two_partial": Case(_double, like(21, 10), array((21, 10)), grid=(3, 2),
                        ins=[BlockSpec((8, 6), lambda i, j: (i, j))],
                        outs=BlockSpec((8, 6), lambda i, j: (i, j))),
    "squeezed": Case(_double, like(3, 12), array((3, 12)), grid=(3,),
                     ins=[BlockSpec((None, 12), lambda i: (i, 0))],
                     outs=BlockSpec((None, 12), lambda i: (i, 0))),
    "reversed": Case(_double, like(12), array((12,)), grid=(3,),
                     ins=[BlockSpec((4,), lambda i: (2 - i,))], outs=ROW),
    "beyond": Case(_double, like(12), array((12,)), grid=(3,),
                   ins=[BlockSpec((4,), lambda i: (i + 5,))], outs=ROW),
    "four": Case(_double, like(2, 3, 2, 12), array((2, 3, 2, 12)), grid=(2, 3, 2, 3),
                 ins=[BlockSpec((None, None, None, 4), lambda *i: i)],
                 outs=BlockSpec((None, None, None, 4), lambda *i: i)),
    "row_sums": Case(_row_sums, like(8), array((8, 12)), grid=(2, 3),
                     ins=[BlockSpec((4, 4), lambda i, j: (i, j))],
                     outs=BlockSpec((4,), lambda i, j: (i,)), tolerance=1e-5),
    "running": Case(_running, like(12), array((12,)), grid=(3,), ins=[ROW], outs=ROW,
                    scratch=[ShapeDtypeStruct((4,), F32)], tolerance=1e-5),
    "sometimes": Case(_sometimes, like(12), array((12,)), grid=(3,), ins=[ROW], outs=ROW),
    "first_half": Case(_first_half, like(12), array((12,)), grid=(3,), ins=[ROW], outs=ROW),
    "uncovered": Case(_double, like(20), array((12,)), grid=(3,), ins=[ROW], outs=ROW),
    "in_place": Case(_increment, like(12), array((12,)), grid=(3,), ins=[ROW], outs=ROW,
                     aliases={0: 0}),
    "in_place_neighbour": Case(_neighbour, like(12), array((12,)), grid=(3,),
                               ins=[BlockSpec((4,), lambda i: (2 - i,))], outs=ROW,
                               aliases={0: 0}),
    "in_place_partly": Case(_first_half, like(12), array((12,)), grid=(3,), ins=[ROW], outs=ROW,
                            aliases={0: 0}),
}  # fmt: skip

GROUPS: dict[str, dict[str, Case]] = {
    "elementwise": ELEMENTWISE, "conversions": CONVERSIONS, "shapes": SHAPES,
    "reductions": REDUCTIONS, "dots": DOTS, "accesses": ACCESSES, "control": CONTROL,
    "grids": GRIDS,
}  # fmt: skip


def call_of(case: Case) -> Callable[..., Any]:
    """The function of arrays of a case."""
    options: dict[str, Any] = {"grid": case.grid, "scratch_shapes": case.scratch}
    if case.ins is not None:
        options["in_specs"] = case.ins
    if case.outs is not None:
        options["out_specs"] = [case.outs]
    out = [case.out()] if callable(case.out) else list(case.out)
    return pallas_call(case.kernel, out, input_output_aliases=dict(case.aliases), **options)


def kernel_of(call: Callable[..., Any], *args: Any) -> Any:
    """The traced kernel of a call."""
    (eqn,) = make_jaxpr(call)(*args).eqns
    return eqn.params["kernel"]
