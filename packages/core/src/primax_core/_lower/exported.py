"""Calls of exported functions in other modules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._base.errors import InvalidArtifactError
from .._ir.symbolic_dims import is_static
from . import untrusted
from .lazy import inspection, mlir, portable, static_shapes, untrusted_shardings


class PortableProgram:
    """A function as a portable artifact.

    Attributes:
      name: the name of the function.
      data: the portable artifact.
      platforms: its platforms; if there are several, ``main`` has a leading index argument.
      in_avals, out_avals: avals of all arguments and of the results.
      kept_args: indices of the arguments of ``main``.
      nr_devices: the number of its devices.
      any_platform: it may be used on other platforms.
      out_kinds: memory kinds of the results, ``None`` for the default; empty if all are.
      cache: values derived from it.
    """

    __slots__ = (
        "name", "data", "platforms", "in_avals", "out_avals", "kept_args", "nr_devices",
        "any_platform", "out_kinds", "cache", "_plan", "__weakref__",
    )  # fmt: skip

    def __init__(
        self, name: str, data: bytes, platforms: tuple[str, ...], in_avals: tuple[Any, ...],
        out_avals: tuple[Any, ...], kept_args: tuple[int, ...], nr_devices: int = 1,
        any_platform: bool = False, out_kinds: tuple[str | None, ...] = (),
    ):  # fmt: skip
        self.name: str = name
        self.data: bytes = data
        self.platforms: tuple[str, ...] = platforms
        self.in_avals: tuple[Any, ...] = in_avals
        self.out_avals: tuple[Any, ...] = out_avals
        self.kept_args: tuple[int, ...] = kept_args
        self.nr_devices: int = nr_devices
        self.any_platform: bool = any_platform
        self.out_kinds: tuple[str | None, ...] = out_kinds
        self.cache: dict[Any, Any] = {}
        self._plan: Any = None

    def __repr__(self) -> str:
        return f"Exported(fun_name={self.name}, ...)"

    @property
    def polymorphic(self) -> bool:
        """True if an argument has a symbolic dimension."""
        return not all(is_static(a.shape) for a in self.in_avals)

    def dimension_values(
        self, shapes: Sequence[Sequence[Any]], name_of: Callable[[int], str]
    ) -> dict[str, Any]:
        """The dimension variables for arguments of these shapes, which are checked.

        Args:
          name_of: name of an argument in messages.
        """
        if self._plan is None:
            from .._ir.dimensions.solving import plan_of

            names = [name_of(i) for i in range(len(self.in_avals))]
            self._plan = plan_of([a.shape for a in self.in_avals], names)
        return self._plan.values(shapes)

    def position(self, platform: str) -> int:
        """The platform index for ``main``.

        Raises:
          ValueError: if the function was not exported for the platform.
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
        """Emit a call of the function."""
        index = self.position(ctx.platform)
        if self.nr_devices not in (1, ctx.num_partitions):
            raise ValueError(
                f"Function '{self.name}' was exported for {self.nr_devices} devices and is called "
                f"in a computation with {ctx.num_partitions}: call it with arrays on "
                f"{self.nr_devices} devices, such as device_put(x, s) with the shardings of "
                "Exported.in_shardings_jax(mesh)"
            )
        if self.nr_devices > 1 and ctx.axes is not None:
            raise ValueError(
                f"Function '{self.name}' was exported for {self.nr_devices} devices and is called "
                "inside of a shard_map, whose function runs on one device: call it outside"
            )
        operands = [values[i] for i in self.kept_args]
        if self.polymorphic and is_static(d for a in ctx.in_avals for d in a.shape):
            # The platform index is refined together with the sizes.
            avals = tuple(ctx.in_avals)
            return portable.call_module(
                ctx, (self, index, avals), lambda: self._static(avals, index), operands
            )
        if len(self.platforms) > 1:
            operands.insert(0, mlir.constant(np.int32(index)))
        if self.polymorphic:
            types = tuple([v.type for v in operands])
            return portable.call_module(
                ctx, (self, types), lambda: portable.for_arguments(self._module(), types), operands
            )
        return portable.call_module(ctx, self, self._module, operands)

    def _module(self) -> Any:
        module = portable.from_bytes(self.data)
        unknown = [t for t in portable.targets_of(module) if not portable.is_stable(t)]
        if unknown and not untrusted.is_trusted(self.data):
            raise InvalidArtifactError(
                f"Function '{self.name}' calls the native function {unknown[0]!r}, which can do "
                "anything. If you trust the source of the artifact, use "
                "export.deserialize(blob, trusted=True)."
            )
        return module

    def _static(self, avals: tuple[Any, ...], index: int) -> Any:
        """The module for arguments of these avals."""
        platform = index if len(self.platforms) > 1 else None
        data = static_shapes.refine(portable.bytecode(self._module()), avals, platform)
        module = portable.parse(data)
        inspection.inspect(module)  # again, with static sizes
        if not untrusted.is_trusted(self.data):
            untrusted_shardings.check(module, self.nr_devices)
        return module
