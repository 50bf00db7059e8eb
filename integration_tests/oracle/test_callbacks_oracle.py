"""Callbacks and debug printing against the reference: values, texts, orders, errors."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import same
from jax.experimental import io_callback as jax_io_callback

import primax as px
import primax.numpy as pnp
from primax_core import io_callback

X = np.array([0.5, 2.0, -1.0], np.float32)
SIDES = {
    "ours": (px, pnp, io_callback),
    "theirs": (jax, jnp, jax_io_callback),
}


def both(f, *args, capsys=None):
    """Results of ``f(library, numpy layer, io_callback, *args)`` in both libraries."""
    results = {}
    for side, libs in SIDES.items():
        try:
            out = f(*libs, *args)
            jax.block_until_ready(out) if side == "theirs" else px.block_until_ready(out)
            libs[0].effects_barrier()
        except Exception as e:
            out = e
        results[side] = (out, capsys.readouterr().out if capsys else None)
    return results["ours"], results["theirs"]


def agree(f, *args, capsys=None):
    (ours, our_text), (theirs, their_text) = both(f, *args, capsys=capsys)
    if isinstance(theirs, Exception):
        assert isinstance(ours, Exception), ours
        names = [c.__name__ for c in type(theirs).__mro__]
        assert type(ours).__name__ in names or type(theirs).__name__ in [
            c.__name__ for c in type(ours).__mro__
        ], (ours, theirs)
        return ours, theirs
    if isinstance(ours, Exception):
        raise ours
    same(ours, theirs)
    assert our_text == their_text
    return ours, theirs


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    "method", ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all",
               "legacy_vectorized", None, "loop"],
)  # fmt: skip
def test_vmap_methods(method, compiled):
    def f(lib, xnp, _):
        shapes = []

        def add(x, y):
            shapes.append((x.shape, y.shape, type(x).__name__))
            return np.asarray(x) + np.asarray(y)

        def g(x, y):
            return lib.pure_callback(
                add, lib.ShapeDtypeStruct((3,), np.float32), x, y, vmap_method=method
            )

        h = lib.vmap(g, in_axes=(0, None))
        h = lib.jit(h) if compiled else h
        out = h(np.stack([X, X + 1]), xnp.asarray(X))
        return out, np.asarray([[*a, *b] for a, b, _ in shapes])

    agree(f)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.ones(4, np.float32),
        lambda x: np.ones(3, np.int32),
        lambda x: np.ones(3, np.float64),
        lambda x: np.ones((3, 1), np.float32),
        lambda x: (x, x),
        lambda x: None,
        lambda x: 1 / 0,
        lambda x: x,
        lambda x: np.asarray(x)[::-1],
    ],
    ids=["shape", "int", "double", "rank", "count", "none", "raises", "same", "reversed"],
)
@pytest.mark.parametrize("compiled", [False, True])
def test_results(function, compiled):
    def f(lib, xnp, _):
        g = lambda x: lib.pure_callback(function, lib.ShapeDtypeStruct((3,), np.float32), x)
        return (lib.jit(g) if compiled else g)(xnp.asarray(X))

    agree(f)


@pytest.mark.parametrize("value, dtype", [(1, np.int32), (1.5, np.float32), (True, np.bool_)])
def test_python_numbers(value, dtype):
    def f(lib, xnp, _):
        return lib.jit(lambda: lib.pure_callback(lambda: value, lib.ShapeDtypeStruct((), dtype)))()

    agree(f)


@pytest.mark.parametrize("of", ["grad", "jvp", "vmap of ordered io", "grad of io"])
def test_errors(of):
    def f(lib, xnp, io):
        s = lib.ShapeDtypeStruct((), np.float32)
        pure = lambda x: lib.pure_callback(np.sin, s, x)
        ordered = lambda x: io(np.sin, s, x, ordered=True)
        return {
            "grad": lambda: lib.grad(pure)(0.5),
            "jvp": lambda: lib.jvp(pure, (0.5,), (1.0,)),
            "vmap of ordered io": lambda: lib.vmap(ordered)(xnp.asarray(X)),
            "grad of io": lambda: lib.grad(lambda x: io(np.sin, s, x))(0.5),
        }[of]()

    ours, theirs = agree(f)
    assert str(ours).split(".")[0] == str(theirs).split(".")[0]


@pytest.mark.parametrize("of", ["cond", "switch"])
def test_io_callback_in_a_batched_branch(of):
    def f(lib, xnp, io):
        s = lib.ShapeDtypeStruct((), np.float32)
        noted = lambda x: io(np.sin, s, x)
        return {
            "cond": lambda: lib.vmap(lambda x: lib.lax.cond(x > 0, noted, lambda x: x, x)),
            "switch": lambda: lib.vmap(
                lambda x: lib.lax.switch(x.astype(int), [lambda x: x, noted], x)
            ),
        }[of]()(xnp.asarray(X))

    ours, theirs = agree(f)
    assert isinstance(ours, NotImplementedError)
    assert str(ours).split(" in ")[0] == str(theirs).split(" in ")[0]


def test_io_callbacks_in_order():
    def f(lib, xnp, io):
        seen = []

        def body(c, x):
            io(lambda c, x: seen.append((int(c), float(x))), None, c, x, ordered=True)
            return c + 1, c

        def g(xs):
            c, _ = lib.lax.scan(body, 0, xs)
            c = lib.lax.cond(c > 2, lambda c: body(c, 9.0)[0], lambda c: c, c)
            return lib.lax.while_loop(lambda c: c < 6, lambda c: body(c, -1.0)[0], c)

        out = lib.jit(g)(xnp.asarray(X))
        lib.effects_barrier()
        return out, np.asarray(seen)

    agree(f)


PRINTS = {
    "fields": lambda lib, x: lib.debug.print("{} {y} {z:.2f} {y!r}", x, y=x * 2, z=1.5),
    "static": lambda lib, x: lib.debug.print("{s} {x}", s="text", x=x),
    "none": lambda lib, x: lib.debug.print("hello"),
    "ordered": lambda lib, x: [lib.debug.print("{i}", i=i, ordered=True) for i in range(3)],
    "missing": lambda lib, x: lib.debug.print("{} {}", x),
    "missing name": lambda lib, x: lib.debug.print("{x}", y=x),
    "unused": lambda lib, x: lib.debug.print("{}", x, x),
    "unused name": lambda lib, x: lib.debug.print("{}", x, y=x),
    "callback": lambda lib, x: lib.debug.callback(lambda v: print("got", v, type(v).__name__), x),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", PRINTS)
def test_prints(name, compiled, capsys):
    def f(lib, xnp, _):
        g = lambda x: (PRINTS[name](lib, x), x)[1]
        return (lib.jit(g) if compiled else g)(xnp.asarray(X))

    agree(f, capsys=capsys)


TRANSFORMED = {
    "vmap": lambda lib, g: lib.vmap(g),
    "jit vmap": lambda lib, g: lib.jit(lib.vmap(g)),
    "vmap jit": lambda lib, g: lib.vmap(lib.jit(g)),
    "grad": lambda lib, g: lambda x: lib.grad(g)(x[0]),
    "jit grad": lambda lib, g: lambda x: lib.jit(lib.grad(g))(x[0]),
    "remat": lambda lib, g: lambda x: lib.grad(lib.checkpoint(g))(x[0]),
    "jvp": lambda lib, g: lambda x: lib.jvp(g, (x[0],), (x[1],)),
    "linearize": lambda lib, g: lambda x: lib.linearize(g, x[0])[1](x[1]),
    "vjp": lambda lib, g: lambda x: lib.vjp(g, x[0])[1](x[1]),
    "hessian": lambda lib, g: lambda x: lib.hessian(g)(x[0]),
    "vmap grad": lambda lib, g: lib.vmap(lib.grad(g)),
    "scan": lambda lib, g: lambda x: lib.lax.scan(lambda c, v: (c, g(v)), 0, x)[1],
    "grad scan": lambda lib, g: (
        lambda x: lib.grad(lambda v: lib.lax.scan(lambda c, _: (g(c), None), v, None, length=2)[0])(
            x[0]
        )
    ),
    "map": lambda lib, g: lambda x: lib.lax.map(g, x),
    "vmap scan": lambda lib, g: lib.vmap(
        lambda v: lib.lax.scan(lambda c, _: (g(c), None), v, None, length=2)[0]
    ),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_prints_under_transformations(name, capsys):
    def f(lib, xnp, _):
        def g(x):
            lib.debug.print("x = {x:.4f}", x=x, ordered=True)
            return xnp.sin(x)

        return TRANSFORMED[name](lib, g)(xnp.asarray(X))

    (ours, our_text), (theirs, their_text) = both(f, capsys=capsys)
    same(ours, theirs)
    if name == "hessian":  # the number of evaluations is unspecified
        our_text, their_text = (sorted(set(t.splitlines())) for t in (our_text, their_text))
    assert our_text == their_text


def test_effect_names():
    def f(lib, xnp, io):
        s = lib.ShapeDtypeStruct((), np.float32)
        effects = [
            lib.make_jaxpr(lambda x: lib.debug.callback(print, x))(1.0).effects,
            lib.make_jaxpr(lambda x: lib.debug.callback(print, x, ordered=True))(1.0).effects,
            lib.make_jaxpr(lambda x: io(np.sin, s, x))(1.0).effects,
            lib.make_jaxpr(lambda x: io(np.sin, s, x, ordered=True))(1.0).effects,
            lib.make_jaxpr(lambda x: lib.pure_callback(np.sin, s, x))(1.0).effects,
        ]
        return [[re.sub("Effect$", "", type(e).__name__) for e in es] for es in effects]

    ours, theirs = both(f)
    assert ours[0] == theirs[0]


def test_failures_have_the_original_exception_as_cause():
    def f(lib, xnp, io):
        def fails(x):
            raise KeyError("the key")

        s = lib.ShapeDtypeStruct((3,), np.float32)
        return lib.jit(lambda x: lib.pure_callback(fails, s, x))(xnp.asarray(X))

    ours, theirs = agree(f)
    for e in (ours, theirs):
        assert "CpuCallback error calling callback" in str(e)
    assert "KeyError: 'the key'" in str(ours) and isinstance(ours.__cause__, KeyError)
