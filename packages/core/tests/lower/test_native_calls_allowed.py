"""The property of a lowering context that allows calls of native functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from mesh_regions import over_mesh

from primax_core import jit, lax
from primax_core._lower.module import lower_module
from primax_core.extend import ShapedArray, lower, stage
from primax_core.extend.lowering import axis_rules
from primax_core.extend.portable_modules import lower_portable

V = ShapedArray((8,), np.float32)
HERE = np.ones(8, np.float32)


@pytest.fixture
def answers():
    """The property in each run of the rule of ``sin``."""
    told: list[bool] = []

    def rule(ctx: Any, x: Any, **params: Any) -> Any:
        told.append(ctx.allows_native_calls)
        (before, *_) = lax.sin_p.rules_before(lower.on("cpu"), rule)
        return before(ctx, x, **params)

    with lax.sin_p.override(lower.on("cpu"), rule):
        yield told


def lower_on_four(f: Any) -> None:
    lower_module(stage(lambda x: [f(x)], [V]), "f", "cpu", num_partitions=4)


def test_on_one_device(answers):
    jit(lambda p, x: lax.cond(p, lax.sin, lax.neg, x)).lower(True, HERE)
    assert answers == [True]


@pytest.mark.parametrize("platforms", [["cpu"], ["cpu", "cuda"]])
def test_in_portable_modules(answers, platforms):
    lower_portable(jit(lax.sin).trace(HERE), platforms)
    assert answers and not any(answers)


def test_where_an_operation_is_divided(answers):
    lower_on_four(lax.sin)
    assert answers == [False]


@pytest.mark.parametrize(("names", "allowed"), [(("x", "y"), True), (("x",), False)])
def test_in_manual_regions(answers, names, allowed):
    lower_on_four(over_mesh(lax.sin, V, names=names))
    assert answers == [allowed]


def test_in_rules_of_axes(answers):
    params = jit(lax.sin).trace(HERE).jaxpr.eqns[0].params
    axis_rules(lax.sin_p, [ShapedArray((3,), np.float32)], dict(params))
    assert not any(answers)
