"""Random shapes, blocks, index maps and grids: the compiled kernel equals the one in Python."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given, settings, strategies as st
from kernels_under_test import F32

import primax_kernels as pk
from primax_core import ShapeDtypeStruct, lax
from primax_kernels.tpu import VMEM

MAPS = {
    "same": lambda i, j: (i, j),
    "swapped": lambda i, j: (j, i),
    "first": lambda i, j: (0, 0),
    "row": lambda i, j: (i, 0),
    "column": lambda i, j: (0, j),
    "sum": lambda i, j: (i + j, j),
    "half": lambda i, j: (lax.div(i, np.int32(2)), j),
    "backwards": lambda i, j: (2 - i, j),
    "from the end": lambda i, j: (i - 2, j),
}


@st.composite
def kernels(draw):
    grid = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    block = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    in_map, out_map = draw(st.tuples(*[st.sampled_from(sorted(MAPS))] * 2))
    element = draw(st.booleans())
    squeezed = draw(st.booleans())
    missing = draw(st.tuples(st.integers(0, 2), st.integers(0, 2)))
    uses = draw(st.sampled_from(["none", "each step", "first step", "carried"]))
    semantics = draw(st.sampled_from([None, ("arbitrary", "arbitrary")]))
    return grid, block, in_map, out_map, element, squeezed, missing, uses, semantics


@settings(max_examples=25, deadline=None, database=None)
@given(kernels())
@example(((3, 3), (2, 1), "sum", "backwards", True, False, (2, 0), "none", None))
@example(((3, 3), (2, 1), "from the end", "same", True, False, (0, 0), "none", None))
def test_compiled_equals_python(spec):
    grid, block, in_map, out_map, element, squeezed, missing, uses, semantics = spec
    shape = tuple(3 * b for b in block)
    x_shape = tuple(max(n - m, 1) for n, m in zip(shape, missing))
    rows = None if squeezed else block[0]
    lead = (block[0],) if not squeezed else ()
    out_shape = shape if not squeezed else (3, shape[1])
    first = (pk.Element(block[0]) if element else block[0]), block[1]
    inner = (*lead, block[1])

    def kernel(x, o, memory):
        i, j = pk.program_id(0), pk.program_id(1)
        value = lax.convert_element_type(i * 3 + j, F32)
        if uses == "first step":

            @pk.when((i == 0) & (j == 0) if hasattr(i, "__and__") else j == 0)
            def _first():
                memory[...] = lax.full(block, 0, F32)
        elif uses == "each step":
            memory[...] = lax.full(block, 1, F32)
        elif uses == "carried":

            @pk.when(j == 0)
            def _first():
                memory[...] = lax.full(block, 0, F32)

        block_value = x[...] + value
        if uses != "none":
            memory[...] = memory[...] * F32(0.5) + block_value
            block_value = memory[...]
        result = lax.reduce_sum(block_value, (0,)) if squeezed else block_value
        o[...] = lax.select(lax.eq(o[...], o[...]), o[...], lax.full(inner, 0, F32)) + result

    def call(**options):
        return pk.pallas_call(
            kernel, ShapeDtypeStruct(out_shape, F32), grid=grid,
            in_specs=[pk.BlockSpec(first, MAPS[in_map])],
            out_specs=pk.BlockSpec((rows, block[1]), MAPS[out_map]),
            scratch_shapes=[VMEM(block, F32)],
            compiler_params={"dimension_semantics": semantics}, **options,
        )  # fmt: skip

    x = np.random.default_rng(0).standard_normal(x_shape).astype(F32)
    np.testing.assert_allclose(call()(x), call(interpret="python")(x), rtol=1e-5, atol=1e-6)
