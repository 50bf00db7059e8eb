"""Sampled nests of transformations against the reference: values, dtypes, weak types.

Each case composes a base function with a few transformations, drawn with a fixed seed. Every
transformation here maps a function of one array to another, so that any order is possible.
"""

from __future__ import annotations

import random
import types
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy
import numpy as np
import pytest
from oracle_differences import WEAK_TYPES_OF_NESTS

import primax
import primax.numpy

CASES = 320
REFERENCE = types.SimpleNamespace(jx=jax, np=jax.numpy, lax=jax.lax)
OURS = types.SimpleNamespace(jx=primax, np=primax.numpy, lax=primax.lax)

Function = Callable[[Any], Any]


# Base functions: library -> function of one array


def smooth(m):
    return lambda x: m.np.sin(x) * x + 0.5


def ratio(m):
    return lambda x: m.np.tanh(x * 2.0 + 1.0) ** 2 / (1.0 + x * x)


def exponentials(m):
    return lambda x: m.np.log(1.0 + m.np.exp(x)) - m.lax.rsqrt(x * x + 1.0)


def selected(m):
    return lambda x: m.np.where(x > 0.4, x**3, m.np.cos(x))


def extremes(m):
    return lambda x: m.np.maximum(x, 0.3) * m.np.minimum(x, 2.0) + m.np.abs(x)


def half_precision(m):
    return lambda x: m.lax.convert_element_type(
        m.np.tanh(m.lax.convert_element_type(x, np.float16)), np.float32
    )


def products(m):
    matrix = np.linspace(-1.0, 1.0, 12, dtype=np.float32).reshape(4, 3)

    def f(x):
        v = m.np.reshape(x, (-1,))
        w = m.np.sum(v) * m.np.asarray(matrix)
        return m.np.tanh(w @ m.np.asarray(matrix.T)) @ m.np.arange(4.0)

    return f


def complex_inside(m):
    def f(x):
        z = m.lax.complex(m.np.sin(x), m.np.cos(x) * 1.0)
        return m.lax.real(z * z) + m.lax.imag(m.lax.exp(z))

    return f


def integers_inside(m):
    def f(x):
        return x * m.lax.convert_element_type(m.np.sum(x) > 0, np.int32) + m.lax.floor(x * 3.0)

    return f


def looped(m):
    def step(c, t):
        c = m.np.sin(c) * t + 0.1
        return c, c * t

    def f(x):
        c, ys = m.lax.scan(step, x * 1.0, m.np.arange(1.0, 4.0))
        return c + m.np.sum(ys, axis=0)

    return f


def counted(m):
    return lambda x: m.lax.fori_loop(0, 3, lambda i, c: c * m.np.cos(c) + 0.1 * i, x * 1.0)


def branching(m):
    return lambda x: m.lax.cond(
        m.np.sum(x) > 1.0, lambda v: m.np.sin(v) * v, lambda v: m.np.exp(-v), x * 1.0
    )


def custom_forward(m):
    @m.jx.custom_jvp
    def f(x):
        return m.np.sin(x)

    @f.defjvp
    def _(primals, tangents):
        (x,), (t,) = primals, tangents
        return f(x), t * m.np.cos(x) * 1.5

    return lambda x: f(x * 2.0)


def jitted(m):
    inner = m.jx.jit(lambda x, y: x * m.np.sin(y))
    return lambda x: inner(x, x + 1.0) + inner(x, 2.0)


BASES = [
    smooth, ratio, exponentials, selected, extremes, half_precision, products, complex_inside,
    integers_inside, looped, counted, branching, custom_forward, jitted,
]  # fmt: skip


def custom_backward(m):
    @m.jx.custom_vjp
    def f(x):
        return m.np.sin(x)

    f.defvjp(lambda x: (f(x), x), lambda x, ct: (ct * m.np.cos(x) * 1.5,))
    return lambda x: f(x * 2.0)


# Transformations: library, function -> function


def jit(m, f):
    return m.jx.jit(f)


def grad(m, f):
    return m.jx.grad(lambda x: m.np.sum(f(x)))


def value_and_grad(m, f):
    def g(x):
        value, d = m.jx.value_and_grad(lambda v: m.np.sum(f(v)))(x)
        return d * 0.5 + value

    return g


def vmap(m, f):
    return lambda x: m.jx.vmap(f)(m.np.stack([x * 1.0, x * 0.5]))


def vmap_last(m, f):
    return lambda x: m.jx.vmap(f, in_axes=-1, out_axes=-1)(m.np.stack([x * 1.0, x * 0.5], axis=-1))


def vmap_named(m, f):
    def g(x):
        rows = m.np.stack([x * 1.0, x * 0.5])
        return m.jx.vmap(lambda v: f(v) - m.lax.pmean(m.np.sum(v), "i"), axis_name="i")(rows)

    return g


def jvp(m, f):
    return lambda x: m.jx.jvp(f, (x * 1.0,), (m.np.cos(x * 1.0),))[1]


def vjp(m, f):
    def g(x):
        y, pull = m.jx.vjp(f, x * 1.0)
        return pull(m.np.ones_like(y))[0]

    return g


def linearize(m, f):
    return lambda x: m.jx.linearize(f, x * 1.0)[1](x * 1.0)


def jacfwd(m, f):
    return m.jx.jacfwd(f)


def jacrev(m, f):
    return m.jx.jacrev(f)


def checkpoint(m, f):
    return m.jx.checkpoint(f)


def closed_over(m, f):
    return lambda x: m.jx.jit(lambda v: f(v * m.np.sum(x)))(x)


def in_scan(m, f):
    def g(x):
        def step(c, t):
            return c + 0.1 * t * m.np.sum(f(c)), None

        c, _ = m.lax.scan(step, x * 1.0, m.np.arange(2.0))
        return c

    return g


def in_cond(m, f):
    return lambda x: m.lax.cond(m.np.sum(x) > 0.7, f, lambda v: f(v) * 0.5, x)


TRANSFORMATIONS = [
    jit, grad, value_and_grad, vmap, vmap_last, vmap_named, jvp, vjp, linearize, jacfwd, jacrev,
    checkpoint, closed_over, in_scan, in_cond,
]  # fmt: skip
REVERSE_ONLY = [jit, grad, value_and_grad, vmap, vmap_last, vjp, jacrev, closed_over, in_scan]


def sample(seed: int) -> tuple[Any, list[Any], Any]:
    """A base function, transformations from the inside out, and an argument."""
    draw = random.Random(seed)
    depth = draw.choice([1, 2, 2, 3, 3, 4])
    base = draw.choice([*BASES, custom_backward])
    pool = REVERSE_ONLY if base is custom_backward else TRANSFORMATIONS
    # At most one, because the sizes of nested Jacobians multiply.
    chosen, big = [], 0
    while len(chosen) < depth:
        t = draw.choice(pool)
        if t in (jacfwd, jacrev):
            big += 1
            if big > 1:
                continue
        if t is checkpoint and base is custom_backward:
            continue
        chosen.append(t)
    x = draw.choice([0.7, np.float32(0.6), np.array([0.3, 0.9, 1.7], np.float32)])
    return base, chosen, x


def build(m, base, transformations) -> Function:
    f = base(m)
    for t in transformations:
        f = t(m, f)
    return f


def name_of(seed: int) -> str:
    base, chosen, x = sample(seed)
    nest = "-".join(t.__name__ for t in reversed(chosen))
    return f"{seed}-{nest}-{base.__name__}-{type(x).__name__}"


def run(m, base, chosen, x):
    try:
        out = build(m, base, chosen)(x)
    except Exception as e:
        return e
    return out


@pytest.mark.rotate()
@pytest.mark.parametrize("seed", range(CASES), ids=name_of)
def test_nest(seed: int) -> None:
    base, chosen, x = sample(seed)
    expected = run(REFERENCE, base, chosen, x)
    got = run(OURS, base, chosen, x)
    if isinstance(expected, Exception):
        assert isinstance(got, Exception), f"the reference raises {expected!r}, we give {got!r}"
        return
    if isinstance(got, Exception):
        raise got
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    assert (got.weak_type == expected.weak_type) != (seed in WEAK_TYPES_OF_NESTS)
    np.testing.assert_allclose(np.asarray(got), np.asarray(expected), rtol=2e-4, atol=2e-5)
