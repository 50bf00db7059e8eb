"""Every check of every case: the formula in wide floats, ``jit`` against eager, ``vmap`` against a
loop, derivatives up to the second against finite differences in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from nn_cases import all_cases

import primax_nn as nn
from primax_core import Array, device_put, jit, tree, tree_util, vmap
from primax_core.extend import dtypes
from test_support import (
    Case,
    assert_close,
    check_derivatives,
    check_settings,
    fixing,
    largest,
    numbered,
    tolerance,
    wide,
)

CASES = all_cases()
NAMES = numbered(CASES)
TOLERANCES = {"float32": 3e-6, "float16": 1e-2, "bfloat16": 1e-2}


def widened(x: Any) -> Any:
    """Operands of formulas, in NumPy's widest float; other arguments as they are."""
    if not isinstance(x, (np.ndarray, Array)):
        return x
    x = np.asarray(x)
    return wide(x) if dtypes.issubdtype(x.dtype, np.inexact) else x


def agree(actual: Any, expected: Any, case: Case) -> None:
    """Assert that results agree relative to the largest, or to 1 if that is larger."""
    for a, b in zip(tree.leaves(actual), tree.leaves(expected), strict=True):
        limit = tolerance(a.dtype, TOLERANCES) if case.tolerance is None else case.tolerance
        scale = largest(b)
        atol = limit * (0.0 if scale > 1e30 else min(scale, 1.0))
        assert_close(a, b, rtol=limit, atol=atol, err_msg=repr(case))


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_values(case: Case) -> None:
    args = case.draw()
    assert callable(case.expected)
    with np.errstate(all="ignore"):
        expected = case.oracle()(*[widened(a) for a in args])
    agree(case.on(nn)(*args), expected, case)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_compiled(case: Case) -> None:
    args, at = case.draw(), case.positions()
    fun = fixing(case.on(nn), args, at)
    some = [args[i] for i in at]
    eager, compiled = fun(*some), jit(fun)(*some)
    for a, b in zip(tree.leaves(eager), tree.leaves(compiled), strict=True):
        assert (a.dtype, a.weak_type) == (b.dtype, b.weak_type)
    agree(compiled, eager, case)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_batches(case: Case) -> None:
    at = case.positions()
    if not case.batched or not at:
        return
    copies = [case.draw(), case.draw(salt=1)]
    for mapped, axis in ((at, 0), (at[:1], -1)):
        args = copies[0]
        fun = fixing(case.on(nn), args, at)
        axes = tuple(axis if i in mapped else None for i in at)
        some = [np.stack([c[i] for c in copies], axis) if i in mapped else args[i] for i in at]
        actual = vmap(fun, axes)(*some)
        for n, c in enumerate(copies):
            one = fun(*[c[i] if i in mapped else args[i] for i in at])
            agree(tree.map(lambda x, n=n: x[n], actual), one, case)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_derivatives(case: Case) -> None:
    at = case.differentiated()
    if not at:
        return
    args = case.draw(double=True)
    fun = fixing(case.on(nn), args, at)
    some = [args[i] for i in at]
    limits = {"rtol": 1e-4, "atol": 1e-4, "value_rtol": 1e-12}
    check_derivatives(fun, *some, order=case.order, step=None, **limits)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_settings(case: Case) -> None:
    check_settings(case, nn)


class Variable:
    """A node of a pytree that has the attributes of its array and converts itself."""

    def __init__(self, value):
        self.value = value

    def __jax_array__(self):
        return self.value

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(vars(self)["value"], name)


tree_util.register_pytree_node(
    Variable, lambda v: ((v.value,), None), lambda _, parts: Variable(*parts)
)


@pytest.mark.parametrize(
    "name", ["relu", "gelu", "silu", "softmax", "log_softmax", "standardize", "logsumexp", "glu",
             "leaky_relu", "hard_tanh", "log_sigmoid", "softplus"],
)  # fmt: skip
def test_objects_that_convert_themselves(name):
    function = getattr(nn, name)
    x = device_put(np.linspace(-2, 2, 8, dtype=np.float32).reshape(2, 4))
    expected = np.asarray(function(x))
    for call in (function, jit(function), jit(lambda x: function(Variable(x.value)))):
        np.testing.assert_allclose(call(Variable(x)), expected, rtol=1e-6)
