"""Derivatives with respect to sparse arrays, at their stored elements."""

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
    """A function of the stored data of the arguments in ``argnums``."""

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
        self.arrays = [x.data if is_sparse(x) else x for x in self.leaves]
        self.every = tuple(range(len(self.arrays)))
        self.results: Any = None

    def __call__(self, *arrays: Any) -> Any:
        parts = [x.with_data(a) if is_sparse(x) else a for x, a in zip(self.leaves, arrays)]
        for n, x in zip(self.named, tree_unflatten(self.tree, parts)):
            self.args[n] = x
        out = self.fun(*self.args, **self.kwargs)
        self.results = tree_structure(out[0] if self.has_aux else out)
        return out

    def together(self, gradients: Sequence[Any]) -> Any:
        """Derivatives with respect to arrays, as derivatives with respect to the arguments."""
        derivatives = [_like(x, s) if is_sparse(x) else s for x, s in zip(self.leaves, gradients)]
        gradients_tree = tree_unflatten(self.tree, derivatives)
        return gradients_tree[0] if self.single else tuple(gradients_tree)

    def of_each_result(self, gradients: Any) -> Any:
        """The same for each result of the function, which is a pytree."""
        per_result = self.results.flatten_up_to(gradients)
        return tree_unflatten(self.results, [self.together(s) for s in per_result])


def _like(x: Any, gradient: Any) -> Any:
    outer = gradient.shape[: gradient.ndim - x.data.ndim]
    if not outer:
        return x.with_data(gradient)
    form, x = x, x.to_bcoo()
    indices = pnp.broadcast_to(x.indices, (*outer, *x.indices.shape))
    known = {"indices_sorted": x.indices_sorted, "unique_indices": x.unique_indices}
    return form.stored_like(BCOO((gradient, indices), shape=(*outer, *x.shape), **known))


def value_and_grad(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """Like :func:`primax.value_and_grad`, also with respect to sparse arrays.

    Args:
      argnums: the positional arguments to differentiate with respect to: pytrees of arrays and
        sparse arrays.
      has_aux: the function returns a pair, the second part of which is auxiliary data.
      kwargs: further options of :func:`primax.value_and_grad`.

    The derivative with respect to a sparse array is a sparse array with the same indices. It
    contains no derivatives of elements that are not stored.
    """

    def of(*args: Any, **named: Any) -> Any:
        flat = _ByData(fun, argnums, has_aux, args, named)
        compute = core.value_and_grad(flat, flat.every, has_aux=has_aux, **kwargs)
        value, gradients = compute(*flat.arrays)
        return value, flat.together(gradients)

    return of


def grad(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """Like :func:`primax.grad`, also with respect to sparse arrays: see :func:`value_and_grad`."""
    compute = value_and_grad(fun, argnums, has_aux, **kwargs)

    def of(*args: Any, **named: Any) -> Any:
        value, gradients = compute(*args, **named)
        return (gradients, value[1]) if has_aux else gradients

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
        out = transform(flat, flat.every, has_aux=has_aux, **kwargs)(*flat.arrays)
        if has_aux:
            return flat.of_each_result(out[0]), out[1]
        return flat.of_each_result(out)

    return of


def jacfwd(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """Like :func:`primax.jacfwd`, also with respect to sparse arrays: see :func:`value_and_grad`.

    The derivative has the dimensions of the result as leading batch dimensions.
    """
    return _jacobian(core.jacfwd, fun, argnums, has_aux, kwargs)


def jacrev(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """Like :func:`primax.jacrev`, also with respect to sparse arrays: see :func:`jacfwd`."""
    return _jacobian(core.jacrev, fun, argnums, has_aux, kwargs)


jacobian = jacrev
