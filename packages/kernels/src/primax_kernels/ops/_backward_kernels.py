"""Functions with kernels for reverse mode, and the derivative of arrays in forward mode."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from primax_core import custom_jvp, dtypes, jvp, tree_util
from primax_core.custom_derivatives import linear_call
from primax_core.extend import typeof

Function = Callable[..., Any]


def with_backward(fun: Function, forward: Function, backward: Function) -> Function:
    """A function with derivatives in both modes.

    ``custom_vjp`` would refuse forward mode. Here the derivative is a linear function of the
    tangents, whose transpose is ``backward``: forward mode runs the derivative of ``fun`` as
    operations on arrays, reverse mode only ``forward`` and ``backward``.

    Args:
      fun: function ``(config, *arrays)``, pytrees, that returns one array; ``config`` is hashable.
      forward: function of the same arguments that returns the result, and residuals.
      backward: function ``(config, residuals, cotangent)`` that returns a cotangent for each of the
        arrays, ``None`` for integers and absent ones.
    """

    def call(config: Any, *arrays: Any) -> Any:
        return fun(config, *arrays)

    def derivative(config: Any, arrays: Any, tangents: Any) -> tuple[Any, Any]:
        out, residuals = forward(config, *arrays)
        leaves, tree = tree_util.tree_flatten(arrays)
        moving = [i for i, x in enumerate(leaves) if _is_float(x)]
        slopes = [tree_util.tree_leaves(tangents)[i] for i in moving]

        def tangent(known: Any, slopes: Any) -> Any:
            leaves, _ = known

            def of_floats(*floats: Any) -> Any:
                whole = list(leaves)
                for i, x in zip(moving, floats):
                    whole[i] = x
                return fun(config, *tree_util.tree_unflatten(tree, whole))

            return jvp(of_floats, [leaves[i] for i in moving], slopes)[1]

        def cotangent(known: Any, ct: Any) -> Any:
            _, residuals = known
            cotangents = backward(config, residuals, ct)
            whole = _of_leaves(cotangents, arrays)
            return [whole[i] for i in moving]

        return out, linear_call(tangent, cotangent, (leaves, residuals), slopes)

    functools.update_wrapper(call, fun)
    function = custom_jvp(call, nondiff_argnums=(0,))
    function.defjvp(derivative)
    return function


def _is_float(x: Any) -> bool:
    return bool(dtypes.issubdtype(typeof(x).dtype, np.floating))


def _of_leaves(cotangents: Any, arrays: Any) -> list[Any]:
    """A cotangent, or ``None``, for each leaf of the arrays."""
    leaves: list[Any] = []
    for ct, x in zip(cotangents, arrays, strict=True):
        n = len(tree_util.tree_leaves(x))
        leaves += [ct] if n == 1 else [None] * n  # pairs of arrays are integers
    return leaves
