"""Partition specs: text, equality, sequence operations, errors."""

from __future__ import annotations

import copy
import pickle

import pytest

from primax_core import tree
from primax_distributed import P, PartitionSpec, UnreducedKind

TEXTS = {
    "P()": P(),
    "P('x',)": P("x"),
    "P('x', None)": P("x", None),
    "P(('x', 'y'), None)": P(("x", "y"), None),
    "P(None,)": P(()),
    "P(UNCONSTRAINED, 'x')": P(P.UNCONSTRAINED, "x"),
    "P('x', unreduced={'y'}, unreduced_kind=sum)": P("x", unreduced={"y"}),
    "P('x', reduced={'y'})": P("x", reduced={"y"}),
    "P(unreduced={'x', 'y'}, unreduced_kind=max)": P(
        unreduced={"y", "x"}, unreduced_kind=UnreducedKind.max
    ),
    "P(unreduced={'y'}, reduced={'z'}, unreduced_kind=sum)": P(unreduced={"y"}, reduced={"z"}),
    "P(1,)": P(1),
}


@pytest.mark.parametrize("text", TEXTS)
def test_text(text):
    assert repr(TEXTS[text]) == str(TEXTS[text]) == text


def test_equal_specs_are_one_object():
    assert P("x") is P(("x",)) is P(["x"]) is PartitionSpec("x")
    assert P(()) is P(None) is P([])
    assert P("x", unreduced=set()) is P("x")
    assert P(unreduced={"x"}) is P(unreduced={"x"}, unreduced_kind=UnreducedKind.sum)
    different = [P(), P(None), P("x"), P("x", None), P("x", unreduced={"y"}), P("x", reduced={"y"})]
    assert len({*different}) == len(different)
    assert P("x") != ("x",) and ("x",) != P("x") and P("x") != 1


@pytest.mark.parametrize("spec", TEXTS.values(), ids=TEXTS)
def test_copies_are_the_object(spec):
    assert pickle.loads(pickle.dumps(spec)) is spec
    assert copy.copy(spec) is spec and copy.deepcopy(spec) is spec
    assert pickle.loads(pickle.dumps(P.UNCONSTRAINED)) is P.UNCONSTRAINED
    assert copy.deepcopy(P.UNCONSTRAINED) is P.UNCONSTRAINED


def test_sequence_operations():
    spec = P("x", None, ("y", "z"))
    assert list(spec) == ["x", None, ("y", "z")] and len(spec) == 3
    assert spec[0] == "x" and spec[-1] == ("y", "z") and spec[:2] == ("x", None)
    assert "x" in spec and "y" not in spec and next(reversed(spec)) == ("y", "z")
    assert spec.index(None) == 1 and spec.count("x") == 1
    assert P(*spec) is spec and spec.partitions == tuple(spec)
    assert not P() and P(None)
    with pytest.raises(IndexError):
        spec[3]
    assert not isinstance(spec, tuple)
    assert tree.leaves({"a": spec, "b": P()}) == [spec, P()]


def test_concatenation():
    assert P("x") + P("y") is P("x", "y")
    assert P("x") + ("y",) is P("x", "y") and ("y",) + P("x") is P("y", "x")
    both = P("x", unreduced={"z"}) + P("y", unreduced={"w"})
    assert both is P("x", "y", unreduced={"z", "w"})
    with pytest.raises(TypeError, match="unreduced_kind differs"):
        P("x", unreduced={"z"}) + P("y")
    with pytest.raises(TypeError, match="a tuple cannot be added"):
        P("x", unreduced={"z"}) + ("y",)
    with pytest.raises(TypeError, match="unsupported operand"):
        P("x") + [None]


def test_update():
    spec = P("x", unreduced={"y"}, unreduced_kind=UnreducedKind.max)
    assert spec.update(partitions=(None,)) is P(
        None, unreduced={"y"}, unreduced_kind=UnreducedKind.max
    )
    assert spec.update(unreduced=frozenset()) is P("x")
    assert P("x").update(reduced={"y"}) is P("x", reduced={"y"})
    assert P("x").update(unreduced={"y"}) is P("x", unreduced={"y"})
    assert P("x").update(partitions=()) is P()
    assert P("x", reduced={"y"}).to_ct_spec() is P("x", unreduced={"y"})
    assert P("x", unreduced={"y"}).to_ct_spec() is P("x", reduced={"y"})


def test_axes():
    spec = P("x", None, ("y", "z"), P.UNCONSTRAINED)
    assert spec.axes(5) == (("x",), (), ("y", "z"), (), ())
    assert spec.names == ("x", "y", "z") and not spec.is_constrained and P("x").is_constrained
    with pytest.raises(ValueError, match=r"P\('x', 'y'\) has 2 entries for an array of 1 axis"):
        P("x", "y").axes(1)


ERRORS = {
    "nested": (lambda: P(("x", ("y",))), ValueError, r"contains \('y',\): an entry is a name"),
    "unhashable": (lambda: P({"x"}), TypeError, "an entry of .* is not hashable"),
    "divided and unreduced": (
        lambda: P("x", unreduced={"x"}),
        ValueError,
        "divides an axis of the array along 'x', which unreduced=",
    ),
    "divided and reduced": (lambda: P("x", reduced={"x"}), ValueError, "which reduced="),
    "unreduced and reduced": (
        lambda: P(unreduced={"x"}, reduced={"x"}),
        ValueError,
        "unreduced and reduced of a PartitionSpec both contain 'x'",
    ),
    "string": (lambda: P(unreduced="x"), TypeError, "must be a set or frozenset.*'x' of type str"),
    "list": (lambda: P(reduced=["x"]), TypeError, "must be a set or frozenset"),
    "None": (lambda: P(unreduced={None}), ValueError, "unreduced of PartitionSpec contains None"),
    "kind": (
        lambda: P(unreduced={"x"}, unreduced_kind="sum"),
        TypeError,
        "unreduced_kind must be a member of UnreducedKind",
    ),
    "kind alone": (
        lambda: P(unreduced_kind=UnreducedKind.max),
        ValueError,
        "unreduced_kind=max without unreduced axes",
    ),
    "attribute": (lambda: setattr(P("x"), "foo", 1), AttributeError, "cannot assign to 'foo'"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    call, error, text = ERRORS[name]
    with pytest.raises(error, match=text):
        call()
