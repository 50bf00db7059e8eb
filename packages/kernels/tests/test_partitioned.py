"""Kernels that devices divide: programs on 8 virtual devices, one device, bad rules."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import partitioned_programs
import pytest
from kernels_under_test import F32
from partitioned_programs import CASES, X, matmul, numbered, recurrence

import primax_kernels as pk
from primax_core import ShapeDtypeStruct as S, grad, jit, lax, make_jaxpr, vmap
from primax_kernels import tpu


@pytest.fixture(scope="module")
def output() -> str:
    """Output of the programs on 8 devices."""
    path = os.pathsep.join(p for p in sys.path if p)
    done = subprocess.run(
        [sys.executable, str(Path(partitioned_programs.__file__))], capture_output=True, text=True,
        timeout=280, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("name", CASES)
def test_programs_on_several_devices(name, output):
    assert f"{name}: ok" in output, output[-3000:]


def test_programs_on_one_device():
    expected = np.asarray(recurrence(X))
    np.testing.assert_array_equal(recurrence(X, "b _ -> b _"), expected)
    np.testing.assert_array_equal(jit(lambda x: recurrence(x, None))(X), expected)
    batch = np.stack([X, 2 * X])
    mapped = vmap(lambda x: recurrence(x, None))(batch)
    np.testing.assert_array_equal(mapped, vmap(recurrence)(batch))
    slope = grad(lambda x: lax.reduce_sum(recurrence(x, None), (0, 1)))(X)
    plain = grad(lambda x: lax.reduce_sum(recurrence(x), (0, 1)))(X)
    np.testing.assert_allclose(slope, plain, rtol=1e-5)
    jaxpr = make_jaxpr(lambda x: recurrence(x, None))(X)
    assert [e.primitive.name for e in jaxpr.eqns] == ["divided_pallas_call"]


def test_stepping_ignores_devices():
    block = pk.BlockSpec((2, 12), lambda i: (i, 0))
    for interpret in ("python", "check"):
        call = pk.pallas_call(
            lambda x, o: o.__setitem__(..., x[...]), S((16, 12), F32), grid=8, in_specs=[block],
            out_specs=block, interpret=interpret,
        )  # fmt: skip
        np.testing.assert_array_equal(call.partitioned("b _ -> b _")(X), X)


W = np.arange(8, dtype=F32)


def partial(rule):
    block = pk.BlockSpec((5, 12), lambda i: (i, 0))
    call = pk.pallas_call(
        lambda x, o: o.__setitem__(..., x[...]), S((16, 12), F32), grid=4, in_specs=[block],
        out_specs=block,
    )  # fmt: skip
    return call.partitioned(rule)(X)


def aliased(rule):
    block = pk.BlockSpec((2, 12), lambda i: (i, 0))
    call = pk.pallas_call(
        lambda x, o: o.__setitem__(..., o[...]), S((16, 12), F32), grid=8, out_specs=block,
        input_output_aliases={0: 0},
    )  # fmt: skip
    return call.partitioned(rule)(X)


def prefetched(rule):
    block = pk.BlockSpec((2, 12), lambda i, n: (i, 0))
    spec = tpu.PrefetchScalarGridSpec(1, grid=8, in_specs=[block], out_specs=block)
    call = pk.pallas_call(
        lambda n, x, o: o.__setitem__(..., x[...]), S((16, 12), F32), grid_spec=spec
    )
    return call.partitioned(rule)(np.arange(8, dtype=np.int32), X)


@pytest.mark.parametrize(
    ("run", "error", "text"),
    [
        (lambda: recurrence(X, 3), TypeError, "partitioned takes a rule such as 'b _, _ -> b _'"),
        (lambda: recurrence(X, "rows"), ValueError, "write the axes of operands and results"),
        (lambda: recurrence(X, "b _, _ -> b _"), ValueError, "has 2 operands, but the kernel"),
        (lambda: recurrence(X, "b _ -> b _, _"), ValueError, "has 2 results, but the kernel"),
        (lambda: recurrence(X, "b -> b _"), ValueError, "has 1 axes for operand 0, whose type is"),
        (lambda: recurrence(X, "b 3 -> b _"), ValueError, "has the axis '3'"),
        (lambda: recurrence(X, "b b -> b _"), ValueError, "a letter twice for operand 0"),
        (lambda: recurrence(X, "_ b -> _ b"), ValueError,
         "has the letter b, but dimension 1 of the grid is sequential: scratch memory may carry"),
        (lambda: recurrence(X, "b c -> c b"), ValueError,
         "for axes that move with the dimensions 1 and 0 of the grid"),
        (lambda: recurrence(X, "b _ -> _ _"), ValueError, "all results have one"),
        (lambda: numbered(X, W, "b _, b -> b _"), ValueError,
         r"the letter b for axis 0 of in_specs\[1\], whose blocks do not divide it"),
        (lambda: matmul(X, X[:12, :8], "_ k, k _ -> _ _"), ValueError,
         "dimension 2 of the grid is sequential"),
        (lambda: partial("b _ -> b _"), ValueError, "whose blocks do not divide it along"),
        (lambda: aliased("_ _ -> b _"), ValueError, "result 0 begins with operand 0, which is not"),
        (lambda: prefetched("b, b _ -> b _"), ValueError, "divides operand 0, a prefetched scalar"),
        (lambda: jit(lambda n: pk.pallas_call(
            lambda o: None, S((4,), F32), grid=n).partitioned()())(3), ValueError,
         "has a grid of computed size, which devices cannot divide"),
    ],
    ids=["number", "text", "operands", "results", "axes", "digit", "twice", "sequential", "swapped",
         "no_result", "moving_back", "summed", "partial", "aliased", "prefetched", "computed"],
)  # fmt: skip
def test_bad_rules(run, error, text):
    with pytest.raises(error, match=text):
        run()


def test_default_rules_leave_out_what_cannot_be_divided():
    for run in (partial, aliased):
        jaxpr = make_jaxpr(lambda run=run: run(None))()
        assert "division=()" in str(jaxpr)
        np.testing.assert_array_equal(run(None), X)
