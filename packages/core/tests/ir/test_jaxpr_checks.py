"""The jaxpr checker, and ``enable_checks`` for the results of all passes."""

from __future__ import annotations

import numpy as np
import pytest

import primax_core as px
from primax_core import lax
from primax_core._ir.check import JaxprCheckError, check_jaxpr
from primax_core._ir.jaxpr import Var
from primax_core._trace import staging

X = np.ones((3, 2), np.float32)


def last_equation(fun, *args):
    jaxpr = px.make_jaxpr(fun)(*args)
    return jaxpr, jaxpr.eqns[-1]


def with_last(jaxpr, eqn):
    return jaxpr.replace(eqns=[*jaxpr.eqns[:-1], eqn])


HOLDERS = {
    "jit": lambda x: px.jit(lambda y: y * 2.0)(x),
    "remat2": lambda x: px.checkpoint(lambda y: y * 2.0)(x),
    "scan": lambda x: lax.scan(lambda c, y: (c * 2.0, y), x, X)[0],
    "while": lambda x: lax.while_loop(
        lambda c: lax.reduce_sum(c, (0,)) < 3.0, lambda c: c * 2.0, x
    ),
    "cond": lambda x: lax.cond(True, lambda y: y * 2.0, lambda y: y, x),
}


@pytest.mark.parametrize("name", HOLDERS)
class TestCallPrimitives:
    def test_correct_jaxprs_pass(self, name):
        jaxpr, eqn = last_equation(HOLDERS[name], X[0])
        assert eqn.primitive.name == name
        check_jaxpr(jaxpr)

    def test_an_operand_of_another_type(self, name):
        jaxpr, eqn = last_equation(HOLDERS[name], X[0])
        at = eqn.invars.index(jaxpr.invars[0])
        wrong = Var(jaxpr.invars[0].aval.update(shape=(5,)))
        invars = list(eqn.invars)
        invars[at] = wrong
        bad = with_last(jaxpr, eqn.replace(invars=invars)).replace(invars=[*jaxpr.invars, wrong])
        with pytest.raises(JaxprCheckError, match=r"has type float32\[5\] where it must have"):
            check_jaxpr(bad)

    def test_an_operand_too_many(self, name):
        jaxpr, eqn = last_equation(HOLDERS[name], X[0])
        bad = with_last(jaxpr, eqn.replace(invars=[*eqn.invars, jaxpr.invars[0]]))
        with pytest.raises(JaxprCheckError, match=r"where (there must be|it must have)"):
            check_jaxpr(bad)


def test_a_carry_that_changes_its_type():
    jaxpr, eqn = last_equation(HOLDERS["scan"], X[0])
    body = px.make_jaxpr(lambda c, y: (lax.convert_element_type(c, np.int32), y))(X[0], X[0])
    bad = with_last(jaxpr, eqn.replace(params={**eqn.params, "jaxpr": body}))
    with pytest.raises(JaxprCheckError, match="carries of the body: number 0"):
        check_jaxpr(bad)


def test_a_constant_of_another_type():
    array = px.device_put(np.ones(5, np.float32))
    jaxpr = px.make_jaxpr(lambda x: x * array)(np.float32(1))
    bad = jaxpr.replace(consts=[px.device_put(np.ones(4, np.float32))])
    with pytest.raises(JaxprCheckError, match=r"a constant of type float32\[4\]"):
        check_jaxpr(bad)


@pytest.mark.parametrize(
    ("transform", "argument"),
    [
        (px.grad, X[0, 0]),
        (px.hessian, X[0, 0]),
        (lambda f: px.vmap(px.grad(f)), X[0]),
        (lambda f: px.vmap(px.jacfwd(px.grad(f))), X[0]),
    ],
    ids=["grad", "hessian", "vmap of grad", "vmap of jacfwd of grad"],
)
def test_results_of_all_passes_are_checked(transform, argument, monkeypatch):
    passes = set()

    def noted(jaxpr, by=staging.check_jaxpr):
        passes.add(jaxpr)
        by(jaxpr)

    def f(x):
        y = px.checkpoint(lambda v: lax.sin(lax.sin(v)) * v)(x)
        y = lax.scan(lambda c, r: (lax.sin(c) * r, c), y, X[:, 0])[0]
        y = lax.cond(y > 0, lambda v: v * x, lambda v: v, y)
        return px.jit(lambda v: v * lax.tanh(v))(y)

    monkeypatch.setattr(staging, "check_jaxpr", noted)
    with px.enable_checks(True):
        px.clear_caches()
        px.jit(transform(f))(argument)
    assert len(passes) > 20
