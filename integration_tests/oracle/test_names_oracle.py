"""Names of operations, arguments and results in lowered modules, compared with jax."""

from __future__ import annotations

import re

import jax
import numpy as np
import pytest

import primax

newest = pytest.mark.skipif(
    tuple(map(int, jax.__version__.split(".")[:2])) < (0, 12),
    reason=f"compares with jax 0.12; jax {jax.__version__} is installed",
)
X = np.ones((3, 3), np.float32)


def scoped(library, x):
    with library.named_scope("a"), library.named_scope("b"):
        y = library.lax.sin(x)
    with library.named_scope("c"):
        return library.lax.mul(library.lax.cos(y), x).sum()


def looped(library, x):
    def step(c, t):
        with library.named_scope("step"):
            return library.lax.sin(c) * t, None

    with library.named_scope("loop"):
        return library.lax.scan(step, x[0, 0], x[0])[0]


def branched(library, x):
    lax = library.lax
    return lax.cond(x[0, 0] > 0, lambda y: lax.sin(y), lambda y: lax.cos(y), x).sum()


PROGRAMS = {
    "scopes": (scoped, lambda library, f: f),
    "grad": (scoped, lambda library, f: library.grad(f)),
    "vmap": (scoped, lambda library, f: library.vmap(f)),
    "vmap of grad": (scoped, lambda library, f: library.vmap(library.grad(f))),
    "second order": (
        scoped, lambda library, f: library.grad(lambda x: library.grad(f)(x).sum())
    ),
    "jvp": (scoped, lambda library, f: lambda x: library.jvp(f, (x,), (x,))),
    "linearize": (scoped, lambda library, f: lambda x: library.linearize(f, x)[1](x)),
    "outer scope": (scoped, lambda library, f: library.named_scope("out")(library.grad(f))),
    "scan": (looped, lambda library, f: f),
    "grad of scan": (looped, lambda library, f: library.grad(f)),
    "cond": (branched, lambda library, f: f),
    "grad of cond": (branched, lambda library, f: library.grad(f)),
    "checkpoint": (scoped, lambda library, f: library.checkpoint(f)),
}  # fmt: skip


def text(library, case):
    program, transform = PROGRAMS[case]

    def f(x):
        return program(library, x)

    def g(x):
        return transform(library, f)(x)

    x = X[None] if case.startswith("vmap") else X
    return library.jit(g).lower(x).as_text(debug_info=True)


def scopes(library, case):
    """Scopes with transformations, without the names of operations."""
    names = re.findall(r'"(jit\(g\)/[^"]*)"', text(library, case))
    return {name.rpartition("/")[0] for name in names if "while" not in name}


@newest
@pytest.mark.parametrize("case", PROGRAMS)
def test_scopes_and_transformations(case):
    assert scopes(primax, case) == scopes(jax, case)


@newest
def test_names_of_arguments_and_results():
    def f(x, tree, *, key):
        return {"a": x, "b": [tree["w"][0] + key, key]}

    texts = [
        library.jit(f).lower(X, {"w": [X]}, key=X).as_text(debug_info=True)
        for library in (primax, jax)
    ]
    heads = [re.search(r"func.func public @main\((.*)\{$", t, re.MULTILINE)[1] for t in texts]
    assert heads[0] == heads[1]
    plain = [
        library.jit(f).lower(X, {"w": [X]}, key=X).as_text() for library in (primax, jax)
    ]  # fmt: skip
    assert plain[0] == plain[1]
