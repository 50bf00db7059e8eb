"""Operations that a function divides over devices: rules of kind ``partition``.

The operation is lowered to a mark with Shardy's rule. When the module is complete, Shardy's
propagation chooses shardings for its operands and results, the function is called with them, and
the mark is replaced by a manual computation over all axes of a mesh. Loaded on first use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from .._base.caches import bounded_cache
from .._ir import rules as rule_kinds
from .._ir.avals import unplaced
from .._ir.jaxpr import Jaxpr, jaxprs_in
from .._ir.placement import is_placed
from .._runtime.sharding import Sharding
from .._trace.reference_ops import references
from .axis_rules import AxisRule
from .context import context, hlo, i32, ir, parse_sharding, sdy, type_of
from .liveness import live_eqns
from .locations import Body, note_position
from .propagation import marks, propagated, sharding_of

_TARGET: Final = "partitioned_operation"
_INDEX: Final = "partitioned"

Shardings = Sequence[Sharding]


class PartitionedBody(NamedTuple):
    """The part of one device.

    Attributes:
      jaxpr: the computation on the parts of the operands.
      sizes: all axes of the mesh, in the order of its partitions.
      in_shardings, out_shardings: the division of operands and results, as Shardy's attributes with
        the mesh in place (``Sharding._sdy``).
      constraints: the division of results behind the operation, ``None`` where it is the same.
    """

    jaxpr: Jaxpr
    sizes: Mapping[Any, int]
    in_shardings: Sequence[str]
    out_shardings: Sequence[str]
    constraints: Sequence[str | None]


class Partitioning(NamedTuple):
    """Division of an operation over devices.

    Attributes:
      rule: the correspondence of axes, by which shardings are propagated through the operation.
      partition: from the shardings of operands and results to the part of one device.
      infer: for an operation without ``rule``: from the shardings of operands and results, as far
        as they follow from the rest of the module, to those of the results.
    """

    rule: AxisRule | None
    partition: Callable[[Shardings, Shardings], PartitionedBody]
    infer: Callable[[Shardings, Shardings], Shardings] | None = None


class _Mark(NamedTuple):
    """An operation that is not divided yet, and its mark in the module."""

    partitioning: Partitioning
    op: Any
    eqn: Any
    body: Body


def has_partitions(jaxpr: Jaxpr) -> bool:
    """Return True if a jaxpr or one of its sub-jaxprs has operations with rules ``partition``."""
    known: bool | None = jaxpr.cache.get("partitions")
    if known is None:
        known = jaxpr.cache["partitions"] = any(
            rule_kinds.partition in eqn.primitive.rules
            or any(has_partitions(inner) for inner in jaxprs_in(eqn.params))
            for eqn in live_eqns(jaxpr)
        )
    return known


def lowering_of(prim: Any, rule: Callable[..., Any]) -> Callable[..., Any]:
    """The lowering rule on several devices of a primitive with a rule ``partition``.

    Args:
      rule: its rule ``lower``, which is used in manual regions.
    """
    partition = prim.rules[rule_kinds.partition]
    known = _lowerings.get((partition, rule))  # the same for all platforms
    if known is not None:
        return known

    def lowered(ctx: Any, *values: ir.Value[Any], **params: Any) -> Any:
        if ctx.axes is not None or ctx.sharding is None:
            return rule(ctx, *values, **params)
        results = _marked(ctx, partition(ctx.eqn, ctx.sharding._replicated()), values)
        return results if prim.multiple_results else results[0]

    _lowerings[partition, rule] = lowered
    return lowered


_lowerings: Final[dict[tuple[Any, Any], Any]] = bounded_cache()


def _marked(
    ctx: Any, partitioning: Partitioning, values: Sequence[ir.Value[Any]]
) -> list[ir.Value[Any]]:
    index = ir.StringAttr.get(_TARGET)
    out_types = [type_of(a) for a in ctx.out_avals]
    op = hlo.CustomCallOp(out_types, list(values), call_target_name=index).operation
    op.attributes[_INDEX] = i32(len(ctx.partitioned))
    if partitioning.rule is not None:
        op.attributes["sdy.sharding_rule"] = _attribute(partitioning.rule)
    ctx.partitioned.append(_Mark(partitioning, op, ctx.eqn, ctx.body))
    return list(op.results)


def _attribute(rule: AxisRule) -> ir.Attribute:
    dialect = sdy()

    def mappings(values: Sequence[Any]) -> list[Any]:
        return [
            dialect.TensorMappingAttr.get([dialect.DimMappingAttr.get(list(d)) for d in value])
            for value in values
        ]

    attribute: ir.Attribute = dialect.OpShardingRuleAttr.get(
        list(rule.sizes), mappings(rule.operands), mappings(rule.results),
        sorted(rule.reduction), sorted(rule.whole), sorted(rule.permutation), is_custom=True,
    )  # fmt: skip
    return attribute


def divide(ctx: Any, module: ir.Module) -> None:
    """Replace the marks of a complete module by manual computations."""
    everywhere = ctx.sharding._replicated()
    marked: list[_Mark] = ctx.partitioned
    for i, mark in enumerate(marked):
        infer = mark.partitioning.infer
        if mark.partitioning.rule is None and infer is not None:
            # Shardings behind this operation depend on those of its results.
            operands, results = _propagated(module, everywhere)[i]
            with _noted(mark):
                _constrain(mark.op, infer(operands, results))
    chosen = _propagated(module, everywhere)
    replaced: dict[ir.Value[Any], ir.Value[Any]] = {}
    for i, mark in enumerate(marked):
        with _noted(mark):
            replaced.update(zip(mark.op.results, _replace(ctx, mark, *chosen[i])))
    _update_records(ctx.bodies, replaced)
    for mark in marked:
        mark.op.erase()


@contextmanager
def _noted(mark: _Mark) -> Iterator[None]:
    """Context manager that adds the source location of an operation to errors."""
    try:
        yield
    except Exception as error:
        note_position(error, mark.body, mark.eqn)
        raise


def _update_records(
    bodies: Sequence[Body], replaced: Mapping[ir.Value[Any], ir.Value[Any]]
) -> None:
    """Replace values in what the rules of equations returned."""
    for body in bodies:
        for i in range(1, len(body.entries), 2):
            values = body.entries[i]
            if isinstance(values, ir.Value):
                body.entries[i] = replaced.get(values, values)
            elif any(v in replaced for v in values):
                body.entries[i] = [replaced.get(v, v) for v in values]


def _propagated(module: ir.Module, everywhere: Sharding) -> dict[int, tuple[Any, Any]]:
    """The shardings of the operands and results of each mark."""
    copy, meshes = propagated(module)
    chosen: dict[int, tuple[Any, Any]] = {}
    for op in marks(copy, _INDEX):
        # An operation in a function that is called several times occurs several times.
        chosen.setdefault(
            ir.IntegerAttr(op.attributes[_INDEX]).value,
            (
                [sharding_of(v, meshes, everywhere) for v in op.operands],
                [sharding_of(v, meshes, everywhere) for v in op.results],
            ),
        )
    return chosen


def _constrain(op: Any, shardings: Shardings) -> None:
    texts = [
        (s._sdy(ir.RankedTensorType(v.type).rank) or "").removeprefix("#sdy.sharding")
        for v, s in zip(op.results, shardings, strict=True)
    ]
    text = f"#sdy.sharding_per_value<[{', '.join(texts)}]>"
    op.attributes["sdy.sharding"] = ir.Attribute.parse(text, context)


def _replace(
    ctx: Any, mark: _Mark, operands: Shardings, results: Shardings
) -> list[ir.Value[Any]]:  # fmt: skip
    """Write the manual computation before a mark, and use its results."""
    body = mark.partitioning.partition(operands, results)
    frozen, count = _Frozen.of(mark.body, mark.eqn), len(ctx.bodies)
    saved = ctx.eqn, ctx.body, ctx.out_avals, ctx.in_avals, ctx.broadcasts
    ctx.eqn, ctx.body, ctx.broadcasts = mark.eqn, frozen, {}
    ctx.in_avals = [_unplaced(v.aval) for v in mark.eqn.invars]
    ctx.out_avals = [_unplaced(v.aval) for v in mark.eqn.outvars]
    values = list(mark.op.operands)
    with ir.InsertionPoint(mark.op):
        new = ctx.manual(
            references.ops.for_lowering(body.jaxpr), values, body.sizes, tuple(body.sizes),
            list(body.in_shardings), list(body.out_shardings),
        )  # fmt: skip
        new = [
            v if text is None else sdy().ShardingConstraintOp(v, parse_sharding(text)).result
            for v, text in zip(new, body.constraints)
        ]
    ctx.eqn, ctx.body, ctx.out_avals, ctx.in_avals, ctx.broadcasts = saved
    for added in ctx.bodies[count:]:
        if added.parent is frozen:
            added.parent = mark.body
    for old, value in zip(mark.op.results, new):
        old.replace_all_uses_with(value)
    return new


def _unplaced(aval: Any) -> Any:
    return aval.update(placement=unplaced) if is_placed(aval) else aval


class _Frozen(Body):
    """A body at one of its equations, after it is lowered."""

    __slots__ = ()

    @classmethod
    def of(cls, body: Body | None, eqn: Any) -> Any:
        """A copy of a body, and of those around it, whose current equation is ``eqn``."""
        if body is None:
            return None
        copy = cls(None, None)
        copy.is_function, copy.located = body.is_function, body.located
        copy.eqn, copy.entries = body.eqn, [eqn]
        copy.parent = cls.of(body.parent, body.eqn)
        return copy
