"""Placements in types: text, axes, shardings."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from primax_core import devices
from primax_distributed import (
    AbstractMesh,
    AxisType,
    ManualAxisType,
    Mesh,
    NamedSharding,
    P,
    UnreducedKind,
)
from primax_distributed._placement import Placement, unplaced

AUTO, EXPLICIT, MANUAL = AxisType.Auto, AxisType.Explicit, AxisType.Manual
ABSTRACT = AbstractMesh((2, 4), ("x", "y"))
PARTLY = AbstractMesh((2, 2, 2), ("x", "b", "a"), (EXPLICIT, MANUAL, MANUAL))
MAX = UnreducedKind.max

TEXTS = {
    "[8@x,16]": (ABSTRACT, [("x",), ()], {}),
    "[8@(x,y),16]": (ABSTRACT, [("x", "y"), ()], {}),
    "[8,16@y]{U:x}": (ABSTRACT, [(), ("y",)], {"unreduced": {"x"}}),
    "[8@x,16]{R:y}": (ABSTRACT, [("x",), ()], {"reduced": {"y"}}),
    "[8,16]{U_max:(x,y)}": (
        ABSTRACT,
        [(), ()],
        {"unreduced": {"y", "x"}, "unreduced_kind": MAX},
    ),
    "[8,16]{V:(b,a)}": (PARTLY, [(), ()], {"varying": {"a", "b"}}),
    "[8@x,16]{V:a, U:b}": (PARTLY, [("x",), ()], {"varying": {"a"}, "unreduced": {"b"}}),
    "[8,16]{V:a, U:x, R:b}": (
        PARTLY,
        [(), ()],
        {"varying": {"a"}, "unreduced": {"x"}, "reduced": {"b"}},
    ),
}


@pytest.mark.parametrize("text", TEXTS)
def test_text(text):
    mesh, spec, names = TEXTS[text]
    placement = Placement.of(mesh, spec, **names)
    assert placement.text((8, 16)) == text
    assert placement is Placement.of(mesh, spec, **names)
    assert pickle.loads(pickle.dumps(placement)) is placement is copy.deepcopy(placement)


def test_nothing_said():
    assert Placement.of(ABSTRACT, [(), ()]) is unplaced
    assert Placement.of(ABSTRACT, [("x",)]).without_axis(0) is unplaced


def test_axes():
    placement = Placement.of(ABSTRACT, [("x",), ()], reduced={"y"})
    assert placement.without_axis(1).text((8,)) == "[8@x]{R:y}"
    assert placement.without_axis(0).text((16,)) == "[16]{R:y}"
    assert placement.with_axis(1).text((8, 2, 16)) == "[8@x,2,16]{R:y}"
    assert placement.with_axis(2).without_axis(2) is placement
    assert placement.update(unreduced={"y"}, reduced=frozenset()).text((8, 16)) == "[8@x,16]{U:y}"


def test_shardings_of_types():
    placement = Placement.of(
        PARTLY, [("x",), ()], varying={"a"}, unreduced={"b"}, unreduced_kind=MAX
    )
    assert placement.sharding is NamedSharding(PARTLY, P("x", None))
    assert placement.kind_in_spec is None
    partial = Placement.of(ABSTRACT, [(), ("x",)], unreduced={"y"}, unreduced_kind=MAX)
    assert partial.sharding.spec is P(None, "x", unreduced={"y"}, unreduced_kind=MAX)


MESH = Mesh(np.array(devices()).reshape(2, 4), ("x", "y"))


def test_placements_of_shardings():
    assert NamedSharding(MESH, P("x"))._placement(2) is unplaced
    typed = MESH.update(axis_types=(EXPLICIT, EXPLICIT))
    placement = NamedSharding(typed, P("x"))._placement(2)
    assert placement.text((8, 16)) == "[8@x,16]" and placement.mesh is typed.abstract_mesh
    assert NamedSharding(typed, P())._placement(2) is unplaced
    mixed = MESH.update(axis_types=(AUTO, EXPLICIT))
    assert NamedSharding(mixed, P(("x", "y")))._placement(1).text((8,)) == "[8@y]"
    assert NamedSharding(mixed, P("x"))._placement(1) is unplaced
    partial = NamedSharding(typed, P("x", unreduced={"y"}, unreduced_kind=MAX))
    assert partial._placement(1).text((8,)) == "[8@x]{U_max:y}"


def test_shardings_of_placements():
    typed = MESH.update(axis_types=(EXPLICIT, EXPLICIT))
    spec = P("x", unreduced={"y"}, unreduced_kind=MAX)
    sharding = NamedSharding(typed, spec)
    assert sharding._replicated()._of_placement(sharding._placement(1), 1) is sharding
    assert sharding._of_placement(unplaced, 2) is NamedSharding(typed, P(None, None))
    mixed = MESH.update(axis_types=(AUTO, EXPLICIT))
    placement = NamedSharding(mixed, P(None, ("x", "y")))._placement(2)
    assert NamedSharding(mixed, P())._of_placement(placement, 2).spec is P(P.UNCONSTRAINED, "y")


# ManualAxisType


def test_manual_axis_types():
    kind = ManualAxisType(varying={"x"})
    assert kind is ManualAxisType(varying=frozenset({"x"})) and ManualAxisType() is ManualAxisType()
    assert repr(kind) == (
        "ManualAxisType(varying=frozenset({'x'}), unreduced=frozenset(), reduced=frozenset(), "
        "unreduced_kind=None)"
    )
    both = kind.update(unreduced={"y"})
    assert both.unreduced_kind is UnreducedKind.sum and both.vur == {"x", "y"}
    assert both.update(unreduced=frozenset()) is kind and ManualAxisType().empty
    assert both.to_ct_mat() is ManualAxisType(varying={"x"}, reduced={"y"})
    assert kind.invarying(PARTLY) == {"a", "b"}
    assert pickle.loads(pickle.dumps(both)) is both is copy.deepcopy(both)


@pytest.mark.parametrize(
    "arguments, error, text",
    [
        ({"varying": "x"}, TypeError, "varying of ManualAxisType must be a set"),
        (
            {"varying": {"x"}, "unreduced": {"x"}},
            ValueError,
            "varying and unreduced .* contain 'x'",
        ),
        ({"varying": {"x"}, "reduced": {"x"}}, ValueError, "varying and reduced"),
        ({"unreduced_kind": MAX}, ValueError, "without unreduced axes"),
    ],
)
def test_errors_of_manual_axis_types(arguments, error, text):
    with pytest.raises(error, match=text):
        ManualAxisType(**arguments)
