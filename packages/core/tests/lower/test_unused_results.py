"""The property of a lowering context that names the results that nothing reads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from primax_core import grad, jit, lax
from primax_core.extend import lower

X = np.arange(4, dtype=np.float32)


@pytest.fixture
def answers():
    """The property in each run of the rule of ``sort``."""
    told: list[list[int]] = []

    def rule(ctx: Any, *xs: Any, **params: Any) -> Any:
        told.append(ctx.unused_results)
        (before, *_) = lax.sort_p.rules_before(lower.on("cpu"), rule)
        return before(ctx, *xs, **params)

    with lax.sort_p.override(lower.on("cpu"), rule):
        yield told


@pytest.mark.parametrize(
    ("fun", "unused"),
    [
        (lambda x: lax.sort((x, x, x)), []),
        (lambda x: lax.sort((x, x, x))[1], [0, 2]),
        (lambda x: lax.sort((x, x, x))[::2], [1]),
        (lambda x: (lax.sort((x, -x, x))[0], lax.sort((x, -x, x))[1] + 1)[1], [0, 2]),
    ],
)
def test_results_that_nothing_reads(answers, fun, unused):
    jit(fun).lower(X)
    assert answers == [unused]


def test_results_of_functions_and_branches_are_read_there(answers):
    sorts = jit(lambda x: tuple(lax.sort((x, x))))
    jit(lambda x: sorts(x)[0]).lower(X)
    jit(lambda p, x: lax.cond(p, lambda: lax.sort((x, x))[1], lambda: x)).lower(True, X)
    assert answers[-1] == [0] and answers[0] in ([], [1])


def test_values_are_right_where_results_are_unused(answers):
    x = X[::-1].copy()
    np.testing.assert_array_equal(jit(lambda x: lax.sort((x, 2 * x))[1])(x), 2 * X)
    least = grad(lambda x: lax.index_in_dim(lax.sort((x, x))[1], 0, keepdims=False))
    np.testing.assert_array_equal(least(x), [0, 0, 0, 1])
