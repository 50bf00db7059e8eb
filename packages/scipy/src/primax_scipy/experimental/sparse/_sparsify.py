"""``sparsify``: versions of array functions that accept sparse arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from primax_core.extend import stage
from primax_core.tree_util import tree_flatten, tree_unflatten

from ._interpreter import evaluate, is_sparse, type_of
from ._tracer import run_on_tracers


def sparsify(f: Callable[..., Any], use_tracer: bool = False) -> Callable[..., Any]:
    """A version of ``f`` that accepts sparse arrays.

    Args:
      f: a function of pytrees of arrays.
      use_tracer: run ``f`` on tracers of the class :class:`SparseTracer`, so that its operations
        are evaluated one by one, and Python can read values of dense arrays. By default ``f`` is
        traced, and its jaxpr is evaluated on sparse arrays.

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

    if use_tracer:
        return functools.wraps(f)(lambda *args, **kwargs: run_on_tracers(f, args, kwargs))

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
