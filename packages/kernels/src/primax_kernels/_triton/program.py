"""A kernel as the text of a Triton function, with its grid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from .._block_mapping import Extent
from .._cpu.facts import facts_of
from .._emission.coverage import depends_on, is_covered, same_blocks
from .._emission.elements import identifier
from .._emission.usage import Access, accesses_of
from .._error_texts import reason_of
from .._kernel import Kernel
from .._tpu_memory import ACC
from . import (
    control_rules,
    dot_rule,
    elementwise_rules,
    gpu_rules,
    reduction_rules,
    reference_rules,
    shape_rules,
    types,
)
from .blocks import block_at, pointer_argument
from .emitter import Emitter
from .errors import TritonError, located
from .memory import MemoryRef, RegisterRef, as_int32
from .params import Resolved, resolve
from .registry import lower_jaxpr
from .types import INT32
from .values import Value

RULES: Final = (
    control_rules, dot_rule, elementwise_rules, gpu_rules, reduction_rules, reference_rules,
    shape_rules,
)  # fmt: skip
"""Modules whose rules the function is emitted with."""

_AXES: Final = "xyz"
_MAX_GRID: Final = (2**31 - 1, 65535, 65535)
_MAX_REGISTERS: Final = 1 << 16
"""The most elements of a result's block that is held in registers."""


@dataclass(frozen=True)
class Program:
    """A function for Triton's compiler.

    Attributes:
      name: name of the function.
      text: module with the function, whose parameters are pointers to operands and results.
      grid: number of programs along x, y and z.
      params: parameters of the compiler.
      operands: positions of the kernel's operands that are passed; one may be passed twice.
      filled: results that begin with unwritten contents, passed as operands after the others.
      aliases: operands, in the order in which they are passed, and results that share memory.
      sequential: dimensions of the grid that are loops of the function.
    """

    name: str
    text: str
    grid: tuple[int, int, int]
    params: Resolved
    operands: tuple[int, ...]
    filled: tuple[int, ...]
    aliases: tuple[tuple[int, int], ...]
    sequential: tuple[int, ...]


def emit(kernel: Kernel, params: Any = None) -> Program:
    """The program of a kernel.

    Independent steps of the grid are programs that run in parallel. Other dimensions are loops of
    the function, and scratch memory and results that it reads are held in registers.

    Args:
      params: parameters of the compiler, see `resolve`.

    Raises:
      TritonError: if the kernel has an operation or a type that is not supported.
    """
    return _Function(kernel, resolve(params, kernel.jaxpr)).program()


_STRIDE: Final = 256
"""The number of programs that divide a dimension of computed size."""


class _Function:
    """The parts of a function while it is built."""

    def __init__(self, kernel: Kernel, params: Resolved):
        self.kernel = kernel
        self.params = params
        self.emitter = Emitter(kernel)
        self.parallel = _parallel_dimensions(kernel)
        # A dimension of computed size is a loop, also of programs that divide it.
        self.sequential = [
            d for d, p in enumerate(self.parallel) if not p or d in kernel.dynamic
        ]  # fmt: skip
        first = len(kernel.grid)
        refs = {v: i for i, v in enumerate(kernel.jaxpr.invars[first:])}
        self.n_prefetched, self.n_inputs = len(kernel.prefetched), len(kernel.inputs)
        self.first_output = self.n_prefetched + self.n_inputs
        self.accesses: dict[int, list[Access]] = {i: [] for i in refs.values()}
        for a in accesses_of(kernel.jaxpr, refs):
            self.accesses[a.ref].append(a)
        self.outputs = [self._plan_of(o) for o in range(len(kernel.outputs))]
        self.operands = list(range(self.first_output))
        self.aliases: list[tuple[int, int]] = []
        self.filled: list[int] = []
        self._share_memory()

    # Results

    def _plan_of(self, o: int) -> str:
        """Storage of a result: written at once, in registers, or in memory that is read too."""
        mapping = self.kernel.outputs[o]
        accesses = self.accesses[self.first_output + o]
        aliased = any(o == out for _, out in self.kernel.aliases)
        certain = any(a.writes and a.whole and a.certain and not a.reads for a in accesses)
        simple = not any(a.reads for a in accesses) and (certain or aliased)
        if simple and (len(accesses) == 1 or not accesses):
            return "written"
        size = 1
        for n in types.padded(mapping.block_shape):
            size *= n
        arrays = any(_has_positions(a.eqn.params["index"]) for a in accesses)
        if size <= _MAX_REGISTERS and not arrays and not depends_on(mapping, self.sequential):
            return "registers"
        return "written" if simple else "memory"

    def _share_memory(self) -> None:
        """Decide which results begin with contents of operands or unwritten contents."""
        aliased = set()
        for i, o in self.kernel.aliases:
            aliased.add(o)
            if not self.accesses[i] or self._reads_first(i, o):
                self.aliases.append((i, o))
            else:  # XLA copies an operand that is passed twice
                self.aliases.append((len(self.operands), o))
                self.operands.append(i)
        for o, mapping in enumerate(self.kernel.outputs):
            grid = [0 if d in self.kernel.dynamic else n for d, n in enumerate(self.kernel.grid)]
            partial = self.outputs[o] == "memory" or not is_covered(mapping, grid)
            if o not in aliased and partial:
                self.aliases.append((len(self.operands) + len(self.filled), o))
                self.filled.append(o)

    def _reads_first(self, i: int, o: int) -> bool:
        """Return True if an operand is read before a result replaces it, in one block."""
        if i < self.n_prefetched or self.sequential:
            return False
        if not same_blocks(self.kernel.inputs[i - self.n_prefetched], self.kernel.outputs[o]):
            return False
        if self.outputs[o] == "registers":
            return True
        writes = [a.at for a in self.accesses[self.first_output + o]]
        return not writes or max(a.at for a in self.accesses[i]) < min(writes)

    def _is_separated(self, o: int) -> bool:
        """Return True if threads wait for each other before each access to a result's memory."""
        accesses = self.accesses[self.first_output + o]
        moves = any(a.looped and not a.whole for a in accesses) or any(
            e.step != e.size for e in self.kernel.outputs[o].extents
        )
        read = any(
            out == o and i < self.first_output and bool(self.accesses[i]) for i, out in self.aliases
        )
        return len(accesses) > 1 or moves or read

    # The function

    def program(self) -> Program:
        e = self.emitter
        kernel = self.kernel
        ids, grid = self._programs()
        n = len(self.operands) + len(self.filled)
        prefetched = [
            MemoryRef(
                e, f"%p{j}", a.dtype, a.shape, [e.index(0)] * len(a.shape),
                [Extent(k, k) for k in a.shape],
            )
            for j, a in enumerate(kernel.prefetched)
        ]  # fmt: skip
        for k, a in enumerate(kernel.scratch):
            if isinstance(a.memory_space, ACC):
                raise located(
                    f"scratch_shapes[{k}] is an accumulator of a TPU's matrix unit (ACC); use "
                    "scratch memory, and products",
                    kernel,
                )
        scratch = [_unwritten(e, a.shape, a.dtype) for a in kernel.scratch]
        first_ids = [e.index(0) if x is None else x for x in ids]
        held: dict[int, RegisterRef] = {}
        for o, held_in in enumerate(self.outputs):
            if held_in == "registers":
                held[o] = self._initial(o, first_ids, prefetched, f"%p{n + o}")

        def step(step_ids: Sequence[Value]) -> None:
            refs: list[Any] = [*prefetched]
            for i, m in enumerate(kernel.inputs):
                j = self.n_prefetched + i
                used = bool(self.accesses[j])
                refs.append(block_at(e, m, f"%p{j}", step_ids, prefetched) if used else None)
            for o, m in enumerate(kernel.outputs):
                refs.append(
                    held[o] if o in held else block_at(
                        e, m, f"%p{n + o}", step_ids, prefetched, self._is_separated(o)
                    )
                )  # fmt: skip
            lower_jaxpr(e, kernel.jaxpr, [*step_ids, *refs, *scratch])

        self.programs = tuple(ids)
        self.bounds = {
            d: e.clamp(as_int32(e, ref.read(None, ())), 0, 2**31 - 1)
            for d, ref in zip(kernel.dynamic, prefetched)
        }  # fmt: skip
        self._steps(list(self.sequential), list(ids), [*scratch, *held.values()], step)
        for o, ref in held.items():
            self._block(o, first_ids, prefetched, f"%p{n + o}").write(ref.value, None, ())
        return Program(
            self._name(), self._text(n), grid, self.params, tuple(self.operands),
            tuple(self.filled), tuple(self.aliases), tuple(self.sequential),
        )  # fmt: skip

    def _block(
        self, o: int, ids: Sequence[Value], prefetched: Sequence[MemoryRef], pointer: str
    ) -> MemoryRef:
        separated = any(out == o for _, out in self.kernel.aliases)
        mapping = self.kernel.outputs[o]
        return block_at(self.emitter, mapping, pointer, ids, prefetched, separated)

    def _initial(
        self, o: int, ids: Sequence[Value], prefetched: Sequence[MemoryRef], pointer: str
    ) -> RegisterRef:
        """Registers with the first contents of a result's block."""
        mapping = self.kernel.outputs[o]
        if any(out == o for _, out in self.kernel.aliases):
            contents = self._block(o, ids, prefetched, pointer).read(None, ())
            return RegisterRef(self.emitter, contents)
        return _unwritten(self.emitter, mapping.block_shape, mapping.aval.dtype)

    def _name(self) -> str:
        return identifier(self.kernel.name)

    def _text(self, n: int) -> str:
        kernel = self.kernel
        avals = [*kernel.prefetched, *(m.aval for m in kernel.inputs)]
        dtypes_ = [avals[i].dtype for i in self.operands]
        dtypes_ += [kernel.outputs[o].aval.dtype for o in self.filled]
        dtypes_ += [m.aval.dtype for m in kernel.outputs]
        listed = ", ".join(
            pointer_argument(j, types.in_memory(dtype)) for j, dtype in enumerate(dtypes_)
        )
        body = "\n".join("  " + line for line in self.emitter.lines)
        return (
            f"module {{\n  tt.func public @{self._name()}({listed}) {{\n"
            f"{body}\n    tt.return\n  }}\n}}\n"
        )

    # The grid

    def _programs(self) -> tuple[list[Value | None], tuple[int, int, int]]:
        """The indices of the parallel dimensions, and the numbers of programs."""
        e = self.emitter
        sizes = [
            _STRIDE if d in self.kernel.dynamic else n for d, n in enumerate(self.kernel.grid)
        ]  # fmt: skip
        ids: list[Value | None] = [
            e.index(0) if p and n == 1 else None for n, p in zip(sizes, self.parallel)
        ]
        wide = [d for d, (n, p) in enumerate(zip(sizes, self.parallel)) if p and n != 1]
        if len(wide) <= 3 and all(sizes[d] <= m for d, m in zip(wide, _MAX_GRID)):
            for d, axis in zip(wide, _AXES):
                ids[d] = _program_id(e, axis, sizes[d])
            numbers = [sizes[d] for d in wide] + [1] * (3 - len(wide))
            return ids, (numbers[0], numbers[1], numbers[2])
        total = 1
        for d in wide:
            total *= sizes[d]
        rest = _program_id(e, "x", total)
        left = total
        for d in reversed(wide):
            n, left = sizes[d], left // sizes[d]
            ids[d] = rest if left == 1 else e.binary("arith.remsi", rest, e.index(n), (0, n - 1))
            rest = e.binary("arith.divsi", rest, e.index(n), (0, left - 1)) if left > 1 else rest
        return ids, (total, 1, 1)

    def _steps(
        self, dimensions: Sequence[int], ids: list[Any], refs: Sequence[RegisterRef],
        step: Callable[[Sequence[Value]], None],
    ) -> None:  # fmt: skip
        """Emit the sequential dimensions of the grid as loops.

        The first and the last iteration of the innermost loop stand alone if the kernel has
        conditions, which are then decided.
        """
        e = self.emitter
        if not dimensions:
            step(ids)
            return
        d, rest = dimensions[0], dimensions[1:]
        n = self.kernel.grid[d]

        def at(number: Value) -> None:
            ids[d] = number
            self._steps(rest, ids, refs, step)

        def body(number: Value, _: Sequence[Value]) -> list[Value]:
            at(number)
            return []

        if d in self.bounds:
            program = self.programs[d]
            start, stride = (0, 1) if program is None else (program, _STRIDE)
            control_rules.for_loop(e, start, self.bounds[d], [], refs, body, stride)
            return
        peeled = not rest and any(q.primitive.name == "cond" for q in self.kernel.jaxpr.eqns)
        first, last = (1, n - 1) if peeled else (0, n)
        if n == 1 or peeled:
            at(e.index(0))
        if n > 1:
            if last > first:
                control_rules.for_loop(e, first, last, [], refs, body)
            if peeled:
                at(e.index(n - 1))


def _parallel_dimensions(kernel: Kernel) -> tuple[bool, ...]:
    """For each dimension of the grid whether programs divide it.

    In a grid of computed size these are the ones that the kernel declares.
    """
    if not kernel.dynamic:
        return facts_of(kernel).parallel
    words = kernel.semantics or ("arbitrary",) * len(kernel.grid)
    return tuple(word == "parallel" for word in words)


def _program_id(e: Emitter, axis: str, n: int) -> Value:
    return e.op(f"tt.get_program_id {axis} : i32", INT32, (), (0, n - 1))


def _unwritten(e: Emitter, shape: tuple[int, ...], dtype: Any) -> RegisterRef:
    try:
        types.element(dtype)
    except TritonError as error:
        raise located(reason_of(error), e.kernel) from None
    return RegisterRef(e, e.constant(types.unwritten(dtype), dtype, shape))


def _has_positions(index: Any) -> bool:
    return index is not None and any(entry == "integer_array" for entry in index)
