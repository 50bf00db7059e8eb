"""Kernels evaluated step by step with checks of each access: ``interpret="check"``."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Sequence
from typing import Any, Final

import numpy as np

from primax_core import device_put, lax
from primax_core.extend import (
    Eqn,
    Jaxpr,
    Literal,
    expand,
    expanded,
    interpret,
    run_jaxprs,
    summarize,
)
from primax_core.extend.references import (
    INTEGER,
    INTEGER_ARRAY,
    StaticSlice,
    addupdate_p,
    empty_ref_p,
    free_ref_p,
    freeze_p,
    get_p,
    new_ref_p,
    swap_p,
)

from ._access import former_get_p, masked_add_p, masked_get_p, masked_swap_p
from ._block_mapping import BlockMapping
from ._debugging import KernelCheckError
from ._index_mesh import open_mesh
from ._kernel import Kernel
from ._memory_spaces import unwritten_value
from ._poison import poison_p
from ._semaphores import SemaphoreType, begins_with_zeros, first_value
from ._stepping import leading
from ._tpu_memory import ACC


class _Memory:
    """An array whose accesses are checked.

    Attributes:
      name: the reference in errors.
      data: the elements.
      written: for each element, True if it has a value.
      writer, reader: for each element, the last column of the grid that wrote or read it, -1: none.
      in_results: True for memory that all steps share, so that columns must not meet in it.
      is_semaphore: True for scoped semaphores.
    """

    def __init__(self, name: str, data: np.ndarray, has_values: bool):
        self.name = name
        self.data = data
        self.written = np.full(data.shape, has_values)
        self.writer = np.full(data.shape, -1, np.int32)
        self.reader = np.full(data.shape, -1, np.int32)
        self.in_results = False
        self.is_semaphore = False

    def part(self, place: tuple[slice, ...], squeezed: tuple[int, ...]) -> _Memory:
        """A block, which shares the elements."""
        new = object.__new__(_Memory)
        new.name, new.in_results, new.is_semaphore = self.name, self.in_results, False
        for name in ("data", "written", "writer", "reader"):
            # The ellipsis keeps the view of an array without axes.
            setattr(new, name, np.squeeze(getattr(self, name)[(*place, ...)], squeezed))
        return new


class _PartlyWritten(np.ndarray):
    """Contents of memory, some elements of which were not written.

    Operations take them as plain numbers; a new reference with these contents, and a write of
    them, keep what is known.

    Attributes:
      written: for each element, True if it has a value.
    """

    written: np.ndarray

    @classmethod
    def of(cls, data: np.ndarray, written: np.ndarray) -> np.ndarray:
        """The contents, plain ones if all elements have values."""
        if written.all():
            return data
        new = data.view(cls)
        new.written = written
        return new


class Faults:
    """Faults of a kernel: the first is raised as an error, or all are collected.

    Attributes:
      messages: the collected faults, one for each line of the kernel and kind of access.
    """

    def __init__(self, collect: bool = False):
        self.collect = collect
        self.messages: dict[Hashable, str] = {}

    def add(self, message: str, kind: Hashable) -> None:
        """Add a fault.

        Args:
          kind: equal for faults of which one is enough.

        Raises:
          KernelCheckError: unless faults are collected.
        """
        if not self.collect:
            raise KernelCheckError(message) from None
        self.messages.setdefault(kind, message)


class _Operand:
    """An array of which steps take blocks.

    Args:
      x: the elements, or ``None`` if they are not written yet.
      outside: the elements outside of the array, by default those of memory that was not written.
    """

    def __init__(
        self, mapping: BlockMapping, name: str, x: np.ndarray | None, faults: Faults,
        outside: Any = None,
    ):  # fmt: skip
        self.mapping = mapping
        self.faults = faults
        margins = list(zip(mapping.aval.shape, mapping.margins))
        shape = tuple(lo + n + hi for n, (lo, hi) in margins)
        self.inside = tuple(slice(lo, lo + n) for n, (lo, _) in margins)
        fill = unwritten_value(mapping.aval.dtype) if outside is None else outside
        data = np.full(shape, fill, mapping.aval.dtype)
        self.memory = _Memory(name, data, True)
        if x is None:
            self.memory.written[self.inside] = False
        else:
            data[self.inside] = x

    def block(self, step: tuple[int, ...], scalars: Sequence[Any]) -> _Memory:
        """The block of a step.

        Raises:
          KernelCheckError: if it begins outside of the array.
        """
        extents = self.mapping.extents
        if not self.mapping.is_plain:
            return self._gathered(step, scalars)
        starts = self.mapping.starts(step, scalars)
        for axis, (start, e, n) in enumerate(zip(starts, extents, self.memory.data.shape)):
            if not 0 <= start <= n - e.size:
                self.faults.add(
                    f"step {step}: the index map of {self.memory.name} returns {start // e.step} "
                    f"for axis {axis}, so that its block of {e.size} elements begins outside of "
                    f"the {self.mapping.aval.shape[axis]} elements there",
                    ("index map", self.memory.name, axis),
                )
                starts[axis] = min(max(start, 0), n - e.size)
        place = tuple(slice(start, start + e.size) for start, e in zip(starts, extents))
        squeezed = tuple(axis for axis, e in enumerate(extents) if e.squeezed)
        block = self.memory.part(place, squeezed)
        if not block.in_results:  # what a step writes into an operand is dropped at its end
            block.data = block.data.copy()
        return block

    def _gathered(self, step: tuple[int, ...], scalars: Sequence[Any]) -> _Memory:
        """A block of a bounded slice or of positions: a copy, which `put_back` writes.

        Raises:
          KernelCheckError: if it has elements outside of the array, or one twice.
        """
        mapping, memory = self.mapping, self.memory
        positions = mapping.positions(step, scalars)
        for axis, (own, e) in enumerate(zip(positions, mapping.extents)):
            shape = memory.data.shape if e.is_plain else mapping.aval.shape
            if ((own < 0) | (own >= shape[axis])).any():
                self.faults.add(
                    f"step {step}: the index map of {memory.name} returns positions "
                    f"{own.min()} to {own.max()} for axis {axis}, which are outside of the "
                    f"{mapping.aval.shape[axis]} elements there",
                    ("index map", memory.name, axis),
                )
            if e.indirect and memory.in_results and len(np.unique(own)) < len(own):
                self.faults.add(
                    f"step {step}: the index map of {memory.name} returns the positions "
                    f"{own.tolist()} for axis {axis}, some of them twice",
                    ("index map", memory.name, axis),
                )
            positions[axis] = np.clip(own, 0, memory.data.shape[axis] - 1)
        self.place = np.ix_(*positions)
        sizes = tuple(e.size for e in mapping.extents)
        block = object.__new__(_Memory)
        block.name, block.in_results, block.is_semaphore = memory.name, memory.in_results, False
        for name, rest in _REST.items():
            whole = getattr(memory, name)
            rest = unwritten_value(whole.dtype) if name == "data" else rest
            part = np.full(sizes, rest, whole.dtype)
            part[leading([len(own) for own in positions])] = whole[self.place]
            setattr(block, name, part.reshape(mapping.block_shape))
        return block

    def put_back(self, block: _Memory) -> None:
        """Write the block of the last step, if it is a copy."""
        if self.mapping.is_plain:
            return
        sizes = tuple(e.size for e in self.mapping.extents)
        inside = leading(self.memory.data[self.place].shape)
        for name in _REST:
            part = getattr(block, name).reshape(sizes)[inside]
            if name != "data" or block.in_results:
                getattr(self.memory, name)[self.place] = part


_REST: Final[dict[str, Any]] = {"data": None, "written": True, "writer": -1, "reader": -1}
"""Attributes of elements of a block that are not in the array; their ``data`` are unwritten."""


def check_steps(
    kernel: Kernel, args: Sequence[Any], complete: bool = True, faults: Faults | None = None,
    outside: Any = None,
) -> list[Any]:  # fmt: skip
    """Evaluate a kernel step by step, with checks of each access.

    Args:
      complete: whether the steps have to write all elements of the results.
      faults: what collects faults; by default the first is raised.
      outside: elements of operands' blocks outside of the arrays.

    Raises:
      KernelCheckError: for an access outside of a reference, a read of memory that was not
        written, two parallel steps that meet in an element, a semaphore that is not 0 at the end,
        a result with elements that no step wrote.
    """
    n = len(kernel.prefetched)
    faults = Faults() if faults is None else faults
    inputs = [
        _Operand(m, f"operand {n + i}", np.asarray(x), faults, outside)
        for i, (m, x) in enumerate(zip(kernel.inputs, args[n:]))
    ]
    initial = {o: np.asarray(args[i]) for i, o in kernel.aliases}
    outputs = [
        _Operand(m, f"result {o}", initial.get(o), faults) for o, m in enumerate(kernel.outputs)
    ]  # fmt: skip
    for output in outputs:
        output.memory.in_results = True
    scratch = []
    for i, aval in enumerate(kernel.scratch):
        first = np.full(aval.shape, first_value(aval), aval.dtype)
        scratch.append(_Memory(f"scratch {i}", first, begins_with_zeros(aval.memory_space)))
    columns = _columns(kernel)
    for step in itertools.product(*map(range, kernel.grid)):
        blocks = [x.block(step, args[:n]) for x in (*inputs, *outputs)]
        ids = [np.int32(i) for i in step]
        scalars = [_Memory(f"operand {i}", np.array(x), True) for i, x in enumerate(args[:n])]
        evaluation = _Step(kernel, step, columns(step), faults)
        evaluation.run(kernel.jaxpr, [*ids, *scalars, *blocks, *scratch])
        for x, block in zip((*inputs, *outputs), blocks):
            x.put_back(block)
    _check_end(kernel, outputs if complete else (), scratch, faults)
    return [device_put(o.memory.data[o.inside]) for o in outputs]


def _is_semaphore(aval: Any) -> bool:
    return isinstance(aval.memory_space, SemaphoreType)


def _columns(kernel: Kernel) -> Any:
    """The function from a step to the number of its column: steps of one column are ordered."""
    semantics = kernel.semantics or ("arbitrary",) * len(kernel.grid)
    parallel = [d for d, s in enumerate(semantics) if s == "parallel"]

    def column(step: tuple[int, ...]) -> int:
        number = 0
        for d in parallel:
            number = number * kernel.grid[d] + step[d]
        return number

    return column


def _check_end(
    kernel: Kernel, outputs: Sequence[_Operand], scratch: Sequence[_Memory], faults: Faults
) -> None:
    for memory, aval in zip(scratch, kernel.scratch):
        if _is_semaphore(aval) and memory.data.any():
            faults.add(
                f"the kernel {kernel.source} ends with the semaphore of {memory.name} at "
                f"{memory.data.tolist()}: a copy was not waited for, or signals exceed waits",
                ("semaphore", memory.name),
            )
        if isinstance(aval.memory_space, ACC) and memory.data.any():
            faults.add(
                f"the kernel {kernel.source} ends with products in the accumulator {memory.name}: "
                "read them with matmul_pop",
                ("accumulator", memory.name),
            )
    for output in outputs:
        written = output.memory.written[output.inside]
        if math.prod(kernel.grid) and not written.all():
            element = tuple(int(i) for i in np.argwhere(~written)[0])
            faults.add(
                f"the kernel {kernel.source} never writes element {element} of "
                f"{output.memory.name}, whose shape is {written.shape}",
                ("never written", output.memory.name),
            )


class _Step:
    """The evaluation of one step.

    Attributes:
      source: the line of the current equation.
      atoms: the operands of the current equation.
    """

    def __init__(self, kernel: Kernel, step: tuple[int, ...], column: int, faults: Faults):
        self.kernel = kernel
        self.faults = faults
        self.step = step
        self.column = column
        self.source: Any = None
        self.atoms: Sequence[Any] = ()
        self.rules = {
            get_p: self.get,
            swap_p: self.swap,
            addupdate_p: self.add,
            masked_get_p: self.masked_get,
            former_get_p: self.former_get,
            masked_swap_p: self.masked_swap,
            masked_add_p: self.masked_add,
            new_ref_p: self.new,
            empty_ref_p: self.empty,
            freeze_p: lambda ref: [_PartlyWritten.of(ref.data.copy(), ref.written)],
            lax.reshape_p: self.reshape,
            free_ref_p: self.free,
            poison_p: lambda ref, everywhere: [],
        }

    def run(self, jaxpr: Jaxpr, args: Sequence[Any]) -> list[Any]:
        """Evaluate a jaxpr on arrays and memory."""
        return interpret(jaxpr, args, self.apply)

    def apply(self, eqn: Eqn, values: list[Any]) -> list[Any]:
        """Evaluate an equation."""
        self.source = eqn.source or self.source
        prim = eqn.primitive
        access = self.rules.get(prim)
        if access is not None:
            self.atoms = eqn.invars
            return access(*values, **eqn.params)
        rule = prim.rules.get(run_jaxprs)
        if rule is not None:
            results = rule(self.run, values, **eqn.params)
            if results is not None:
                return list(results)
        if prim is lax.scan_p and not eqn.params["length"] and len(eqn.invars) == _n_kept(eqn):
            return values[eqn.params["num_consts"] :]  # a loop without steps over references
        if any(isinstance(x, _Memory) for x in values) and expand in prim.rules:
            avals = [v.aval for v in eqn.invars]
            return self.run(expanded(prim, avals, eqn.params), values)
        values = [x.view(np.ndarray) if type(x) is _PartlyWritten else x for x in values]
        results = prim.bind(*values, **eqn.params)
        return list(results) if prim.multiple_results else [results]

    def reshape(self, x: Any, **params: Any) -> list[Any]:
        if type(x) is not _PartlyWritten:
            return [lax.reshape_p.bind(x, **params)]
        shape = params["new_sizes"]
        return [_PartlyWritten.of(_array(x).reshape(shape), x.written.reshape(shape))]

    # Accesses

    def get(self, ref: _Memory, *operands: Any, index: Any) -> list[Any]:
        where = self.selection(ref, index, operands, "reads")
        self.check_read(ref, where, None)
        return [ref.data[where].copy()]

    def swap(self, ref: _Memory, value: Any, *operands: Any, index: Any) -> list[Any]:
        where = self.selection(ref, index, operands, "writes")
        old = ref.data[where].copy()
        self.write(ref, where, value, None)
        return [old]

    def add(self, ref: _Memory, value: Any, *operands: Any, index: Any) -> list[Any]:
        where = self.selection(ref, index, operands, "updates")
        self.check_read(ref, where, None)
        self.check_write(ref, where, None)
        np.add.at(ref.data, where, _array(value))
        return []

    def masked_get(
        self, ref: _Memory, mask: Any, other: Any, *operands: Any, index: Any
    ) -> list[Any]:
        mask, other = _array(mask), _array(other)
        where = self.selection(ref, index, operands, "reads", mask)
        self.check_read(ref, where, mask)
        return [np.where(mask, ref.data[where], other)]

    def former_get(
        self, ref: _Memory, mask: Any, other: Any, *operands: Any, index: Any
    ) -> list[Any]:
        mask, other = _array(mask), _array(other)
        where = self.selection(ref, index, operands, "reads", mask)
        data = np.where(mask, ref.data[where], other)
        return [_PartlyWritten.of(data, ref.written[where] | ~mask)]

    def masked_swap(
        self, ref: _Memory, value: Any, mask: Any, *operands: Any, index: Any
    ) -> list[Any]:
        mask = _array(mask)
        where = self.selection(ref, index, operands, "writes", mask)
        old = ref.data[where].copy()
        self.write(ref, where, value, mask)
        return [old]

    def masked_add(
        self, ref: _Memory, value: Any, mask: Any, *operands: Any, index: Any
    ) -> list[Any]:
        mask = _array(mask)
        where = self.selection(ref, index, operands, "updates", mask)
        self.check_read(ref, where, mask)
        self.check_write(ref, where, mask)
        np.add.at(ref.data, _chosen(where, mask), _array(value)[mask])
        return []

    def new(self, x: Any, **_: Any) -> list[Any]:
        memory = _Memory("new reference", np.array(_array(x)), True)
        if type(x) is _PartlyWritten:
            memory.name, memory.written = "the block of a result", x.written.copy()
        return [memory]

    def empty(self, *, ty: Any, memory_space: Any, **_: Any) -> list[Any]:
        data = np.full(ty.shape, unwritten_value(ty.dtype), ty.dtype)
        memory = _Memory("scoped memory", data, False)
        memory.is_semaphore = isinstance(memory_space, SemaphoreType)
        return [memory]

    def free(self, ref: _Memory) -> list[Any]:
        if ref.is_semaphore and ref.data.any():
            self.fail(
                f"frees a scoped semaphore at {ref.data.tolist()}: a copy was not waited for, or "
                "signals exceed waits,"
            )
        return []

    # Checks

    def selection(
        self, ref: _Memory, index: Any, operands: Sequence[Any], verb: str, mask: Any = None
    ) -> Any:
        """The index of an access in NumPy's form: positions along each axis, clamped if masked."""
        if index is None:
            return ...
        rest = zip(self.atoms[len(self.atoms) - len(operands) :], operands)
        where: list[Any] = []
        for entry, n in zip(index, ref.data.shape):
            if isinstance(entry, StaticSlice):
                where.append(np.arange(entry.size) * entry.stride + entry.start)
                continue
            atom, operand = next(rest)
            position = _array(operand).astype(np.int64)
            if isinstance(atom, Literal) and entry == INTEGER and -n <= position < 0:
                position = position + n  # written as a negative number: counted from the end
            if entry not in (INTEGER, INTEGER_ARRAY):
                position = position + np.arange(entry.size) * entry.stride
            where.append(position)
        mesh = open_mesh(index, where)
        return tuple(
            self.inside(ref, axis, position, verb, mask) for axis, position in enumerate(mesh)
        )

    def inside(self, ref: _Memory, axis: int, position: Any, verb: str, mask: Any) -> Any:
        """Positions along an axis, clamped; those that are not masked off have to be inside."""
        n = ref.data.shape[axis]
        outside = (position < 0) | (position >= n)
        if not outside.any():
            return position
        bad = outside if mask is None else outside & mask
        if bad.any():
            first = int(np.broadcast_to(position, bad.shape)[bad][0])
            self.fail(
                f"{verb} position {first} of axis {axis} of {ref.name}, whose shape is "
                f"{ref.data.shape}"
            )
        return np.clip(position, 0, max(n - 1, 0))

    def check_read(self, ref: _Memory, where: Any, mask: Any) -> None:
        """Check that elements were written, and not by another parallel step."""
        missing = ~ref.written[where]
        self.report(ref, where, missing, mask, "reads", "which was not written before")
        if ref.in_results:
            others = (ref.writer[where] >= 0) & (ref.writer[where] != self.column)
            self.report(ref, where, others, mask, "reads", "which a parallel step writes")
            ref.reader[_chosen(where, mask)] = self.column

    def check_write(self, ref: _Memory, where: Any, mask: Any) -> None:
        """Check that no other parallel step uses elements."""
        if ref.in_results:
            for last, what in ((ref.writer, "writes"), (ref.reader, "reads")):
                others = (last[where] >= 0) & (last[where] != self.column)
                self.report(ref, where, others, mask, "writes", f"which a parallel step {what}")
            ref.writer[_chosen(where, mask)] = self.column
        ref.written[_chosen(where, mask)] = True

    def write(self, ref: _Memory, where: Any, value: Any, mask: Any) -> None:
        """Write elements; those that were not written in ``value`` stay unwritten."""
        written = value.written if type(value) is _PartlyWritten else None
        former = None if written is None else ref.written[where].copy()
        self.check_write(ref, where, mask)
        chosen, value = _chosen(where, mask), _array(value)
        ref.data[chosen] = value if mask is None else value[mask]
        if written is not None:
            written = written | former
            ref.written[chosen] = written if mask is None else written[mask]

    def report(self, ref: _Memory, where: Any, bad: Any, mask: Any, verb: str, why: str) -> None:
        """Raise an error if there are bad elements."""
        bad = bad & _all_if_none(mask)
        if not bad.any():
            return
        first = np.unravel_index(int(np.argmax(bad)), bad.shape)
        if where is ...:
            element = tuple(int(i) for i in first)
        else:
            element = tuple(int(np.broadcast_to(p, bad.shape)[first]) for p in where)
        self.fail(f"{verb} element {element} of {ref.name}, {why}")

    def fail(self, what: str) -> None:
        self.faults.add(
            f"step {self.step} of the kernel {self.kernel.name} {what} "
            f"(at {summarize(self.source)})",
            (self.source, what.split()[0]),
        )


def _n_kept(eqn: Eqn) -> int:
    """Number of constants and carried values of a loop, which has no other operands."""
    return eqn.params["num_consts"] + eqn.params["num_carry"]


def _chosen(where: Any, mask: Any) -> Any:
    """The positions whose mask is true; masked-off ones may be clamped to others."""
    if mask is None:
        return where
    if where is ...:
        return mask
    return tuple(np.broadcast_to(p, mask.shape)[mask] for p in where)


def _all_if_none(mask: Any) -> Any:
    return True if mask is None else mask


def _array(x: Any) -> np.ndarray:
    if type(x) is _PartlyWritten:
        return x.view(np.ndarray)
    return np.asarray(x.scalar if type(x) is Literal else x)
