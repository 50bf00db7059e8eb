"""Instructions of matrix units: accumulators, staged operands and queues."""

from __future__ import annotations

import numpy as np
import pytest

import primax_kernels as pk
from primax_core import ShapeDtypeStruct, dtypes, grad, lax, vmap
from primax_kernels import tpu, triton

F32 = np.float32
MODES = [False, "python", "check"]
A = np.arange(24, dtype=F32).reshape(6, 4)
B = np.arange(12, dtype=F32).reshape(4, 3) - 5


def struct(*shape, dtype=F32):
    return ShapeDtypeStruct(shape, dtype)


@pytest.mark.parametrize("interpret", MODES)
def test_sums_of_products_in_two_units(interpret):
    def kernel(a, b, o, q, first, second):
        tpu.matmul_push_rhs(b[...], 1, 0)
        tpu.matmul_push_rhs(lax.transpose(-b[...], (1, 0)), 1, 1, transpose=True)
        tpu.matmul_acc_lhs(first, a[...], load_staged_rhs=1)
        tpu.matmul_acc_lhs(first, a[...])
        tpu.matmul_acc_lhs(second.at[0:6], a[...], load_staged_rhs=1)
        o[...] = tpu.matmul_pop(first)
        q[...] = tpu.matmul_pop(second.at[0:6])

    call = pk.pallas_call(
        kernel, [struct(6, 3)] * 2, interpret=interpret,
        scratch_shapes=[tpu.ACC(0)((6, 3), F32), tpu.ACC(1)((8, 3), F32)],
    )  # fmt: skip
    o, q = call(A, B)
    assert (np.asarray(o) == 2 * A @ B).all() and (np.asarray(q) == -A @ B).all()


@pytest.mark.parametrize("interpret", MODES)
def test_accumulators_keep_sums_from_step_to_step(interpret):
    def kernel(a, b, o, acc):
        tpu.matmul_push_rhs(b[...], 0, 0)
        tpu.matmul_acc_lhs(acc, a[...], load_staged_rhs=0)

        @pk.when(pk.program_id(0) == 1)
        def _end():
            o[...] = tpu.matmul_pop(acc)

    call = pk.pallas_call(
        kernel, struct(6, 3), grid=2, interpret=interpret,
        in_specs=[pk.BlockSpec((6, 2), lambda k: (0, k)), pk.BlockSpec((2, 3), lambda k: (k, 0))],
        scratch_shapes=[tpu.ACC(0)((6, 3), F32)],
    )  # fmt: skip
    assert (np.asarray(call(A, B)) == A @ B).all()


@pytest.mark.parametrize("interpret", MODES)
def test_a_queue_of_results(interpret):
    def kernel(a, b, o):
        tpu.matmul_push_rhs(b[...], 0, 2)
        tpu.matmul_lhs_fifo(a[...], 2, load_staged_rhs=0)
        tpu.matmul_lhs_fifo(-a[...], 2)
        first = tpu.matmul_pop_fifo((6, 3), np.int32, 2)
        o[...] = first - 2 * tpu.matmul_pop_fifo((6, 3), np.int32, 2)

    a, b = A.astype(np.int8), B.astype(np.int8)
    call = pk.pallas_call(kernel, struct(6, 3, dtype=np.int32), interpret=interpret)
    assert (np.asarray(call(a, b)) == 3 * A @ B).all()


def test_transformations_and_dtypes():
    def kernel(a, b, o):
        def product(acc):
            tpu.matmul_push_rhs(b[...], 0, 0)
            tpu.matmul_acc_lhs(acc, a[...], load_staged_rhs=0)
            o[...] = tpu.matmul_pop(acc)

        pk.run_scoped(product, tpu.ACC(0)((6, 3), F32))

    call = pk.pallas_call(kernel, struct(6, 3))
    slopes = grad(lambda a: lax.reduce_sum(call(a, B), (0, 1)))(A)
    assert (np.asarray(slopes) == np.tile(B.sum(1), (6, 1))).all()
    batch = vmap(call, (0, None))(np.stack([A, -A]), B)
    assert (np.asarray(batch)[1] == -A @ B).all()
    narrow = dtypes.bfloat16
    assert (np.asarray(call(A.astype(narrow), B.astype(narrow))) == A @ B).all()
    (reason,) = triton.limits(
        pk.pallas_call(
            lambda a, o, acc: o.__setitem__(..., a[...]), struct(8, 8),
            scratch_shapes=[tpu.ACC(0)((8, 8), F32)],
        ), struct(8, 8)
    )  # fmt: skip
    assert "is an accumulator of a TPU's matrix unit (ACC)" in reason


def test_products_that_are_left_in_accumulators_are_reported():
    def kernel(a, b, o, acc):
        tpu.matmul_push_rhs(b[...], 0, 0)
        tpu.matmul_acc_lhs(acc, a[...], load_staged_rhs=0)
        o[...] = acc[...]

    call = pk.pallas_call(
        kernel, struct(6, 3), scratch_shapes=[tpu.ACC(0)((6, 3), F32)], interpret="check"
    )
    with pytest.raises(pk.KernelCheckError, match="ends with products in the accumulator scratch"):
        call(A, B)


@pytest.mark.parametrize(
    ("body", "error", "text"),
    [
        (lambda a, b, acc: tpu.matmul_acc_lhs(acc, a[...]), RuntimeError,
         "unit 0 has no right operand: matmul_push_rhs puts one"),
        (lambda a, b, acc: tpu.matmul_acc_lhs(a, a[...]), TypeError,
         "an accumulator is a reference in the memory ACC"),
        (lambda a, b, acc: tpu.matmul_push_rhs(b[0], 0, 0), ValueError,
         r"matmul_push_rhs: rhs is a matrix, got \(3,\)"),
        (lambda a, b, acc: tpu.matmul_push_rhs(b[...], -1, 0), ValueError,
         "staging_register is a number known while tracing"),
        (lambda a, b, acc: (tpu.matmul_push_rhs(b[...], 0, 0), tpu.matmul_push_rhs(a[...], 0, 0)),
         ValueError, r"staged of unit 0 is float32\[6, 4\], and was float32\[4, 3\] before"),
        (lambda a, b, acc: (tpu.matmul_push_rhs(a[...], 0, 0),
                            tpu.matmul_acc_lhs(acc, a[...], load_staged_rhs=0)),
         ValueError, r"lhs has the shape \(6, 4\) and the right operand \(6, 4\)"),
        (lambda a, b, acc: (tpu.matmul_push_rhs(b[...], 0, 0),
                            tpu.matmul_acc_lhs(acc.at[0:2], a[...], load_staged_rhs=0)),
         ValueError, r"the product has the shape \(6, 3\), the accumulator \(2, 3\)"),
    ],
)  # fmt: skip
def test_bad_instructions(body, error, text):
    def kernel(a, b, o, acc):
        body(a, b, acc)

    call = pk.pallas_call(kernel, struct(6, 3), scratch_shapes=[tpu.ACC(0)((6, 3), F32)])
    with pytest.raises(error, match=text):
        call(A, B)


def test_numbers_of_units():
    with pytest.raises(ValueError, match="mxu_id is the number of a matrix unit, got -1"):
        tpu.ACC(-1)
    with pytest.raises(RuntimeError, match="matmul_push_rhs is called outside of a kernel"):
        tpu.matmul_push_rhs(A, 0, 0)
    assert tpu.ACC(1) == tpu.ACC(1) != tpu.ACC(0) and str(tpu.ACC(1)) == "acc1"
