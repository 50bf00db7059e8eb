"""Block-scaled products of narrow floats."""

from __future__ import annotations

import numpy as np
import pytest

import primax_nn as nn
import primax_numpy as pnp
from primax_core import grad, jit, vmap

RNG = np.random.default_rng(5)
MATRICES = (((1,), (1,)), ((), ()))


def floats(*shape: int, seed: int = 5) -> np.ndarray:
    """The same values whichever tests ran before."""
    return np.random.default_rng((seed, *shape)).standard_normal(shape).astype(np.float32)


def exact(x, y, x_scales, y_scales):
    x, y, x_scales, y_scales = (
        np.asarray(a).astype(np.float64) for a in (x, y, x_scales, y_scales)
    )
    wide = [
        v * np.repeat(s, v.shape[2] // s.shape[2], 2) for v, s in ((x, x_scales), (y, y_scales))
    ]
    return np.einsum("bmk,bnk->bmn", *wide)


@pytest.mark.parametrize(
    ("data", "scale"),
    [
        ("float8_e4m3fn", "float8_e8m0fnu"),
        ("float4_e2m1fn", "float8_e4m3fn"),
        ("float8_e5m2", "float32"),
        ("float32", "float32"),
        ("bfloat16", "bfloat16"),
        ("int8", "float32"),
    ],
)
def test_scaled_matmul(data: str, scale: str) -> None:
    x, y = (
        np.asarray(pnp.asarray(4 * floats(2, n, 64)).astype(getattr(pnp, data))) for n in (3, 5)
    )
    scales = [
        np.asarray(pnp.asarray(2.0 ** RNG.integers(-2, 3, (2, n, 4))).astype(getattr(pnp, scale)))
        for n in (3, 5)
    ]
    out = nn.scaled_matmul(x, y, *scales)
    assert out.dtype == np.float32
    np.testing.assert_allclose(out, exact(x, y, *scales), 1e-5, 1e-4)
    np.testing.assert_allclose(jit(nn.scaled_matmul)(x, y, *scales), out, 1e-6, 1e-5)
    half = nn.scaled_matmul(x, y, *scales, preferred_element_type=np.float16)
    assert half.dtype == np.float16
    mapped = vmap(nn.scaled_matmul)(*(np.stack([a, a]) for a in (x, y, *scales)))
    np.testing.assert_allclose(mapped[1], out, 1e-5, 1e-5)


def test_scaled_matmul_has_derivatives():
    x, s = floats(1, 2, 4), np.ones((1, 2, 2), np.float32)
    actual = grad(lambda x: (nn.scaled_matmul(x, x, s, s) ** 2).sum())(x)
    expected = grad(lambda x: (pnp.matmul(x, pnp.swapaxes(x, 1, 2)) ** 2).sum())(x)
    np.testing.assert_allclose(actual, expected, 1e-5, 1e-5)


LIMITS = {"mxfp8": 0.08, "mxfp4": 0.5, "nvfp4": 0.35}
SHAPES = [
    ((4, 64), (5, 64), MATRICES),
    ((4, 64), (64, 5), (((1,), (0,)), ((), ()))),
    ((4, 40), (5, 40), MATRICES),
    ((2, 4, 32), (2, 5, 32), (((2,), (2,)), ((0,), (0,)))),
    ((4, 2, 32), (5, 32, 2), (((1, 2), (2, 1)), ((), ()))),
    ((4, 2, 32), (5, 2, 32), (((-1,), (-1,)), ((1,), (1,)))),
    ((32,), (32,), (((0,), (0,)), ((), ()))),
]


@pytest.mark.parametrize("mode", LIMITS)
@pytest.mark.parametrize(("left", "right", "numbers"), SHAPES)
def test_scaled_dot_general(mode: str, left, right, numbers) -> None:
    x, y = floats(*left), floats(*right, seed=6)
    formats = [nn.get_scaled_dot_general_config(mode)] * 3
    out = nn.scaled_dot_general(x, y, numbers, configs=formats)
    expected = nn.scaled_dot_general(x, y, numbers)
    assert out.shape == expected.shape and out.dtype == np.float32
    size = np.sqrt(np.mean(np.square(expected))) + 1e-3
    assert np.sqrt(np.mean(np.square(out - expected))) < LIMITS[mode] * size
    (by_x, by_y), (wide_x, wide_y) = (
        grad(lambda x, y, f=f: nn.scaled_dot_general(x, y, numbers, configs=f).sum(), (0, 1))(x, y)
        for f in (formats, None)
    )
    for a, b in ((by_x, wide_x), (by_y, wide_y)):
        assert a.shape == b.shape
        assert np.sqrt(np.mean(np.square(a - b))) < LIMITS[mode] * np.sqrt(np.mean(np.square(b)))


def quantized(mode: str, row, whole=None) -> np.ndarray:
    """A row of 32 numbers after quantization: a quantized product with the identity matrix."""
    formats = [
        nn.get_scaled_dot_general_config(mode, whole),
        nn.get_scaled_dot_general_config(mode),
    ]
    x = np.zeros((1, 32), np.float32)
    x[0, : len(row)] = row
    eye = 6 * np.eye(32, dtype=np.float32)  # exact scales
    return np.asarray(nn.scaled_dot_general(x, eye, MATRICES, configs=formats))[0, : len(row)] / 6


def test_scales_are_powers_of_two_that_avoid_overflow():
    assert quantized("mxfp8", [448, 440, 1]).tolist() == [448, 448, 1]
    assert quantized("mxfp8", [500, 481, 250, 1]).tolist() == [512, 480, 256, 1]
    assert quantized("mxfp8", [1e-3])[0] == 2**-10
    assert quantized("mxfp4", [6, 5, 3, 1.6, 0.2]).tolist() == [6, 4, 3, 1.5, 0]
    assert quantized("mxfp8", [0, 0]).tolist() == [0, 0]
    assert np.isnan(quantized("mxfp8", [np.nan, 1])).all()
    assert np.isnan(quantized("mxfp8", [np.inf, 1])).all()
    np.testing.assert_allclose(quantized("mxfp8", [3e37, 1e37]), [3e37, 1e37], 0.07)


def test_scales_relative_to_a_global_scale():
    assert quantized("nvfp4", [10, 5]).tolist() == [9.75, 4.875]
    assert quantized("nvfp4", [1e-4])[0] == 0  # the block scale underflows
    np.testing.assert_allclose(quantized("nvfp4", [1e-4], 1e-4), [1e-4], 0.05)
    np.testing.assert_allclose(quantized("nvfp4", [1e6], 1e-4), [6 * 448e-4], 1e-5)  # saturated
    jitted = jit(lambda whole: quantized_product(whole))(np.float32([0.5]))
    np.testing.assert_allclose(jitted, quantized_product(np.float32([0.5])), 1e-6)


def quantized_product(whole):
    formats = [nn.get_scaled_dot_general_config("nvfp4", whole)] * 3
    x = np.linspace(-1, 1, 64, dtype=np.float32).reshape(2, 32)
    return nn.scaled_dot_general(x, x, MATRICES, configs=formats)


def test_operands_keep_their_dtypes_in_derivatives():
    x = pnp.asarray(floats(2, 32)).astype(pnp.bfloat16)
    formats = [nn.get_scaled_dot_general_config("mxfp8"), nn.get_scaled_dot_general_config("nvfp4")]
    out = nn.scaled_dot_general(x, x, MATRICES, np.float16, formats)
    assert out.dtype == np.float16
    g = grad(lambda x: nn.scaled_dot_general(x, x, MATRICES, configs=formats).sum())(x)
    assert g.dtype == pnp.bfloat16
    batched = vmap(lambda x: nn.scaled_dot_general(x, x, MATRICES, configs=formats))(x[None])
    assert batched.shape == (1, 2, 2)
