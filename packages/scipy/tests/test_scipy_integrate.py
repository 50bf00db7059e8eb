"""Initial value problems, integrals of functions and of samples."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.integrate as theirs

import primax_numpy as pnp
from primax_core import enable_x64, grad, jacfwd, jacrev, jit, vmap
from primax_core.testing import check_grads
from primax_scipy import integrate
from primax_scipy.integrate import _dop853

METHODS = ["RK23", "RK45", "DOP853", "Radau"]


def stacked(y, rows):
    return np.array(rows) if isinstance(y, np.ndarray) else pnp.stack(rows)


def two_body(t, y):
    """Problem D1 of DETEST: an orbit of eccentricity 0.1."""
    cube = (y[0] ** 2 + y[1] ** 2) ** 1.5
    return stacked(y, [y[2], y[3], -y[0] / cube, -y[1] / cube])


ORBIT = np.array([0.9, 0, 0, np.sqrt(1.1 / 0.9)])


@pytest.mark.parametrize("method", METHODS)
def test_orbit(method) -> None:
    times = np.linspace(0, 8, 5)
    expected = theirs.solve_ivp(
        two_body, (0, 8), ORBIT, "DOP853", times, rtol=1e-12,
        atol=1e-12,
    ).y  # fmt: skip
    with enable_x64(True):
        options = {"rtol": 1e-7, "atol": 1e-9}
        out = jit(lambda y: integrate.solve_ivp(two_body, (0, 8), y, method, times, **options))(
            ORBIT
        )
        assert bool(out.success) and out.y.shape == (4, 5)
        assert out.message == "The solver successfully reached the end of the integration interval."
        np.testing.assert_allclose(out.y, expected, 0, 2e-5)
        if method in ("RK23", "RK45"):  # the others compute more for each step
            same = theirs.solve_ivp(two_body, (0, 8), ORBIT, method, times, **options)
            assert abs(int(out.nfev) - same.nfev) < 0.15 * same.nfev + 20


def test_conditions_of_order_of_dop853() -> None:
    c, b = (np.array([*row, *[0] * (16 - len(row))]) for row in _dop853.C_AND_B)
    a = np.array([[*row, *[0] * (16 - len(row))] for row in _dop853.A])
    np.testing.assert_allclose(a.sum(1), c, 0, 1e-13)
    for k in range(8):
        np.testing.assert_allclose(b @ c**k, 1 / (k + 1), 1e-13)
    for k in range(6):
        np.testing.assert_allclose(b @ a @ c**k, 1 / ((k + 1) * (k + 2)), 1e-12)
    for e in _dop853.ERRORS:
        np.testing.assert_allclose(sum(e), 0, 0, 1e-13)


def test_stiff_problems() -> None:
    """Van der Pol's equation and Robertson's reactions, Hairer and Wanner (1996), section IV.10."""
    with enable_x64(True):
        mu = 1e-6
        oscillator = lambda t, y: pnp.stack([y[1], ((1 - y[0] ** 2) * y[1] - y[0]) / mu])
        out = integrate.solve_ivp(
            oscillator, (0, 2), np.array([2.0, -0.66]), "Radau", np.array([1.0, 2.0]), rtol=1e-7,
            atol=1e-7,
        )  # fmt: skip
        assert bool(out.success) and int(out.steps) < 1500
        np.testing.assert_allclose(out.y[0], [-0.1863646254808130e1, 0.1706167732170469e1], 1e-5)

        def robertson(t, y):
            slow, fast, fastest = 0.04 * y[0], 1e4 * y[1] * y[2], 3e7 * y[1] ** 2
            return stacked(y, [-slow + fast, slow - fast - fastest, fastest])

        out = integrate.solve_ivp(
            robertson, (0, 1e5), np.array([1.0, 0, 0]), "Radau", np.array([40.0, 1e5]), rtol=1e-7,
            atol=1e-11,
        )  # fmt: skip
        expected = theirs.solve_ivp(
            robertson, (0, 1e5), [1.0, 0, 0], "Radau", [40.0, 1e5],
            rtol=1e-9, atol=1e-13,
        ).y  # fmt: skip
        assert bool(out.success) and int(out.steps) < 300
        np.testing.assert_allclose(out.y, expected, 2e-5, 1e-10)


@pytest.mark.rotate(every=4, whole=True)
def test_own_times_dense_output_and_events() -> None:
    def height(t, y):
        return y[0]

    height.terminal, height.direction = True, -1
    top = lambda t, y: y[1]
    with enable_x64(True):
        fall = lambda t, y: pnp.stack([y[1], -9.8 + 0 * t])
        run = lambda v: integrate.solve_ivp(
            fall, (0, 100), pnp.stack([0.0, v]), events=[height, top], dense_output=True,
            max_steps=40, rtol=1e-8, gradient="steps",
        )  # fmt: skip
        out = run(10.0)
        n = int(out.steps)
        assert int(out.status) == 1 and bool(out.success) and out.message.startswith("A term")
        np.testing.assert_allclose(out.t_events[0][0], 20 / 9.8, 1e-9)
        np.testing.assert_allclose(out.t_events[1][0], 10 / 9.8, 1e-9)
        assert np.isnan(np.asarray(out.t_events[0][1:])).all()
        np.testing.assert_allclose(out.y_events[0][0], [0, -10], 0, 1e-8)
        assert out.t.shape == (41,) and float(out.t[n]) == float(out.t[-1])
        np.testing.assert_allclose(out.y[0], 10 * out.t - 4.9 * out.t**2, 0, 1e-8)
        np.testing.assert_allclose(out.sol(np.array([0.3, 1.2]))[1], [10 - 2.94, 10 - 11.76], 1e-9)
        for derivative in (jacrev,):
            np.testing.assert_allclose(
                derivative(lambda v: run(v).t_events[0][0])(10.0), 2 / 9.8, 1e-6
            )
        back = integrate.solve_ivp(fall, (1, 0), out.sol(1.0), dense_output=True, max_steps=40)
        np.testing.assert_allclose(back.sol(0.0), [0, 10], 0, 1e-6)


@pytest.mark.parametrize("gradient, method", [
    ("adjoint", "DOP853"), ("adjoint", "Radau"), ("steps", "RK23"), ("steps", "Radau"),
])  # fmt: skip
def test_derivatives(gradient, method) -> None:
    tolerance = 1e-5 if method == "RK23" else 1e-7

    def final(vector):
        y0, times, rate = vector[:2], vector[2:4], vector[4]
        y = integrate.solve_ivp(
            lambda t, y, k: pnp.stack([-k * y[0] * y[1], pnp.cos(t) - y[1]]), (0.0, 1.1), y0,
            method, times, args=(rate,), rtol=tolerance, atol=tolerance, gradient=gradient,
            max_steps=60,
        ).y  # fmt: skip
        return pnp.sum(y * np.array([[1.0, -2], [0.5, 1]]))

    with enable_x64(True):
        point = np.array([1.0, 0.5, 0.3, 1.0, 1.3])
        actual = jit(grad(final))(point)
        value, h = jit(final), 1e-3
        expected = [(value(point + h * e) - value(point - h * e)) / (2 * h) for e in np.eye(5)]
        np.testing.assert_allclose(actual, expected, 2e-3, 1e-4)
        if gradient == "steps":
            np.testing.assert_allclose(jit(jacfwd(final))(point), actual, 1e-8)


def test_derivatives_at_own_times() -> None:
    def last(y0, end):
        out = integrate.solve_ivp(lambda t, y: -y, (0, end), y0[None], rtol=1e-7, atol=1e-7)
        return out.y[0, -1]

    with enable_x64(True):
        values = grad(last, (0, 1))(2.0, 1.5)
        np.testing.assert_allclose(values, [np.exp(-1.5), -2 * np.exp(-1.5)], 1e-5)
        with pytest.raises(ValueError, match="use gradient='steps' for derivatives of sol"):
            grad(lambda y: integrate.solve_ivp(
                lambda t, y: -y, (0, 1), y[None], dense_output=True).sol(0.5)[0])(1.0)  # fmt: skip


def test_failures_and_errors() -> None:
    y0 = np.ones(1, np.float32)
    blow_up = integrate.solve_ivp(lambda t, y: y * y, (0, 2), y0, t_eval=np.float32([0.5, 2]))
    assert not bool(blow_up.success) and int(blow_up.status) == -1
    assert np.isnan(float(blow_up.y[0, 1])) and abs(float(blow_up.y[0, 0]) - 2) < 0.01
    short = integrate.solve_ivp(lambda t, y: -y, (0, 50), y0, max_steps=3)
    assert int(short.status) == -2 and "increase max_steps" in short.message
    for options, error, text in [
        ({"method": "x"}, ValueError, "unknown method 'x': use one of"),
        ({"gradient": "x"}, ValueError, "must be 'adjoint' or 'steps'"),
        ({"vectorized": True}, ValueError, "fun takes one state"),
        ({"t_eval": 1.0}, ValueError, r"t_eval must be a vector, got shape \(\)"),
        ({"args": 1}, TypeError, "args must be a tuple, got int"),
    ]:
        with pytest.raises(error, match=text):
            integrate.solve_ivp(lambda t, y: y, (0, 1), y0, **options)
    with pytest.raises(TypeError, match="Radau takes real states"):
        integrate.solve_ivp(lambda t, y: y, (0, 1), np.ones(1, np.complex64), "Radau")
    with pytest.raises(ValueError, match=r"shape of the state, \(1,\); it returned \(\)"):
        integrate.solve_ivp(lambda t, y: y[0], (0, 1), y0)
    with pytest.raises(ValueError, match=r"y0 must be a vector, got \(\)"):
        integrate.solve_ivp(lambda t, y: y, (0, 1), 1.0)


@pytest.mark.parametrize("fun, a, b", [
    (lambda x: np_like(x).exp(-x * x), -np.inf, np.inf),
    (lambda x: 1 / (1 + x * x), 1.0, np.inf),
    (lambda x: np_like(x).exp(x), -np.inf, 0.5),
    (lambda x: np_like(x).sqrt(abs(x - 0.3)), 0.0, 2.0),
    (lambda x: np_like(x).sin(40 * x) * x, 0.0, 3.0),
    (lambda x: np_like(x).exp(-x), np.inf, 0.0),
    (lambda x: x**3, 2.0, 0.0),
], ids=["normal", "above", "below", "root", "oscillating", "exchanged", "reversed"])  # fmt: skip
def test_quad(fun, a, b) -> None:
    expected = theirs.quad(fun, a, b, limit=200)[0]
    with enable_x64(True):
        value, error, info = jit(lambda: integrate.quad(fun, a, b, full_output=True))()
        assert bool(info.success) and abs(float(value) - expected) < 1e-7
        assert float(error) < 2e-8 * max(1, abs(expected))
    value, _ = integrate.quad(fun, np.float32(a), np.float32(b))
    assert value.dtype == np.float32 and abs(float(value) - expected) < 1e-4


def np_like(x):
    return np if isinstance(x, (float, np.floating)) else pnp


@pytest.mark.rotate(every=4, whole=True)
def test_quad_rules_derivatives_and_batches() -> None:
    from primax_scipy.integrate import _quadrature as q

    for k in range(0, 31, 2):
        np.testing.assert_allclose(q.WEIGHTS @ q.NODES**k, 2 / (k + 1), 1e-13)
    for k in range(0, 19, 2):
        np.testing.assert_allclose(q.GAUSS @ q.NODES**k, 2 / (k + 1), 1e-13)
    with enable_x64(True):
        area = lambda a, b, k: integrate.quad(lambda x, k: pnp.sin(k * x * x), a, b, (k,))[0]
        check_grads(
            area, (np.float64(0.2), np.float64(2), np.float64(1.5)), 2, rtol=1e-4, atol=1e-4
        )
        ks = np.array([1.0, 9.0])
        many = vmap(lambda k: area(0.0, 2.0, k))(ks)
        for k, value in zip(ks, many):
            np.testing.assert_allclose(value, area(0.0, 2.0, k), 1e-10)
        vector, _ = integrate.quad(lambda x: pnp.stack([x, x * x]), 0.0, 1.0)
        np.testing.assert_allclose(vector, [1 / 2, 1 / 3], 1e-12)
        bad = integrate.quad(lambda x: 1 / x, 0.0, 1.0, full_output=True)[2]
        assert not bool(bad.success) and int(bad.status) in (1, 2)
        few = integrate.quad(lambda x: pnp.sin(200 * x), 0.0, 3.0, limit=2, full_output=True)[2]
        assert int(few.status) == 1 and "increase limit" in few.message
    value, _ = integrate.fixed_quad(lambda x: x**9, 0.0, 1.0)
    assert abs(float(value) - 0.1) < 1e-6
    with pytest.raises(ValueError, match="bounds must be finite"):
        integrate.fixed_quad(lambda x: x, 0.0, np.inf)
    with pytest.raises(ValueError, match="limit must be positive, got 0"):
        integrate.quad(lambda x: x, 0.0, 1.0, limit=0)
    with pytest.raises(TypeError, match="args must be a tuple, got float"):
        integrate.quad(lambda x: x, 0.0, 1.0, 2.0)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 8])
def test_samples(n) -> None:
    rng = np.random.default_rng(n)
    y = rng.normal(size=(2, n, 3))
    points = [None, np.cumsum(rng.uniform(0.5, 2, n)), np.cumsum(rng.uniform(0.5, 2, y.shape), 1)]
    with enable_x64(True):
        for x in points:
            for name in ("simpson", "cumulative_simpson", "cumulative_trapezoid", "trapezoid"):
                if n == 1 and name == "cumulative_simpson":
                    continue
                for kwargs in ({}, {"initial": 0}) if name[0] == "c" else ({},):
                    ours = getattr(integrate, name)(y, x=x, axis=1, dx=0.5, **kwargs)
                    expected = getattr(theirs, name)(y, x=x, axis=1, dx=0.5, **kwargs)
                    np.testing.assert_allclose(ours, expected, 1e-11, 1e-13, err_msg=name)
    if n == 3:
        with pytest.raises(ValueError, match=r"x of shape \(2,\) must be a vector of 3 points"):
            integrate.simpson(y, np.ones(2), axis=1)
        with pytest.raises(ValueError, match="initial must be a number"):
            integrate.cumulative_trapezoid(y, initial=np.ones(2))
