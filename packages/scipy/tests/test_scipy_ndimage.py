"""Interpolation, filters and morphology of images against SciPy."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import scipy.ndimage as theirs

from primax_core import enable_x64, jit
from primax_scipy import ndimage
from test_support import assert_close, check_batches, check_call, check_derivatives

RNG = np.random.default_rng(3)
X = RNG.normal(size=(13, 14))
POINTS = RNG.uniform(-9, 23, size=(2, 60))
BITS, MASK = RNG.random((12, 13)) < 0.7, RNG.random((12, 13)) < 0.8
SHAPE = RNG.random((3, 4)) < 0.6
WEIGHTS = RNG.normal(size=(3, 4))
GRID_MODES = [
    "reflect", "grid-mirror", "constant", "grid-constant", "nearest", "mirror", "grid-wrap", "wrap",
]  # fmt: skip
LOOSE: dict[str, Any] = {"atol": 1e-5, "value_rtol": 1e-11}
MODES = ["reflect", "constant", "nearest", "mirror", "wrap"]


def compare(name: str, *args: Any, tolerance: float = 1e-8, **params: Any) -> None:
    expected = getattr(theirs, name)(*args, **params)
    with enable_x64(True):
        actual = getattr(ndimage, name)(*args, **params)
    assert actual.dtype == expected.dtype, name
    assert_close(actual, expected, rtol=tolerance, atol=tolerance, err_msg=f"{name} {params}")


@pytest.mark.parametrize("mode", GRID_MODES)
def test_interpolation_at_points(mode: str) -> None:
    for order in range(6):
        # The reference's modes, which SciPy calls grid modes, for the orders that it has.
        names = {"constant": "grid-constant", "wrap": "grid-wrap"} if order < 2 else {}
        scipys = names.get(mode, mode)
        expected = theirs.map_coordinates(X, POINTS, order=order, mode=scipys, cval=1.5)
        with enable_x64(True):
            actual = ndimage.map_coordinates(X, POINTS, order, mode, 1.5)
        # SciPy truncates the recursion for reflecting modes.
        tolerance = 1e-5 if order > 3 else 1e-7
        assert_close(actual, expected, rtol=tolerance, atol=tolerance, err_msg=f"order {order}")


@pytest.mark.parametrize("mode", ["reflect", "constant", "grid-constant", "nearest", "wrap"])
@pytest.mark.parametrize("order", [1, 3])
def test_geometry(mode: str, order: int) -> None:
    rest = {"order": order, "mode": mode, "cval": 2.0}
    matrix = np.array([[0.9, 0.3], [-0.2, 1.1]])
    compare("affine_transform", X, matrix, (0.31, -0.53), (7, 4), **rest)
    compare("affine_transform", X, np.array([0.7, 1.2]), (0.31, -0.53), **rest)
    compare("affine_transform", X, np.array([[0.9, 0.3, 1.01], [-0.2, 1.1, 2.03]]), **rest)
    compare("shift", X, (1.3, -2.6), **rest)
    compare("zoom", X, (2, 0.6), **rest)
    if "grid" in mode or mode in ("nearest", "reflect"):
        compare("zoom", X, 1.7, grid_mode=True, **rest)
    for angle in (30.0, 90.0, -200.0):
        compare("rotate", X, angle, **rest)
    compare("rotate", X, 30.0, reshape=False, **rest)


def test_coefficients_of_splines() -> None:
    for mode in ("mirror", "reflect", "grid-wrap"):
        compare("spline_filter", X, 3, mode=mode)
        compare("spline_filter1d", X, 2, 0, mode=mode)
    compare("rotate", RNG.normal(size=(4, 5, 3)), 25.0, axes=(0, 2), order=1, reshape=False)


@pytest.mark.parametrize("mode", MODES)
def test_linear_filters(mode: str) -> None:
    vector = WEIGHTS[0]
    compare("correlate1d", X, vector, mode=mode, cval=1.0)
    compare("correlate1d", X, vector, axis=0, mode=mode, origin=-1)
    compare("convolve1d", X, vector, axis=0, mode=mode, origin=1)
    compare("correlate", X, WEIGHTS, mode=mode, cval=1.0)
    compare("convolve", X, WEIGHTS, mode=mode, origin=(1, -1))
    compare("gaussian_filter", X, (1.0, 2.3), mode=mode)
    compare("uniform_filter", X, (4, 3), mode=mode, origin=1)
    compare("sobel", X, axis=0, mode=mode)
    compare("laplace", X, mode=mode)


def test_more_linear_filters() -> None:
    numbers = RNG.integers(0, 200, size=(7, 9)).astype(np.int32)
    compare("gaussian_filter", numbers, 1.3)
    compare("uniform_filter", numbers, 3)
    compare("correlate", numbers, [[1, 0, -1]])
    compare("gaussian_filter", X, 1.0, order=(1, 2))
    compare("gaussian_filter1d", X, 2.0, radius=3)
    compare("gaussian_filter1d", np.tile(X, 5), 9.0)
    compare("gaussian_filter", X, 1.0, axes=(1,))
    for name in ("prewitt", "gaussian_laplace", "gaussian_gradient_magnitude"):
        compare(name, X, *([] if name == "prewitt" else [1.2]))
    compare("uniform_filter1d", X, 4, axis=0)


@pytest.mark.parametrize("mode", MODES)
def test_order_statistics(mode: str) -> None:
    compare("maximum_filter", X, (4, 3), mode=mode)
    compare("minimum_filter", X, footprint=SHAPE, mode=mode, origin=(1, -1))
    compare("median_filter", X, 3, mode=mode)
    compare("median_filter", X, footprint=SHAPE, mode=mode)
    compare("rank_filter", X, -2, (3, 4), mode=mode)
    compare("percentile_filter", X, 30, 4, mode=mode)
    compare("maximum_filter1d", X, 4, mode=mode)
    compare("minimum_filter1d", X, 5, axis=0, mode=mode)


def test_large_medians_are_sorted() -> None:
    compare("median_filter", np.round(10 * X).astype(np.int32), 9)


@pytest.mark.parametrize("name", [
    "grey_erosion", "grey_dilation", "grey_opening", "grey_closing", "morphological_gradient",
    "morphological_laplace", "white_tophat", "black_tophat",
])  # fmt: skip
def test_grey_morphology(name: str) -> None:
    compare(name, X, (3, 4), mode="nearest")
    compare(name, X, footprint=SHAPE)
    compare(name, X, structure=WEIGHTS)


@pytest.mark.parametrize("name", [
    "binary_erosion", "binary_dilation", "binary_opening", "binary_closing"
])  # fmt: skip
def test_binary_morphology(name: str) -> None:
    compare(name, BITS)
    compare(name, BITS, structure=SHAPE, origin=(0, 1))
    compare(name, BITS, structure=np.ones((2, 2)), origin=(-1, 0))
    compare(name, BITS, mask=MASK, iterations=3, border_value=1)


def test_more_binary_morphology() -> None:
    compare("binary_erosion", BITS, iterations=0)
    compare("binary_fill_holes", BITS)
    compare("binary_propagation", BITS & (X[:12, :13] > 1), mask=MASK)
    compare("binary_hit_or_miss", BITS)
    compare("binary_hit_or_miss", BITS, np.array([[1, 1]]), np.array([[0, 0, 1]]), origin2=(0, 1))
    structure = theirs.generate_binary_structure(2, 1)
    assert (np.asarray(ndimage.generate_binary_structure(2, 1)) == structure).all()
    expected = theirs.iterate_structure(structure, 3)
    assert (np.asarray(ndimage.iterate_structure(structure, 3)) == expected).all()


@pytest.mark.rotate(every=4, whole=True)
def test_derivatives() -> None:
    x, points = X[:5, :6], RNG.uniform(0.2, 3.8, size=(2, 7))
    for order in (1, 3):
        check_derivatives(
            lambda x, c, order=order: ndimage.map_coordinates(x, c, order, "nearest"),
            x, points, order=2 if order == 3 else 1, **LOOSE,
        )  # fmt: skip
    check_derivatives(lambda x, a: ndimage.rotate(x, a, reshape=False), x, 20.0, **LOOSE)
    check_derivatives(
        lambda x, s: ndimage.shift(x, s, mode="nearest"), x, np.array([0.3, -0.6]), **LOOSE
    )
    check_derivatives(lambda x, w: ndimage.correlate(x, w), x, WEIGHTS, **LOOSE)
    check_derivatives(lambda x: ndimage.gaussian_filter(x, 1.0), x, **LOOSE)
    check_derivatives(lambda x: ndimage.median_filter(x, 3), x, **LOOSE)
    check_derivatives(lambda x: ndimage.grey_dilation(x, 3), x, **LOOSE)


def test_batches_and_dtypes() -> None:
    x = X[:5, :6].astype(np.float32)
    points = POINTS.astype(np.float32)
    for fun in (
        lambda v: ndimage.map_coordinates(v, points, 3, "mirror"),
        lambda v: ndimage.gaussian_filter(v, 1.0),
        lambda v: ndimage.median_filter(v, 3),
        lambda v: ndimage.zoom(v, 1.5),
    ):
        check_batches(fun, x, axes=(0,), atol=1e-5)
    numbers = np.arange(6, dtype=np.int32)
    assert ndimage.map_coordinates(numbers, [np.float32([1.4, 2.6])], 1).tolist() == [1, 3]
    assert ndimage.uniform_filter(x.astype(np.float16)).dtype == np.float16
    assert ndimage.gaussian_filter(numbers, 1.0, output=np.float32).dtype == np.float32
    assert jit(lambda v: ndimage.binary_erosion(v))(x > 0).dtype == np.bool_


def test_settings() -> None:
    x, points = X.astype(np.float32), POINTS.astype(np.float32)
    for order, mode in ((1, "constant"), (3, "reflect"), (2, "grid-constant")):
        check_call(lambda v, c, o=order, m=mode: ndimage.map_coordinates(v, c, o, m), x, points)
    for fun in (
        lambda v: ndimage.rotate(v, 20.0), lambda v: ndimage.zoom(v, 1.5),
        lambda v: ndimage.gaussian_filter(v, 1.0), lambda v: ndimage.sobel(v),
        lambda v: ndimage.median_filter(v, 3), lambda v: ndimage.grey_opening(v, 3),
        lambda v: ndimage.binary_dilation(v, iterations=2), lambda v: ndimage.laplace(v),
    ):  # fmt: skip
        check_call(fun, x)


def test_errors() -> None:
    x = np.ones((3, 4), np.float32)
    cases: list[tuple[Any, str]] = [
        (lambda: ndimage.map_coordinates(x, x, 6), "order must be between 0 and 5, got 6"),
        (lambda: ndimage.map_coordinates(x, x, 1), "3 coordinates for an input of 2 dimensions"),
        (lambda: ndimage.map_coordinates(x, x[:2], 1, "edge"), "mode must be one of"),
        (lambda: ndimage.affine_transform(x, x), "matrix must have one of the shapes"),
        (lambda: ndimage.shift(x, (1, 2, 3)), "shift must be a number or have shape (2,)"),
        (lambda: ndimage.zoom(x, (1, 2, 3)), "zoom has 3 values for 2 axes"),
        (lambda: ndimage.rotate(x, 3.0, axes=(0, 0)), "axes must be two different axes"),
        (lambda: ndimage.correlate1d(x, x), "weights must be a nonempty vector"),
        (lambda: ndimage.correlate1d(x, [1.0, 2.0], origin=2), "origin=2 is outside of a filter"),
        (lambda: ndimage.gaussian_filter1d(x, -1.0), "sigma must be positive"),
        (lambda: ndimage.uniform_filter(x, 0), "size must be positive"),
        (lambda: ndimage.median_filter(x), "size or footprint is needed"),
        (lambda: ndimage.rank_filter(x, 9, 3), "rank=9 is out of range for 9 neighbours"),
        (lambda: ndimage.binary_erosion(x, border_value=2), "border_value must be 0 or 1"),
    ]
    for call, text in cases:
        with pytest.raises(ValueError, match=re.escape(text)):
            call()
    with pytest.raises(TypeError, match="use reshape=False or a Python number"):
        jit(lambda a: ndimage.rotate(x, a))(1.0)
    with pytest.raises(TypeError, match="output must be a dtype or None"):
        ndimage.sobel(x, output=x)
    with pytest.raises(TypeError, match="a traced sigma does not determine"):
        jit(lambda s: ndimage.gaussian_filter(x, s))(1.0)
