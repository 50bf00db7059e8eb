"""Shardings of the arguments and results of an executable on several devices.

Loaded on first use: most executables run on one device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._ir.jaxpr import Jaxpr
from .._ir.placement import unplaced
from .._runtime.array import ArrayImpl, Spec, physical
from .._runtime.jaxlib_versions import HloSharding
from .._runtime.sharding import Sharding
from .._runtime.tilings import Tiling


class ExecutableShardings:
    """Shardings of arguments, and those of results that are determined before compilation.

    Attributes:
      everywhere: the sharding with the whole array on each device.
      ins: shardings of the arguments.
      outs: shardings of the results, ``None`` where XLA chooses.
    """

    __slots__ = ("everywhere", "ins", "outs", "in_avals", "out_avals")

    def __init__(self, everywhere: Sharding, ins: Sequence[Sharding], outs: Sequence, jaxpr: Jaxpr):
        self.everywhere = everywhere
        self.ins = list(ins)
        self.outs = list(outs)
        self.in_avals = [physical(a) for a in jaxpr.in_avals]
        self.out_avals = [physical(a) for a in jaxpr.out_avals]
        names = jaxpr.debug_info.arg_names or ()
        for i, (s, a) in enumerate(zip(self.ins, self.in_avals)):
            check_divides(s, a.shape, f"argument {names[i] if i < len(names) else i}")
        for i, (s, a) in enumerate(zip(self.outs, self.out_avals)):
            if s is not None:
                check_divides(s, a.shape, f"result {i}")

    @classmethod
    def of(
        cls, jaxpr: Jaxpr, in_specs: Sequence[Spec], everywhere: Sharding,
        ins: Sequence[Sharding | None] | None, outs: Sequence[Sharding | None] | None,
    ) -> ExecutableShardings:  # fmt: skip
        """The requested shardings, completed by those of the arguments and by the results' avals.

        Args:
          ins, outs: ``None`` in place of a sharding leaves it open.
        """
        devices = everywhere._devices
        chosen = []
        for spec, requested in zip(in_specs, ins or [None] * len(in_specs)):
            if requested is None:
                own = spec.sharding
                requested = own if own._devices == devices else everywhere
            chosen.append(requested)
        results = list(outs) if outs else [None] * len(jaxpr.outvars)
        for i, v in enumerate(jaxpr.outvars):
            if results[i] is None and v.aval.placement is not unplaced:
                results[i] = everywhere._of_placement(v.aval.placement)
        return cls(everywhere, chosen, results, jaxpr)

    def of_argument(self, i: int) -> str | None:
        """Text of the Shardy attribute of an argument."""
        return self.ins[i]._sdy(self.in_avals[i].ndim)

    def of_result(self, i: int) -> str | None:
        """Text of the Shardy attribute of a result, or ``None``."""
        sharding = self.outs[i]
        return None if sharding is None else sharding._sdy(self.out_avals[i].ndim)

    def of_constants(self, consts: Sequence[Any]) -> list[Sharding]:
        """Shardings of array constants: their own on the same devices, otherwise replicated."""
        devices = self.everywhere._devices
        return [
            c.sharding
            if type(c) is ArrayImpl and c.sharding._devices == devices
            else self.everywhere
            for c in consts
        ]

    def key(self, consts: Sequence[Any]) -> tuple:
        """The part of the jaxpr's cache key; ``consts`` are its large constants."""
        return (
            self.everywhere.num_devices,
            tuple([self.of_argument(i) for i in range(len(self.ins))]),
            tuple([self.of_result(i) for i in range(len(self.outs))]),
            tuple([s._sdy(c.ndim) for s, c in zip(self.of_constants(consts), consts)]),
        )

    def chosen(self, raw: Any) -> list[Sharding]:
        """Shardings of the results of jaxlib's executable."""
        if all(s is not None for s in self.outs):
            return self.outs
        n = self.everywhere.num_devices
        protos = raw.get_output_shardings()
        xla = [HloSharding.from_proto(p) for p in protos or ()]
        if len(xla) != len(self.outs):  # XLA describes replicated results by nothing
            xla = [HloSharding.replicate()] * len(self.outs)
        return [
            self.everywhere._from_xla(Tiling.of_xla(x, a.ndim, n)) if s is None else s
            for s, x, a in zip(self.outs, xla, self.out_avals)
        ]


def check_divides(sharding: Sharding, shape: Sequence[int], what: str) -> None:
    """Raise ``ValueError`` if an array of a shape cannot be sharded so.

    XLA would silently choose another sharding.
    """
    try:
        sharding.devices_indices_map(tuple(shape))
    except ValueError as e:
        raise ValueError(f"{what}: {e}") from None
