"""Calls of programs in StableHLO, and their compilation for TPUs that are absent.

The compiler may end the process, so it runs in another one.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import triton_operations
from mosaic_operations import GRIDS, ROWS, X
from triton_operations import F32, Case, call_of, kernel_of, like

from primax_core import jit
from primax_kernels import pallas_call
from primax_kernels._mosaic.errors import MosaicError
from primax_kernels._mosaic.lowering import TARGET
from primax_kernels._mosaic.program import emit
from primax_kernels.tpu import CompilerParams

LIBRARY = os.environ.get("PRIMAX_TEST_TPU_LIBRARY")
"""Path of ``libtpu.so``."""

TARGETS = ["v4:2x2x1", "v5e:2x2", "v5p:2x2x1", "v6e:2x2", "tpu7x:2x2x1"]

COMPILED = """
import sys
sys.path[:0] = {folders!r}
from mosaic_operations import CALLS, GROUPS
from triton_operations import call_of
from primax_core import jit
from primax_core.extend import native

devices = native.compile_only("tpu", {target!r}, library={library!r})[:1]
calls = [(name, call_of(case), case.args) for g in {groups!r} for name, case in GROUPS[g].items()]
if "blocks" in {groups!r} or {calls!r}:
    {calls}
    calls += [(name, *call) for name, call in CALLS.items()]
for name, call, args in calls:
    print(name, flush=True)
    compiled = jit(call).lower(*args).compile(devices=devices)
    assert "tpu_custom_call" in compiled.as_text()
print("done", flush=True)
"""


def compiles(target: str, groups: list[str], calls: str = "") -> None:
    """Compile groups of cases for a target.

    Args:
      calls: a statement that replaces ``CALLS``, to compile these calls too.
    """
    if not LIBRARY:
        pytest.skip("no plugin for TPUs: set PRIMAX_TEST_TPU_LIBRARY to the path of libtpu.so")
    own, shared = Path(__file__).parent, Path(triton_operations.__file__).parent
    folders = [str(own), str(shared), str(own.parent)]
    code = COMPILED.format(
        folders=folders, target=target, library=LIBRARY, groups=groups, calls=calls
    )
    # libtpu ends the process at flags that it does not know, such as those for quick tests on CPUs.
    env = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=280, env=env
    )
    assert done.stdout.endswith("done\n"), done.stdout[-100:] + done.stderr[-3000:]


@pytest.mark.parametrize("target", TARGETS)
def test_blocks_compile(target: str) -> None:
    compiles(target, ["blocks", "parts", "copies"])


@pytest.mark.parametrize(
    "groups",
    [["elementwise", "conversions"], ["shapes", "reductions", "dots", "accesses", "control"]],
)
def test_all_operations_compile(groups: list[str]) -> None:
    compiles("v5e:2x2", groups)


def text_of(case: Case) -> str:
    return jit(call_of(case)).trace(*case.args).lower(lowering_platforms=("tpu",)).as_text()


def test_attributes() -> None:
    text = text_of(GRIDS["matmul"])
    assert f"custom_call @{TARGET}" in text and 'kernel_name = "_matmul"' in text
    assert "serialization_format" in text and "needs_layout_passes" in text


def test_shared_memory_of_operands_and_results() -> None:
    def call(case: Case) -> str:
        return next(line for line in text_of(case).splitlines() if TARGET in line)

    assert "(tensor<20x300xf32>) -> tensor<20x300xf32>" in call(GRIDS["in_place"])
    assert "output_operand_alias" in call(GRIDS["in_place"])
    # All of the result is written, from other blocks of the operand.
    assert "output_operand_alias" not in call(GRIDS["in_place_neighbour"])
    assert "output_operand_alias" in call(GRIDS["in_place_partly"])


def test_results_that_are_not_covered_begin_with_nan() -> None:
    assert "0x7FC00000" in text_of(GRIDS["uncovered"])


def test_booleans_and_scalars_have_other_types_in_memory() -> None:
    text = text_of(GRIDS["booleans"])
    call = next(line for line in text.splitlines() if TARGET in line)
    assert "(tensor<5x12xi32>, tensor<5x12xf32>) -> (tensor<5x12xi32>, tensor<1xi32>)" in call


def test_a_grid_without_steps() -> None:
    def kernel(x: Any, o: Any) -> None:
        o[...] = x[...]

    assert TARGET not in text_of(Case(kernel, like(20, 300), X, grid=(0,), ins=[ROWS], outs=ROWS))


def test_errors_name_the_kernel() -> None:
    case = triton_operations.ELEMENTWISE["nextafter"]
    with pytest.raises(MosaicError, match="the operation nextafter has no rule") as caught:
        text_of(case)
    assert re.match(r".*triton_operations.py:\d+:", str(caught.value))


@pytest.mark.parametrize(
    ("params", "text"),
    [
        (CompilerParams(vmem_limit_bytes=1 << 25), "\\22size\\22: 33554432"),
        (CompilerParams(collective_id=3), "\\22collective_id\\22: 3"),
        (CompilerParams(allow_input_fusion=[True]), "\\22allow_input_fusion\\22: [true]"),
        (CompilerParams(disable_bounds_checks=True), "\\22disable_bounds_checks\\22: true"),
        (CompilerParams(needs_layout_passes=False), "\\22needs_layout_passes\\22: false"),
        (CompilerParams(has_side_effects=True), "has_side_effect = true"),
        (CompilerParams(), "\\22needs_layout_passes\\22: true"),
    ],
)
def test_parameters_of_the_compiler(params: Any, text: str) -> None:
    def double(x: Any, o: Any) -> None:
        o[...] = x[...] * F32(2)

    call = pallas_call(
        double, like(20, 300), grid=(3,), in_specs=[ROWS], out_specs=ROWS, compiler_params=params
    )
    lowered = jit(call).trace(X).lower(lowering_platforms=("tpu",))
    assert text in lowered.as_text()


def test_semantics_of_dimensions() -> None:
    def semantics(case: Case) -> str:
        text = emit(kernel_of(call_of(case), *case.args)).text
        return re.search(r"dimension_semantics = \[(.*?)\]", text)[1]  # type: ignore[index]

    p, a = (f"#tpu.dimension_semantics<{word}>" for word in ("parallel", "arbitrary"))
    assert semantics(GRIDS["matmul"]) == f"{p}, {p}, {a}"
    assert semantics(GRIDS["running"]) == a
    assert semantics(GRIDS["booleans"]) == a
