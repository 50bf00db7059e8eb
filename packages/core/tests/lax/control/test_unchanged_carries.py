"""Carries that a loop does not change: derivatives pass them by, and they are saved once."""

import numpy as np
import pytest

import primax_core as pc
from primax_core import checkpoint, grad, jit, lax, make_jaxpr, vmap

TWO = np.float32(2)


def repeat(n, body, init):
    """``body`` of the number of the step and the carry, with a traced number of steps."""
    return lax.fori_loop(0, n, body, init)


def counted(i, c):
    return c[0], c[1] + 1


BODIES = {
    "unchanged": counted,
    "several": lambda i, c: (c[0], lax.stop_gradient(c[0] + c[1])),
    "nested": lambda i, c: repeat(i, counted, c),
    "scan": lambda i, c: lax.scan(lambda d, _: (counted(i, d), d[1]), c, None, length=2)[0],
    "cond": lambda i, c: lax.cond(i > 1, lambda c: (c[0], c[1] + 1), lambda c: (c[0], c[1] * 2), c),
    "jit": lambda i, c: jit(counted)(i, c),
    "checkpoint": lambda i, c: checkpoint(counted)(i, c),
    "select": lambda i, c: (lax.select(i > 1, c[0], c[0]), c[1] + 1),
    "constants": lambda i, c: (c[0], c[1] + np.float32(3) * lax.convert_element_type(i, "f")),
}


@pytest.mark.parametrize("name", BODIES)
def test_reverse_mode(name) -> None:
    def f(x, n):
        return repeat(n, BODIES[name], (x * TWO, np.float32(1)))[0] ** 2

    n = np.int32(3)
    assert jit(grad(f))(np.float32(3), n) == 24
    assert grad(jit(f))(np.float32(3), n) == 24
    assert jit(grad(grad(f)))(np.float32(3), n) == 8
    xs = np.arange(3, dtype="f")
    np.testing.assert_array_equal(vmap(grad(f), (0, None))(xs, n), 8 * xs)
    steps = np.arange(3, dtype="int32")
    np.testing.assert_array_equal(vmap(grad(f))(xs, steps), 8 * xs)
    of_batch = grad(lambda xs: lax.reduce_sum(vmap(f)(xs, steps), (0,)))
    np.testing.assert_array_equal(of_batch(xs), 8 * xs)


def test_several_and_exchanged_carries() -> None:
    def f(x, y, n):
        a, _, b = repeat(n, lambda i, c: (c[0], c[1] + i, c[2]), (x, np.int32(0), y))
        return a * b

    assert jit(grad(f, (0, 1)))(np.float32(3), np.float32(5), 4) == (5, 3)
    exchanged = grad(lambda x, n: repeat(n, lambda i, c: (c[1], c[0]), (x, x))[0])
    with pytest.raises(ValueError, match="Reverse-mode"):
        jit(exchanged)(np.float32(3), 4)


def test_the_condition_reads_the_carry() -> None:
    def f(x):
        return lax.while_loop(lambda c: c[0] < c[1], lambda c: (c[0] + 1, c[1]), (0.0, x))

    value, gradient = jit(pc.value_and_grad(lambda x: f(x)[1] * TWO))(np.float32(3.5))
    assert (value, gradient) == (7, 2)
    assert jit(f)(np.float32(3.5)) == (4, 3.5)


def test_the_condition_is_the_carry() -> None:
    def f(go, x):
        return lax.while_loop(lambda c: c[0], lambda c: (c[0], c[1], c[1]), (go, x, x * TWO))

    assert jit(f)(False, TWO) == (False, 2, 4)
    assert f(pc.device_put(False), pc.device_put(TWO)) == (False, 2, 4)
    assert jit(grad(lambda go, x: f(go, x)[1], 1))(False, TWO) == 1


def test_a_carry_takes_the_value_of_an_unchanged_one() -> None:
    def f(x, n):
        return repeat(n, lambda i, c: (c[0], c[0]), (x, x * TWO))

    assert jit(f)(TWO, 3) == (2, 2) and jit(f)(TWO, 0) == (2, 4)
    assert jit(grad(lambda x, n: f(x, n)[0]))(TWO, 3) == 1
    assert jit(lambda x, n: pc.jvp(lambda x: f(x, n), (x,), (TWO,)))(TWO, 0)[1] == (2, 4)


def test_carries_whose_tangents_do_not_change() -> None:
    def f(x, n):
        return repeat(n, lambda i, c: c + TWO, x) * TWO

    assert jit(grad(f))(np.float32(3), 4) == 2
    assert vmap(grad(f))(np.ones(3, "f"), np.arange(3)).tolist() == [2, 2, 2]


def test_functions_with_their_own_derivative_do_not_forward() -> None:
    @pc.custom_jvp
    def same(x):
        return x

    same.defjvp(lambda primals, tangents: (primals[0], tangents[0] * TWO))
    f = jit(grad(lambda x, n: repeat(n, lambda i, c: (same(c[0]), c[1] + 1), (x, 1))[0]))
    with pytest.raises(ValueError, match="Reverse-mode"):
        f(np.float32(3), 4)
    assert pc.jvp(lambda x: repeat(np.int32(3), lambda i, c: same(c), x), (TWO,), (TWO,))[1] == 16


def test_python_numbers_and_structures() -> None:
    init = {"n": 0, "x": 1.5, "w": np.ones(2, "f")}
    out = lax.while_loop(lambda c: c["n"] < 3, lambda c: {**c, "n": c["n"] + 1}, init)
    assert (int(out["n"]), float(out["x"]), np.asarray(out["w"]).tolist()) == (3, 1.5, [1, 1])
    assert isinstance(out["x"], pc.Array) and isinstance(out["w"], pc.Array)
    (_, x), _ = lax.scan(lambda c, _: ((c[0] + 1, c[1]), None), (0, 2.5), None, length=2)
    assert isinstance(x, pc.Array) and x == 2.5


def test_a_scan_saves_unchanged_carries_once() -> None:
    w = np.full((4, 4), 0.5, "f")

    def f(h, w):
        def step(c, x):
            h, w = c
            return (lax.tanh(lax.dot(h, w)) + x, w), None

        (h, same), _ = lax.scan(step, (h, w), np.ones(5, "f"))
        return lax.reduce_sum(h, (0, 1)) + lax.reduce_sum(same, (0, 1))

    def g(h, w):
        h, _ = lax.scan(lambda h, x: (lax.tanh(lax.dot(h, w)) + x, None), h, np.ones(5, "f"))
        return lax.reduce_sum(h, (0, 1)) + lax.reduce_sum(w, (0, 1))

    h = np.full((4, 4), 0.1, "f")
    for ours, plain in zip(grad(f, (0, 1))(h, w), grad(g, (0, 1))(h, w)):
        np.testing.assert_allclose(ours, plain, rtol=1e-6)
    text = str(make_jaxpr(grad(f, (0, 1)))(h, w))
    assert "num_carry=1" in text and "num_carry=2" not in text.partition("transpose")[0]


def test_the_loop_is_smaller() -> None:
    def f(x, n):
        return repeat(n, counted, (x, np.int32(0)))

    (loop,) = make_jaxpr(f)(TWO, 3).eqns
    assert len(loop.outvars) == 2 and loop.params["body_nconsts"] == 0
    assert loop.params["cond_nconsts"] == 1  # the number of steps
