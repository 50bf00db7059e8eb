"""stax and optimizers."""

from __future__ import annotations

import math

import numpy as np
import pytest

import primax_numpy as pnp
from primax_core import grad, jit, tree
from primax_nn.example_libraries import optimizers as opt, stax
from primax_numpy import random

KEY = random.key(7)
IMAGE = (2, 5, 6, 3)
LAYERS = {
    "Dense": (stax.Dense(4), (2, 3)),
    "Conv": (stax.Conv(4, (2, 3), (1, 2), "SAME"), IMAGE),
    "Conv with pads": (stax.Conv(4, (2, 3), padding=((1, 0), (2, 2))), IMAGE),
    "ConvTranspose": (stax.ConvTranspose(4, (2, 3), (2, 2), "SAME"), IMAGE),
    "Conv1DTranspose": (stax.Conv1DTranspose(4, (3,), (2,)), (2, 5, 3)),
    "GeneralConv": (stax.GeneralConv(("NCHW", "OIHW", "NCHW"), 4, (2, 2)), (2, 3, 5, 6)),
    "GeneralConvTranspose": (
        stax.GeneralConvTranspose(("NHWC", "HWIO", "NHWC"), 4, (2, 2), (2, 3)), IMAGE,
    ),
    "BatchNorm": (stax.BatchNorm(), IMAGE),
    "BatchNorm axis": (stax.BatchNorm(axis=0, center=False), (4, 3)),
    "BatchNorm plain": (stax.BatchNorm(axis=(0,), center=False, scale=False), (4, 3)),
    "MaxPool": (stax.MaxPool((2, 2), (2, 1)), IMAGE),
    "AvgPool": (stax.AvgPool((2, 3), (2, 2), "SAME"), IMAGE),
    "SumPool": (stax.SumPool((2, 3), (1, 2), "VALID", "NCHW"), (2, 3, 5, 6)),
    "Flatten": (stax.Flatten, IMAGE),
    "Dropout": (stax.Dropout(0.5), (2, 3)),
    "elementwise": (stax.elementwise(pnp.clip, min=0.0, max=0.5), (2, 3)),
    "serial": (stax.serial(stax.Dense(4), stax.Relu, stax.Dropout(0.9), stax.Dense(2)), (3, 5)),
    "shape_dependent": (stax.shape_dependent(lambda s: stax.Dense(2 * s[-1])), (3, 5)),
    "sum": (
        stax.serial(stax.FanOut(2), stax.parallel(stax.Dense(3), stax.Identity), stax.FanInSum),
        (2, 3),
    ),
    "concat": (
        stax.serial(
            stax.FanOut(3),
            stax.parallel(stax.Dense(2), stax.Tanh, stax.Softmax),
            stax.FanInConcat(),
        ),
        (2, 3),
    ),
    "nothing": (stax.serial(), (2, 3)),
    **{
        name: (getattr(stax, name), (2, 3))
        for name in (
            "Elu", "Exp", "Gelu", "Identity", "LeakyRelu", "LogSoftmax", "Relu", "Selu", "Sigmoid",
            "Softmax", "Softplus", "Tanh",
        )
    },
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_shapes_and_compilation(name: str) -> None:
    (init, apply), shape = LAYERS[name]
    out_shape, params = init(KEY, shape)
    x = np.asarray(random.normal(KEY, shape))
    out = apply(params, x, rng=KEY)
    assert out.shape == out_shape
    compiled = jit(lambda p, x: apply(p, x, rng=KEY))(params, x)
    np.testing.assert_allclose(compiled, out, 1e-5, 1e-6)


def test_batches_of_unknown_size():
    init, _ = stax.serial(stax.Conv(4, (3, 3)), stax.Relu, stax.MaxPool((2, 2)), stax.Flatten)
    shape, _ = init(KEY, (-1, 8, 8, 1))
    assert shape == (-1, 100)


def test_pools_agree_with_loops():
    x = np.asarray(random.normal(KEY, IMAGE))
    out = np.asarray(stax.AvgPool((2, 3), (2, 2), "SAME")[1]((), x))
    for i, j in np.ndindex(out.shape[1:3]):
        window = x[:, 2 * i : 2 * i + 2, max(0, 2 * j) : 2 * j + 3]
        np.testing.assert_allclose(out[:, i, j], window.mean((1, 2)), 1e-5, 1e-6)
    most = np.asarray(stax.MaxPool((2, 2))[1]((), x))
    np.testing.assert_allclose(most[:, 1, 2], x[:, 1:3, 2:4].max((1, 2)))


def test_batch_norm():
    x = 3 + 2 * np.asarray(random.normal(KEY, (64, 3)))
    init, apply = stax.BatchNorm(axis=0)
    _, (beta, gamma) = init(KEY, x.shape)
    out = np.asarray(apply((beta + 1, gamma * 2), x))
    np.testing.assert_allclose(out.mean(0), 1, 1e-4)
    np.testing.assert_allclose(out.std(0), 2, 1e-3)


def test_dropout():
    x = np.ones(1000, np.float32)
    out = np.asarray(stax.Dropout(0.8)[1]((), x, rng=KEY))
    assert set(out.tolist()) == {0.0, 1.25}
    assert 0.75 < (out > 0).mean() < 0.85
    assert stax.Dropout(0.8, mode="test")[1]((), x, rng=KEY) is x


def test_names_are_functions_of_the_wheel():
    import primax_nn as nn

    assert stax.relu is nn.relu and stax.logsoftmax is stax.log_softmax is nn.log_softmax
    assert stax.glorot is nn.initializers.glorot_normal and stax.randn is nn.initializers.normal


def test_a_small_network_learns():
    x = np.asarray(random.normal(random.key(1), (64, 2)))
    y = (x[:, 0] * x[:, 1] > 0).astype(np.int32)
    init, apply = stax.serial(stax.Dense(16), stax.Tanh, stax.Dense(2), stax.LogSoftmax)
    _, params = init(KEY, x.shape)
    opt_init, update, get = opt.adam(0.05)

    def loss(p):
        return -pnp.mean(apply(p, x)[pnp.arange(64), y])

    @jit
    def step(i, state):
        return update(i, grad(loss)(get(state)), state)

    state = opt_init(params)
    before = float(loss(get(state)))
    for i in range(60):
        state = step(i, state)
    assert float(loss(get(state))) < 0.5 * before


# Optimizers, against their formulas in float64

FORMULAS = {
    "sgd": (opt.sgd(0.1), lambda s, i, g: (s[0] - 0.1 * g,)),
    "momentum": (
        opt.momentum(0.1, 0.9),
        lambda s, i, g: (s[0] - 0.1 * (0.9 * s[1] + g), 0.9 * s[1] + g),
    ),
    "nesterov": (
        opt.nesterov(0.1, 0.9),
        lambda s, i, g: (s[0] - 0.1 * (0.9 * (0.9 * s[1] + g) + g), 0.9 * s[1] + g),
    ),
    "adagrad": (opt.adagrad(0.1), lambda s, i, g: _adagrad(s, g)),
    "rmsprop": (opt.rmsprop(0.1), lambda s, i, g: _rmsprop(s, g)),
    "rmsprop_momentum": (opt.rmsprop_momentum(0.1), lambda s, i, g: _rmsprop_momentum(s, g)),
    "adam": (opt.adam(0.1), lambda s, i, g: _adam(s, i, g)),
    "adamax": (opt.adamax(0.1), lambda s, i, g: _adamax(s, i, g)),
    "sm3": (opt.sm3(0.1), None),
}


def _adagrad(s, g):
    total = s[1] + g * g
    m = 0.1 * np.divide(g, np.sqrt(total), out=np.zeros_like(g), where=total > 0) + 0.9 * s[2]
    return s[0] - 0.1 * m, total, m


def _rmsprop(s, g):
    mean = 0.9 * s[1] + 0.1 * g * g
    return s[0] - 0.1 * g / np.sqrt(mean + 1e-8), mean


def _rmsprop_momentum(s, g):
    mean = 0.9 * s[1] + 0.1 * g * g
    m = 0.9 * s[2] + 0.1 * g / np.sqrt(mean + 1e-8)
    return s[0] - m, mean, m


def _adam(s, i, g):
    m, v = 0.9 * s[1] + 0.1 * g, 0.999 * s[2] + 0.001 * g * g
    root = np.sqrt(v / (1 - 0.999 ** (i + 1)))
    return s[0] - 0.1 * m / (1 - 0.9 ** (i + 1)) / (root + 1e-8), m, v


def _adamax(s, i, g):
    m, u = 0.9 * s[1] + 0.1 * g, np.maximum(0.999 * s[2], abs(g))
    return s[0] - 0.1 / (1 - 0.9 ** (i + 1)) * m / (u + 1e-8), m, u


@pytest.mark.parametrize("name", [n for n, (_, f) in FORMULAS.items() if f])
def test_steps(name: str) -> None:
    (init, update, get), formula = FORMULAS[name]
    x = np.float32([1, -2, 0, 3])
    state = init({"x": x, "y": [np.float32(2)]})
    expected = tuple(v.astype(np.float64) for v in (x, 0 * x, 0 * x))[: {"sgd": 1}.get(name, 3)]
    compiled = jit(update)
    for i in range(4):
        grads = tree.map(lambda p: 1.5 * p, get(state))
        other = compiled(i, grads, state)
        state = update(i, grads, state)
        np.testing.assert_allclose(get(other)["x"], get(state)["x"], 1e-6)
        expected = formula(expected, i, 1.5 * expected[0])
    np.testing.assert_allclose(get(state)["x"], expected[0], 2e-6, 1e-7)


def test_sm3_stores_sums_of_squares_by_rows():
    init, update, get = opt.sm3(0.1, momentum=0.0)
    x = np.float32([[1, 2], [3, 4], [5, 6]])
    state = update(0, x, init(x))
    np.testing.assert_allclose(get(state), x - 0.1, 1e-6)  # each step is g / sqrt(g * g)
    _, _, rows, columns = state.packed_state[0]
    assert np.asarray(rows).tolist() == [4, 16, 36] and np.asarray(columns).tolist() == [25, 36]
    state = update(1, x, state)
    squares = np.minimum.outer([4, 16, 36], [25, 36]) + x * x
    np.testing.assert_allclose(get(state), x - 0.1 - 0.1 * x / np.sqrt(squares), 1e-6)
    scalar = update(0, 2.0, init(1.0))
    np.testing.assert_allclose(get(scalar), 0.9, 1e-6)


SCHEDULES = {
    "constant": (opt.constant(0.1), lambda i: 0.1),
    "exponential": (opt.exponential_decay(0.1, 10, 0.5), lambda i: 0.1 * 0.5 ** (i / 10)),
    "inverse": (opt.inverse_time_decay(0.1, 10, 0.5), lambda i: 0.1 / (1 + 0.5 * i / 10)),
    "staircase": (
        opt.inverse_time_decay(0.1, 10, 0.5, True), lambda i: 0.1 / (1 + 0.5 * (i // 10)),
    ),
    "polynomial": (
        opt.polynomial_decay(0.1, 10, 0.01, 2.0),
        lambda i: 0.09 * (1 - min(i, 10) / 10) ** 2 + 0.01,
    ),
    "pieces": (
        opt.piecewise_constant([5, 10], [0.1, 0.2, 0.3]), lambda i: 0.1 + 0.1 * ((i > 5) + (i > 10))
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules(name: str) -> None:
    schedule, formula = SCHEDULES[name]
    for i in (0, 1, 5, 6, 10, 11, 25):
        np.testing.assert_allclose(schedule(i), formula(i), 1e-6)
        if name != "constant":
            np.testing.assert_allclose(jit(schedule)(i), formula(i), 1e-6)
    assert opt.make_schedule(schedule) is schedule
    assert opt.make_schedule(0.3)(9) == 0.3


def test_norms_and_clipping():
    grads = {"a": np.float32([3]), "b": [np.float32([[4]])]}
    assert float(opt.l2_norm(grads)) == 5.0
    clipped = opt.clip_grads(grads, 1.0)
    np.testing.assert_allclose(clipped["b"][0], [[0.8]])
    assert float(opt.clip_grads(grads, 10.0)["a"][0]) == 3.0


def test_states_are_pytrees_and_can_be_unpacked():
    state = opt.adam(0.1).init_fn({"a": np.ones(2, np.float32), "b": np.ones(3, np.float32)})
    assert len(tree.leaves(state)) == 6
    parts = opt.unpack_optimizer_state(state)
    assert isinstance(parts["a"], opt.JoinPoint) and len(parts["a"].subtree) == 3
    assert list(parts["a"]) == [parts["a"].subtree]
    again = opt.pack_optimizer_state(parts)
    assert tree.structure(again) == tree.structure(state)
    assert math.isclose(float(tree.leaves(again)[0][0]), 1.0)
