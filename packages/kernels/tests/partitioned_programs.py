"""Kernels divided among 8 virtual CPU devices, which ``test_partitioned.py`` runs."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
from kernels_under_test import F32, full

import primax_kernels as pk
from primax_core import ShapeDtypeStruct as S, config, device_put, devices, grad, jit, lax, vmap
from primax_core.extend.runtime import TiledSharding, Tiling
from primax_kernels import tpu

Check = Callable[[], None]
CASES: dict[str, Check] = {}
rng = np.random.default_rng(0)
X = rng.standard_normal((16, 12)).astype(F32)
MESH = (4, 2)


def case(check: Check) -> Check:
    CASES[check.__name__] = check
    return check


def divided(x: Any, *axes: tuple[int, ...]) -> Any:
    return device_put(x, TiledSharding(devices(), Tiling.along_mesh(MESH, [*axes])))


def compiled(call: Any, *args: Any) -> str:
    return jit(call).lower(*args).compile().as_text()


def shard(x: Any) -> tuple[int, ...]:
    return x.sharding.shard_shape(x.shape)


def recurrence(x: Any, rule: Any = False) -> Any:
    """Running sums along rows of blocks, with memory that passes along the second dimension."""

    def kernel(x, o, before):
        @pk.when(pk.program_id(1) == 0)
        def _first():
            before[...] = full(before.shape, 0)

        before[...] = lax.sin(before[...]) + x[...]
        o[...] = before[...]

    block = pk.BlockSpec((2, 3), lambda i, j: (i, j))
    call = pk.pallas_call(
        kernel, S(x.shape, x.dtype), grid=(x.shape[0] // 2, x.shape[1] // 3), in_specs=[block],
        out_specs=block, scratch_shapes=[tpu.VMEM((2, 3), F32)],
    )  # fmt: skip
    return (call if rule is False else call.partitioned(rule))(x)


def numbered(x: Any, w: Any, rule: Any) -> Any:
    """Values that depend on the step's number, with an operand that stays whole and moves."""

    def kernel(x, w, o):
        o[...] = x[...] * w[0] + lax.convert_element_type(
            100 * pk.program_id(0) + pk.num_programs(0), F32
        )

    block = pk.BlockSpec((2, 12), lambda i: (i, 0))
    weight = pk.BlockSpec((1,), lambda i: (7 - i,))
    call = pk.pallas_call(
        kernel, S((16, 12), F32), grid=8, in_specs=[block, weight], out_specs=block
    )
    return (call if rule is False else call.partitioned(rule))(x, w)


def matmul(a: Any, b: Any, rule: Any) -> Any:
    def kernel(a, b, o, total):
        @pk.when(pk.program_id(2) == 0)
        def _first():
            total[...] = full(total.shape, 0)

        total[...] += lax.dot(a[...], b[...])

        @pk.when(pk.program_id(2) == pk.num_programs(2) - 1)
        def _last():
            o[...] = total[...]

    call = pk.pallas_call(
        kernel, S((16, 8), F32), grid=(8, 2, 3),
        in_specs=[
            pk.BlockSpec((2, 4), lambda i, j, k: (i, k)),
            pk.BlockSpec((4, 4), lambda i, j, k: (k, j)),
        ],
        out_specs=pk.BlockSpec((2, 4), lambda i, j, k: (i, j)),
        scratch_shapes=[tpu.VMEM((2, 4), F32)],
    )  # fmt: skip
    return call.partitioned(rule)(a, b)


@case
def rows_are_divided() -> None:
    x = divided(X, (0, 1), ())
    expected = np.asarray(recurrence(X))
    for rule in (None, "b _ -> b _"):
        out = jit(lambda x, rule=rule: recurrence(x, rule))(x)
        np.testing.assert_allclose(out, expected, rtol=1e-6)
        assert shard(out) == (2, 12)
        text = compiled(lambda x, rule=rule: recurrence(x, rule), x)
        assert "all-gather" not in text and "all-reduce" not in text
        assert "f32[2,12]" in text


@case
def axes_that_pass_memory_stay_whole() -> None:
    x = divided(X, (), (1,))
    out = jit(lambda x: recurrence(x, None))(x)
    np.testing.assert_allclose(out, recurrence(X), rtol=1e-6)


@case
def numbers_of_steps_are_those_of_the_whole_grid() -> None:
    w = np.arange(8, dtype=F32)
    expected = np.asarray(numbered(X, w, False))
    plain = X * np.repeat(w[::-1], 2)[:, None] + np.repeat(100 * np.arange(8), 2)[:, None] + 8
    np.testing.assert_allclose(expected, plain, rtol=1e-6)
    for axes in ((0,), (1,), (0, 1)):
        for rule in (None, "b _, _ -> b _"):
            out = jit(lambda x, w, rule=rule: numbered(x, w, rule))(divided(X, axes, ()), w)
            np.testing.assert_allclose(out, expected, rtol=1e-6)
            assert shard(out)[0] == 16 // np.prod([MESH[a] for a in axes])


@case
def two_dimensions_are_divided() -> None:
    b = rng.standard_normal((12, 8)).astype(F32)
    left, right = divided(X, (0,), ()), divided(b, (), (1,))
    for rule in (None, "i _, _ j -> i j"):
        run = jit(lambda x, y, rule=rule: matmul(x, y, rule))
        out = run(left, right)
        np.testing.assert_allclose(out, X @ b, rtol=1e-5, atol=1e-5)
        assert shard(out) == (4, 4)
        assert "all-gather" not in run.lower(left, right).compile().as_text()
    out = jit(lambda x, y: matmul(x, y, "_ _, _ j -> _ j"))(left, right)
    np.testing.assert_allclose(out, X @ b, rtol=1e-5, atol=1e-5)
    assert shard(out)[1] == 4


@case
def sizes_that_do_not_divide() -> None:
    x = divided(X[:8], (0, 1), ())
    out = jit(lambda x: recurrence(x, "b _ -> b _"))(x)  # 4 steps, 8 devices
    np.testing.assert_allclose(out, recurrence(X[:8]), rtol=1e-6)


@case
def batches_are_divided() -> None:
    xs = np.stack([X, X + 1, X + 2, X + 3])
    run = jit(vmap(lambda x: recurrence(x, "b _ -> b _")))
    expected = np.stack([recurrence(x) for x in xs])
    for axes in (((0,), (1,), ()), ((0,), (), ()), ((), (0, 1), ())):
        out = run(divided(xs, *axes))
        np.testing.assert_allclose(out, expected, rtol=1e-6)
        assert "all-gather" not in run.lower(divided(xs, *axes)).compile().as_text()


@case
def derivatives_are_divided_by_the_compiler() -> None:
    def total(rule):
        return lambda x: lax.reduce_sum(recurrence(x, rule) ** 2, (0, 1))

    slope = jit(grad(total("b _ -> b _")))(divided(X, (0, 1), ()))
    np.testing.assert_allclose(slope, grad(total(False))(X), rtol=1e-4, atol=1e-5)


@case
def results_that_begin_with_operands() -> None:
    def kernel(x, former, o):
        o[...] = o[...] + x[...]

    block = pk.BlockSpec((2, 12), lambda i: (i, 0))
    call = pk.pallas_call(
        kernel, S((16, 12), F32), grid=8, in_specs=[block, block], out_specs=block,
        input_output_aliases={1: 0},
    )  # fmt: skip
    x = divided(X, (0,), ())
    out = jit(call.partitioned("b _, b _ -> b _"))(x, x)
    np.testing.assert_allclose(out, 2 * X, rtol=1e-6)
    assert shard(out) == (4, 12)


@case
def prefetched_scalars_stay_whole() -> None:
    order = np.arange(8)[::-1].astype(np.int32)

    def kernel(order, x, o):
        o[...] = x[...] + lax.convert_element_type(order[pk.program_id(0)], F32)

    block = pk.BlockSpec((2, 12), lambda i, order: (i, 0))
    spec = tpu.PrefetchScalarGridSpec(1, grid=8, in_specs=[block], out_specs=block)
    call = pk.pallas_call(kernel, S((16, 12), F32), grid_spec=spec)
    out = jit(call.partitioned("_, b _ -> b _"))(order, divided(X, (0, 1), ()))
    np.testing.assert_allclose(out, X + np.repeat(order, 2)[:, None], rtol=1e-6)
    assert shard(out) == (2, 12)


if __name__ == "__main__":
    config.update("num_cpu_devices", 8)
    for name, check in CASES.items():
        try:
            check()
            print(f"{name}: ok", flush=True)
        except Exception:
            traceback.print_exc(file=sys.stdout)
            print(f"{name}: failed", flush=True)
