"""Overrides of rules: taken back, nested, handed on to the rule before."""

from __future__ import annotations

import numpy as np
import pytest

import primax_core as px
from primax_core import lax
from primax_core.extend import Primitive, RuleKind, abstract, batch, expand, lower

X = np.float32(2.0)


def doubled() -> Primitive:
    p = Primitive("doubled")
    p.rule(abstract)(lambda x: x)
    p.rule(lower)(lambda ctx, x: ctx.call(lambda x: lax.add(x, x), x))
    return p


def times(p, factor, kind=lower):
    """A rule that multiplies the result of the rule that it replaces."""

    def rule(ctx, x):
        (before, *_) = p.rules_before(kind, rule)
        return ctx.call(lambda y: lax.mul(y, np.float32(factor)), before(ctx, x))

    return rule


@pytest.mark.parametrize("how", [lambda f: f, px.jit])
def test_an_override_lasts_for_a_block(how):
    p = doubled()

    def value():
        return float(how(p.bind)(X))

    assert value() == 4
    with p.override(lower, times(p, 10)) as handle:
        assert value() == 40
        assert repr(handle).startswith("RuleOverride(doubled, lower, ")
    assert value() == 4
    assert repr(handle).endswith(", undone)")
    handle.undo()  # a second time does nothing
    assert value() == 4


def test_an_error_in_the_block_takes_it_back():
    p = doubled()
    with pytest.raises(ZeroDivisionError), p.override(lower, times(p, 10)):
        raise ZeroDivisionError
    assert float(p.bind(X)) == 4


@pytest.mark.parametrize("first_out", [0, 1])
def test_nested_overrides_are_taken_back_in_any_order(first_out):
    p = doubled()
    handles = [p.override(lower, times(p, 10)), p.override(lower, times(p, 3))]
    assert float(p.bind(X)) == 120
    handles.pop(first_out).undo()
    assert float(p.bind(X)) == (12 if first_out == 0 else 40)
    handles[0].undo()
    assert float(p.bind(X)) == 4
    assert p.rules_before(lower) == []


def test_a_rule_for_one_platform_has_the_general_one_before_it():
    p = doubled()
    on_cpu = lower.on("cpu")
    general = p.rules[lower]
    with p.override(on_cpu, times(p, 5, on_cpu)):
        assert float(p.bind(X)) == 20
        assert p.rules_before(on_cpu) == [general]
        assert float(px.jit(p.bind)(X)) == 20
    assert on_cpu not in p.rules
    assert float(p.bind(X)) == 4


def test_rules_replaced_for_good_are_kept():
    p = doubled()
    first = p.rules[lower]
    second = p.rule(lower, override=True)(times(p, 2))
    third = p.rule(lower, override=True)(times(p, 3))
    assert p.rules_before(lower) == [second, first]
    assert p.rules_before(lower, second) == [first]
    assert p.rules_before(lower, first) == []
    with pytest.raises(ValueError, match=r"\.py:\d+ is no lower rule of primitive doubled"):
        p.rules_before(lower, lax.sin)
    assert p.rules[lower] is third
    assert float(p.bind(X)) == 24


def test_a_rule_that_did_not_exist_is_gone_afterwards():
    p = Primitive("by_expansion")
    p.rule(expand)(lambda x: lax.sin(x))
    with p.override(batch, lambda axis, args, dims: (lax.cos(args[0]), dims[0])):
        np.testing.assert_allclose(px.vmap(p.bind)(X[None]), np.cos([X]), rtol=1e-6)
    assert batch not in p.rules
    np.testing.assert_allclose(px.vmap(p.bind)(X[None]), np.sin([X]), rtol=1e-6)


def test_bad_overrides():
    p = doubled()
    with pytest.raises(TypeError, match=r"lower rules are called as \(ctx, \*ir_values"):
        p.override(lower, lambda: None)
    with pytest.raises(TypeError, match="a rule must be callable"):
        p.override(lower, 3)
    assert float(p.bind(X)) == 4


def test_a_fallback_is_not_replaced_by_accident():
    with pytest.raises(
        ValueError, match=r"the rule kind batch has a fallback, from .*override=True"
    ):
        batch.falls_back(lambda prim: None)
    own = RuleKind("own", "(*args) -> out")
    own.falls_back(lambda prim: None)
    replacement = own.falls_back(lambda prim: max, override=True)
    assert own.fallback is replacement
