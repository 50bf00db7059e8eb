"""Changes of the numbers of batch and dense dimensions."""

from __future__ import annotations

import math
import sys
import warnings
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import is_internal_code, typeof
from primax_core.extend.dimensions import is_static
from primax_numpy.declaring import compiled

from ._base import SparseEfficiencyError, SparseEfficiencyWarning
from ._coordinates import fitted, inside, mapped, masked, normal, sizes_as


class Stored(NamedTuple):
    """The parts of a sparse array."""

    data: Any
    indices: Any
    shape: tuple[int, ...]

    @property
    def n_batch(self) -> int:
        """The number of batch dimensions."""
        return typeof(self.indices).ndim - 2

    @property
    def n_sparse(self) -> int:
        """The number of sparse dimensions."""
        return int(typeof(self.indices).shape[-1])


def update_layout(
    stored: Stored, n_batch: int, n_dense: int, on_inefficient: str | None
) -> tuple[Any, Any]:
    """Data and indices for other numbers of batch and dense dimensions.

    Raises:
      SparseEfficiencyError, ValueError: see :meth:`BCOO.update_layout`.
    """
    data, indices, shape = stored
    old_batch, old_dense = stored.n_batch, len(shape) - stored.n_batch - stored.n_sparse
    if n_batch < 0 or n_dense < 0 or n_batch + n_dense > len(shape):
        raise ValueError(
            f"an array of shape {shape} has no n_batch={n_batch} batch and n_dense={n_dense} dense "
            "dimensions"
        )
    if on_inefficient not in ("error", "warn", None):
        raise ValueError(f"on_inefficient must be 'error', 'warn' or None, got {on_inefficient!r}")
    for name, old, new, sizes in (
        ("n_batch", old_batch, n_batch, shape[old_batch:n_batch]),
        ("n_dense", old_dense, n_dense, shape[len(shape) - n_dense : len(shape) - old_dense]),
    ):
        if new > old and math.prod(sizes) > 1:
            _report_inefficient(
                f"for shape {shape}, {name} {new} in place of {old}", on_inefficient
            )
    if n_dense < old_dense:
        data, indices = _less_dense(data, indices, shape=shape, n_dense=n_dense)
    if n_batch < old_batch:
        data, indices = _less_batched(data, indices, shape=shape, n_batch=n_batch)
    if n_batch > old_batch:
        data, indices = _more_batched(data, indices, shape=shape, n_batch=n_batch)
    if n_dense > old_dense:
        data, indices = _more_dense(data, indices, shape=shape, n_dense=n_dense)
    return data, indices


def _report_inefficient(what: str, on_inefficient: str | None) -> None:
    text = f"{what} stores more elements than the current layout"
    if on_inefficient == "error":
        raise SparseEfficiencyError(
            f"{text}; pass on_inefficient='warn' or None if this is intended"
        )
    if on_inefficient == "warn":
        text = f"{text}; pass on_inefficient=None if this is intended"
        warnings.warn(text, SparseEfficiencyWarning, stacklevel=_level_of_the_caller())


def _level_of_the_caller() -> int:
    """The ``stacklevel`` of the first frame outside the library, for a warning."""
    frame, level = sys._getframe(2), 2
    while frame.f_back is not None and is_internal_code(frame.f_code):
        frame, level = frame.f_back, level + 1
    return level


@compiled("shape", "n_dense")
def _less_dense(data: Any, indices: Any, *, shape: tuple[int, ...], n_dense: int) -> Any:
    n_batch, n_sparse = typeof(indices).ndim - 2, typeof(indices).shape[-1]
    sizes = shape[n_batch + n_sparse : len(shape) - n_dense]
    indices = pnp.broadcast_to(indices, shape[:n_batch] + typeof(indices).shape[n_batch:])

    def one(data: Any, indices: Any) -> tuple[Any, Any]:
        nse = typeof(indices).shape[0]
        within = _all_places(sizes, typeof(indices).dtype)
        count = typeof(within).shape[0]
        outer = pnp.repeat(indices, count, axis=0, total_repeat_length=nse * count)
        places = pnp.concatenate([outer, pnp.tile(within, (nse, 1))], axis=1)
        return data.reshape(nse * count, *typeof(data).shape[1 + len(sizes) :]), places

    return mapped(one, n_batch)(data, indices)


def _all_places(sizes: tuple[int, ...], dtype: Any) -> Any:
    """All indices of a small array, in row-major order."""
    if is_static(sizes):
        return np.indices(sizes).reshape(len(sizes), math.prod(sizes)).T.astype(dtype)
    each = [lax.broadcasted_iota(dtype, sizes, axis) for axis in range(len(sizes))]
    return pnp.stack(each, -1).reshape(math.prod(sizes), len(sizes))


@compiled("shape", "n_batch")
def _less_batched(data: Any, indices: Any, *, shape: tuple[int, ...], n_batch: int) -> Any:
    old = typeof(indices).ndim - 2
    sizes = shape[n_batch:old]

    def one(data: Any, indices: Any) -> tuple[Any, Any]:
        *_, nse, n_sparse = typeof(indices).shape
        count = math.prod(sizes)
        outer = pnp.repeat(_all_places(sizes, typeof(indices).dtype), nse, axis=0)
        places = pnp.concatenate([outer, indices.reshape(count * nse, n_sparse)], axis=1)
        data = data.reshape(count * nse, *typeof(data).shape[len(sizes) + 1 :])
        # Without sparse dimensions there is no padding; all elements are valid.
        return data, places

    return mapped(one, n_batch)(data, indices)


@compiled("shape", "n_batch")
def _more_batched(data: Any, indices: Any, *, shape: tuple[int, ...], n_batch: int) -> Any:
    old, n_sparse = typeof(indices).ndim - 2, typeof(indices).shape[-1]
    sparse, moved = shape[old : old + n_sparse], n_batch - old

    def at(data: Any, indices: Any, place: Any) -> tuple[Any, Any]:
        """The elements of one new batch element; the others become padding."""
        indices = normal(indices, sparse)
        here = pnp.all(indices[:, :moved] == place[None], axis=1) & inside(indices, sparse)
        limits = sizes_as(sparse[moved:], place.dtype)
        rest = pnp.where(here[:, None], indices[:, moved:], limits)
        return fitted(masked(data, here), rest, sparse[moved:])

    def one(data: Any, indices: Any) -> tuple[Any, Any]:
        places = _all_places(sparse[:moved], typeof(indices).dtype)
        grid = pnp.asarray(places).reshape(*sparse[:moved], moved)
        return mapped(partial(at, data, indices), moved)(grid)

    return mapped(one, old)(data, indices)


@compiled("shape", "n_dense")
def _more_dense(data: Any, indices: Any, *, shape: tuple[int, ...], n_dense: int) -> Any:
    n_batch, n_sparse = typeof(indices).ndim - 2, typeof(indices).shape[-1]
    sparse = shape[n_batch : n_batch + n_sparse]
    n_remaining = len(shape) - n_batch - n_dense
    sizes = sparse[n_remaining:]

    def one(data: Any, indices: Any) -> tuple[Any, Any]:
        indices = normal(indices, sparse)
        within = inside(indices, sparse)
        onto = lax.full((*sizes, *typeof(data).shape[1:]), 0, typeof(data).dtype)
        at = lambda x, i: onto.at[tuple(i[k] for k in range(n_remaining, n_sparse))].set(
            x, mode="drop"
        )
        return fitted(
            masked(mapped(at, 1)(data, indices), within),
            indices[:, :n_remaining],
            sparse[:n_remaining],
        )

    return mapped(one, n_batch)(data, indices)
