"""Small kernels for each operation that Mosaic supports; most are those for Triton."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import triton_operations as triton
from pipeline_operations import PIPELINES
from position_operations import POSITIONS
from triton_operations import BF16, F32, I32, Case, array, call_of, like

from primax_core import dtypes, lax, vmap
from primax_kernels import (
    ANY,
    BlockSpec,
    Buffered,
    Element,
    PrefetchScalarGridSpec,
    ds,
    enable_poison_buffers,
    get_global,
    kernel,
    multiple_of,
    num_programs,
    pallas_call,
    program_id,
    run_scoped,
    select_ref,
    semaphore_read,
    semaphore_signal,
    semaphore_wait,
    when,
)
from primax_kernels.tpu import (
    HBM,
    SMEM,
    VMEM,
    SemaphoreType,
    TensorCoreMesh,
    async_copy,
    core_barrier,
    emit_pipeline,
    get_barrier_semaphore,
    load,
    make_async_copy,
    prng_seed,
    stateful_bernoulli,
    store,
    sync_copy,
)

_ABSENT = {
    "asinh", "asin", "acos", "atanh", "acosh", "nextafter", "float16", "cumlogsumexp", "high",
    "masked", "switch",
}  # fmt: skip
"""Operations that Mosaic does not have, and blocks that are no multiples of tiles."""


def _present(cases: dict[str, Case]) -> dict[str, Case]:
    return {
        n: c for n, c in cases.items()
        if n not in _ABSENT and "float16" not in n.replace("bfloat16", "")
    }  # fmt: skip


# Blocks

X = array((20, 300))


def _double(x: Any, o: Any) -> None:
    o[...] = x[...] * F32(2)


def _switch(x: Any, o: Any) -> None:
    i = program_id(0)
    o[...] = lax.switch(i, [lambda: x[...], lambda: x[...] + F32(1), lambda: lax.exp(x[...])])


def _increment(x: Any, o: Any) -> None:
    o[...] = x[...] + F32(1)


def _first_plane(x: Any, o: Any) -> None:
    o[...] = x[0] * F32(2)


def _upper_rows(x: Any, o: Any) -> None:
    o[0:3] = x[0:3]


def _sometimes(x: Any, o: Any) -> None:
    @when(lax.gt(x[0, 0], F32(0)))
    def _upper() -> None:
        o[...] = x[...]


def _row_sums(x: Any, o: Any) -> None:
    @when(program_id(1) == 0)
    def _start() -> None:
        o[...] = lax.full(o.shape, 0, F32)

    o[...] += x[...]


def _maxima(x: Any, before: Any, o: Any) -> None:
    o[...] = lax.max(o[...], x[...])


def _running(x: Any, o: Any, total: Any, count: Any) -> None:
    @when(program_id(0) == 0)
    def _start() -> None:
        total[...] = lax.full(total.shape, 0, F32)
        count[0] = I32(0)

    total[...] += x[...]
    count[0] += I32(1)
    o[...] = total[...] * lax.convert_element_type(count[0], F32)


def _matmul(x: Any, y: Any, o: Any, total: Any) -> None:
    @when(program_id(2) == 0)
    def _start() -> None:
        total[...] = lax.full(total.shape, 0, F32)

    total[...] += lax.dot(x[...], y[...])

    @when(program_id(2) == 1)
    def _end() -> None:
        o[...] = total[...]


def _scale(k: Any, x: Any, o: Any) -> None:
    o[...] = x[...] * k[0]


def _flags(f: Any, x: Any, o: Any, q: Any) -> None:
    o[...] = lax.bitwise_and(f[...], lax.gt(x[...], F32(0)))
    q[...] = lax.reduce_or(f[...], (0, 1))


TILE = BlockSpec((8, 128), lambda i, j: (i, j))
ROWS = BlockSpec((8, 300), lambda i: (i, 0))
LINE = BlockSpec((128,), lambda i: (i,))
PLANE = BlockSpec((None, 8, 128), lambda b, i: (b, i, 0))
GRIDS: dict[str, Case] = {
    "partial": Case(_double, like(20, 300), X, grid=(3, 3), ins=[TILE], outs=TILE),
    "line": Case(_double, like(300), array((300,)), grid=(3,), ins=[LINE], outs=LINE),
    "squeezed": Case(_double, like(3, 16, 128), array((3, 16, 128)), grid=(3, 2), ins=[PLANE],
                     outs=PLANE),
    "reversed": Case(_double, like(24, 300), array((24, 300)), grid=(3, 3),
                     ins=[BlockSpec((8, 128), lambda i, j: (2 - i, j))], outs=TILE),
    "beyond": Case(_double, like(24, 300), array((24, 300)), grid=(3,),
                   ins=[BlockSpec((8, 300), lambda i: (i + 2, 0))], outs=ROWS),
    "switch": Case(_switch, like(24, 300), array((24, 300)), grid=(3,), ins=[ROWS], outs=ROWS),
    "windows": Case(_double, like(16, 128), array((20, 128)), grid=(2,),
                    ins=[BlockSpec((Element(8), 128), lambda i: (i * 8, 0))],
                    outs=BlockSpec((8, 128), lambda i: (i, 0))),
    "neighbours": Case(_first_plane, like(4, 8, 128), array((4, 8, 128)), grid=(4,),
                       ins=[BlockSpec((Element(3, (0, 2)), 8, 128), lambda i: (i, 0, 0))],
                       outs=BlockSpec((None, 8, 128), lambda i: (i, 0, 0))),
    "steps": Case(_double, like(4, 8, 128), array((3, 8, 128)), grid=(4,),
                  ins=[BlockSpec((None, 8, 128), lambda i: (lax.div(i, I32(2)), 0, 0))],
                  outs=BlockSpec((None, 8, 128), lambda i: (i, 0, 0))),
    "sums": Case(_row_sums, like(16, 128), array((16, 384)), grid=(2, 3), ins=[TILE],
                 outs=BlockSpec((8, 128), lambda i, j: (i, 0)), tolerance=1e-5),
    "sums_in_place": Case(_maxima, like(16, 128), array((16, 384)), array((16, 128), seed=5),
                          grid=(2, 3), ins=[TILE, BlockSpec((8, 128), lambda i, j: (i, 0))],
                          outs=BlockSpec((8, 128), lambda i, j: (i, 0)), aliases={1: 0}),
    "steps_of_results": Case(_maxima, like(3, 8, 128), array((4, 8, 128)), array((3, 8, 128)),
                             grid=(4,),
                             ins=[BlockSpec((None, 8, 128), lambda i: (i, 0, 0)),
                                  BlockSpec((3, 8, 128), lambda i: (0, 0, 0))],
                             outs=BlockSpec((None, 8, 128), lambda i: (lax.div(i, I32(2)), 0, 0)),
                             aliases={1: 0}),
    "running": Case(_running, like(24, 300), array((24, 300)), grid=(3,), ins=[ROWS], outs=ROWS,
                    scratch=[VMEM((8, 300), F32), SMEM((1,), I32)], tolerance=1e-5),
    "matmul": Case(_matmul, like(16, 256), array((16, 256)), array((256, 256)), grid=(2, 2, 2),
                   ins=[BlockSpec((8, 128), lambda i, j, k: (i, k)),
                        BlockSpec((128, 128), lambda i, j, k: (k, j))],
                   outs=BlockSpec((8, 128), lambda i, j, k: (i, j)),
                   scratch=[VMEM((8, 128), F32)], tolerance=1e-5),
    "buffers": Case(_double, like(24, 300), array((24, 300)), grid=(3,),
                    ins=[BlockSpec((8, 300), lambda i: (i, 0), pipeline_mode=Buffered(1))],
                    outs=BlockSpec((8, 300), lambda i: (2 - i, 0), pipeline_mode=Buffered(2))),
    "sometimes": Case(_sometimes, like(20, 300), X, grid=(3,), ins=[ROWS], outs=ROWS),
    "upper_rows": Case(_upper_rows, like(20, 300), X, grid=(3,), ins=[ROWS], outs=ROWS),
    "uncovered": Case(_double, like(32, 300), X, grid=(2,), ins=[ROWS], outs=ROWS),
    "in_place": Case(_increment, like(20, 300), X, grid=(3,), ins=[ROWS], outs=ROWS,
                     aliases={0: 0}),
    "in_place_neighbour": Case(_double, like(24, 300), array((24, 300)), grid=(3,),
                               ins=[BlockSpec((8, 300), lambda i: (2 - i, 0))], outs=ROWS,
                               aliases={0: 0}),
    "in_place_partly": Case(_upper_rows, like(20, 300), X, grid=(2,), ins=[ROWS], outs=ROWS,
                            aliases={0: 0}),
    "scalars": Case(_scale, like(20, 300), array((1,)), X, grid=(3,),
                    ins=[BlockSpec(memory_space=SMEM), ROWS], outs=ROWS),
    "booleans": Case(_flags, (like(5, 12, dtype=np.bool_), like(dtype=np.bool_)),
                     array((5, 12), np.bool_), array((5, 12))),
}  # fmt: skip


# Accesses

_LONG = array((40, 256))


def _aligned(x: Any, o: Any) -> None:
    def body(i: Any, _: Any) -> None:
        rows = x[ds(i * 8, 8), ds(lax.rem(i, I32(2)) * 128, 128)]
        o[ds(i * 8, 8)] = rows

    lax.fori_loop(0, 5, body, None)


def _computed_rows(x: Any, i: Any, o: Any) -> None:
    o[...] = lax.full(o.shape, 0, F32)
    o[ds(i[0], 5), ds(i[1], 7)] = x[ds(i[1], 5), ds(i[2], 7)]
    o[i[3]] = x[i[1]]


def _promised(x: Any, i: Any, o: Any) -> None:
    o[...] = x[ds(multiple_of(i[0], 8), 8)]


def _halves(x: Any, i: Any, o: Any) -> None:
    o[...] = x[...]
    o[ds(i[1], 3), 5] = x[ds(i[0], 3), 9]


def _masked_rows(x: Any, i: Any, o: Any) -> None:
    where = lax.broadcasted_iota(I32, (8, 256), 0) + i[0]
    mask = lax.lt(where, I32(40))
    rows = load(x.at[ds(i[0], 8)], mask=mask, other=F32(-1))
    o[...] = lax.full(o.shape, 0, F32)
    store(o.at[ds(i[0], 8)], rows, mask=mask)


def _scalars(x: Any, o: Any) -> None:
    lax.fori_loop(0, 4, lambda i, _: o.__setitem__(3 - i, x[i] * F32(3)), None)


_AT = BlockSpec(memory_space=SMEM)
_WHOLE = BlockSpec()
ACCESSES: dict[str, Case] = {
    "aligned": Case(_aligned, like(40, 128), _LONG),
    "computed_rows": Case(_computed_rows, like(40, 256), _LONG, np.array([3, 33, 250, 99], I32),
                          ins=[_WHOLE, _AT]),
    "computed_vmem": Case(_computed_rows, like(40, 256), _LONG, np.array([36, 2, 11, 0], I32)),
    "promised": Case(_promised, like(8, 256), _LONG, np.array([24], I32), ins=[_WHOLE, _AT]),
    "halves": Case(_halves, like(40, 256, dtype=BF16), _LONG.astype(BF16), np.array([3, 37], I32),
                   ins=[_WHOLE, _AT]),
    "masked_rows": Case(_masked_rows, like(40, 256), _LONG, np.array([35], I32), ins=[_WHOLE, _AT]),
    **POSITIONS,
    "scalars": Case(_scalars, like(4), array((4,)), ins=[_AT], outs=_AT),
}  # fmt: skip

# Copies


def _buffered(x: Any, o: Any, buffers: Any, semaphores: Any) -> None:
    """Two buffers: the next rows are copied while the last ones are used."""

    def copy(i: Any) -> Any:
        slot = lax.rem(i, I32(2))
        return make_async_copy(x.at[ds(i * 8, 8)], buffers.at[slot], semaphores.at[slot])

    copy(I32(0)).start()

    def body(i: Any, total: Any) -> Any:
        @when(lax.lt(i, I32(4)))
        def _next() -> None:
            copy(i + I32(1)).start()

        copy(i).wait()
        return total + buffers[lax.rem(i, I32(2))]

    o[...] = lax.fori_loop(0, 5, body, lax.full(o.shape, 0, F32))


def _out(x: Any, o: Any, buffer: Any) -> None:
    i = program_id(0)
    buffer[...] = x[...] + F32(1)
    sync_copy(buffer, o.at[2 - i])


def _scoped(x: Any, o: Any) -> None:
    def body(buffer: Any, semaphore: Any, scalars: Any) -> None:
        copy = async_copy(x.at[1], buffer, semaphore)
        scalars[1] = I32(3)
        copy.wait()
        o[...] = buffer[...] * lax.convert_element_type(scalars[1], F32)

    run_scoped(body, VMEM((8, 128), F32), SemaphoreType.DMA, SMEM((2,), I32))


def _counted(x: Any, o: Any, semaphore: Any) -> None:
    semaphore_signal(semaphore, 3)
    semaphore_wait(semaphore, 2)
    o[...] = x[...] * lax.convert_element_type(semaphore_read(semaphore), F32)
    semaphore_wait(semaphore, 1)


def _inner(x: Any, y: Any, o: Any) -> None:
    o[...] = x[...] * y[...] + lax.convert_element_type(program_id(0), F32)


def _pipeline(x: Any, y: Any, o: Any) -> None:
    rows = BlockSpec((8, 256), lambda i: (i, 0))
    whole = BlockSpec((8, 256), lambda i: (0, 0))
    emit_pipeline(_inner, grid=(5,), in_specs=[rows, whole], out_specs=[rows])(x, y, o)


def _two_dimensions(x: Any, o: Any) -> None:
    tile = BlockSpec((8, 128), lambda i, j: (i, j))
    emit_pipeline(_copied, grid=(5, 2), in_specs=[tile], out_specs=[tile])(x, o)


def _copied(x: Any, o: Any) -> None:
    o[...] = x[...] * F32(3)


def _total(x: Any, o: Any) -> None:
    rows = BlockSpec((8, 256), lambda i: (i, 0))
    first = BlockSpec((8, 256), lambda i: (0, 0))
    emit_pipeline(_summed, grid=(5,), in_specs=[rows], out_specs=[first])(x, o)


def _summed(x: Any, o: Any) -> None:
    @when(program_id(0) == 0)
    def _first() -> None:
        o[...] = lax.full(o.shape, 0, F32)

    o[...] += x[...]


def _in_place(x: Any, o: Any) -> None:
    here = BlockSpec((8, 256), lambda i: (4 - i, 0))
    rows = BlockSpec((8, 256), lambda i: (i, 0))
    emit_pipeline(_copied, grid=(5,), in_specs=[here], out_specs=[rows])(o, o)


def _recurrence(x: Any, o: Any) -> None:
    o[0:8] = x[0:8]

    def body(i: Any, _: Any) -> None:
        o[ds(i * 8, 8)] = o[ds((i - 1) * 8, 8)] + x[ds(i * 8, 8)]

    lax.fori_loop(1, 5, body, None)


def _overwritten(x: Any, o: Any) -> None:
    """Neighbouring steps write the same rows."""

    def body(i: Any, _: Any) -> None:
        o[ds(lax.div(i, I32(2)) * 8, 8)] = x[ds(i * 8, 8)]

    lax.fori_loop(0, 5, body, None)


def _added(x: Any, o: Any) -> None:
    o[...] = x[...]
    sync_copy(x, o, add=True)


_ANY = BlockSpec(memory_space=ANY)
_HBM = BlockSpec(memory_space=HBM)
COPIES: dict[str, Case] = {
    "buffered": Case(_buffered, like(8, 256), _LONG, ins=[_ANY], tolerance=1e-5,
                     scratch=[VMEM((2, 8, 256), F32), SemaphoreType.DMA((2,))]),
    "out": Case(_out, like(3, 8, 128), array((24, 128)), grid=(3,),
                ins=[BlockSpec((8, 128), lambda i: (i, 0))], outs=_HBM,
                scratch=[VMEM((8, 128), F32)]),
    "scoped": Case(_scoped, like(8, 128), array((3, 8, 128)), ins=[_ANY]),
    "counted": Case(_counted, like(8, 128), array((8, 128)), scratch=[SemaphoreType.REGULAR]),
    "pipeline": Case(_pipeline, like(40, 256), _LONG, array((8, 256)), ins=[_ANY, _HBM],
                     outs=_ANY),
    **PIPELINES,
    "two_dimensions": Case(_two_dimensions, like(40, 256), _LONG, ins=[_ANY], outs=_ANY),
    "total": Case(_total, like(8, 256), _LONG, ins=[_ANY], outs=_ANY, tolerance=1e-5),
    "in_place": Case(_in_place, like(40, 256), _LONG, ins=[_ANY], outs=_ANY, aliases={0: 0}),
    "recurrence": Case(_recurrence, like(40, 256), _LONG, ins=[_ANY], outs=_ANY, tolerance=1e-5),
    "overwritten": Case(_overwritten, like(24, 256), _LONG, ins=[_ANY], outs=_HBM),
    "added": Case(_added, like(8, 128), array((8, 128))),
}  # fmt: skip

GROUPS: dict[str, dict[str, Case]] = {
    **{group: _present(cases) for group, cases in triton.GROUPS.items() if group != "grids"},
    "blocks": GRIDS, "parts": ACCESSES, "copies": COPIES,
}  # fmt: skip


# Calls with prefetched scalars, of batches, and larger kernels


def _chosen_rows(i: Any, k: Any, x: Any, o: Any) -> None:
    scale = lax.convert_element_type(i[program_id(0)] + k[()], F32)
    o[...] = x[...] * scale


def _grouped(groups: Any, x: Any, o: Any) -> None:
    i = program_id(0)
    before = groups[lax.max(i - 1, I32(0))]

    @when(lax.bitwise_or(lax.eq(i, I32(0)), lax.ne(groups[i], before)))
    def _first() -> None:
        o[...] = lax.full(o.shape, 0, F32)

    o[...] += x[...]


def _attention(q: Any, k: Any, v: Any, o: Any, top: Any, total: Any, out: Any) -> None:
    """Flash attention, forward: Dao et al., 2022."""

    @when(program_id(2) == 0)
    def _first() -> None:
        top[...] = lax.full(top.shape, -1e30, F32)
        total[...] = lax.full(total.shape, 0, F32)
        out[...] = lax.full(out.shape, 0, F32)

    scores = lax.dot_general(q[...], k[...], (((1,), (1,)), ((), ())),
                             preferred_element_type=F32)  # fmt: skip
    rows = lax.expand_dims(lax.reduce_max(scores, (1,)), (1,))
    new_top = lax.max(top[...], rows)
    p = lax.exp(scores - new_top)
    scale = lax.exp(top[...] - new_top)
    total[...] = total[...] * scale + lax.expand_dims(lax.reduce_sum(p, (1,)), (1,))
    out[...] = out[...] * scale + lax.dot(p, lax.convert_element_type(v[...], F32))
    top[...] = new_top

    @when(program_id(2) == num_programs(2) - 1)
    def _last() -> None:
        o[...] = out[...] / total[...]


_QUERIES = BlockSpec((None, 16, 128), lambda h, i, j: (h, i, 0))
_KEYS = BlockSpec((None, 128, 128), lambda h, i, j: (h, j, 0))


def _attend(q: Any, k: Any, v: Any) -> Any:
    return pallas_call(
        _attention, [like(*q.shape)], grid=(q.shape[0], q.shape[1] // 16, k.shape[1] // 128),
        in_specs=[_QUERIES, _KEYS, _KEYS], out_specs=[_QUERIES],
        scratch_shapes=[VMEM((16, 1), F32), VMEM((16, 1), F32), VMEM((16, 128), F32)],
    )(q, k, v)  # fmt: skip


def _prefetched(i: Any, k: Any, x: Any) -> Any:
    spec = PrefetchScalarGridSpec(
        2, grid=(4,), in_specs=[BlockSpec((None, 8, 128), lambda j, i, k: (i[j], 0, 0))],
        out_specs=[BlockSpec((None, 8, 128), lambda j, i, k: (j, 0, 0))],
    )  # fmt: skip
    return pallas_call(_chosen_rows, [like(4, 8, 128)], grid_spec=spec)(i, k, x)


def _group_sums(groups: Any, x: Any) -> Any:
    spec = PrefetchScalarGridSpec(
        1, grid=(6,), in_specs=[BlockSpec((None, 8, 128), lambda j, g: (j, 0, 0))],
        out_specs=[BlockSpec((None, 8, 128), lambda j, g: (g[j], 0, 0))],
    )  # fmt: skip
    return pallas_call(_grouped, [like(3, 8, 128)], grid_spec=spec)(groups, x)


def _twice(x: Any, o: Any) -> None:
    v = x[...]
    o[...] = lax.bitwise_not(v) if v.dtype == np.bool_ else v + v


def _of_type(dtype: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A kernel on blocks of a dtype."""
    x = array((24, 256), F32 if dtypes.issubdtype(dtype, np.floating) else dtype).astype(dtype)
    call = pallas_call(
        _twice, [like(24, 256, dtype=dtype)], grid=(3, 2), in_specs=[TILE], out_specs=[TILE]
    )
    return call, (x,)


def _random(o: Any) -> None:
    prng_seed(3, program_id(0))
    o[...] = lax.convert_element_type(stateful_bernoulli(0.5, o.shape), F32)


def _largest_columns(x: Any, o: Any) -> None:
    columns = lax.broadcasted_iota(I32, x.shape, 1)

    def body(i: Any, rest: Any) -> Any:
        best = lax.argmax(rest, 1, I32)
        o[:, ds(i, 1)] = lax.expand_dims(lax.reduce_max(rest, (1,)), (1,))
        chosen = lax.eq(columns, lax.broadcast_in_dim(best, x.shape, (0,)))
        return lax.select(chosen, lax.full(x.shape, -np.inf, F32), rest)

    lax.fori_loop(0, 4, body, x[...])


def _rows_of_unknown_number(x: Any, n: Any, o: Any) -> None:
    def body(carry: Any) -> Any:
        i, total = carry
        return i + 1, total + x[ds(i * 8, 8)]

    start = I32(0), lax.full((8, 256), 0, F32)
    o[...] = lax.while_loop(lambda carry: carry[0] < n[0], body, start)[1]


_TYPES = (np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.uint32, BF16,
          ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)  # fmt: skip

_CORES = TensorCoreMesh(axis_name="core", num_cores=2)
_CORE_MEMORY = {"own": VMEM((8, 128), F32), "semaphore": SemaphoreType.REGULAR}


def _on_cores(x: Any, o: Any, *, own: Any, semaphore: Any) -> None:
    core = lax.axis_index("core")
    rows = ds(8 * core, 8)
    sync_copy(x.at[rows], own)
    own[...] = own[...] * lax.convert_element_type(core + 2, F32)
    sync_copy(own, o.at[rows])


def _over_barriers(x: Any, o: Any, *, own: Any, semaphore: Any) -> None:
    core = lax.axis_index("core")
    _on_cores(x, o, own=own, semaphore=semaphore)
    core_barrier(semaphore, core_axis_name="core")
    sync_copy(o.at[ds(8 * (1 - core), 8)], own)
    core_barrier(semaphore, core_axis_name="core")
    sync_copy(own, o.at[ds(8 * core, 8)])


def _selected(i: Any, x: Any, y: Any, o: Any, semaphore: Any) -> None:
    part = select_ref(i[0], x, y).at[ds(0, 8)]
    async_copy(part, o.at[ds(8, 8)], semaphore).wait()
    sync_copy(x.at[ds(0, 8)], o.at[ds(0, 8)])


def _divided_pipeline(x: Any, o: Any) -> None:
    emit_pipeline(
        _double, grid=4, in_specs=[_ROWS], out_specs=[_ROWS], core_axis_name="core",
        dimension_semantics=("parallel",),
    )(x, o)  # fmt: skip


def _shared(x: Any, o: Any) -> None:
    """Sums of rows up to the step's, in memory that all steps share."""
    total, count = get_global(VMEM((8, 128), F32)), get_barrier_semaphore()
    semaphore_signal(count, 2)
    semaphore_wait(count, 2)

    @when(program_id(0) == 0)
    def _first() -> None:
        total[...] = lax.full((8, 128), 0, F32)

    total[...] += x[...]
    o[...] = total[...]


def _cores(body: Callable[..., None]) -> Callable[..., Any]:
    call = kernel(body, [like(16, 128)], mesh=_CORES, scratch_types=_CORE_MEMORY)

    def poisoned(x: Any) -> Any:
        with enable_poison_buffers(True):
            return call(x)

    return poisoned


_ROWS = BlockSpec((8, 128), lambda i: (i, 0))
_OUTSIDE = BlockSpec(memory_space=ANY)
_select = pallas_call(
    _selected, [like(16, 128)], in_specs=[BlockSpec(memory_space=SMEM), _OUTSIDE, _OUTSIDE],
    out_specs=[_OUTSIDE], scratch_shapes=[SemaphoreType.DMA],
)  # fmt: skip

CALLS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "prefetched": (_prefetched, (np.array([2, 0, 9, 2], I32), I32(3), array((3, 8, 128)))),
    "groups": (_group_sums, (np.array([0, 0, 1, 1, 1, 2], I32), array((6, 8, 128)))),
    "attention": (_attend, (array((2, 32, 128)), array((2, 256, 128)), array((2, 256, 128)))),
    "attention_bfloat16": (_attend, (array((2, 32, 128), BF16), array((2, 256, 128), BF16),
                                     array((2, 256, 128), BF16))),
    "random": (pallas_call(_random, [like(16, 128)], grid=(2,),
                           out_specs=[BlockSpec((8, 128), lambda i: (i, 0))]), ()),
    "largest_columns": (pallas_call(_largest_columns, [like(16, 4)]), (array((16, 256)),)),
    "unknown_number": (pallas_call(_rows_of_unknown_number, [like(8, 256)], in_specs=[_WHOLE, _AT]),
                       (_LONG, np.array([3], I32))),
    **{f"type_{np.dtype(t).name}": _of_type(t) for t in _TYPES},
    "selected_0": (_select, (np.array([0], I32), array((16, 128)), array((16, 128)))),
    "selected_1": (_select, (np.array([1], I32), array((16, 128)), array((16, 128)))),
    "divided_pipeline": (kernel(_divided_pipeline, [like(32, 128)], mesh=_CORES),
                         (array((32, 128)),)),
    "shared": (pallas_call(_shared, [like(24, 128)], grid=3, in_specs=[_ROWS], out_specs=[_ROWS]),
               (array((24, 128)),)),
    "cores": (_cores(_on_cores), (array((16, 128)),)),
    "barriers": (_cores(_over_barriers), (array((16, 128)),)),
    "batch": (vmap(call_of(GRIDS["sums"])), (array((3, 16, 384)),)),
    "batch_shared": (vmap(call_of(GRIDS["matmul"]), (0, None)),
                     (array((3, 16, 256)), array((256, 256)))),
    "batch_of_batches": (vmap(vmap(call_of(GRIDS["partial"]))), (array((2, 2, 20, 300)),)),
}  # fmt: skip
"""Functions of arrays, and their arguments."""
