"""Names for TPUs: figures of chips, the mode of interpretation, hints, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from kernels_under_test import F32

import primax_kernels as pk
from primax_core import ShapeDtypeStruct, jit, lax
from primax_kernels import tpu

X = np.arange(4, dtype=F32)
OUT = ShapeDtypeStruct((4,), F32)


def copies(x, o):
    o[...] = x[...]


def beyond(x, o):
    o[...] = x[pk.ds(pk.program_id(0) + 1, 4)]


def test_figures_of_chips():
    info = tpu.get_tpu_info_for_chip(tpu.ChipVersion.TPU_V5P, 2)
    assert info.is_megacore and not info.is_lite and info.num_cores == 2
    assert info.sparse_core == tpu.SparseCoreInfo(
        num_cores=4, num_subcores=16, num_lanes=8, vmem_capacity_bytes=2**19,
        dma_granule_size_bytes=32,
    )  # fmt: skip
    for chip in tpu.ChipVersion:
        one = tpu.get_tpu_info_for_chip(chip, 1)
        assert one.chip_version is chip and one.mxu_column_size in (128, 256)
        assert one.vmem_capacity_bytes % 2**20 == 0
    with pytest.raises(ValueError, match="a device of the chip v5e has 1 tensor cores, got 2"):
        tpu.get_tpu_info_for_chip(tpu.ChipVersion.TPU_V5E, 2)
    with pytest.raises(TypeError, match="chip_version is a ChipVersion, got 'v5e'"):
        tpu.get_tpu_info_for_chip("v5e", 1)
    with pytest.raises(ValueError, match="no TPU that is known"):
        tpu.get_tpu_info()


def test_the_mode_of_interpretation():
    call = pk.pallas_call(beyond, OUT, grid=1)
    assert call(X).tolist() == [0, 1, 2, 3]  # clamped
    with tpu.force_tpu_interpret_mode(tpu.InterpretParams(detect_races=True)):
        with pytest.raises(pk.KernelCheckError, match="reads position 4"):
            call(X)
        assert jit(call)(X).tolist() == [0, 1, 2, 3]
    with tpu.force_tpu_interpret_mode():
        assert call(X).tolist() == [0, 1, 2, 3]
    tpu.set_tpu_interpret_mode(tpu.InterpretParams(detect_races=True))
    try:
        with pytest.raises(pk.KernelCheckError):
            call(X)
    finally:
        tpu.set_tpu_interpret_mode()
        tpu.reset_tpu_interpret_mode_state()
    with pytest.raises(TypeError, match="force_tpu_interpret_mode takes InterpretParams, got 1"):
        tpu.force_tpu_interpret_mode(1)


@pytest.mark.parametrize("interpret", [False, "python", "check"])
def test_hints_do_not_change_results(interpret):
    def kernel(x, o):
        tpu.touch(x)
        tpu.trace_value("step", pk.program_id(0))
        tpu.annotate(o, no_hazard=True)[...] = tpu.annotate(x, no_store=True)[...]

    call = pk.pallas_call(kernel, OUT, grid=1, interpret=interpret)
    assert call(tpu.with_memory_space_constraint(X, tpu.HBM)).tolist() == X.tolist()


def test_hints_check_their_arguments():
    for function in (tpu.touch, tpu.annotate):
        with pytest.raises(TypeError, match="takes a reference, got 1"):
            function(1)
    with pytest.raises(TypeError, match="takes a label, got 1"):
        tpu.trace_value(1, 1)
    with pytest.raises(TypeError, match="trace_value takes a scalar"):
        tpu.trace_value("x", X)
    with pytest.raises(TypeError, match="takes a memory"):
        tpu.with_memory_space_constraint(X, "hbm")


def test_convolutions():
    x, w = np.arange(16, dtype=F32).reshape(1, 1, 4, 4), np.ones((1, 1, 2, 2), F32)
    numbers = ("NCHW", "OIHW", "NCHW")
    plain = lax.conv_general_dilated(x, w, (1, 1), "VALID", dimension_numbers=numbers)
    out = tpu.conv(x, w, np.ones((1, 1, 3, 3), F32), dimension_numbers=numbers)
    np.testing.assert_allclose(out, np.asarray(plain) + 1)
    with pytest.raises(NotImplementedError, match=r"lax\.rev"):
        tpu.conv(x, w, dimension_numbers=numbers, window_reversal=(True, False))


def test_lowered_text():
    text = pk.lower_as_mlir(pk.pallas_call(copies, OUT), X)
    assert isinstance(text, str) and "tensor<4xf32>" in text
    assert "tensor<4xf32>" in pk.lower_as_mlir(pk.pallas_call(copies, OUT), OUT, platforms=["cpu"])
    with pytest.raises(NotImplementedError, match="dynamic_shapes is not supported"):
        pk.lower_as_mlir(lax.sin, X, dynamic_shapes=True)
    with pytest.raises(ValueError, match="one platform"):
        pk.lower_as_mlir(lax.sin, X, platforms=["cpu", "cuda"])
