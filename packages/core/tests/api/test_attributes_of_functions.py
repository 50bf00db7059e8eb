"""Attributes of transformed functions, and functions without the usual attributes."""

from __future__ import annotations

import functools
import re

import numpy as np
import pytest

import primax_core as px
from primax_core import lax

X3 = np.arange(3, dtype=np.float32)


class Unnamed:
    """A callable object without a name."""

    def __call__(self, x):
        return x * 2.0


class Numbered(Unnamed):
    __name__ = 3


CALLABLES = [
    Unnamed(),
    Numbered(),
    functools.partial(Unnamed()),
    functools.partial(Numbered()),
    functools.partial(lambda y, x: x * y, 2.0),
]
TRANSFORMATIONS = {
    "jit": lambda f: px.jit(f)(1.0),
    "vmap": lambda f: np.asarray(px.vmap(f)(X3))[1],
    "grad": lambda f: px.grad(f)(1.0),
    "value_and_grad": lambda f: px.value_and_grad(f)(1.0)[0],
    "jacfwd": lambda f: px.jacfwd(f)(1.0),
    "jacrev": lambda f: px.jacrev(f)(1.0),
    "checkpoint": lambda f: px.grad(px.checkpoint(f))(1.0),
    "linear_transpose": lambda f: px.linear_transpose(f, 1.0)(1.0)[0],
    "closure_convert": lambda f: px.closure_convert(f, 1.0)[0](1.0),
    "make_jaxpr": lambda f: 2.0 if "mul" in str(px.make_jaxpr(f)(1.0)) else 0.0,
    "fori_loop": lambda f: lax.fori_loop(0, 1, lambda i, c: f(c), 1.0),
    "cond": lambda f: lax.cond(True, f, f, 1.0),
    "scan": lambda f: lax.scan(lambda c, _: (f(c), None), 1.0, None, length=1)[0],
    "custom_jvp": lambda f: custom_jvp_of(f)(1.0),
}


def custom_jvp_of(f):
    g = px.custom_jvp(f)
    g.defjvp(lambda primals, tangents: (f(*primals), f(*tangents)))
    return g


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_callables_without_a_name(name):
    for f in CALLABLES:
        assert float(TRANSFORMATIONS[name](f)) == 2.0


@pytest.mark.parametrize(
    ("transformation", "summary"),
    [
        (px.jit, None),
        (px.checkpoint, None),
        (px.custom_jvp, None),
        (px.vmap, "f mapped over axes of its arguments."),
        (px.grad, "Gradient of f with respect to argument 0."),
        (px.value_and_grad, "Value and gradient of f with respect to argument 0."),
        (px.jacfwd, "Jacobian of f with respect to argument 0."),
        (px.jacrev, "Jacobian of f with respect to argument 0."),
    ],
)
def test_attributes_are_passed_on(transformation, summary):
    def f(x):
        """Doubles."""
        return x * 2.0

    f.tag = 7
    g = transformation(f)
    assert (g.tag, g.__name__, g.__wrapped__) == (7, "f", f)
    assert g.__doc__ == ("Doubles." if summary is None else f"{summary}\n\nDoubles.")
    undocumented = transformation(lambda x: x)
    assert undocumented.__doc__ == (summary and re.sub(r"\bf\b", "<lambda>", summary))


def test_jit_of_a_jitted_function_has_its_own_state():
    inner = px.jit(lambda x: x + 1.0)
    inner.tag = 1
    outer = px.jit(inner)
    assert float(outer(1.0)) == 2.0
    outer.clear_cache()
    assert inner._cache_size() == 1


class TestStaticArguments:
    """Positions and names that are both given are not completed by each other."""

    @staticmethod
    def types(**options):
        seen = []

        def f(x, n):
            seen.append(type(n))
            return x

        jitted = px.jit(f, **options)

        def call(*args, **kwargs):
            jitted(*args, **kwargs)
            return seen.pop()

        return call

    def test_both(self):
        call = self.types(static_argnums=(), static_argnames="n")
        assert call(1.0, n=3) is int and issubclass(call(1.0, 3), px.Array)
        assert call(1.0, [3, 4]) is list  # a tree of arrays
        call = self.types(static_argnums=1, static_argnames=())
        assert call(1.0, 3) is int and issubclass(call(1.0, n=3), px.Array)

    def test_one(self):
        for options in ({"static_argnums": 1}, {"static_argnames": "n"}):
            call = self.types(**options)
            assert call(1.0, 3) is int and call(1.0, n=4) is int
