"""Parallel dimensions of grids, and the number of steps that are computed at once."""

from __future__ import annotations

import numpy as np
import pytest
from kernels_under_test import CASES, F32, attention, operands, running_sum

import primax_kernels as pk
from primax_core import ShapeDtypeStruct, clear_caches, lax, make_jaxpr
from primax_kernels._cpu import facts, grid
from primax_kernels.tpu import VMEM, CompilerParams


def plan_of(call, *args):
    (eqn,) = make_jaxpr(call)(*args).eqns
    return grid.plan_of(eqn.params["kernel"])


@pytest.mark.parametrize(
    "name, parallel",
    [
        ("add_blocks", (True,)),
        ("partial_blocks", (True,)),
        ("matmul", (True, True, False)),
        ("matmul_in_output", (True, True, False)),
        ("attention", (True, True, False)),
        ("running_sum", (False,)),
        ("windows", (True,)),
        ("grouped_rows", (True,)),
    ],
)
def test_parallel_dimensions(name, parallel):
    plan = plan_of(CASES[name].call, *operands(CASES[name]))
    assert plan.facts.parallel == parallel
    assert all(reason for reason in plan.facts.reasons)


def test_scratch_that_is_read_first_makes_all_steps_sequential():
    def kernel(x, o, total):
        total[...] += x[...]
        o[...] = total[...]

    block = pk.BlockSpec((2,), lambda i: i)
    options = {
        "grid": 3, "in_specs": [block], "out_specs": block, "scratch_shapes": [VMEM((2,), F32)]
    }  # fmt: skip
    x = np.ones(6, F32)
    plan = plan_of(pk.pallas_call(kernel, ShapeDtypeStruct((6,), F32), **options), x)
    assert plan.facts.parallel == (False,) and "scratch" in plan.facts.reasons[0]
    declared = CompilerParams(dimension_semantics=("parallel",))
    call = pk.pallas_call(kernel, ShapeDtypeStruct((6,), F32), compiler_params=declared, **options)
    assert plan_of(call, x).facts.parallel == (True,)


def test_scratch_that_is_written_first_in_each_step():
    def kernel(x, o, double):
        double[...] = x[...] * 2
        o[...] = double[...]

    block = pk.BlockSpec((2,), lambda i: i)
    call = pk.pallas_call(
        kernel, ShapeDtypeStruct((6,), F32), grid=3, in_specs=[block], out_specs=block,
        scratch_shapes=[VMEM((2,), F32)],
    )  # fmt: skip
    assert plan_of(call, np.ones(6, F32)).facts.parallel == (True,)


def test_steps_beyond_the_memory_budget_run_in_a_loop(monkeypatch):
    args = operands(CASES["attention"])
    expected = attention(*args)
    clear_caches()  # of plans
    monkeypatch.setattr(facts, "BUDGET", 300)
    plan = plan_of(attention, *args)
    lanes = [n for n, p in zip(plan.lanes, plan.facts.parallel) if p]
    assert 1 <= np.prod(lanes) < 4
    np.testing.assert_allclose(attention(*args), expected, rtol=1e-5)
    clear_caches()


@pytest.mark.parametrize(
    "index_map, forms",
    [
        (lambda i, j: (i, j), ["i", "j"]),
        (lambda i, j: (2 * i + 3, j - i), [None, None]),
        (lambda i, j: (0, j), [None, "j"]),
        (lambda i, j: (lax.div(i, np.int32(2)), j), [None, "j"]),
    ],
)
def test_affine_forms(index_map, forms):
    from primax_core.extend import ShapedArray
    from primax_kernels._block_mapping import mapping_of

    aval = ShapedArray((8, 8), np.dtype(F32))
    mapping = mapping_of(pk.BlockSpec((2, 2), index_map), aval, (4, 4), [], "in_specs[0]")
    names = {0: "i", 1: "j", None: None}
    assert [names[form.dimension if form else None] for form in mapping.forms] == forms


def test_bounds_of_affine_forms():
    from primax_kernels._affine import AffineForm

    assert AffineForm((2, -1), 3).bounds((4, 5)) == (-1, 9)


def test_running_sum_is_sequential_and_right():
    x = np.arange(8, dtype=F32)
    assert running_sum(x).tolist() == np.cumsum(x).tolist()
