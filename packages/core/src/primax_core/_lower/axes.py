"""Axes of a mesh in lowering: manual regions, and the groups of partitions that act together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._ir.placement import is_placed
from .context import (
    constant,
    context,
    hlo,
    ir,
    parse_sharding,
    sdy,
    tensor_type,
    type_of,
)

_PREFIX = "#sdy.sharding"


@dataclass(frozen=True)
class MeshAxes:
    """The axes of the mesh of a manual region.

    Partitions are numbered along the axes, the last axis fastest.

    Attributes:
      names, sizes: all axes of the mesh, in order.
      manual: the names of the axes of which the region has one position. The operations of the
        region are divided along the others by the compiler.
    """

    names: tuple[Any, ...]
    sizes: tuple[int, ...]
    manual: frozenset[Any]

    @property
    def free(self) -> tuple[Any, ...]:
        """The axes that are not manual."""
        return tuple([n for n in self.names if n not in self.manual])

    def size(self, names: Sequence[Any]) -> int:
        """The number of positions along some axes."""
        return math.prod([self.sizes[self.names.index(n)] for n in names])

    def groups(self, names: Sequence[Any], index_groups: Any = None) -> np.ndarray:
        """The partitions that act together in a collective over some axes.

        Args:
          index_groups: positions along ``names`` that act together, a tuple of tuples; ``None`` for
            all.

        Returns:
          ``int64[groups, members]``, the members in the order of their positions. Shorter groups
          are filled with -1.
        """
        ids = np.arange(math.prod(self.sizes)).reshape(self.sizes)
        axes = [self.names.index(n) for n in names]
        rest = [i for i in range(ids.ndim) if i not in axes]
        rows = ids.transpose([*rest, *axes]).reshape(-1, self.size(names))
        if index_groups is None:
            return rows
        longest = max(map(len, index_groups))
        parts = []
        for group in index_groups:
            part = np.full((len(rows), longest), -1)
            part[:, : len(group)] = rows[:, list(group)]
            parts.append(part)
        return np.concatenate(parts)

    def pairs(self, names: Sequence[Any], perm: Sequence[tuple[int, int]]) -> np.ndarray:
        """Pairs of partitions for pairs of positions along some axes, ``int64[pairs, 2]``."""
        return np.array([(r[s], r[d]) for r in self.groups(names) for s, d in perm]).reshape(-1, 2)

    def index(self, name: Any) -> ir.Value:
        """The position along a manual axis, an ``i32`` value."""
        if all(n in self.manual or s == 1 for n, s in zip(self.names, self.sizes)):
            return self._index(name)
        # XLA knows the number of a partition only where all axes are manual.
        scalar = tensor_type((), np.dtype(np.int32))
        with region(self, self.free, [], [f"<{self.mesh_text()}, []>"], [], [], [scalar]) as inner:
            sdy().return_([self._index(name)])
        result: ir.Value = inner.results[0]
        return result

    def _index(self, name: Any) -> ir.Value:
        at = self.names.index(name)
        stride = constant(np.uint32(math.prod(self.sizes[at + 1 :])))
        number = hlo.divide(hlo.partition_id(), stride)
        number = hlo.remainder(number, constant(np.uint32(self.sizes[at])))
        return hlo.convert(tensor_type((), np.dtype(np.int32)), number)

    def mesh_text(self) -> str:
        """The mesh in Shardy's syntax."""
        sizes = ", ".join(f'"{n}"={s}' for n, s in zip(self.names, self.sizes))
        return f"mesh<[{sizes}]>"


@contextmanager
def region(
    axes: MeshAxes, names: Sequence[Any], in_shardings: Sequence[str],
    out_shardings: Sequence[str], values: Sequence[ir.Value], in_types: Sequence[ir.Type],
    out_types: Sequence[ir.Type],
) -> Iterator[ir.Operation]:  # fmt: skip
    """Context manager for the body of a ``sdy.manual_computation`` over some axes.

    The body ends with ``sdy().return_(values)``; the operation has the results.
    """
    dialect = sdy()
    quoted = ", ".join([f'"{n}"' for n in names])
    op = dialect.ManualComputationOp(
        list(out_types), list(values), _shardings(in_shardings), _shardings(out_shardings),
        ir.Attribute.parse(f"#sdy<manual_axes{{{quoted}}}>", context),
    )  # fmt: skip
    block = ir.Block.create_at_start(op.body, list(in_types))
    with ir.InsertionPoint(block):
        yield op


def _shardings(texts: Sequence[str]) -> ir.Attribute:
    bare = ", ".join([t.removeprefix(_PREFIX) for t in texts])
    return ir.Attribute.parse(f"#sdy.sharding_per_value<[{bare}]>", context)


def manual_computation(
    ctx: Any, jaxpr: Any, values: Sequence[ir.Value], sizes: Mapping[Any, int],
    names: Sequence[Any], in_shardings: Sequence[str], out_shardings: Sequence[str],
) -> list[ir.Value]:  # fmt: skip
    """Implementation of ``LoweringContext.manual``."""
    from .module import lower_body

    outer = ctx.axes
    mesh = tuple(sizes), tuple(sizes.values())
    if outer is not None and (outer.names, outer.sizes) != mesh:
        raise ValueError(
            f"a manual region over the mesh {dict(sizes)} is inside of one over the mesh "
            f"{dict(zip(outer.names, outer.sizes))}: nested regions must have the same mesh"
        )
    manual = frozenset(names) if outer is None else outer.manual | frozenset(names)
    axes = MeshAxes(*mesh, manual)
    in_order = [n for n in axes.names if n in names]
    # The body must not use values from outside: large constants are operands.
    consts = ctx.passed_consts(jaxpr)
    open_axes = "{?}" if axes.free else "{}"
    whole = [
        f"<{axes.mesh_text()}, [{', '.join([open_axes] * len(c.aval.shape))}]>"
        for c in consts.values()
    ]
    operands = [*(ctx.constant_of(c) for c in consts.values()), *values]
    saved = ctx.axes, ctx.hoisted, ctx.token, ctx.broadcasts
    in_types = [type_of(a) for a in (*(c.aval for c in consts.values()), *jaxpr.in_avals)]
    out_types = [type_of(a) for a in ctx.out_avals]
    with region(
        axes, in_order, [*whole, *in_shardings], out_shardings, operands, in_types, out_types
    ) as op:
        arguments = list(op.body.blocks[0].arguments)
        ctx.axes, ctx.token, ctx.broadcasts = axes, None, {}
        ctx.hoisted = dict(zip(consts, arguments))
        try:
            sdy().return_(lower_body(ctx, jaxpr, arguments[len(consts) :]))
        finally:
            ctx.axes, ctx.hoisted, ctx.token, ctx.broadcasts = saved
    return list(op.results)


def channel() -> ir.Attribute:
    """The channel of a collective between partitions."""
    return ir.Attribute.parse("#stablehlo.channel_handle<handle = 1, type = 1>", context)


def matrix(rows: np.ndarray) -> ir.Attribute:
    """An attribute of groups or pairs of partitions."""
    return ir.DenseElementsAttr.get(np.ascontiguousarray(rows, np.int64), context=context)


def with_constraints(variables: Sequence[Any], values: Sequence[ir.Value]) -> list[ir.Value]:
    """Values of variables; those of partial types have a sharding constraint."""

    def constrained(v: Any, x: ir.Value) -> ir.Value:
        placement = v.aval.placement if is_placed(v.aval) else None
        if placement is None or not placement.is_partial:
            return x
        text = placement.sharding._sdy(ir.RankedTensorType(x.type).rank)
        return sdy().sharding_constraint(x, parse_sharding(text))

    return [constrained(v, x) for v, x in zip(variables, values, strict=True)]
