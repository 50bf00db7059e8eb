"""A third-party loop with an implicit derivative, and an interpreter with handlers."""

from __future__ import annotations

import numpy as np
import pytest

from primax_core import checkpoint, grad, jacfwd, jit, jvp, lax, make_jaxpr, vmap
from primax_core.extend import Primitive, expand, walk
from primax_core.testing import check_grads
from primax_core.testing.pytest import conformance
from primax_interpreters import checkify
from primax_numpy import random

example = pytest.importorskip("example_inference", reason="the example packages are not installed")
fixed_point, sample, normal = example.fixed_point, example.sample, example.normal
condition, log_density = example.condition, example.log_density
replay, trace = example.replay, example.trace

test_conformance = conformance(example.fixpoint_p, example.site_p)


def primitives(fun, *args):
    return {e.primitive.name for e in walk(make_jaxpr(fun)(*args))}


# Fixed points


def root(a):
    return fixed_point(lambda a, x: 0.5 * (x + a / x), a, lax.full_like(a, 1.0))


A = np.array([0.5, 2.0, 9.0], np.float32)


def test_values_and_derivatives():
    np.testing.assert_allclose(root(A), np.sqrt(A), rtol=1e-6)
    np.testing.assert_allclose(vmap(grad(root))(A), 0.5 / np.sqrt(A), rtol=1e-5)
    np.testing.assert_allclose(jit(vmap(grad(grad(root))))(A), -0.25 * A**-1.5, rtol=1e-5)
    np.testing.assert_allclose(jacfwd(root)(A), np.diag(0.5 / np.sqrt(A)), rtol=1e-5)


def test_linear_system_of_a_pytree():
    m = np.array([[0.3, 0.2], [-0.1, 0.4]], np.float32)

    def solution(m, b):
        step = lambda a, x: {"x": lax.dot(a[0], x["x"]) + a[1]}
        return fixed_point(step, (m, b), {"x": lax.full_like(b, 0)})["x"]

    b = np.array([1.0, 2.0], np.float32)
    np.testing.assert_allclose(solution(m, b), np.linalg.solve(np.eye(2) - m, b), rtol=1e-4)
    check_grads(solution, (m, b), order=2, atol=5e-3, rtol=5e-3)


def test_batches_run_together_and_equal_a_loop():
    batch = vmap(root)(A)
    loop = np.stack([np.asarray(root(a)) for a in A])
    np.testing.assert_array_equal(batch, loop)
    twice = vmap(vmap(root))(np.stack([A, 2 * A]))
    np.testing.assert_array_equal(twice[0], loop)
    names = primitives(vmap(root), A)
    assert "fixpoint" in names  # its own rule: an expansion would leave a while


def test_closed_over_values_have_derivatives():
    def outer(scale):
        return fixed_point(lambda a, x: scale * lax.cos(x) + a, np.float32(0.1), 0.5)

    check_grads(outer, (np.float32(0.4),), order=2)
    assert grad(lambda guess: fixed_point(lambda a, x: 0.5 * x + a, 1.0, guess))(3.0) == 0.0


def test_the_body_is_traced_once_for_eager_calls():
    calls = []

    def body(a, x):
        calls.append(1)
        return 0.5 * x + a

    for i in range(3):
        assert float(fixed_point(body, np.float32(i), 0.0)) == pytest.approx(2 * i, abs=1e-4)
    assert len(calls) == 1


@pytest.mark.parametrize("wrap", [lambda f: f, jit, vmap])
def test_checkify_reports_that_it_did_not_arrive(wrap):
    def diverging(a):
        return fixed_point(lambda a, x: 2.0 * x + a, a, 1.0, max_steps=7)

    arg = A if wrap is vmap else A[0]
    error, _ = checkify.checkify(wrap(diverging))(arg)
    text = "did not arrive: a change of 5.0e-01 in the last step, more than tolerance=1.0e-06"
    assert text in error.get() and "max_steps=7" in error.get() and __file__ in error.get()
    error, out = checkify.checkify(wrap(root))(arg)
    assert error.get() is None
    np.testing.assert_allclose(out, np.sqrt(arg), rtol=1e-6)


def test_checks_of_the_body_come_first():
    def body(a, x):
        checkify.check(x < 10, "too large: {x}", x=x)
        return 2.0 * x + a

    error, _ = checkify.checkify(lambda a: fixed_point(body, a, 1.0, max_steps=9))(1.0)
    assert "too large: 15.0" in error.get()


def test_invalid_input_raises():
    with pytest.raises(TypeError, match=r"iterates floats, got i32\[\]"):
        fixed_point(lambda a, x: x, 1.0, 1)
    with pytest.raises(TypeError, match=r"fun returned f32\[3\] where x has f32\[\]"):
        fixed_point(lambda a, x: a, A, 1.0)
    with pytest.raises(TypeError, match=r"fixed_point: fun returned .*tuple.* where x has"):
        fixed_point(lambda a, x: (x, a), 1.0, 1.0)
    with pytest.raises(TypeError, match="fixed_point takes a function, got 3"):
        fixed_point(3, 1.0, 1.0)


# Sites and handlers

KEY = random.key(0)
DATA = np.array([2.5, 3.5, 3.0], np.float32)


def model(key):
    """Three measurements of a quantity."""
    first, second = random.split(key)
    mu = sample("mu", first, normal, 0.0, 10.0)
    sample("y", second, normal, lax.broadcast(mu, (3,)), 1.0)
    return mu


def normal_log_density(value, mean, scale):
    z = (np.asarray(value) - mean) / scale
    return float((-0.5 * z**2 - np.log(scale) - 0.5 * np.log(2 * np.pi)).sum())


def test_trace_and_log_density():
    mu, sites = trace(model)(KEY)
    assert list(sites) == ["mu", "y"] and sites["mu"].value == mu == model(KEY)
    expected = normal_log_density(mu, 0, 10) + normal_log_density(sites["y"].value, mu, 1)
    values = {name: site.value for name, site in sites.items()}
    np.testing.assert_allclose(log_density(model)(values, KEY), expected, rtol=1e-5)
    posterior = condition(model, {"y": DATA})
    _, sites = trace(posterior)(KEY)
    assert [s.observed for s in sites.values()] == [False, True]
    expected = normal_log_density(1.0, 0, 10) + normal_log_density(DATA, 1.0, 1)
    np.testing.assert_allclose(log_density(posterior)({"mu": 1.0}, KEY), expected, rtol=1e-5)


def test_handlers_compose_with_transformations():
    density = log_density(condition(model, {"y": DATA}))
    f = lambda mu: density({"mu": mu}, KEY)
    derivative = lambda mu: -mu / 100 + (DATA - mu).sum()
    np.testing.assert_allclose(grad(f)(1.0), derivative(1.0), rtol=1e-5)
    np.testing.assert_allclose(jit(vmap(grad(f)))(A), [derivative(a) for a in A], rtol=1e-5)
    np.testing.assert_allclose(grad(grad(f))(1.0), -3.01, rtol=1e-4)
    step = lambda a, mu: mu + 0.2 * grad(f)(mu)
    most_likely = fixed_point(step, (), 0.0)
    np.testing.assert_allclose(most_likely, 9 / 3.01, rtol=1e-4)


@pytest.mark.parametrize("wrap", [jit, checkpoint])
def test_sites_in_calls(wrap):
    expected = trace(model)(KEY)
    actual = trace(wrap(model))(KEY)
    np.testing.assert_allclose(actual[1]["y"].log_density, expected[1]["y"].log_density, rtol=1e-5)


def test_sites_survive_vmap_and_derivatives():
    keys = random.split(KEY, 4)
    mus, sites = trace(vmap(model))(keys)
    assert sites["y"].value.shape == (4, 3)
    one = [trace(model)(k) for k in keys]
    np.testing.assert_allclose(mus, [mu for mu, _ in one], rtol=1e-6)
    total = sum(float(s["y"].log_density) for _, s in one)
    np.testing.assert_allclose(sites["y"].log_density, total, rtol=1e-5)

    def shifted(mean):
        return lax.square(sample("x", KEY, normal, mean, 2.0))

    value = sample("x", KEY, normal, 1.0, 2.0)
    derivative, sites = trace(grad(shifted))(1.0)
    np.testing.assert_allclose([derivative, sites["x"].value], [2 * value, value], rtol=1e-6)
    # The derivative of a drawn value, at 3; and the derivative of a value that is given.
    assert condition(grad(shifted), {"x": 3.0})(1.0) == 6.0
    assert grad(condition(shifted, {"x": 3.0}))(1.0) == 0.0
    _, tangent = jvp(lambda s: sample("x", KEY, normal, 1.0, s), (2.0,), (1.0,))
    np.testing.assert_allclose(tangent, (value - 1.0) / 2.0, rtol=1e-6)


def test_unobserved_batches_can_be_conditioned():
    means = np.array([1.0, 2.0], np.float32)
    many = vmap(lambda mean: sample("x", KEY, normal, mean, 1.0))
    given = np.array([0.5, 0.0], np.float32)
    _, sites = trace(condition(many, {"x": given}))(means)
    np.testing.assert_allclose(
        sites["x"].log_density, normal_log_density(given, means, 1.0), rtol=1e-5
    )
    outer = vmap(condition(lambda mean: sample("x", KEY, normal, mean, 1.0), {"x": 0.5}))
    assert outer(means).tolist() == [0.5, 0.5]


def test_an_expansion_alone_vanishes():
    named_p = Primitive("named")
    named_p.rule(expand)(lambda x, *, name: x * 1.0)
    f = lambda x: named_p.bind(x, name="x")
    assert "named" in primitives(f, 1.0)
    assert "named" not in primitives(vmap(f), A)
    assert "named" not in primitives(grad(f), 1.0)


def test_unused_sites_are_kept():
    jaxpr = make_jaxpr(jit(model))(KEY)
    assert [str(e) for e in jaxpr.effects] == ["Sample"]
    names = [e.params["name"] for e in walk(jaxpr) if e.primitive is example.site_p]
    assert names == ["mu", "y"]


def test_errors_of_handlers():
    with pytest.raises(ValueError, match="the model has no site named 'z'"):
        condition(model, {"z": 1.0})(KEY)
    with pytest.raises(ValueError, match=r"'y' has shape \(2,\), but the site has shape \(3,\)"):
        replay(model, {"y": DATA[:2]})(KEY)
    with pytest.raises(ValueError, match="log_density needs a value of site 'y'"):
        log_density(model)({"mu": 1.0}, KEY)
    twice = lambda key: sample("x", key, normal, sample("x", key, normal, 0.0, 1.0), 1.0)
    with pytest.raises(ValueError, match="two sites of the model are named 'x'"):
        trace(twice)(KEY)
    looped = lambda key: lax.scan(
        lambda c, k: (sample("x", k, normal, c, 1.0), None), 0.0, random.split(key, 3)
    )[0]
    with pytest.raises(NotImplementedError, match="a site in scan: handlers evaluate sites in"):
        trace(looped)(KEY)
