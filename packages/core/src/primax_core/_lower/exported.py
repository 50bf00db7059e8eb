"""Exported programs as other programs call them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._base.errors import InvalidArtifactError
from .._ir.symbolic_dims import is_static
from . import untrusted
from .lazy import inspection, mlir, portable, static_shapes


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
        if self.polymorphic and is_static(d for a in ctx.in_avals for d in a.shape):
            # The index of the platform goes with the sizes.
            avals = tuple(ctx.in_avals)
            return portable.call_module(
                ctx, (self, index, avals), lambda: self._static(avals, index), given
            )
        if len(self.platforms) > 1:
            given.insert(0, mlir.constant(np.int32(index)))
        if self.polymorphic:
            types = tuple([v.type for v in given])
            return portable.call_module(
                ctx, (self, types), lambda: portable.for_arguments(self._module(), types), given
            )
        return portable.call_module(ctx, self, self._module, given)

    def _module(self) -> Any:
        module = portable.from_bytes(self.data)
        unknown = [t for t in portable.targets_of(module) if not portable.is_stable(t)]
        if unknown and not untrusted.is_trusted(self.data):
            raise InvalidArtifactError(
                f"Function '{self.name}' calls the native function {unknown[0]!r}, which can do "
                "anything. If you know who made the artifact, use "
                "export.deserialize(blob, trusted=True)."
            )
        return module

    def _static(self, avals: tuple[Any, ...], index: int) -> Any:
        """The module for arguments of these types."""
        platform = index if len(self.platforms) > 1 else None
        data = static_shapes.refine(portable.bytecode(self._module()), avals, platform)
        module = portable.parse(data)
        inspection.inspect(module)  # again, with sizes that are known now
        return module
