"""Every check of every case: SciPy in double precision, ``jit`` against eager, ``vmap``,
derivatives against finite differences."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special as theirs
from special_cases import CASES

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
ULPS = 64
# Second derivatives with respect to parameters exist only in forward mode, or are those of the
# core.
ONCE = {"hyp1f1", "hyp2f1", "gammainc", "gammaincc"}
FIRST = {c.name: c for c in reversed(CASES)}


@pytest.mark.parametrize("double", [False, True], ids=["single", "double"])
@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_values(case: Case, double: bool) -> None:
    dtype = np.float64 if double else np.float32
    with enable_x64(double):
        args = case.draw(double=double, shape=(40,))
        actual = case.on(special)(*args)
    with np.errstate(all="ignore"):
        expected = case.oracle(theirs)(*[a.astype(np.result_type(a, np.float64)) for a in args])
    for a, b in zip(tree.leaves(actual), tree.leaves(expected), strict=True):
        assert np.finfo(a.dtype).dtype == dtype, case
        eps = float(np.finfo(dtype).eps)
        rtol = eps * (ULPS if case.ulps is None else case.ulps)
        atol = eps * ULPS * min(1.0, largest(b)) if case.name == "sici" else 0.0
        assert_close(a, b, rtol=rtol, atol=atol, err_msg=repr(case))


@pytest.mark.rotate()
@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_compiled_and_mapped(case: Case) -> None:
    args = case.draw(shape=(3,))
    fun = case.on(special)
    eager = fun(*args)
    for other in (jit(fun)(*args), vmap(fun)(*args)):
        options = {"rtol": 1e-4, "atol": 1e-6, "check_dtype": True}
        assert_close(tree.leaves(eager), tree.leaves(other), **options)


@pytest.mark.rotate()
@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_settings(case: Case) -> None:
    check_settings(case, special)


SMOOTH = [c for c in CASES if c.differentiated()]


@pytest.mark.rotate()
@pytest.mark.parametrize(
    "case", SMOOTH, ids=[n for n, c in zip(NAMES, CASES) if c.differentiated()]
)
def test_derivatives(case: Case) -> None:
    if case.name == "factorial" or any(a.high - a.low < 1e-3 for a in case.args):
        return  # difference steps would leave the interval
    args, at = case.draw(double=True, shape=(3,)), case.differentiated()
    fun = fixing(case.on(special), args, at)
    some = [args[i] for i in at]
    order = 2 if FIRST[case.name] is case and case.name not in ONCE else 1
    limits = {"rtol": 2e-4, "atol": 2e-4, "value_rtol": 1e-12}
    check_derivatives(fun, *some, order=order, step=None, **limits)
