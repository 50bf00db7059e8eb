"""Errors near zeros, poles and where formulas meet, against values of 50 digits."""

from __future__ import annotations

import numpy as np
import pytest

from primax_core import enable_x64, grad, jit, vmap
from primax_scipy import special
from test_support import assert_close

# Arguments, exact values for their nearest float32 and float64 numbers.
EXACT = {
    "expi": [
        ((0.37250742,), 4.82394115453812e-08, 3.5917783999331514e-08),
        ((0.373,), 0.0019184226011668792, 0.001918438379896271),
        ((0.36,), -0.049257960975455546, -0.04925801793084861),
        ((-1.84,), -0.06115147928583588, -0.06115148216687031),
        ((1.7,), 3.920963354894995, 3.9209632013549043),
    ],
    "exp1": [
        ((0.55,), 0.5033640688873436, 0.5033640813923937),
        ((1.84,), 0.06115147928583588, 0.06115148216687031),
        ((1.939,), 0.0532236698022704, 0.053223670580518294),
        ((2.1,), 0.04261434706963691, 0.04261434150851506),
    ],
    "expn": [
        ((4.0, 1.999), 0.025052994778631182, 0.02505299336874193),
        ((1.0, 1.995), 0.04924012089208366, 0.04924012121717821),
    ],
    "erfinv": [
        ((0.2739,), 0.2477122902060286, 0.24771228809418477),
        ((0.99,), 1.8213866009002777, 1.8213863677184494),
        ((0.9998,), 2.629765371938849, 2.6297417762102926),
        ((-0.99999,), -3.123205771165071, -3.123413274341571),
        ((1e-6,), 8.862269232154821e-07, 8.8622692545299e-07),
    ],
    "ndtri": [
        ((0.4641,), -0.0901097435538311, -0.09010975171461957),
        ((0.5001,), 0.00025070442491125156, 0.00025066283008800747),
        ((0.83,), 0.954165187194538, 0.9541652531461943),
    ],
    "cosine_integral": [
        ((0.6165,), -7.233394849490411e-06, -7.259899799942e-06),
        ((0.6,), -0.022270674163389917, -0.022270706959279792),
        ((0.62,), 0.004605991141030589, 0.004605984881554967),
    ],
}


def cosine_integral(x):
    return special.sici(x)[1]


@pytest.mark.optimised
@pytest.mark.parametrize("double", [False, True], ids=["float32", "float64"])
@pytest.mark.parametrize("name", EXACT)
def test_errors_are_below_4_ulp(name, double) -> None:
    dtype = np.float64 if double else np.float32
    fun = cosine_integral if name == "cosine_integral" else getattr(special, name)
    *operands, single_values, values = zip(*[(*x, y, z) for x, y, z in EXACT[name]])
    exact = np.array(values if double else single_values)
    with enable_x64(double):
        xs = [np.array(x, dtype) for x in operands]
        for run in (fun, jit(fun), vmap(fun)):
            ulp = np.abs(np.asarray(run(*xs)).astype(np.float64) - exact)
            ulp /= np.spacing(np.abs(exact).astype(dtype)).astype(np.float64)
            # Exact values are rounded to float64.
            assert ulp.max() < (8 if name == "expn" else 4), dict(zip(operands[0], ulp))


def test_edges_of_the_inverse_error_function() -> None:
    for double in (False, True):
        dtype = np.float64 if double else np.float32
        with enable_x64(double):
            x = np.array([0.0, -0.0, 1, -1, 1.5, -2, np.nan, np.inf], dtype)
            y = np.asarray(special.erfinv(x))
            np.testing.assert_array_equal(y[:4], [0, 0, np.inf, -np.inf])
            assert np.signbit(y[1]) and not np.signbit(y[0]) and np.isnan(y[4:]).all()
            assert y.dtype == dtype
    for dtype in ("float16", "bfloat16"):
        y = special.erfinv(np.float32([0.5, -0.98]).astype(dtype))
        assert y.dtype == dtype
        assert_close(np.asarray(y).astype(np.float32), [0.47693628, -1.6449764], rtol=1e-2)
    assert special.erfinv(0.5).weak_type
    assert float(special.erfinv(0)) == 0
    with pytest.raises(TypeError, match="erfinv does not accept dtype complex64"):
        special.erfinv(1j)


def test_derivatives_of_the_inverse_error_function() -> None:
    assert_close(grad(special.erfinv)(0.5), 1.1125854, rtol=1e-6)
    assert_close(grad(grad(special.erfinv))(0.5), 2 * 0.47693628 * 1.1125854**2, rtol=1e-5)
    # exp(erfinv(x)²) √π/2 near the end
    x = np.float32(0.99999)
    y = 3.123205771165071
    assert_close(grad(special.erfinv)(x), np.exp(y * y) * np.sqrt(np.pi) / 2, rtol=1e-5)
    assert_close(vmap(grad(special.erfinv))(np.zeros(2, np.float32)), [0.8862269] * 2, rtol=1e-6)
