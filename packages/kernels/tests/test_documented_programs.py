"""Documented kinds of programs under each value of ``interpret``."""

from __future__ import annotations

import numpy as np
import pytest
from documented_programs import PROGRAMS, part_of_a_result

import primax_kernels as pk
from primax_core import ShapeDtypeStruct, grad, jit, lax

F32 = np.float32
X = np.arange(4, dtype=F32)


@pytest.mark.parametrize("interpret", [False, True, "python", "check"])
@pytest.mark.parametrize("name", list(PROGRAMS))
def test_documented_programs(name, interpret):
    if PROGRAMS[name] is part_of_a_result and interpret == "check":
        with pytest.raises(pk.KernelCheckError, match=r"never writes element \(2,\) of result 0"):
            PROGRAMS[name](interpret=interpret)
        return
    result, expected = PROGRAMS[name](interpret=interpret)
    assert result.dtype == expected.dtype or expected.dtype.kind == "i"
    np.testing.assert_allclose(
        np.asarray(result).astype(np.float64), expected.astype(np.float64), rtol=1e-5, atol=1e-6
    )


def reads_beyond(x, o):
    o[...] = x[pk.ds(pk.program_id(0) * 3, 2)]


def begins_beyond(x, o):
    o[...] = x[...]


def neighbours(interpret):
    """A slice that ends beyond the array."""
    return pk.pallas_call(
        reads_beyond, ShapeDtypeStruct((4,), F32), grid=2,
        out_specs=pk.BlockSpec((2,), lambda i: i), interpret=interpret,
    )  # fmt: skip


def test_true_names_what_compiled_code_clamps():
    assert neighbours(False)(X).tolist() == [0, 1, 2, 3]
    with pytest.raises(pk.KernelCheckError, match=r"step \(1,\) .* reads position 4 of axis 0"):
        neighbours(True)(X)
    blocks = pk.pallas_call(
        begins_beyond, ShapeDtypeStruct((8,), F32), grid=4,
        in_specs=[pk.BlockSpec((2,), lambda i: i)], out_specs=pk.BlockSpec((2,), lambda i: i),
        interpret=True,
    )  # fmt: skip
    with pytest.raises(pk.KernelCheckError, match="begins outside of the 4 elements there"):
        blocks(X)


def test_true_compiles_inside_of_transformations():
    assert jit(neighbours(True))(X).tolist() == [0, 1, 2, 3]
    gradient = grad(lambda x: lax.reduce_sum(neighbours(True)(x), (0,)))(X)
    assert gradient.tolist() == [1, 1, 1, 1]
