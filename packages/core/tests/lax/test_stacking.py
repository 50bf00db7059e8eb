"""``stack`` and ``unstack``; patches of convolutions; ``select_and_scatter``."""

from __future__ import annotations

import numpy as np
import pytest

import primax_core as px
from primax_core import lax
from primax_core.lax.conv_patches import conv_general_dilated_local, conv_general_dilated_patches
from primax_core.lax.stacking import stack, unstack
from primax_core.lax.window_scatter import select_and_scatter_p

F32 = np.float32
X = np.arange(6, dtype=F32).reshape(2, 3)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_stack(axis):
    np.testing.assert_array_equal(stack([X, X + 1], axis), np.stack([X, X + 1], axis))
    dot = px.jvp(lambda x: stack([x, X], axis), (X,), (X,))[1]
    np.testing.assert_array_equal(dot, np.stack([X, 0 * X], axis))
    ct = np.stack([X, 2 * X], axis)
    np.testing.assert_array_equal(px.vjp(lambda x: stack([x, x], axis), X)[1](ct)[0], 3 * X)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_unstack(axis):
    parts = unstack(X, axis)
    assert isinstance(parts, tuple)
    for got, expected in zip(parts, np.moveaxis(X, axis, 0), strict=True):
        np.testing.assert_array_equal(got, expected)
    grad = px.grad(lambda x: lax.reduce_sum(unstack(x, axis)[1] ** 2, (0,)))(X)
    expected = np.zeros_like(np.moveaxis(X, axis, 0))
    expected[1] = 2 * np.moveaxis(X, axis, 0)[1]
    np.testing.assert_array_equal(grad, np.moveaxis(expected, 0, axis))


def test_batches():
    both = np.stack([X, X + 7], 2)
    got = px.vmap(lambda x: stack([x, X], 1), 2)(both)
    np.testing.assert_array_equal(got, [np.stack([X + d, X], 1) for d in (0, 7)])
    parts = px.vmap(lambda x: unstack(x, 1), 2)(both)
    np.testing.assert_array_equal(parts[2], [X[:, 2], X[:, 2] + 7])


def test_an_array_of_rows_is_stacked_again():
    np.testing.assert_array_equal(stack(lax.iota(F32, 3)), [0, 1, 2])
    assert unstack(X[:0]) == ()


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: stack([]), ValueError, "at least one array"),
        (lambda: stack([X, X[:1]]), ValueError, "same shape. Got \\(2, 3\\), \\(1, 3\\)"),
        (lambda: stack([X, X.astype(np.int32)]), TypeError, "lax.stack requires arguments to have"),
        (lambda: stack([X], 3), ValueError, "axis 3 is out of bounds for array of dimension 3"),
        (lambda: unstack(F32(1)), ValueError, "axis 0 is out of bounds"),
    ],
)
def test_refused(call, error, match):
    with pytest.raises(error, match=match):
        call()


IMAGE = np.random.default_rng(0).standard_normal((2, 3, 5, 6)).astype(F32)


@pytest.mark.parametrize("layout", [None, ("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NHWC")])
@pytest.mark.parametrize("padding", ["VALID", [(0, 1), (1, 0)]])
def test_patches_and_local_convolution(layout, padding):
    image = IMAGE.transpose(0, 2, 3, 1) if layout and layout[0] == "NHWC" else IMAGE
    last = layout is not None
    options = {"dimension_numbers": layout}
    patches = np.asarray(conv_general_dilated_patches(image, (2, 3), (1, 2), padding, **options))
    if last:
        patches = patches.transpose(0, 3, 1, 2)
    padded = IMAGE if padding == "VALID" else np.pad(IMAGE, [(0, 0), (0, 0), *padding])
    rows, columns = patches.shape[2:]
    assert (rows, columns) == (padded.shape[2] - 1, (padded.shape[3] - 3) // 2 + 1)
    for i in range(rows):
        for j in range(columns):
            window = padded[:, :, i : i + 2, 2 * j : 2 * j + 3]
            np.testing.assert_allclose(patches[:, :, i, j], window.reshape(2, -1), rtol=1e-6)
    kernels = np.random.default_rng(1).standard_normal((4, 18, rows, columns)).astype(F32)
    local_kernels = kernels.transpose(2, 3, 1, 0) if layout and layout[1] == "HWIO" else kernels
    out = conv_general_dilated_local(image, local_kernels, (1, 2), padding, (2, 3), **options)
    out = np.asarray(out).transpose(0, 3, 1, 2) if last else out
    np.testing.assert_allclose(out, np.einsum("npij,opij->noij", patches, kernels), 1e-4, 1e-5)


def test_select_and_scatter():
    (sample,) = _samples()
    x, source = np.array([1, 5, 3, 2], F32), np.array([10, 20], F32)
    assert px.jit(sample.call)(x, source).tolist() == [0, 10, 20, 0]
    got = px.vmap(sample.call)(np.stack([x, x[::-1]]), np.stack([source, source]))
    assert got.tolist() == [[0, 10, 20, 0], [0, 10, 20, 0]]
    with pytest.raises(Exception, match="selects by an arbitrary function"):
        px.grad(lambda s: lax.reduce_sum(sample.call(x, s), (0,)))(source)


def _samples():
    from primax_core.extend import samples

    return list(select_and_scatter_p.rules[samples]())
