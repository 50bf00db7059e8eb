"""Lowering of linear algebra: LAPACK on the CPU, XLA's operations on other platforms."""

from __future__ import annotations

import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import primax_core as px
from primax_core._ir.avals import ShapedArray
from primax_core._ir.primitive import MissingRule
from primax_core._lower import native
from primax_core._lower.context import context, ir, unknown_location
from primax_core._lower.module import lower_module
from primax_core._lower.shaped import zeros_of
from primax_core.lax import linalg

SQUARE = np.ones((2, 3, 3), np.float32)
VECTORS = np.ones((2, 3), np.float32)


def lowered(platform, fun, *args):
    return lower_module(px.make_jaxpr(fun)(*args), "f", platform)


@pytest.mark.parametrize(
    "fun, args, operation",
    [
        (linalg.triangular_solve, (SQUARE, SQUARE), "stablehlo.triangular_solve"),
        (linalg.symmetric_product, (SQUARE, SQUARE), "stablehlo.dot_general"),
        (linalg.cholesky_update, (SQUARE[0], VECTORS[0]), "stablehlo.while"),
    ],
)
@pytest.mark.parametrize("platform", ["cuda", "tpu"])
def test_primitives_with_xla_operations(fun, args, operation, platform):
    module = lowered(platform, fun, *args)
    assert operation in str(module.module)
    assert "custom_call" not in str(module.module) and not module.needs


@pytest.mark.parametrize(
    "fun, args, operation",
    [
        (linalg.cholesky, (SQUARE,), "stablehlo.cholesky"),
        (linalg.householder_product, (SQUARE, VECTORS), "stablehlo.triangular_solve"),
        (linalg.ormqr, (SQUARE, VECTORS, SQUARE), "stablehlo.triangular_solve"),
        (linalg.tridiagonal_solve, (VECTORS, VECTORS, VECTORS, SQUARE), "stablehlo.while"),
    ],
)
def test_primitives_with_native_functions_where_there_are_some(fun, args, operation):
    module = lowered("tpu", fun, *args)
    assert operation in str(module.module)
    assert "custom_call" not in str(module.module) and not module.needs
    assert "custom_call" in str(lowered("cuda", fun, *args).module)


@pytest.mark.parametrize("fun", [linalg.schur, linalg.hessenberg])
@pytest.mark.parametrize("platform", ["cuda", "tpu"])
def test_primitives_for_cpus_only(fun, platform):
    message = rf"does not support compiling for {platform}: .*on the CPU only"
    with pytest.raises(MissingRule, match=message):
        lowered(platform, fun, SQUARE)


@pytest.mark.parametrize("fun", [linalg.lu, linalg.qr, linalg.eigh, linalg.svd, linalg.eig])
def test_primitives_for_cpus_and_nvidia_gpus(fun):
    message = r"does not support compiling for tpu: .*LAPACK on CPUs and by cuSOLVER"
    with pytest.raises(MissingRule, match=message):
        lowered("tpu", fun, SQUARE)


def test_lowered_modules_call_lapack():
    assert lowered("cpu", linalg.lu, SQUARE).needs == {"lapack"}
    assert lowered("cpu", linalg.lu, SQUARE[:0]).needs == frozenset()
    assert lowered("cpu", linalg.triangular_solve, SQUARE, SQUARE).needs == {"lapack"}


def test_narrow_floats_are_solved_in_float32():
    x = SQUARE.astype(ml_dtypes.bfloat16)
    module = lowered("cpu", linalg.triangular_solve, x, x)
    assert "tensor<2x3x3xf32>" in str(module.module) and not module.needs


def test_lapack_is_loaded_on_first_use():
    code = """
import sys
import numpy as np
import primax_core as px
from primax_core.lax import linalg
px.device_put(np.ones(2))
loaded = [m for m in sys.modules if m.split(".")[0] in ("scipy", "jax") or "_lapack" in m]
assert not loaded, loaded
assert linalg.cholesky(np.eye(2, dtype=np.float32)).tolist() == [[1, 0], [0, 1]]
assert any(m.split(".")[0] == "scipy" for m in sys.modules)
assert "jax" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "value, text",
    [
        (True, "true"),
        ("V", '"V"'),
        (3, "3 : i64"),
        (np.int32(3), "3 : i32"),
        (np.uint8(76), "76 : ui8"),
        (0.5, "5.000000e-01 : f64"),
        (np.float32(0.5), "5.000000e-01 : f32"),
    ],
)
def test_attributes_of_native_calls(value, text):
    with context, unknown_location:
        assert str(native.attribute(value)) == text
        with pytest.raises(TypeError, match="has the type object, which native functions cannot"):
            native.attribute(object())


def test_layouts_and_aliases_of_native_calls():
    assert native.row_major(3) == (2, 1, 0)
    assert native.column_major(2) == (0, 1) and native.column_major(4) == (2, 3, 1, 0)
    aval = ShapedArray((2, 2), np.dtype(np.float32))
    with context, unknown_location, ir.InsertionPoint(ir.Module.create().body):
        (out,) = native.custom_call("f", [zeros_of(aval)], [aval], input_output_aliases={0: 0})
        assert "output_tuple_indices = [], operand_index = 0" in str(out.owner)
        two = native.custom_call("f", [out], [aval, aval], input_output_aliases={0: 1})
        assert "output_tuple_indices = [1], operand_index = 0" in str(two[0].owner)
