"""Functions of arrays made functions of sparse arrays: an interpreter of programs.

It knows nothing of formats: rules of the kind :data:`sparse_rule` do, one for each primitive that
has an answer (``_elementwise``, ``_structure_rules``, ``_control``).
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
"""How a primitive computes where operands are sparse arrays. Those that are not are arrays."""

DENSE = (
    "its result has elements other than zero where its operands have none. Bring the operands to "
    "full arrays with sparse.todense() if that is intended"
)


def is_sparse(x: Any) -> bool:
    """Whether a value is a sparse array."""
    return isinstance(x, JAXSparse)


def type_of(x: Any) -> ShapedArray:
    """The type of an array, or of that which a sparse array stands for."""
    return ShapedArray(x.shape, x.dtype) if isinstance(x, JAXSparse) else typeof(x)


def sparsify(f: Callable[..., Any], use_tracer: bool = False) -> Callable[..., Any]:
    """A function of sparse arrays that does what ``f`` does to full ones.

    Args:
      f: takes and returns pytrees of arrays.
      use_tracer: accepted for the sake of programs that give it; either way ``f`` is traced once
        and its program computed with sparse arrays.

    Returns:
      A function that takes :class:`BCOO` in place of any arrays. A result is sparse where that
      is what its operation gives: products of sparse arrays with scalars, but not with matrices.

    Raises:
      NotImplementedError: for operations whose results would not be sparse, such as ``exp``, and
        for those that have no rule, both named.

    The function consists of operations on the stored arrays: it can be compiled, mapped over batch
    dimensions, and differentiated (see :func:`grad`); and ``f`` may call compiled functions, loops
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
            outs, found = tree_flatten(f(*args, **kwargs))
            out_tree.append(found)
            return outs

        program = stage(flat, [type_of(x) for x in values], getattr(f, "__name__", "f"))
        return tree_unflatten(out_tree[0], evaluate(program, values))

    return wrapped


def evaluate(program: Jaxpr, values: Sequence[Any]) -> list[Any]:
    """Run a program on arrays of which some are sparse."""
    return interpret(program, values, _step)


def _step(eqn: Eqn, values: list[Any]) -> Sequence[Any]:
    prim = eqn.primitive
    if any(map(is_sparse, values)):
        out = prim.require(sparse_rule, "sparse arrays")(*values, **eqn.params)
    else:
        out = prim.bind(*values, **eqn.params)
    return list(out) if prim.multiple_results else [out]


@sparse_rule.falls_back
def _(prim: Primitive) -> Callable[..., Any] | None:
    """What has an expansion is what its expansion is."""
    if prim.find(expand) is None:
        return None

    def rule(*values: Any, **params: Any) -> Any:
        program = expanded(prim, [type_of(x) for x in values], params)
        if program is None:
            raise MissingRule(f"sparse arrays: primitive {prim.name} has no rule")
        outs = evaluate(program, values)
        return outs if prim.multiple_results else outs[0]

    return rule


todense_p: Primitive = Primitive("todense")


@todense_p.rule(abstract)
def _(x: ShapedArray) -> ShapedArray:
    return x


@todense_p.rule(expand)
def _(x: Any) -> Any:
    return x


@todense_p.rule(sparse_rule)
def _(x: Any) -> Any:
    return x.todense()


def todense(arr: Any) -> Any:
    """The array with all of its elements, of a sparse array; a full one as it is.

    Within functions that :func:`sparsify` is given, it makes arguments full that may be sparse.
    """
    return arr.todense() if isinstance(arr, JAXSparse) else todense_p.bind(arr)
