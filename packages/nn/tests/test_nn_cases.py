"""Every check of every case: the formula in wide floats, ``jit`` against eager, ``vmap`` against a
loop, derivatives up to the second against finite differences in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from nn_cases import Case, all_cases

import primax_nn as nn
from primax_core import Array, enable_x64, jit, tree, vmap
from primax_core.extend import dtypes
from primax_core.testing import check_grads

CASES = all_cases()
NAMES = [f"{n}-{c.name}" for n, c in enumerate(CASES)]
TOLERANCE = {8: 1e-12, 4: 3e-6, 2: 1e-2}


def wide(x: Any) -> Any:
    """Operands of formulas, in NumPy's widest float."""
    if not isinstance(x, (np.ndarray, Array)):
        return x
    x = np.asarray(x)
    if not dtypes.issubdtype(x.dtype, np.inexact):
        return x
    return x.astype(np.clongdouble if x.dtype.kind == "c" else np.longdouble)


def agree(actual: Any, expected: Any, case: Case) -> None:
    ours, theirs = tree.leaves(actual), tree.leaves(expected)
    assert len(ours) == len(theirs), case
    for a, b in zip(ours, theirs):
        a = np.asarray(a)
        item = np.finfo(a.dtype).dtype.itemsize if a.dtype.kind == "c" else a.dtype.itemsize
        limit = case.tolerance
        if limit is None:
            limit = TOLERANCE[item] if dtypes.issubdtype(a.dtype, np.inexact) else 0.0
        x, y = wide(a), wide(np.asarray(b))
        assert x.shape == y.shape, case
        scale = float(np.max(np.abs(np.where(np.isfinite(y), y, 0)), initial=0.0))
        scale = 0.0 if scale > 1e30 else min(scale, 1.0)
        np.testing.assert_allclose(
            x.astype(np.complex128 if x.dtype.kind == "c" else np.float64),
            y.astype(np.complex128 if y.dtype.kind == "c" else np.float64),
            limit, limit * scale, err_msg=repr(case),
        )  # fmt: skip


def parted(case: Case, args: list[Any], spots: list[int]) -> Any:
    """A function of some of the arguments."""
    fun = case.on(nn)

    def run(*some: Any) -> Any:
        full = list(args)
        for i, x in zip(spots, some):
            full[i] = x
        return fun(*full)

    return run


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_values(case: Case) -> None:
    args = case.draw()
    assert case.formula is not None
    with np.errstate(all="ignore"):
        expected = case.formula(*[wide(a) for a in args], **case.params)
    agree(case.on(nn)(*args), expected, case)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_compiled(case: Case) -> None:
    args, spots = case.draw(), case.operands()
    fun = parted(case, args, spots)
    some = [args[i] for i in spots]
    eager, compiled = fun(*some), jit(fun)(*some)
    for a, b in zip(tree.leaves(eager), tree.leaves(compiled), strict=True):
        assert (a.dtype, a.weak_type) == (b.dtype, b.weak_type)
    agree(compiled, eager, case)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_batches(case: Case) -> None:
    spots = case.operands()
    if not case.batched or not spots:
        return
    copies = [case.draw(), case.draw(salt=1)]
    for mapped, axis in ((spots, 0), (spots[:1], -1)):
        args = copies[0]
        fun = parted(case, args, spots)
        axes = tuple(axis if i in mapped else None for i in spots)
        some = [np.stack([c[i] for c in copies], axis) if i in mapped else args[i] for i in spots]
        actual = vmap(fun, axes)(*some)
        for n, c in enumerate(copies):
            one = fun(*[c[i] if i in mapped else args[i] for i in spots])
            agree(tree.map(lambda x, n=n: x[n], actual), one, case)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_derivatives(case: Case) -> None:
    spots = case.floating()
    if not case.order or not spots:
        return
    with enable_x64(True):
        args = case.draw(double=True)
        fun = parted(case, args, spots)
        some = [args[i] for i in spots]
        check_grads(fun, some, case.order, rtol=1e-4, atol=1e-4)
