"""Bit patterns, equations of shapes, costs, checks inside of kernels, parameters of stepping."""

from __future__ import annotations

import re

import numpy as np
import pytest
from kernels_under_test import F32, add_blocks

import primax_kernels as pk
from primax_core import ShapeDtypeStruct, default_backend, dtypes, jit, lax
from primax_core.errors import JaxRuntimeError
from primax_kernels import tpu, triton

BF16 = np.dtype(dtypes.bfloat16)
X = np.arange(32, dtype=F32).reshape(4, 8)


@pytest.mark.parametrize("dim", [-2, -1, 0, 1])
def test_bitcasts_between_widths(dim):
    narrow = np.asarray(tpu.bitcast(X, np.uint16, dim))
    axis = dim % 2
    halves = X.view(np.uint32)
    pairs = [halves & 0xFFFF, halves >> 16]
    expected = np.stack(pairs, axis + 1).reshape(
        [n * (1 + (a == axis)) for a, n in enumerate((4, 8))]
    )
    assert narrow.dtype == np.uint16 and (narrow == expected).all()
    assert (np.asarray(tpu.bitcast(narrow, F32, dim)) == X).all()
    assert (np.asarray(tpu.bitcast(X, np.int32, dim)) == X.view(np.int32)).all()


def test_the_last_axis_is_numpys_view():
    assert (np.asarray(tpu.bitcast(X, np.uint8, -1)) == X.view(np.uint8)).all()


def test_packing():
    packed = tpu.pack_elementwise([X, X + 1], packed_dtype=BF16)
    assert packed.dtype == np.uint32
    for i in range(2):
        part = tpu.unpack_elementwise(packed, index=i, packed_dtype=BF16, unpacked_dtype=F32)
        assert (np.asarray(part) == X + i).all()
    bits = np.asarray(tpu.pack_elementwise([X.astype(np.int32)] * 4, packed_dtype=np.int8))
    assert int(bits[0, 3]) == 0x03030303


@pytest.mark.parametrize(
    "equation, sizes, plain",
    [
        ("ab->ba", {}, lambda x: x.T),
        ("(ab)c->bac", {"a": 2}, lambda x: x.reshape(2, 2, 8).transpose(1, 0, 2)),
        ("a(bc)->(ca)b", {"c": 2}, lambda x: x.reshape(4, 4, 2).transpose(2, 0, 1).reshape(8, 4)),
    ],
)
def test_einshape(equation, sizes, plain):
    assert (np.asarray(tpu.einshape(equation, X, **sizes)) == plain(X)).all()


ERRORS = {
    "axes": (lambda: tpu.einshape("abc->cba", X), "does not fit an array with 2 axes"),
    "twice": (lambda: tpu.einshape("aa->aa", X), "has a letter twice"),
    "unknown sizes": (lambda: tpu.einshape("(ab)c->abc", X), "pass sizes of all but one"),
    "wrong sizes": (lambda: tpu.einshape("(ab)c->abc", X, a=3), "the axis 'ab' has 4 elements"),
    "characters": (lambda: tpu.einshape("a1->1a", X), "has the character '1'"),
    "parenthesis": (lambda: tpu.einshape("a(b->ba", X), "open parenthesis"),
    "vector": (lambda: tpu.bitcast(X[0], np.int32), "two axes or more"),
    "axis": (lambda: tpu.bitcast(X[None], np.int32, 0), "the last axis or the one before"),
    "odd": (lambda: tpu.bitcast(X[:3].astype(np.int16), np.int32), "whose size is 3"),
    "pack": (lambda: tpu.pack_elementwise([X], packed_dtype=BF16), "packs 2 arrays"),
    "unpack": (
        lambda: tpu.unpack_elementwise(
            X.view(np.uint32), index=2, packed_dtype=BF16, unpacked_dtype=F32
        ),
        "got index 2",
    ),
    "check": (lambda: pk.debug_check(1.5, "text"), "takes a Boolean scalar"),
    "delay": (lambda: pk.delay(0.5), "takes an integer"),
    "cores": (
        lambda: tpu.InterpretParams(num_cores_or_threads=2), "num_cores_or_threads=2) is not"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", list(ERRORS))
def test_errors(name):
    call, message = ERRORS[name]
    with pytest.raises((ValueError, TypeError), match=re.escape(message)):
        call()


def test_costs():
    assert pk.estimate_cost(lambda x: x + x, X) == pk.CostEstimate(32, 0, 256)
    assert pk.estimate_cost(lambda x: lax.exp(x), X) == pk.CostEstimate(0, 32, 256)
    cost = pk.estimate_cost(lambda x: lax.dot(x, lax.transpose(x, (1, 0))), X)
    assert cost == pk.CostEstimate(2 * 4 * 4 * 8, 0, 128 + 64)
    loop = pk.estimate_cost(lambda x: lax.fori_loop(0, 3, lambda i, c: lax.sin(c), x), X)
    assert loop.transcendentals == 96
    assert pk.estimate_cost(lambda x: lax.reduce_sum(x, (0, 1)), X).flops == 32
    assert b'"flops": 32' in pk.estimate_cost(lambda x: x + x, X).to_json()


def checked(x, o):
    pk.debug_check(x[0] < 5, "the first element is large")
    o[...] = x[...]


def test_checks_are_off_by_default():
    call = pk.pallas_call(checked, ShapeDtypeStruct((2,), F32))
    assert call(np.full(2, 9, F32)).tolist() == [9, 9]
    with pk.enable_debug_checks(True):
        assert call(np.full(2, 1, F32)).tolist() == [1, 1]
        with pytest.raises(JaxRuntimeError, match="debug_check failed: the first element is large"):
            np.asarray(call(np.full(2, 9, F32)))
    assert call(np.full(2, 9, F32)).tolist() == [9, 9]


def test_checks_in_evaluation_step_by_step():
    call = pk.pallas_call(checked, ShapeDtypeStruct((2,), F32), interpret="check")
    with pk.enable_debug_checks(True):
        with pytest.raises(pk.KernelCheckError, match="the first element is large"):
            call(np.full(2, 9, F32))


def test_parameters_of_the_interpreter():
    def races(x, o):
        o[...] = x[...]

    same = pk.BlockSpec((2,), lambda i: 0)
    options = {
        "grid": 2, "in_specs": [pk.BlockSpec((2,), lambda i: i)], "out_specs": same,
        "compiler_params": tpu.CompilerParams(dimension_semantics=("parallel",)),
    }  # fmt: skip
    out = ShapeDtypeStruct((2,), F32)
    x = np.arange(4, dtype=F32)
    call = pk.pallas_call(races, out, interpret=tpu.InterpretParams(), **options)
    assert call(x).tolist() == [2, 3]
    call = pk.pallas_call(races, out, interpret=tpu.InterpretParams(detect_races=True), **options)
    with pytest.raises(pk.KernelCheckError, match="a parallel step"):
        call(x)
    assert add_blocks(x, x, interpret=tpu.InterpretParams(detect_races=True)).tolist() == [
        0, 2, 4, 6,
    ]  # fmt: skip


def test_names_of_backends():
    assert tpu.is_tpu_device() == (default_backend() == "tpu")
    assert triton.is_gpu_device() == (default_backend() in ("gpu", "cuda", "rocm"))
    assert triton.CUSTOM_CALL_TARGET_NAME == "__gpu$xla.gpu.triton"
    assert [m.value for m in pk.RevisitMode] == ["immediate", "any"]
    pk.delay(np.int32(5))


# Parts of 2 and 4 bits

BYTES = np.arange(256).astype(np.uint8)


def part_of_bytes(start: int, bits: int) -> np.ndarray:
    field = (BYTES.astype(int) >> start) % 2**bits
    return field - 2**bits * (field >= 2 ** (bits - 1))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("widths", [(4, 2), (2, 4), (4,), (2,), (4, 4), (2, 2, 2, 2), ()])
def test_parts_of_bytes(dtype, widths):
    parts = jit(lambda x: tpu.split_bits(x, widths))(BYTES.astype(dtype))
    start = 0
    for n, part in zip(widths, parts, strict=True):
        assert np.asarray(part).dtype.name == f"int{n}"
        assert np.asarray(part).astype(int).tolist() == part_of_bytes(start, n).tolist()
        start += n


def test_numbers_of_6_bits():
    two, four = tpu.pack_fp6(BYTES)
    assert np.asarray(two).astype(int).tolist() == part_of_bytes(4, 2).tolist()
    assert np.asarray(four).astype(int).tolist() == part_of_bytes(0, 4).tolist()
    joined = np.asarray(tpu.unpack_fp6(two, four))
    assert joined.dtype == np.int8 and joined.tolist() == (BYTES % 64).tolist()
    for name, n in (("two_bits", 2), ("four_bits", 4)):
        for sign in ("int", "uint"):
            x = BYTES.astype(np.dtype(f"{sign}{n}"))
            assert np.asarray(tpu.join_bits(**{name: x})).tolist() == (BYTES % 2**n).tolist()


def test_parts_of_bytes_in_kernels():
    def kernel(x, o):
        low, high = tpu.split_bits(x[...], (4, 2))
        o[...] = tpu.join_bits(two_bits=high, four_bits=low)

    for interpret in (False, "check", "python"):
        call = pk.pallas_call(kernel, ShapeDtypeStruct((256,), np.int8), interpret=interpret)
        assert np.asarray(call(BYTES)).tolist() == (BYTES % 64).tolist()


def test_bad_parts_of_bytes():
    four = np.zeros(4, np.dtype("int4"))
    with pytest.raises(TypeError, match=r"split_bits takes an array of int8 or uint8, got int32"):
        tpu.split_bits(np.zeros(4, np.int32), (4,))
    for widths in ((3,), (4, 4, 2)):
        with pytest.raises(ValueError, match="parts of 2 or 4 bits, 8 together at most"):
            tpu.split_bits(BYTES, widths)
    with pytest.raises(ValueError, match="join_bits takes two_bits, four_bits or both"):
        tpu.join_bits()
    with pytest.raises(TypeError, match="takes int2 or uint2 for the part of 2 bits, got int4"):
        tpu.join_bits(two_bits=four)
    with pytest.raises(ValueError, match=r"parts of one shape, got \(3,\) and \(4,\)"):
        tpu.join_bits(two_bits=np.zeros(3, np.dtype("int2")), four_bits=four)
