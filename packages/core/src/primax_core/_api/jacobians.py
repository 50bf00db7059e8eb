"""``jacfwd``, ``jacrev`` and ``hessian``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec

import numpy as np

from .._base import caches, pytree
from .._base.config import state
from .._base.operand_trees import flatten_operands
from .._base.source import api_boundary_of
from .._engine.results import as_result
from .._ir import dtypes
from .._ir.avals import ShapedArray
from .._ir.symbolic_dims import is_static
from .._runtime.array import put
from .._trace.core import set_trace, typeof
from .._transform.zeros import zeros
from ..lax.arithmetic import add
from ..lax.broadcasting import broadcasted_iota
from ..lax.comparison import eq
from ..lax.conversion import convert, convert_element_type
from ..lax.joining import split
from ..lax.reshaping import reshape
from .arguments import Closed, check_callable, checked_argnums
from .forward import jvp
from .grad import OF_COMPLEX, check_grad_input, check_real_or_complex
from .vjp import pull_back
from .vmap import vmap

tree_flatten, tree_unflatten = flatten_operands, pytree.tree_unflatten

_P = ParamSpec("_P")

_ADVICE = (
    "For holomorphic differentiation, pass holomorphic=True. For differentiation of "
    "non-holomorphic functions involving complex inputs or integer inputs, use jvp directly."
)


def jacfwd(
    fun: Callable[_P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[_P, Any]:
    """Jacobian of a function by forward mode, column by column: efficient for few inputs.

    Args:
      fun: a function of pytrees of arrays that returns a pytree of arrays.
      argnums: positional arguments to differentiate; a tuple gives a tuple of Jacobians.
      has_aux: ``fun`` returns ``(value, aux)``.
      holomorphic: compute the complex derivatives of a complex function.

    Returns:
      A function with the signature of ``fun`` that returns, for each leaf of the result (and for
      each argument, with several ``argnums``), an array of shape ``result.shape +
      argument.shape``; or a pair of the Jacobian and ``aux``.

    Raises:
      TypeError: if an argument or a result is not real (or complex, if ``holomorphic``).

    All columns are computed at once, by ``vmap`` of :func:`jvp` over the unit vectors.

    >>> import numpy as np
    >>> jacfwd(lambda x: x * x)(np.array([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    >>> [float(d) for d in jacfwd(lambda x, y: x * y, argnums=(0, 1))(2.0, 3.0)]
    [3.0, 2.0]
    """
    check_callable(fun)

    @api_boundary_of(fun, f"Jacobian of {{}} with respect to argument {argnums}.")
    def jacobian(*args, **kwargs):
        nums = checked_argnums(argnums, len(args), "jacfwd")
        closed = Closed(fun, args, nums, kwargs)
        diff_args = tuple([args[i] for i in nums])
        for x in tree_flatten(diff_args)[0]:
            check_real_or_complex(typeof(x).dtype, holomorphic, "jacfwd", "input", _ADVICE)

        def push(tangents):
            return jvp(closed, diff_args, tangents, has_aux=has_aux)

        leaves, in_tree = tree_flatten(diff_args)
        result = vmap(push, out_axes=(None, -1, None) if has_aux else (None, -1))(
            basis(leaves, in_tree)
        )
        value, columns = result[0], result[1]
        for o in tree_flatten(value)[0] if holomorphic else ():
            check_real_or_complex(typeof(o).dtype, True, "jacfwd", "output")
        several = isinstance(argnums, (tuple, list))

        def of_leaf(column):
            parts = tree_unflatten(in_tree, split_basis(column, leaves, -1))
            return parts if several else parts[0]

        columns = pytree.tree_map(_zeros_for_integers, value, columns)
        jac = pytree.tree_map(of_leaf, columns)
        return (jac, result[2]) if has_aux else jac

    return jacobian


def _zeros_for_integers(x, directions):
    """Derivatives of or with respect to an integer: zeros of its dtype instead of ``float0``."""
    if not isinstance(directions, np.ndarray) or directions.dtype != dtypes.float0:
        return directions
    return as_result(zeros(typeof(x).update(shape=directions.shape)))


def jacrev(
    fun: Callable[_P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[_P, Any]:
    """Jacobian of a function by reverse mode, row by row: efficient for few results.

    Args:
      fun: a function of pytrees of arrays that returns a pytree of arrays.
      argnums: positional arguments to differentiate; a tuple gives a tuple of Jacobians.
      has_aux: ``fun`` returns ``(value, aux)``.
      holomorphic: compute the complex derivatives of a complex function.
      allow_int: return ``float0`` Jacobians for integer arguments instead of raising an error.

    Returns:
      A function with the signature of ``fun`` that returns, for each leaf of the result (and for
      each argument, with several ``argnums``), an array of shape ``result.shape +
      argument.shape``; or a pair of the Jacobian and ``aux``.

    Raises:
      TypeError: if an argument or a result is not real (or complex, if ``holomorphic``).

    The function is evaluated once; all rows are computed at once, by ``vmap`` of its pullback
    over the unit vectors.

    >>> import numpy as np
    >>> jacrev(lambda x: x * x)(np.array([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    >>> jacrev(lambda x: {"sum": x[0] + x[1]})((2.0, 3.0))["sum"][0].shape
    ()
    """
    check_callable(fun)

    @api_boundary_of(fun, f"Jacobian of {{}} with respect to argument {argnums}.")
    def jacobian(*args, **kwargs):
        nums = checked_argnums(argnums, len(args), "jacrev")
        closed = Closed(fun, args, nums, kwargs)
        diff_args = tuple([args[i] for i in nums])
        for x in tree_flatten(diff_args)[0]:
            check_grad_input(x, holomorphic, allow_int, "jacrev")
        value, pullback, aux = pull_back(closed, diff_args, has_aux)
        leaves, out_tree = tree_flatten(value)
        for o in leaves:
            advice = f"{OF_COMPLEX}, use vjp directly."
            check_real_or_complex(typeof(o).dtype, holomorphic, "jacrev", "output", advice)
        rows = vmap(pullback)(basis(leaves, out_tree))
        rows = pytree.tree_map(_zeros_for_integers, diff_args, rows)
        row_leaves, row_tree = tree_flatten(rows)
        parts = [split_basis(r, leaves, 0) for r in row_leaves]
        per_result = [tree_unflatten(row_tree, [p[i] for p in parts]) for i in range(len(leaves))]
        if not isinstance(argnums, (tuple, list)):
            per_result = [p[0] for p in per_result]
        jac = tree_unflatten(out_tree, per_result)
        return (jac, aux) if has_aux else jac

    return jacobian


jacobian = jacrev


def hessian(
    fun: Callable[_P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[_P, Any]:
    """Second derivatives of a function: forward mode over reverse mode.

    Args:
      fun: a function of pytrees of arrays that returns a pytree of arrays, mostly a scalar.
      argnums: positional arguments to differentiate; a tuple gives a tuple of tuples.
      has_aux: ``fun`` returns ``(value, aux)``.
      holomorphic: compute the complex derivatives of a complex function.

    Returns:
      A function with the signature of ``fun`` that returns, for each leaf of the result and each
      pair of arguments, an array of shape ``result.shape + first.shape + second.shape``.

    Raises:
      TypeError: if an argument or a result is not real (or complex, if ``holomorphic``).

    It is ``jacfwd(jacrev(fun))``. For the product of the Hessian with a vector, without the
    matrix, use ``jvp(grad(fun), (x,), (v,))``.

    >>> import numpy as np
    >>> from primax_core import lax
    >>> f = lambda x: lax.reduce_sum(x * x * x, (0,))
    >>> hessian(f)(np.array([1.0, 2.0])).tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    """
    return jacfwd(
        jacrev(fun, argnums, has_aux=has_aux, holomorphic=holomorphic),
        argnums, has_aux=has_aux, holomorphic=holomorphic,
    )  # fmt: skip


def directions_of(leaves: Sequence[Any]) -> list[np.ndarray]:
    """Rows of an identity matrix, split and reshaped like the leaves."""
    avals = [typeof(x) for x in leaves]
    total = sum(a.size for a in avals)
    blocks, at = [], 0
    for a in avals:
        block = np.zeros((total, a.size), a.dtype)
        block[np.arange(at, at + a.size), np.arange(a.size)] = 1
        blocks.append(block.reshape(total, *a.shape))
        at += a.size
    return blocks


_bases: dict[tuple, list] = caches.bounded_cache(256)


def basis(leaves: Sequence[Any], tree):
    """The standard basis of a tree of arrays, along a new first axis; small ones are cached."""
    avals = [typeof(x) for x in leaves]
    if not all(is_static(a.shape) for a in avals):
        return tree_unflatten(tree, _symbolic_basis(avals))
    key = (state.key, *avals)
    blocks = _bases.get(key)
    if blocks is None:
        with set_trace(None):
            blocks = [
                put(block, aval=ShapedArray(block.shape, block.dtype, a.weak_type))
                for block, a in zip(directions_of(leaves), avals)
            ]
        if sum(f.size for f in blocks) <= 1 << 16:
            _bases[key] = blocks
    return tree_unflatten(tree, blocks)


def _symbolic_basis(avals: Sequence[Any]) -> list[Any]:
    """The standard basis of arrays of symbolic sizes, computed in the traced function."""
    total, at, blocks = sum(a.size for a in avals), 0, []
    for a in avals:
        row, column = (broadcasted_iota(np.int32, (total, a.size), i) for i in (0, 1))
        offset = convert_element_type(at, np.dtype(np.int32))
        block = convert(eq(row, add(column, offset)), a.dtype, a.weak_type)
        blocks.append(reshape(block, (total, *a.shape)))
        at = at + a.size
    return blocks


def split_basis(x, leaves: Sequence[Any], axis: int) -> list[Any]:
    """Split the axis of basis directions into parts of the leaves' shapes."""
    avals = [typeof(leaf) for leaf in leaves]
    shape = typeof(x).shape
    axis = axis % len(shape)
    parts = [x] if len(avals) == 1 else split(x, [a.size for a in avals], axis)
    shapes = [(*shape[:axis], *a.shape, *shape[axis + 1 :]) for a in avals]
    return [p if typeof(p).shape == s else reshape(p, s) for p, s in zip(parts, shapes)]
