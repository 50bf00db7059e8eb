"""Kernels whose programs are kept as text.

``python golden_kernels.py`` writes the texts again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from triton_operations import BF16, F32, Case, array, call_of as call_of, kernel_of, like

from primax_core import lax
from primax_kernels import BlockSpec, ds, num_programs, program_id, when
from primax_kernels._triton.program import Program, emit

FOLDER = Path(__file__).parent / "golden"


def _add(x: Any, y: Any, o: Any) -> None:
    o[...] = x[...] + y[...]


def _column(x: Any) -> Any:
    return lax.broadcast_in_dim(x, (x.shape[0], 1), (0,))


def _softmax(x: Any, o: Any) -> None:
    row = x[...]
    e = lax.exp(row - _column(lax.reduce_max(row, (1,))))
    o[...] = e / _column(lax.reduce_sum(e, (1,)))


def _product(x: Any, y: Any, contracted: Any = ((1,), (0,))) -> Any:
    return lax.dot_general(x, y, (contracted, ((), ())), preferred_element_type=F32)


def _matmul(x: Any, y: Any, o: Any) -> None:
    def body(k: Any, total: Any) -> Any:
        return total + _product(x[:, ds(k * 32, 32)], y[ds(k * 32, 32), :])

    o[...] = lax.fori_loop(0, x.shape[1] // 32, body, lax.full(o.shape, 0, F32))


def _matmul_over_grid(x: Any, y: Any, o: Any, total: Any) -> None:
    @when(program_id(2) == 0)
    def _start() -> None:
        total[...] = lax.full(total.shape, 0, F32)

    total[...] += _product(x[...], y[...])

    @when(program_id(2) == num_programs(2) - 1)
    def _finish() -> None:
        o[...] = lax.convert_element_type(total[...], o.dtype)


def _attention(q: Any, k: Any, v: Any, o: Any) -> None:
    block, rows = 32, q[...]

    def body(j: Any, state: Any) -> Any:
        largest, total, out = state
        scores = _product(rows, k[ds(j * block, block), :], ((1,), (1,))) * F32(0.25)
        above = lax.max(largest, lax.reduce_max(scores, (1,)))
        weights = lax.exp(scores - _column(above))
        scale = lax.exp(largest - above)
        values = _product(lax.convert_element_type(weights, v.dtype), v[ds(j * block, block), :])
        return above, scale * total + lax.reduce_sum(weights, (1,)), _column(scale) * out + values

    n = rows.shape[0]
    start = (lax.full((n,), -np.inf, F32), lax.full((n,), 0, F32), lax.full(rows.shape, 0, F32))
    _, total, out = lax.fori_loop(0, k.shape[0] // block, body, start)
    o[...] = lax.convert_element_type(out / _column(total), o.dtype)


_LINE = BlockSpec((128,), lambda i: (i,))
_ROWS = BlockSpec((4, 50), lambda i: (i, 0))
_QUERIES = BlockSpec((None, 32, 16), lambda h, i: (h, i, 0))
_KEYS = BlockSpec((None, 64, 16), lambda h, i: (h, 0, 0))

GOLDEN: dict[str, Case] = {
    "add": Case(_add, like(512), array((512,)), array((512,), seed=1), grid=(4,),
                ins=[_LINE, _LINE], outs=_LINE),
    "add_partial": Case(_add, like(500), array((500,)), array((500,), seed=1), grid=(4,),
                        ins=[_LINE, _LINE], outs=_LINE),
    "softmax": Case(_softmax, like(10, 50), array((10, 50)), grid=(3,), ins=[_ROWS], outs=_ROWS),
    "matmul": Case(_matmul, like(64, 64), array((64, 128)), array((128, 64)), grid=(2, 2),
                   ins=[BlockSpec((32, 128), lambda i, j: (i, 0)),
                        BlockSpec((128, 32), lambda i, j: (0, j))],
                   outs=BlockSpec((32, 32), lambda i, j: (i, j)), tolerance=1e-5),
    "matmul_over_grid": Case(
        _matmul_over_grid, like(64, 64, dtype=BF16), array((64, 128), BF16),
        array((128, 64), BF16), grid=(2, 2, 4),
        ins=[BlockSpec((32, 32), lambda i, j, k: (i, k)),
             BlockSpec((32, 32), lambda i, j, k: (k, j))],
        outs=BlockSpec((32, 32), lambda i, j, k: (i, j)), scratch=[like(32, 32)], tolerance=2e-2,
    ),
    "attention": Case(_attention, like(2, 64, 16, dtype=BF16), *(array((2, 64, 16), BF16, s)
                      for s in range(3)), grid=(2, 2), ins=[_QUERIES, _KEYS, _KEYS],
                      outs=_QUERIES, tolerance=2e-2),
}  # fmt: skip


def program_of(case: Case) -> Program:
    """The program of a case."""
    return emit(kernel_of(call_of(case), *case.args))


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, case in GOLDEN.items():
        (FOLDER / f"{name}.ttir").write_text(program_of(case).text)
