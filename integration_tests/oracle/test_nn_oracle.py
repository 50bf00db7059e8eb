"""Neural-network functions against the reference.

The wheel's test cases with first and second derivatives, all dtypes, initializers bit for bit,
layers and optimizers.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest
from agreement import same
from jax.example_libraries import optimizers as their_opt, stax as their_stax
from jax.nn import initializers as their_init
from nn_cases import ACTIVATIONS, all_cases

import primax_core as px
import primax_nn as pnn
from primax_core.extend import dtypes
from primax_nn import initializers as our_init
from primax_nn.example_libraries import optimizers as our_opt, stax as our_stax
from primax_numpy import random
from test_support import Case, assert_close, fixing, numbered

CASES = [c for c in all_cases() if not c.differs]
NAMES = numbered(CASES)
DTYPES = [
    np.bool_, np.int8, np.uint8, np.int32, np.uint32, np.float16, ml_dtypes.bfloat16, np.float32,
    np.complex64, ml_dtypes.float8_e4m3fn,
]  # fmt: skip


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def parted(case: Case, module: Any, args: list[Any]) -> tuple[Any, list[Any]]:
    """Split a case into a function of its floats, and the floats."""
    at = case.differentiated()
    return fixing(case.on(module), args, at), [args[i] for i in at]


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_values_and_types(case: Case) -> None:
    args = case.draw()
    ours, theirs = case.on(pnn)(*args), case.on(jax.nn)(*args)
    same(ours, theirs, repr(case), case.tolerance)


SMOOTH = [c for c in CASES if c.differentiated() and not c.derivative_differs]


def _gradients(module: Any, fun: Any, some: list[Any], order: int) -> Any:
    """Pullbacks of fixed cotangents, and their derivatives along fixed directions."""
    rng = np.random.default_rng(1)

    def drawn(x: Any) -> Any:
        values = rng.uniform(0.5, 1.5, np.shape(x))
        return np.asarray(values).astype(np.asarray(x).dtype)

    cts = jax.tree.map(drawn, jax.tree.map(np.asarray, fun(*some)))
    directions = [drawn(x) for x in some]

    def pulled(*xs: Any) -> Any:
        return module.vjp(fun, *xs)[1](cts)

    if order == 1:
        return pulled(*some)
    return module.jvp(pulled, tuple(some), tuple(directions))


@pytest.mark.rotate()
@pytest.mark.parametrize("case", SMOOTH, ids=numbered(SMOOTH))
def test_derivatives(case: Case) -> None:
    args = case.draw()
    ours, some = parted(case, pnn, args)
    theirs, _ = parted(case, jax.nn, args)
    actual = _gradients(px, ours, some, case.order)
    expected = _gradients(jax, theirs, some, case.order)
    actual, expected = (jax.tree.map(np.asarray, jax.tree.leaves(x)) for x in (actual, expected))
    assert len(actual) == len(expected)
    for a, b in zip(actual, expected):
        atol = 1e-4 * max(1.0, np.abs(b).max(initial=0.0))
        assert_close(a, b, rtol=2e-4, atol=atol, check_dtype=True, err_msg=repr(case))


# Kinks where both use the same derivative

KINKS = {
    "relu": [0.0, -0.0], "relu6": [0.0, 6.0], "leaky_relu": [0.0], "elu": [0.0], "selu": [0.0],
    "celu": [0.0], "hard_tanh": [-1.0, 1.0], "hard_sigmoid": [-3.0, 3.0], "hard_silu": [-3.0, 3.0],
    "sparse_plus": [-1.0, 1.0], "sparse_sigmoid": [-1.0, 1.0], "soft_sign": [0.0], "silu": [0.0],
    "softplus": [0.0], "log_sigmoid": [0.0], "mish": [0.0], "gelu": [0.0], "squareplus": [0.0],
}  # fmt: skip


@pytest.mark.parametrize("name", KINKS)
def test_derivatives_at_kinks(name: str) -> None:
    for x in np.float32(KINKS[name]):
        actual, expected = (m.grad(getattr(n, name))(x) for m, n in ((px, pnn), (jax, jax.nn)))
        same(actual, expected, f"{name} at {x}")
        if name != "celu":  # the reference's second derivative at 0 is the mean of both sides
            actual, expected = (
                m.grad(m.grad(getattr(n, name)))(x) for m, n in ((px, pnn), (jax, jax.nn))
            )
            same(actual, expected, f"{name} at {x}, second")


ONE_ARRAY = [*ACTIVATIONS, "log1mexp", "softmax", "log_softmax", "logsumexp", "logmeanexp",
             "standardize", "glu", "identity"]  # fmt: skip


@pytest.mark.rotate(every=5, whole=True)
@pytest.mark.parametrize("name", ONE_ARRAY)
def test_dtypes(name: str) -> None:
    """Both give the same dtype and weak type for operands of all dtypes, or both raise."""
    rng = np.random.default_rng(0)
    for dtype in DTYPES:
        x = (3 * rng.random((2, 4))).astype(dtype)
        for arg in (x, px.device_put(x)):
            _compare_one(name, arg, x)
    for value in (True, 2, 0.5, 1j):
        if name in ("softmax", "log_softmax", "standardize", "glu"):
            continue
        _compare_one(name, value, value)


def _compare_one(name: str, ours: Any, theirs: Any) -> None:
    what = f"{name} of {np.asarray(theirs).dtype}"
    try:
        expected = getattr(jax.nn, name)(theirs)
    except Exception as error:
        with pytest.raises((TypeError, ValueError)):
            getattr(pnn, name)(ours)
        assert isinstance(error, (TypeError, ValueError)), what
        return
    actual = getattr(pnn, name)(ours)
    assert actual.dtype == expected.dtype, f"{what}: {actual.dtype} and {expected.dtype}"
    weak = actual.weak_type, expected.weak_type
    assert weak[0] == weak[1], f"{what}: weak types {weak}"
    # In the reference, negated unsigned integers wrap, also in comparisons.
    if np.asarray(theirs).dtype.kind in "fib" and np.asarray(theirs).ndim:
        a, b = (np.asarray(x).astype(np.float64) for x in (actual, expected))
        limit = {1: 0.3, 2: 3e-2}.get(actual.dtype.itemsize, 2e-5)
        np.testing.assert_allclose(a, b, limit, limit, err_msg=what)


@pytest.mark.rotate(every=5, whole=True)
@pytest.mark.parametrize("name", ["elu", "celu", "leaky_relu", "squareplus"])
def test_dtypes_of_parameters(name: str) -> None:
    for x in (np.float32([1, -2]), ml_dtypes.bfloat16(1), np.int8([1, 2]), 1.5, 2):
        for a in (
            2.0,
            2,
            np.float32(2),
            np.float32([[2], [3]]),
            np.int32(2),
            ml_dtypes.bfloat16(2),
        ):
            x_, a_ = np.asarray(x) if isinstance(x, ml_dtypes.bfloat16) else x, a
            actual, expected = (getattr(n, name)(x_, a_) for n in (pnn, jax.nn))
            same(actual, expected, f"{name} {np.asarray(x).dtype} {np.asarray(a).dtype}", 2e-2)


def test_one_hot_dtypes() -> None:
    for dtype in (np.int8, np.uint8, np.int32, np.uint32, np.float32):
        for out_dtype in (None, bool, np.int8, np.float16, np.complex64):
            x = np.array([0, 1, 5], dtype)
            same(pnn.one_hot(x, 3, dtype=out_dtype), jax.nn.one_hot(x, 3, dtype=out_dtype))


# Products of narrow floats

FORMATS = ["mxfp8", "nvfp4", "mxfp4"]


@pytest.mark.parametrize("mode", FORMATS)
def test_quantized_products(mode: str) -> None:
    rng = np.random.default_rng(3)
    x, y = (rng.standard_normal((1, n, 64)).astype(np.float32) for n in (32, 64))
    numbers = (((2,), (2,)), ((0,), (0,)))
    results = []
    for m, n in ((px, pnn), (jax, jax.nn)):
        formats = [n.get_scaled_dot_general_config(mode)] * 3

        def loss(a, b, n=n, formats=formats):
            return (n.scaled_dot_general(a, b, numbers, configs=formats) ** 2).sum()

        out = n.scaled_dot_general(x, y, numbers, configs=formats)
        results.append(jax.tree.map(np.asarray, [out, *m.grad(loss, (0, 1))(x, y)]))
    for a, b in zip(*results):
        np.testing.assert_allclose(a, b, 1e-4, 1e-4 * np.abs(b).max())


def test_scaled_matmul() -> None:
    rng = np.random.default_rng(3)
    x, y = ((8 * rng.standard_normal((2, n, 64))).astype(ml_dtypes.float8_e4m3fn) for n in (3, 5))
    scales = [
        (2.0 ** rng.integers(-3, 4, (2, n, 2))).astype(ml_dtypes.float8_e8m0fnu) for n in (3, 5)
    ]
    for dtype in (np.float32, ml_dtypes.bfloat16):
        actual, expected = (
            n.scaled_matmul(x, y, *scales, preferred_element_type=dtype) for n in (pnn, jax.nn)
        )
        same(actual, expected, rtol=1e-2 if dtype is not np.float32 else None)


# Initializers

SHAPES = [(3, 5), (7, 2), (4, 4), (3, 3, 4, 8)]
MAKERS = {
    "normal": {}, "uniform": {}, "truncated_normal": {}, "glorot_normal": {}, "glorot_uniform": {},
    "he_normal": {}, "he_uniform": {}, "lecun_normal": {}, "lecun_uniform": {}, "orthogonal": {},
    "delta_orthogonal": {}, "constant": {"value": 2.5},
}  # fmt: skip


def both_inits(name: str, shape: Any, dtype: Any = None, **params: Any) -> None:
    """Both give the same bits."""
    theirs = getattr(their_init, name)(**params)(jax.random.key(5), shape, dtype)
    ours = getattr(our_init, name)(**params)(random.key(5), shape, dtype)
    assert ours.dtype == theirs.dtype and ours.weak_type == theirs.weak_type
    a, b = np.asarray(ours), np.asarray(theirs)
    assert a.shape == b.shape and (a == b).all(), (name, shape, dtype, params)


@pytest.mark.optimised
@pytest.mark.parametrize("name", MAKERS)
def test_initializers_bit_for_bit(name: str) -> None:
    for shape in SHAPES:
        if name == "delta_orthogonal" and (len(shape) < 3 or shape[-1] < shape[-2]):
            continue
        both_inits(name, shape, **MAKERS[name])
        if "orthogonal" not in name:
            both_inits(name, shape, ml_dtypes.bfloat16, **MAKERS[name])
            both_inits(name, shape, np.float16, **MAKERS[name])


@pytest.mark.optimised
@pytest.mark.parametrize("mode", ["fan_in", "fan_out", "fan_avg", "fan_geo_avg"])
@pytest.mark.parametrize("distribution", ["normal", "truncated_normal", "uniform"])
def test_variance_scaling_bit_for_bit(mode: str, distribution: str) -> None:
    for scale in (1.0, 2.0, 0.37):
        params = {"scale": scale, "mode": mode, "distribution": distribution}
        both_inits("variance_scaling", (3, 5), **params)
        both_inits("variance_scaling", (30, 50), ml_dtypes.bfloat16, **params)
        for axes in (
            {"in_axis": 0, "out_axis": 1}, {"in_axis": (0, 1), "out_axis": 2},
            {"in_axis": -2, "out_axis": -1, "batch_axis": 0},
            {"in_axis": 1, "out_axis": (2, 3), "batch_axis": (0,)}, {"in_axis": (), "out_axis": -1},
        ):  # fmt: skip
            both_inits("variance_scaling", (2, 3, 5, 7), **params, **axes)


@pytest.mark.optimised
@pytest.mark.parametrize("params", [{"scale": 2.0}, {"column_axis": 0}, {"column_axis": 1}])
def test_orthogonal_matrices_bit_for_bit(params) -> None:
    for shape in [(3, 5), (5, 3), (4, 4), (2, 3, 4), (4, 2, 2), (2, 2, 4)]:
        both_inits("orthogonal", shape, **params)
        both_inits("orthogonal", shape, np.complex64, **params)


@pytest.mark.optimised
def test_other_parameters_bit_for_bit() -> None:
    for stddev in (1.0, 0.7, 0.02):
        both_inits("normal", (40, 50), stddev=stddev)
        both_inits("truncated_normal", (40, 50), stddev=stddev, lower=-1.0, upper=0.5)
        both_inits("uniform", (40, 50), scale=stddev)
    both_inits("normal", (40, 50), np.complex64)
    both_inits("constant", (2, 3), value=np.arange(3.0))
    both_inits("constant", (2, 3), np.int32, value=7)


@pytest.mark.parametrize("distribution", ["normal", "truncated_normal", "uniform"])
def test_complex_initializers(distribution: str) -> None:
    params = {"scale": 2.0, "mode": "fan_in", "distribution": distribution}
    theirs = their_init.variance_scaling(**params)(jax.random.key(5), (30, 5), np.complex64)
    ours = our_init.variance_scaling(**params)(random.key(5), (30, 5), np.complex64)
    same(ours, theirs, rtol=1e-6)


# Libraries

IMAGE = (2, 5, 6, 3)
LAYERS = {
    "Dense": (lambda s: s.Dense(4), (2, 3)),
    "Conv": (lambda s: s.Conv(4, (2, 3), (1, 2), "SAME"), IMAGE),
    "ConvTranspose": (lambda s: s.ConvTranspose(4, (2, 3), (2, 2), "SAME"), IMAGE),
    "Conv1DTranspose": (lambda s: s.Conv1DTranspose(4, (3,), (2,)), (2, 5, 3)),
    "GeneralConv": (lambda s: s.GeneralConv(("NCHW", "OIHW", "NCHW"), 4, (2, 2)), (2, 3, 5, 6)),
    "BatchNorm": (lambda s: s.BatchNorm(), IMAGE),
    "BatchNorm axis": (lambda s: s.BatchNorm(axis=0, scale=False), (4, 3)),
    "MaxPool": (lambda s: s.MaxPool((2, 2), (2, 1)), IMAGE),
    "AvgPool": (lambda s: s.AvgPool((2, 3), (2, 2), "SAME"), IMAGE),
    "SumPool": (lambda s: s.SumPool((2, 3), (1, 2), "VALID", "NCHW"), (2, 3, 5, 6)),
    "Flatten": (lambda s: s.Flatten, IMAGE),
    "Dropout": (lambda s: s.Dropout(0.7), (4, 8)),
    "Dropout in tests": (lambda s: s.Dropout(0.7, mode="test"), (4, 8)),
    "serial": (
        lambda s: s.serial(s.Dense(4), s.Relu, s.Dropout(0.9), s.Dense(2), s.LogSoftmax), (3, 5),
    ),
    "nested": (
        lambda s: s.serial(
            s.FanOut(2), s.parallel(s.serial(s.Dense(3), s.Gelu), s.Identity), s.FanInSum
        ),
        (2, 3),
    ),
    "concat": (
        lambda s: s.serial(
            s.FanOut(2), s.parallel(s.Dense(2), s.shape_dependent(lambda i: s.Dense(i[-1]))),
            s.FanInConcat(),
        ),
        (2, 3),
    ),
    **{
        name: (lambda s, name=name: getattr(s, name), (2, 3))
        for name in ("Elu", "Exp", "LeakyRelu", "Selu", "Sigmoid", "Softmax", "Softplus", "Tanh")
    },
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name: str) -> None:
    make, shape = LAYERS[name]
    x = np.random.default_rng(2).standard_normal(shape).astype(np.float32)
    results = []
    for library, key in ((our_stax, random.key(4)), (their_stax, jax.random.key(4))):
        init, apply = make(library)
        out_shape, params = init(key, shape)
        results.append((tuple(map(int, out_shape)), params, apply(params, x, rng=key)))
    (our_shape, our_params, ours), (their_shape, their_params, theirs) = results
    assert our_shape == their_shape
    for a, b in zip(px.tree.leaves(our_params), jax.tree.leaves(their_params), strict=True):
        assert (np.asarray(a) == np.asarray(b)).all()
    same(ours, theirs, name)


OPTIMIZERS = {
    "sgd": {}, "momentum": {"mass": 0.9}, "nesterov": {"mass": 0.9}, "adagrad": {}, "rmsprop": {},
    "rmsprop_momentum": {}, "adam": {}, "adamax": {}, "sm3": {},
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("compiled", [False, True])
def test_optimizers(name: str, compiled: bool) -> None:
    start = {"x": np.float32([1, -2, 0, 3]), "y": [np.float32([[2, 1], [3, -4]])]}
    results = []
    for m, library in ((px, our_opt), (jax, their_opt)):
        schedule = library.exponential_decay(0.1, 10, 0.5)
        init, update, get = getattr(library, name)(schedule, **OPTIMIZERS[name])
        state = init(start)
        update = m.jit(update) if compiled else update
        for i in range(5):
            state = update(i, jax.tree.map(lambda p: 1.5 * np.asarray(p), get(state)), state)
        results.append(get(state))
    # The weights of means are rounded once here; there, they are 1 minus a rounded number.
    for a, b in zip(jax.tree.leaves(results[0]), jax.tree.leaves(results[1]), strict=True):
        np.testing.assert_allclose(a, b, 3e-5, 1e-6)
        assert a.dtype == b.dtype


def test_schedules() -> None:
    for make in (
        lambda o: o.constant(0.1), lambda o: o.exponential_decay(0.1, 10, 0.5),
        lambda o: o.inverse_time_decay(0.1, 10, 0.5),
        lambda o: o.inverse_time_decay(0.1, 10, 0.5, True),
        lambda o: o.polynomial_decay(0.1, 10, 0.01, 2.0),
        lambda o: o.piecewise_constant([5, 10], [0.1, 0.2, 0.3]),
    ):  # fmt: skip
        ours, theirs = make(our_opt), make(their_opt)
        for i in (0, 1, 5, 6, 10, 11, 25):
            np.testing.assert_allclose(ours(i), theirs(i), 1e-6)
            if callable(getattr(ours(i), "astype", None)):
                assert ours(i).dtype == theirs(i).dtype


def test_norms_and_clipping() -> None:
    grads = [np.float32([3, 1]), (np.float32(4),)]
    same(our_opt.l2_norm(grads), their_opt.l2_norm(grads))
    for limit in (0.5, 100.0):
        same(our_opt.clip_grads(grads, limit), their_opt.clip_grads(grads, limit))


def test_double_precision() -> None:
    with px.enable_x64(True), jax.enable_x64(True):
        x = np.linspace(-3, 3, 12).reshape(3, 4)
        for name in [*ACTIVATIONS, "softmax", "log_softmax", "logsumexp", "standardize", "glu"]:
            same(getattr(pnn, name)(x), getattr(jax.nn, name)(x), name)
        q = np.random.default_rng(0).standard_normal((1, 4, 2, 3))
        args = (q, q + 1, q - 1)
        # The products are rounded to 32 bits.
        same(pnn.dot_product_attention(*args), jax.nn.dot_product_attention(*args), rtol=1e-6)
        assert dtypes.default_float() == np.float64
        same(pnn.one_hot(np.arange(3), 3), jax.nn.one_hot(np.arange(3), 3))
