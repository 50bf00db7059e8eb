"""Derivatives with respect to sparse arrays: at the places where they have elements."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import primax_core as core
import primax_numpy as pnp
from primax_core.tree_util import tree_flatten, tree_leaves, tree_map, tree_unflatten

from ._bcoo import BCOO
from ._interpreter import is_sparse


def _by_data(
    fun: Callable[..., Any], argnums: int | Sequence[int], args: Sequence[Any], kwargs: Any
) -> tuple[Callable[..., Any], list[Any], Callable[[Sequence[Any]], Any]]:
    """A function of arrays: what is stored of the arguments that ``argnums`` names.

    Returns:
      It, the arrays, and how derivatives by them are put together.
    """
    single = isinstance(argnums, int)
    named = [argnums] if isinstance(argnums, int) else list(map(operator.index, argnums))
    named = [n % len(args) if -len(args) <= n < len(args) else n for n in named]
    if any(n >= len(args) for n in named):
        raise ValueError(f"argnums={argnums} of a call with {len(args)} positional arguments")
    chosen = [args[n] for n in named]
    leaves, tree = tree_flatten(chosen, is_leaf=is_sparse)
    arrays = [x.data if isinstance(x, BCOO) else x for x in leaves]

    def of_arrays(*arrays: Any) -> Any:
        parts = [x.like(a) if isinstance(x, BCOO) else a for x, a in zip(leaves, arrays)]
        full = list(args)
        for n, x in zip(named, tree_unflatten(tree, parts)):
            full[n] = x
        return fun(*full, **kwargs)

    def together(slopes: Sequence[Any]) -> Any:
        found = tree_unflatten(tree, [_slope(x, s) for x, s in zip(leaves, slopes)])
        return found[0] if single else tuple(found)

    return of_arrays, arrays, together


def _slope(x: Any, slope: Any) -> Any:
    """The derivative by an argument, from that by what is stored of it; of each result, if there
    are several."""
    if not isinstance(x, BCOO):
        return slope
    return tree_map(lambda s: _like(x, s), slope)


def _like(x: BCOO, slope: Any) -> BCOO:
    outer = slope.shape[: slope.ndim - x.data.ndim]
    if not outer:
        return x.like(slope)
    indices = pnp.broadcast_to(x.indices, (*outer, *x.indices.shape))
    known = {"indices_sorted": x.indices_sorted, "unique_indices": x.unique_indices}
    return BCOO((slope, indices), shape=(*outer, *x.shape), **known)


def _differentiated(transform: Callable[..., Any], doc: str) -> Callable[..., Any]:
    def derivative(
        fun: Callable[..., Any],
        argnums: int | Sequence[int] = 0,
        has_aux: bool = False,
        **kwargs: Any,
    ) -> Callable[..., Any]:
        def of(*args: Any, **named: Any) -> Any:
            flat, arrays, together = _by_data(fun, argnums, args, named)
            every = tuple(range(len(arrays)))
            found = transform(flat, argnums=every, has_aux=has_aux, **kwargs)(*arrays)
            if transform is core.value_and_grad:
                return found[0], together(found[1])
            if has_aux:
                return together(_by_argument(found[0], len(arrays))), found[1]
            return together(_by_argument(found, len(arrays)))

        return of

    derivative.__doc__ = doc
    derivative.__name__ = derivative.__qualname__ = transform.__name__
    return derivative


def _by_argument(found: Any, count: int) -> list[Any]:
    """Derivatives argument by argument, each a pytree of those of the results."""
    if isinstance(found, tuple) and len(found) == count and not tree_leaves(found) == []:
        return list(found)
    return [
        tree_map(lambda one, i=i: one[i], found, is_leaf=lambda x: isinstance(x, tuple))
        for i in range(count)
    ]


_SHARED = """

    Args:
      argnums: which positional arguments, pytrees of arrays and :class:`BCOO`, to differentiate by.
      has_aux: the function returns a pair, whose second part is passed on.

    The derivative by a sparse array is a sparse array with the same indices: of elements that are
    not stored it says nothing.
    """

value_and_grad: Callable[..., Any] = _differentiated(
    core.value_and_grad, "As :func:`primax.value_and_grad`, also by sparse arrays." + _SHARED
)
grad: Callable[..., Any] = _differentiated(
    core.grad, "As :func:`primax.grad`, also by sparse arrays." + _SHARED
)
jacfwd: Callable[..., Any] = _differentiated(
    core.jacfwd, "As :func:`primax.jacfwd`, also by sparse arrays." + _SHARED
)
jacrev: Callable[..., Any] = _differentiated(
    core.jacrev, "As :func:`primax.jacrev`, also by sparse arrays." + _SHARED
)
jacobian: Callable[..., Any] = jacrev
