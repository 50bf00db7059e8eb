"""Interpreter that evaluates jaxprs of array functions on sparse arrays.

The interpreter is independent of formats. Rules of the kind :data:`sparse_rule` implement the
primitives (``_elementwise``, ``_structure_rules``, ``_control``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from primax_core.extend import (
    Eqn,
    Jaxpr,
    MissingRule,
    Primitive,
    RuleKind,
    ShapedArray,
    abstract,
    expand,
    expanded,
    interpret,
    stage,
    typeof,
)
from primax_core.tree_util import tree_flatten, tree_unflatten

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


def sparsify(f: Callable[..., Any], use_tracer: bool = False) -> Callable[..., Any]:
    """A version of ``f`` that accepts sparse arrays.

    Args:
      f: a function of pytrees of arrays.
      use_tracer: accepted for compatibility; in either case ``f`` is traced once and its jaxpr is
        interpreted on sparse arrays.

    Returns:
      A function that accepts :class:`BCOO` instead of any array. The format of a result depends on
      its operation: products of sparse arrays with scalars are sparse, those with matrices are
      dense.

    Raises:
      NotImplementedError: for operations whose results would not be sparse, such as ``exp``, and
        for those without a rule. The message contains the name of the operation.

    The function consists of operations on the stored arrays: it can be compiled, mapped over batch
      dimensions, and differentiated (see :func:`grad`). ``f`` may call compiled functions, loops
      and conditionals, and :func:`todense`.

    >>> import primax_numpy as pnp
    >>> from primax_scipy.experimental.sparse import BCOO
    >>> a = BCOO.fromdense(pnp.array([[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]]))
    >>> sparsify(lambda a, v: pnp.sum(2 * a.T, 1) + a.T @ v)(a, pnp.ones(2))
    Array([6., 3., 9.], dtype=float32)
    """

    @functools.wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        values, tree = tree_flatten((args, kwargs), is_leaf=is_sparse)
        out_tree = []

        def flat(*xs: Any) -> list[Any]:
            args, kwargs = tree_unflatten(tree, xs)
            outs, structure = tree_flatten(f(*args, **kwargs))
            out_tree.append(structure)
            return outs

        jaxpr = stage(flat, [type_of(x) for x in values], getattr(f, "__name__", "f"))
        return tree_unflatten(out_tree[0], evaluate(jaxpr, values))

    return wrapped


def evaluate(jaxpr: Jaxpr, values: Sequence[Any]) -> list[Any]:
    """Evaluate a jaxpr on dense and sparse arrays."""
    return interpret(jaxpr, values, _step)


def _step(eqn: Eqn, values: list[Any]) -> Sequence[Any]:
    prim = eqn.primitive
    if any(map(is_sparse, values)):
        out = prim.require(sparse_rule, "sparse arrays")(*values, **eqn.params)
    else:
        out = prim.bind(*values, **eqn.params)
    return list(out) if prim.multiple_results else [out]


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

    return rule


todense_p: Primitive = Primitive("todense")


@todense_p.rule(abstract)
def _todense_abstract(x: ShapedArray) -> ShapedArray:
    return x


@todense_p.rule(expand)
def _todense_expand(x: Any) -> Any:
    return x


@todense_p.rule(sparse_rule)
def _sparse_todense(x: Any) -> Any:
    return x.todense()


def todense(arr: Any) -> Any:
    """The dense array of a sparse array; dense arrays are returned unchanged.

    Within functions transformed by :func:`sparsify`, it converts arguments that may be sparse.
    """
    return arr.todense() if isinstance(arr, JAXSparse) else todense_p.bind(arr)
