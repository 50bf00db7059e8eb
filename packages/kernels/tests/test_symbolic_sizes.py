"""Kernels on arrays with symbolic sizes; `integration_tests` compares values."""

from __future__ import annotations

import re

import numpy as np
import pytest
from kernels_under_test import F32

import primax_kernels as pk
from primax_core import ShapeDtypeStruct, jit, lax, make_jaxpr
from primax_core.export import symbolic_shape
from primax_kernels._primitive import pallas_call_p

ROWS = pk.BlockSpec((4, 8), lambda i: (i, 0))


def sines(x, **options):
    options = {"grid": pk.cdiv(x.shape[0], 4), "in_specs": [ROWS], "out_specs": ROWS, **options}
    return pk.pallas_call(
        lambda x, o: o.__setitem__(..., lax.sin(x[...])), ShapeDtypeStruct(x.shape, F32), **options
    )(x)  # fmt: skip


def rows(text="n, 8"):
    return ShapeDtypeStruct(symbolic_shape(text), F32)


def test_a_symbolic_size_of_the_grid_is_computed():
    with pk.pallas_export_experimental(True):
        jaxpr = make_jaxpr(sines)(rows())
    (eqn,) = [e for e in jaxpr.eqns if e.primitive is pallas_call_p]
    assert eqn.params["kernel"].dynamic == (0,)
    assert str(jaxpr.out_avals[0].shape) == "(n, 8)"


@pytest.mark.parametrize("platform", ["cpu", "cuda", "tpu"])
def test_it_runs_on_arrays_on_all_platforms(platform):
    with pk.pallas_export_experimental(True):
        text = jit(sines).trace(rows("4*n, 8")).lower(lowering_platforms=(platform,)).as_text()
    assert "stablehlo.while" in text and "custom_call @__gpu" not in text
    assert "tpu_custom_call" not in text


def test_without_the_context():
    with pytest.raises(ValueError, match="operand 0 of a kernel has the shape") as caught:
        make_jaxpr(lambda x: sines(x, grid=2))(rows())
    assert "with pallas_export_experimental(True)" in str(caught.value)
    with pytest.raises(TypeError, match=re.escape("has the symbolic size - floordiv(- n, 4)")):
        make_jaxpr(sines)(rows())
    with pk.pallas_export_experimental(True), pk.pallas_export_experimental(False):
        with pytest.raises(TypeError, match="has the symbolic size"):
            make_jaxpr(sines)(rows())


def test_blocks_have_known_sizes():
    with pk.pallas_export_experimental(True):
        with pytest.raises(ValueError, match=r"in_specs\[0\]: the block has all n elements along"):
            make_jaxpr(lambda x: sines(x, in_specs=[None]))(rows())
        wide = lambda x: pk.BlockSpec((x.shape[0], 8), lambda i: (0, 0))
        with pytest.raises(TypeError, match="the size of the block of axis 0 is an integer, got n"):
            make_jaxpr(lambda x: sines(x, in_specs=[wide(x)]))(rows())


def test_the_argument_is_a_boolean():
    with pytest.raises(TypeError, match="takes True or False, got 'yes'"):
        with pk.pallas_export_experimental("yes"):
            pass
    assert np.isfinite(sines(np.ones((8, 8), F32))).all()
