"""Symbolic shapes against the reference: types, decisions and values."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export as their_export, lax, random
from oracle_differences import SYMBOLIC_SHAPES
from symbolic_programs import Program, programs

import primax_core as px
import primax_numpy as pnp
from primax_core import lax as our_lax
from primax_core._ir.symbolic_dims import max_dim, min_dim
from primax_interpreters import export
from primax_numpy import image as our_image, random as our_random

THEIRS = programs(jax, jnp, lax, random, jax.image)
OURS = programs(px, pnp, our_lax, our_random, our_image)


def specs(library, module, program: Program):
    shapes = tuple(
        library.ShapeDtypeStruct((1,) * (s.count(",") + 1), np.float32) for s in program.specs
    )
    return module.symbolic_args_specs(shapes, program.specs, program.constraints)


def outcome(library, module, program: Program):
    """Types of the results, or the class of the error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return types_of(library, module, program)
    except Exception as e:
        return type(e).__name__


def types_of(library, module, program: Program):
    """Types of the results."""
    structs = [library.ShapeDtypeStruct(s.shape, s.dtype) for s in specs(library, module, program)]
    avals = library.make_jaxpr(program.fun)(*structs).out_avals
    return [(str(v.shape), v.dtype.name, v.weak_type) for v in avals]


@pytest.mark.rotate()
@pytest.mark.parametrize("name", THEIRS)
def test_types_and_decisions(name):
    ours = outcome(px, export, OURS[name])
    theirs = outcome(jax, their_export, THEIRS[name])
    assert (ours == theirs) is (name not in SYMBOLIC_SHAPES), (ours, theirs)


# Values

VALUES = [
    "mean", "var", "std", "argmax", "reshape 2", "arange3", "arange neg", "eye2", "split",
    "tile", "roll", "take", "take_along", "slice1", "slice:2", "slice -2 nc", "slice step",
    "slice rev", "slice 2:4", "idx-1", "idx tup", "at set", "at add", "at idx", "matmul batch",
    "einsum2", "einsum trace", "pad2", "pad edge", "where", "cumsum", "argsort", "diff", "median",
    "tril", "diag2", "meshgrid", "average", "percentile", "inv", "solve", "det", "svdvals", "x/dim",
    "array(shape)", "multi_dot", "attention", "layernorm", "heads", "onehot", "scan", "fori",
    "vmap", "grad idx", "grad max", "jacrev", "grad solve", "grad chol", "conv", "avg pool",
    "vmap while", "vmap dyn", "normal", "randint", "bernoulli", "split keys", "top_k",
    "slice step dim", "slice -step dim", "slice bounds step dim", "slice start dim", "at step dim",
    "grad step dim", "approx_max_k", "approx_min_k",
    *(name for name in OURS if "resize" in name),
]  # fmt: skip
SIZES = (
    {"a": 4, "b": 6, "c": 3, "n": 2, "s": 3, "d": 4, "t": 5, "h": 4, "w": 5},
    {"a": 7, "b": 3, "c": 2, "n": 1, "s": 5, "d": 3, "t": 2, "h": 3, "w": 3},
)


@pytest.mark.rotate()
@pytest.mark.parametrize("name", VALUES)
def test_values(name):
    """Call one exported function for two shapes."""
    structs = specs(px, export, OURS[name])
    exported = export.export(px.jit(OURS[name].fun))(*structs)
    generator = np.random.default_rng(5)
    for sizes in SIZES:
        shapes = [[d if type(d) is int else d.evaluate(sizes) for d in s.shape] for s in structs]
        arguments = [generator.normal(size=s).astype(np.float32) for s in shapes]
        ours = px.tree_util.tree_leaves(exported.call(*arguments))
        theirs = jax.tree_util.tree_leaves(THEIRS[name].fun(*map(jnp.asarray, arguments)))
        for x, y in zip(ours, theirs, strict=True):
            x, y = np.asarray(x), np.asarray(y)
            assert x.shape == y.shape and x.dtype == y.dtype
            np.testing.assert_allclose(x, y, rtol=2e-3, atol=2e-3)


# Expressions

EXPRESSIONS = """
a*b+c; a+b*c; a*a+b; b*b+a; a*b+a+b+1; a**3+a*b*b+c; a//2+a; b//2+a//3; a//b+a//2; (a//2)*b+c
mx(a,b)+c; mn(a,b)+mx(a,b); (a%2)*(a//2); a*b*c+a*b+c*c; (2*a+4*b)//2; (2*a+3)//2; (a*b)//b
(a*b+b)//b; (a*b+c)//b; (4*a)//6; (4*a)%2; (a+4)%4; (a*b)%b; a%a; a//1; a//-1; a%-2; -a//2; (-a)%2
0//a; 3%a; 3//a; (a//2)//3; (a%4)%4; mx(a,a+1); mx(a,0); mx(a-1,0); mx(a-2,0); mn(a,1)
2*a>=a; a+b>=2; a//2>=0; a//2<=a; a//2*2<=a; a%3<3; a%b<b; mx(a,b)>=a; mx(a,b)>=mn(a,b)
a//2+a%2<=a; a-a%2>=0; (a+1)//2>=1; mx(a-2,0)<=a; a//2<a; a*b>0; a!=a+1; a==2*a; a**0; (a+1)**2
a==4; a==None; a in (1,b); a in (1,a); sum([a,b]); max(a,a+1); min(a,1); a*a//a; a*a*b//(a*b)
(a*b+a*c)//a; (a*b+a*c)//(b+c); mx(a,3)>=3; mx(a,3)<=a+2; -(a-b); 2*(a+b)*3; a>b; a+b>=3; a//0
divmod(7,a); float(a); int(a); range(a); +a; a<<1; bool(a-1); a<2; a-b>=0
""".replace("\n", ";").split(";")

SCOPES = [
    ((), [e.strip() for e in EXPRESSIONS if e.strip()]),
    (("a >= b",), ["a>=b", "a>b", "a+1>b", "2*a>=2*b", "2*a>=b", "mx(a,b)", "mn(a,b)", "a==b"]),
    (("a >= 8", "a <= 16"), ["a>7", "a//8>=1", "a//2<=8", "a<=15", "mx(a,4)", "mn(a,20)", "a%17"]),
    (("b == 2*a",), ["b", "b//2", "b%2", "a+b", "b>=2", "b==2*a", "a==b"]),
    (("mod(a,2) == 0",), ["a%2", "a//2*2", "a//2*2==a", "a//2", "(a+1)%2", "a>=2", "2*(a//2)-a"]),
    (("a >= b", "b >= c"), ["a>=c", "a+b>=2*c"]),
    (("floordiv(a,2) >= 3",), ["a//2>=3", "a>=6", "a>=5", "a>=7"]),
    (("2*a == b",), ["a", "b", "2*a", "b//2", "b>=2"]),
    (("a*b >= 12",), ["a*b>=10", "a*b>11", "2*a*b>=24", "a*b//12>=1"]),
]


def evaluated(expression: str, names) -> str:
    try:
        return str(eval(expression, names))
    except Exception as e:
        return type(e).__name__


@pytest.mark.parametrize(
    "constraints, expression", [(c, e) for c, es in SCOPES for e in es], ids=str
)
def test_expressions(constraints, expression):
    results = []
    for module, mx, mn in (
        (export, max_dim, min_dim), (their_export, jax.core.max_dim, jax.core.min_dim),
    ):  # fmt: skip
        a, b, c = module.symbolic_shape("a, b, c", constraints=constraints)
        results.append(evaluated(expression, {"a": a, "b": b, "c": c, "mx": mx, "mn": mn}))
    assert results[0] == results[1]


TEXTS = [
    "a, 2*a", "(a,)", "", "a,", "floordiv(a,b)", "mod(a, 3)", "max(a,b), min(a,3)", "a^2", "a**2",
    "a//2", "a%2", "-a + 3*b", "_, a", "...", "a b", "a + ", "foo(a)", "a, , b", "2", "3.5", "(a",
    "a)", "0", "-1", "a-1", "a*b*2-1", "max(a, b, c)", "a==b", "λ", "_a", "2a", "a*-1", "a--1",
    "(a+b)*c", " a , b ",
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_texts(text):
    for options in ({}, {"like": (3, 4)}):
        results = []
        for module in (export, their_export):
            try:
                results.append(str(module.symbolic_shape(text, **options)))
            except Exception as e:
                results.append(type(e).__name__)
        assert results[0] == results[1]


@pytest.mark.parametrize(
    "constraints",
    [
        ("a >= 8",), ("a > 3",), ("a",), ("a <= 0",), ("a >= 4", "a <= 3"), ("4 == a",),
        ("a == 5",), ("2*a >= 8",), ("a*b == 4*b",), ("a != 4",), "a >= 8", ("a + b == c",),
        ("a == b", "b == a"),
    ],
)  # fmt: skip
def test_constraints(constraints):
    results = []
    for module in (export, their_export):
        try:
            shape = module.symbolic_shape("a, b, c", constraints=constraints)
            results.append(
                [(str(d), *(module.symbolic_dim_bounds(d) if str(d) > "9" else ())) for d in shape]
            )
        except Exception as e:
            results.append(type(e).__name__)
    assert results[0] == results[1]


# Calls

CALLS = [
    ("2*a, b", (), (4, 6)), ("2*a, b", (), (3, 6)), ("a, a", (), (2, 3)), ("a, 6", (), (2, 5)),
    ("a, b", ("a >= 8",), (4, 2)), ("a, b", ("mod(a, 2) == 0",), (7, 2)), ("a, b", (), (0, 2)),
    ("a, b", (), (2,)), ("a - 1, b", (), (0, 2)), ("floordiv(a, 2), a", (), (3, 7)),
    ("floordiv(a, 2), a", (), (3, 8)), ("a + b, b", (), (5, 3)), ("a + b, 3", (), (5, 3)),
    ("a*a, 3", (), (4, 3)), ("max(a, 3), 2", (), (4, 2)),
]  # fmt: skip


@pytest.mark.parametrize("spec, constraints, shape", CALLS, ids=str)
def test_calls(spec, constraints, shape):
    results = []
    for library, module in ((px, export), (jax, their_export)):
        like = library.ShapeDtypeStruct((1, 6 if ", 6" in spec else 3 if ", 3" in spec else 2),
                                        np.float32)  # fmt: skip
        try:
            args = module.symbolic_args_specs((like,), spec, constraints)
            exported = module.export(library.jit(lambda x: x.sum()))(*args)
            results.append(float(exported.call(np.ones(shape, np.float32))))
        except Exception as e:
            results.append(type(e).__mro__[-3].__name__ if isinstance(e, ValueError) else type(e))
    assert results[0] == results[1]
