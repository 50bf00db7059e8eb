"""The test cases of the NumPy layer against the reference: values, dtypes, weak types, derivatives.

The same with operands of every dtype. If the reference raises, Primax must raise, too.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as rnp
import ml_dtypes
import numpy as np
import pytest
from agreement import same
from function_cases import all_cases
from function_checks import agree

import primax_core as px
import primax_numpy as pnp
from primax_core.extend import dtypes
from test_support import Case, fixing, numbered, tolerance

CASES = [c for c in all_cases() if not c.differs]
NAMES = numbered(CASES)
DTYPES = [
    np.bool_, np.int8, np.uint8, np.int32, np.uint32, np.float16, ml_dtypes.bfloat16, np.float32,
    np.complex64, ml_dtypes.float8_e4m3fn,
]  # fmt: skip


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def compared(case: Case, args: tuple[Any, ...], rtol: float | None, what: str = "") -> None:
    """Assert that both agree or both raise; Primax may also accept operands that NumPy accepts."""
    ours, theirs = _sides(case)
    what = f"{case!r} {what}"
    try:
        expected = theirs(*args)
    except Exception as e:
        _check_refusal(case, ours, args, type(e), rtol, what)
        return
    actual = ours(*args)
    if not case.weak_type:
        actual, expected = px.tree.map(np.asarray, actual), jax.tree.map(np.asarray, expected)
    same(actual, expected, what, rtol)


def _check_refusal(case, ours, args, error, rtol, what) -> None:
    try:
        actual = ours(*args)
    except (TypeError, ValueError, NotImplementedError, IndexError, error):
        return
    assert case.expected is not False, f"{what}: no {error.__name__}"
    expected = case.oracle()(*args)
    agree(case.set(tolerance=rtol), actual, expected, f"{what}: no {error.__name__}, and")


def _sides(case: Case) -> tuple[Callable[..., Any], Callable[..., Any]]:
    return case.on(pnp), case.on(rnp)


@pytest.mark.rotate()
@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_values_types_and_derivatives(case: Case) -> None:
    args = case.draw()
    compared(case, args, case.tolerance)
    if case not in DIFFERENTIATED:
        return
    ours, theirs = _sides(case)
    expected = _gradients(jax, case, args, theirs)
    actual = _gradients(px, case, args, ours)
    limit = case.tolerance or 1e-4
    same(px.tree.map(np.asarray, actual), jax.tree.map(np.asarray, expected), repr(case), limit)


def _first_of_each(cases: list[Case], number: int) -> list[Case]:
    """The first cases of each function."""
    by_name: dict[str, list[Case]] = {}
    for c in cases:
        by_name.setdefault(c.name, []).append(c)
    return [c for some in by_name.values() for c in some[:number]]


DIFFERENTIATED = _first_of_each([c for c in CASES if c.differentiated()], 2)


def _gradients(module: Any, case: Case, args: tuple[Any, ...], fun: Callable[..., Any]) -> Any:
    """Cotangents of all float operands for cotangents of ones."""
    at = case.positions()
    out, pullback = module.vjp(fixing(fun, args, at), *[args[i] for i in at])
    ones = jax.tree.map(
        lambda o: (
            np.ones(o.shape, o.dtype)
            if dtypes.issubdtype(o.dtype, np.inexact)
            else np.zeros(o.shape, jax.dtypes.float0)
        ),
        out,
    )
    return [c for c in jax.tree.leaves(pullback(ones)) if c.dtype != jax.dtypes.float0]


VARIED = _first_of_each([c for c in CASES if c.vary and c.operands()], 1)


@pytest.mark.rotate()
@pytest.mark.parametrize("case", VARIED, ids=[c.name for c in VARIED])
def test_dtypes(case: Case) -> None:
    for dtype in DTYPES:
        limit = case.tolerance or tolerance(np.dtype(dtype))
        compared(case, case.draw(dtype), max(limit, 1e-4), np.dtype(dtype).name)
