"""Checks of a case: values against NumPy, ``jit`` against eager, ``vmap`` against a loop,
derivatives against finite differences. Each check returns a description of the failure, or
``None``."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import numpy as np
from function_cases import Case

import primax_numpy as pnp
from primax_core import Array, enable_x64, jit, tree, vmap
from primax_core.extend import Operand, dtypes
from primax_core.testing import check_grads

_TOLERANCE: Final = {8: 1e-12, 4: 3e-5, 2: 3e-2, 1: 0.3}


def tolerance(dtype: Any) -> float:
    """Relative tolerance for results of a dtype."""
    if not dtypes.issubdtype(dtype, np.inexact):
        return 0.0
    return _TOLERANCE[np.finfo(dtype).dtype.itemsize if dtype.kind == "c" else dtype.itemsize]


def difference(actual: Any, expected: Any, limit: float | None) -> str | None:
    """The difference of two pytrees of arrays; NumPy's wider dtypes are ignored."""
    ours, theirs = (tree.leaves(_as_lists(x)) for x in (actual, expected))
    if len(ours) != len(theirs):
        return f"{len(ours)} results where {len(theirs)} are expected"
    for a, b in zip(ours, theirs):
        allowed = tolerance(np.asarray(a).dtype) if limit is None else limit
        x, y = wide(a), wide(b)
        if x.shape != y.shape:
            return f"shape {x.shape} where {y.shape} is expected"
        scale = float(np.max(np.abs(np.where(np.isfinite(y), y, 0)), initial=0.0))
        with np.errstate(invalid="ignore"):
            close = np.allclose(x, y, allowed, allowed * scale, equal_nan=True)
        if not close:
            return f"{x} where {y} is expected (tolerance {allowed})"
    return None


def _as_lists(x: Any) -> Any:
    return [_as_lists(y) for y in x] if isinstance(x, (list, tuple)) else x


def wide(x: Any) -> np.ndarray:
    """The values in a dtype that NumPy supports and that represents all 64-bit integers."""
    x = np.asarray(x)
    return x.astype(np.clongdouble if x.dtype.kind == "c" else np.longdouble)


def observed(case: Case, module: Any, fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function that returns the compared part of the results."""
    view = case.observe
    return fun if view is None else lambda *args: view(module, fun(*args))


def check_values(case: Case) -> str | None:
    """Values against NumPy's."""
    if case.numpy is False:
        return None
    args = case.draw()
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = observed(case, np, case.on_numpy())(*args)
    actual = observed(case, pnp, case.on(pnp))(*args)
    return difference(actual, expected, case.tolerance)


def check_compiled(case: Case) -> str | None:
    """Compiled and eager results: types, weakness and values."""
    if not case.compiled:
        return None
    fun = observed(case, pnp, case.on(pnp))
    args = case.draw()
    eager, compiled = fun(*args), over_operands(case, args, jit)(fun)
    for a, b in zip(tree.leaves(eager), tree.leaves(compiled), strict=True):
        if isinstance(a, Array) and (a.dtype, a.weak_type) != (b.dtype, b.weak_type):
            return f"compiled {b.aval}, eager {a.aval}"
    return difference(compiled, eager, case.tolerance)


def over_operands(
    case: Case, args: tuple[Any, ...], transform: Callable[[Callable[..., Any]], Any]
) -> Callable[[Callable[..., Any]], Any]:
    """Apply a transformation to a function of the drawn arguments, and call it."""

    def run(fun: Callable[..., Any]) -> Any:
        spots = [i for i, a in enumerate(case.args) if _holds_operand(a)]

        def of_spots(*some: Any) -> Any:
            full = list(args)
            for i, x in zip(spots, some):
                full[i] = x
            return fun(*full)

        return transform(of_spots)(*[args[i] for i in spots])

    return run


def _holds_operand(a: Any) -> bool:
    if isinstance(a, (list, tuple)):
        return any(_holds_operand(x) for x in a)
    return isinstance(a, Operand)


def check_batches(case: Case) -> str | None:
    """``vmap`` against a loop: all operands along the first axis, then the first operand along its
    last axis."""
    if not case.batched or not case.operands():
        return None
    fun = observed(case, pnp, case.on(pnp))
    args = case.draw()
    copies = [args, tree.map(lambda x: np.flip(x) if isinstance(x, np.ndarray) else x, args)]
    spots = [i for i, a in enumerate(case.args) if _holds_operand(a)]
    for mapped, axis in ((spots, 0), (spots[:1], -1)):
        axes = [axis if i in mapped else None for i in spots]
        stacked = []
        for i in spots:
            if i in mapped:
                stacked.append(
                    tree.map(lambda *xs, axis=axis: np.stack(xs, axis), *[c[i] for c in copies])
                )
            else:
                stacked.append(args[i])

        def of_spots(*some: Any) -> Any:
            full = list(args)
            for i, x in zip(spots, some):
                full[i] = x
            return fun(*full)

        actual = vmap(of_spots, tuple(axes))(*stacked)
        for n, copy in enumerate(copies):
            row = [copy[i] if i in mapped else args[i] for i in spots]
            one = tree.map(lambda x, n=n: x[n], actual)
            wrong = difference(one, of_spots(*row), case.tolerance)
            if wrong is not None:
                return f"axes {axes}, element {n}: {wrong}"
    return None


def check_derivatives(case: Case, order: int = 2) -> str | None:
    """Derivatives in both modes against finite differences in float64, up to an order."""
    floating = [dtypes.issubdtype(o.dtype, np.inexact) for o in case.operands()]
    order = min(case.order, order)
    if not order or not any(floating):
        return None
    with enable_x64(True):
        args = case.draw(double=True)
        fun = observed(case, pnp, case.on(pnp))

        def of_floats(*xs: Any) -> Any:
            return _only_floats(fun(*xs))

        spots = [i for i, a in enumerate(case.args) if _holds_operand(a)]

        def of_spots(*some: Any) -> Any:
            full = list(args)
            for i, x in zip(spots, some):
                full[i] = x
            return of_floats(*full)

        try:
            check_grads(of_spots, [args[i] for i in spots], order, rtol=1e-4, atol=1e-4)
        except AssertionError as e:
            return str(e)
    return None


def _only_floats(x: Any) -> list[Any]:
    return [y for y in tree.leaves(x) if dtypes.issubdtype(y.dtype, np.inexact)]


CHECKS: Final = (check_values, check_compiled, check_batches)


def verdicts(case: Case, order: int = 2) -> Iterator[str]:
    """The failures of a case, check by check, with derivatives up to an order."""
    for check in (*CHECKS, partial(check_derivatives, order=order)):
        wrong = check(case)
        if wrong is not None:
            name = getattr(check, "__name__", check_derivatives.__name__)
            yield f"{name}: {wrong}"
