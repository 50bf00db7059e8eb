"""Derivatives with respect to sparse arrays: at the places where they have elements."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import primax_core as core
import primax_numpy as pnp
from primax_core.tree_util import tree_flatten, tree_structure, tree_unflatten

from ._bcoo import BCOO
from ._interpreter import is_sparse


class _ByData:
    """A function of arrays: what is stored of the arguments that ``argnums`` names."""

    def __init__(
        self, fun: Callable[..., Any], argnums: Any, has_aux: bool, args: Any, kwargs: Any
    ) -> None:
        self.fun, self.has_aux, self.args, self.kwargs = fun, has_aux, list(args), kwargs
        self.single = not isinstance(argnums, (tuple, list))
        named = [operator.index(n) for n in ((argnums,) if self.single else argnums)]
        if any(not -len(args) <= n < len(args) for n in named):
            raise ValueError(f"argnums={argnums} of a call with {len(args)} positional arguments")
        self.named = [n % len(args) for n in named]
        chosen = [args[n] for n in self.named]
        self.leaves, self.tree = tree_flatten(chosen, is_leaf=is_sparse)
        self.arrays = [x.data if isinstance(x, BCOO) else x for x in self.leaves]
        self.every = tuple(range(len(self.arrays)))
        self.results: Any = None

    def __call__(self, *arrays: Any) -> Any:
        parts = [x.like(a) if isinstance(x, BCOO) else a for x, a in zip(self.leaves, arrays)]
        for n, x in zip(self.named, tree_unflatten(self.tree, parts)):
            self.args[n] = x
        out = self.fun(*self.args, **self.kwargs)
        self.results = tree_structure(out[0] if self.has_aux else out)
        return out

    def together(self, slopes: Sequence[Any]) -> Any:
        """Derivatives by arrays as derivatives by arguments."""
        made = [_like(x, s) if isinstance(x, BCOO) else s for x, s in zip(self.leaves, slopes)]
        found = tree_unflatten(self.tree, made)
        return found[0] if self.single else tuple(found)

    def of_each_result(self, slopes: Any) -> Any:
        """The same for each of the function's results, which are a pytree."""
        found = self.results.flatten_up_to(slopes)
        return tree_unflatten(self.results, [self.together(s) for s in found])


def _like(x: BCOO, slope: Any) -> BCOO:
    outer = slope.shape[: slope.ndim - x.data.ndim]
    if not outer:
        return x.like(slope)
    indices = pnp.broadcast_to(x.indices, (*outer, *x.indices.shape))
    known = {"indices_sorted": x.indices_sorted, "unique_indices": x.unique_indices}
    return BCOO((slope, indices), shape=(*outer, *x.shape), **known)


def value_and_grad(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """As :func:`primax.value_and_grad`, also by sparse arrays.

    Args:
      argnums: which positional arguments, pytrees of arrays and :class:`BCOO`, to differentiate by.
      has_aux: the function returns a pair, whose second part is passed on.
      kwargs: further options of :func:`primax.value_and_grad`.

    The derivative by a sparse array is a sparse array with the same indices: of elements that are
    not stored it says nothing.
    """

    def of(*args: Any, **named: Any) -> Any:
        flat = _ByData(fun, argnums, has_aux, args, named)
        compute = core.value_and_grad(flat, flat.every, has_aux=has_aux, **kwargs)
        value, slopes = compute(*flat.arrays)
        return value, flat.together(slopes)

    return of


def grad(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """As :func:`primax.grad`, also by sparse arrays: see :func:`value_and_grad`."""
    compute = value_and_grad(fun, argnums, has_aux, **kwargs)

    def of(*args: Any, **named: Any) -> Any:
        value, slopes = compute(*args, **named)
        return (slopes, value[1]) if has_aux else slopes

    return of


def _jacobian(
    transform: Callable[..., Any],
    fun: Callable[..., Any],
    argnums: int | Sequence[int],
    has_aux: bool,
    kwargs: Any,
) -> Callable[..., Any]:
    def of(*args: Any, **named: Any) -> Any:
        flat = _ByData(fun, argnums, has_aux, args, named)
        found = transform(flat, flat.every, has_aux=has_aux, **kwargs)(*flat.arrays)
        if has_aux:
            return flat.of_each_result(found[0]), found[1]
        return flat.of_each_result(found)

    return of


def jacfwd(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """As :func:`primax.jacfwd`, also by sparse arrays: see :func:`value_and_grad`.

    The derivative by a sparse array has the dimensions of the result as batch dimensions before
    those of the array.
    """
    return _jacobian(core.jacfwd, fun, argnums, has_aux, kwargs)


def jacrev(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """As :func:`primax.jacrev`, also by sparse arrays: see :func:`jacfwd`."""
    return _jacobian(core.jacrev, fun, argnums, has_aux, kwargs)


jacobian = jacrev
