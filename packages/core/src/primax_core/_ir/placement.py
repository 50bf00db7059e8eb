"""The placement of types that say nothing of the division of values over devices.

Those that do are in ``placed_types``, which is loaded with the first of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final

Casts = Sequence["Callable[[Any], Any] | None"]
"""For each operand a function that it passes before the operation, or ``None``."""


class Unplaced:
    """The placement of values of which nothing is said; its one instance is :data:`unplaced`."""

    __slots__ = ()

    is_fully_replicated = True

    of_rank: ClassVar[Callable[[int], Any] | None] = None

    @property
    def sharding(self) -> Unplaced:
        """Itself."""
        return self

    def cast(self, x: Any) -> Any:
        """The value without its placement."""
        aval = getattr(x, "aval", None)
        return aval.placement.uncast(x) if is_placed(aval) else x

    def _placement(self, ndim: int) -> Unplaced:
        return self

    def __repr__(self) -> str:
        return "unplaced"

    def __reduce__(self) -> str:
        return "unplaced"


unplaced: Final = Unplaced()


def describe_unplaced(sharding_of: Callable[[int], Any] | None) -> None:
    """Set what ``ShapedArray.sharding`` returns for types that are not placed.

    Args:
      sharding_of: from a number of axes to an object; ``None`` for :data:`unplaced`.
    """
    Unplaced.of_rank = None if sharding_of is None else staticmethod(sharding_of)


def is_placed(aval: Any) -> bool:
    """Return True if a type says how its values are divided over devices.

    Args:
      aval: a type, as ``typeof`` returns it.

    Returns:
      A bool: True if mesh axes of the type ``Explicit`` or manual axes occur in it.

    Rules skip the inference of placements for other types.

    >>> from primax_core import typeof
    >>> from primax_core.extend.placements import is_placed
    >>> is_placed(typeof(1.0))
    False
    """
    return getattr(aval, "placement", unplaced) is not unplaced  # tokens have none


def transposed(aval: Any) -> Any:
    """The aval with the placement of cotangents."""
    return aval.update(placement=aval.placement.cotangent) if is_placed(aval) else aval
