"""A kernel as the text of a module for Mosaic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from primax_core.extend import Literal

from .._cpu.facts import facts_of
from .._emission.coverage import is_covered, same_blocks
from .._emission.elements import identifier, unwritten
from .._emission.usage import accesses_of
from .._error_texts import reason_of
from .._kernel import Kernel
from .._semaphores import SemaphoreType, begins_with_zeros
from .._tpu_memory import ACC
from . import (
    control_rules,
    copy_rules,
    dot_rule,
    elementwise_rules,
    reduction_rules,
    reference_rules,
    remote_rules,
    shape_rules,
    types,
)
from .control_rules import branch
from .copied_blocks import with_copied_blocks
from .emitter import Emitter
from .errors import located
from .memory import Reference
from .params import parameter
from .registry import BACKEND, Context, lower_jaxpr
from .remote_rules import barrier_semaphore
from .values import Value
from .windows import (
    bounds_of,
    buffer_count,
    grid_arguments,
    grid_indices,
    is_first_visit,
    is_window,
    least_grid,
    needs_contents,
    reference_of,
    space_of,
    transform_function,
    visits_are_runs,
    window_attribute,
)

RULES: Final = (
    control_rules, copy_rules, dot_rule, elementwise_rules, reduction_rules, reference_rules,
    remote_rules, shape_rules,
)  # fmt: skip
"""Modules whose rules the function is emitted with."""


class Operand(NamedTuple):
    """An array that the call takes.

    Attributes:
      number: position of the kernel's operand, or of the result that the array is filled for.
      filled: whether the array has the contents of unwritten memory.
    """

    number: int
    filled: bool = False


@dataclass(frozen=True)
class Program:
    """A module for Mosaic.

    Attributes:
      name: name of the kernel.
      text: module with the function ``main`` and the functions of the index maps.
      operands: the arrays that the call takes.
      aliases: operands of the call and results that share memory.
      sizes: operands of the kernel that are computed sizes of the grid; they precede ``operands``.
      vmem_bytes: bytes of blocks, of which there are two each, and of scratch memory.
    """

    name: str
    text: str
    operands: tuple[Operand, ...]
    aliases: tuple[tuple[int, int], ...]
    vmem_bytes: int
    sizes: tuple[int, ...] = ()


def emit(kernel: Kernel) -> Program:
    """The program of a kernel.

    Steps of the grid run one after the other; blocks of the next step are copied meanwhile.

    Raises:
      MosaicError: if the kernel has an operation or a type that is not supported.
    """
    return _Module(with_copied_blocks(kernel)).program()


class _Module:
    """The parts of a module while it is built."""

    def __init__(self, kernel: Kernel):
        self.kernel = kernel
        self.emitter = Emitter(kernel)
        first = len(kernel.grid)
        self.n_prefetched, self.n_inputs = len(kernel.prefetched), len(kernel.inputs)
        self.first_output = self.n_prefetched + self.n_inputs
        refs = {v: i for i, v in enumerate(kernel.jaxpr.invars[first:])}
        accesses = accesses_of(kernel.jaxpr, refs)
        for a in accesses:
            if a.writes and a.ref < self.first_output:
                raise located(
                    "a kernel writes into the block of an operand, which the next steps may share: "
                    "use scratch memory",
                    kernel,
                    a.eqn,
                )
        self.used = {a.ref for a in accesses}
        self.used |= _passed_on(kernel, refs)
        self.parameters: list[str] = []
        self.windows: list[str] = []
        self.functions: list[str] = []
        self.operands: list[Operand] = []
        self.aliases: list[tuple[int, int]] = []
        self.vmem_bytes = 0

    def program(self) -> Program:
        kernel, e = self.kernel, self.emitter
        ids = grid_indices(kernel)
        self.parameters += [f"{i.name}: i32" for i in grid_arguments(kernel)]
        self.prefetched = [self._prefetched(j) for j in range(self.n_prefetched)]
        inputs = [self._input(i) for i in range(self.n_inputs)]
        contents = [self._contents(o, inputs) for o in range(len(kernel.outputs))]
        outputs = [self._output(o) for o in range(len(kernel.outputs))]
        scratch = [self._scratch(k) for k in range(len(kernel.scratch))]
        self._reset_counters(scratch, ids)
        for o, before in enumerate(contents):
            self._begin(o, outputs[o], before, ids)
        lower_jaxpr(e, kernel.jaxpr, [*ids, *self.prefetched, *inputs, *outputs, *scratch])
        return Program(
            identifier(kernel.name), self._text(), tuple(self.operands),
            tuple(self.aliases), self.vmem_bytes + e.vmem_bytes, tuple(range(len(kernel.dynamic))),
        )  # fmt: skip

    # Parameters of the function

    def _prefetched(self, j: int) -> Reference:
        aval = self.kernel.prefetched[j]
        shape = aval.shape or (1,)
        squeezed = None if aval.shape else (True,)
        ref = Reference(f"%p{j}", aval.dtype, shape, "smem", squeezed)
        if np.dtype(types.stored(aval.dtype)).itemsize != 4:
            raise located(
                f"prefetched scalar {j} has elements of type {np.dtype(aval.dtype).name}; they "
                "have 32 bits: convert it to int32 or float32",
                self.kernel,
            )
        self.parameters.append(f"{ref.name}: {ref.type}")
        self.operands.append(Operand(j))
        return ref

    def _input(self, i: int) -> Reference | None:
        number = self.n_prefetched + i
        if number not in self.used:
            return None
        return self._window(self.kernel.inputs[i], f"%a{i}", f"in{i}", Operand(number))

    def _window(
        self, mapping: Any, name: str, transform: str, operand: Operand | None
    ) -> Reference:
        """A parameter with the blocks of an array."""
        space = space_of(self.kernel, mapping)
        ref = reference_of(mapping, name, space)
        self.parameters.append(f"{name}: {ref.type}")
        self.windows.append(window_attribute(mapping, space, transform))
        if is_window(space):
            function = transform_function(self.kernel, mapping, transform, self.prefetched)
            self.functions.append(function)
            if space == "vmem":
                size = types.padded_bytes(ref.shape, ref.element)
                self.vmem_bytes += buffer_count(mapping) * size
        if operand is not None:
            self.operands.append(operand)
        return ref

    def _whole(self, o: int, operand: Operand) -> None:
        """A parameter whose memory a result takes over."""
        aval = self.kernel.outputs[o].aval
        shape = aval.shape or (1,)
        ref = Reference(f"%w{o}", aval.dtype, shape, "any")
        self.parameters.append(f"{ref.name}: {ref.type}")
        self.windows.append("{}")
        self.aliases.append((len(self.operands), o))
        self.operands.append(operand)

    def _contents(self, o: int, inputs: Sequence[Reference | None]) -> Reference | bool:
        """The source of the first contents of a result's blocks.

        It is True for those of unwritten memory, and False if no step uses or keeps them.
        """
        kernel = self.kernel
        mapping = kernel.outputs[o]
        source = next((i for i, out in kernel.aliases if out == o), None)
        windowed = is_window(space_of(kernel, mapping))
        covered = windowed and is_covered(mapping, least_grid(kernel))
        needed = windowed and needs_contents(kernel, o)
        if needed and not visits_are_runs(kernel, mapping):
            raise located(
                f"{mapping.name}: steps that do not follow each other share a block and read or "
                "keep its contents, which are then no longer in the memory of the core: make the "
                "dimensions with which the block does not move the last ones of the grid",
                kernel,
            )
        if source is None:
            if not covered:
                self._whole(o, Operand(o, filled=True))
            return needed
        i = source - self.n_prefetched
        ref = inputs[i] if i >= 0 else None
        same = i >= 0 and same_blocks(kernel.inputs[i], mapping)
        if same and ref is not None and ref.space == reference_of(mapping, "", "vmem").space:
            self.aliases.append((self.operands.index(Operand(source)), o))
            return ref if needed else False
        before: Reference | bool = False
        if needed:
            before = self._window(mapping, f"%b{o}", f"before{o}", Operand(source))
        if not covered or source not in self.used:
            self._whole(o, Operand(source))
        return before

    def _output(self, o: int) -> Reference:
        return self._window(self.kernel.outputs[o], f"%o{o}", f"out{o}", None)

    def _scratch(self, k: int) -> Reference:
        aval = self.kernel.scratch[k]
        space, dtype = aval.memory_space, aval.dtype
        shape, squeezed = (aval.shape, None) if aval.shape else ((1,), (True,))
        if space is SemaphoreType.DMA:
            text, _ = self.emitter.memory(types.DMA_SEMAPHORE, aval.shape, "semaphore_mem")
            return Reference(text, dtype, aval.shape, "semaphore_mem")
        if isinstance(space, SemaphoreType) and self.kernel.communicates:
            if space is SemaphoreType.BARRIER:
                return self._barrier()
            text, _ = self.emitter.memory(types.SEMAPHORE, aval.shape, "semaphore_mem")
            semaphore = types.SEMAPHORE
            return Reference(text, dtype, aval.shape, "semaphore_mem", semaphore=semaphore)
        if isinstance(space, SemaphoreType):
            name = "smem"  # only the kernel itself signals it, so that a counter suffices
        else:
            plain = space is None or isinstance(space, ACC)
            name = "vmem" if plain else str(getattr(space, "value", space))
            name = name if aval.shape else "smem"
        if name not in ("vmem", "smem"):
            raise located(
                f"scratch_shapes[{k}] has the memory space {space}; scratch memory is in VMEM or "
                "SMEM",
                self.kernel,
            )
        try:
            element = types.element(types.stored(dtype))
        except NotImplementedError as error:
            raise located(f"scratch_shapes[{k}]: {reason_of(error)}", self.kernel) from None
        text, _ = self.emitter.memory(element, shape, name)
        return Reference(text, dtype, shape, name, squeezed)

    def _barrier(self) -> Reference:
        """The semaphore of `tpu.get_barrier_semaphore`."""
        kernel = self.kernel
        if parameter(kernel.compiler_params, "collective_id") is None:
            raise located(
                "get_barrier_semaphore in a kernel without a collective_id: number the kernels "
                "that communicate, by compiler_params=tpu.CompilerParams(collective_id=0)",
                kernel,
            )
        spaces = [a.memory_space for a in kernel.scratch]
        if spaces.count(SemaphoreType.BARRIER) > 1:
            raise located(
                "get_barrier_semaphore with several tags: a TPU has one such semaphore in each "
                "kernel; use it for all, or scratch memory of type SemaphoreType.REGULAR",
                kernel,
            )
        return barrier_semaphore(Context(BACKEND, self.emitter, None, set()))

    # The body

    def _reset_counters(self, scratch: Sequence[Reference], ids: Sequence[Value]) -> None:
        """Set semaphores that are counters, and accumulators, to 0 at the first step."""
        e = self.emitter
        counters = [
            r for r, a in zip(scratch, self.kernel.scratch)
            if begins_with_zeros(a.memory_space) and r.space in ("smem", "vmem")
        ]  # fmt: skip
        if not counters:
            return
        first = e.constant(True, types.BOOL)
        for i in ids:
            start = e.compare("eq", i, e.index(0))
            first = start if first.known else e.binary("arith.andi", first, start)

        def write() -> list[Value]:
            for r in counters:
                zero = e.constant(0, r.dtype, r.block_shape)
                r.write(Context(BACKEND, e, None, set()), zero, None, ())
            return []

        branch(e, first, write, list)

    def _begin(
        self, o: int, ref: Reference, before: Reference | bool, ids: Sequence[Value]
    ) -> None:
        """Write the first contents of a result's block, at the first step on it."""
        if before is False:
            return
        e = self.emitter
        context = Context(BACKEND, e, None, set())
        sizes = [e.index(n) for n in self.kernel.grid]
        for j, d in enumerate(self.kernel.dynamic):
            sizes[d] = self.prefetched[j].read(context, None, ())
        mapping = self.kernel.outputs[o]
        first = is_first_visit(e, self.kernel, mapping, ids, sizes, self.prefetched)

        def write() -> list[Value]:
            if isinstance(before, Reference):
                x = before.read(context, None, ())
            else:
                fill = unwritten(ref.dtype)
                x = e.constant(fill, ref.dtype, ref.block_shape)
            ref.write(context, x, None, ())
            return []

        if first is None:
            write()
        else:
            branch(e, first, write, list)

    def _text(self) -> str:
        kernel, e = self.kernel, self.emitter
        parallel = [s == "parallel" for s in kernel.semantics or ()]
        if kernel.semantics is None:
            parallel = list(facts_of(kernel).parallel)
        if kernel.communicates:  # one core has the semaphores that other devices signal
            parallel = [False] * len(kernel.grid)
        words = ["parallel" if p else "arbitrary" for p in parallel or [False]]
        semantics = ", ".join(f"#tpu.dimension_semantics<{w}>" for w in words)
        parameters = self.parameters + [f"{name}: {type_}" for name, type_ in e.scratch]
        attributes = [
            f"dimension_semantics = [{semantics}]",
            f"iteration_bounds = {types.array_attribute(bounds_of(kernel))}",
            f"scalar_prefetch = {self.n_prefetched} : i64",
            f"scratch_operands = {len(e.scratch)} : i64",
            "tpu.core_type = #tpu.core_type<tc>",
            f"window_params = [{', '.join(self.windows)}]",
        ]
        body = "\n".join(e.lines)
        return (
            f"func.func @main({', '.join(parameters)}) attributes {{{', '.join(attributes)}}} {{\n"
            f"{body}\n  return\n}}\n" + "".join(self.functions)
        )


def _passed_on(kernel: Kernel, refs: Any) -> set[int]:
    """References that operations other than reads and writes take."""
    return {
        refs[v] for eqn in kernel.jaxpr.eqns for v in eqn.invars
        if type(v) is not Literal and v in refs
    }  # fmt: skip
