"""TPU kernels as bytes, and their compilation for TPUs that are absent."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from primax_core.extend import native

BLOCK = "memref<64x128xf32, #tpu.memory_space<vmem>>"
KERNEL = f"""
func.func @main(%i: i32, %x: {BLOCK}, %o: {BLOCK}) attributes {{
    dimension_semantics = [#tpu.dimension_semantics<parallel>], iteration_bounds = array<i64: 4>,
    scalar_prefetch = 0 : i64, scratch_operands = 0 : i64, tpu.core_type = #tpu.core_type<tc>,
    window_params = [{{transform_indices = @at, window_bounds = array<i64: 64, 128>}},
                     {{transform_indices = @at, window_bounds = array<i64: 64, 128>}}]}} {{
  %c = arith.constant 0 : index
  %a = vector.load %x[%c, %c] : {BLOCK}, vector<64x128xf32>
  %b = arith.addf %a, %a : vector<64x128xf32>
  tpu.vector_store %o[%c, %c], %b {{strides = array<i32>}} : {BLOCK}, vector<64x128xf32>,
  return
}}
func.func @at(%i: i32) -> (i32, i32) {{
  %c = arith.constant 0 : i32
  return %i, %c : i32, i32
}}
"""


def test_bytes():
    """The bytes are MLIR's bytecode with the version of Mosaic's serialization."""
    data = native.mosaic_bytecode(KERNEL)
    assert data.startswith(b"ML\xefR") and b"stable_mosaic.version" in data
    assert native.mosaic_bytecode(KERNEL) == data
    assert native.mosaic_bytecode(KERNEL, version=12) != native.mosaic_bytecode(KERNEL, version=11)


@pytest.mark.parametrize(
    "text, problem",
    [
        ("func.func @main(", "expected non-function type"),
        (KERNEL.replace("arith.addf", "arith.addi"), r"\d+:\d+: 'arith.addi' op operand #0"),
        (KERNEL.replace("arith.addf", "other.addf"), r"\d+:\d+: Dialect `other' not found"),
    ],
)
def test_invalid_texts(text, problem):
    with pytest.raises(ValueError, match=f"(?s)text of a TPU kernel is not valid: .*{problem}"):
        native.mosaic_bytecode(text)


def test_version_that_jaxlib_does_not_write():
    with pytest.raises(ValueError, match="cannot be written in version 999 of the format"):
        native.mosaic_bytecode(KERNEL, version=999)


COMPILED = """
import base64, json, sys
import numpy as np
import primax_core as pc
from primax_core.extend import Primitive, abstract, lower, native
sys.path.insert(0, {folder!r})
from test_mosaic_bytecode import KERNEL

double_p = Primitive("double_on_tpu")
double_p.rule(abstract)(lambda x: x)

def on_tpu(ctx, x):
    body = base64.b64encode(native.mosaic_bytecode(KERNEL)).decode()
    config = {{"body": body, "serialization_format": 1, "needs_layout_passes": True}}
    (out,) = native.call(
        ctx, "tpu_custom_call", [x], api_version=1, needs=(),
        backend_config=json.dumps({{"custom_call_config": config}}),
        extra_attributes={{"kernel_name": "double"}},
    )
    return out

double_p.rule(lower.on("tpu"))(on_tpu)
double_p.rule(lower)(lambda ctx, x: x)
(device, *_) = native.compile_only("tpu", "v5e:2x2", library={library!r})
lowered = pc.jit(double_p.bind).lower(pc.ShapeDtypeStruct((256, 128), np.float32))
compiled = lowered.compile(devices=[device])
assert "tpu_custom_call" in compiled.as_text()
print("compiled")
"""


def test_compilation_for_a_tpu():
    library = os.environ.get("PRIMAX_TEST_TPU_LIBRARY")
    if not library:
        pytest.skip("no plugin for TPUs: set PRIMAX_TEST_TPU_LIBRARY to the path of libtpu.so")
    code = COMPILED.format(folder=os.path.dirname(__file__), library=library)
    # libtpu ends the process at flags that it does not know, such as those for quick tests on CPUs.
    env = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=280, env=env
    )
    assert done.stdout == "compiled\n", done.stderr[-3000:]
