"""Calls with blocks of bounded slices and at positions, for the tests of Mosaic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from triton_operations import F32, I32, array, like

from primax_core import lax
from primax_kernels import BlockSpec, BoundedSlice, Indirect, ds, pallas_call, program_id
from primax_kernels.tpu import PrefetchScalarGridSpec

X = array((24, 256))
OFFSETS = np.array([0, 3, 4, 4, 24], I32)
ROWS = np.array([3, 1, 4, 0, 5, 9], I32)
SLICE = BlockSpec((BoundedSlice(8), 256), lambda i, o: (ds(o[i], o[i + 1] - o[i]), 0))
AT = BlockSpec((Indirect(3), 128), lambda i, rows: (rows[ds(i * 3, 3)], 1))
THREE = BlockSpec((None, 3, 128), lambda i, rows: (i, 0, 0))
OWN = BlockSpec((None, 8, 256), lambda i, o: (i, 0, 0))


def _doubles(*refs: Any) -> None:
    refs[-1][...] = refs[-2][...] * F32(2)


def _sums(o: Any, x: Any, out: Any) -> None:
    size = o[program_id(0) + 1] - o[program_id(0)]
    inside = lax.lt(lax.broadcasted_iota(I32, (8, 256), 0), size)
    terms = lax.select(inside, x[...], lax.full((8, 256), 0, F32))
    out[0] = lax.reduce_sum(terms, (0,))


def _added(rows: Any, x: Any, out: Any) -> None:
    """Rows of a result to which steps add."""
    out[...] = out[...] + x[...]


def _call(
    kernel: Callable[..., None], shape: tuple[int, ...], x: Any, out: Any, grid: int,
    aliased: bool = False,
) -> Callable[..., Any]:  # fmt: skip
    spec = PrefetchScalarGridSpec(1, grid=grid, in_specs=[x], out_specs=out)
    if not aliased:
        return pallas_call(kernel, [like(*shape)], grid_spec=_listed(spec))
    spec = PrefetchScalarGridSpec(1, grid=grid, in_specs=[x, out], out_specs=[out])
    fun = lambda rows, x, _, out: kernel(rows, x, out)
    return pallas_call(fun, [like(*shape)], grid_spec=spec, input_output_aliases={2: 0})


def _listed(spec: Any) -> Any:
    return PrefetchScalarGridSpec(
        1, grid=spec.grid, in_specs=spec.in_specs, out_specs=[spec.out_specs]
    )


COLUMNS = BlockSpec((8, BoundedSlice(128)), lambda i, o: (0, ds(o[i], o[i + 1] - o[i])))
EACH = BlockSpec((None, 8, 128), lambda i, o: (i, 0, 0))
COLUMNS_AT = BlockSpec((8, Indirect(3)), lambda i, at: (1, at[ds(i * 3, 3)]))
EACH_AT = BlockSpec((None, 8, 3), lambda i, at: (i, 0, 0))
BOTH = BlockSpec(
    (BoundedSlice(8), BoundedSlice(128)), lambda i, o: (ds(i, i + 2), ds(o[i], o[i + 1] - o[i]))
)
FLAT = BlockSpec((BoundedSlice(128),), lambda i, o: (ds(o[i], o[i + 1] - o[i]),))
FLAT_ROWS = BlockSpec((None, None, 128), lambda i, o: (i, 0, 0))
CUTS = np.array([0, 5, 130, 130, 256], I32)
BEYOND = np.array([200, 250, 400, 400, 410], I32)
AT_COLUMNS = np.array([3, 255, 130, 0, 128, 64], I32)

_ROW = BlockSpec((None, 1, 256), lambda i, o: (i, 0, 0))
_THREES = array((2, 3, 128))
MOVING: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "groups": (_call(_doubles, (24, 256), SLICE, SLICE, 4), (OFFSETS, X)),
    "after a slice": (_call(_doubles, (4, 8, 256), SLICE, OWN, 4), (OFFSETS, X)),
    "beyond the end": (_call(_doubles, (3, 8, 256), SLICE, OWN, 3),
                       (np.array([20, 22, 23, 30], I32), X)),
    "sums": (_call(_sums, (4, 1, 256), SLICE, _ROW, 4), (OFFSETS, X)),
    "gather": (_call(_doubles, (2, 3, 128), AT, THREE, 2), (ROWS, X)),
    "outside": (_call(_doubles, (2, 3, 128), AT, THREE, 2),
                (np.array([30, -1, 4, 0, 5, 9], I32), X)),
    "scatter": (_call(_doubles, (24, 256), THREE, AT, 2), (ROWS, _THREES)),
    "columns": (_call(_doubles, (8, 256), COLUMNS, COLUMNS, 4), (CUTS, X)),
    "after columns": (_call(_doubles, (4, 8, 128), COLUMNS, EACH, 4), (CUTS, X)),
    "columns beyond the end": (_call(_doubles, (4, 8, 128), COLUMNS, EACH, 4), (BEYOND, X)),
    "rows and columns": (_call(_doubles, (4, 8, 128), BOTH, EACH, 4), (CUTS, X)),
    "parts of a vector": (_call(_doubles, (4, 1, 128), FLAT, FLAT_ROWS, 4), (CUTS, X[0])),
    "columns at": (_call(_doubles, (2, 8, 3), COLUMNS_AT, EACH_AT, 2), (AT_COLUMNS, X)),
    "into columns at": (_call(_doubles, (24, 256), EACH_AT, COLUMNS_AT, 2),
                        (AT_COLUMNS, array((2, 8, 3)))),
    "added": (_call(_added, (24, 256), THREE, AT, 2, aliased=True), (ROWS, _THREES, X)),
}  # fmt: skip
