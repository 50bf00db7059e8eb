"""A kernel: a program over references to blocks, with a grid and the blocks of its operands."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from primax_core.extend import (
    AbstractRef,
    Jaxpr,
    ShapedArray,
    Tracer,
    discharge_jaxpr,
    stage,
    typeof,
)
from primax_core.extend.runtime import bounded_cache

from . import _grid
from ._block_mapping import INDEX, BlockMapping
from ._content import value_key
from ._devices import Axes, devices_of_kernel, unchecked
from ._on_demand import NeedsMemory, memory_from, references_in
from ._random_bits import STATE, NeedsState, state_in
from ._remote_operations import axes_of, communicates


@dataclass(frozen=True, eq=False)
class GridMapping:
    """Grid of a kernel, and the blocks of its operands.

    Attributes:
      name: name of the kernel.
      source: name, file and line of the function.
      grid: number of steps along each dimension, `UNKNOWN_SIZE` where it is computed.
      dynamic: the dimensions whose size is computed; the first prefetched scalars are the sizes.
      prefetched: types of the prefetched scalars.
      inputs, outputs: the blocks of the operands and of the results.
      scratch: types of the references to scratch memory.
      aliases: pairs of an operand and the result that begins with its contents.
      semantics: ``"parallel"`` or ``"arbitrary"`` for each dimension; ``None``: undeclared.
      compiler_params: parameters of backends.
    """

    name: str
    source: str
    grid: tuple[int, ...]
    dynamic: tuple[int, ...]
    prefetched: tuple[ShapedArray, ...]
    inputs: tuple[BlockMapping, ...]
    outputs: tuple[BlockMapping, ...]
    scratch: tuple[AbstractRef, ...]
    aliases: tuple[tuple[int, int], ...]
    semantics: tuple[str, ...] | None
    compiler_params: Any

    @property
    def out_avals(self) -> list[ShapedArray]:
        """Types of the results."""
        return [m.aval for m in self.outputs]

    @property
    def ref_avals(self) -> list[AbstractRef]:
        """Types of the references that the function receives."""
        refs = [AbstractRef(a) for a in self.prefetched]
        refs += [m.ref_aval for m in (*self.inputs, *self.outputs)]
        return [*refs, *self.scratch]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name}, grid={self.grid})"


@dataclass(frozen=True, eq=False, repr=False)
class Kernel(GridMapping):
    """A traced kernel. Kernels with equal contents are equal.

    Attributes:
      jaxpr: the kernel, from the grid's indices and references to prefetched scalars, blocks of
        operands and of results, and scratch memory.
    """

    jaxpr: Jaxpr

    @cached_property
    def key(self) -> Hashable:
        """The contents: equal kernels have equal keys."""
        parts = [value_key(getattr(self, f.name)) for f in fields(GridMapping)]
        return (type(self), *parts, value_key(self.jaxpr))

    @cached_property
    def _hash(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Kernel) or self._hash != other._hash:
            return False
        return self.key == other.key

    def __hash__(self) -> int:
        return self._hash

    def explain_lines(self) -> list[str]:
        """The name, grid and blocks, which ``explain`` lists."""
        sizes = ("computed" if n == _grid.UNKNOWN_SIZE else str(n) for n in self.grid)
        lines = [self.name, f"grid: {' x '.join(sizes) or '1'}"]
        for m in (*self.inputs, *self.outputs):
            block = m.ref_aval.inner_aval
            lines.append(f"{m.name}: {block} of {m.aval} at ({', '.join(m.index_texts)})")
        return lines

    @cached_property
    def communicates(self) -> bool:
        """Return True if the kernel copies or signals to other devices."""
        return communicates(self.jaxpr)

    @property
    def depends_on_device(self) -> bool:
        """Return True if equal operands give different results on different devices."""
        return bool(self.device_axes)

    @cached_property
    def device_axes(self) -> Axes:
        """The axes of the mesh whose devices run the kernel; ``()`` if it depends on none."""
        original = getattr(self, "original", None)  # of a batch, or of values and tangents
        return axes_of(self.jaxpr) if original is None else original.device_axes

    @cached_property
    def discharged(self) -> Jaxpr:
        """The kernel as a function of arrays to the final contents of all references."""
        with self.without_placements():
            return discharge_jaxpr(self.jaxpr)

    def without_placements(self) -> AbstractContextManager[None]:
        """Context manager for jaxprs that are kept: their types say nothing about devices."""
        return unchecked(self.device_axes) if self.device_axes else nullcontext()


def check_result(mapping: GridMapping, result: Any) -> None:
    """Check that a kernel returned nothing.

    Raises:
      ValueError: if it returned a value.
    """
    if result is not None:
        raise ValueError(
            f"the kernel {mapping.source} returns {type(result).__name__}: a kernel writes its "
            "results into references and returns None"
        )


class CapturedReferences(ValueError):
    """A kernel uses references from outside, which `kernel` passes as operands.

    Attributes:
      references: the references, in the order of their first use.
    """

    def __init__(self, mapping: GridMapping, references: list[Any]):
        types = ", ".join(str(typeof(r)) for r in references)
        super().__init__(
            f"the kernel {mapping.source} uses references from outside ({types}): pass them as "
            "operands, or use pl.kernel"
        )
        self.references = references


def trace(fun: Callable[..., Any], mapping: GridMapping) -> Kernel:
    """Trace a function of references.

    Raises:
      ValueError: if it returns a value, or uses an array from outside.
    """
    grid = mapping.grid

    def body(*args: Any) -> list[Any]:
        sizes, refs = _grid.sizes_of(grid, mapping.dynamic, args[len(grid) :])
        own = len(refs) - len(added)
        extra = list(refs[own:])
        state = None if state_at is None else extra.pop(state_at)
        position = _grid.at(args[: len(grid)], sizes)
        with position, state_in(state), memory_from(references_in(extra)):
            result = fun(*refs[:own])
        check_result(mapping, result)
        return []

    state_at: int | None = None
    added: list[AbstractRef] = []  # what the kernel asks for is scratch memory, in this order
    while True:
        avals = [INDEX] * len(grid) + mapping.ref_avals + added
        try:
            with devices_of_kernel():
                jaxpr = stage(body, avals, mapping.name)
            break
        except NeedsState:
            state_at = len(added)
            added.append(STATE)
        except NeedsMemory as request:
            added.append(request.aval)
    mapping = replace(mapping, scratch=(*mapping.scratch, *added))
    captured = [c for c in jaxpr.consts if np.ndim(c) or isinstance(c, Tracer)]
    if captured and all(isinstance(typeof(c), AbstractRef) for c in captured):
        raise CapturedReferences(mapping, captured)
    if captured:
        types = ", ".join(str(typeof(c)) for c in captured)
        raise ValueError(
            f"the kernel {mapping.source} uses arrays from outside ({types}): pass them as operands"
        )
    attributes = {f.name: getattr(mapping, f.name) for f in fields(GridMapping)}
    kernel = Kernel(**attributes, jaxpr=jaxpr)
    # Equal kernels are one object, so that caches that compare parameters compare identities.
    return _kernels.setdefault(kernel, kernel)


_kernels: Final = bounded_cache(1024)
