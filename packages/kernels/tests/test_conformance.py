"""The conformance kit on the primitive of kernel calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from kernels_under_test import CASES, F32, full

import primax_kernels as pk
from primax_core import ShapeDtypeStruct, ds, lax
from primax_core.extend import Operand, Sample, f32
from primax_core.testing import check_primitive
from primax_kernels import pallas_call_p, tpu, triton
from primax_kernels._primitive import divided_pallas_call_p

I32 = np.int32


def struct(x: Any, shape: tuple[int, ...] | None = None) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(x.shape if shape is None else shape, x.dtype)


def halves(x: Any) -> pk.BlockSpec:
    return pk.BlockSpec((x.shape[0] // 2,), lambda i: i)


def in_halves(kernel: Callable[..., None], **options: Any) -> Callable[..., Any]:
    """A kernel on two halves of vectors."""

    def call(*xs: Any) -> Any:
        return pk.pallas_call(
            kernel, struct(xs[0]), grid=2, in_specs=[halves(x) for x in xs],
            out_specs=halves(xs[0]), **options,
        )(*xs)  # fmt: skip

    return call


def whole(kernel: Callable[..., None], **options: Any) -> Callable[..., Any]:
    """A kernel on whole arrays."""
    return lambda *xs: pk.pallas_call(kernel, struct(xs[0]), **options)(*xs)


def sines(x, o):
    o[...] = lax.sin(x[...]) * x[...]


def weighted(x, y, o):
    o[...] = x[...] * lax.exp(y[...])


def by_step(x, o):
    o[...] = x[...] * lax.convert_element_type(pk.program_id(0) + 1, x.dtype)


def conditional(x, o):
    @pk.when(pk.program_id(0) == 0)
    def _first():
        o[...] = x[...] * x[...]

    @pk.when(pk.program_id(0) != 0)
    def _rest():
        o[...] = lax.sin(x[...])


def looped(x, o):
    def body(i, carry):
        o[ds(i, 1)] = x[ds(i, 1)] * carry
        return carry + x[i] * x[i]

    lax.fori_loop(0, x.shape[0], body, full((), 1, x.dtype))


def scoped(x, o):
    def run(buffer):
        buffer[...] = x[...] * x[...]
        o[...] = lax.rev(buffer[...], (0,))

    pk.run_scoped(run, ShapeDtypeStruct(x.shape, x.dtype))


def masked(x, o):
    inside = lax.iota(I32, 4) < 3
    triton.store(o, lax.sin(triton.load(x, mask=inside, other=1)), mask=lax.iota(I32, 4) < 4)


def scattered(x, o):
    o[...] = full(o.shape, 0, o.dtype)
    positions = lax.iota(I32, 4) // 2
    triton.atomic_add(o, positions, x[...] * x[...], mask=lax.iota(I32, 4) != 1)


def copied(x, o):
    copy = tpu.make_async_copy(x.at[ds(0, 4)], o)
    copy.start()
    copy.wait()
    o[0] = o[0] * x[1]


def piped(x, o):
    def body(x, o):
        o[...] = lax.sin(x[...])

    block = pk.BlockSpec((2,), lambda i: i)
    tpu.emit_pipeline(body, grid=2, in_specs=[block], out_specs=[block])(x, o)


def aliased(x, o):
    o[0:2] = x[2:4] * x[0:2]


def prefetched(x):
    def kernel(rows, x, o):
        o[...] = x[...] * x[...]

    return pk.pallas_call(
        kernel, struct(x, (3, 2)),
        grid_spec=pk.PrefetchScalarGridSpec(
            1, 3, [pk.BlockSpec((1, 2), lambda i, rows: (rows[i], 0))],
            pk.BlockSpec((1, 2), lambda i, rows: (i, 0)),
        ),
    )(np.array([2, 0, 2], I32), x)  # fmt: skip


def grouped(x):
    """Blocks of 1 and 3 elements."""
    part = pk.BlockSpec((pk.BoundedSlice(3),), lambda i: pk.ds(i, 1 + 2 * i))
    return pk.pallas_call(sines, struct(x), grid=2, in_specs=[part], out_specs=part)(x)


def permuted(x):
    at = pk.BlockSpec((pk.Indirect(2),), lambda i: 3 - i - 2 * lax.iota(I32, 2))
    return pk.pallas_call(sines, struct(x), grid=2, in_specs=[halves(x)], out_specs=at)(x)


def selected(x, y, o):
    i = pk.program_id(0)
    o[...] = lax.sin(pk.select_ref(i, x, y)[...])


def exchanged(x, o, own, semaphore):
    """Each core squares its half, and takes the half of the other."""
    core = lax.axis_index("core")
    o[ds(2 * core, 2)] = x[ds(2 * core, 2)] * x[ds(2 * core, 2)]
    tpu.core_barrier(semaphore, core_axis_name="core")
    own[...] = o[ds(2 - 2 * core, 2)]
    tpu.core_barrier(semaphore, core_axis_name="core")
    o[ds(2 * core, 2)] = own[...]


def on_cores(x):
    return pk.kernel(
        exchanged, struct(x), mesh=tpu.TensorCoreMesh(axis_name="core", num_cores=2),
        scratch_types=[tpu.VMEM((2,), x.dtype), tpu.SemaphoreType.REGULAR],
    )(x)  # fmt: skip


def divided(x, y):
    call = pk.pallas_call(
        weighted, struct(x), grid=2, in_specs=[halves(x), halves(y)], out_specs=halves(x)
    )
    return call.partitioned("i, i -> i")(x, y)


ANY = pk.BlockSpec(memory_space=pk.ANY)
VECTOR = (f32(4),)
OWN = {
    "sines": (in_halves(sines), VECTOR, lambda x: np.sin(x) * x),
    "weighted": (in_halves(weighted), (f32(4), f32(4)), lambda x, y: x * np.exp(y)),
    "by_step": (in_halves(by_step), VECTOR, lambda x: x * [1, 1, 2, 2]),
    "conditional": (
        in_halves(conditional), VECTOR, lambda x: np.concatenate([x[:2] ** 2, np.sin(x[2:])])
    ),
    "looped": (
        whole(looped), VECTOR, lambda x: x * (1 + np.cumsum(x**2) - x**2)
    ),
    "scoped": (whole(scoped), VECTOR, lambda x: (x**2)[::-1]),
    "masked": (whole(masked), VECTOR, lambda x: np.sin(np.where([1, 1, 1, 0], x, 1))),
    "scattered": (
        whole(scattered), VECTOR, lambda x: np.array([x[0] ** 2, x[2] ** 2 + x[3] ** 2, 0, 0])
    ),
    "copied": (whole(copied), VECTOR, lambda x: x * np.array([x[1], 1, 1, 1], x.dtype)),
    "piped": (whole(piped, in_specs=[ANY], out_specs=ANY), VECTOR, np.sin),
    "aliased": (
        whole(aliased, input_output_aliases={0: 0}), VECTOR,
        lambda x: np.concatenate([x[:2] * x[2:], x[2:]]),
    ),
    "grouped": (grouped, VECTOR, lambda x: np.sin(x) * x),
    "permuted": (permuted, VECTOR, lambda x: (np.sin(x) * x)[[3, 1, 2, 0]]),
    "selected": (
        in_halves(selected), (f32(4), f32(4)), lambda x, y: np.sin(np.r_[x[:2], y[2:]])
    ),
    "on_cores": (on_cores, VECTOR, lambda x: np.roll(x**2, 2)),
    "prefetched": (prefetched, (f32(3, 2),), lambda x: x[[2, 0, 2]] ** 2),
}  # fmt: skip


def sample(name: str) -> Sample:
    """The sample of a kernel."""
    if name in OWN:
        call, operands, expect = OWN[name]
        return Sample(*operands).set(call=call, expect=lambda *xs: [expect(*xs)])
    case = CASES[name]
    return Sample(*(Operand(np.dtype(F32), shape) for shape in case.shapes)).set(call=case.call)


@pytest.mark.parametrize("name", [*OWN, *CASES])
def test_rules_agree(name):
    report = check_primitive(pallas_call_p, [sample(name)])
    assert report.ok, str(report)
    assert sum(v.outcome == "passed" for v in report) >= 10


def test_rules_of_divided_calls_agree():
    own = Sample(f32(4), f32(4)).set(call=divided, expect=lambda x, y: [x * np.exp(y)])
    report = check_primitive(divided_pallas_call_p, [own])
    assert report.ok, str(report)
    assert sum(v.outcome == "passed" for v in report) >= 10
