"""Shardy's rules of operations: how the axes of operands and results correspond.

Loaded on first use.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .._base import caches
from .._ir import rules as rule_kinds
from .._ir.jaxpr import DebugInfo
from .._ir.primitive import Primitive
from .._trace.staging import stage
from .context import context, ir, sdy
from .module import lower_module

Factors = tuple[tuple[int, ...], ...]
"""For each axis of a value, its factors, the major one first."""


class AxisRule(NamedTuple):
    """The correspondence of the axes of one operation.

    Axes are products of factors. Operands and results that have a factor in common correspond in
    it.

    Attributes:
      sizes: the size of each factor.
      operands, results: the factors of each operand and result.
      reduction: factors over which the operation reduces.
      whole: factors that must not be divided (``need_replication``).
      permutation: factors along which elements move.
    """

    sizes: tuple[int, ...]
    operands: tuple[Factors, ...]
    results: tuple[Factors, ...]
    reduction: frozenset[int]
    whole: frozenset[int]
    permutation: frozenset[int]


class LoweredOperation(NamedTuple):
    """One operation of the lowered form of a primitive.

    Attributes:
      name: its name in MLIR.
      operands, results: numbers of values. The operands of the primitive are the first.
      ranks: the rank of each result.
      rule: its rule; ``None`` if Shardy has none.
      body: for a call, the called function.
    """

    name: str
    operands: tuple[int, ...]
    results: tuple[int, ...]
    ranks: tuple[int, ...]
    rule: AxisRule | None
    body: LoweredForm | None


class LoweredForm(NamedTuple):
    """The operations that a primitive is lowered to.

    Attributes:
      operations: in the order of evaluation.
      results: numbers of the values that are returned.
    """

    operations: tuple[LoweredOperation, ...]
    results: tuple[int, ...]


_forms: dict[tuple, LoweredForm] = caches.bounded_cache(4096)


def axis_rules(prim: Primitive, avals: Sequence[Any], params: dict[str, Any]) -> LoweredForm:
    """Shardy's rules of the operations that a primitive is lowered to on CPU.

    A primitive with a rule ``partition`` is one operation, of the rule that it names.

    Args:
      prim: a primitive whose operands and results are arrays.
      avals: the types of its operands, without placements.
      params: its parameters.

    Returns:
      A ``LoweredForm``, whose ``operations`` have an attribute ``rule`` each.

    >>> from primax_core import lax
    >>> from primax_core.extend import ShapedArray
    >>> form = axis_rules(
    ...     lax.transpose_p, [ShapedArray((2, 3), "float32")], {"permutation": (1, 0)}
    ... )
    >>> rule = form.operations[0].rule
    >>> rule.operands[0] == rule.results[0][::-1]
    True
    """
    key = (prim, tuple(params.items()), *avals)
    form = _forms.get(key)
    if form is None:
        form = _forms[key] = _form_of(prim, list(avals), params)
    return form


def _form_of(prim: Primitive, avals: list[Any], params: dict[str, Any]) -> LoweredForm:
    from jaxlib.mlir.passmanager import PassManager

    def run(*args):
        out = prim.bind(*args, **params)
        return out if prim.multiple_results else [out]

    jaxpr = stage(run, avals, DebugInfo("axis_rules", prim.name))
    own = _own_rule(prim, jaxpr)
    if own is not None:
        count, ranks = len(avals), tuple([len(r) for r in own.results])
        results = tuple(range(count, count + len(ranks)))
        operation = LoweredOperation(prim.name, tuple(range(count)), results, ranks, own, None)
        return LoweredForm((operation,), results)
    sdy()
    module = lower_module(jaxpr, prim.name, "cpu", keep_unused=True, portable=True).module
    with context:
        passes = "builtin.module(func.func(sdy-populate-op-sharding-rules))"
        PassManager.parse(passes, context).run(module.operation)
        functions = {
            f.name.value: f for f in module.body.operations if f.operation.name == "func.func"
        }
        return _form(functions, functions["main"])


def _own_rule(prim: Primitive, jaxpr: Any) -> AxisRule | None:
    """The rule by which a primitive divides itself, if it has one.

    Axes of operands that stay whole are gathered: how they were divided says nothing of results.
    """
    partition = prim.rules.get(rule_kinds.partition)
    if partition is None:
        return None
    from .._runtime.array import default_sharding

    rule: AxisRule | None = partition(jaxpr.eqns[0], default_sharding()).rule
    if rule is None or not rule.whole:
        return rule
    whole = rule.whole
    operands = tuple(
        tuple(tuple(f for f in axis if f not in whole) for axis in axes) for axes in rule.operands
    )
    return rule._replace(operands=operands, whole=frozenset())


def _form(functions: dict[str, Any], function: Any) -> LoweredForm:
    block = function.entry_block
    numbers = {argument: i for i, argument in enumerate(block.arguments)}
    operations = []
    for op in block.operations:
        operation = op.operation
        operands = tuple([numbers[v] for v in operation.operands])
        if operation.name == "func.return":
            return LoweredForm(tuple(operations), operands)
        for result in operation.results:
            numbers[result] = len(numbers)
        body = None
        if operation.name == "func.call":
            callee = ir.FlatSymbolRefAttr(operation.attributes["callee"]).value
            body = _form(functions, functions[callee])
        operations.append(
            LoweredOperation(
                operation.name,
                operands,
                tuple([numbers[r] for r in operation.results]),
                tuple([_rank(r.type) for r in operation.results]),
                _rule(operation),
                body,
            )
        )
    raise AssertionError("a function without a return")


def _rank(kind: Any) -> int:
    return len(kind.shape) if hasattr(kind, "shape") else 0


def _rule(operation: Any) -> AxisRule | None:
    if "sdy.sharding_rule" not in operation.attributes:
        return None
    dialect = sdy()
    rule = dialect.OpShardingRuleAttr(operation.attributes["sdy.sharding_rule"])

    def factors(mappings: Any) -> tuple[Factors, ...]:
        return tuple(
            tuple(
                tuple(dialect.DimMappingAttr(d).factor_indices)
                for d in dialect.TensorMappingAttr(m).dim_mappings
            )
            for m in mappings
        )

    return AxisRule(
        tuple(rule.factor_sizes),
        factors(rule.operand_mappings),
        factors(rule.result_mappings),
        frozenset(rule.reduction_factors),
        frozenset(rule.need_replication_factors),
        frozenset(rule.permutation_factors),
    )
