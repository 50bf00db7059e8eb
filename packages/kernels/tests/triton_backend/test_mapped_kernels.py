"""Mapped kernels on GPUs: one kernel with one more dimension of the grid."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from golden_kernels import GOLDEN
from triton_operations import GRIDS, array, call_of, like
from ttir_evaluator import evaluate

from primax_core import grad, jit, lax, make_jaxpr, vmap
from primax_kernels import BlockSpec, PrefetchScalarGridSpec, pallas_call, program_id
from primax_kernels._batching import BatchedKernel
from primax_kernels._primitive import pallas_call_p
from primax_kernels._triton.lowering import TARGET
from primax_kernels._triton.program import emit

SINGLE = {**{n: GOLDEN[n] for n in ("add", "add_partial", "softmax", "matmul_over_grid")},
          **{f"grid: {n}": c for n, c in GRIDS.items() if not hasattr(c.grid, "grid")}}  # fmt: skip


def kernels_of(fun: Any, *args: Any) -> list[Any]:
    eqns = make_jaxpr(fun)(*args).eqns
    return [e.params["kernel"] for e in eqns if e.primitive is pallas_call_p]


def stacked(x: Any) -> Any:
    x = np.asarray(x)
    return np.stack([x, x[..., ::-1] if x.ndim and x.dtype.kind == "f" else x])


@pytest.mark.parametrize("name", SINGLE)
def test_results(name: str) -> None:
    case = SINGLE[name]
    call = vmap(call_of(case))
    args = [stacked(x) for x in case.args]
    kernels = kernels_of(call, *args)
    expected = [np.stack(r) for r in zip(*(call_of(case)(*xs) for xs in zip(*args)))]
    results = call(*args)
    for x, y in zip(results, expected, strict=True):
        np.testing.assert_allclose(
            np.asarray(x, np.float64), np.asarray(y, np.float64), rtol=1e-5, atol=1e-5
        )
    for kernel in kernels:
        on_gpu = evaluate(emit(kernel), kernel, args)
        for x, y in zip(on_gpu, expected, strict=True):
            np.testing.assert_allclose(
                x.astype(np.float64), y.astype(np.float64), rtol=case.tolerance,
                atol=case.tolerance * 10,
            )  # fmt: skip


def test_one_kernel() -> None:
    case = GOLDEN["matmul_over_grid"]
    x, y = (stacked(a) for a in case.args)
    call = vmap(call_of(case), (0, None))
    (kernel,) = kernels_of(call, x, case.args[1])
    assert isinstance(kernel, BatchedKernel) and kernel.grid == (2, *kernel.original.grid)
    program = emit(kernel)
    assert program.grid[0] == 2 and program.sequential == (3,)
    text = jit(call).trace(x, case.args[1]).lower(lowering_platforms=("cuda",)).as_text()
    assert text.count(f"custom_call @{TARGET}") == 1 and "dot_general" not in text
    nested = vmap(vmap(call_of(case)), (0, None))
    (twice,) = kernels_of(nested, np.stack([x] * 3), y)
    assert twice.grid == (3, 2, *kernel.original.grid)
    np.testing.assert_allclose(
        nested(np.stack([x] * 3), y)[0], np.stack([vmap(call_of(case))(x, y)[0]] * 3), rtol=1e-6
    )


def test_other_axes_and_derivatives() -> None:
    case = GOLDEN["add"]
    call = call_of(case)
    x, y = (stacked(a) for a in case.args)
    moved = vmap(call, (1, None), 1)(np.moveaxis(x, 0, 1), case.args[1])[0]
    np.testing.assert_array_equal(moved, np.moveaxis(np.asarray(x + case.args[1]), 0, 1))

    def total(x: Any) -> Any:
        out = vmap(call)(x, y)[0]
        return lax.reduce_sum(lax.mul(out, out), tuple(range(out.ndim)))

    np.testing.assert_allclose(grad(total)(x), 2 * (x + y), rtol=1e-6)


def test_kernels_of_the_same_call_are_the_same() -> None:
    call = call_of(GOLDEN["add"])
    args = [stacked(a) for a in GOLDEN["add"].args]
    first, second = kernels_of(lambda *xs: [vmap(call)(*xs), vmap(call)(*xs)], *args)
    assert first is second


def test_batches_that_are_no_grid() -> None:
    """Prefetched scalars of each example, and contents of scratch memory, stay arrays."""

    def kernel(rows: Any, x: Any, o: Any) -> None:
        o[...] = x[...]

    spec = PrefetchScalarGridSpec(
        num_scalar_prefetch=1, grid=2, in_specs=[BlockSpec((8,), lambda i, n: n[i])],
        out_specs=BlockSpec((8,), lambda i, n: i),
    )  # fmt: skip
    call = pallas_call(kernel, like(16), grid_spec=spec)
    rows = np.array([[3, 1], [0, 2]], np.int32)
    x = array((32,))
    assert kernels_of(vmap(call, (0, None)), rows, x) == []
    result = vmap(call, (0, None))(rows, x)
    np.testing.assert_array_equal(result, [call(r, x) for r in rows])
    (same,) = kernels_of(vmap(call, (None, 0)), rows[0], np.stack([x, 2 * x]))
    assert isinstance(same, BatchedKernel)
    assert kernels_of(vmap(call, (None, 0), axis_name="i"), rows[0], np.stack([x, x])) == []


def test_scratch_memory_that_keeps_contents() -> None:
    def running(x: Any, o: Any, total: Any) -> None:
        total[...] = lax.select(program_id(0) > 0, total[...] + x[...], x[...])
        o[...] = total[...]

    block = BlockSpec((8,), lambda i: i)
    call = pallas_call(
        running, like(16), grid=2, in_specs=[block], out_specs=block, scratch_shapes=[like(8)]
    )
    xs = stacked(array((16,)))
    np.testing.assert_array_equal(vmap(call)(xs), [call(x) for x in xs])

    def never_begun(x: Any, o: Any, total: Any) -> None:
        total[...] = total[...] + x[...]
        o[...] = total[...]

    call = pallas_call(
        never_begun, like(16), grid=2, in_specs=[block], out_specs=block, scratch_shapes=[like(8)]
    )
    assert kernels_of(vmap(call), xs) == []
    assert np.isnan(vmap(call)(xs)).all()


def test_aliases_of_operands_that_are_the_same_for_all() -> None:
    def kernel(x: Any, y: Any, o: Any) -> None:
        o[...] = o[...] + y[...]

    block = BlockSpec((4,), lambda i: i)
    call = pallas_call(
        kernel, like(8), grid=2, in_specs=[block, block], out_specs=block,
        input_output_aliases={0: 0},
    )  # fmt: skip
    x, ys = array((8,)), np.stack([array((8,)), 2 * array((8,))])
    fun = vmap(call, (None, 0))
    np.testing.assert_array_equal(fun(x, ys), x + ys)
    assert len(kernels_of(fun, x, ys)) == 1
