"""Shardings of the arguments and results of an executable on several devices.

Loaded on first use: most executables run on one device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._base.errors import InconclusiveDimensionOperation
from .._ir.jaxpr import Jaxpr
from .._runtime.array import ArrayImpl, Spec, physical
from .._runtime.jaxlib_versions import HloSharding
from .._runtime.sharding import Sharding
from .._runtime.tilings import Tiling


class ExecutableShardings:
    """Shardings of arguments, and those of results that are determined before compilation.

    Attributes:
      everywhere: the sharding with the whole array on each device.
      ins, outs: shardings of the arguments and results, ``None`` where XLA chooses.
    """

    __slots__ = ("everywhere", "ins", "outs", "in_avals", "out_avals")

    def __init__(self, everywhere: Sharding, ins: Sequence, outs: Sequence, jaxpr: Jaxpr):
        self.everywhere = everywhere
        self.ins = list(ins)
        self.outs = list(outs)
        self.in_avals = [physical(a) for a in jaxpr.in_avals]
        self.out_avals = [physical(a) for a in jaxpr.out_avals]
        names = jaxpr.debug_info.arg_names or ()
        for i, (s, a) in enumerate(zip(self.ins, self.in_avals)):
            if s is not None:
                check_divides(s, a.shape, f"argument {names[i] if i < len(names) else i}")
        for i, (s, a) in enumerate(zip(self.outs, self.out_avals)):
            if s is not None:
                check_divides(s, a.shape, f"result {i}")

    @classmethod
    def of(
        cls, jaxpr: Jaxpr, in_specs: Sequence[Spec], everywhere: Sharding,
        ins: Sequence[Sharding | None] | None, outs: Sequence[Sharding | None] | None,
    ) -> ExecutableShardings:  # fmt: skip
        """The requested shardings, completed by those of committed arguments and of avals.

        Args:
          ins, outs: ``None`` in place of a sharding leaves it open.
        """
        chosen: list[Sharding | None] = []
        for spec, requested in zip(in_specs, ins or [None] * len(in_specs)):
            if requested is None and spec.sharding._same_devices(everywhere):
                requested = spec.sharding
            elif requested is None and not spec.aval.shape:
                requested = everywhere
            chosen.append(requested)
        results = list(outs) if outs else [None] * len(jaxpr.outvars)
        for i, v in enumerate(jaxpr.outvars):
            if results[i] is None:
                results[i] = everywhere._of_placement(v.aval.placement, v.aval.ndim)
        return cls(everywhere, chosen, results, jaxpr)

    def of_argument(self, i: int) -> str | None:
        """Text of the Shardy attribute of an argument, or ``None``."""
        return _text(self.ins[i], self.in_avals[i])

    def of_result(self, i: int) -> str | None:
        """Text of the Shardy attribute of a result, or ``None``."""
        return _text(self.outs[i], self.out_avals[i])

    def of_constants(self, consts: Sequence[Any]) -> list[Sharding | None]:
        """Shardings of array constants: their own on the same devices, otherwise open."""
        same = self.everywhere._same_devices
        return [
            c.sharding if isinstance(c, ArrayImpl) and same(c.sharding) else None for c in consts
        ]

    def texts_of_constants(self, consts: Sequence[Any]) -> list[str | None]:
        """Texts of the Shardy attributes of array constants."""
        return [_text(s, physical(c.aval)) for s, c in zip(self.of_constants(consts), consts)]

    def key(self, consts: Sequence[Any]) -> tuple:
        """The part of the jaxpr's cache key; ``consts`` are its large constants."""
        return (
            self.everywhere.num_devices,
            tuple([self.of_argument(i) for i in range(len(self.ins))]),
            tuple([self.of_result(i) for i in range(len(self.outs))]),
            tuple(self.texts_of_constants(consts)),
        )

    def chosen(
        self, raw: Any, consts: Sequence[Any], used_inputs: Sequence[int] | None
    ) -> tuple[list[Sharding], list[Sharding], list[Sharding]]:
        """Shardings of the constants, arguments and results of jaxlib's executable."""
        const_avals = [physical(c.aval) for c in consts]
        used = range(len(self.ins)) if used_inputs is None else used_inputs
        known = self.of_constants(consts) + [self.ins[i] for i in used]
        avals = const_avals + [self.in_avals[i] for i in used]
        known = self._completed(known, avals, raw.get_parameter_shardings)
        ins = [self.everywhere if s is None else s for s in self.ins]  # also unused arguments
        n = len(const_avals)
        for i, s in zip(used, known[n:]):
            ins[i] = s
        outs = self._completed(self.outs, self.out_avals, raw.get_output_shardings)
        for i, (requested, a) in enumerate(zip(self.outs, self.out_avals)):
            if requested is None:
                outs[i] = self._as_of_argument(outs[i], a.ndim)
        return known[:n], ins, outs

    def _as_of_argument(self, sharding: Sharding, ndim: int) -> Sharding:
        """The sharding of the first argument, if it has this rank and is divided in the same way.

        Its spec is written as in the user's code, ``P(None)`` or ``P("x", None)``. Other
        arguments have no influence.
        """
        first = self.ins[0] if self.ins else None
        if first is None or self.in_avals[0].ndim != ndim:
            return sharding
        same_mesh = first._replicated() is sharding._replicated()
        return first if same_mesh and first._sdy(ndim) == sharding._sdy(ndim) else sharding

    def _completed(
        self, known: Sequence, avals: Sequence, ask: Callable[[], Any]
    ) -> list[Sharding]:
        if None not in known:
            return list(known)
        n = self.everywhere.num_devices
        xla = [HloSharding.from_proto(p) for p in ask() or ()]
        if len(xla) != len(known):  # XLA describes replicated values by nothing
            xla = [HloSharding.replicate()] * len(known)
        return [
            self.everywhere._from_xla(Tiling.of_xla(x, a.ndim, n)) if s is None else s
            for s, x, a in zip(known, xla, avals)
        ]


def _text(sharding: Sharding | None, aval: Any) -> str | None:
    return None if sharding is None else sharding._sdy(aval.ndim)


def check_divides(sharding: Sharding, shape: Sequence[int], what: str) -> None:
    """Raise ``ValueError`` if an array of a shape cannot be sharded so.

    XLA would silently choose another sharding.
    """
    try:
        if sharding._is_abstract:
            sharding.shard_shape(tuple(shape))
        else:
            sharding.devices_indices_map(tuple(shape))
    except ValueError as e:
        raise ValueError(f"{what}: {e}") from None
    except InconclusiveDimensionOperation:
        raise ValueError(
            f"{what} of shape {tuple(shape)} is divided as {sharding} says, but its symbolic sizes "
            "may not be divisible by the numbers of parts: write them as multiples, such as '2*n'"
        ) from None
