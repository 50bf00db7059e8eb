"""Checks of a case: values against NumPy, ``jit`` against eager, ``vmap`` against a loop,
derivatives against finite differences."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import numpy as np

import primax_numpy as pnp
import test_support
from primax_core import Array, jit, tree, vmap
from primax_core.extend import dtypes
from test_support import Case, assert_close, fixing


def agree(case: Case, actual: Any, expected: Any, what: str = "") -> None:
    """Assert that results agree; NumPy's wider dtypes are ignored."""
    assert_close(actual, expected, rtol=case.tolerance, scaled=True, err_msg=what)


def check_values(case: Case) -> None:
    """Values against NumPy's."""
    if case.expected is False:
        return
    args = case.draw()
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = case.oracle()(*args)
    agree(case, case.on(pnp)(*args), expected)


def check_compiled(case: Case) -> None:
    """Compiled and eager results: types, weakness and values."""
    if not case.compiled:
        return
    args, at = case.draw(), case.positions()
    some = [args[i] for i in at]
    fun = fixing(case.on(pnp), args, at)
    eager, compiled = fun(*some), jit(fun)(*some)
    for a, b in zip(tree.leaves(eager), tree.leaves(compiled), strict=True):
        if isinstance(a, Array):
            assert (a.dtype, a.weak_type) == (b.dtype, b.weak_type), (b.aval, a.aval)
    agree(case, compiled, eager)


def check_batches(case: Case) -> None:
    """``vmap`` against a loop: all operands along the first axis, then the first operand along its
    last axis."""
    at = case.positions()
    if not case.batched or not at:
        return
    args = case.draw()
    copies = [args, tree.map(lambda x: np.flip(x) if isinstance(x, np.ndarray) else x, args)]
    fun = fixing(case.on(pnp), args, at)
    for mapped, axis in ((at, 0), (at[:1], -1)):
        axes = tuple([axis if i in mapped else None for i in at])
        stack = lambda *xs, axis=axis: np.stack(xs, axis)
        stacked = [tree.map(stack, *[c[i] for c in copies]) if i in mapped else args[i] for i in at]
        actual = vmap(fun, axes)(*stacked)
        for n, copy in enumerate(copies):
            one = tree.map(lambda x, n=n: x[n], actual)
            expected = fun(*[copy[i] if i in mapped else args[i] for i in at])
            agree(case, one, expected, f"axes {axes}, element {n}")


def check_derivatives(case: Case, order: int = 2) -> None:
    """Derivatives in both modes against finite differences in float64, up to an order."""
    order = min(case.order, order)
    if not case.differentiated():
        return
    args, at = case.draw(double=True), case.positions()
    fun = fixing(lambda *xs: _only_floats(case.on(pnp)(*xs)), args, at)
    some = [args[i] for i in at]
    limits = {"rtol": 1e-4, "atol": 1e-4, "value_rtol": 1e-12}
    test_support.check_derivatives(fun, *some, order=order, step=None, **limits)


def _only_floats(x: Any) -> list[Any]:
    return [y for y in tree.leaves(x) if dtypes.issubdtype(y.dtype, np.inexact)]


CHECKS: Final = (check_values, check_compiled, check_batches)


def failures(case: Case, order: int = 2) -> Iterator[str]:
    """The failures of a case, check by check, with derivatives up to an order."""
    for check in (*CHECKS, partial(check_derivatives, order=order)):
        try:
            check(case)
        except AssertionError as error:
            name = getattr(check, "__name__", check_derivatives.__name__)
            yield f"{name}: {error}"
