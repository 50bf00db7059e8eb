"""Interpreter that evaluates jaxprs of array functions on sparse arrays.

The interpreter is independent of formats. Rules of the kind :data:`sparse_rule` implement the
primitives (``_elementwise``, ``_structure_rules``, ``_control``) for :class:`BCOO`. Arrays of other
formats are converted, and the results are converted back if their format can store them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from primax_core.extend import (
    Eqn,
    Jaxpr,
    MissingRule,
    Primitive,
    RuleKind,
    RuleState,
    ShapedArray,
    abstract,
    expand,
    expanded,
    interpret,
    typeof,
)
from primax_core.typing import ArrayLike

from ._base import JAXSparse

sparse_rule: RuleKind[Callable[..., Any]] = RuleKind(
    "sparse", "(*values, **params) -> value, or a list of them"
)
"""Rule kind: evaluation of a primitive if at least one operand is a sparse array."""

DENSE = (
    "its result is nonzero where its operands are zero. Convert the operands to dense arrays with "
    "sparse.todense() if that is intended"
)


def is_sparse(x: Any) -> bool:
    """True if a value is a sparse array."""
    return isinstance(x, JAXSparse)


def type_of(x: Any) -> ShapedArray:
    """The aval of an array, or of the array that a sparse array represents."""
    return ShapedArray(x.shape, x.dtype) if isinstance(x, JAXSparse) else typeof(x)


_whole_rules: list[Callable[[Jaxpr, Any], Any]] = []


def evaluates_whole_jaxprs(rule: Callable[[Jaxpr, Any], Any]) -> Callable[[Jaxpr, Any], Any]:
    """Register a function ``(jaxpr, sparse array) -> result`` for jaxprs of one sparse array that
    contain primitives without sparse rules; it returns ``None`` if it does not apply."""
    _whole_rules.append(rule)
    return rule


def _lacks_rules(jaxpr: Jaxpr) -> bool:
    key = "sparse: lacks rules"
    if key not in jaxpr.cache:
        states = [eqn.primitive.state_of(sparse_rule) for eqn in jaxpr.eqns]
        jaxpr.cache[key] = any(state is not RuleState.PRESENT for state in states)
    return bool(jaxpr.cache[key])


def evaluate(jaxpr: Jaxpr, values: Sequence[Any]) -> list[Any]:
    """Evaluate a jaxpr on dense and sparse arrays."""
    if len(values) == 1 and is_sparse(values[0]) and _lacks_rules(jaxpr):
        for rule in _whole_rules:
            out = rule(jaxpr, values[0])
            if out is not None:
                return [out]
    return interpret(jaxpr, values, _step)


def _step(eqn: Eqn, values: list[Any]) -> Sequence[Any]:
    return applied(eqn.primitive, values, eqn.params)


def applied(prim: Primitive, values: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """The results of a primitive for dense and sparse arrays."""
    if not any(map(is_sparse, values)):
        out = prim.bind(*values, **params)
        return list(out) if prim.multiple_results else [out]
    rule = prim.require(sparse_rule, "sparse arrays")
    if getattr(rule, "any_format", False):
        out = rule(*values, **params)
        return list(out) if prim.multiple_results else [out]
    converted = [x.to_bcoo() if isinstance(x, JAXSparse) else x for x in values]
    out = rule(*converted, **params)
    outs = list(out) if prim.multiple_results else [out]
    operands = [(x, y) for x, y in zip(values, converted) if isinstance(x, JAXSparse)]
    return [_restored(out, operands) if is_sparse(out) else out for out in outs]


def _restored(out: Any, operands: Sequence[tuple[Any, Any]]) -> Any:
    """A BCOO result in the format of the first sparse operand."""
    for original, converted in operands:
        if out.indices is converted.indices and out.shape == original.shape:
            return original.with_data(out.data)
    return operands[0][0].stored_like(out)


def any_format(rule: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a rule that receives sparse arrays of all formats; others receive :class:`BCOO`."""
    rule.any_format = True  # type: ignore[attr-defined]
    return rule


@sparse_rule.falls_back
def _fallback(prim: Primitive) -> Callable[..., Any] | None:
    """The sparse rule of a primitive with an expansion evaluates the expansion."""
    if prim.find(expand) is None:
        return None

    def rule(*values: Any, **params: Any) -> Any:
        jaxpr = expanded(prim, [type_of(x) for x in values], params)
        if jaxpr is None:
            raise MissingRule(f"sparse arrays: primitive {prim.name} has no rule")
        outs = evaluate(jaxpr, values)
        return outs if prim.multiple_results else outs[0]

    return any_format(rule)


todense_p: Primitive = Primitive("todense")


@todense_p.rule(abstract)
def _todense_abstract(x: ShapedArray) -> ShapedArray:
    return x


@todense_p.rule(expand)
def _todense_expand(x: Any) -> Any:
    return x


@todense_p.rule(sparse_rule)
@any_format
def _sparse_todense(x: Any) -> Any:
    return x.todense()


def todense(arr: ArrayLike | JAXSparse) -> Any:
    """The dense array of a sparse array; dense arrays are returned unchanged.

    Within functions transformed by :func:`sparsify`, it converts arguments that may be sparse.
    """
    return arr.todense() if isinstance(arr, JAXSparse) else todense_p.bind(arr)
