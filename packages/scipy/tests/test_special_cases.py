"""Every check of every case: SciPy in double precision, ``jit`` against eager, ``vmap``,
derivatives against finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special as theirs
from special_cases import CASES, Case

from primax_core import enable_x64, jit, tree, vmap
from primax_core.testing import check_grads
from primax_scipy import special

NAMES = [f"{n}-{c.name}" for n, c in enumerate(CASES)]
# Second derivatives with respect to parameters exist only in forward mode, or are those of the
# core.
ONCE = {"hyp1f1", "hyp2f1", "gammainc", "gammaincc"}
FIRST = {c.name: c for c in reversed(CASES)}


def ours(case: Case) -> Any:
    return lambda *args: getattr(special, case.name)(*args, **case.params)


def expected(case: Case, args: list[Any]) -> Any:
    wide = [a.astype(np.result_type(a.dtype, np.float64)) for a in args]
    if case.name == "expit" and wide[0].dtype.kind == "c":
        return 1 / (1 + np.exp(-wide[0]))
    if case.name == "multigammaln":
        return np.array([theirs.multigammaln(v, **case.params) for v in wide[0]])
    if case.name == "polygamma":
        return theirs.polygamma(args[0], wide[1])
    return getattr(theirs, case.name)(*wide, **case.params)


@pytest.mark.parametrize("double", [False, True], ids=["single", "double"])
@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_values(case: Case, double: bool) -> None:
    dtype = np.float64 if double else np.float32
    with enable_x64(double):
        args = case.draw(dtype)
        actual = ours(case)(*args)
        with np.errstate(all="ignore"):
            expected_value = expected(case, args)
        for a, b in zip(tree.leaves(actual), tree.leaves(expected_value), strict=True):
            a, b = np.asarray(a), np.asarray(b)
            eps = np.finfo(a.dtype).eps
            assert np.finfo(a.dtype).dtype == dtype, case
            scale = np.max(np.abs(b)) if case.name == "sici" else 0.0
            np.testing.assert_allclose(
                a, b, case.tolerance * eps, eps * 64 * min(1.0, scale), err_msg=repr(case)
            )


@pytest.mark.rotate()
@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_compiled_and_mapped(case: Case) -> None:
    args = case.draw(np.float32, (3,))
    fun = ours(case)
    eager = tree.leaves(fun(*args))
    for other in (jit(fun)(*args), vmap(fun)(*args)):
        for a, b in zip(eager, tree.leaves(other), strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            np.testing.assert_allclose(a, b, 1e-4, 1e-6)


@pytest.mark.rotate()
@pytest.mark.parametrize(
    "case", [c for c in CASES if c.by], ids=[n for n, c in zip(NAMES, CASES) if c.by]
)
def test_derivatives(case: Case) -> None:
    with enable_x64(True):
        args = case.draw(np.float64, (3,))
        if case.name == "factorial" or any(a.high - a.low < 1e-3 for a in case.args):
            return  # difference steps would leave the interval
        some = [args[i] for i in case.by]

        def fun(*xs: Any) -> Any:
            full = list(args)
            for i, x in zip(case.by, xs):
                full[i] = x
            return ours(case)(*full)

        order = 2 if FIRST[case.name] is case and case.name not in ONCE else 1
        check_grads(fun, some, order, rtol=2e-4, atol=2e-4)
