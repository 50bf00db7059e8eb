"""Kernels that the Mosaic backend refuses, with the line and the rewrite."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from mosaic_operations import ROWS, TILE, X
from triton_operations import F32, Case, array, call_of, kernel_of, like, maps

from primax_core import ShapeDtypeStruct, jit, lax
from primax_core.extend import Primitive, abstract, native
from primax_kernels import (
    ANY,
    BlockSpec,
    Buffered,
    Element,
    RevisitMode,
    ds,
    pallas_call,
    program_id,
    semaphore_signal,
    when,
)
from primax_kernels._mosaic.errors import MosaicError
from primax_kernels._mosaic.limits import checked, limits
from primax_kernels._mosaic.program import emit
from primax_kernels.tpu import (
    CMEM,
    HBM,
    SMEM,
    VMEM,
    CompilerParams,
    SemaphoreType,
    async_copy,
    limits as public_limits,
    sync_copy,
)

mystery_p = Primitive("mystery_of_mosaic")
mystery_p.rule(abstract)(lambda x: x)


def reasons_of(case: Case, params: Any = None, target: str | None = None) -> tuple[str, ...]:
    return limits(kernel_of(call_of(case), *case.args), params, target)


def _copy(x: Any, o: Any) -> None:
    o[...] = x[...]


def _zero(x: Any, o: Any) -> None:
    o[...] = lax.full(o.shape, 0, F32)


def _sorted(x: Any, o: Any) -> None:
    o[...] = lax.sort(x[...])


def _writes(x: Any, o: Any) -> None:
    x[...] = x[...] + F32(1)
    o[...] = x[...]


def _sums(x: Any, o: Any) -> None:
    @when(program_id(0) == 0)
    def _start() -> None:
        o[...] = lax.full(o.shape, 0, F32)

    o[...] += x[...]


def _strides(x: Any, o: Any) -> None:
    o[0:16:2] = x[0:8]
    o[1:16:2] = x[8:16]


def _element(x: Any, o: Any) -> None:
    o[...] = lax.full(o.shape, 1, F32) * x[0, 0]


def _semaphore(x: Any, o: Any, semaphore: Any) -> None:
    semaphore_signal(semaphore, 1)
    _zero(x, o)


def _other_semaphore(x: Any, o: Any, semaphore: Any) -> None:
    async_copy(x, o, semaphore).wait()


def _columns(x: Any, o: Any) -> None:
    sync_copy(x.at[:, 0:100], o)


def _rows(x: Any, i: Any, o: Any) -> None:
    sync_copy(x.at[ds(i[0], 8)], o)


def blocks(
    ins: Any, outs: Any = ROWS, shape: Any = (20, 300), grid: Any = (3,), kernel: Any = _zero
) -> Case:
    return Case(kernel, like(*shape), array(shape), grid=grid, ins=[ins], outs=outs)


_DOT = (((1,), (0,)), ((), ()))

REFUSED: dict[str, tuple[Case, str]] = {
    "operation": (Case(_sorted, like(8), array((8,))),
                  "the operation sort has no rule for Mosaic; sort before or after the kernel"),
    "foreign": (maps(mystery_p.bind, array((8,))),
                r"add a rule with @mystery_of_mosaic_p.rule\(mosaic\)"),
    "half": (maps(lax.neg, array((8,), np.float16)),
             r"in_specs\[0\]: Mosaic has no elements of type float16; use bfloat16 or float32"),
    "half_inside": (maps(lambda x: lax.convert_element_type(lax.convert_element_type(
        x, np.float16), F32), array((8,))), "no elements of type float16; use bfloat16"),
    "complex": (maps(lax.neg, array((8,)).astype(np.complex64)), "complex64; .* as two arrays"),
    "rows": (blocks(BlockSpec((5, 300), lambda i: (i, 0))),
             r"in_specs\[0\]: the block of axis 0 is 5 and the array of shape \(20, 300\) has 20 "
             "there; on a TPU it is a multiple of 8, or the whole axis: use 8 or 20"),
    "columns": (blocks(BlockSpec((8, 100), lambda i: (i, 0))), "multiple of 128.* use 128 or 300"),
    "squeezed": (blocks(BlockSpec((None, 300), lambda i: (i, 0))), "the block of axis 0 is None"),
    "line": (Case(_copy, like(300), array((300,)), grid=(5,),
                  ins=[BlockSpec((64,), lambda i: (i,))], outs=BlockSpec((64,), lambda i: (i,))),
             "a multiple of 128, or the whole axis"),
    "elements": (blocks(BlockSpec((Element(8), 300), lambda i: (i * 5, 0)), kernel=_copy),
                 "not known to be multiples of 8 along axis 0: use multiples, as lambda i"),
    "padding": (blocks(BlockSpec((Element(8, (8, 0)), 300), lambda i: (i * 8, 0))),
                "blocks begin before the array, and Mosaic has padding after it only"),
    "space": (blocks(BlockSpec((8, 300), lambda i: (i, 0), memory_space=CMEM)),
              r"in_specs\[0\] has the memory space CMEM; blocks are in VMEM or SMEM"),
    "blocks_of_any": (blocks(BlockSpec((8, 300), lambda i: (i, 0), memory_space=HBM)),
                      "in HBM and has blocks; whole arrays are there"),
    "any": (Case(_element, like(20, 300), X, ins=[BlockSpec(memory_space=ANY)]),
            "an access to one element of a reference in the memory any: copy it to SMEM or VMEM"),
    "semaphore": (Case(_semaphore, like(20, 300), X, scratch=[SemaphoreType.DMA]),
                  "a semaphore of kind SemaphoreType.DMA is read, signalled or awaited by itself"),
    "other_semaphore": (Case(_other_semaphore, like(20, 300), X, scratch=[SemaphoreType.REGULAR]),
                        "a copy with a semaphore that is none of kind SemaphoreType.DMA"),
    "columns_of_copy": (Case(_columns, like(20, 100), X), "a copy of 100 of 300 elements"),
    "start_of_copy": (Case(_rows, like(8, 300), X, np.array([3], np.int32),
                           ins=[BlockSpec(memory_space=ANY), BlockSpec(memory_space=SMEM)]),
                      "a copy that begins at a position along axis 0 that is not known to be a"),
    "smem": (blocks(BlockSpec(memory_space=SMEM), BlockSpec(), grid=(), kernel=_copy),
             r"an access to \(20, 300\) elements in SMEM, which has scalars"),
    "operand": (Case(_writes, like(20, 300), X), "writes into the block of an operand"),
    "revisited": (Case(_sums, like(16, 128), array((24, 128)), grid=(3, 2),
                       ins=[BlockSpec((8, 128), lambda k, i: (k, 0))],
                       outs=BlockSpec((8, 128), lambda k, i: (i, 0))),
                  r"out_specs\[0\]: steps that do not follow each other share a block.* the last "
                  "ones of the grid"),
    "stride": (Case(_strides, like(16, 128), array((16, 128))), "a write with a stride"),
    "long_stride": (maps(lambda x: lax.slice(x, (0,), (400,), (2,)), array((400,))),
                    "200 elements with a stride of 2 along axis 0; at most 64 are joined"),
    "precision": (maps(lambda x, y: lax.dot_general(x, y, _DOT, lax.Precision.HIGH),
                       array((16, 32)), array((32, 16))), "on TPUs it is DEFAULT .* or HIGHEST"),
    "integers": (maps(lambda x, y: lax.dot_general(x, y, _DOT), array((128, 128), np.int32),
                      array((128, 128), np.int32)), "matrix units multiply bfloat16, float32"),
    "empty": (maps(lambda x: lax.concatenate([x, x], 0), np.zeros((0, 8), F32)),
              r"in_specs\[0\] of shape \(0, 8\) has no elements"),
    "vmem": (maps(lax.neg, np.zeros((4096, 1024), F32)),
             "take 67108864 bytes of VMEM, the limit is 16777216: use smaller blocks, one"),
    "scratch": (Case(lambda x, o, s: _copy(x, o), like(8), array((8,)),
                     scratch=[HBM((8,), F32)]), r"scratch_shapes\[0\] has the memory space HBM"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    case, pattern = REFUSED[name]
    (reason, *_) = reasons_of(case)
    assert re.search(pattern, reason), reason
    assert "compiled by Mosaic for a TPU" in reason


def test_the_line_is_named() -> None:
    (reason,) = reasons_of(REFUSED["operation"][0])
    line = _sorted.__code__.co_firstlineno
    assert reason.startswith(f"{__file__}:{line + 1}:")
    assert "_sorted" in reason


def test_sizes_of_memory() -> None:
    case = maps(lax.neg, np.zeros((4096, 1024), F32))
    large = CompilerParams(vmem_limit_bytes=100 << 20)
    assert reasons_of(case, large) == () == reasons_of(case, large, "v5e")
    (reason,) = reasons_of(case, large, "v5p")
    assert "vmem_limit_bytes is 104857600, a v5p has 67108864 bytes" in reason
    scratch = Case(lambda x, o, s: _copy(x, o), like(8), array((8,)),
                   scratch=[VMEM((4096, 2048), F32)])  # fmt: skip
    assert "33556480 bytes of VMEM" in reasons_of(scratch)[0]


@pytest.mark.parametrize(
    ("params", "pattern"),
    [
        ({"vmem_limit_bytes": "1"}, "vmem_limit_bytes is an integer, got '1'"),
        ({"vmem_limit_bytes": 0}, "vmem_limit_bytes is at least 1, got 0"),
        ({"collective_id": -1}, "collective_id is at least 0, got -1"),
        ({"allow_input_fusion": True}, "allow_input_fusion is a sequence of Booleans"),
        (CompilerParams(opt_level=2), "has opt_level=2, which this backend does not pass on"),
        (CompilerParams(flags={"a": 1}), "has flags={'a': 1}"),
        (CompilerParams(serialization_format=2), "serialization_format is 1"),
    ],
)
def test_parameters(params: Any, pattern: str) -> None:
    (reason,) = reasons_of(maps(lax.neg, array((8,))), params)
    assert pattern in reason


@pytest.mark.parametrize(
    ("buffers", "pattern"),
    [
        (Buffered(3), "buffer_count=3; a block of a kernel has one buffer or two"),
        (Buffered(2, use_lookahead=True), "leave use_lookahead and prefetched_count away"),
        (Buffered(2, prefetched_count=1), "leave use_lookahead and prefetched_count away"),
        (Buffered(2, revisit=RevisitMode.ANY), "use Buffered(1, revisit=RevisitMode.ANY)"),
    ],
)
def test_buffers(buffers: Buffered, pattern: str) -> None:
    rows = BlockSpec((8, 128), lambda i: (i, 0), pipeline_mode=buffers)
    case = Case(_copy, like(32, 128), array((32, 128)), grid=(4,), ins=[rows], outs=rows)
    (reason,) = reasons_of(case)[:1]
    assert pattern in reason and "in_specs[0]" in reason


def test_one_buffer_takes_half_of_the_memory() -> None:
    def program(buffers: Buffered | None) -> Any:
        rows = BlockSpec((8, 128), lambda i: (i, 0), pipeline_mode=buffers)
        case = Case(_copy, like(32, 128), array((32, 128)), grid=(4,), ins=[rows], outs=rows)
        return emit(kernel_of(call_of(case), *case.args))

    one, two, default = (program(b) for b in (Buffered(1), Buffered(2), None))
    assert one.vmem_bytes == 2 * 4096 and two.vmem_bytes == default.vmem_bytes == 4 * 4096
    assert one.text.count("#tpu.pipeline_mode<synchronous>") == 2
    assert two.text.count("#tpu.pipeline_mode<double_buffered>") == 2
    assert "pipeline_mode" not in default.text
    immediate = program(Buffered(1, revisit=RevisitMode.IMMEDIATE)).text
    assert "revisit_mode = #tpu.revisit_mode<immediate>" in immediate


def test_targets() -> None:
    case = maps(lax.neg, array((8,)))
    for target in ("v4", "v5e:2x2", "v5p", "v6e", "tpu7x:2x2x1"):
        assert reasons_of(case, target=target) == ()
    with pytest.raises(ValueError, match="target is one of v4, v5e, v5p, v6e, tpu7x, got 'v3'"):
        reasons_of(case, target="v3")


def test_limits_of_functions() -> None:
    call = call_of(REFUSED["operation"][0])

    def function(x: Any) -> Any:
        return jit(call)(lax.neg(x))[0], call_of(maps(lax.neg, array((8,))))(x)

    (reason,) = public_limits(function, ShapeDtypeStruct((8,), F32))
    assert "the operation sort has no rule for Mosaic" in reason
    assert public_limits(lax.neg, array((8,))) == ()
    with pytest.raises(ValueError, match="target is one of"):
        public_limits(call, array((8,)), target="h100")


def test_limits_of_an_absent_tpu() -> None:
    def double(x: Any, o: Any) -> None:
        o[...] = x[...] + x[...]

    params = CompilerParams(vmem_limit_bytes=100 << 20)
    call = pallas_call(double, like(16, 128), in_specs=[TILE], out_specs=TILE, grid=(2, 1),
                       compiler_params=params)  # fmt: skip
    lowered = jit(call).trace(array((16, 128))).lower(lowering_platforms=("tpu",))
    with pytest.raises(MosaicError, match="a v5p has 67108864 bytes"):
        lowered.compile(devices=[native.AbsentDevice("tpu", "v5p:2x2x1", None)])


def test_checked_raises_the_first_reason() -> None:
    case = REFUSED["operation"][0]
    with pytest.raises(MosaicError, match="the operation sort"):
        checked(kernel_of(call_of(case), *case.args))
