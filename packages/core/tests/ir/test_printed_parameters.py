"""Printed jaxprs: text of parameters."""

from primax_core import make_jaxpr
from primax_core.extend import Primitive, abstract


def test_sets_are_sorted():
    p = Primitive("with_names")
    p.rule(abstract)(lambda x, *, names: x)
    text = str(make_jaxpr(lambda x: p.bind(x, names=frozenset("zyx")))(1.0))
    assert "with_names[names=frozenset({'x', 'y', 'z'})]" in text
