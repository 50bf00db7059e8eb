"""Images and segments: errors, and properties that cases do not cover."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from primax_core import errors, grad, jit, make_jaxpr
from primax_numpy import image, ops

x = np.arange(12.0, dtype=np.float32).reshape(3, 4)
one = np.ones(1, np.float32)
ids = np.int32([0, 0, 2])


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: image.resize(x, (5,), "linear"), ValueError, r"\(5,\) vs \(3, 4\)"),
        (lambda: image.resize(x, (5, 2), "soft"), ValueError, 'Unknown resize method "soft": use'),
        (lambda: image.resize([[1.0]], (5, 2), "linear"), TypeError, "resize requires ndarray"),
        (lambda: image.resize(x[:0], (5, 4), "linear"), ValueError, "cannot resize"),
        (
            lambda: image.scale_and_translate(x, (5, 2), (1,), one, one, "linear"),
            ValueError,
            "may differ from",
        ),
        (
            lambda: image.scale_and_translate(x, (5, 2), (0, 1), one, one, "linear"),
            ValueError,
            "scale needs one number",
        ),
        (
            lambda: image.scale_and_translate(x, (3, 2), (1,), one, one, "nearest"),
            ValueError,
            "not currently supported",
        ),
        (lambda: ops.segment_sum(x, ids.astype(float), 3), TypeError, "must be integers"),
        (lambda: ops.segment_sum(x > 2, ids, 3), TypeError, "booleans"),
        (lambda: ops.segment_sum(x, ids[:2], 3), ValueError, r"\(2,\) and \(3, 4\)"),
        (lambda: ops.segment_max(x, ids, -1), ValueError, "must be non-negative"),
        (lambda: ops.segment_max(x, ids, 3, mode="no"), ValueError, "mode 'no'"),
        (lambda: ops.segment_min(x[:0], ids[:0]), ValueError, "pass num_segments"),
        (
            lambda: jit(ops.segment_sum)(x, ids),
            errors.ConcretizationTypeError,
            "num_segments=",
        ),
    ],
)
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_methods_have_names() -> None:
    assert image.ResizeMethod.from_string("bicubic") is image.ResizeMethod.CUBIC
    by_name = image.resize(x, (5, 2), "triangle")
    assert by_name.tolist() == image.resize(x, (5, 2), image.ResizeMethod.LINEAR).tolist()


def test_integer_factors_are_slices() -> None:
    program = str(make_jaxpr(lambda x: image.resize(x, (3, 2), "nearest"))(x))
    assert "gather" not in program


@pytest.mark.parametrize("method", ["linear", "cubic", "lanczos3", "area"])
def test_constant_images_stay_constant(method: str) -> None:
    actual = image.resize(np.full((5, 7), 3, np.float32), (11, 3), method)
    np.testing.assert_allclose(actual, 3, 1e-5)


def test_translations_are_differentiable() -> None:
    def shifted(t: Any) -> Any:
        return image.scale_and_translate(x, (3, 4), (1,), one, t[None], "linear").sum()

    # A shift to the right removes from the last element of a row what it adds at the first.
    np.testing.assert_allclose(grad(shifted)(np.float32(0.25)), -9, 1e-5)


def test_segments_out_of_range_are_dropped() -> None:
    data = np.float32([1, 2, 4, 8])
    actual = ops.segment_sum(data, np.int32([0, -1, 7, 2]), 3)
    assert actual.tolist() == [1, 0, 8]
    assert ops.segment_max(np.int32([3]), np.int32([1]), 2).tolist() == [-(2**31), 3]
    assert ops.segment_min(np.uint8([3]), np.int32([1]), 2).tolist() == [255, 3]


def test_buckets_keep_precision() -> None:
    data = np.ones(4096, np.float16)
    where = np.zeros(4096, np.int32)
    assert ops.segment_sum(data, where, 1, bucket_size=64).tolist() == [4096]
