"""Arguments with which a computation would not end."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
import scipy.special

import primax_numpy as pnp
from primax_core import grad, jit
from primax_scipy import interpolate, linalg, ndimage, optimize, signal, special

BIG = 2**31 - 1
ONES = np.ones(4, np.float32)
POLYNOMIALS = ("legendre", "chebyt", "chebyu", "laguerre", "hermite", "hermitenorm")


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_large_degrees_are_nan(name):
    function = getattr(special, f"eval_{name}")
    x = np.float32(0.5)
    for call in (function, jit(function)):
        out = call(np.array([BIG, 1_000_001, 2], np.int32), x)
        assert np.isnan(out).tolist() == [True, True, False]
    assert np.isfinite(function(30, np.float32(0.01)))


@pytest.mark.parametrize("kind", "jyik")
def test_large_degrees_of_spherical_functions_are_nan(kind):
    function = getattr(special, f"spherical_{kind}n")
    out = function(np.array([BIG, 1_000_001, -1, 1], np.int32), np.float32(2.0))
    assert np.isnan(out).tolist() == [True, True, True, False]


ERRORS = {
    "stirling2": (
        lambda: special.stirling2(2**63, np.ones((3, 3), int)), "9,223,372,036,854,775,808 sums"
    ),
    "pascal": (lambda: linalg.pascal(2**40), "between 0 and 515 for kind='symmetric', got 109951"),
    "pascal of a negative number": (lambda: linalg.pascal(-1, "lower"), "between 0 and 1030"),
    "invpascal": (lambda: linalg.invpascal(516), "invpascal: the number of rows must be between"),
    "iterate_structure": (
        lambda: ndimage.iterate_structure(np.array([True, True]), 2**40), "at most 1,000,000,000"
    ),
    "butter of a high order": (lambda: signal.butter(501, 0.5), "order must be at most 500"),
    "gaussian_filter": (lambda: ndimage.gaussian_filter(ONES, 1.0, order=2**63), "at most 100"),
    "antiderivative": (
        lambda: interpolate.BSpline(np.arange(8.0), ONES, 3).antiderivative(BIG),
        r"BSpline.antiderivative: nu must be at most 100, got 2,147,483,647",
    ),
    "antiderivative of polynomials": (
        lambda: interpolate.CubicSpline(np.arange(4.0), ONES).antiderivative(BIG),
        r"CubicSpline.antiderivative: nu must be at most 100",
    ),
    "multigammaln": (lambda: special.multigammaln(ONES, 1e300), "d must be at most 1,000,000"),
    "lpmn_values": (
        lambda: special.lpmn_values(10**5, 10**5, ONES, False), "n must be at most 2,000"
    ),
    "butter": (
        lambda: signal.butter(1, 0.5, btype=np.ones(3)), "btype must be one of .* got array"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case):
    call, text = ERRORS[case]
    with pytest.raises(ValueError, match=text):
        call()


def test_structures_of_one_element_do_not_grow():
    for structure in (np.array(True), np.array([[True]])):
        assert ndimage.iterate_structure(structure, 2**60).shape == structure.shape


@pytest.mark.parametrize("dtype", ["int4", "int8", "uint8", "bool", "bfloat16", "float16"])
def test_assignment_of_narrow_costs(dtype):
    values = np.array([[1, 0, 3], [3, 1, 2], [0, 2, 1]])
    costs = pnp.asarray(values).astype(dtype)
    rows, columns = optimize.linear_sum_assignment(costs)
    exact = np.asarray(costs.astype("float32"))
    expected = scipy.optimize.linear_sum_assignment(exact)
    assert exact[rows, columns].sum() == exact[expected].sum()


def test_multivariate_gamma_function_of_many_dimensions():
    a = np.float32([40.0, 60.0])
    for d in (2, 32, 33, 70):
        expected = scipy.special.multigammaln(a.astype(float), d)
        np.testing.assert_allclose(special.multigammaln(a, d), expected, rtol=1e-5)
    assert np.isfinite(grad(lambda a: special.multigammaln(a, 33))(np.float32(40.0)))
