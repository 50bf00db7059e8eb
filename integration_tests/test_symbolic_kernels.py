"""Exported kernels with symbolic shapes, called with several sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import primax
from primax import export, lax
from primax.experimental import pallas as pl
from primax.experimental.pallas import tpu as pltpu

F32 = np.float32
ROWS = pl.BlockSpec((4, 8), lambda i: (i, 0))


def array(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(F32)


def sines(x: Any) -> Any:
    def kernel(x: Any, o: Any) -> None:
        o[...] = lax.sin(x[...])

    return pl.pallas_call(
        kernel, primax.ShapeDtypeStruct(x.shape, F32), grid=pl.cdiv(x.shape[0], 4),
        in_specs=[ROWS], out_specs=ROWS,
    )(x)  # fmt: skip


def product(a: Any, b: Any) -> Any:
    """Blocks of 4 by 4; the common size is symbolic too, and known to be divided by 2."""

    def kernel(a: Any, b: Any, o: Any, total: Any) -> None:
        @pl.when(pl.program_id(2) == 0)
        def _start() -> None:
            total[...] = lax.full((4, 4), 0, F32)

        total[...] += lax.dot(a[...], b[...])

        @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
        def _end() -> None:
            o[...] = total[...]

    n, k = a.shape
    m = b.shape[1]
    return pl.pallas_call(
        kernel, primax.ShapeDtypeStruct((n, m), F32),
        grid=(pl.cdiv(n, 4), pl.cdiv(m, 4), k // 2),
        in_specs=[
            pl.BlockSpec((4, 2), lambda i, j, k: (i, k)),
            pl.BlockSpec((2, 4), lambda i, j, k: (k, j)),
        ],
        out_specs=pl.BlockSpec((4, 4), lambda i, j, k: (i, j)),
        scratch_shapes=[pltpu.VMEM((4, 4), F32)],
    )(a, b)  # fmt: skip


def neighbours(x: Any) -> Any:
    """Sums of three neighbours, in overlapping windows with padding."""

    def kernel(x: Any, o: Any) -> None:
        inside = lax.iota(np.int32, 3) + pl.program_id(0)
        known = lax.bitwise_and(inside > 0, inside <= pl.num_programs(0))
        o[0] = lax.reduce_sum(lax.select(known, x[...], lax.full((3,), 0, F32)), (0,))

    return pl.pallas_call(
        kernel, primax.ShapeDtypeStruct(x.shape, F32), grid=x.shape[0],
        in_specs=[pl.BlockSpec((pl.Element(3, (1, 1)),), lambda i: i)],
        out_specs=pl.BlockSpec((1,), lambda i: i),
    )(x)  # fmt: skip


CASES: dict[str, tuple[Any, tuple[str, ...], Any, list[tuple[np.ndarray, ...]]]] = {
    "sines": (sines, ("n, 8",), np.sin, [(array(n, 8),) for n in (1, 4, 7, 12)]),
    "product": (
        product, ("n, 2*k", "2*k, m"), np.matmul,
        [(array(4, 6), array(6, 8)), (array(3, 2), array(2, 9)), (array(8, 10), array(10, 1))],
    ),
    "neighbours": (
        neighbours, ("n",), lambda x: np.convolve(x, np.ones(3), "same"),
        [(array(n),) for n in (3, 5, 9)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_values_at_several_sizes(name: str) -> None:
    fun, shapes, plain, calls = CASES[name]
    scope = export.SymbolicScope()
    args = [primax.ShapeDtypeStruct(export.symbolic_shape(s, scope=scope), F32) for s in shapes]
    with pl.pallas_export_experimental(True):
        exported = export.export(primax.jit(fun))(*args)
    again = export.deserialize(exported.serialize())
    for xs in calls:
        np.testing.assert_allclose(again.call(*xs), plain(*xs), rtol=1e-5, atol=1e-5)


def test_derivatives_and_batches() -> None:
    (n,) = export.symbolic_shape("n")
    x = primax.ShapeDtypeStruct((n, 8), F32)
    with pl.pallas_export_experimental(True):
        slope = export.export(primax.jit(lambda x: primax.jvp(sines, (x,), (x,))[1]))(x)
        both = primax.ShapeDtypeStruct((2, n, 8), F32)
        batch = export.export(primax.jit(primax.vmap(sines)))(both)
    xs = array(2, 6, 8)
    np.testing.assert_allclose(slope.call(xs[0]), np.cos(xs[0]) * xs[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(batch.call(xs), np.sin(xs), rtol=1e-5, atol=1e-6)
