"""The groups of operands and results of ``scan``, in the reference's convention.

The core's ``scan_p`` counts constants and carries (``num_consts``, ``num_carry``). The reference
has flat trees in their place: ``ft_in`` with constants, carries and slices, ``ft_out`` with carries
and stacked results. Interpreters receive those, and ``scan_p.bind`` accepts them, once the
reference's private module ``flattree`` is imported; without it nothing changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from primax_core.extend import Primitive
from primax_core.lax import scan_p

from .traces import presented


class FlatTree:
    """A flat list of values, which ``groups`` divides, or ``None`` if it is not divided."""

    def __init__(self, vals: Sequence[Any], groups: tuple[FlatTree, ...] | None = None) -> None:
        self.vals = list(vals)
        self._groups = groups

    def update(self, new_vals: Sequence[Any]) -> FlatTree:
        """Return a tree of the same structure with other values.

        Raises:
          ValueError: if their number differs.
        """
        values = list(new_vals)
        if len(values) != len(self):
            raise ValueError(
                f"the tree has {len(self)} values and cannot hold {len(values)}; pass one new "
                "value for each"
            )
        if self._groups is None:
            return FlatTree(values)
        groups, start = [], 0
        for group in self._groups:
            groups.append(group.update(values[start : start + len(group)]))
            start += len(group)
        return FlatTree(values, tuple(groups))

    def unpack(self) -> tuple[FlatTree, ...]:
        """Return the groups that were packed; of an undivided tree, one tree for each value."""
        if self._groups is None:
            return tuple(FlatTree([value]) for value in self.vals)
        return self._groups

    def __len__(self) -> int:
        return len(self.vals)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.vals)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FlatTree):
            return NotImplemented
        return (self.vals, self._groups) == (other.vals, other._groups)

    def __hash__(self) -> int:
        return hash((tuple(self.vals), self._groups))

    def __repr__(self) -> str:
        parts: Sequence[Any] = self.vals if self._groups is None else self._groups
        return f"({', '.join(map(repr, parts))})"


def nones(n: int) -> FlatTree:
    """Return a tree of ``n`` values ``None``."""
    return FlatTree([None] * n)


def pack(tree: Sequence[FlatTree]) -> FlatTree:
    """Return the tree whose groups are the given trees."""
    groups = tuple(tree)
    return FlatTree([value for group in groups for value in group], groups)


def to_groups(params: dict[str, Any]) -> dict[str, Any]:
    """Return parameters of ``scan_p`` with the groups in place of their sizes."""
    rest = {k: v for k, v in params.items() if k not in ("num_consts", "num_carry")}
    consts, carry, jaxpr = params["num_consts"], params["num_carry"], params["jaxpr"]
    slices, stacked = len(jaxpr.invars) - consts - carry, len(jaxpr.outvars) - carry
    rest["ft_in"] = pack((nones(consts), nones(carry), nones(slices)))
    rest["ft_out"] = pack((nones(carry), nones(stacked)))
    return rest


def to_sizes(params: dict[str, Any]) -> dict[str, Any]:
    """Return parameters of ``scan_p`` with sizes in place of the groups."""
    rest = {k: v for k, v in params.items() if k not in ("ft_in", "ft_out")}
    consts, carry, _ = params["ft_in"].unpack()
    return {**rest, "num_consts": len(consts), "num_carry": len(carry)}


class _Scan(Primitive):
    """The primitive ``scan``, whose parameters may have groups in place of sizes."""

    __slots__ = ()

    def bind(self, *args: Any, **params: Any) -> Any:
        """Apply the primitive under the current trace."""
        return super().bind(*args, **(to_sizes(params) if "ft_in" in params else params))


def enable() -> None:
    """Pass groups to interpreters, and accept them in ``scan_p.bind``."""
    presented[scan_p] = to_groups
    scan_p.__class__ = _Scan
