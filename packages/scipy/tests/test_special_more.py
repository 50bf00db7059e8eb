"""Every check of the special functions that only SciPy has: SciPy in double precision, ``jit``
against eager, ``vmap``, derivatives against finite differences."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special as theirs
from special_more_cases import CASES

from primax_core import enable_x64, jit, tree, vmap
from primax_scipy import special
from test_support import (
    Case,
    assert_close,
    check_derivatives,
    check_settings,
    fixing,
    largest,
    numbered,
)

NAMES = numbered(CASES)
# Functions whose second derivatives with respect to parameters exist only in forward mode.
ONCE = {
    "jv", "jve", "yv", "yve", "iv", "ive", "kv", "kve", "elliprc", "elliprd", "elliprg", "elliprj",
    "eval_genlaguerre", "eval_gegenbauer", "eval_jacobi",
}  # fmt: skip
FIRST = {c.name: c for c in reversed(CASES)}


@pytest.mark.rotate()
@pytest.mark.parametrize("double", [False, True], ids=["single", "double"])
@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_values_of_more(case: Case, double: bool) -> None:
    dtype = np.float64 if double else np.float32
    with enable_x64(double):
        args = case.draw(double=double, shape=(40,))
        actual = case.on(special)(*args)
    wide = [a.astype(np.float64) if a.dtype.kind == "f" else a for a in args]
    with np.errstate(all="ignore"):
        expected = case.oracle(theirs)(*wide)
    for a, b in zip(tree.leaves(actual), tree.leaves(expected), strict=True):
        assert a.dtype == dtype, case
        rtol = float(np.finfo(dtype).eps) * (64 if case.ulps is None else case.ulps)
        # Oscillating functions are accurate relative to their amplitude.
        atol = rtol * 0.01 * min(1.0, largest(b))
        assert_close(a, b, rtol=rtol, atol=atol, err_msg=repr(case))


@pytest.mark.rotate()
@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_more_compiled_and_mapped(case: Case) -> None:
    args = case.draw(shape=(3,))
    fun = case.on(special)
    eager = fun(*args)
    for other in (jit(fun)(*args), vmap(fun)(*args)):
        options = {"rtol": 1e-4, "atol": 1e-5, "check_dtype": True}
        assert_close(tree.leaves(eager), tree.leaves(other), **options)


@pytest.mark.rotate()
@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_settings_of_more(case: Case) -> None:
    check_settings(case, special)


SMOOTH = [(n, c) for n, c in zip(NAMES, CASES) if c.differentiated()]


@pytest.mark.rotate(every=20, whole=True)
@pytest.mark.parametrize("case", [c for _, c in SMOOTH], ids=[n for n, _ in SMOOTH])
def test_derivatives_of_more(case: Case) -> None:
    if any(a.high - a.low < 1e-2 for a in case.operands()):
        return  # difference steps would leave the interval
    args, at = case.draw(double=True, shape=(3,)), case.differentiated()
    fun = fixing(case.on(special), args, at)
    once = case.name in ONCE or FIRST[case.name] is not case
    limits = {"rtol": 2e-4, "atol": 2e-4, "value_rtol": 1e-11}
    order = min(1 if once else 2, case.order)
    check_derivatives(fun, *[args[i] for i in at], order=order, step=None, **limits)
