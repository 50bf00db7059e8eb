"""``eqn.source_info`` of traced functions: name stacks and locations."""

from __future__ import annotations

import numpy as np

import primax
from primax import lax
from primax.extend import source_info_util
from primax.extend.core import jaxprs_in_params
from primax.extend.source_info_util import NameStack

X = np.ones(3, np.float32)


def scoped(x):
    with primax.named_scope("outer"), primax.named_scope("inner"):
        return lax.reduce_sum_p.bind(lax.sin(x), axes=(0,), out_sharding=None)


def stacks(jaxpr):
    """Texts of the name stacks of equations by primitive, with those of sub-jaxprs."""
    by_name = {}
    for eqn in jaxpr.eqns:
        stack = eqn.source_info.name_stack
        assert isinstance(stack, NameStack)
        by_name.setdefault(eqn.primitive.name, set()).add(str(stack))
        for sub_jaxpr in jaxprs_in_params(eqn.params):
            for name, texts in stacks(sub_jaxpr).items():
                by_name.setdefault(name, set()).update(texts)
    return by_name


def test_name_stacks():
    assert stacks(primax.make_jaxpr(scoped)(X).jaxpr)["sin"] == {"outer/inner"}
    assert stacks(primax.make_jaxpr(primax.jit(scoped))(X).jaxpr)["sin"] == {"outer/inner"}
    gradient = stacks(primax.make_jaxpr(primax.grad(scoped))(X).jaxpr)
    assert gradient["cos"] == {"jvp(outer)/inner"}
    assert gradient["mul"] == {"transpose(jvp(outer))/inner"}
    batched = stacks(primax.make_jaxpr(primax.vmap(scoped))(X[None]).jaxpr)
    assert batched["sin"] == {"vmap(outer)/inner"}


def test_name_stacks_in_loops():
    def looped(x):
        with primax.named_scope("loop"):
            return lax.scan(lambda c, t: (scoped(c * t) * c, None), x, X)[0]

    by_name = stacks(primax.make_jaxpr(looped)(X).jaxpr)
    assert by_name["scan"] == {"loop"} and by_name["sin"] == {"outer/inner"}


def test_name_stacks_without_scopes():
    (eqn,) = primax.make_jaxpr(lax.sin)(X).jaxpr.eqns
    assert str(eqn.source_info.name_stack) == "" and eqn.source_info.name_stack.stack == ()


def test_source_info_of_an_equation_can_be_used():
    eqn = primax.make_jaxpr(scoped)(X).jaxpr.eqns[0]
    info = eqn.source_info
    assert f"{__file__}:" in source_info_util.summarize(info)
    assert [scope.name for scope in info.name_stack.stack] == ["outer", "inner"]
    moved = info.replace(name_stack=NameStack().extend("other"))
    assert str(moved.name_stack) == "other" and moved.traceback == info.traceback

    def again(x):
        with source_info_util.user_context(info.traceback, name_stack=moved.name_stack):
            return lax.cos(x)

    copy = primax.make_jaxpr(again)(X).jaxpr.eqns[0].source_info
    assert str(copy.name_stack) == "other" and copy.traceback == info.traceback


def test_equations_without_location():
    from primax.extend.core import new_jaxpr_eqn

    eqn = primax.make_jaxpr(lax.sin)(X).jaxpr.eqns[0]
    new = new_jaxpr_eqn(
        eqn.invars, eqn.outvars, eqn.primitive, eqn.params, eqn.effects,
        source_info_util.new_source_info(),
    )  # fmt: skip
    assert new.source_info.traceback is None and not new.source_info
    assert source_info_util.summarize(new.source_info) == ""
    copied = new_jaxpr_eqn(
        eqn.invars, eqn.outvars, eqn.primitive, eqn.params, eqn.effects, eqn.source_info
    )
    assert copied.source_info == eqn.source_info
