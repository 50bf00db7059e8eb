"""Shipped kernels with the default blocks of TPUs: Mosaic accepts them, values of the programs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import plain_ops as plain
import pytest
from op_support import close, gradients, normal, run_with

from primax_core import ShapeDtypeStruct, dtypes, lax
from primax_kernels import BlockSpec, ops, pallas_call, program_id, tpu, when
from primax_kernels._mosaic.program import emit
from primax_kernels.ops import _blocks
from primax_kernels.tpu import PrefetchScalarGridSpec

FOLDER = str(Path(__file__).resolve().parent.parent / "mosaic_backend")
BF16 = np.dtype(dtypes.bfloat16)
F32, I32, I8 = (np.dtype(d) for d in (np.float32, np.int32, np.int8))


class Program(NamedTuple):
    """A function with default blocks.

    Attributes:
      types: shapes, and perhaps dtypes; by default floats.
      derivatives: how many of the operands have derivatives.
    """

    fun: Callable[..., Any]
    types: Sequence[Any]
    derivatives: int = 0


KEYS = (2, 700, 2, 64)
QUERIES = (2, 1000, 4, 64)
PROGRAMS: dict[str, Program] = {
    "matmul": Program(ops.matmul, [(600, 1030), (1030, 300)]),
    "matmul transposed": Program(
        partial(ops.matmul, transpose_a=True, transpose_b=True), [(1030, 600), (300, 1030)]
    ),
    "softmax": Program(ops.softmax, [(1000, 500)]),
    "layer_norm": Program(ops.layer_norm, [(1000, 512), (512,), (512,)], 3),
    "rms_norm": Program(ops.rms_norm, [(7, 4000), (4000,)], 2),
    "attention": Program(partial(ops.flash_attention, causal=True), [QUERIES, KEYS, KEYS], 3),
    "attention of few": Program(ops.flash_attention, [(2, 50, 3, 32)] * 3, 3),
    "attention with segments and bias": Program(
        lambda q, k, v, b, s, t: ops.flash_attention(q, k, v, bias=b, segment_ids=(s, t)),
        [QUERIES, KEYS, KEYS, (2, 1, 1, 700), ((2, 1000), I32), ((2, 700), I32)], 4,
    ),
    "paged_attention": Program(
        ops.paged_attention,
        [(8, 8, 128), (4, 64, 16, 128), (4, 64, 16, 128), ((8,), I32), ((8, 16), I32)],
    ),
    "grouped_matmul": Program(
        ops.grouped_matmul, [(1000, 256), (8, 256, 700), ((8,), I32)], 2
    ),
    "quantized_matmul": Program(
        lambda a, b, r, c: ops.quantized_matmul(a, b, r, c),
        [((512, 1030), I8), ((1030, 384), I8), ((512,), F32), ((384,), F32)],
    ),
    "rope": Program(ops.rope, [(2, 512, 8, 64), ((2, 512), I32)]),
    "rope interleaved": Program(partial(ops.rope, interleaved=True), [(2, 512, 8, 64)]),
    "cross_entropy": Program(ops.cross_entropy, [(500, 32000), ((500,), I32)], 1),
    "linear_cross_entropy": Program(
        ops.linear_cross_entropy, [(500, 1024), (1024, 32000), ((500,), I32)], 2
    ),
    "cumsum": Program(ops.cumsum, [(100, 5000)]),
    "linear_recurrence": Program(ops.linear_recurrence, [(2, 500, 300)] * 2, 2),
    "top_k": Program(lambda x: ops.top_k(x, 8)[0], [(1000, 600)]),
}  # fmt: skip


@pytest.fixture
def on_tpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Defaults of TPUs."""
    monkeypatch.setattr(_blocks, "default_backend", lambda: "tpu")


@pytest.fixture(scope="module")
def evaluate() -> Iterator[Any]:
    """The evaluator of texts, which the tests of the backend have."""
    sys.path.insert(0, FOLDER)
    try:
        from mosaic_evaluator import evaluate as function

        yield function
    finally:
        sys.path.remove(FOLDER)


@pytest.mark.parametrize("dtype", [F32, BF16], ids=lambda d: d.name)
@pytest.mark.parametrize("name", PROGRAMS)
def test_mosaic_accepts_default_blocks(name: str, dtype: Any, on_tpus: None) -> None:
    fun, types, derivatives = PROGRAMS[name]
    args = [
        ShapeDtypeStruct(*t) if len(t) == 2 and isinstance(t[0], tuple) else
        ShapeDtypeStruct(t, dtype) for t in types
    ]  # fmt: skip
    assert tpu.limits(fun, *args, target="v5e") == ()
    if derivatives:
        assert tpu.limits(gradients(fun, derivatives), *args, target="v5e") == ()


LABELS = np.arange(140, dtype=np.int32) % 10
SEGMENTS = np.sort(np.random.default_rng(0).integers(0, 3, (1, 260)), 1).astype(np.int32)
QKV = normal(1, 260, 2, 8), normal(1, 260, 1, 8), normal(1, 260, 1, 4)
MASKS: dict[str, Any] = {"causal": True, "segment_ids": (SEGMENTS, SEGMENTS)}
PLACES = np.random.default_rng(1).integers(0, 50, (2, 9)).astype(np.int32)
LENGTHS = np.array([5, 0, 12], np.int32)
PAGES = np.array([[3, 1, -9], [99, 99, 99], [6, 0, 2]], np.int32)

VALUES: dict[str, tuple[Callable[..., Any], Callable[..., Any], Sequence[Any], int]] = {
    "matmul": (
        lambda a, b: ops.matmul(a, b), lambda a, b: lax.dot(a, b),
        (normal(520, 530), normal(530, 9)), 0,
    ),
    "softmax": (ops.softmax, plain.softmax, (normal(1030, 3),), 0),
    "layer_norm": (ops.layer_norm, plain.layer_norm, (normal(1030, 5), normal(5), normal(5)), 3),
    "attention": (
        partial(ops.flash_attention, **MASKS), partial(plain.attention, **MASKS), QKV, 3
    ),
    "attention with bias": (
        lambda q, k, v, b: ops.flash_attention(q, k, v, bias=b, soft_cap=2.0),
        partial(plain.attention, soft_cap=2.0), (*QKV, normal(1, 2, 260, 260)), 4,
    ),
    "paged_attention": (
        ops.paged_attention, plain.paged_attention,
        (normal(3, 4, 16), normal(2, 7, 4, 16), normal(2, 7, 4, 16, seed=1), LENGTHS, PAGES), 0,
    ),
    "rope": (
        lambda x: ops.rope(x, PLACES), lambda x: plain.rope(x, PLACES, False),
        (normal(2, 9, 3, 8),), 0,
    ),
    "rope interleaved": (
        lambda x: ops.rope(x, PLACES, interleaved=True), lambda x: plain.rope(x, PLACES, True),
        (normal(2, 9, 3, 8),), 0,
    ),
    "cross_entropy": (
        lambda x: ops.cross_entropy(x, LABELS), lambda x: plain.cross_entropy(x, LABELS),
        (normal(140, 10),), 1,
    ),
    "cumsum": (ops.cumsum, lambda x: lax.cumsum(x, 1), (normal(70, 530),), 0),
    "top_k": (
        lambda x: ops.top_k(x, 3)[0], lambda x: lax.top_k(x, 3)[0], (normal(1030, 7),), 0
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_programs_compute_the_values(name: str, on_tpus: None, evaluate: Any) -> None:
    fun, reference, args, derivatives = VALUES[name]

    def runner(kernel: Any, operands: Sequence[Any]) -> list[Any]:
        return evaluate(emit(kernel), kernel, operands)

    (actual,) = run_with(runner, fun, *args)
    close(actual, reference(*args), 1e-3)
    if derivatives:
        slopes = run_with(runner, gradients(fun, derivatives), *args)
        for x, y in zip(slopes, gradients(reference, derivatives)(*args), strict=True):
            close(x, y, 1e-3)


@pytest.mark.parametrize("name", ["attention", "attention with bias", "rope", "rope interleaved"])
def test_other_orders_of_axes_compute_the_same_on_cpus(name: str, on_tpus: None) -> None:
    fun, reference, args, _ = VALUES[name]
    close(fun(*args), reference(*args), 1e-5)


def test_results_of_kernels_with_prefetched_scalars_that_the_last_step_writes() -> None:
    def kernel(rows: Any, x: Any, o: Any) -> None:
        @when(program_id(1) == rows[0])
        def _write() -> None:
            o[...] = x[...]

    spec = BlockSpec((8, 128), lambda i, j, rows: (i, 0))
    call = pallas_call(
        kernel, ShapeDtypeStruct((16, 128), np.float32),
        grid_spec=PrefetchScalarGridSpec(
            num_scalar_prefetch=1, grid=(2, 3), in_specs=[spec], out_specs=spec
        ),
    )  # fmt: skip
    x = ShapeDtypeStruct((16, 128), np.float32)
    assert tpu.limits(call, ShapeDtypeStruct((1,), np.int32), x) == ()
