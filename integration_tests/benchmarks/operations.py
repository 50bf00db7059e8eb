"""Steady-state time of every operation of ``lax`` against the reference, at several sizes.

``python -m integration_tests.benchmarks.operations [--only PART] [--jitted] [--json FILE]``. Both
libraries run in one process. Calls are eager unless ``--jitted`` is given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from .case import Namespace
from .table import Row, compare, options, report

SIZES = (1_000, 30_000, 1_000_000)
Build = Callable[[Namespace, int], tuple[Callable[..., Any], list[np.ndarray]]]

OPERATIONS: dict[str, Build] = {}
RNG = np.random.default_rng(0)


def floats(*shape: int, low: float = 0.1, high: float = 0.9) -> np.ndarray:
    """Random floats; the default range is in the domain of every function."""
    return RNG.uniform(low, high, shape).astype(np.float32)


def square(n: int) -> tuple[int, int]:
    """The shape of a matrix with about ``n`` elements."""
    return int(n**0.5), int(n**0.5)


def operation(name: str) -> Callable[[Build], Build]:
    """Register a function that returns an operation and its operands."""

    def register(build: Build) -> Build:
        OPERATIONS[name] = build
        return build

    return register


def _unary(name: str, **limits: float) -> None:
    OPERATIONS[name] = lambda ns, n: (getattr(ns.lax, name), [floats(n, **limits)])


def _binary(name: str) -> None:
    OPERATIONS[name] = lambda ns, n: (getattr(ns.lax, name), [floats(n), floats(n)])


def _integers(name: str, arity: int) -> None:
    def build(ns: Namespace, n: int):
        return getattr(ns.lax, name), [RNG.integers(1, 30, n, np.int32) for _ in range(arity)]

    OPERATIONS[name] = build


for _name in (
    "abs", "acos", "asin", "asinh", "atan", "atanh", "bessel_i0e", "bessel_i1e", "cbrt", "ceil",
    "cos", "cosh", "digamma", "erf", "erf_inv", "erfc", "exp", "exp2", "expm1", "floor",
    "is_finite", "lgamma", "log", "log1p", "logistic", "neg", "reciprocal", "round", "rsqrt",
    "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh",
):  # fmt: skip
    _unary(_name)
_unary("acosh", low=1.1, high=3.0)
for _name in (
    "add", "atan2", "div", "eq", "ge", "gt", "igamma", "igammac", "igamma_grad_a", "le", "lt",
    "max", "min", "mul", "ne", "nextafter", "pow", "random_gamma_grad", "rem", "sub",
):  # fmt: skip
    _binary(_name)
for _name in ("bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right_logical"):
    _integers(_name, 2)
for _name in ("bitwise_not", "clz", "population_count"):
    _integers(_name, 1)


@operation("zeta")
def _(ns, n):
    return ns.lax.zeta, [floats(n, low=1.5, high=4), floats(n, low=0.5, high=4)]


@operation("polygamma")
def _(ns, n):
    return ns.lax.polygamma, [RNG.integers(1, 4, n).astype(np.float32), floats(n, low=0.5, high=4)]


@operation("betainc")
def _(ns, n):
    return ns.lax.betainc, [floats(n, high=5), floats(n, high=5), floats(n)]


@operation("integer_pow 3")
def _(ns, n):
    return lambda x: ns.lax.integer_pow(x, 3), [floats(n)]


@operation("select_n")
def _(ns, n):
    return ns.lax.select_n, [RNG.random(n) < 0.5, floats(n), floats(n)]


@operation("clamp")
def _(ns, n):
    return lambda x: ns.lax.clamp(0.3, x, 0.7), [floats(n)]


@operation("convert to bfloat16")
def _(ns, n):
    return lambda x: ns.lax.convert_element_type(x, "bfloat16"), [floats(n)]


@operation("bitcast")
def _(ns, n):
    return lambda x: ns.lax.bitcast_convert_type(x, np.int32), [floats(n)]


@operation("reduce_precision")
def _(ns, n):
    return lambda x: ns.lax.reduce_precision(x, 5, 10), [floats(n)]


for _kind in ("sum", "max", "min", "prod"):
    for _axes in ((0,), (1,), (0, 1)):

        def _reduction(ns: Namespace, n: int, kind=_kind, axes=_axes):
            fun = getattr(ns.lax, f"reduce_{kind}")
            return lambda x: fun(x, axes), [floats(*square(n))]

        OPERATIONS[f"reduce_{_kind} axes {_axes}"] = _reduction

for _axis in (0, 1):
    OPERATIONS[f"argmax axis {_axis}"] = lambda ns, n, axis=_axis: (
        lambda x: ns.lax.argmax(x, axis, np.int32), [floats(*square(n))])  # fmt: skip
    OPERATIONS[f"sort axis {_axis}"] = lambda ns, n, axis=_axis: (
        lambda x: ns.lax.sort(x, dimension=axis), [floats(*square(n))])  # fmt: skip
    OPERATIONS[f"sort two operands axis {_axis}"] = lambda ns, n, axis=_axis: (
        lambda x, y: ns.lax.sort((x, y), dimension=axis), [floats(*square(n)), floats(*square(n))]
    )  # fmt: skip
    for _name in ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"):
        OPERATIONS[f"{_name} axis {_axis}"] = lambda ns, n, axis=_axis, name=_name: (
            lambda x: getattr(ns.lax, name)(x, axis), [floats(*square(n))])  # fmt: skip


@operation("sort a vector")
def _(ns, n):
    return ns.lax.sort, [floats(n)]


@operation("argsort of a vector")
def _(ns, n):
    positions = np.arange(n, dtype=np.int32)
    return lambda x, i: ns.lax.sort((x, i), num_keys=1), [floats(n), positions]


for _dtype in (np.dtype(np.int32), np.dtype(ml_dtypes.bfloat16)):
    OPERATIONS[f"sort a vector of {_dtype}"] = lambda ns, n, dtype=_dtype: (
        ns.lax.sort, [np.asarray(1e4 * floats(n)).astype(dtype)])  # fmt: skip
    OPERATIONS[f"top_k 10 of {_dtype}"] = lambda ns, n, dtype=_dtype: (
        lambda x: ns.lax.top_k(x, 10),
        [np.asarray(1e4 * floats(*square(n))).astype(dtype)],
    )


@operation("top_k of half a vector")
def _(ns, n):
    return lambda x: ns.lax.top_k(x, n // 2), [floats(n)]


@operation("cumsum of a vector")
def _(ns, n):
    return ns.lax.cumsum, [floats(n)]


@operation("cummax of a vector")
def _(ns, n):
    return ns.lax.cummax, [floats(n)]


@operation("top_k 10")
def _(ns, n):
    return lambda x: ns.lax.top_k(x, 10), [floats(*square(n))]


@operation("approx_max_k 10")
def _(ns, n):
    return lambda x: ns.lax.approx_max_k(x, 10), [floats(*square(n))]


@operation("reduce with a function")
def _(ns, n):
    return (
        lambda x: ns.lax.reduce(x, np.float32(0), lambda a, b: a + b * 1.0, (0,)),
        [floats(*square(n))],
    )


@operation("broadcast_in_dim")
def _(ns, n):
    return lambda x: ns.lax.broadcast_in_dim(x, square(n), (1,)), [floats(square(n)[1])]


@operation("transpose")
def _(ns, n):
    return lambda x: ns.lax.transpose(x, (1, 0)), [floats(*square(n))]


@operation("rev")
def _(ns, n):
    return lambda x: ns.lax.rev(x, (0,)), [floats(n)]


@operation("reshape")
def _(ns, n):
    return lambda x: ns.lax.reshape(x, (n // 10, 10)), [floats(n)]


@operation("concatenate")
def _(ns, n):
    return lambda x, y: ns.lax.concatenate([x, y], 0), [floats(n), floats(n)]


@operation("pad")
def _(ns, n):
    return lambda x: ns.lax.pad(x, np.float32(0), [(1, 2, 1)]), [floats(n)]


@operation("slice with steps")
def _(ns, n):
    return lambda x: ns.lax.slice(x, (1,), (n,), (3,)), [floats(n)]


@operation("dynamic_slice")
def _(ns, n):
    return lambda x, i: ns.lax.dynamic_slice(x, (i,), (n // 2,)), [floats(n), np.int32(3)]


@operation("dynamic_update_slice")
def _(ns, n):
    return (
        lambda x, u, i: ns.lax.dynamic_update_slice(x, u, (i,)),
        [floats(n), floats(n // 2), np.int32(3)],
    )


@operation("iota")
def _(ns, n):
    return lambda: ns.lax.iota(np.float32, n), []


@operation("gather rows")
def _(ns, n):
    rows, columns = square(n)
    numbers = ns.lax.GatherDimensionNumbers((1,), (0,), (0,))
    return (
        lambda x, i: ns.lax.gather(x, i, numbers, (1, columns), mode="clip"),
        [floats(rows, columns), RNG.integers(0, rows, (rows, 1), np.int32)],
    )


@operation("scatter_add rows")
def _(ns, n):
    rows, columns = square(n)
    numbers = ns.lax.ScatterDimensionNumbers((1,), (0,), (0,))
    return (
        lambda x, i, u: ns.lax.scatter_add(x, i, u, numbers),
        [floats(rows, columns), RNG.integers(0, rows, (rows, 1), np.int32), floats(rows, columns)],
    )


@operation("dot")
def _(ns, n):
    return ns.lax.dot, [floats(*square(n)), floats(*square(n))]


@operation("batched dot_general")
def _(ns, n):
    shape = (8, max(1, int((n / 8) ** 0.5)), max(1, int((n / 8) ** 0.5)))
    numbers = (((2,), (1,)), ((0,), (0,)))
    return lambda x, y: ns.lax.dot_general(x, y, numbers), [floats(*shape), floats(*shape)]


@operation("ragged_dot")
def _(ns, n):
    rows, columns = square(n)
    sizes = np.full(4, rows // 4, np.int32)
    return ns.lax.ragged_dot, [floats(rows, columns), floats(4, columns, 16), sizes]


def _image(n: int, channels: int) -> np.ndarray:
    side = max(4, int((n / channels) ** 0.5))
    return floats(1, channels, side, side)


@operation("convolution 3x3")
def _(ns, n):
    return lambda x, k: ns.lax.conv(x, k, (1, 1), "SAME"), [_image(n, 8), floats(8, 8, 3, 3)]


@operation("depthwise convolution 3x3")
def _(ns, n):
    def run(x, k):
        return ns.lax.conv_general_dilated(x, k, (1, 1), "SAME", feature_group_count=8)

    return run, [_image(n, 8), floats(8, 1, 3, 3)]


@operation("transposed convolution 3x3")
def _(ns, n):
    numbers = ("NCHW", "OIHW", "NCHW")

    def run(x, k):
        return ns.lax.conv_transpose(x, k, (2, 2), "SAME", dimension_numbers=numbers)

    return run, [_image(n // 4, 8), floats(8, 8, 3, 3)]


# (batch, channels, groups, side of the kernel): the images have about ``n`` elements.
_CONVOLUTIONS = {
    "batch of 8": (8, 16, 1, 3),
    "pointwise": (8, 32, 1, 1),
    "one channel 5x5": (1, 1, 1, 5),
    "grouped 4": (8, 32, 4, 3),
    "depthwise": (8, 32, 32, 3),
    "depthwise 7x7": (8, 32, 32, 7),
}
_LAYOUTS = {"NCHW": ("NCHW", "OIHW", "NCHW"), "NHWC": ("NHWC", "HWIO", "NHWC")}


def _convolution(ns: Namespace, n: int, shape: tuple[int, ...], layout: str, part: str):
    """A convolution, or its gradient with respect to the input or the kernel."""
    batch, channels, groups, window = shape
    side = max(4, int((n / batch / channels) ** 0.5))
    x = floats(batch, channels, side, side)
    k = floats(channels, channels // groups, window, window)
    if layout == "NHWC":
        x, k = x.transpose(0, 2, 3, 1), k.transpose(2, 3, 1, 0)

    def run(x, k):
        return ns.lax.conv_general_dilated(
            x, k, (1, 1), "SAME", dimension_numbers=_LAYOUTS[layout], feature_group_count=groups
        )

    if part == "forward":
        return run, [x, k]
    if part == "by input":
        return lambda k, g: ns.jax.linear_transpose(lambda x: run(x, k), x)(g)[0], [k, x]
    return lambda x, g: ns.jax.linear_transpose(lambda k: run(x, k), k)(g)[0], [x, x]


for _name, _shape in _CONVOLUTIONS.items():
    for _layout in _LAYOUTS:
        for _part in ("forward", "by input", "by kernel"):
            OPERATIONS[f"convolution {_name} {_layout} {_part}"] = (
                lambda ns, n, shape=_shape, layout=_layout, part=_part: _convolution(
                    ns, n, shape, layout, part)
            )  # fmt: skip


@operation("convolution over a line")
def _(ns, n):
    def run(x, k):
        return ns.lax.conv_general_dilated(x, k, (1,), "SAME")

    return run, [floats(1, 4, n // 4), floats(4, 4, 5)]


for _name in ("sum", "max", "min"):

    def _windows(ns: Namespace, n: int, name=_name):
        op, init = {"sum": (ns.lax.add, 0.0), "max": (ns.lax.max, -np.inf),
                    "min": (ns.lax.min, np.inf)}[name]  # fmt: skip
        return (
            lambda x: ns.lax.reduce_window(x, np.float32(init), op, (3, 3), (1, 1), "SAME"),
            [floats(*square(n))],
        )

    OPERATIONS[f"reduce_window {_name} 3x3"] = _windows


for _name, _kind in (("fft", "FFT"), ("rfft", "RFFT")):

    def _transform(ns: Namespace, n: int, kind=_kind):
        rows = floats(n // 250, 250)
        x = rows.astype(np.complex64) if kind == "FFT" else rows
        return lambda x: ns.lax.fft(x, kind, (250,)), [x]

    OPERATIONS[_name] = _transform


def _matrices(n: int) -> np.ndarray:
    """Well-conditioned symmetric 16 x 16 matrices with ``n`` elements in total."""
    a = RNG.standard_normal((max(1, n // 256), 16, 16)).astype(np.float32)
    return a @ a.swapaxes(-1, -2) + 16 * np.eye(16, dtype=np.float32)


for _name in ("cholesky", "lu", "qr", "eigh", "svd"):
    OPERATIONS[f"linalg.{_name}"] = lambda ns, n, name=_name: (
        getattr(ns.lax.linalg, name), [_matrices(n)])  # fmt: skip


@operation("linalg.triangular_solve")
def _(ns, n):
    a = _matrices(n)
    return (
        lambda a, b: ns.lax.linalg.triangular_solve(a, b, left_side=True, lower=True),
        [np.tril(a), floats(*a.shape)],
    )


@operation("threefry bits")
def _(ns, n):
    key = np.array([1, 2], np.uint32)
    generate = lambda k: ns.lax.rng_bit_generator(k, (n,), np.uint32)
    return generate, [np.concatenate([key, key])]


@operation("scan")
def _(ns, n):
    step = lambda c, x: (c * 0.5 + x, c)
    return lambda c, xs: ns.lax.scan(step, c, xs), [floats(n // 100), floats(100, n // 100)]


@operation("while_loop")
def _(ns, n):
    def run(x):
        return ns.lax.fori_loop(0, 50, lambda i, c: c * 0.5 + 1.0, x)

    return run, [floats(n)]


@operation("associative_scan")
def _(ns, n):
    return lambda x: ns.lax.associative_scan(ns.lax.add, x), [floats(n)]


def prepared(ns: Namespace, build: Build, size: int, jitted: bool) -> Callable[[], Any]:
    """Prepare a call of an operation on device arrays."""
    global RNG
    RNG = np.random.default_rng(0)
    fun, operands = build(ns, size)
    arrays = [ns.jax.device_put(x) for x in operands]
    if jitted:
        fun = ns.jax.jit(fun)
    return lambda: fun(*arrays)


def main() -> None:
    """Measure and print the table."""
    args = options("integration_tests.benchmarks.operations", SIZES)
    sides = Namespace("jax"), Namespace("primax")

    def measure(name: str, size: int) -> Row:
        build = OPERATIONS[name]
        return compare(name, size, sides, lambda ns: prepared(ns, build, size, args.jitted))

    report(args, OPERATIONS, measure)


if __name__ == "__main__":
    main()
