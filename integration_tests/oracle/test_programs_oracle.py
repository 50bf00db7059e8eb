"""Complete user programs give the same results as the reference.

Each takes a library under two names, ``m.jx`` (the root) and ``m.np``, and returns a tree of
results. Trees, shapes, dtypes, weak types and values are compared.
"""

from __future__ import annotations

import dataclasses
import itertools
import types
from functools import partial
from typing import Any, NamedTuple

import agreement
import jax
import jax.ad_checkpoint
import jax.numpy
import jax.random
import numpy as np
import pytest
from oracle_differences import WEAK_TYPES_OF_PROGRAMS

import primax
import primax.numpy
import primax.random
import primax_core.ad_checkpoint

REFERENCE = types.SimpleNamespace(
    jx=jax, np=jax.numpy, lax=jax.lax, random=jax.random, name=jax.ad_checkpoint.checkpoint_name
)
OURS = types.SimpleNamespace(
    jx=primax, np=primax.numpy, lax=primax.lax, random=primax.random,
    name=primax_core.ad_checkpoint.checkpoint_name,
)  # fmt: skip

PROGRAMS = []


def program(fun):
    PROGRAMS.append(pytest.param(fun, id=fun.__name__))
    return fun


def data(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


# Training


def layers(m, sizes=(5, 8, 3)):
    return [
        {"w": m.np.asarray(data(a, b, seed=i) * 0.3), "b": m.np.zeros(b)}
        for i, (a, b) in enumerate(itertools.pairwise(sizes))
    ]


def mlp(m, params, x):
    for p in params[:-1]:
        x = m.np.tanh(x @ p["w"] + p["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


def cross_entropy(m, params, x, y):
    logits = mlp(m, params, x)
    logits = logits - m.lax.stop_gradient(m.np.max(logits, axis=-1, keepdims=True))
    logs = logits - m.np.log(m.np.sum(m.np.exp(logits), axis=-1, keepdims=True))
    return -m.np.mean(m.np.sum((y[:, None] == m.np.arange(3)).astype(m.np.float32) * logs, axis=-1))


X, Y = data(16, 5), np.arange(16) % 3


@program
def adam(m):
    @partial(m.jx.jit, donate_argnums=(0, 1))
    def step(p, state, x, y):
        first, second, t = state
        t = t + 1
        loss, g = m.jx.value_and_grad(lambda p: cross_entropy(m, p, x, y))(p)
        first = m.jx.tree.map(lambda a, g: 0.9 * a + 0.1 * g, first, g)
        second = m.jx.tree.map(lambda a, g: 0.999 * a + 0.001 * g**2, second, g)
        scale = m.np.sqrt(1 - 0.999**t) / (1 - 0.9**t)
        p = m.jx.tree.map(
            lambda p, a, b: p - 0.01 * scale * a / (m.np.sqrt(b) + 1e-8), p, first, second
        )
        return p, (first, second, t), loss

    p = layers(m)
    zeros = m.jx.tree.map(m.np.zeros_like, p)
    state = (zeros, m.jx.tree.map(m.np.zeros_like, p), 0)
    for _ in range(4):
        p, state, loss = step(p, state, X, Y)
    return p, state, loss


@program
def training_in_a_scan(m):
    @m.jx.jit
    def train(p):
        def body(p, key):
            x = X + 0.01 * m.random.normal(key, X.shape)
            loss, g = m.jx.value_and_grad(lambda p: cross_entropy(m, p, x, Y))(p)
            return m.jx.tree.map(lambda a, b: a - 0.1 * b, p, g), loss

        return m.lax.scan(body, p, m.random.split(m.random.PRNGKey(0), 4))

    return train(layers(m))


@program
def gradients_of_each_example(m):
    one = m.jx.grad(lambda p, x, y: cross_entropy(m, p, x[None], y[None]))
    each = m.jx.vmap(one, in_axes=(None, 0, 0))
    return each(layers(m), X, Y), m.jx.jit(each)(layers(m), X, Y)


@program
def recurrent_with_checkpoints(m):
    def loss(params, xs, wrap):
        w, u, b = params

        def cell(h, x):
            h = m.np.tanh(h @ w + x @ u + b)
            return h, h

        h, hs = m.lax.scan(wrap(cell), m.np.zeros((2, 4)), xs)
        return m.np.sum(hs**2) + m.np.sum(h)

    params, xs = (data(4, 4) * 0.5, data(3, 4), data(4)), data(7, 2, 3)
    plain = m.jx.grad(loss, argnums=(0, 1))(params, xs, lambda f: f)
    again = m.jx.jit(m.jx.value_and_grad(partial(loss, wrap=m.jx.checkpoint)))(params, xs)
    return plain, again


@program
def long_short_term_memory(m):
    def sigmoid(t):
        return 1 / (1 + m.np.exp(-t))

    def cell(w, carry, x):
        h, c = carry
        z = m.np.concatenate([x, h], -1) @ w
        i, f, g, o = [z[..., k * 4 : (k + 1) * 4] for k in range(4)]
        c = sigmoid(f) * c + sigmoid(i) * m.np.tanh(g)
        h = sigmoid(o) * m.np.tanh(c)
        return (h, c), h

    def loss(w, xs):
        start = (m.np.zeros((2, 4)), m.np.zeros((2, 4)))
        return m.np.mean(m.lax.scan(partial(cell, w), start, xs)[1] ** 2)

    w, xs = data(7, 16) * 0.3, data(5, 2, 3)
    return m.jx.jit(m.jx.grad(loss))(w, xs), m.jx.jvp(m.jx.grad(loss), (w, xs), (w, xs))


@program
def masked_attention(m):
    mask = np.tril(np.ones((4, 4), bool))[None, None]

    def attend(p, x):
        q, k, v = [m.np.reshape(x @ p[n], (*x.shape[:-1], 2, 3)) for n in "qkv"]
        s = m.lax.dot_general(q, k, (((3,), (3,)), ((0, 2), (0, 2)))) / np.sqrt(3)
        s = m.np.where(mask, s, -1e9)
        s = m.np.exp(s - m.np.max(s, -1, keepdims=True))
        w = s / m.np.sum(s, -1, keepdims=True)
        out = m.lax.dot_general(w, v, (((3,), (1,)), ((0, 1), (0, 2))))
        return x + m.np.transpose(out, (0, 2, 1, 3)).reshape(*x.shape[:2], 6) @ p["o"]

    def loss(p, x):
        return m.np.sum(attend(p, attend(p, x)) ** 2)

    p = {n: data(6, 6, seed=i) * 0.4 for i, n in enumerate("qkvo")}
    saved = m.jx.checkpoint(loss, policy=m.jx.checkpoint_policies.dots_saveable)
    x = data(2, 4, 6)
    return m.jx.jit(m.jx.value_and_grad(loss, (0, 1)))(p, x), m.jx.grad(saved)(p, x)


@program
def convolutional(m):
    numbers = ("NHWC", "HWIO", "NHWC")

    def loss(p, x):
        x = m.lax.conv_general_dilated(x, p["a"], (1, 1), "SAME", dimension_numbers=numbers)
        x = m.np.maximum(x + p["b"], 0)
        x = m.lax.reduce_window(x, -np.inf, m.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        x = m.np.tanh(
            m.lax.conv_general_dilated(x, p["c"], (2, 2), "VALID", dimension_numbers=numbers)
        )
        return m.np.sum((x.reshape(x.shape[0], -1) @ p["d"]) ** 2)

    p = {
        "a": data(3, 3, 1, 4) * 0.3, "b": data(4) * 0.1, "c": data(2, 2, 4, 3) * 0.3,
        "d": data(12, 2),
    }  # fmt: skip
    x = data(3, 8, 8, 1, seed=5)
    each = m.jx.vmap(m.jx.grad(lambda p, x: loss(p, x[None])), in_axes=(None, 0))
    return m.jx.jit(m.jx.value_and_grad(loss))(p, x), m.jx.jit(each)(p, x)


@program
def ensemble(m):
    members = m.jx.tree.map(lambda *a: m.np.stack(a), *[layers(m) for _ in range(3)])
    shared = [{"w": p["w"], "b": p["b"][0]} for p in members]
    axes = [{"w": 0, "b": None}] * 2
    run = m.jx.vmap(partial(mlp, m), in_axes=(axes, None), out_axes=1)
    derivative = m.jx.grad(lambda p, x: m.np.sum(mlp(m, p, x)))
    return m.jx.jit(run)(shared, X), m.jx.vmap(derivative, in_axes=(axes, None))(shared, X)


# Solvers and custom derivatives


@program
def root_by_iteration(m):
    @m.jx.custom_vjp
    def root(a):
        def test(s):
            return (m.np.abs(s[0] - s[1]) > 1e-6) & (s[2] < 100)

        def body(s):
            return 0.5 * (s[0] + a / s[0]), s[0], s[2] + 1

        return m.lax.while_loop(test, body, (m.np.maximum(a, 1.0), m.np.zeros_like(a), 0))[0]

    root.defvjp(lambda a: (lambda x: (x, (x,)))(root(a)), lambda r, ct: (ct / (2 * r[0]),))
    cube = lambda a: root(a) ** 3
    xs = np.array([2.0, 3.0, 5.0], np.float32)
    return (
        m.jx.grad(cube)(2.0), m.jx.vmap(m.jx.value_and_grad(cube))(xs),
        m.jx.jit(m.jx.vmap(m.jx.grad(m.jx.grad(cube))))(xs),
    )  # fmt: skip


@program
def fixed_point_by_implicit_differentiation(m):
    @partial(m.jx.custom_vjp, nondiff_argnums=(0,))
    def solve(f, a, start):
        test = lambda c: m.np.max(m.np.abs(c[0] - c[1])) > 1e-6
        return m.lax.while_loop(test, lambda c: (c[1], f(a, c[1])), (start, f(a, start)))[1]

    def forward(f, a, start):
        x = solve(f, a, start)
        return x, (a, x)

    def adjoint(f, packed, u):
        a, x, ct = packed
        return ct + m.jx.vjp(lambda x: f(a, x), x)[1](u)[0]

    def backward(f, saved, ct):
        a, x = saved
        u = solve(partial(adjoint, f), (a, x, ct), ct)
        return m.jx.vjp(lambda a: f(a, x), a)[1](u)[0], m.np.zeros_like(x)

    solve.defvjp(forward, backward)
    matrix = data(3, 3) * 0.2
    g = lambda a: m.np.sum(solve(lambda a, x: m.np.tanh(matrix @ x + a), a, m.np.zeros(3)) ** 2)
    return m.jx.grad(g)(data(3)), m.jx.jit(m.jx.vmap(m.jx.grad(g)))(data(4, 3))


@program
def differential_equation(m):
    def solve(y, th, n=8):
        f = lambda y: m.np.sin(th * y) - 0.1 * y

        def body(_, y):
            a = f(y)
            b = f(y + 0.05 * a)
            return y + 0.1 / 6 * (a + 4 * b + f(y + 0.1 * (2 * b - a)))

        return m.lax.fori_loop(0, n, body, y)

    y = data(3)
    counted = m.jx.jit(lambda n, y, t: m.jx.jvp(lambda y, t: solve(y, t, n), (y, t), (y, t)))
    derivative = m.jx.grad(lambda y, t: m.np.sum(solve(y, t)), (0, 1))
    return counted(8, y, 1.3), derivative(y, 1.3), m.jx.jacfwd(solve, 1)(y, 1.3)


@program
def nested_custom_jvp(m):
    @m.jx.custom_jvp
    def inner(x):
        return m.np.sin(x)

    inner.defjvps(lambda t, y, x: t * m.np.cos(x) * 2)

    @m.jx.custom_jvp
    def outer(x, y):
        return inner(x) * y

    @outer.defjvp
    def _(primals, tangents):
        (x, y), (tx, ty) = primals, tangents
        return outer(x, y), inner(x) * ty + 3 * tx * y * inner(y)

    def loss(x, xs):
        c, ys = m.lax.scan(lambda c, t: (outer(c, t) + x, inner(c)), x, xs)
        return c + m.np.sum(ys)

    batched = lambda v: m.np.sum(m.jx.vmap(loss, (0, None))(v, data(4)))
    return (
        m.jx.grad(loss)(0.3, data(4)), m.jx.jit(m.jx.grad(batched))(data(3)),
        m.jx.hessian(batched)(data(3)), m.jx.vmap(m.jx.grad(loss), (0, None))(data(3), data(4)),
    )  # fmt: skip


@program
def custom_vjp_in_scan(m):
    @partial(m.jx.custom_vjp, nondiff_argnums=(0, 2))
    def f(g, x, n, y):
        return g(x) * n + y

    f.defvjp(
        lambda g, x, n, y: (f(g, x, n, y), (x,)),
        lambda g, n, saved, ct: (ct * n * m.np.cos(saved[0]) * 10, None),
    )

    def loss(a, xs):
        def body(c, x):
            c = f(m.np.sin, c, 3, x) * a
            return c, f(m.np.cos, x, 2, c)

        c, ys = m.lax.scan(body, a, xs)
        return c + m.np.sum(ys)

    xs = data(5)
    return (
        m.jx.grad(loss, (0, 1))(0.2, xs), m.jx.vmap(m.jx.grad(loss), (0, None))(data(3), xs),
        m.jx.jit(m.jx.grad(m.jx.checkpoint(loss), (0, 1)))(0.2, xs),
    )  # fmt: skip


@program
def custom_vjp_of_trees(m):
    @m.jx.custom_vjp
    def f(p, x, i):
        return {"y": m.np.sin(p["w"]) * x[0] * i, "k": i + 1}

    f.defvjp(
        lambda p, x, i: (f(p, x, i), (p, x, None, {})),
        lambda r, ct: ({"w": ct["y"] * m.np.cos(r[0]["w"]) * r[1][0], "b": None}, None, None),
    )
    p = {"w": m.np.asarray(data(3)), "b": m.np.asarray(data(2))}
    x, i = (m.np.asarray(data(3)), m.np.asarray(2.0)), m.np.asarray(3)
    loss = lambda p, x: m.np.sum(f(p, x, i)["y"])
    axes = ({"w": None, "b": None}, (None, 0))
    return (
        m.jx.jit(m.jx.grad(loss, (0, 1)))(p, x),
        m.jx.vmap(m.jx.grad(loss, (0, 1)), in_axes=axes)(p, (x[0], m.np.ones(4))),
    )


@program
def policies_in_a_scan(m):
    policies = m.jx.checkpoint_policies
    w, xs = data(3, 3) * 0.5, data(4, 3)

    def loss(w, xs, policy):
        def body(c, x):
            y = m.name(m.np.tanh(c @ w), "y")
            return m.np.sin(y * x) @ w, m.np.sum(y)

        c, ys = m.lax.scan(m.jx.checkpoint(body, policy=policy), m.np.ones((2, 3)), xs)
        return m.np.sum(c) + m.np.sum(ys**2)

    named = policies.save_only_these_names("y")
    return [
        m.jx.grad(loss, (0, 1))(w, xs, policies.everything_saveable),
        m.jx.grad(loss, (0, 1))(w, xs, policies.dots_saveable),
        m.jx.vmap(m.jx.grad(partial(loss, policy=named)), (None, 0))(w, data(2, 4, 3)),
        m.jx.jvp(m.jx.grad(lambda w: loss(w, xs, named)), (w,), (w,)),
    ]


# Nested transformations


@program
def hessian_vector_products(m):
    x, v = data(4), data(4, seed=1)
    f = lambda x: m.np.sum(m.np.sin(x) * m.np.exp(x[::-1])) + m.np.prod(x)
    along = lambda x: m.jx.jvp(f, (x,), (v,))[1]
    value, product = m.jx.linearize(m.jx.grad(f), x)
    return (
        m.jx.jvp(m.jx.grad(f), (x,), (v,)), m.jx.grad(along)(x), m.jx.vjp(along, x)[1](1.0),
        m.jx.jacfwd(m.jx.jacrev(f))(x), m.jx.jit(m.jx.jacrev(m.jx.jacfwd(f)))(x), value, product(v),
        m.jx.vmap(product)(np.eye(4, dtype=np.float32)),
    )  # fmt: skip


@program
def conditionals_in_a_mapped_scan(m):
    branches = [lambda c: c, lambda c: c * 2, lambda c: m.np.exp(-c)]

    def f(x, choices):
        def body(c, p):
            c = m.lax.cond(p, lambda c: m.np.sin(c) * x, lambda c: c**2 + x, c)
            return c, m.lax.switch(p.astype(m.np.int32) + 1, branches, c)

        c, ys = m.lax.scan(body, x, choices)
        return c + m.np.sum(ys)

    choices = np.array([[1, 0, 1], [0, 0, 1], [1, 1, 1]], bool)
    xs, mapped = data(3), m.jx.vmap(f)
    return (
        m.jx.jit(mapped)(xs, choices), m.jx.grad(lambda xs: m.np.sum(mapped(xs, choices)))(xs),
        m.jx.vmap(m.jx.grad(f))(xs, choices), m.jx.vmap(f, (0, None))(xs, choices[0]),
    )  # fmt: skip


@program
def switch_of_many(m):
    branches = [lambda x, k=k: m.np.sin(k * x) + (x**k if k % 2 else float(k)) for k in range(10)]
    f = lambda x, i: m.lax.switch(i, branches, x)
    return (
        [m.jx.grad(f)(0.7, i) for i in (0, 9, 99, -3)], m.jx.jit(m.jx.value_and_grad(f))(0.7, 7),
        m.jx.vmap(m.jx.grad(f), (None, 0))(0.7, np.arange(10)),
    )  # fmt: skip


@program
def nested_scans(m):
    def f(x):
        def outer(c, _):
            def middle(c, t):
                body = lambda c, u: (c * m.np.cos(u * x) + 0.1 * t, c)
                c, ys = m.lax.scan(body, c, m.np.arange(2.0))
                return c, m.np.sum(ys)

            return m.lax.scan(middle, c, m.np.arange(3.0))

        c, ys = m.lax.scan(outer, x, None, length=2)
        return c + m.np.sum(ys)

    return (
        m.jx.grad(f)(0.5), m.jx.vmap(m.jx.grad(f))(data(3)),
        m.jx.jit(lambda x: m.jx.jvp(m.jx.grad(f), (x,), (1.0,)))(0.5),
    )  # fmt: skip


@program
def named_axes(m):
    def f(x):
        def one(y):
            inner = lambda z: m.lax.psum(m.np.sin(z * y), ("i", "j")) * z + m.lax.axis_index("i")
            return m.jx.vmap(inner, axis_name="j")(x)

        return m.jx.vmap(one, axis_name="i")(x)

    def loop(x):
        body = lambda c, t: (m.lax.pmean(m.np.sin(c) * t, "b"), m.lax.psum(c, "b"))
        run = lambda v: m.lax.scan(body, v, m.np.arange(3.0))
        return m.jx.vmap(run, axis_name="b")(x)

    x = data(3)
    return (
        f(x), m.jx.jit(m.jx.grad(lambda x: m.np.sum(f(x))))(x), loop(x),
        m.jx.grad(lambda x: m.np.sum(loop(x)[0]))(x),
    )  # fmt: skip


@program
def closures_at_every_level(m):
    def f(x):
        def g(y):
            def h(z):
                inner = m.jx.jit(lambda w: w * x * y * z)
                body = lambda c, _: (c * x + y, c * z)
                return inner(m.np.sin(z)) + m.lax.scan(body, z, None, length=3)[0]

            return m.jx.grad(h)(y * x) + m.jx.vmap(lambda t: t * x + y)(m.np.arange(3.0)).sum()

        return m.jx.jvp(g, (x,), (1.0,))[1] + m.lax.cond(x > 0, lambda: x * g(x), lambda: x)

    return f(0.5), m.jx.grad(f)(0.5), m.jx.jit(m.jx.vmap(f))(data(3))


@program
def pullbacks_that_leave_jit(m):
    f = lambda x, y: (m.np.sin(x) * y, x @ y)
    x, y = data(3), data(3, seed=1)
    out, pull = m.jx.jit(lambda x, y: m.jx.vjp(f, x, y))(x, y)
    _, other = m.jx.jit(lambda x, y: m.jx.vjp(f, x, y))(x + 1, y)
    apply = m.jx.jit(lambda pull, ct: pull(ct))
    value, linear = m.jx.jit(lambda x: m.jx.linearize(lambda x: m.np.sin(x) * x, x))(x)
    one = np.float32(1)
    return (
        out, pull((x, 1.0)), apply(pull, (x, one)), apply(other, (x, one)), value, linear(y),
        m.jx.vmap(lambda c: pull((c, one)))(data(2, 3)),
    )  # fmt: skip


# Types


@program
def complex_and_real(m):
    def f(x, z):
        w = z * x + m.np.exp(1j * x)
        return m.np.sum(m.np.abs(w) ** 2) + m.np.sum(m.lax.real(w * z))

    x, z = data(3), (data(3) + 1j * data(3, seed=1)).astype(np.complex64)
    return (
        m.jx.jit(m.jx.value_and_grad(f, (0, 1)))(x, z), m.jx.jvp(f, (x, z), (x, z)),
        m.jx.grad(lambda z: m.np.sin(z) * z**2, holomorphic=True)(1.0 + 2j),
        m.jx.jacfwd(lambda x: m.np.exp(1j * x))(x),
        m.jx.vmap(m.jx.grad(lambda z: m.lax.real(m.np.sin(z) * m.lax.conj(z))))(z),
    )  # fmt: skip


@program
def half_precision_parameters(m):
    p = {"w": data(4, 4).astype(m.np.bfloat16), "b": data(4).astype(m.np.bfloat16)}
    x = data(3, 4).astype(m.np.bfloat16)

    def f(p, x):
        product = partial(m.lax.dot_general, dimension_numbers=(((1,), (0,)), ((), ())))
        y = product(x, p["w"], preferred_element_type=m.np.float32) + p["b"].astype(m.np.float32)
        return m.np.sum((m.np.tanh(y).astype(m.np.bfloat16) @ p["w"]).astype(m.np.float32))

    return m.jx.jit(m.jx.grad(f, (0, 1)))(p, x)


@program
def integers_among_the_arguments(m):
    float0 = jax.dtypes.float0
    f = lambda x, i, b: (x * i + m.np.where(b, x, 0), i + 1, b)
    x = data(3)
    i, b = m.np.asarray(np.arange(3)), m.np.asarray(np.array([True, False, True]))
    y, pull = m.jx.vjp(f, x, i, b)
    ct = (np.ones(3, np.float32), np.zeros(3, float0), np.zeros(3, float0))
    derivative = m.jx.grad(lambda x, i: m.np.sum(x * i), argnums=(0, 1), allow_int=True)
    return y, pull(ct), derivative(x, i), m.jx.jvp(f, (x, i, b), (x, ct[1], ct[2]))


@program
def wide_types(m):
    with m.jx.enable_x64(True):
        x = data(3, dtype=np.float64)
        f = lambda x: m.np.sum(m.np.sin(x) ** 2)
        wide = (
            f(x), m.jx.jit(m.jx.grad(f))(x), m.lax.scan(lambda c, x: (c + x, c), 0.0, x),
            m.jx.jit(lambda x: x + 1)(1), m.lax.fori_loop(0, 3, lambda i, c: c * i + 1.0, 1.0),
        )  # fmt: skip
        jitted = m.jx.jit(f)
        wide = (*wide, jitted(x))
    return wide, f(x), m.jx.grad(f)(x), jitted(x)


@program
def empty_arrays(m):
    x = np.zeros((0, 3), np.float32)
    f = lambda x: m.np.sum(m.np.sin(x @ np.ones((3, 2), np.float32)))
    return (
        f(x), m.jx.jit(m.jx.grad(f))(x), m.jx.vmap(lambda r: m.np.sum(r) * 2)(x),
        m.lax.scan(lambda c, x: (c + m.np.sum(x), x * 2), 0.0, x),
        m.jx.grad(lambda c: m.lax.scan(lambda c, x: (c * 2 + m.np.sum(x), x * c), c, x)[0])(1.0),
    )  # fmt: skip


class Pair(NamedTuple):
    a: Any
    b: Any = None


@program
def trees_of_all_kinds(m):
    @partial(m.jx.tree_util.register_dataclass, data_fields=["x", "y"], meta_fields=["n"])
    @dataclasses.dataclass
    class Record:
        x: Any
        y: Any
        n: int = 3

    fields = lambda r: (r.x, r.y)
    pair = m.jx.jit(lambda t: Pair(t.a * 2, {"q": t.b}))(Pair(1.0, (2.0, None)))
    derivative = m.jx.grad(lambda t: t.a**2 + t.b[0])(Pair(1.0, (2.0, None)))
    step = lambda c, x: (Record(c.x + x, c.y * 2, c.n), None)
    carried = m.lax.scan(step, Record(0.0, 1.0, 7), m.np.arange(3.0))[0]
    mapped = m.jx.vmap(
        lambda r: Record(r.x, r.x + r.y, 2), in_axes=(Record(0, None, 2),), out_axes=Record(0, 0, 2)
    )(Record(m.np.arange(3.0), 1.0, 2))
    nothing = m.jx.jit(lambda d: ({}, None, (), {"a": d["a"]}))({"a": 1.0, "b": None, "c": []})
    return tuple(pair), tuple(derivative), fields(carried), fields(mapped), nothing


@program
def results_that_are_arguments(m):
    def f(x, y):
        m.np.exp(x) * 1e10
        m.lax.scan(lambda c, _: (c * 2, None), x, None, length=100)
        return x, x, y, x + y, 1.0, 3, x

    jitted = m.jx.jit(f)
    fresh = lambda: m.np.asarray(data(3))
    donating = m.jx.jit(lambda x, y: (x, x, y, x + y), donate_argnums=0)
    return (
        jitted(fresh(), fresh()), m.jx.vmap(jitted)(fresh(), fresh()), donating(fresh(), fresh()),
        m.jx.jvp(jitted, (fresh(), fresh()), (fresh(), fresh()))[0],
        m.jx.grad(lambda x: jitted(x, x)[3])(2.0),
    )  # fmt: skip


# Sizes


@program
def fifty_levels_of_jit(m):
    f = m.np.sin
    for _ in range(50):
        f = m.jx.jit(lambda x, g=f: g(x) + 0.01)
    return f(1.0), m.jx.grad(f)(1.0), m.jx.vmap(f)(data(3))


@program
def two_thousand_equations(m):
    def f(x, n=2000):
        for k in range(n):
            x = x * 1.0001 + 0.001 if k % 2 else m.np.sin(x)
        return x

    return m.jx.jit(f)(0.5), m.jx.grad(partial(f, n=200))(0.5)


@program
def ten_thousand_steps(m):
    f = lambda x: m.lax.scan(lambda c, _: (m.np.sin(c) + x, None), x, None, length=10000)[0]
    return f(0.5), m.jx.grad(f)(0.5)


@program
def many_leaves(m):
    tree = {f"k{i}": m.np.asarray(data(2, seed=i)) for i in range(1000)}
    f = lambda t: sum(m.np.sum(v) for v in list(t.values())[:20])
    double = m.jx.jit(lambda t: m.jx.tree.map(lambda v: v, t))
    return double(double(tree)), m.jx.grad(f)(tree)


@program
def thousand_arguments(m):
    xs = [np.float32(i) for i in range(1000)]
    keys = {f"k{i}": np.float32(i) if i != 9 else {"z": 3.0, "y": (1, 2)} for i in range(200)}
    f = m.jx.jit(lambda *a, **k: (a[3] + a[999], k["k7"], k["k9"]["z"] + 1))
    derivative = m.jx.grad(lambda *a: f(*a, **keys)[0], argnums=(3, 5))
    return f(*xs, **keys), f(*xs, **dict(reversed(keys.items()))), derivative(*xs)


@pytest.mark.parametrize("fun", PROGRAMS)
def test_program(fun) -> None:
    ours, theirs = fun(OURS), fun(REFERENCE)
    assert str(jax.tree.structure(ours)) == str(jax.tree.structure(theirs))
    for o, t in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs)):
        if fun.__name__ in WEAK_TYPES_OF_PROGRAMS:
            o, t = np.asarray(o), np.asarray(t)
        rtol = None if str(t.dtype) in ("bfloat16", "float64", "complex128") else 1e-4
        agreement.same(o, t, fun.__name__, rtol if t.dtype.kind in "fc" else None)
