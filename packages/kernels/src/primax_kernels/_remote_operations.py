"""Primitives of copies and signals to other devices of a mesh.

Expansions, on CPUs, move values by collectives: all devices reach each operation together. On TPUs
the operations are those of the chip.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from primax_core import lax
from primax_core.extend import Jaxpr, Primitive, expand, walk
from primax_core.extend.references import RefView, get_p, swap_p

from ._devices import Axes, device_position_p, unchecked
from ._semaphores import COUNT

remote_copy_start_p: Final[Primitive] = Primitive("remote_copy_start", multiple_results=True)
"""The start of a copy to another device."""

remote_copy_wait_p: Final[Primitive] = Primitive("remote_copy_wait", multiple_results=True)
"""The wait until a copy has left this device, or another one has arrived."""

remote_signal_p: Final[Primitive] = Primitive("remote_signal", multiple_results=True)
"""An addition to a semaphore of another device."""

REMOTE: Final = (remote_copy_start_p, remote_copy_wait_p, remote_signal_p)
"""Operations of several devices."""


class Part(NamedTuple):
    """A part of a reference: the index in it, and the index's operands."""

    ref: Any
    index: Any
    operands: list[Any]


class RemoteParts(NamedTuple):
    """Parts of references in the operands of an operation, whose references come first.

    Attributes:
      refs: for each part, the number of its reference.
      n_refs: the number of references.
      indices: the index of each part.
      counts: numbers of operands of the indices.
    """

    refs: tuple[int, ...]
    n_refs: int
    indices: tuple[Any, ...]
    counts: tuple[int, ...]

    def of(self, operands: Sequence[Any]) -> tuple[list[Part], list[Any]]:
        """The parts, and the operands after them."""
        rest, parts = list(operands[self.n_refs :]), []
        for number, index, count in zip(self.refs, self.indices, self.counts):
            parts.append(Part(operands[number], index, rest[:count]))
            rest = rest[count:]
        return parts, rest


def bind_remote(
    prim: Primitive, function: str, refs: Sequence[Any], *rest: Any, **params: Any
) -> None:
    """Apply a primitive to parts of references, which need not be different, and to values.

    Raises:
      ValueError: for a view of a view that has no index of its own.
    """
    views = [x if isinstance(x, RefView) else RefView(x, ...) for x in refs]
    if any(isinstance(v.base, RefView) for v in views):
        raise ValueError(
            f"{function} takes references or simple views of them, and not a view of a part that "
            "an array of positions selects: index the reference once"
        )
    bases: list[Any] = []
    numbers = []
    for v in views:
        known = [i for i, b in enumerate(bases) if b is v.base]
        numbers.append(known[0] if known else len(bases))
        if not known:
            bases.append(v.base)
    counts = tuple(len(v.operands) for v in views)
    parts = RemoteParts(tuple(numbers), len(bases), tuple(v.index for v in views), counts)
    operands = [x for v in views for x in v.operands]
    prim.bind(*bases, *operands, *rest, parts=parts, **params)


def communicates(jaxpr: Jaxpr) -> bool:
    """Return True if a jaxpr copies or signals to other devices."""
    return any(eqn.primitive in REMOTE for eqn in walk(jaxpr))


def axes_of(jaxpr: Jaxpr) -> Axes:
    """The axes of the mesh on which a jaxpr depends; ``()`` if it depends on no device."""
    for eqn in walk(jaxpr):
        if eqn.primitive in REMOTE or eqn.primitive is device_position_p:
            return eqn.params["mesh"]
    return ()


# Expansions


@remote_copy_start_p.rule(expand)
def _start(*operands: Any, parts: RemoteParts, nbytes: int, mesh: Axes) -> list[Any]:
    (source, target, sent, received), (device,) = parts.of(operands)
    value = _get(source)
    _add(sent, COUNT.type(nbytes))
    with unchecked(mesh):
        gathered = _Gathered(mesh, device)
        values = gathered(value)
        to, at = gathered.part(target), gathered.part(received)

    def arrive(sender: Any, _: None) -> None:
        arrives = gathered.arrives(sender)
        place = to(sender)
        old, new = _get(place), _at(values, sender)
        _set(place, lax.select(lax.broadcast(arrives, np.shape(old)), new, old))
        _add(at(sender), lax.mul(COUNT.type(nbytes), lax.convert_element_type(arrives, COUNT)))

    lax.fori_loop(np.int32(0), np.int32(gathered.count), arrive, None)
    return []


@remote_copy_wait_p.rule(expand)
def _wait(*operands: Any, parts: RemoteParts, nbytes: int, mesh: Axes, arrived: bool) -> list[Any]:
    (_, _, sent, received), _ = parts.of(operands)
    _add(received if arrived else sent, COUNT.type(-nbytes))
    return []


@remote_signal_p.rule(expand)
def _signal(*operands: Any, parts: RemoteParts, mesh: Axes) -> list[Any]:
    (semaphore,), (increment, device) = parts.of(operands)
    with unchecked(mesh):
        gathered = _Gathered(mesh, device)
        increments, at = gathered(increment), gathered.part(semaphore)

    def arrive(sender: Any, _: None) -> None:
        arrives = lax.convert_element_type(gathered.arrives(sender), COUNT)
        _add(at(sender), lax.mul(_at(increments, sender), arrives))

    lax.fori_loop(np.int32(0), np.int32(gathered.count), arrive, None)
    return []


class _Gathered:
    """Values of all devices, in the order of their numbers.

    Attributes:
      count: the number of devices.
      to: for each device, the one to which it sends.
      here: the number of this device.
    """

    def __init__(self, mesh: Axes, device: Any):
        self.mesh = mesh
        self.count = math.prod(n for _, n in mesh)
        self.to = self(device)
        self.here: Any = np.int32(0)
        for name, size in mesh:
            position = lax.axis_index_p.bind(axis_name=name)
            self.here = lax.add(lax.mul(self.here, np.int32(size)), position)

    def __call__(self, x: Any) -> Any:
        shape = np.shape(x)
        for name, size in reversed(self.mesh):
            x = lax.all_gather_p.bind(
                x, all_gather_dimension=0, axis_name=(name,), axis_size=size, tiled=False,
                axis_index_groups=None,
            )  # fmt: skip
        return lax.reshape(x, (self.count, *shape))

    def part(self, part: Part) -> Any:
        """A function from a sender to the part of the reference that it names."""
        operands = [self(x) for x in part.operands]
        return lambda sender: part._replace(operands=[_at(x, sender) for x in operands])

    def arrives(self, sender: Any) -> Any:
        """Return True if a device sends to this one."""
        return lax.eq(_at(self.to, sender), self.here)


def _at(x: Any, i: Any) -> Any:
    return lax.dynamic_index_in_dim(x, i, 0, keepdims=False)


def _get(part: Part) -> Any:
    return get_p.bind(part.ref, *part.operands, index=part.index)


def _set(part: Part, value: Any) -> None:
    swap_p.bind(part.ref, value, *part.operands, index=part.index)


def _add(part: Part, value: Any) -> None:
    _set(part, lax.add(_get(part), value))
