"""Random programs of reads, writes and sums against NumPy, in several execution modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import primax_core as px
from primax_core import lax, ref as r

pytestmark = pytest.mark.optimised

F32 = np.float32
SHAPE = (4, 3)


class Step(NamedTuple):
    """One operation: its kind, the index for references and for NumPy, and the value.

    Both indices are functions of the program's index operands.
    """

    kind: str
    ours: Callable[[Any], Any]
    numpys: Callable[[Any], Any]
    value: np.ndarray


def random_axis(rng, n: int, k: int):
    """An index for one axis that may use the ``k``-th index operand."""
    kind = rng.choice(["int", "position", "slice", "step", "window", "array", "all"])
    if kind == "int":
        i = int(rng.integers(-n, n))
        return lambda p: i, lambda p: i
    if kind == "position":
        return lambda p: p[k], lambda p: int(p[k]) % n
    if kind == "slice":
        i, j = sorted(int(x) for x in rng.integers(0, n + 1, 2))
        return lambda p: slice(i, j), lambda p: slice(i, j)
    if kind == "step":
        return lambda p: slice(0, n, 2), lambda p: slice(0, n, 2)
    if kind == "window":
        size = int(rng.integers(1, n))
        return (
            lambda p: px.ds(p[k], size),
            lambda p: (lambda s: slice(s, s + size))(min(int(p[k]), n - size)),
        )
    if kind == "array":
        at = rng.permutation(n)[: int(rng.integers(1, n))]
        return lambda p: at, lambda p: at
    return lambda p: slice(None), lambda p: slice(None)


def random_program(seed: int) -> tuple[list[Step], np.ndarray]:
    rng = np.random.default_rng(seed)
    positions = np.array([rng.integers(0, n) for n in SHAPE], np.int32)
    steps = []
    for _ in range(6):
        axes = [random_axis(rng, n, k) for k, n in enumerate(SHAPE)]
        ours = lambda p, axes=axes: tuple(a(p) for a, _ in axes)
        numpys = lambda p, axes=axes: tuple(a(p) for _, a in axes)
        part = np.zeros(SHAPE, F32)[numpys(positions)]
        value = rng.integers(-5, 6, part.shape).astype(F32)
        steps.append(Step(str(rng.choice(["get", "set", "swap", "add"])), ours, numpys, value))
    return steps, positions


def run(steps, q, positions, scale):
    """Run a program on a reference and return the values that it reads."""
    p = [lax.index_in_dim(positions, k, 0, False) for k in range(len(SHAPE))]
    seen = []
    for s in steps:
        index = s.ours(p)
        value = lax.mul(s.value, lax.broadcast(scale, s.value.shape))
        if s.kind == "get":
            seen.append(q[index])
        elif s.kind == "swap":
            seen.append(r.swap(q, index, value))
        elif s.kind == "set":
            q[index] = value
        else:
            r.addupdate(q, index, value)
    return seen


def run_numpy(steps, x, positions, scale):
    x, seen = x.copy(), []
    for s in steps:
        index = s.numpys(positions)
        if s.kind in ("get", "swap"):
            seen.append(x[index].copy())
        if s.kind in ("set", "swap"):
            x[index] = s.value * scale
        if s.kind == "add":
            np.add.at(x, index, s.value * scale)
    return seen, x


def same(actual, expected):
    seen, x = actual
    assert len(seen) == len(expected[0])
    for a, b in zip(seen, expected[0]):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(x, expected[1])


START = np.arange(12, dtype=F32).reshape(SHAPE)
ONE, TWO = F32(1), F32(2)


@pytest.mark.parametrize("seed", range(12))
def test_execution_modes(seed):
    steps, positions = random_program(seed)
    expected = run_numpy(steps, START, positions, 1)
    twice = run_numpy(steps, expected[1], positions, 2)

    q = px.new_ref(START)
    same((run(steps, q, positions, ONE), q[...]), expected)

    f = px.jit(lambda q, p, s: run(steps, q, p, s))
    q = px.new_ref(START)
    same((f(q, positions, ONE), q[...]), expected)
    same((f(q, positions, TWO), q[...]), twice)

    def looped(p, scales):
        q = px.new_ref(START)
        _, seen = lax.scan(lambda c, s: (c, run(steps, q, p, s)), 0, scales)
        return seen, px.freeze(q)

    seen, last = px.jit(looped)(positions, np.array([ONE, TWO]))
    np.testing.assert_array_equal(last, twice[1])
    for rows, a, b in zip(seen, expected[0], twice[0]):
        np.testing.assert_array_equal(rows, np.stack([a, b]))

    q = px.new_ref(np.stack([START, START + 1]))
    seen = px.vmap(lambda q, s: run(steps, q, positions, s))(q, np.array([ONE, TWO]))
    other = run_numpy(steps, START + 1, positions, 2)
    np.testing.assert_array_equal(q[...], np.stack([expected[1], other[1]]))
    for rows, a, b in zip(seen, expected[0], other[0]):
        np.testing.assert_array_equal(rows, np.stack([a, b]))


@pytest.mark.parametrize("seed", range(4))
def test_derivatives(seed):
    """A program is linear in the contents of the reference and in the scale of the values."""
    steps, positions = random_program(100 + seed)

    def f(x, scale):
        q = px.new_ref(x)
        seen = run(steps, q, positions, scale)
        return [*seen, px.freeze(q)]

    def at(x, scale):
        seen, last = run_numpy(steps, x, positions, scale)
        return [*seen, last]

    rng = np.random.default_rng(seed)
    dx, ds = rng.integers(-3, 4, SHAPE).astype(F32), F32(2)
    cts = [rng.integers(-3, 4, np.shape(y)).astype(F32) for y in at(START, 1)]
    expected = [b - a for a, b in zip(at(START, 1), at(START + dx, 3))]
    inner = sum(float(np.vdot(a, b)) for a, b in zip(expected, cts))
    for wrap in (lambda g: g, px.jit):
        _, dots = px.jvp(wrap(f), (START, ONE), (dx, ds))
        for a, b in zip(dots, expected):
            np.testing.assert_array_equal(a, b)
        ct_x, ct_s = px.vjp(wrap(f), START, ONE)[1](cts)
        assert float(np.vdot(ct_x, dx) + np.asarray(ct_s) * ds) == inner


# Nested control flow, against the same program run in Python


def random_statement(rng, depth: int):
    """A function ``(reference, number) -> number``."""
    simple = ("set", "add", "read")
    kind = rng.choice(simple if depth == 0 else ("scan", "cond", "jit", "local", "fori", *simple))
    i, j, c = int(rng.integers(3)), int(rng.integers(3)), F32(rng.uniform(0.5, 1.5))
    if kind == "set":
        return lambda q, s: (r.set(q, i, lax.sin(q[j]) * s), s)[1]
    if kind == "add":
        return lambda q, s: (r.addupdate(q, i, q[j] * c), s + q[i] * F32(0.1))[1]
    if kind == "read":
        return lambda q, s: lax.tanh(s * q[i] + c)
    body = [random_statement(rng, depth - 1) for _ in range(2)]

    def block(q, s):
        for statement in body:
            s = statement(q, s)
        return s

    def local(q, s):
        own = px.new_ref(q[...] * F32(0.5))
        s = block(own, s)
        q[i] = own[j]
        return s

    return {
        "scan": lambda q, s: lax.scan(lambda s, _: (block(q, s), None), s, length=2)[0],
        "fori": lambda q, s: lax.fori_loop(0, 2, lambda _, s: block(q, s), s),
        "cond": lambda q, s: lax.cond(q[i] > 0.3, lambda s: block(q, s), lambda s: s * q[j], s),
        "jit": lambda q, s: px.jit(lambda s: block(q, s))(s),
        "local": local,
    }[kind]


@pytest.mark.parametrize("seed", range(4))
def test_nested_control_flow(seed):
    rng = np.random.default_rng(seed)
    statements = [random_statement(rng, 2) for _ in range(3)]

    def f(x):
        q = px.new_ref(x)
        s = q[0]
        for statement in statements:
            s = statement(q, s)
        held = q[...]
        return lax.reduce_sum(held * held, (0,)) + s * s

    x = np.array([0.5, 0.2, 0.9], F32)
    batch = np.stack([x, x[::-1]])
    with px.disable_jit():
        expected = [float(f(row)) for row in batch]
    np.testing.assert_allclose(px.jit(px.vmap(f))(batch), expected, rtol=1e-4)
    grads = np.asarray(px.jit(px.vmap(px.grad(f)))(batch))
    np.testing.assert_allclose(grads[0], px.jit(px.jacfwd(f))(x), rtol=1e-3, atol=1e-4)
    with px.disable_jit():
        np.testing.assert_allclose(grads[1], px.grad(f)(batch[1]), rtol=1e-3, atol=1e-4)
