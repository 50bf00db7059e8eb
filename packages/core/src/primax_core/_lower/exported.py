"""Exported programs as other programs call them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._ir.symbolic import is_static
from .lazy import mlir, portable


class PortableProgram:
    """A program in portable bytes.

    Attributes:
      name: what it is called.
      data: the portable artifact.
      platforms: what it was lowered for; if there are several, ``main`` takes an index first.
      in_avals, out_avals: types of all arguments and of the results.
      kept: indices of the arguments that ``main`` takes.
      nr_devices: how many devices it is for.
      any_platform: whether it may be used on platforms that it was not lowered for.
      cache: what was derived from it.
    """

    __slots__ = (
        "name", "data", "platforms", "in_avals", "out_avals", "kept", "nr_devices", "any_platform",
        "cache", "__weakref__",
    )  # fmt: skip

    def __init__(
        self, name: str, data: bytes, platforms: tuple[str, ...], in_avals: tuple, out_avals: tuple,
        kept: tuple[int, ...], nr_devices: int = 1, any_platform: bool = False,
    ):  # fmt: skip
        self.name: str = name
        self.data: bytes = data
        self.platforms: tuple[str, ...] = platforms
        self.in_avals: tuple[Any, ...] = in_avals
        self.out_avals: tuple[Any, ...] = out_avals
        self.kept: tuple[int, ...] = kept
        self.nr_devices: int = nr_devices
        self.any_platform: bool = any_platform
        self.cache: dict[Any, Any] = {}

    def __repr__(self) -> str:
        return f"Exported(fun_name={self.name}, ...)"

    @property
    def polymorphic(self) -> bool:
        """Whether some dimension of an argument is symbolic."""
        return not all(is_static(a.shape) for a in self.in_avals)

    def position(self, platform: str) -> int:
        """The index that ``main`` is given on a platform.

        Raises:
          ValueError: if the program was not exported for it.
        """
        if platform in self.platforms:
            return self.platforms.index(platform)
        if self.any_platform:
            return 0
        raise ValueError(
            f"Function '{self.name}' was exported for platforms {self.platforms} but it is used on "
            f"{platform}. Export it with platforms=[..., {platform!r}]."
        )

    def lower(self, ctx: Any, values: Sequence[Any]) -> list[Any]:
        """Emit a call of the program."""
        index = self.position(ctx.platform)
        if self.nr_devices not in (1, ctx.num_partitions):
            raise ValueError(
                f"Function '{self.name}' was exported for {self.nr_devices} devices and is called "
                f"in a computation with {ctx.num_partitions}"
            )
        given = [values[i] for i in self.kept]
        if len(self.platforms) > 1:
            given.insert(0, mlir.constant(np.int32(index)))
        in_avals = tuple(ctx.in_avals) if self.polymorphic else None
        return portable.call_module(ctx, (self, in_avals), self._module, given)

    def _module(self) -> Any:
        return portable.from_bytes(self.data)
