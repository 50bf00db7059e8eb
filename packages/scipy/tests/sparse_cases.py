"""Random sparse arrays of every layout, and their dense arrays, computed by a loop."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from hypothesis import strategies as st

from primax_scipy.experimental.sparse import BCOO
from test_support import assert_close

DTYPES = [np.float32, np.int32, np.complex64, np.bool_]
NUMBERS = DTYPES[:3]
REAL = [np.float32]


def dense_of(data: Any, indices: Any, shape: Sequence[int]) -> np.ndarray:
    """The dense array: elements added one by one, if their indices are in bounds."""
    data, indices, shape = np.asarray(data), np.asarray(indices), tuple(shape)
    n_batch = indices.ndim - 2
    nse, n_sparse = indices.shape[-2:]
    batch, sizes = shape[:n_batch], shape[n_batch : n_batch + n_sparse]
    data = np.broadcast_to(data, batch + data.shape[n_batch:])
    indices = np.broadcast_to(indices, batch + indices.shape[n_batch:])
    out = np.zeros(shape, data.dtype)
    for at in np.ndindex(*batch):
        for k in range(nse):
            place = tuple(indices[(*at, k)].tolist())
            if all(-n <= p < n for p, n in zip(place, sizes)):
                out[at + place] = out[at + place] + data[(*at, k)]
    return out


def values(rng: np.random.Generator, shape: Sequence[int], dtype: Any) -> np.ndarray:
    """Small integral numbers, some of them zero, with exact sums."""
    out = rng.integers(-3, 4, tuple(shape))
    if dtype == np.bool_:
        return out > 0
    if dtype == np.complex64:
        return (out + 1j * rng.integers(-3, 4, tuple(shape))).astype(dtype)
    return out.astype(dtype)


@dataclass(frozen=True)
class StoredArray:
    """The parts of a sparse array, and a random generator for related values."""

    data: np.ndarray
    indices: np.ndarray
    shape: tuple[int, ...]
    known: bool
    rng: np.random.Generator

    @property
    def n_batch(self) -> int:
        return self.indices.ndim - 2

    @property
    def n_sparse(self) -> int:
        return int(self.indices.shape[-1])

    @property
    def n_dense(self) -> int:
        return len(self.shape) - self.n_batch - self.n_sparse

    @property
    def kinds(self) -> tuple[range, range, range]:
        """The axes by kind: batch, sparse, dense."""
        a, b = self.n_batch, self.n_batch + self.n_sparse
        return range(a), range(a, b), range(b, len(self.shape))

    @property
    def dense(self) -> np.ndarray:
        return dense_of(self.data, self.indices, self.shape)

    @property
    def sparse(self) -> BCOO:
        known = {"indices_sorted": self.known, "unique_indices": self.known}
        return BCOO((self.data, self.indices), shape=self.shape, **known)

    def values(self, shape: Sequence[int], dtype: Any = None) -> np.ndarray:
        return values(self.rng, shape, self.data.dtype if dtype is None else dtype)

    def other(self, shape: Sequence[int], n_batch: int, n_dense: int, **kwargs: Any) -> StoredArray:
        return stored(
            self.rng, shape, n_batch, n_dense, kwargs.pop("dtype", self.data.dtype.type), **kwargs
        )

    def __repr__(self) -> str:
        return (
            f"BCOO((np.array({self.data.tolist()}, '{self.data.dtype}').reshape{self.data.shape}, "
            f"np.array({self.indices.tolist()}, 'int32').reshape{self.indices.shape}), "
            f"shape={self.shape}, known={self.known})"
        )


def stored(
    rng: np.random.Generator,
    shape: Sequence[int],
    n_batch: int,
    n_dense: int,
    dtype: Any = np.float32,
    *,
    nse: int = 3,
    known: bool = False,
    thin: bool = False,
) -> StoredArray:
    """A random sparse array.

    Args:
      known: indices are sorted and unique, with padding last; otherwise some are negative, out of
        bounds or repeated.
      thin: some batch dimensions of the stored arrays have size 1.
    """
    shape = tuple(shape)
    end = len(shape) - n_dense
    batch, sizes, dense = shape[:n_batch], shape[n_batch:end], shape[end:]
    places = math.prod(sizes)
    if known:
        nse = min(nse, places) if sizes else min(nse, 1)
    cut = lambda: tuple(1 if thin and rng.random() < 0.4 else n for n in batch)
    rows, columns = cut(), cut()
    indices = np.empty((*columns, nse, len(sizes)), np.int32)
    if known:
        for at in np.ndindex(*columns):
            count = int(rng.integers(0, nse + 1)) if sizes else nse
            chosen = np.sort(rng.permutation(places)[:count])
            indices[at] = sizes
            if count and sizes:
                indices[(*at, slice(count))] = np.stack(np.unravel_index(chosen, sizes), -1)
    else:
        for d, n in enumerate(sizes):
            indices[..., d] = rng.integers(-n, n + rng.integers(1, 3), (*columns, nse))
    return StoredArray(values(rng, (*rows, nse, *dense), dtype), indices, shape, known, rng)


@st.composite
def cases(
    draw: Callable[..., Any],
    dims: tuple[int, int] = (0, 4),
    dtypes: Sequence[Any] = DTYPES,
    n_batch: int | None = None,
    n_dense: int | None = None,
    min_size: int = 0,
) -> StoredArray:
    """Random sparse arrays of every layout."""
    ndim = draw(st.integers(*dims))
    most = 4 if ndim < 4 else 3
    sizes = st.integers(1, most) if draw(st.integers(0, 3)) else st.integers(min_size, most)
    shape = draw(st.lists(sizes, min_size=ndim, max_size=ndim))
    nb = draw(st.integers(0, ndim)) if n_batch is None else n_batch
    nd = draw(st.integers(0, ndim - nb)) if n_dense is None else n_dense
    return stored(
        np.random.default_rng(draw(st.integers(0, 2**20))),
        shape,
        nb,
        nd,
        draw(st.sampled_from(list(dtypes))),
        nse=draw(st.integers(0, 5)),
        known=draw(st.booleans()),
        thin=draw(st.booleans()),
    )


def bare(case: StoredArray) -> StoredArray:
    """The same elements, without index flags."""
    return replace(case, known=False)


def honest(x: BCOO) -> None:
    """Assert that the index flags are true for indices in bounds."""
    indices = np.asarray(x.indices)
    *batch, nse, n_sparse = indices.shape
    if not n_sparse:  # all elements have the same empty index, which is always in bounds
        return
    sizes = x.shape[len(batch) : len(batch) + n_sparse]
    for at in np.ndindex(*batch):
        rows = [tuple(indices[(*at, k)].tolist()) for k in range(nse)]
        places = [
            tuple(p % n for p, n in zip(row, sizes))
            for row in rows
            if all(-n <= p < n for p, n in zip(row, sizes))
        ]
        if x.indices_sorted:
            assert places == sorted(places), f"indices_sorted is not true of {rows}"
        if x.unique_indices:
            assert len(places) == len(set(places)), f"unique_indices is not true of {rows}"


close = partial(assert_close, rtol=1e-5, check_dtype=True)


def check(
    x: Any,
    expected: Any,
    n_batch: int | None = None,
    n_dense: int | None = None,
    tolerance: float = 1e-5,
) -> None:
    """Assert the dense values of a sparse result, its layout, and its index flags."""
    assert isinstance(x, BCOO), type(x)
    expected = np.asarray(expected)
    assert (x.shape, x.dtype) == (expected.shape, expected.dtype)
    assert (x.ndim, x.size) == (expected.ndim, expected.size)
    close(dense_of(x.data, x.indices, x.shape), expected, rtol=tolerance)
    assert n_batch is None or x.n_batch == n_batch
    assert n_dense is None or x.n_dense == n_dense
    assert x.n_batch + x.n_sparse + x.n_dense == x.ndim
    assert x.nse == x.data.shape[x.n_batch] == x.indices.shape[-2]
    honest(x)


def largest(program: Any) -> int:
    """The number of elements of the largest array in a jaxpr, and in expansions of its primitives
    of sparse formats."""
    from primax_core.extend import expanded, walk

    sizes = [0]
    for eqn in walk(program):
        sizes.extend(math.prod(v.aval.shape) for v in eqn.outvars)
        if eqn.primitive.name.startswith(("bcoo_", "bcsr_", "coo_", "csr_")):
            sizes.append(largest(expanded(eqn.primitive, [v.aval for v in eqn.invars], eqn.params)))
    return max(sizes)
