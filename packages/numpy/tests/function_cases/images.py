"""Images and segments, with NumPy implementations, because NumPy does not have them."""

from __future__ import annotations

from typing import Any

import numpy as np

from primax_core.extend import Operand, b1, bf16, c64, f32, i32, u8
from test_support import Case, case


def of_package(area: str, name: str, *args: Any, **params: Any) -> Case:
    """A case of a sibling module of the NumPy functions: ``image``, ``ops``."""

    def call(m: Any, *xs: Any, **kw: Any) -> Any:
        return getattr(sibling(m, area), name)(*xs, **kw)

    return case(f"{area}.{name}", *args, **params).set(call=call)


def sibling(m: Any, area: str) -> Any:
    """``jax.image`` for ``jax.numpy``, ``primax_numpy.image`` for ``primax_numpy``."""
    from importlib import import_module

    package = "primax_numpy" if m.__name__ == "primax_numpy" else m.__name__.partition(".")[0]
    return import_module(f"{package}.{area}")


def linear(image: np.ndarray, shape: tuple[int, ...], method: str, antialias: bool = True) -> Any:
    """Linear resizing: a sum of triangle functions along each axis."""
    for axis, (size, out_size) in enumerate(zip(image.shape, shape)):
        if size == out_size:
            continue
        places = (np.arange(out_size) + 0.5) * size / out_size - 0.5
        width = max(size / out_size, 1) if antialias else 1
        weights = np.maximum(1 - np.abs(places - np.arange(size)[:, None]) / width, 0)
        weights /= weights.sum(0)
        image = np.moveaxis(np.tensordot(image, weights, (axis, 0)), -1, axis)
    return image


def nearest(image: np.ndarray, shape: tuple[int, ...], method: str) -> Any:
    for axis, (size, out_size) in enumerate(zip(image.shape, shape)):
        places = np.floor((np.arange(out_size) + 0.5) * size / out_size).astype(int)
        image = np.take(image, places, axis)
    return image


def segments(how: Any, start: Any) -> Any:
    """A reduction of segments by a loop."""

    def run(data: np.ndarray, ids: np.ndarray, num_segments: int, **_: Any) -> np.ndarray:
        first = start(data.dtype)
        out = np.full((num_segments, *data.shape[1:]), first, data.dtype)
        for x, i in zip(data, ids):
            if 0 <= i < num_segments:
                out[i] = how(out[i], x)
        return out

    return run


def least(dtype: Any) -> Any:
    return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf


def most(dtype: Any) -> Any:
    return np.iinfo(dtype).max if dtype.kind in "iu" else np.inf


IDS = np.int32([0, 2, 0, -1, 3, 1])
EXPECTED: dict[str, Any] = {
    "segment_sum": segments(np.add, lambda d: 0),
    "segment_prod": segments(np.multiply, lambda d: 1),
    "segment_max": segments(np.maximum, least),
    "segment_min": segments(np.minimum, most),
}


def resize(operand: Operand, shape: tuple[int, ...], method: str, **params: Any) -> Case:
    known = {"linear": linear, "nearest": nearest}.get(method, False)
    return of_package("image", "resize", operand, shape, method, **params).set(expected=known)


def moved(shape: tuple[int, ...], axes: tuple[int, ...], method: str, **params: Any) -> Case:
    n = len(axes)
    return of_package(
        "image", "scale_and_translate", f32(4, 5), shape, axes, f32(n, low=0.6, high=0.7),
        f32(n, low=0.31, high=0.33), method, **params,
    ).set(expected=False, order=1, vary=False)  # fmt: skip


CASES = [
    resize(f32(3, 4), (5, 2), "linear"),
    resize(f32(3, 4), (3, 7), "linear", antialias=False),
    resize(i32(5), (3,), "linear"),
    resize(c64(3), (5,), "linear"),
    resize(f32(3, 4), (7, 2), "nearest"),
    resize(u8(6), (2,), "nearest"),
    *[
        resize(f32(3, 7), (5, 3), method, **params)
        for method in ("cubic", "lanczos3", "lanczos5", "area", "bicubic-pytorch")
        for params in ({}, {"antialias": False})
    ],
    moved((5, 3), (0, 1), "linear"),
    moved((4, 7), (1,), "cubic", antialias=False),
    moved((4, 3), (1,), "lanczos3"),
    moved((6, 5), (-2,), "area"),
    moved((6, 5), (0,), "cubic-pytorch", antialias=False),
    *[
        of_package("ops", name, operand, IDS, **params).set(
            expected=EXPECTED[name],
            order=0 if name == "segment_prod" else 2,
            batched=not params.get("bucket_size"),
        )
        for name in EXPECTED
        for operand, params in (
            (f32(6), {"num_segments": 4}),
            (i32(6, 2), {"num_segments": 3}),
            (f32(6, 2), {"num_segments": 4, "bucket_size": 2}),
        )
    ],
    of_package("ops", "segment_sum", f32(3), np.int32([2, 0, 0])).set(
        expected=lambda x, i: EXPECTED["segment_sum"](x, i, 3)
    ),
    of_package(
        "ops", "segment_prod", f32(3), np.int32([2, 0, 1]), num_segments=4, unique_indices=True
    ).set(expected=EXPECTED["segment_prod"]),
    of_package(
        "ops", "segment_sum", f32(3), np.int32([0, 0, 2]), num_segments=2, mode="clip",
        indices_are_sorted=True,
    ).set(expected=lambda x, i, **_: EXPECTED["segment_sum"](x, np.minimum(i, 1), 2)),
    of_package("ops", "segment_max", b1(3), np.int32([0, 0, 2]), 3).set(expected=False),
    of_package("ops", "segment_sum", bf16(4), np.int32([0, 0, 2, 2]), 3).set(
        order=0, expected=False
    ),
]  # fmt: skip
