"""Specifications of symbolic shapes, their placeholders and constraints."""

from __future__ import annotations

import math

import numpy as np
import pytest

import primax_core as px
from primax_core import lax
from primax_core._api.symbolic_shapes import (
    SymbolicScope,
    symbolic_args_specs,
    symbolic_dim_bounds,
    symbolic_shape,
)  # fmt: skip
from primax_core._ir.symbolic_dims import UnknownDimensionError

SHAPES = {
    "a, 2*a": "(a, 2*a)", "(a,)": "(a,)", "": "()", "a,": "(a,)", "floordiv(a, b)":
    "(floordiv(a, b),)", "max(a,b), min(a,3)": "(max(a, b), min(a, 3))", "a^2": "(a^2,)",
    "-a + 3*b": "(3*b - a,)", "2": "(2,)", "a - 1": "(a - 1,)", "a*b*2-1": "(2*a*b - 1,)",
    "a*-1": "(- a,)", "a--1": "(a + 1,)", "λ": "(λ,)", " a , b ": "(a, b)", "_a, a2": "(_a, a2)",
    "(a, b)": "(a, b)", "mod(a + b, 3)": "(mod(b + a, 3),)",
}  # fmt: skip


@pytest.mark.parametrize("text", SHAPES)
def test_parsing(text):
    assert str(symbolic_shape(text)) == SHAPES[text]


ERRORS = [
    ("a**2", "expected a dimension variable", 3), ("a//2", "expected ',' or an operator", 1),
    ("a b", "in dimension 1: expected ',' or an operator, found 'b'", 2),
    ("a + ", "expected a dimension variable, a number or '-', found the end", 4),
    ("foo(a)", "expected an operation (floordiv, mod, max or min), found 'foo'", 0),
    ("a, , b", "in dimension 1: expected a dimension variable, a number or '-', found ','", 3),
    ("3.5", "expected an integer, found '3.5'", 0), ("(a", "found the end", 2),
    ("a)", "found ')'", 1), ("max(a, b, c)", "expected ')' or an operator, found ','", 8),
    ("a==b", "found '=='", 1), ("2a", "found 'a'", 1), ("(a+b)*c", "found '*'", 5),
    ("_, a", "no 'like' shape was given", 0), ("...", "no 'like' shape was given", 0),
    ("a^b", "nonnegative integer exponent", 2), ("a $ b", "found '$'", 2),
]  # fmt: skip


@pytest.mark.parametrize("text, part, place", ERRORS)
def test_syntax_errors_point_at_the_position(text, part, place):
    with pytest.raises(ValueError) as caught:
        symbolic_shape(text)
    said = str(caught.value)
    assert said.startswith(f"syntax error in symbolic shape '{text}'")
    if text != "a**2":
        assert part in said
        assert said.splitlines()[-1] == "  " + " " * place + "^"


def test_deeply_nested_text():
    nested = lambda n, text="a": "mod(" * n + text + ", 7)" * n
    assert len(symbolic_shape(nested(32))) == 1
    for depth in (33, 400):
        with pytest.raises(ValueError, match="expected at most 32 nested operations, found '\\('"):
            symbolic_shape(nested(depth))
    assert symbolic_shape("-" * 2000 + "3") == (3,)


LIKE = [
    ("_, a", (3, 4), "(3, a)"), ("...", (3, 4), "(3, 4)"), ("a, ...", (3, 4), "(a, 4)"),
    ("a, _, ...", (2, 3, 4, 5), "(a, 3, 4, 5)"), (None, (3, 4), "(3, 4)"), ("a", (3, 4), "(a,)"),
    ("a, b, c", (3, 4), "(a, b, c)"), ("a", (0,), "(a,)"), ("3, a", (3, 4), "(3, a)"),
]  # fmt: skip


@pytest.mark.parametrize("text, like, expected", LIKE)
def test_placeholders(text, like, expected):
    assert str(symbolic_shape(text, like=like)) == expected


@pytest.mark.parametrize("text", ["5, a", "..., a", "..., a, ...", "a, b, _"])
def test_mismatched_placeholders(text):
    with pytest.raises(ValueError, match="syntax error"):
        symbolic_shape(text, like=(3, 4))


@pytest.mark.parametrize("spec", [(3, 4), ("a", 4), 5, ["a"]])
def test_shapes_are_strings(spec):
    with pytest.raises(ValueError, match="None or a string"):
        symbolic_shape(spec)


CONSTRAINED = [
    (("a >= 8",), "a", (8, math.inf)), (("a >= 8", "a <= 16"), "a", (8, 16)),
    (("b == 2*a",), "b", (2, math.inf)), (("2*a >= 8",), "a", (4, math.inf)),
    (("floordiv(a, 2) >= 3",), "a", (6, math.inf)), (("a >= b", "b >= 4"), "a", (4, math.inf)),
    (("a + b <= 8",), "a", (1, 7)), (("a >= 4", "a <= 4"), "a", (4, 4)),
    (("max(a, b) <= 5",), "a", (1, 5)),
]  # fmt: skip


@pytest.mark.parametrize("constraints, name, expected", CONSTRAINED)
def test_constraints_bound(constraints, name, expected):
    scope = SymbolicScope(constraints)
    assert symbolic_dim_bounds(scope.variable(name)) == expected


def test_equalities_replace():
    a, b = symbolic_shape("a, b", constraints=("b == 2*a",))
    assert str(b) == "2*a" and b == 2 * a and b // 2 is a and b % 2 == 0
    (a,) = symbolic_shape("a", constraints=("mod(a, 2) == 0",))
    assert a % 2 == 0 and a // 2 * 2 is a
    assert symbolic_shape("a", constraints=("a == 5",)) == (5,)


@pytest.mark.parametrize(
    "constraints, text",
    [
        (("a",), "must contain one of"), (("a > 3",), "must contain one of"),
        (("a <= 0",), "Unsatisfiable constraint: a <= 0"),
        (("a >= 4", "a <= 3"), "Unsatisfiable constraint: a <= 3"),
        (("4 == a",), "Invalid equality constraint: 4 == a"),
        (("a + b == c",), "The left-hand side must be a product"),
        (("a >= ",), "syntax error in symbolic constraint"), ("a >= 8", "sequence of strings"),
        (("a == b + 1", "a <= 1"), "Unsatisfiable"),
    ],
)  # fmt: skip
def test_bad_constraints(constraints, text):
    with pytest.raises(ValueError, match=text.replace("(", "\\(")):
        symbolic_shape("a", constraints=constraints)


def test_scope_or_constraints():
    scope = SymbolicScope()
    with pytest.raises(ValueError):
        symbolic_shape("a", scope=scope, constraints=("a >= 3",))
    with pytest.raises(ValueError):
        symbolic_args_specs((np.ones(3),), "a", scope=scope, constraints=("a >= 3",))
    assert symbolic_shape("a", scope=scope)[0] is symbolic_shape("a", scope=scope)[0]


def test_specs_of_arguments():
    x, y = np.ones((4, 6), np.float32), {"k": np.int32(3)}
    specs = symbolic_args_specs((x, y), ("a, _", None))
    assert str(specs[0]) == "ShapeDtypeStruct(shape=(a, 6), dtype=float32)"
    assert specs[1]["k"].shape == () and specs[1]["k"].dtype == np.int32
    both = symbolic_args_specs((x, x), "a, b")
    assert both[0].shape == both[1].shape and both[0].shape[0] is both[1].shape[0]
    assert str(symbolic_args_specs((x, {"k": x}), ("a, b", {"k": "..."}))[1]["k"].shape) == "(4, 6)"
    with pytest.raises(ValueError, match="pytree structure error"):
        symbolic_args_specs((x, x), ("a, b",))


# Jaxprs with symbolic shapes


def struct(text, constraints=()):
    return px.ShapeDtypeStruct(symbolic_shape(text, constraints=constraints), np.float32)


def test_types_of_results():
    x = struct("a, b")
    assert px.eval_shape(lambda v: lax.expand_dims(v, (1,)), x).shape == (x.shape[0], 1, x.shape[1])
    text = str(px.make_jaxpr(lambda v: v * v.shape[0])(x))
    assert text.splitlines() == [
        "{ lambda ; a:f32[a,b]. let",
        "    b:i32[] = dim_as_value[dim=a]",
        "    c:f32[] = convert_element_type[new_dtype=float32 weak_type=False] b",
        "    d:f32[a,b] = mul a c",
        "  in (d,) }",
    ]
    assert px.jit(lambda v: v * 2.0).trace(x).jaxpr.out_avals[0].shape == x.shape


def test_dimensions_are_weak_integers():
    x = struct("a")
    (aval,) = px.make_jaxpr(lambda v: v.shape[0])(x).out_avals
    assert (aval.dtype, aval.weak_type, aval.shape) == (np.int32, True, ())
    with px.enable_x64(True):
        assert px.make_jaxpr(lambda v: v.shape[0])(x).out_avals[0].dtype == np.int64


@pytest.mark.parametrize(
    "fun",
    [
        lambda v: v.shape[0] / 2, lambda v: 2.0 * v.shape[0], lambda v: np.float32(2) + v.shape[0],
        lambda v: v.shape[0] + np.arange(3), lambda v: np.arange(3) - v.shape[0],
        lambda v: v.shape[0] >= 2.5, lambda v: lax.add(v, lax.convert_element_type(v.shape[0],
                                                                                  np.float32)),
    ],
)  # fmt: skip
def test_dimensions_compute_as_arrays(fun):
    jaxpr = px.make_jaxpr(fun)(struct("a"))
    assert jaxpr.eqns[0].primitive.name == "dim_as_value"


@pytest.mark.parametrize(
    "fun, error",
    [
        (lambda v: v + lax.full((v.shape[1], v.shape[0]), 1.0), TypeError),
        (lambda v: lax.reshape(v, (2, v.shape[0])), TypeError),
        (lambda v: lax.dot(v, v), TypeError),
        (lambda v: lax.squeeze(v, (0,)), ValueError),
        (lambda v: lax.split(v, (1, 1), 0), ValueError),
        (lambda v: lax.concatenate([v, lax.full((2, 3), 1.0)], 0), TypeError),
    ],
)
def test_shape_errors(fun, error):
    with pytest.raises(error):
        px.make_jaxpr(fun)(struct("a, b"))


def test_no_arrays_of_symbolic_shape():
    (a,) = symbolic_shape("a")
    with pytest.raises(UnknownDimensionError, match="no arrays of type f32\\[a\\]"):
        px.jit(lambda v: v * 2.0).lower(struct("a")).compile()
    with pytest.raises(UnknownDimensionError, match="dimension variable 'a'"):
        lax.full((a,), 1.0)
    with pytest.raises(UnknownDimensionError, match="has no value here"):
        lax.add(np.int32(1), a)
    with pytest.raises(UnknownDimensionError, match="dimension variable 'b'"):
        other = symbolic_shape("b")[0]
        px.jit(lambda v: v * other).lower(struct("a"))


def test_lowered_text_has_dynamic_shapes():
    text = px.jit(lambda v: v * v.shape[0]).lower(struct("a, 3")).as_text()
    assert "tensor<?x3xf32>" in text and "get_dimension_size" in text


def test_conditionals_on_sizes():
    x = struct("a, b")
    grown = px.make_jaxpr(lambda v: v if v.shape[0] > 0 else v + 1.0)(x)
    assert not grown.eqns
    with pytest.raises(px.errors.InconclusiveDimensionOperation, match="'a' > 'b'"):
        px.make_jaxpr(lambda v: v if v.shape[0] > v.shape[1] else v + 1.0)(x)
    y = struct("a, b", ("a >= b + 1",))
    assert not px.make_jaxpr(lambda v: v if v.shape[0] > v.shape[1] else v + 1.0)(y).eqns


def test_signs_in_front_of_a_dimension():
    assert str(symbolic_shape("+ 2, +a, -a + b")) == "(2, a, b - a)"


def test_a_list_of_specs_fits_a_tuple_of_arguments():
    x = np.ones((3, 4), np.float32)
    assert [s.shape[1:] for s in symbolic_args_specs((x, x), ["a, ...", None])] == [(4,), (4,)]
    with pytest.raises(ValueError, match="at most 0 dimensions, as 'like' has"):
        symbolic_args_specs((x, 2.0), "a, ...")


def test_comparisons_with_maxima_and_minima():
    a, _, c = symbolic_shape("a, b, c")
    maximum = symbolic_shape("max(0, c - b)", scope=c.scope)[0]
    assert not maximum > c and maximum <= c - 1
    assert symbolic_shape("max(a, b) - min(a, b)", scope=a.scope)[0] >= 0
    assert symbolic_shape("min(2*a, a + b)", scope=a.scope)[0] >= a
