"""Named scopes and source lines of user code in jaxprs and compiled modules."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import primax_core as px
from primax_core import lax
from primax_core._base.source import locate
from primax_core._ir.jaxpr import jaxprs_in
from primax_core._ir.name_stack import joined, without_transforms


def operations(jaxpr, scope=()):
    """All equations, including those of sub-jaxprs, as (name, scopes, line in this file).

    Without transformations, which are scopes that end in brackets.
    """
    for eqn in jaxpr.eqns:
        scopes = (*scope, *without_transforms(eqn.ctx))
        where = locate(eqn.source_info)
        assert where.file == __file__, where
        yield eqn.primitive.name, scopes, where.line
        for held in jaxprs_in(eqn.params):
            yield from operations(held, scopes)


def found(fun, *args):
    """Operations of a traced function by name, the last of each."""
    return {name: (scopes, line) for name, scopes, line in operations(px.make_jaxpr(fun)(*args))}


@px.jit
def called(x):
    with px.named_scope("within"):
        return lax.tan(x)


def step(c, t):
    with px.named_scope("step"):
        return lax.sin(c) * t, None


def program(x):
    with px.named_scope("first"):
        y = lax.cos(x)
    with px.named_scope("second"):
        y = called(y)
    with px.named_scope("third"):
        y = lax.scan(step, y, np.arange(3, dtype=np.float32))[0]
    return lax.exp(y)


LINES, START = inspect.getsourcelines(program)
LINE = {
    word: START + i
    for i, text in enumerate(LINES)
    for word in ("cos", "called", "scan", "exp")
    if f"{word}(" in text
}
SIN = inspect.getsourcelines(step)[1] + 2
TAN = inspect.getsourcelines(called)[1] + 3


@pytest.mark.parametrize("transform", [lambda f: f, px.jit, px.vmap, px.checkpoint])
def test_forward(transform):
    x = np.ones(2, np.float32) if transform is px.vmap else 1.0
    ops = found(transform(program), x)
    assert ops["cos"] == (("first",), LINE["cos"])
    assert ops["tan"] == (("second", "within"), TAN)
    assert ops["scan"] == (("third",), LINE["scan"])
    assert ops["sin"] == (("third", "step"), SIN)
    assert ops["exp"] == ((), LINE["exp"])


@pytest.mark.parametrize(
    "transform", [px.grad, lambda f: px.grad(px.jit(f)), px.jacrev, px.jacfwd], ids=range(4)
)
def test_derivatives_have_the_lines_of_their_functions(transform):
    ops = list(operations(px.make_jaxpr(transform(program))(1.0)))
    scopes_of = {line: {scope for _, scope, at in ops if at == line} for _, _, line in ops}
    assert scopes_of[LINE["cos"]] == {("first",)}
    assert scopes_of[TAN] == {("second", "within")}
    assert scopes_of[SIN] == {("third", "step")}
    names = [name for name, _, line in ops if line == LINE["cos"]]
    assert {"cos", "sin", "neg", "mul"} == set(names)


def test_scopes_are_not_taken_from_the_first_call():
    with px.named_scope("elsewhere"):
        px.jit(program)(1.0)
        px.make_jaxpr(px.grad(program))(1.0)
    with px.named_scope("here"):
        ops = found(lambda x: program(x), 1.0)
    assert ops["cos"][0] == ("first",)
    with px.named_scope("outside"):
        assert px.make_jaxpr(lambda x: x + 1.0)(1.0).eqns[0].ctx == ()


def test_scopes_are_in_the_compiled_module():
    lowered = px.jit(program).lower(1.0)
    text = lowered.as_text(debug_info=True)
    for name in ("first/cos", "second/jit(called)", "third/while", "third/while/body/step/sin"):
        assert f'"jit(program)/{name}"' in text
    assert '"within/tan"' in text
    assert 'op_name="jit(program)/first/cos"' in lowered.compile().as_text()
    assert 'op_name="jit(program)/second/jit(called)/within/tan"' in lowered.compile().as_text()
    backward = px.jit(px.grad(program)).lower(1.0).as_text(debug_info=True)
    assert '"jit(program)/transpose(jvp(first))/neg"' in backward
    assert '"jit(program)/transpose(jvp(third))/while/body/step/mul"' in backward


def test_rules_have_their_own_lines():
    @px.custom_vjp
    def f(x):
        return lax.sin(x)

    def forward(x):
        return lax.tanh(x), x

    def backward(x, ct):
        return (lax.cosh(x) * ct,)

    f.defvjp(forward, backward)
    ops = found(px.grad(px.jit(lambda x: f(x) * 2.0)), 1.0)
    assert ops["tanh"][1] == forward.__code__.co_firstlineno + 1
    assert ops["cosh"][1] == backward.__code__.co_firstlineno + 1


def test_inside_checkpointed_calls():
    @px.jit
    def inner(x):
        with px.named_scope("deep"):
            return lax.sin(x)

    def f(x):
        with px.named_scope("outer"):
            return inner(x) * 2.0

    ops = found(px.grad(px.checkpoint(f)), 1.0)
    assert ops["cos"][0] == ("outer", "deep")


def names(fun, *args):
    """The names of the operations of a traced function, with scopes and transformations."""

    def walk(jaxpr):
        for eqn in jaxpr.eqns:
            yield "/".join((*filter(None, [joined(eqn.ctx)]), eqn.primitive.name))
            for sub_jaxpr in jaxprs_in(eqn.params):
                yield from walk(sub_jaxpr)

    return set(walk(px.make_jaxpr(fun)(*args)))


def scoped(x):
    with px.named_scope("a"):
        return lax.sin(x) * x


X1 = np.ones(1, np.float32)
TRANSFORMED = {
    "jvp": (lambda x: px.jvp(scoped, (x,), (x,)), {"jvp(a)/sin", "jvp(a)/cos"}),
    "grad": (px.grad(scoped), {"jvp(a)/sin", "transpose(jvp(a))/mul"}),
    "linearize": (lambda x: px.linearize(scoped, x)[1](x), {"jvp(a)/cos", "jvp(a)/mul"}),
    "grad of jit": (px.grad(px.jit(scoped)), {"jvp()/jit", "transpose(jvp())/jit", "a/sin"}),
    "second order": (
        px.grad(px.grad(scoped)),
        {"jvp(jvp(a))/sin", "jvp(transpose(jvp(a)))/mul", "transpose(jvp(jvp(a)))/mul"},
    ),
    "scopes outside": (
        px.named_scope("out")(px.grad(scoped)), {"out/jvp(a)/sin", "out/transpose(jvp(a))/mul"}
    ),
    "scan": (
        px.grad(lambda c: lax.scan(lambda c, t: (scoped(c), t), c, X1)[0]),
        {"jvp()/scan", "transpose(jvp())/scan", "a/sin"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", TRANSFORMED)
def test_transformations_are_around_the_scopes_of_a_function(case):
    fun, expected = TRANSFORMED[case]
    assert expected <= names(fun, 1.0)


def test_vmap_is_around_the_scopes_of_a_function():
    x = np.ones(3, np.float32)
    assert names(px.vmap(scoped), x) == {"vmap(a)/sin", "vmap(a)/mul"}
    assert "vmap(transpose(jvp(a)))/mul" in names(px.vmap(px.grad(scoped)), x)


def test_transformations_end_with_an_error():
    def fails(x):
        raise ZeroDivisionError

    for transform in (px.grad, px.vmap, lambda f: lambda x: px.jvp(f, (x,), (x,))):
        with pytest.raises(ZeroDivisionError):
            px.make_jaxpr(transform(fails))(X1)
        assert px.make_jaxpr(lax.sin)(1.0).eqns[0].ctx == ()
