"""Products of arrays against the reference."""

import jax
import ml_dtypes
import numpy as np
import pytest
from agreement import check, same, values
from jax import lax

import primax_core as px
from primax_core.lax import contracting, precision

BF16 = ml_dtypes.bfloat16
MATMUL = (((1,), (0,)), ((), ()))
BATCHED = (((2,), (1,)), ((0,), (0,)))

LAYOUTS = [
    ((3, 4), (4, 5), MATMUL),
    ((4,), (4,), (((0,), (0,)), ((), ()))),
    ((), (3,), (((), ()), ((), ()))),
    ((2, 3, 4), (2, 4, 5), BATCHED),
    ((4, 2, 3, 6), (5, 3, 4, 2), (((2, 0), (1, 2)), ((1,), (3,)))),
    ((2, 3, 4), (3, 2, 4), (((0, 2, 1), (1, 2, 0)), ((), ()))),
    ((2, 3), (3, 2), (((), ()), ((1, 0), (0, 1)))),
    ((0, 3), (3, 2), MATMUL),
    ((2, 0), (0, 2), MATMUL),
]


@pytest.mark.parametrize("x, y, numbers", LAYOUTS)
def test_layouts(x, y, numbers):
    check(
        lambda a, b: contracting.dot_general(a, b, numbers),
        lambda a, b: lax.dot_general(a, b, numbers),
        values(x, np.float32),
        values(y, np.float32, 1),
    )


@pytest.mark.parametrize(
    "x, y, preferred",
    [
        (BF16, BF16, None),
        (BF16, BF16, np.float32),
        (np.float16, np.float16, None),
        (np.float16, BF16, None),
        (BF16, np.float32, None),
        (np.int8, np.int8, None),
        (np.int8, np.int8, np.int32),
        (np.int32, np.int32, np.float32),
        (np.uint8, np.int8, None),
        (np.int8, np.uint32, None),
        (np.int8, np.float32, None),
        (np.float32, np.float32, BF16),
        (np.float32, np.float32, np.int32),
        (np.complex64, np.complex64, None),
        (np.complex64, np.float32, None),
        (np.bool_, np.bool_, None),
        (np.bool_, np.bool_, np.int32),
        (np.bool_, np.int32, None),
        (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, np.float32),
        (ml_dtypes.float8_e4m3fn, BF16, None),
        (ml_dtypes.int4, ml_dtypes.int4, None),
    ],
)
def test_dtypes(x, y, preferred):
    check(
        lambda a, b: contracting.dot(a, b, preferred_element_type=preferred),
        lambda a, b: lax.dot(a, b, preferred_element_type=preferred),
        values((3, 4), x),
        values((4, 2), y, 1),
        # The reference gives integer results tangents of their own dtype; they have none.
        diff=(np.dtype(x).kind != "V" or x is BF16) and preferred is not np.int32,
        batch=False,
        # In a compiled derivative XLA may leave out roundings to a narrower result.
        rtol=2e-2 if preferred is BF16 else None,
    )


def test_types_of_all_dtype_pairs():
    names = (
        "bool int4 int8 int16 int32 int64 uint4 uint8 uint32 uint64 float8_e4m3fn float8_e5m2 "
        "bfloat16 float16 float32 float64 complex64 complex128"
    ).split()
    with px._base.config.enable_x64(True), jax.enable_x64(True):
        for a in names:
            for b in names:
                ours = px.eval_shape(contracting.dot, px.ShapeDtypeStruct((2,), a),
                                     px.ShapeDtypeStruct((2,), b))  # fmt: skip
                theirs = jax.eval_shape(lax.dot, jax.ShapeDtypeStruct((2,), a),
                                        jax.ShapeDtypeStruct((2,), b))  # fmt: skip
                assert ours.dtype == theirs.dtype, (a, b)


def test_weak_types():
    numbers = (((), ()), ((), ()))
    x = np.float32(2)
    for args in [(1.0, 2.0), (1.0, x), (x, 1.0), (1, 2.0), (1, 2)]:
        same(contracting.dot_general(*args, numbers), lax.dot_general(*args, numbers), str(args))
    same(
        contracting.dot_general(1, 2, numbers, preferred_element_type=np.float32),
        lax.dot_general(1, 2, numbers, preferred_element_type=np.float32),
    )


@pytest.mark.parametrize(
    "setting",
    [
        None, "highest", "default", "tensorfloat32", "bfloat16_3x", ("high", "default"),
        "BF16_BF16_F32", "BF16_BF16_F32_X3", "BF16_BF16_F32_X6", "F32_F32_F32", "F16_F16_F16",
        "F64_F64_F64", "DEFAULT",
    ],
)  # fmt: skip
def test_precision(setting):
    for dtype in (np.float32, BF16):
        check(
            lambda a, b: contracting.dot(a, b, precision=setting),
            lambda a, b: lax.dot(a, b, precision=setting),
            values((3, 4), dtype),
            values((4, 2), dtype, 1),
            batch=False,
        )


@pytest.mark.parametrize("setting", ["highest", "bfloat16", "tensorfloat32", "BF16_BF16_F32_X3"])
def test_configured_precision(setting):
    x = values((3, 3), np.float32)
    with px._base.config.default_matmul_precision(setting), jax.default_matmul_precision(setting):
        ours, theirs = px.make_jaxpr(contracting.dot)(x, x), jax.make_jaxpr(lax.dot)(x, x)
    assert str(ours) == str(theirs)


def test_printed_algorithms():
    x = values((3, 3), np.float32)
    ours = precision.DotAlgorithm(np.float32, np.float32, np.float32)
    theirs = lax.DotAlgorithm(np.float32, np.float32, np.float32)
    assert str(px.make_jaxpr(lambda a: contracting.dot(a, a, precision=ours))(x)) == str(
        jax.make_jaxpr(lambda a: lax.dot(a, a, precision=theirs))(x)
    )
    same(contracting.dot(x, x, precision=ours), lax.dot(x, x))
    assert [p.name for p in precision.DotAlgorithmPreset] == [
        p.name for p in lax.DotAlgorithmPreset
    ]
    for mine, other in zip(precision.DotAlgorithmPreset, lax.DotAlgorithmPreset):
        assert (mine.supported_lhs_types, mine.accumulation_type, repr(mine), str(mine)) == (
            other.supported_lhs_types, other.accumulation_type, repr(other), str(other),
        )  # fmt: skip


def _message(fun, *args, **kwargs):
    with pytest.raises((TypeError, ValueError)) as e:
        fun(*args, **kwargs)
    return type(e.value), str(e.value)


@pytest.mark.parametrize(
    "x, y, numbers",
    [
        ((2, 3, 4), (2, 5, 5), BATCHED),
        ((2, 3, 4), (3, 4, 5), BATCHED),
        ((2, 3, 4), (2, 4, 5), (((2,), (1, 2)), ((0,), (0,)))),
        ((2, 3, 4), (2, 4, 5), (((2,), (1,)), ((0,), (0, 1)))),
        ((2, 3, 4), (2, 4, 5), (((5,), (1,)), ((0,), (0,)))),
        ((2, 3, 4), (2, 4, 5), (((2,), (-1,)), ((0,), (0,)))),
        ((2, 3, 4), (2, 4, 5), (((2, 2), (1, 1)), ((0,), (0,)))),
        ((2, 3, 4), (2, 4, 5), (((0,), (0,)), ((0,), (0,)))),
    ],
)
def test_dot_general_errors(x, y, numbers):
    x, y = values(x, np.float32), values(y, np.float32)
    assert _message(contracting.dot_general, x, y, numbers) == _message(
        lax.dot_general, x, y, numbers
    )


def test_other_errors():
    x, i = values((3, 3), np.float32), values((3, 3), np.int32)
    pairs = [
        (contracting.dot, lax.dot, (x, np.float32(1)), {}),
        (contracting.dot, lax.dot, (i, i), {"preferred_element_type": np.int8}),
        (contracting.batch_matmul, lax.batch_matmul, (x, x[0]), {}),
        (contracting.batch_matmul, lax.batch_matmul, (x, x[None]), {}),
    ]
    for ours, theirs, args, kwargs in pairs:
        kind, text = _message(theirs, *args, **kwargs)
        assert _message(ours, *args, **kwargs) == (kind, text.removeprefix("jax."))
    for setting in ("HIGHEST", 3, ("high",), ("high", "BF16_BF16_F32")):
        kind, text = _message(contracting.dot, x, x, precision=setting)
        assert kind is ValueError and text.startswith("Precision argument must be one of")
    kind, text = _message(contracting.dot, x, x, precision="TF32_TF32_F32")
    assert kind is ValueError and "not supported by dot_general on CPU" in text


def test_batch_matmul():
    check(contracting.batch_matmul, lax.batch_matmul,
          values((5, 2, 3), np.float32), values((5, 3, 4), np.float32, 1))  # fmt: skip
