"""Programs for Triton whose grids have computed sizes."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from ttir_evaluator import evaluate

import primax_kernels as pk
from primax_core import ShapeDtypeStruct, jit, lax, make_jaxpr
from primax_core.extend import walk
from primax_kernels import tpu, triton
from primax_kernels._triton.program import emit

F32, I32 = np.float32, np.int32
X = np.arange(48, dtype=F32).reshape(12, 4)
ROW = pk.BlockSpec((1, 4), lambda i: (i, 0))
PARALLEL: dict[str, Any] = {"compiler_params": {"dimension_semantics": ("parallel",)}}


def rows(n: Any, x: Any, **options: Any) -> Any:
    def kernel(x: Any, o: Any) -> None:
        number = lax.convert_element_type(pk.program_id(0) + pk.num_programs(0), F32)
        o[...] = x[...] * F32(2) + number

    return pk.pallas_call(
        kernel, ShapeDtypeStruct(x.shape, F32), grid=n, in_specs=[ROW], out_specs=ROW, **options
    )(x)  # fmt: skip


def sums(n: Any, x: Any) -> Any:
    """Sums of columns over as many rows as there are steps, twice."""

    def kernel(x: Any, o: Any, total: Any) -> None:
        @pk.when(pk.program_id(1) == 0)
        def _start() -> None:
            total[...] = lax.full((1, 2), 0, F32)

        total[...] += x[...]

        @pk.when(pk.program_id(1) == pk.num_programs(1) - 1)
        def _end() -> None:
            o[...] = total[...]

    return pk.pallas_call(
        kernel, ShapeDtypeStruct((1, 4), F32), grid=(2, n),
        in_specs=[pk.BlockSpec((1, 2), lambda j, i: (i, j))],
        out_specs=pk.BlockSpec((1, 2), lambda j, i: (0, j)), scratch_shapes=[tpu.VMEM((1, 2), F32)],
    )(x)  # fmt: skip


def evaluated(fun: Any, *args: Any) -> tuple[np.ndarray, str]:
    """The result of the program of a function's kernel, and its text."""
    (eqn,) = [q for q in walk(make_jaxpr(fun)(*args)) if q.primitive is pk.pallas_call_p]
    kernel = eqn.params["kernel"]
    program = emit(kernel)
    (result,) = evaluate(program, kernel, args)
    return result, program.text


@pytest.mark.parametrize("n", [0, 1, 5, 12])
@pytest.mark.parametrize("options", [{}, PARALLEL], ids=["in order", "parallel"])
def test_steps_are_a_loop(n: int, options: dict[str, Any]) -> None:
    fun = lambda n, x: rows(n, x, **options)
    result, text = evaluated(fun, I32(n), X)
    np.testing.assert_array_equal(result[:n], np.asarray(jit(fun)(I32(n), X))[:n])
    assert np.isnan(result[n:]).all()
    assert bool(re.search("get_program_id", text)) == bool(options)
    assert triton.limits(fun, I32(n), X) == ()


@pytest.mark.parametrize("n", [1, 2, 7])
def test_inner_dimensions(n: int) -> None:
    result, _ = evaluated(sums, I32(n), X)
    np.testing.assert_allclose(result[0], X[:n].sum(0))


def test_programs_take_many_steps_each() -> None:
    x = np.arange(1200, dtype=F32).reshape(300, 4)
    result, _ = evaluated(lambda n, x: rows(n, x, **PARALLEL), I32(290), x)
    expected = 2 * x + np.arange(300, dtype=F32)[:, None] + 290
    np.testing.assert_array_equal(result[:290], expected[:290])


def test_lowering() -> None:
    lowered = jit(rows).trace(I32(3), X).lower(lowering_platforms=("cuda",)).as_text()
    assert "__gpu$xla.gpu.triton" in lowered
