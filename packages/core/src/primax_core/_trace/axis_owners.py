"""Owners of named axes that are not axes of ``vmap``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from .._ir.primitive import Primitive


class AxisOwner(ABC):
    """Binds the collectives over the named axes of :func:`named_axes`.

    Owners are keys of caches: they are hashable, and equal only if they bind alike.
    """

    @abstractmethod
    def bind(
        self, prim: Primitive, args: Sequence[Any], params: dict[str, Any], to: str = "varying"
    ) -> Any:
        """The result of a collective over axes of this owner, bound with any primitive.

        Args:
          prim: the core's primitive (``lax.psum_p``, ...).
          args, params: its operands and parameters. ``axes`` or ``axis_name`` is a tuple of names
            of this owner; for ``axis_index_p`` it is one name.
          to: the type over the axes that the caller asks for: ``"varying"``, or another one of
            ``lax.all_gather``.
        """

    @abstractmethod
    def cast(self, x: Any, names: tuple[Any, ...], to: str) -> Any:
        """The result of ``lax.pcast``: the value with the type ``to`` over axes of this owner."""
