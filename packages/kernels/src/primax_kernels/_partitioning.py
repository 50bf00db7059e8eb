"""Kernels whose grid is divided among devices."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, Final, NamedTuple

import numpy as np

from primax_core import lax
from primax_core.extend import (
    AbstractRef,
    Jaxpr,
    Literal,
    ShapedArray,
    Var,
    eval_jaxpr,
    lowering,
    stage,
)
from primax_core.extend.traces import named_axes, trace_function

from ._block_mapping import INDEX, BlockMapping
from ._cpu.facts import axis_of, facts_of
from ._kernel import Kernel

Names = tuple[str, ...]
"""Axes of a mesh."""

_MESH: Final = re.compile(r'mesh<\[((?:"[^"]*"=\d+(?:, )?)*)\]>')
_AXIS: Final = re.compile(r'"([^"]*)"=(\d+)')
_DIMENSION: Final = re.compile(r"\{([^{}]*)\}")
_NAME: Final = re.compile(r'"([^"]*)"')


class DividedDimension(NamedTuple):
    """A dimension of the grid that devices divide.

    Attributes:
      number: the dimension.
      axes: for each operand (without prefetched scalars) and each result the axis that is divided
        with it; ``None``: the array stays whole.
    """

    number: int
    axes: tuple[int | None, ...]


Division = tuple[DividedDimension, ...]


# Rules


def division_of(kernel: Kernel, rule: str | None) -> Division:
    """The dimensions of the grid that devices may divide.

    Args:
      rule: letters for the axes of operands and results; ``None`` for all that may be divided.

    Raises:
      TypeError, ValueError: if the rule does not fit the kernel.
    """
    if kernel.dynamic:
        raise ValueError(
            f"the kernel {kernel.source} has a grid of computed size, which devices cannot divide"
        )
    if rule is None:
        numbers = range(len(kernel.grid))
        return tuple(d for n in numbers if (d := _all_axes(kernel, n)) is not None)
    if not isinstance(rule, str):
        raise TypeError(
            f"partitioned takes a rule such as 'b _, _ -> b _', or no argument, got {rule!r}"
        )
    return _by_rule(kernel, rule)


def _mappings(kernel: Kernel) -> tuple[BlockMapping, ...]:
    return (*kernel.inputs, *kernel.outputs)


def _axis(kernel: Kernel, mapping: BlockMapping, number: int) -> int | None:
    """The axis of an array that can be divided with a dimension into parts of whole blocks."""
    axis = axis_of(mapping, number, kernel.grid)
    if axis is None or mapping.aval.shape[axis] % mapping.extents[axis].size:
        return None
    return axis


def _all_axes(kernel: Kernel, number: int) -> DividedDimension | None:
    """A dimension with all axes that move with it; ``None`` if it cannot be divided."""
    axes = tuple(_axis(kernel, m, number) for m in _mappings(kernel))
    divided = DividedDimension(number, axes)
    return None if _obstacle(kernel, divided) else divided


def _obstacle(kernel: Kernel, divided: DividedDimension) -> str | None:
    """The reason why a dimension cannot be divided so."""
    facts, n_in = facts_of(kernel), len(kernel.inputs)
    if not facts.parallel[divided.number]:
        reason = facts.reasons[divided.number].partition(": ")[2]
        return f"dimension {divided.number} of the grid is sequential: {reason}"
    if kernel.grid[divided.number] < 2:
        return f"dimension {divided.number} of the grid has {kernel.grid[divided.number]} steps"
    for axis, m in zip(divided.axes[n_in:], kernel.outputs):
        if axis is None:
            return f"{m.name} has no axis that is divided with it; all results have one"
    for i, o in kernel.aliases:
        j = i - len(kernel.prefetched)
        if j < 0 or divided.axes[j] != divided.axes[n_in + o]:
            return f"result {o} begins with operand {i}, which is not divided as the result is"
    return None


def _by_rule(kernel: Kernel, rule: str) -> Division:
    letters = _letters(kernel, rule)
    mappings = _mappings(kernel)
    divisions: dict[str, DividedDimension] = {}
    for j, (names, m) in enumerate(zip(letters, mappings)):
        for axis, letter in enumerate(names):
            if letter == "_":
                continue
            moving = [d for d in range(len(kernel.grid)) if _axis(kernel, m, d) == axis]
            if not moving:
                raise ValueError(
                    f"the partition {rule!r} of the kernel {kernel.source} has the letter {letter} "
                    f"for axis {axis} of {m.name}, whose blocks do not divide it along a "
                    "dimension of the grid of their own: write _"
                )
            known = divisions.setdefault(
                letter, DividedDimension(moving[0], (None,) * len(mappings))
            )  # fmt: skip
            if known.number != moving[0]:
                raise ValueError(
                    f"the partition {rule!r} of the kernel {kernel.source} has the letter {letter} "
                    f"for axes that move with the dimensions {known.number} and {moving[0]} of the "
                    "grid"
                )
            axes = (*known.axes[:j], axis, *known.axes[j + 1 :])
            divisions[letter] = DividedDimension(known.number, axes)
    for letter, divided in divisions.items():
        obstacle = _obstacle(kernel, divided)
        if obstacle is not None:
            raise ValueError(
                f"the partition {rule!r} of the kernel {kernel.source} has the letter {letter}, "
                f"but {obstacle}"
            )
    return tuple(divisions.values())


def _letters(kernel: Kernel, rule: str) -> list[list[str]]:
    """The letters of the axes of operands and results, without prefetched scalars."""
    sides = rule.split("->")
    if len(sides) != 2:
        raise ValueError(
            f"the partition of the kernel {kernel.source} is {rule!r}: write the axes of operands "
            "and results, such as 'b _, _ -> b _'"
        )
    n = len(kernel.prefetched)
    avals = [*kernel.prefetched, *(m.aval for m in kernel.inputs)]
    letters: list[list[str]] = []
    for side, own, what in zip(sides, (avals, kernel.out_avals), ("operand", "result")):
        parts = side.split(",") if side.strip() or len(own) == 1 else []
        if len(parts) != len(own):
            raise ValueError(
                f"the partition {rule!r} has {len(parts)} {what}s, but the kernel {kernel.source} "
                f"has {len(own)}"
            )
        for i, (part, aval) in enumerate(zip(parts, own)):
            words = part.split()
            _check_words(rule, words, aval, f"{what} {i}")
            if what == "operand" and i < n and {*words} - {"_"}:
                raise ValueError(
                    f"the partition {rule!r} divides operand {i}, a prefetched scalar: write _"
                )
            letters.append(words)
    return letters[n:]


def _check_words(rule: str, words: list[str], aval: ShapedArray, what: str) -> None:
    for word in words:
        if not word.isidentifier():
            raise ValueError(
                f"the partition {rule!r} has the axis {word!r}: it is a letter for an axis that "
                "may be divided, or _ for one that stays whole"
            )
    if len(words) != aval.ndim:
        raise ValueError(
            f"the partition {rule!r} has {len(words)} axes for {what}, whose type is {aval}"
        )
    own = [w for w in words if w != "_"]
    if len({*own}) != len(own):
        raise ValueError(f"the partition {rule!r} has a letter twice for {what}")


def mapped_division(division: Division, mapped: Sequence[bool]) -> Division:
    """The division of a kernel of a batch, whose first dimension is the batch.

    Args:
      mapped: for each operand (without prefetched scalars) and each result, whether its first axis
        is the batch.
    """
    batch = DividedDimension(0, tuple(0 if m else None for m in mapped))
    others = [
        DividedDimension(
            d.number + 1,
            tuple(None if a is None else a + m for a, m in zip(d.axes, mapped)),
        )
        for d in division
    ]
    return (batch, *others)


# The kernel of one device


class _Part(NamedTuple):
    """A kernel of one device.

    Attributes:
      kernel: its first prefetched scalars are the first steps along ``offsets``.
      offsets: dimensions of the grid.
    """

    kernel: Kernel
    offsets: tuple[int, ...]


def part_of(kernel: Kernel, division: Division, parts: Sequence[int]) -> _Part:
    """The kernel of one device.

    Args:
      parts: into how many parts each dimension of the division is divided.
    """
    rank = len(kernel.grid)
    counts = {d.number: n for d, n in zip(division, parts) if n > 1}
    split = [
        {d.number: a for d in division if (a := d.axes[j]) is not None and d.number in counts}
        for j in range(len(_mappings(kernel)))
    ]
    used = {d for d in counts if kernel.jaxpr.invars[d] in _read(kernel.jaxpr)}
    for m, own in zip(_mappings(kernel), split):
        read = _read(m.index_map)
        used |= {d for d in counts if d not in own and m.index_map.invars[d] in read}
    offsets = tuple(sorted(used))
    mappings = []
    for m, own in zip(_mappings(kernel), split):
        shape = list(m.aval.shape)
        for d, axis in own.items():
            shape[axis] //= counts[d]
        shifted = [d for d in offsets if d not in own]
        index_map = _shifted(m.index_map, rank, offsets, shifted)
        aval = ShapedArray(tuple(shape), m.aval.dtype)
        mappings.append(replace(m, aval=aval, index_map=index_map))
    n_in = len(kernel.inputs)
    attributes = {f.name: getattr(kernel, f.name) for f in fields(Kernel)}
    attributes.update(
        grid=tuple(n // counts.get(d, 1) for d, n in enumerate(kernel.grid)),
        prefetched=(*[INDEX] * len(offsets), *kernel.prefetched),
        inputs=tuple(mappings[:n_in]),
        outputs=tuple(mappings[n_in:]),
        aliases=tuple((i + len(offsets), o) for i, o in kernel.aliases),
        jaxpr=_shifted(kernel.jaxpr, rank, offsets, offsets),
    )
    return _Part(Kernel(**attributes), offsets)


def _read(jaxpr: Jaxpr) -> set[Var]:
    """The variables that a jaxpr uses."""
    atoms = [*(v for eqn in jaxpr.eqns for v in eqn.invars), *jaxpr.outvars]
    return {v for v in atoms if not isinstance(v, Literal)}


def _shifted(
    jaxpr: Jaxpr, rank: int, offsets: Sequence[int], shifted: Sequence[int]
) -> Jaxpr:  # fmt: skip
    """A jaxpr with references to offsets after the grid's indices, which are added to some."""
    references = [AbstractRef(INDEX)] * len(offsets)
    if not any(jaxpr.invars[d] in _read(jaxpr) for d in shifted):
        invars = [*jaxpr.invars[:rank], *map(Var, references), *jaxpr.invars[rank:]]
        return Jaxpr(jaxpr.constvars, jaxpr.consts, invars, jaxpr.outvars, jaxpr.eqns)

    def run(*args: Any) -> list[Any]:
        indices, refs = list(args[:rank]), args[rank:]
        for d, ref in zip(offsets, refs):
            if d in shifted:
                indices[d] = lax.add(indices[d], ref[...])
        return eval_jaxpr(jaxpr, [*indices, *refs[len(offsets) :]])

    avals = [v.aval for v in jaxpr.invars]
    return stage(run, [*avals[:rank], *references, *avals[rank:]], jaxpr.debug_info.name)


# Lowering


def axis_rule(kernel: Kernel, division: Division) -> Any:
    """Shardy's rule: divided axes are products of a number of steps and the size of a block."""
    sizes: list[int] = []
    whole: set[int] = set()

    def new(size: int, stays: bool) -> int:
        sizes.append(size)
        if stays:
            whole.add(len(sizes) - 1)
        return len(sizes) - 1

    steps = [new(kernel.grid[d.number], False) for d in division]

    def factors(j: int, shape: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        along = {d.axes[j]: steps[k] for k, d in enumerate(division)}
        axes = []
        for axis, n in enumerate(shape):
            if axis not in along:
                axes.append((new(n, True),))
                continue
            block = n // sizes[along[axis]]
            inner = () if block == 1 else (new(block, True),)
            axes.append((along[axis], *inner))
        return tuple(axes)

    n_in = len(kernel.inputs)
    scalars = [tuple((new(n, True),) for n in a.shape) for a in kernel.prefetched]
    arrays = [factors(j, m.aval.shape) for j, m in enumerate(_mappings(kernel))]
    operands, results = (*scalars, *arrays[:n_in]), tuple(arrays[n_in:])
    none: frozenset[int] = frozenset()
    return lowering.AxisRule(tuple(sizes), operands, results, none, frozenset(whole), none)


def partitioning(bind: Any, kernel: Kernel, division: Division) -> Any:
    """The division of a kernel over the devices of a program.

    Args:
      bind: the function of the arguments and of ``kernel=`` that calls a kernel.
    """
    n, n_in = len(kernel.prefetched), len(kernel.inputs)
    shapes = [m.aval.shape for m in _mappings(kernel)]

    def partition(operands: Sequence[Any], results: Sequence[Any]) -> Any:
        shardings = [*operands[n:], *results]
        texts = [s._sdy(len(shape)) for s, shape in zip(shardings, shapes)]
        chosen = _Chosen(texts, kernel, division)
        counts = [math.prod(chosen.sizes[a] for a in names) for names in chosen.names]
        part = part_of(kernel, division, counts)
        local = [*kernel.prefetched, *(m.aval for m in part.kernel.inputs)]
        steps = {
            d.number: (names, part.kernel.grid[d.number])
            for d, names in zip(division, chosen.names)
        }

        def of_one_device(*args: Any) -> list[Any]:
            firsts = [_first_step(*steps[d], chosen.sizes) for d in part.offsets]
            return bind(*firsts, *args, kernel=part.kernel)

        with named_axes(chosen.sizes):
            traced = trace_function(of_one_device, tuple(local), {}, kernel.name)
        whole = [chosen.text([()] * a.ndim) for a in kernel.prefetched]
        arrays = [chosen.text(chosen.axes(j)) for j in range(len(shapes))]
        before = texts[n_in:]
        behind = [None if b == a else b for b, a in zip(before, arrays[n_in:])]
        return lowering.PartitionedBody(
            traced.jaxpr, chosen.sizes, [*whole, *arrays[:n_in]], arrays[n_in:], behind
        )

    return lowering.Partitioning(axis_rule(kernel, division), partition)


def _first_step(names: Names, steps: int, sizes: dict[str, int]) -> Any:
    """The first step of a device along a dimension that mesh axes divide."""
    position: Any = np.int32(0)
    for name in names:
        here = lax.axis_index_p.bind(axis_name=name)
        position = lax.add(lax.mul(position, np.int32(sizes[name])), here)
    return lax.mul(position, np.int32(steps))


class _Chosen:
    """The axes of a mesh that divide each dimension.

    Args:
      texts: the shardings of operands and results that Shardy has propagated.

    Attributes:
      sizes: the axes of the mesh.
      names: for each dimension of the division, the axes of the mesh.
    """

    def __init__(self, texts: Sequence[str], kernel: Kernel, division: Division) -> None:
        divided = [t for t in texts if _MESH.search(t) and _NAME.search(_dimensions(t))]
        main = _MESH.search((divided or texts)[0])
        assert main is not None
        self._mesh, self._division = main[0], division
        self._ranks = [m.aval.ndim for m in _mappings(kernel)]
        self.sizes: dict[str, int] = {name: int(n) for name, n in _AXIS.findall(main[1])}
        self.names: list[Names] = []
        used: set[str] = set()
        for d in division:
            names: Names = ()
            for text, axis in zip(texts, d.axes):
                if axis is not None and not names and self._mesh in text:
                    own = _NAME.findall(_DIMENSION.findall(_dimensions(text))[axis])
                    free = tuple(name for name in own if name not in used)
                    names = self._dividing(free, kernel.grid[d.number])
            self.names.append(names)
            used |= {*names}

    def _dividing(self, names: Names, steps: int) -> Names:
        """The first of these axes that together divide a number of steps into equal parts."""
        for count in range(len(names), 0, -1):
            if steps % math.prod(self.sizes[n] for n in names[:count]) == 0:
                return names[:count]
        return ()

    def axes(self, j: int) -> list[Names]:
        """The axes of the mesh that divide each axis of an array."""
        along = {d.axes[j]: names for d, names in zip(self._division, self.names)}
        return [along.get(axis, ()) for axis in range(self._ranks[j])]

    def text(self, axes: Sequence[Names]) -> str:
        """The sharding of an array."""
        dims = ", ".join("{" + ", ".join(f'"{n}"' for n in names) + "}" for names in axes)
        return f"#sdy.sharding<{self._mesh}, [{dims}]>"


def _dimensions(text: str) -> str:
    """The part of a sharding behind the mesh."""
    return text[text.rindex(">, [") :]
