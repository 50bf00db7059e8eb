"""Programs for TPUs with blocks of bounded slices and at positions."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from mosaic_evaluator import evaluate
from moving_block_calls import MOVING
from test_mosaic_lowering import compiles
from triton_operations import kernel_of, like

from primax_core import lax
from primax_kernels import BlockSpec, BoundedSlice, Indirect, ds, pallas_call
from primax_kernels._mosaic.program import emit
from primax_kernels.tpu import limits


@pytest.mark.parametrize("name", MOVING)
def test_rows_are_copied(name: str) -> None:
    call, args = MOVING[name]
    kernel = kernel_of(call, *args)
    assert limits(call, *args) == ()
    (result,) = evaluate(emit(kernel), kernel, args)
    np.testing.assert_allclose(result, call(*args)[0], rtol=1e-5, atol=1e-5)


def test_steps_that_write_whole_rows_run_on_one_core() -> None:
    words = {}
    for name in ("columns", "groups"):
        call, args = MOVING[name]
        kernel = replace(kernel_of(call, *args), semantics=("parallel",))
        words[name] = re.findall(r"#tpu.dimension_semantics<(\w+)>", emit(kernel).text)
    assert words == {"columns": ["arbitrary"], "groups": ["parallel"]}


@pytest.mark.parametrize("target", ["v4:2x2x1", "v5e:2x2"])
def test_moving_blocks_compile(target: str) -> None:
    compiles(target, [], calls="from moving_block_calls import MOVING as CALLS")


def double(x: Any, o: Any) -> None:
    o[...] = x[...] * 2


@pytest.mark.parametrize(
    ("block", "message"),
    [
        (
            BlockSpec((BoundedSlice(8), 100), lambda i: (ds(i, 3), i)),
            "has 100 of 256",
        ),
        (
            BlockSpec((Indirect(8), 100), lambda i: (lax.iota(np.int32, 8), i)),
            "has 100 of 256",
        ),
    ],
    ids=["slice", "positions"],
)
def test_blocks_that_are_not_copied(block: BlockSpec, message: str) -> None:
    shape = tuple(getattr(n, "block_size", n) for n in block.block_shape)
    call = pallas_call(
        double, like(*shape), grid=2, in_specs=[block],
        out_specs=BlockSpec(shape, lambda i: (0, 0)),
    )  # fmt: skip
    (reason,) = limits(call, like(8, 256))
    assert message in reason and "copy its parts by tpu.async_copy" in reason
