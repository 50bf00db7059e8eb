"""Convolutions against the reference."""

import itertools

import jax
import ml_dtypes
import numpy as np
import pytest
from agreement import check, same, same_text, values
from jax import lax

import primax_core as px
from primax_core.lax import conv_numbers, convolution

F = np.float32
BF16 = ml_dtypes.bfloat16


def both(name, *args, **kwargs):
    """The function of both libraries with bound parameters."""
    return (
        lambda x, k: getattr(convolution, name)(x, k, *args, **kwargs),
        lambda x, k: getattr(lax, name)(x, k, *args, **kwargs),
    )


CASES = [
    # lhs, rhs, strides, padding, keywords
    ((2, 3, 8), (4, 3, 3), (1,), "SAME", {}),
    ((2, 3, 8), (4, 3, 4), (2,), "SAME_LOWER", {}),
    ((2, 3, 8), (4, 3, 3), (3,), [(2, -1)], {"lhs_dilation": (2,), "rhs_dilation": (2,)}),
    ((2, 3), (4, 3), (), "VALID", {}),
    ((2, 4, 7), (6, 2, 3), (2,), "VALID", {"feature_group_count": 2}),
    ((2, 3, 7), (6, 1, 3), (1,), [(1, 0)], {"feature_group_count": 3, "rhs_dilation": (2,)}),
    ((4, 3, 7), (4, 3, 3), (1,), "VALID", {"batch_group_count": 2}),
    ((6, 2, 5), (3, 2, 2), (2,), [(0, 3)], {"batch_group_count": 3, "lhs_dilation": (2,)}),
    ((2, 3, 2), (4, 3, 3), (1,), "VALID", {}),  # empty result
    ((0, 3, 5), (4, 3, 3), (1,), "VALID", {}),
]


@pytest.mark.parametrize("x, k, strides, padding, options", CASES)
def test_parameters(x, k, strides, padding, options):
    ours, theirs = both("conv_general_dilated", strides, padding, **options)
    check(ours, theirs, values(x, F), values(k, F, 1))


@pytest.mark.parametrize(
    "layout",
    [("NHWC", "HWIO", "NHWC"), ("NHWC", "WHIO", "NCWH"), ("CNHW", "IHWO", "HNWC"), None],
)
@pytest.mark.parametrize("options", [{}, {"feature_group_count": 2}, {"batch_group_count": 2}])
def test_layouts(layout, options):
    sizes = {"N": 2, "C": 4, "H": 5, "W": 4}
    kernel = {"O": 4, "I": 4 // options.get("feature_group_count", 1), "H": 2, "W": 3}
    spec = layout or ("NCHW", "OIHW", "NCHW")
    x = values([sizes[c] for c in spec[0]], F)
    k = values([kernel[c] for c in spec[1]], F, 1)
    ours, theirs = both(
        "conv_general_dilated", (2, 1), [(1, 2), (0, 1)], rhs_dilation=(1, 2),
        dimension_numbers=layout, **options,
    )  # fmt: skip
    check(ours, theirs, x, k, diff=layout is not None, batch=not options or layout is None)


@pytest.mark.parametrize(
    "dtype, preferred",
    [
        (BF16, None), (BF16, F), (np.float16, None), (np.int8, None), (np.int8, np.int32),
        (np.int8, F), (np.int32, None), (np.uint8, None), (np.bool_, None), (np.complex64, None),
        (ml_dtypes.float8_e4m3fn, F),
    ],
)  # fmt: skip
def test_dtypes(dtype, preferred):
    ours, theirs = both("conv_general_dilated", (1,), "SAME", preferred_element_type=preferred)
    check(ours, theirs, values((2, 3, 6), dtype), values((4, 3, 3), dtype, 1), batch=False,
          diff=dtype is not ml_dtypes.float8_e4m3fn)  # fmt: skip


def test_precision_and_weak_types():
    x, k = values((2, 3, 6), F), values((4, 3, 3), F, 1)
    for precision in ("highest", ("high", "default"), "BF16_BF16_F32"):
        ours, theirs = both("conv_general_dilated", (1,), "SAME", precision=precision)
        same_text(px.make_jaxpr(ours)(x, k), jax.make_jaxpr(theirs)(x, k))
        same(ours(x, k), theirs(x, k))


def test_conv_and_general_padding():
    x, k = values((2, 3, 6), F), values((4, 3, 3), F, 1)
    check(*both("conv", (2,), "SAME"), x, k, batch=False)
    check(*both("conv_with_general_padding", (2,), [(1, 0)], (2,), (1,)), x, k, batch=False)
    check(*both("conv_with_general_padding", (2,), "SAME", None, None), x, k, batch=False)


@pytest.mark.parametrize("stride, width", [(s, w) for s in (1, 2, 3) for w in (1, 2, 3, 4)])
def test_transposed_convolution_padding(stride, width):
    x, k = values((2, 6, 3), F), values((width, 3, 4), F, 1)
    for padding, consistent in (("SAME", False), ("VALID", False), (((1, 2),), False),
                                (((0, 0),), True)):  # fmt: skip
        ours, theirs = both("conv_transpose", (stride,), padding, use_consistent_padding=consistent)
        same_text(px.make_jaxpr(ours)(x, k), jax.make_jaxpr(theirs)(x, k))


def test_transposed_convolutions():
    x, k = values((2, 4, 5, 3), F), values((3, 2, 3, 4), F, 1)
    check(*both("conv_transpose", (2, 3), "SAME", rhs_dilation=(1, 2)), x, k, batch=False)
    check(*both("conv_transpose", (2, 1), "VALID", transpose_kernel=True), x,
          values((3, 2, 4, 3), F, 1), text=False, batch=False)  # fmt: skip


@pytest.mark.parametrize("padding", ["SAME", "VALID", "same_lower"])
def test_padtype_to_pads(padding):
    for size, window, stride in itertools.product((1, 4, 7), (1, 2, 5), (1, 2, 3)):
        args = ((size,), (window,), (stride,), padding)
        assert conv_numbers.padtype_to_pads(*args) == lax.padtype_to_pads(*args)


def test_dimension_numbers_and_shapes():
    names = ("NHWC", "WHIO", "NCWH")
    shapes = (2, 8, 9, 3), (2, 3, 3, 4)
    assert tuple(conv_numbers.conv_dimension_numbers(*shapes, names)) == tuple(
        lax.conv_dimension_numbers(*shapes, names)
    )
    assert conv_numbers.conv_general_permutations(names) == lax.conv_general_permutations(names)
    x, k = (4, 3, 8, 9), (4, 3, 3, 2)
    for args in [((1, 2), "SAME", 2), ((2, 1), ((0, 1), (0, 0)), 1)]:
        assert conv_numbers.conv_shape_tuple(x, k, *args) == lax.conv_shape_tuple(x, k, *args)
    for pads in ("SAME", "VALID", ((1, 1), (0, 0))):
        args = (x, k, (2, 1), pads, ("NCHW", "OIHW", "NHWC"))
        for name in ("conv_general_shape_tuple", "conv_transpose_shape_tuple"):
            assert getattr(conv_numbers, name)(*args) == getattr(lax, name)(*args)


X, K = (2, 3, 8, 9), (4, 3, 3, 2)


@pytest.mark.parametrize(
    "x, k, strides, padding, options",
    [
        (X, K, (1, 1), "foo", {}),
        (X, K, (1, 1), "SAME", {"lhs_dilation": (2, 2)}),
        (X, K, (1,), "SAME", {}),
        (X, K, (1, 1), [(1, 1)], {}),
        (X, K, (1, 1), [(1, 1), (1,)], {}),
        (X, K, (1, 1), [1, 1], {}),
        (X, K, (1, 1), "VALID", {"feature_group_count": 2}),
        (X, (4, 1, 2, 2), (1, 1), "VALID", {"feature_group_count": 3}),
        (X, K, (1, 1), "VALID", {"feature_group_count": 0}),
        (X, K, (1, 1), "VALID", {"batch_group_count": 3}),
        (X, K, (1, 1), "VALID", {"batch_group_count": 0}),
        (X, (6, 1, 2, 2), (1, 1), "VALID", {"batch_group_count": 2, "feature_group_count": 3}),
        (X, (3, 3, 2, 2), (1, 1), "VALID", {"batch_group_count": 2}),
        (X, K[:3], (1, 1), "VALID", {}),
        (X, (4, 2, 3, 2), (1, 1), "VALID", {}),
        (X, K, (1, 1), "VALID", {"dimension_numbers": ("NHWC", "HWIO")}),
        (X, K, (1, 1), "VALID", {"dimension_numbers": ("NHC", "HWIO", "NHWC")}),
        (X, K, (1, 1), "VALID", {"dimension_numbers": ("NDWC", "HWIO", "NHWC")}),
        (X, K, (1, 1), "VALID", {"dimension_numbers": "NCHW"}),
        (X, K, (1, 1), "VALID", {"dimension_numbers": (0, 1, 2)}),
        (X, K, (1, 1), [(0, 0), (0, 0)], {"lhs_dilation": (0, 1)}),
        (X, K, (1, 1), [(-10, 0), (0, 0)], {}),
    ],
)
def test_errors(x, k, strides, padding, options):
    x, k = values(x, F), values(k, F)
    results = []
    for fun in both("conv_general_dilated", strides, padding, **options):
        with pytest.raises(Exception) as e:
            fun(x, k)
        results.append(
            (e.type, str(e.value).replace("np.int64(8)", "8").replace("np.int64(9)", "9"))
        )
    assert results[0] == results[1]


def test_additional_errors():
    x, k = values(X, F), values(K, F)
    with pytest.raises(TypeError, match="strictly positive"):
        convolution.conv_general_dilated(x, k, (0, 1), "VALID")
    with pytest.raises(ValueError, match="spatial sizes above 0"):
        convolution.conv_general_dilated(x, k[:, :, :0], (1, 1), "VALID")
    with pytest.raises(TypeError, match="at least 2"):
        convolution.conv_general_dilated(x[0, 0, 0], k[0, 0, 0], (), "VALID")
    with pytest.raises(TypeError, match="same dtypes, got float32, int32"):
        convolution.conv_general_dilated(x, k.astype(np.int32), (1, 1), "VALID")
    with pytest.raises(TypeError, match="incompatible with `preferred_element_type`"):
        convolution.conv_general_dilated(x, k, (1, 1), "VALID", preferred_element_type=np.int32)
    with pytest.raises(TypeError, match="must not be narrower"):
        convolution.conv_general_dilated(x, k, (1, 1), "VALID", preferred_element_type=BF16)
