"""``extend.facade``: attributes that a facade adds to classes of the core."""

from __future__ import annotations

import enum

import pytest

from primax_core import Inline
from primax_core.extend import Jaxpr, Primitive, facade, stage
from primax_core.extend.facade import add_attributes


class Own:
    """A class that is not the core's."""


@pytest.fixture
def unchanged():
    """Removes the attributes that a test adds."""
    before = {cls: set(vars(cls)) for cls in (Jaxpr, Primitive, Inline)}
    yield
    for cls, names in before.items():
        for name in set(vars(cls)) - names:
            type.__delattr__(cls, name)
            if isinstance(cls, enum.EnumMeta):
                del cls._member_map_[name]


@pytest.mark.usefixtures("unchanged")
class TestAddAttributes:
    def test_existing_instances_get_them(self):
        jaxpr, prim = stage(list, []), Primitive("p")
        add_attributes(Jaxpr, itself=property(lambda self: self), add=lambda self, n: n + 1)
        add_attributes(Primitive, label="a")
        assert jaxpr.itself is jaxpr and jaxpr.add(1) == 2 and prim.label == "a"

    def test_members_of_enumerations_are_aliases(self):
        members = list(Inline)
        add_attributes(Inline, SOON=Inline.AUTO)
        assert Inline.SOON is Inline["SOON"] is Inline.AUTO
        assert list(Inline) == members and Inline.AUTO.name == "AUTO"

    @pytest.mark.parametrize("name", ["eqns", "replace", "__doc__", "cache"])
    def test_existing_attributes_are_not_replaced(self, name):
        before = getattr(Jaxpr, name)
        with pytest.raises(AttributeError, match=f"Jaxpr already has {name}: .* other names"):
            add_attributes(Jaxpr, unused=1, **{name: 2})
        assert getattr(Jaxpr, name) is before and not hasattr(Jaxpr, "unused")

    def test_an_attribute_is_added_once(self):
        add_attributes(Jaxpr, once=1)
        with pytest.raises(AttributeError, match="already has once"):
            add_attributes(Jaxpr, once=1)

    @pytest.mark.parametrize("cls", [Own, int, Jaxpr([], [], [], [], []), facade], ids=repr)
    def test_only_classes_of_the_core(self, cls):
        with pytest.raises(TypeError, match="adds attributes to classes of "):
            add_attributes(cls, label=1)
        assert not hasattr(cls, "label")
