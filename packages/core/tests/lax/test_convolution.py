"""Convolutions against loops, their derivatives against differences."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import primax_core as px
from primax_core.lax import conv_numbers, convolution
from test_support import check_derivatives

rng = np.random.default_rng(0)
conv = convolution.conv_general_dilated


def f(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def by_loops(x, k, stride, pads, before=1, within=1, groups=1):
    """Convolution along one spatial axis by loops, with batch and features first."""
    wide = np.zeros((*x.shape[:2], (x.shape[2] - 1) * before + 1))
    wide[:, :, ::before] = x
    wide = np.pad(wide, ((0, 0), (0, 0), pads))
    reach = (k.shape[2] - 1) * within + 1
    n = (wide.shape[2] - reach) // stride + 1
    out = np.zeros((x.shape[0], k.shape[0], n))
    per_in, per_out = k.shape[1], k.shape[0] // groups
    for i, o in itertools.product(range(n), range(k.shape[0])):
        group = o // per_out
        part = wide[:, group * per_in : (group + 1) * per_in, i * stride : i * stride + reach]
        out[:, o, i] = np.einsum("ncw,cw->n", part[:, :, ::within], k[o])
    return out


@pytest.mark.parametrize("before, within", [(1, 1), (1, 2), (3, 1), (3, 2)])
@pytest.mark.parametrize("stride, groups", [(1, 1), (1, 2), (2, 1), (2, 2)])
def test_values(stride, groups, before, within):
    x, k = f(2, 4, 6), f(6, 4 // groups, 3)
    actual = conv(x, k, (stride,), [(2, 1)], (before,), (within,), feature_group_count=groups)
    expected = by_loops(x, k, stride, (2, 1), before, within, groups)
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "x, k, options",
    [
        ((2, 3, 5), (4, 3, 2), {}),
        ((2, 4, 5), (2, 2, 2), {"feature_group_count": 2}),
        ((4, 2, 5), (2, 2, 2), {"batch_group_count": 2}),
        ((1, 2, 5), (2, 2, 2), {"lhs_dilation": (2,), "rhs_dilation": (3,)}),
    ],
)
def test_derivatives(x, k, options):
    check_derivatives(lambda x, k: conv(x, k, (2,), [(1, 2)], **options), f(*x), f(*k))


@pytest.mark.parametrize("groups", [{}, {"feature_group_count": 2}, {"batch_group_count": 2}])
def test_batches_are_loops(groups):
    x, k = f(2, 4, 6), f(4, 4 // groups.get("feature_group_count", 1), 3)

    def fun(x, k):
        return conv(x, k, (1,), "SAME", **groups)

    xs, ks = np.stack([x, 2 * x, -x], 1), np.stack([k, k + 1, 3 * k], 2)
    for axes in [(1, 2), (1, None), (None, 2)]:
        args = [a if d is None else b for a, b, d in zip((x, k), (xs, ks), axes)]
        actual = np.asarray(px.vmap(fun, axes)(*args))
        for i in range(3):
            one = [a if d is None else np.take(a, i, d) for a, d in zip(args, axes)]
            np.testing.assert_allclose(actual[i], fun(*one), rtol=1e-4, atol=1e-4)


def test_layouts_agree():
    x, k = f(2, 3, 5, 6), f(4, 3, 2, 3)
    plain = conv(x, k, (1, 2), "SAME")
    other = conv(
        x.transpose(0, 2, 3, 1), k.transpose(2, 3, 1, 0), (1, 2), "SAME",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )  # fmt: skip
    np.testing.assert_allclose(plain, np.asarray(other).transpose(0, 3, 1, 2), rtol=1e-5, atol=1e-5)


def test_transposed_convolution_is_the_gradient():
    x, k = f(1, 8, 2), f(3, 2, 5)
    forward = lambda x: conv(x, k, (2,), "VALID", dimension_numbers=("NHC", "HIO", "NHC"))
    y, pull = px.vjp(forward, x)
    up = convolution.conv_transpose(y, k, (2,), "VALID", transpose_kernel=True)
    gradient = np.asarray(pull(y)[0])
    np.testing.assert_allclose(up, gradient[:, : up.shape[1]], rtol=1e-5, atol=1e-5)


def test_named_paddings():
    assert conv_numbers.padtype_to_pads((5, 6), (3, 2), (2, 2), "SAME") == [(1, 1), (0, 0)]
    assert conv_numbers.padtype_to_pads((6,), (3,), (2,), "SAME_LOWER") == [(1, 0)]
    with pytest.raises(RuntimeError, match="Unrecognized padding type"):
        conv_numbers.padtype_to_pads((6,), (3,), (2,), "EQUAL")
    with pytest.raises(ValueError, match="Padding mode must be"):
        conv_numbers.conv_transpose_shape_tuple(
            (1, 8, 2), (3, 2, 5), (2,), "EQUAL", ("NHC", "HIO", "NHC")
        )


def test_empty_results_and_operands():
    x, k = f(2, 3, 2), f(4, 3, 3)
    fun = lambda x, k: conv(x, k, (1,), "VALID")
    assert fun(x, k).shape == (2, 4, 0)
    out, pull = px.vjp(fun, x, k)
    assert not any(np.any(np.asarray(g)) for g in pull(out))
    with pytest.raises(ValueError, match="spatial sizes above 0"):
        fun(x, k[:, :, :0])
