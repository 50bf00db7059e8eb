"""``explain_kernel`` and ``check_kernel``: figures by hand, planted faults."""

from __future__ import annotations

import re

import numpy as np
import pytest
from documented_programs import PROGRAMS
from kernels_under_test import CASES, F32, matmul, operands, running_sum

import primax_kernels as pk
from primax_core import ShapeDtypeStruct, ds, jit, lax, make_jaxpr
from primax_kernels import tpu, triton

X = np.arange(8, dtype=F32)
OUT = ShapeDtypeStruct((8,), F32)
BLOCK = pk.BlockSpec((4,), lambda i: i)
BLOCKS = {"grid": 2, "in_specs": [BLOCK], "out_specs": BLOCK}


def shapes(name):
    return [ShapeDtypeStruct(shape, F32) for shape in CASES[name].shapes]


def test_report_of_a_matrix_product():
    (kernel,) = pk.explain_kernel(matmul, *shapes("matmul")).kernels  # (8, 6) @ (6, 4)
    assert kernel.steps == 2 * 1 * 3
    assert [d.parallel for d in kernel.dimensions] == [True, True, False]
    assert [d.at_once for d in kernel.dimensions] == [2, 1, 1]
    a, b, out = kernel.blocks
    assert (a.index, b.index, out.index) == (("i", "k"), ("k", "j"), ("i", "j"))
    assert (a.fetches, b.fetches, out.fetches) == (6, 6, 2)
    assert (a.bytes, b.bytes, out.bytes) == (6 * 8 * 4, 6 * 8 * 4, 2 * 16 * 4)
    assert kernel.traffic == a.bytes + b.bytes + out.bytes
    assert kernel.scratch_bytes == 64 and kernel.flops >= 6 * 2 * 4 * 2 * 4
    assert kernel.strategy == (
        "all parallel steps at once; the terms of all steps along k summed at once"
    )


def test_text_of_a_report():
    text = str(pk.explain_kernel(running_sum, *shapes("running_sum")))
    for part in (
        "kernel kernel at ", "called at ", "grid: 3 steps",
        "i: 3, sequential: scratch memory may carry contents from step to step",
        "in_specs[0]: float32[2] of float32[6] at (i), 3 fetches, 24 B", "on a CPU: a loop over i",
    ):  # fmt: skip
        assert part in text


def test_what_transformations_make_of_a_kernel():
    rows = pk.BlockSpec((8, 128), lambda i: (i, 0))
    x = ShapeDtypeStruct((32, 128), F32)
    call = pk.pallas_call(
        lambda x, o: o.__setitem__(..., lax.sin(x[...])), x, grid=4, in_specs=[rows], out_specs=rows
    )
    (kernel,) = pk.explain_kernel(call, x).kernels
    by_name = {t.name: t for t in kernel.transformations}
    assert [(n, t.cuda, t.tpu) for n, t in by_name.items()] == [
        ("vmap", True, True), ("jvp", True, True), ("grad", False, False)
    ]  # fmt: skip
    text = str(pk.explain_kernel(CASES["windows"].call, *shapes("windows")))
    assert "jvp: a kernel on GPUs, each reference has one to its tangents beside it; not on" in text
    assert "not on TPUs: " in text and "compiled by Mosaic for a TPU)" in text
    assert "grad: operations on arrays, put a custom_vjp around the call" in text
    integers = pk.pallas_call(
        lambda x, o: o.__setitem__(..., x[...]), ShapeDtypeStruct((8,), np.int32)
    )
    text = str(pk.explain_kernel(integers, ShapeDtypeStruct((8,), np.int32)))
    assert "jvp: operations on arrays, because no operand has a tangent" in text


def test_lines_for_explain():
    eqns = make_jaxpr(matmul)(*shapes("matmul")).eqns
    (kernel,) = [e.params["kernel"] for e in eqns if "kernel" in e.params]
    assert kernel.explain_lines() == [
        "kernel", "grid: 2 x 1 x 3",
        "in_specs[0]: float32[4,2] of float32[8,6] at (i, k)",
        "in_specs[1]: float32[2,4] of float32[6,4] at (k, j)",
        "out_specs: float32[4,4] of float32[8,4] at (i, j)",
    ]  # fmt: skip


@pytest.mark.parametrize("name", list(CASES))
def test_all_kernels_have_reports(name):
    explanation = pk.explain_kernel(jit(CASES[name].call), *shapes(name))
    (kernel,) = explanation.kernels
    assert kernel.traffic > 0 and kernel.live_bytes > 0 and kernel.name in str(explanation)


def test_blocks_that_move_by_prefetched_scalars():
    explanation = pk.explain_kernel(lambda: PROGRAMS["block_sparse_product"]()[0])
    (kernel,) = explanation.kernels
    y = kernel.blocks[1]
    assert y.index == ("?", "i") and y.moves == (0, 1) and y.fetches == 8


def test_functions_without_kernels():
    assert str(pk.explain_kernel(lax.sin, X)) == "no kernels"
    with pytest.raises(ValueError, match="the function calls no kernel"):
        pk.check_kernel(lax.sin, X)


@pytest.mark.parametrize("name", list(CASES))
def test_right_kernels_have_no_findings(name):
    check = pk.check_kernel(jit(CASES[name].call), *shapes(name))
    assert check and check.kernels == ("kernel",) and str(check) == "0 findings in kernel"
    check.raise_first()


def test_all_faults_of_a_kernel_are_found():
    def kernel(x, o, total):
        i = pk.program_id(0)
        first = x[i + 3]
        o[0:2] = lax.full((2,), 1, F32) * first
        o[ds(i * 2, 2)] = total[0:2]
        triton.store(o.at[ds(i + 2, 4)], x[...], mask=lax.iota(np.int32, 4) < 3)

    call = pk.pallas_call(
        kernel, OUT, scratch_shapes=[tpu.VMEM((4,), F32), tpu.SemaphoreType.REGULAR], **BLOCKS
    )  # fmt: skip
    with pytest.raises(TypeError):
        pk.check_kernel(call, OUT)  # one scratch memory too many

    def signals(x, o, total, semaphore):
        kernel(x, o, total)
        pk.semaphore_signal(semaphore, 2)

    call = pk.pallas_call(
        signals, OUT, scratch_shapes=[tpu.VMEM((4,), F32), tpu.SemaphoreType.REGULAR],
        interpret="check", **BLOCKS,
    )  # fmt: skip
    check = pk.check_kernel(call, OUT)
    patterns = [
        r"step \(0,\) .* reads element \(0,\) of scratch 0, which was not written",
        r"step \(0,\) .* writes position 4 of axis 0 of result 0",
        r"step \(1,\) .* reads position 4 of axis 0 of operand 0",
        r"ends with the semaphore of scratch 1 at 4",
    ]
    assert len(check.findings) == len(patterns)
    for finding, pattern in zip(check.findings, patterns):
        assert re.search(pattern, finding), finding
    assert not check and str(check).startswith("4 findings in signals\n")
    with pytest.raises(pk.KernelCheckError, match="reads element"):
        check.raise_first()


def test_results_that_depend_on_the_outside_of_partial_blocks():
    def kernel(x, o):
        o[0] = lax.reduce_sum(x[...], (0,))

    def call(shape):
        return pk.pallas_call(
            kernel, ShapeDtypeStruct((2,), F32), grid=2, in_specs=[BLOCK],
            out_specs=pk.BlockSpec((1,), lambda i: i),
        )(shape)  # fmt: skip

    assert pk.check_kernel(call, OUT)
    (finding,) = pk.check_kernel(call, ShapeDtypeStruct((7,), F32)).findings
    assert "element (1,) of result 0" in finding and "outside of the array" in finding


def test_arrays_are_used_as_they_are():
    call = lambda rows, x: pk.pallas_call(
        lambda rows, x, o: o.__setitem__(..., x[...]), ShapeDtypeStruct((2, 4), F32),
        grid_spec=pk.PrefetchScalarGridSpec(
            1, 2, [pk.BlockSpec((1, 4), lambda i, rows: (rows[i], 0))],
            pk.BlockSpec((1, 4), lambda i, rows: (i, 0)),
        ),
    )(rows, x)  # fmt: skip
    x = ShapeDtypeStruct((3, 4), F32)
    assert pk.check_kernel(call, np.array([2, 0], np.int32), x)
    (finding,) = pk.check_kernel(call, np.array([0, 3], np.int32), x).findings
    assert "step (1,): the index map of operand 1 returns 3 for axis 0" in finding


def test_operands_of_a_case_pass_too():
    assert pk.check_kernel(matmul, *operands(CASES["matmul"]))
