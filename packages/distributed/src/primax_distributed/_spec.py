"""Partition specs: the mesh axes along which the axes of an array are divided."""

from __future__ import annotations

import enum
from collections.abc import Collection, Hashable, Iterable, Iterator
from typing import Any, Final, TypeAlias

from ._interning import Immutable, Interned, put

AxisName: TypeAlias = Hashable
"""Name of an axis of a mesh."""


class UnreducedKind(enum.Enum):
    """The reduction that combines the partial values of an unreduced array."""

    sum = 1
    max = 2
    min = 3


class Unconstrained:
    """Type of ``PartitionSpec.UNCONSTRAINED``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNCONSTRAINED"

    def __reduce__(self) -> str:
        return "UNCONSTRAINED"

    def __copy__(self) -> Unconstrained:
        return self

    def __deepcopy__(self, memo: object) -> Unconstrained:
        return self


UNCONSTRAINED: Final = Unconstrained()
"""Entry of a partition spec for an axis whose division the compiler chooses."""

_instances: Final[Interned[PartitionSpec]] = Interned()


class PartitionSpec(Immutable):
    """For each axis of an array, the mesh axes along which it is divided.

    A spec is a sequence of entries, but not a tuple; a pytree treats it as a leaf. Specs with equal
    entries are one object. Axes of the array beyond the entries are not divided.

    Args:
      *partitions: for each axis of the array the name of a mesh axis; a tuple of names, the major
        one first; ``None`` if it is not divided; or ``PartitionSpec.UNCONSTRAINED`` if the compiler
        may choose. A tuple of one name is the name, and an empty tuple is ``None``.
      unreduced: mesh axes along which each device has a partial value; the array is their
        reduction.
      reduced: mesh axes along which the array is equal, and its cotangent is unreduced.
      unreduced_kind: the reduction of the unreduced axes, by default the sum.

    Raises:
      TypeError: if an argument has the wrong type, or an entry is not hashable.
      ValueError: if entries, ``unreduced`` and ``reduced`` overlap, or tuples are nested.

    >>> PartitionSpec("data", None, ("model", "expert"))
    P('data', None, ('model', 'expert'))
    >>> PartitionSpec("data", unreduced={"model"})
    P('data', unreduced={'model'}, unreduced_kind=sum)
    """

    __slots__ = ("_partitions", "reduced", "unreduced", "unreduced_kind")

    UNCONSTRAINED: Final = UNCONSTRAINED

    _partitions: tuple[Any, ...]
    unreduced: frozenset[AxisName]
    reduced: frozenset[AxisName]
    unreduced_kind: UnreducedKind | None

    def __new__(
        cls,
        *partitions: Any,
        unreduced: Collection[AxisName] = frozenset(),
        reduced: Collection[AxisName] = frozenset(),
        unreduced_kind: UnreducedKind | None = None,
    ) -> PartitionSpec:
        entries = tuple([_entry(p, partitions) for p in partitions])
        unreduced = checked_axes("unreduced", unreduced, "PartitionSpec")
        reduced = checked_axes("reduced", reduced, "PartitionSpec")
        kind = checked_kind(unreduced_kind, unreduced)
        key = (entries, unreduced, reduced, kind)
        try:
            known = _instances.get(key)
        except TypeError:
            raise TypeError(
                f"an entry of PartitionSpec{partitions} is not hashable: use names, tuples of "
                "names, None or PartitionSpec.UNCONSTRAINED"
            ) from None
        if known is not None:
            return known
        _check_disjoint(entries, unreduced, reduced)
        self = object.__new__(cls)
        for name, value in zip(("_partitions", "unreduced", "reduced", "unreduced_kind"), key):
            put(self, name, value)
        return _instances.add(key, lambda: self)

    def _key_on_disk(self) -> tuple[Any, ...]:
        """The contents, for keys of the cache on disk."""
        entries = tuple([("?",) if p is UNCONSTRAINED else p for p in self._partitions])
        return entries, self.unreduced, self.reduced, self.unreduced_kind

    @property
    def partitions(self) -> tuple[Any, ...]:
        """The entries."""
        return self._partitions

    def update(
        self,
        partitions: Iterable[Any] | None = None,
        unreduced: Collection[AxisName] | None = None,
        reduced: Collection[AxisName] | None = None,
        *,
        unreduced_kind: UnreducedKind | None = None,
    ) -> PartitionSpec:
        """A spec with some parts replaced; ``None`` keeps a part.

        >>> PartitionSpec("x", unreduced={"y"}).update(partitions=(None, "x"))
        P(None, 'x', unreduced={'y'}, unreduced_kind=sum)
        """
        unreduced = self.unreduced if unreduced is None else unreduced
        if unreduced_kind is None and unreduced:
            unreduced_kind = self.unreduced_kind
        return PartitionSpec(
            *(self._partitions if partitions is None else partitions),
            unreduced=unreduced,
            reduced=self.reduced if reduced is None else reduced,
            unreduced_kind=unreduced_kind,
        )

    def to_ct_spec(self) -> PartitionSpec:
        """The spec of a cotangent: unreduced and reduced axes are exchanged.

        >>> PartitionSpec("x", reduced={"y"}).to_ct_spec()
        P('x', unreduced={'y'}, unreduced_kind=sum)
        """
        return PartitionSpec(*self._partitions, unreduced=self.reduced, reduced=self.unreduced)

    def to_tangent_spec(self) -> PartitionSpec:
        """The spec of a tangent: this one."""
        return self

    def axes(self, ndim: int) -> tuple[tuple[AxisName, ...], ...]:
        """The mesh axes of each of ``ndim`` axes of an array; none for an unconstrained axis.

        Raises:
          ValueError: if there are more entries than axes.
        """
        if len(self._partitions) > ndim:
            n = len(self._partitions)
            raise ValueError(
                f"{self} has {n} {'entry' if n == 1 else 'entries'} for an array of {ndim} "
                f"{'axis' if ndim == 1 else 'axes'}: use {f'at most {ndim}' if ndim else 'P()'}"
            )
        named = [names_of(entry) for entry in self._partitions]
        return (*named, *((),) * (ndim - len(named)))

    @property
    def names(self) -> tuple[AxisName, ...]:
        """The mesh axes in the entries, in order."""
        return tuple([name for entry in self._partitions for name in names_of(entry)])

    @property
    def is_constrained(self) -> bool:
        """True if no entry is ``UNCONSTRAINED``."""
        return UNCONSTRAINED not in self._partitions

    def _normalized_spec_for_aval(self, ndim: int) -> PartitionSpec:
        missing = ndim - len(self._partitions)
        return self.update(partitions=(*self._partitions, *(None,) * missing))

    # A sequence

    def __len__(self) -> int:
        return len(self._partitions)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._partitions)

    def __getitem__(self, index: Any) -> Any:
        return self._partitions[index]

    def __contains__(self, entry: object) -> bool:
        return entry in self._partitions

    def index(self, entry: Any) -> int:
        """Position of the first entry that equals ``entry``."""
        return self._partitions.index(entry)

    def count(self, entry: Any) -> int:
        """Number of entries that equal ``entry``."""
        return self._partitions.count(entry)

    def __add__(self, other: Any) -> PartitionSpec:
        if isinstance(other, tuple):
            if self.unreduced or self.reduced:
                raise TypeError(
                    f"a tuple cannot be added to {self}, which has unreduced or reduced axes: add "
                    "a PartitionSpec, or use its method update"
                )
            return PartitionSpec(*self._partitions, *other)
        if not isinstance(other, PartitionSpec):
            return NotImplemented
        if self.unreduced_kind is not other.unreduced_kind:
            raise TypeError(f"{self} and {other} cannot be added: their unreduced_kind differs")
        return PartitionSpec(
            *self._partitions,
            *other._partitions,
            unreduced=self.unreduced | other.unreduced,
            reduced=self.reduced | other.reduced,
            unreduced_kind=self.unreduced_kind,
        )

    def __radd__(self, other: Any) -> PartitionSpec:
        if not isinstance(other, tuple):
            return NotImplemented
        return PartitionSpec(*other) + self

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self._partitions, self.unreduced, self.reduced, self.unreduced_kind)

    def __repr__(self) -> str:
        parts = [repr(entry) for entry in self._partitions]
        for name in ("unreduced", "reduced"):
            axes = getattr(self, name)
            if axes:
                parts.append(f"{name}={{{', '.join(sorted(map(repr, axes)))}}}")
        if self.unreduced_kind is not None:
            parts.append(f"unreduced_kind={self.unreduced_kind.name}")
        comma = "," if len(parts) == len(self._partitions) == 1 else ""
        return f"P({', '.join(parts)}{comma})"


P = PartitionSpec


def names_of(entry: Any) -> tuple[AxisName, ...]:
    """The mesh axes of one entry of a spec.

    >>> names_of("x"), names_of(("x", "y")), names_of(None)
    (('x',), ('x', 'y'), ())
    """
    if entry is None or entry is UNCONSTRAINED:
        return ()
    return entry if isinstance(entry, tuple) else (entry,)


def entry_of(names: tuple[AxisName, ...]) -> Any:
    """The entry of a spec for some mesh axes: the inverse of :func:`names_of`."""
    return names[0] if len(names) == 1 else names or None


def trimmed(entries: Iterable[Any]) -> list[Any]:
    """Entries without ``None`` at the end."""
    trimmed = list(entries)
    while trimmed and trimmed[-1] is None:
        trimmed.pop()
    return trimmed


def _restored(
    partitions: tuple[Any, ...],
    unreduced: frozenset[AxisName],
    reduced: frozenset[AxisName],
    kind: UnreducedKind | None,
) -> PartitionSpec:
    return PartitionSpec(*partitions, unreduced=unreduced, reduced=reduced, unreduced_kind=kind)


def _entry(entry: Any, partitions: tuple[Any, ...]) -> Any:
    if isinstance(entry, list):
        entry = tuple(entry)
    if not isinstance(entry, tuple):
        return entry
    for name in entry:
        if isinstance(name, (tuple, list)):
            raise ValueError(
                f"the entry {entry} of PartitionSpec{partitions} contains {name}: an entry is a "
                "name or a tuple of names"
            )
    return entry_of(entry)


def checked_axes(argument: str, axes: Any, owner: str) -> frozenset[AxisName]:
    """The axes in an argument that takes a set of them.

    Raises:
      TypeError: if it is not a set.
      ValueError: if it contains ``None``.
    """
    if not isinstance(axes, (set, frozenset)):
        raise TypeError(
            f"{argument} of {owner} must be a set or frozenset of axis names, got {axes!r} of type "
            f"{type(axes).__name__}"
        )
    if None in axes:
        raise ValueError(f"{argument} of {owner} contains None: it takes names of mesh axes")
    return frozenset(axes)


def checked_kind(kind: Any, unreduced: frozenset[AxisName]) -> UnreducedKind | None:
    """The kind of reduction of unreduced axes: the sum, if it is not said.

    Raises:
      TypeError: if it is not an `UnreducedKind`.
      ValueError: if no axis is unreduced.
    """
    if kind is None:
        return UnreducedKind.sum if unreduced else None
    if not isinstance(kind, UnreducedKind):
        raise TypeError(
            f"unreduced_kind must be a member of UnreducedKind, such as UnreducedKind.max, got "
            f"{kind!r} of type {type(kind).__name__}"
        )
    if not unreduced:
        raise ValueError(f"unreduced_kind={kind.name} without unreduced axes: leave it out")
    return kind


def _check_disjoint(
    entries: tuple[Any, ...], unreduced: frozenset[AxisName], reduced: frozenset[AxisName]
) -> None:
    used = frozenset(name for entry in entries for name in names_of(entry))
    for argument, axes in (("unreduced", unreduced), ("reduced", reduced)):
        if both := used & axes:
            raise ValueError(
                f"PartitionSpec{entries} divides an axis of the array along {_list(both)}, which "
                f"{argument}={set(axes)} contains too: a mesh axis has one of these roles"
            )
    if both := unreduced & reduced:
        raise ValueError(
            f"unreduced and reduced of a PartitionSpec both contain {_list(both)}: a mesh axis has "
            "one of these roles"
        )


def _list(names: Iterable[AxisName]) -> str:
    return ", ".join(sorted(map(repr, names)))
