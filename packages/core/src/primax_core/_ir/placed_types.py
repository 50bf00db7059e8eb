"""Types that say how values are divided over devices; loaded with the first of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from . import rules as rule_kinds
from .placement import Casts, Unplaced, is_placed, unplaced
from .rule_results import (
    check_count,
    check_pair,
    described,
    invalid_result,
    is_list,
    result_avals,
)

if TYPE_CHECKING:
    from .primitive import Primitive


class Placement(ABC):
    """The division of values over devices in a type (``ShapedArray.placement``).

    Instances are immutable, hashable and interned: equal placements must be the same object. A
    placement that says nothing is :data:`unplaced`.
    """

    __slots__ = ("__weakref__",)

    @property
    @abstractmethod
    def sharding(self) -> Any:
        """The sharding that users read as ``typeof(x).sharding``."""

    @abstractmethod
    def text(self, shape: Sequence[Any]) -> str:
        """A shape with its placement, ``[8@x,16]{V:y}``."""

    @abstractmethod
    def without_axis(self, i: int) -> Placement | Unplaced:
        """The placement of one slice along axis ``i``."""

    @abstractmethod
    def with_axis(self, i: int) -> Placement | Unplaced:
        """The placement of values that are stacked along a new axis ``i``."""

    def only_axis(self, i: int) -> Placement | None:
        """The placement of a vector that is divided as axis ``i``; ``None`` if it is not divided.

        A placement that divides axes defines it, and `stacked`.
        """
        return None

    def stacked(self, placement: Placement | Unplaced, ndim: int, i: int) -> Placement | Unplaced:
        """The placement of values stacked along a new axis ``i`` that is divided as this vector.

        Args:
          placement: the placement of one of the values, of ``ndim`` axes.
        """
        return placement if isinstance(placement, Unplaced) else placement.with_axis(i)

    @abstractmethod
    def cast(self, x: Any) -> Any:
        """A value of another placement, or of none, as a value of this one.

        Raises an error if such a value cannot be one of this placement.
        """

    @abstractmethod
    def uncast(self, x: Any) -> Any:
        """A value of this placement as a value without one; raises an error if it cannot be."""

    @abstractmethod
    def difference(self, expected: Any, actual: Any) -> str:
        """The difference of two types, one of which has this placement, and how to mend it.

        The text continues a message: "the varying axes do not match; apply lax.pcast(...) to ...".
        """

    @property
    def is_partial(self) -> bool:
        """True for parts of values along axes that the compiler divides, by default false.

        The compiler does not infer such a division: results get the constraint ``sharding``.
        """
        return False

    @property
    def cotangent(self) -> Placement | Unplaced:
        """The placement of cotangents, by default this one."""
        return self

    def _placement(self, ndim: int) -> Placement:
        return self


class PlacementInference(ABC):
    """The inference of placements, for operations with an operand whose type has one."""

    @abstractmethod
    def infer(
        self,
        prim: Primitive,
        abstract: Callable[..., list[Any]],
        in_avals: Sequence[Any],
        params: dict[str, Any],
    ) -> tuple[Sequence[Any], Casts | None]:
        """The types of the results, and the casts of the operands.

        It is not asked for primitives with a rule of the kind ``place``, and for primitives whose
        jaxprs are applied to their operands.

        Args:
          abstract: from the types of the operands to a list of types of the results, by the
            primitive's abstract rule, which gets types without placements.
          in_avals: the types of the operands.

        Returns:
          The types of the results if all casts are applied; and the casts, or ``None``.
        """


class _NoPlacements(PlacementInference):
    """Results are unplaced."""

    def infer(
        self,
        prim: Primitive,
        abstract: Callable[..., list[Any]],
        in_avals: Sequence[Any],
        params: dict[str, Any],
    ) -> tuple[Sequence[Any], None]:
        return abstract(*in_avals), None


class _Current:
    """The inference in use."""

    __slots__ = ("inference",)

    def __init__(self) -> None:
        self.inference: PlacementInference = _NoPlacements()


placements: Final = _Current()


def install_placements(inference: PlacementInference) -> None:
    """Replace the inference of placements, once, by the package that defines them.

    Placements say in types how values are divided over the axes of a mesh. Without the package
    types have none, and nothing is inferred.

    Args:
      inference: an object with the methods of ``PlacementInference``.

    Returns:
      ``None``.

    Raises:
      RuntimeError: if another package has installed one.

    ``primax_distributed`` calls it when it is imported for its first mesh.
    """
    present = placements.inference
    if type(present) is not _NoPlacements and type(present) is not type(inference):
        raise RuntimeError(
            f"the placements of types are inferred by {present!r} already; {inference!r} cannot be "
            "installed too: one package per process defines them"
        )
    placements.inference = inference


def placed_results(
    prim: Primitive, rule: Callable[..., Any], in_avals: Sequence[Any], params: dict[str, Any]
) -> tuple[list[Any], Casts | None]:
    """The types of the results of an operation, and the casts of its operands, ``None`` for none.

    Args:
      rule: the abstract rule of the primitive.
    """

    def abstract(*avals: Any) -> list[Any]:
        bare = avals if prim.applies_jaxprs else [without_placement(a) for a in avals]
        return result_avals(prim, rule_kinds.abstract, rule, rule(*bare, **params))

    kind = rule_kinds.place
    place = prim.rules.get(kind)
    if place is not None:
        result = place(abstract, in_avals, params)
        outs, casts = check_pair(prim, kind, place, result)
        if not is_list(outs):
            invalid_result(prim, kind, place, f"returned {described(outs)} as the list of types")
        if casts is not None:
            casts = check_count(prim, kind, place, casts, len(in_avals), "casts of operands")
    elif prim.applies_jaxprs:
        return abstract(*in_avals), None
    else:
        outs, casts = placements.inference.infer(prim, abstract, in_avals, params)
    if casts is not None and all(c is None for c in casts):
        casts = None
    return list(outs), casts


def without_placement(aval: Any) -> Any:
    """The aval without its placement."""
    return aval.update(placement=unplaced) if is_placed(aval) else aval


def difference(expected: Any, actual: Any) -> str:
    """The difference of two types that differ in their placements only, for messages."""
    placement = expected.placement if is_placed(expected) else actual.placement
    assert isinstance(placement, Placement)
    return placement.difference(expected, actual)
