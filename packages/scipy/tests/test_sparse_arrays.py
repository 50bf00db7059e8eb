"""Sparse arrays: creation, layout, structural functions, methods, errors."""

from __future__ import annotations

import math
import pickle
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from sparse_cases import NUMBERS, REAL, StoredArray, cases, check, close, dense_of, stored, values

import primax_core as px
import primax_numpy as pnp
import primax_numpy.random as random
import primax_scipy.experimental.sparse as sparse
from primax_core.errors import ConcretizationTypeError
from primax_core.extend import UnsupportedRule
from primax_core.test_util import check_grads
from primax_scipy.experimental.sparse import BCOO, SparseEfficiencyError, SparseEfficiencyWarning

few = settings(max_examples=12)
I32 = np.int32


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def matrix(
    shape: tuple[int, ...] = (2, 3), n_batch: int = 0, n_dense: int = 0, **kw: Any
) -> StoredArray:
    return stored(rng(len(shape)), shape, n_batch, n_dense, np.float32, **kw)


def like(x: Any, case: StoredArray, expected: Any) -> None:
    """A result with the layout of the operand."""
    check(x, expected, case.n_batch, case.n_dense)


def permuted(case: StoredArray) -> tuple[int, ...]:
    """A random permutation of the axes within each kind."""
    return tuple(int(d) for kind in case.kinds for d in case.rng.permutation(list(kind)))


# Creation


@few
@given(cases())
def test_todense(case: StoredArray) -> None:
    mat = case.sparse
    like(mat, case, case.dense)
    for actual in (mat.todense(), sparse.bcoo_todense(mat), sparse.todense(mat)):
        close(actual, case.dense)


@few
@given(cases())
def test_fromdense(case: StoredArray) -> None:
    dense, layout = case.dense, {"n_batch": case.n_batch, "n_dense": case.n_dense}
    actual = BCOO.fromdense(dense, **layout)
    like(actual, case, dense)
    assert actual.indices_sorted and actual.unique_indices
    occupied = np.any(dense != 0, axis=tuple(case.kinds[2]))
    most = np.max(np.sum(occupied, axis=tuple(case.kinds[1])), initial=0)
    assert actual.nse == most
    like(sparse.bcoo_fromdense(dense, nse=int(most) + 2, **layout), case, dense)


def test_fromdense_stores_the_first_elements() -> None:
    dense = np.float32([[0, 1, 2], [3, 0, 4]])
    actual = BCOO.fromdense(dense, nse=2, index_dtype=np.int16)
    check(actual, np.float32([[0, 1, 2], [0, 0, 0]]), 0, 0)
    assert actual.indices.dtype == np.int16
    jitted = px.jit(lambda x: BCOO.fromdense(x, nse=5))(dense)
    check(jitted, dense, 0, 0)
    assert jitted.nse == 5


@pytest.mark.parametrize(
    "make",
    [
        lambda: BCOO.fromdense(np.float32([1, 2]), nse=3, n_batch=1),
        lambda: BCOO.fromdense(np.float32([1, 2]), nse=3, n_dense=1),
        lambda: sparse.empty((2,), nse=3, n_batch=1),
        lambda: sparse.empty((2,), nse=3, n_dense=1),
        lambda: sparse.bcoo_sum_duplicates(
            BCOO((np.ones((3, 2), np.float32), np.zeros((3, 0), I32)), shape=(2,)), nse=3
        ),
    ],
)
def test_elements_without_sparse_dimensions_share_an_index(make: Any) -> None:
    """An array without sparse dimensions has no padding indices: additional elements are zeros,
    and extraction takes its element once."""
    ones = np.ones(2, np.float32)
    check(sparse.bcoo_extract(make(), ones), ones)


@pytest.mark.parametrize("n_dense", [0, 1])
def test_padding_of_sparse_dimensions_without_elements(n_dense: int) -> None:
    """All elements of arrays of size 0 are padding."""
    shape = (0, 2)
    mat = sparse.empty(shape, nse=1, n_dense=n_dense)
    check(mat + mat, np.zeros(shape, np.float32))
    close(mat @ np.ones(2, np.float32), np.zeros(0, np.float32))
    close(np.ones((3, 0), np.float32) @ mat, np.zeros((3, 2), np.float32))
    for full in (np.ones(shape, np.float32), np.ones(2, np.float32)):
        check(mat * full, np.zeros(shape, np.float32))
        check(mat / full, np.zeros(shape, np.float32))
    check(sparse.bcoo_extract(mat, np.ones(shape, np.float32)), np.zeros(shape, np.float32))


@few
@given(cases(dims=(1, 3), n_batch=0, n_dense=0))
def test_from_scipy_sparse(case: StoredArray) -> None:
    shape = (case.shape + (2,))[:2]
    dense = case.values(shape)
    for form in ("coo", "csr", "csc"):
        theirs = scipy.sparse.coo_matrix(dense).asformat(form)
        check(BCOO.from_scipy_sparse(theirs), dense, 0, 0)
    actual = BCOO.from_scipy_sparse(scipy.sparse.coo_array(dense), index_dtype=np.int16)
    assert actual.indices.dtype == np.int16


@pytest.mark.parametrize("dtype", [None, np.int32, np.complex64, np.bool_])
@pytest.mark.parametrize(
    ("n", "m", "k"),
    [(3, None, 0), (3, 4, 1), (4, 2, -1), (2, 3, 5), (2, 3, -4), (0, 2, 0), (3, 0, 1)],
)
def test_eye(n: int, m: int | None, k: int, dtype: Any) -> None:
    expected = np.eye(n, m, k, np.float32 if dtype is None else dtype)
    for n_batch, n_dense in ((0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (0, 2)):
        actual = sparse.eye(n, m, k, dtype, n_batch=n_batch, n_dense=n_dense)
        check(actual, expected, n_batch, n_dense)


@pytest.mark.parametrize("layout", [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (2, 0)])
def test_empty(layout: tuple[int, int]) -> None:
    n_batch, n_dense = layout
    for nse in (0, 2) if sum(layout) < 2 else (0, 1):
        actual = sparse.empty((2, 3), np.int32, n_batch=n_batch, n_dense=n_dense, nse=nse)
        check(actual, np.zeros((2, 3), np.int32), n_batch, n_dense)
        assert actual.nse == nse
    assert sparse.empty((2, 3)).dtype == np.float32
    assert sparse.empty((2, 3), index_dtype="int16").indices.dtype == np.int16


@pytest.mark.parametrize(
    ("shape", "n_batch", "n_dense", "nse", "count"),
    [
        ((4, 5), 0, 0, 0.2, 4),
        ((4, 5), 0, 0, 20, 20),
        ((4, 5), 0, 1, 0.5, 2),
        ((2, 4, 5), 1, 0, 3, 3),
        ((2, 3, 4, 5), 2, 1, 2, 2),
        ((3, 2), 2, 0, 1, 1),
        ((2, 0), 0, 0, 0.2, 0),
        ((0, 3), 1, 0, 2, 2),
        ((), 0, 0, 1, 1),
        ((4,), 0, 0, 0, 0),
    ],
)
def test_random(shape: Any, n_batch: int, n_dense: int, nse: float, count: int) -> None:
    key = random.key(1)
    for unique, ordered in ((True, False), (True, True), (False, True)):
        actual = sparse.random_bcoo(
            key, shape, nse=nse, n_batch=n_batch, n_dense=n_dense, dtype=np.float32,
            unique_indices=unique, sorted_indices=ordered,
        )  # fmt: skip
        check(actual, dense_of(actual.data, actual.indices, shape), n_batch, n_dense)
        assert (actual.nse, actual.unique_indices, actual.indices_sorted) == (
            count,
            unique,
            ordered,
        )
        sizes = shape[n_batch : len(shape) - n_dense]
        assert np.all((np.asarray(actual.indices) >= 0) & (np.asarray(actual.indices) < sizes))
    drawn = sparse.random_bcoo(key, (5,), nse=3, generator=random.normal, dtype=np.complex64)
    assert drawn.dtype == np.complex64
    drawn = sparse.random_bcoo(key, (5,), nse=3, minval=4, maxval=5, indices_dtype=np.int16)
    assert np.all(np.asarray(drawn.data) >= 4) and drawn.indices.dtype == np.int16


# Layout


@few
@given(cases())
def test_sort_indices(case: StoredArray) -> None:
    mat = case.sparse.sort_indices()
    like(mat, case, case.dense)
    assert mat.indices_sorted and mat.unique_indices == case.known
    assert mat.nse == case.sparse.nse
    like(sparse.bcoo_sort_indices(case.sparse), case, case.dense)


def test_sorted_indices_are_nonnegative() -> None:
    mat = BCOO((np.float32([1, 2, 3]), I32([[0], [-1], [1]])), shape=(3,)).sort_indices()
    check(mat, np.float32([1, 3, 2]))
    assert np.asarray(mat.data).tolist() == [1, 3, 2]


@few
@given(cases())
def test_sum_duplicates(case: StoredArray) -> None:
    mat = case.sparse
    actual = mat.sum_duplicates()
    like(actual, case, case.dense)
    assert actual.indices_sorted and actual.unique_indices
    assert actual.nse <= max(mat.nse, 0)
    with_zeros = sparse.bcoo_sum_duplicates(mat)
    like(with_zeros, case, case.dense)
    assert actual.nse <= with_zeros.nse <= mat.nse
    jitted = px.jit(lambda m: m.sum_duplicates(nse=mat.nse))(mat)
    like(jitted, case, case.dense)


def test_sum_duplicates_counts_unique_indices() -> None:
    data, indices = np.float32([1, 0, 2, 4, -4, 9]), I32([[2], [1], [-2], [0], [0], [7]])
    mat = BCOO((data, indices), shape=(4,))
    actual = mat.sum_duplicates()
    assert np.asarray(actual.indices).ravel().tolist() == [0, 2]
    assert np.asarray(actual.data).tolist() == [0, 3]
    assert sparse.bcoo_sum_duplicates(mat).nse == 3
    few = mat.sum_duplicates(nse=1)
    assert (few.nse, np.asarray(few.indices).tolist()) == (1, [[0]])
    many = mat.sum_duplicates(nse=5)
    assert np.asarray(many.indices).ravel().tolist() == [0, 2, 4, 4, 4]
    assert np.asarray(many.data).tolist() == [0, 3, 0, 0, 0]


@settings(max_examples=20)
@given(cases())
def test_update_layout(case: StoredArray) -> None:
    ndim = len(case.shape)
    n_batch = int(case.rng.integers(0, ndim + 1))
    n_dense = int(case.rng.integers(0, ndim - n_batch + 1))
    how = {"n_batch": n_batch, "n_dense": n_dense, "on_inefficient": None}
    check(case.sparse.update_layout(**how), case.dense, n_batch, n_dense)
    if n_batch <= case.n_batch and n_dense <= case.n_dense:
        actual = sparse.bcoo_update_layout(case.sparse, n_batch=n_batch, n_dense=n_dense)
        check(actual, case.dense, n_batch, n_dense)


def test_update_layout_in_parts() -> None:
    mat = matrix((2, 3, 4), 1, 1).sparse
    assert mat.update_layout() is mat
    check(mat.update_layout(n_dense=0), matrix((2, 3, 4), 1, 1).dense, 1, 0)
    check(mat.update_layout(n_batch=0), matrix((2, 3, 4), 1, 1).dense, 0, 1)
    one = matrix((1, 1, 3)).sparse
    check(one.update_layout(n_batch=2), one.todense(), 2, 0)
    with pytest.raises(SparseEfficiencyError, match="n_batch 3 in place of 1 stores more"):
        mat.update_layout(n_batch=3, n_dense=0)
    with pytest.raises(SparseEfficiencyError, match="n_dense 2 in place of 1 stores more"):
        sparse.bcoo_update_layout(mat, n_dense=2)
    with pytest.warns(SparseEfficiencyWarning, match="n_dense 2 in place of 1") as caught:
        mat.update_layout(n_dense=2, on_inefficient="warn")
    assert caught[0].filename == __file__
    with pytest.warns(SparseEfficiencyWarning, match="pass on_inefficient=None") as caught:
        sparse.bcoo_update_layout(mat, n_dense=2, on_inefficient="warn")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mat.update_layout(n_dense=2, on_inefficient=None)


@few
@given(cases())
def test_extract(case: StoredArray) -> None:
    other = case.values(case.shape)
    actual = sparse.bcoo_extract(case.sparse, other)
    ones = dense_of(np.ones(case.data.shape, np.bool_), case.indices, case.shape)
    like(actual, case, other * ones)
    taken = sparse.bcoo_extract(case.sparse, other, assume_unique=True)
    batch = case.shape[: case.n_batch]
    expected = np.broadcast_to(case.indices, (*batch, *case.indices.shape[len(batch) :]))
    assert np.array_equal(taken.indices, expected)
    counts = dense_of(np.ones(case.data.shape, I32), case.indices, case.shape)
    if case.data.dtype != np.bool_:
        like(taken, case, (other * counts).astype(other.dtype))


# Structure


@few
@given(cases())
def test_transpose(case: StoredArray) -> None:
    axes = permuted(case)
    actual = sparse.bcoo_transpose(case.sparse, permutation=axes)
    like(actual, case, case.dense.transpose(axes))
    assert actual.unique_indices == case.known
    like(case.sparse.transpose(axes), case, case.dense.transpose(axes))


def test_transpose_keeps_sorted_indices_if_possible() -> None:
    case = stored(rng(), (2, 3, 4, 5), 2, 1, known=True, nse=3)
    assert case.sparse.transpose((1, 0, 2, 3)).indices_sorted
    case = matrix((3, 4, 2), known=True)
    assert not case.sparse.transpose((1, 0, 2)).indices_sorted
    check(case.sparse.T, case.dense.T)


@settings(max_examples=20)
@given(cases(dims=(0, 3)))
def test_broadcast_in_dim(case: StoredArray) -> None:
    """New axes before, between and after; axes of size 1 are broadcast."""
    shape: list[int] = []
    to = []
    for n in case.shape:
        if case.rng.random() < 0.3:
            shape.append(int(case.rng.integers(0, 3)))
        to.append(len(shape))
        shape.append(int(case.rng.integers(1, 4)) if n == 1 else n)
    if case.rng.random() < 0.3:
        shape.append(2)
    actual = sparse.bcoo_broadcast_in_dim(case.sparse, shape=shape, broadcast_dimensions=to)
    spread = case.dense.reshape([1] * 0 + [
        case.shape[to.index(d)] if d in to else 1 for d in range(len(shape))
    ])  # fmt: skip
    check(actual, np.broadcast_to(spread, shape))
    if case.n_sparse:
        assert actual.n_batch == to[case.n_batch]
        first_dense = to[case.kinds[2][0]] if case.n_dense else len(shape)
        assert actual.n_dense == len(shape) - first_dense


@settings(max_examples=20)
@given(cases(dims=(1, 4)))
def test_concatenate(case: StoredArray) -> None:
    axis = int(case.rng.integers(0, len(case.shape)))
    operands, layouts = [case], [(case.n_batch, case.n_dense)]
    for size in case.rng.integers(0, 3, 1 + int(case.rng.integers(0, 2))):
        shape = list(case.shape)
        shape[axis] = int(size)
        n_batch = int(case.rng.integers(0, len(shape) + 1))
        n_dense = int(case.rng.integers(0, len(shape) - n_batch + 1))
        layouts.append((n_batch, n_dense))
        thin, nse = bool(size % 2), int(case.rng.integers(0, 4))
        operands.append(case.other(shape, n_batch, n_dense, thin=thin, nse=nse))
    expected = np.concatenate([x.dense for x in operands], axis)
    actual = sparse.bcoo_concatenate([x.sparse for x in operands], dimension=axis)
    check(actual, expected, *(min(n) for n in zip(*layouts)))


def split_at_random(rng: np.random.Generator, sizes: list[int]) -> list[int]:
    """A shape of the same size: factors split and merged, and axes of size 1 inserted."""
    total = math.prod(sizes)
    out = []
    while total > 1:
        factor = int(rng.choice([n for n in range(2, total + 1) if total % n == 0]))
        out.append(factor)
        total //= factor
    if total == 0:
        return [0, *out]
    if rng.random() < 0.5:
        out.insert(int(rng.integers(0, len(out) + 1)), 1)
    return out


@settings(max_examples=20)
@given(cases(min_size=1))
def test_reshape(case: StoredArray) -> None:
    new = [split_at_random(case.rng, [case.shape[d] for d in kind]) for kind in case.kinds]
    new = [part if kind else [] for part, kind in zip(new, case.kinds)]
    shape = [n for part in new for n in part]
    actual = sparse.bcoo_reshape(case.sparse, new_sizes=shape)
    check(actual, case.dense.reshape(shape))
    axes = permuted(case)
    actual = sparse.bcoo_reshape(case.sparse, new_sizes=shape, dimensions=axes)
    check(actual, case.dense.transpose(axes).reshape(shape))


def test_reshape_to_a_scalar_drops_padding() -> None:
    actual = BCOO((np.float32([1, 5]), I32([[0], [9]])), shape=(1,)).reshape(())
    check(actual, np.float32(1))


@pytest.mark.parametrize(
    ("shape", "n_batch", "n_dense", "new", "layout"),
    [
        ((2, 3, 4), 1, 1, (2, 3, 2, 2), (1, 2)),
        ((2, 3, 4), 1, 1, (2, 1, 3, 4), (2, 1)),
        ((2, 3, 4), 2, 0, (6, 4), (1, 0)),
        ((2, 3, 4), 2, 0, (3, 2, 2, 2), (2, 0)),
        ((6, 4), 0, 0, (2, 2, 6), (0, 0)),
        ((0, 3), 0, 0, (3, 0, 2), (0, 0)),
        ((2, 0), 1, 0, (2, 0, 3), (1, 0)),
        ((3, 2, 0), 0, 1, (6, 0), (0, 1)),
        ((1, 1), 1, 0, (1,), None),
        ((1, 1), 0, 0, (), (0, 0)),
        ((), 0, 0, (1, 1), None),
        ((5, 7), 0, 0, (35,), (0, 0)),
    ],
)
def test_reshape_of_each_kind(
    shape: Any, n_batch: int, n_dense: int, new: Any, layout: Any
) -> None:
    case = stored(rng(3), shape, n_batch, n_dense, nse=4)
    actual = case.sparse.reshape(new)
    check(actual, case.dense.reshape(new), *(layout or ()))


@few
@given(cases())
def test_squeeze(case: StoredArray) -> None:
    shape = [1 if case.rng.random() < 0.5 else n for n in case.shape]
    case = case.other(shape, case.n_batch, case.n_dense, nse=2, thin=True)
    ones = [d for d, n in enumerate(shape) if n == 1 and case.rng.random() < 0.7]
    actual = sparse.bcoo_squeeze(case.sparse, dimensions=ones)
    batch, _, dense = (sum(d not in ones for d in kind) for kind in case.kinds)
    check(actual, np.squeeze(case.dense, tuple(ones)), batch, dense)


@settings(max_examples=20)
@given(cases(dtypes=NUMBERS))
def test_reduce_sum(case: StoredArray) -> None:
    axes = [d for d in range(len(case.shape)) if case.rng.random() < 0.5]
    actual = sparse.bcoo_reduce_sum(case.sparse, axes=axes)
    batch, _, dense = (sum(d not in axes for d in kind) for kind in case.kinds)
    check(actual, np.sum(case.dense, tuple(axes), dtype=case.data.dtype), batch, dense)


@settings(max_examples=20)
@given(cases())
def test_slice(case: StoredArray) -> None:
    start = [int(case.rng.integers(0, n + 1)) for n in case.shape]
    limit = [int(case.rng.integers(a, n + 1)) for a, n in zip(start, case.shape)]
    steps = [int(case.rng.integers(1, 4)) for _ in case.shape]
    actual = sparse.bcoo_slice(case.sparse, start_indices=start, limit_indices=limit, strides=steps)
    like(actual, case, case.dense[tuple(map(slice, start, limit, steps))])


@settings(max_examples=20)
@given(cases())
def test_dynamic_slice(case: StoredArray) -> None:
    sizes = [int(case.rng.integers(0, n + 1)) for n in case.shape]
    start = [int(case.rng.integers(-3, n + 2)) for n in case.shape]
    wrapped = [a + n if a < 0 else a for a, n in zip(start, case.shape)]
    clipped = [np.clip(a, 0, n - k) for a, n, k in zip(wrapped, case.shape, sizes)]
    expected = case.dense[tuple(slice(a, a + k) for a, k in zip(clipped, sizes))]
    like(sparse.bcoo_dynamic_slice(case.sparse, start, sizes), case, expected)


@pytest.mark.parametrize("layout", [(0, 0), (1, 0), (0, 1)])
@pytest.mark.parametrize("start", [-5, -2, 2, 4])
def test_indices_out_of_bounds(start: int, layout: tuple[int, int]) -> None:
    """Negative indices count from the end once, and are clamped, along axes of every kind."""
    dense = np.float32([1, 2, 3])
    mat = BCOO.fromdense(dense, n_batch=layout[0], n_dense=layout[1])
    of = lambda x: px.lax.dynamic_slice(x, (start,), (1,))
    check(sparse.sparsify(of)(mat), of(dense))
    check(sparse.bcoo_dynamic_slice(mat, (start,), (1,)), of(dense))
    of = lambda x: pnp.asarray(x).at[np.array([start])].get(mode="clip")
    check(sparse.sparsify(of)(mat), of(dense))


@few
@given(cases())
def test_rev(case: StoredArray) -> None:
    axes = [d for d in range(len(case.shape)) if case.rng.random() < 0.5]
    like(sparse.bcoo_rev(case.sparse, axes), case, np.flip(case.dense, tuple(axes)))


@settings(max_examples=8)
@given(cases(dims=(1, 3), min_size=1))
def test_gather(case: StoredArray) -> None:
    """Slices of one axis, each at its own index, which is clamped."""
    axis, ndim = int(case.rng.integers(0, len(case.shape))), len(case.shape)
    at = case.rng.integers(-2, case.shape[axis] + 2, 3).astype(I32)
    dims = px.lax.GatherDimensionNumbers(
        offset_dims=tuple(range(1, ndim)), collapsed_slice_dims=(axis,), start_index_map=(axis,)
    )
    sizes = [1 if d == axis else n for d, n in enumerate(case.shape)]
    actual = sparse.bcoo_gather(case.sparse, at[:, None], dims, sizes)
    rows = np.clip(at, 0, case.shape[axis] - 1)
    check(actual, np.moveaxis(np.take(case.dense, rows, axis), axis, 0))
    n_batch = case.n_batch - (axis in case.kinds[0])
    assert (actual.n_batch, actual.n_dense) == (1 + n_batch, case.n_dense - (axis in case.kinds[2]))


# Methods


ITEMS: list[Any] = [
    0, -1, slice(1, None), slice(None, None, 2), slice(None, None, -1), (slice(None), 1),
    (..., -1), None, (None, 1), (0, 1), (slice(1), slice(1, 3)), (slice(0, 0),), ..., (),
]  # fmt: skip


@pytest.mark.parametrize("item", ITEMS, ids=str)
def test_getitem(item: Any) -> None:
    for layout in ((0, 0), (1, 0), (0, 1)):
        case = stored(rng(2), (2, 3), *layout, nse=6)
        check(case.sparse[item], case.dense[item])


def test_getitem_at_dynamic_indices() -> None:
    case = stored(rng(2), (2, 3), 1, 0, nse=4)
    check(px.jit(lambda m, i: m[i])(case.sparse, 1), case.dense[1])
    rows = np.array([1, 0, 1])
    check(case.sparse[rows], case.dense[rows])
    check(case.sparse[rows, np.array([0, 2, 1])], case.dense[rows, [0, 2, 1]])


@pytest.mark.parametrize("layout", [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_methods(layout: tuple[int, int]) -> None:
    case = stored(rng(4), (2, 3), *layout, np.float32, nse=4)
    mat, dense = case.sparse, case.dense
    assert (mat.shape, mat.ndim, mat.size, len(mat), mat.dtype) == ((2, 3), 2, 6, 2, np.float32)
    check(-mat, -dense, *layout)
    assert +mat is mat
    check(abs(mat), abs(dense), *layout)
    for power in (1, 2, 3):
        check(mat**power, dense**power, *layout)
    for row, expected in zip(mat, dense, strict=True):
        check(row, expected)
    check(mat.sum(0), dense.sum(0))
    check(mat.sum((1,), keepdims=True), dense.sum(1, keepdims=True))
    close(mat.sum(), dense.sum())
    assert not isinstance(mat.sum(), BCOO)
    check(mat.reshape(2, 3), dense)
    check(mat.reshape((2, -1)), dense)
    check(mat / 2, dense / 2, *layout)
    assert mat.block_until_ready() is mat
    with pytest.raises(TypeError, match="unhashable"):
        hash(mat)
    with pytest.raises(TypeError, match=r"len\(\) of a sparse array without dimensions"):
        len(mat.reshape(6)[0] if layout == (0, 0) else sparse.empty(()))
    check(mat.like(mat.data, mat.indices), dense)


def test_repr() -> None:
    assert repr(matrix().sparse) == "BCOO(float32[2, 3], nse=3)"
    text = "BCOO(float32[2, 3, 4], nse=3, n_batch=1, n_dense=1)"
    assert repr(matrix((2, 3, 4), 1, 1).sparse) == text
    seen = []
    px.jit(lambda m: seen.append(repr(m)) or m.data)(matrix().sparse)
    assert seen[0].endswith("[BCOO(float32[2, 3], nse=3)]") and "Tracer" in seen[0]
    tree = px.tree_util.tree_structure(matrix().sparse)
    assert "data='d'" in repr(px.tree_util.tree_unflatten(tree, ("d", "i")))


@pytest.mark.parametrize("dtype", [np.float32, np.complex64, np.int32, np.bool_])
def test_astype(dtype: Any) -> None:
    case = matrix(known=True)
    check(case.sparse.astype(dtype), case.dense.astype(dtype))
    assert case.sparse.astype(dtype).unique_indices


@pytest.mark.parametrize(("dtype", "values"), [(np.int32, (0.5, 0.5)), (np.bool_, (1.0, -1.0))])
def test_astype_converts_sums_of_duplicates(dtype: Any, values: Any) -> None:
    """Elements with equal indices are summed: the sum is converted."""
    mat = BCOO((np.float32(values), I32([[1], [1]])), shape=(2,))
    check(mat.astype(dtype), np.float32([0, sum(values)]).astype(dtype))


def test_pytrees() -> None:
    case = stored(rng(1), (2, 3, 4), 1, 1, known=True)
    mat = case.sparse
    leaves, tree = px.tree_util.tree_flatten(mat)
    assert [x.shape for x in leaves] == [case.data.shape, case.indices.shape]
    again = px.tree_util.tree_unflatten(tree, leaves)
    check(again, case.dense, 1, 1)
    assert again.indices_sorted and again.unique_indices
    assert px.tree_util.tree_structure(mat) == px.tree_util.tree_structure(again)
    assert px.tree_util.tree_structure(mat) != px.tree_util.tree_structure(
        stored(rng(1), (2, 3, 5), 1, 1, known=True).sparse
    )
    shapes = px.tree_util.tree_map(lambda x: x.shape, mat)
    assert (shapes.data, shapes.indices) == (case.data.shape, case.indices.shape)
    nothing = px.tree_util.tree_map(lambda x: None, mat)
    assert nothing.data is None and nothing.shape == mat.shape
    types = px.eval_shape(lambda m: m.T, matrix().sparse)
    assert (types.shape, types.data.shape, types.nse, types.dtype) == ((3, 2), (3,), 3, np.float32)


def test_pickle() -> None:
    case = matrix(known=True)
    check(pickle.loads(pickle.dumps(case.sparse)), case.dense)


# Derivatives


SUMMED: dict[str, Any] = {
    "todense": lambda m: m.todense(),
    "sum_duplicates": lambda m: m.sum_duplicates(nse=2).data,
    "reduce_sum": lambda m: sparse.bcoo_reduce_sum(m, axes=(1,)).todense(),
}


@pytest.mark.parametrize("layout", [(0, 0), (1, 1)])
@pytest.mark.parametrize("name", SUMMED)
def test_derivatives_with_respect_to_data(name: str, layout: tuple[int, int]) -> None:
    case = stored(rng(7), (2, 3, 2), *layout, np.float32, nse=3)
    check_grads(lambda d: SUMMED[name](case.sparse.like(d)) ** 2, (case.data,), 2)


@pytest.mark.parametrize("layout", [(0, 0), (1, 1)])
def test_derivatives_with_respect_to_dense_arrays(layout: tuple[int, int]) -> None:
    case = stored(rng(7), (2, 3, 2), *layout, np.float32, nse=3)
    how = {"nse": 3, "n_batch": layout[0], "n_dense": layout[1]}
    check_grads(lambda x: sparse.bcoo_extract(case.sparse, x).data ** 2, (case.dense + 1,), 2)
    check_grads(lambda x: BCOO.fromdense(x, **how).data, (case.dense + 1,), 1)


STRUCTURE: dict[str, Any] = {
    "rev": lambda m: sparse.bcoo_rev(m, (0, 1)),
    "slice": lambda m: m[:, 1:],
    "dynamic slice": lambda m: sparse.bcoo_dynamic_slice(m, (0, 1), (2, 2)),
    "reshape": lambda m: m.reshape(3, 2),
    "broadcast": lambda m: sparse.bcoo_broadcast_in_dim(
        m, shape=(2, 2, 3), broadcast_dimensions=(0, 2)
    ),
    "concatenate": lambda m: sparse.bcoo_concatenate([m, m], dimension=1),
    "layout": lambda m: m.update_layout(n_batch=1, on_inefficient=None),
    "square": lambda m: m**2,
}


@pytest.mark.parametrize("name", STRUCTURE)
def test_derivatives_of_structure(name: str) -> None:
    case = matrix(nse=4)
    check_grads(lambda d: STRUCTURE[name](case.sparse.like(d)).todense(), (case.data,), 1)


def test_padding_has_no_derivative() -> None:
    mat = BCOO((np.float32([1, 2, 3]), I32([[0], [9], [-3]])), shape=(2,))
    for f in (lambda m: m.todense(), lambda m: m.sum(), lambda m: m @ np.ones(2, np.float32)):
        actual = px.grad(lambda d, f=f: pnp.sum(f(mat.like(d))))(mat.data)
        assert np.asarray(actual).tolist() == [1, 0, 0]


# Errors

mat = matrix().sparse
batched = matrix((2, 3, 4), 1, 1).sparse
d3, i3 = np.ones(3, np.float32), np.zeros((3, 2), I32)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: BCOO((d3, i3 + 0.5), shape=(2, 3)), TypeError, "must be integers, got float32"),
        (lambda: BCOO((d3, i3[0]), shape=(2, 3)), ValueError, r"nse, n_sparse\), got \(2,\)"),
        (lambda: BCOO((d3, i3), shape=(2,)), ValueError, "0 batch and 2 sparse dim.* more than"),
        (lambda: BCOO((d3[:2], i3), shape=(2, 3)), ValueError, r"require data of shape \(3,\)"),
        (lambda: BCOO((d3, i3), shape=(2, 3, 4)), ValueError, r"require data of shape \(3, 4\)"),
        (lambda: BCOO((d3[None], i3[None]), shape=(2, 3)), ValueError, "1 batch and 2 sparse"),
        (
            lambda: BCOO((np.ones((3, 1)), np.zeros((2, 1, 1), I32)), shape=(2, 3)),
            ValueError,
            r"batch dimensions of data \(3, 1\) and indices \(2, 1, 1\) do not match",
        ),
        (lambda: BCOO.fromdense(d3, n_batch=2), ValueError, "no n_batch=2 batch and n_dense=0"),
        (lambda: BCOO.fromdense(d3, n_dense=-1), ValueError, "no n_batch=0 batch and n_dense=-1"),
        (
            lambda: px.jit(lambda x: BCOO.fromdense(x).data)(d3),
            ConcretizationTypeError,
            "pass it as `nse`",
        ),
        (
            lambda: px.jit(lambda m: m.sum_duplicates())(mat),
            ValueError,
            "sum_duplicates: pass nse, the number of elements to store",
        ),
        (
            lambda: BCOO.from_scipy_sparse(scipy.sparse.eye(3), n_batch=1),
            NotImplementedError,
            r"n_dense or n_batch: convert with update_layout\(\)",
        ),
        (
            lambda: px.vmap(lambda m: m.n_batch)(mat),
            ValueError,
            "mapped or sliced along a dimension that is not a batch dimension",
        ),
        (lambda: px.vmap(lambda m: m.T)(mat), ValueError, "not a batch dimension: convert it with"),
        (lambda: px.vmap(lambda m: m.todense())(mat), ValueError, "batch dimension"),
        (lambda: px.vmap(lambda m: m * 2)(mat), ValueError, "batch dimension"),
        (lambda: px.vmap(lambda m: -m)(mat), ValueError, "batch"),
        (lambda: mat.transpose((0, 0)), TypeError, "isn't a permutation"),
        (
            lambda: sparse.bcoo_transpose(mat, permutation=(0, 0)),
            TypeError,
            r"isn't a permutation of operand dimensions, got \(0, 0\)",
        ),
        (
            lambda: batched.transpose((1, 0, 2)),
            NotImplementedError,
            r"permutation \(1, 0, 2\) moves other axes to the 1 batch axes",
        ),
        (lambda: batched.transpose((0, 2, 1)), NotImplementedError, "to the 1 sparse axes"),
        (lambda: batched.T, NotImplementedError, r"with update_layout\(\) first"),
        (
            lambda: sparse.bcoo_broadcast_in_dim(mat, shape=(3, 2), broadcast_dimensions=(1, 0)),
            ValueError,
            r"broadcast_dimensions=\(1, 0\) must map the 2 axes .* in ascending order",
        ),
        (
            lambda: sparse.bcoo_broadcast_in_dim(mat, shape=(2, 4), broadcast_dimensions=(0, 1)),
            ValueError,
            r"shape \(2, 3\) does not broadcast to \(2, 4\)",
        ),
        (lambda: sparse.bcoo_concatenate([], dimension=0), ValueError, "at least one operand"),
        (
            lambda: sparse.bcoo_concatenate([mat, batched], dimension=0),
            TypeError,
            r"shapes that differ in dimensions other .* \(2, 3\), \(2, 3, 4\)",
        ),
        (
            lambda: sparse.bcoo_concatenate([mat, matrix((2, 4)).sparse], dimension=0),
            TypeError,
            "Cannot concatenate arrays .* dimension 0 of shapes",
        ),
        (lambda: sparse.bcoo_concatenate([mat, mat], dimension=2), ValueError, "2"),
        (lambda: mat.reshape(5), (TypeError, ValueError), "reshape"),
        (
            lambda: sparse.bcoo_reshape(mat, new_sizes=(5,)),
            ValueError,
            r"shape \(5,\) and shape \(2, 3\) have different numbers of elements",
        ),
        (
            lambda: sparse.bcoo_reshape(batched, new_sizes=(6, 4)),
            ValueError,
            "would mix the n_batch=1 batch, 1 sparse and n_dense=1 dense",
        ),
        (lambda: batched.reshape(2, 12), ValueError, r"with update_layout\(\) first"),
        (
            lambda: sparse.empty((2**20, 2**15)).reshape(2**35),
            ValueError,
            "indices of 34359738368 elements, .* do not fit 32 bits",
        ),
        (
            lambda: sparse.bcoo_squeeze(mat, dimensions=(0,)),
            ValueError,
            r"size not equal to one, got shape=\(2, 3\) and dimensions=\(0,\)",
        ),
        (lambda: sparse.bcoo_squeeze(mat, dimensions=(2,)), ValueError, "axis 2 is out of bounds"),
        (lambda: sparse.bcoo_reduce_sum(mat, axes=(0, 0)), ValueError, "duplicate"),
        (lambda: sparse.bcoo_rev(mat, (3,)), ValueError, "axis 3 is out of bounds"),
        (
            lambda: sparse.bcoo_slice(mat, start_indices=(0,), limit_indices=(1, 1)),
            ValueError,
            "1 start indices, 2 limit indices and 2 strides",
        ),
        (
            lambda: sparse.bcoo_slice(mat, start_indices=(0, 2), limit_indices=(1, 1)),
            ValueError,
            r"invalid indices. Got start_indices=\(0, 2\), limit_indices=\(1, 1\)",
        ),
        (
            lambda: sparse.bcoo_slice(
                mat, start_indices=(0, 0), limit_indices=(1, 1), strides=(0, 1)
            ),
            ValueError,
            r"strides=\(0, 1\)",
        ),
        (
            lambda: sparse.bcoo_dynamic_slice(mat, (0,), (1, 1)),
            ValueError,
            "1 start indices and 2 sizes",
        ),
        (
            lambda: sparse.bcoo_dynamic_slice(mat, (0, 0), (3, 1)),
            ValueError,
            r"sizes \(3, 1\) are not within shape \(2, 3\)",
        ),
        (
            lambda: sparse.bcoo_gather(
                mat,
                np.zeros((2, 1), I32),
                px.lax.GatherDimensionNumbers((1,), (), (1,), (0,), (0,)),
                (1, 1),
            ),
            NotImplementedError,
            "bcoo_gather of operand_batching_dims",
        ),
        (lambda: mat.update_layout(n_batch=3), ValueError, "no n_batch=3 batch and n_dense=0"),
        (
            lambda: mat.update_layout(on_inefficient="panic"),
            ValueError,
            "'error', 'warn' or None, got 'panic'",
        ),
        (lambda: sparse.bcoo_extract(mat, d3), ValueError, r"sparr.shape=\(2, 3\) arr.shape=\(3,"),
        (lambda: sparse.empty((2,), n_batch=2), ValueError, "no n_batch=2 batch and n_dense=0"),
        (lambda: sparse.eye(3, n_batch=2, n_dense=1), ValueError, "no n_batch=2 batch"),
        (lambda: sparse.empty((2,), sparse_format="csr"), ValueError, "not a matrix with two"),
        (lambda: sparse.eye(2, sparse_format="dok"), ValueError, "'dok' is unknown; use"),
        (
            lambda: sparse.random_bcoo(random.key(0), (2, 2), nse=5),
            ValueError,
            "nse=5 elements with unique indices do not fit 4 positions",
        ),
        (lambda: sparse.random_bcoo(random.key(0), (2, 2), nse=-1), ValueError, "nse=-1 is neg"),
        (lambda: mat @ np.ones(2), TypeError, r"matmul got incompatible shapes .*\(2, 3\)"),
        (lambda: mat * np.ones(2), ValueError, "ncompatible shapes for broadcasting"),
        (lambda: mat + "a", TypeError, r"unsupported operand type\(s\) for \+: 'BCOO' and 'str'"),
        (lambda: sparse.JAXSparse((d3,), shape=(3,)), TypeError, "abstract"),
    ],
)  # fmt: skip
def test_errors(call: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        call()


FUNCTIONS: dict[str, Any] = {
    "bcoo_todense": sparse.bcoo_todense,
    "bcoo_sort_indices": sparse.bcoo_sort_indices,
    "bcoo_sum_duplicates": sparse.bcoo_sum_duplicates,
    "bcoo_update_layout": sparse.bcoo_update_layout,
    "bcoo_extract": lambda x: sparse.bcoo_extract(x, x),
    "bcoo_transpose": lambda x: sparse.bcoo_transpose(x, permutation=(0,)),
    "bcoo_broadcast_in_dim": lambda x: sparse.bcoo_broadcast_in_dim(
        x, shape=(3,), broadcast_dimensions=(0,)
    ),
    "bcoo_concatenate": lambda x: sparse.bcoo_concatenate([x], dimension=0),
    "bcoo_reshape": lambda x: sparse.bcoo_reshape(x, new_sizes=(3,)),
    "bcoo_squeeze": lambda x: sparse.bcoo_squeeze(x, dimensions=()),
    "bcoo_reduce_sum": lambda x: sparse.bcoo_reduce_sum(x, axes=()),
    "bcoo_slice": lambda x: sparse.bcoo_slice(x, start_indices=(0,), limit_indices=(1,)),
    "bcoo_dynamic_slice": lambda x: sparse.bcoo_dynamic_slice(x, (0,), (1,)),
    "bcoo_rev": lambda x: sparse.bcoo_rev(x, ()),
    "bcoo_gather": lambda x: sparse.bcoo_gather(x, I32([[0]]), None, (1,)),
    "bcoo_multiply_dense": lambda x: sparse.bcoo_multiply_dense(x, x),
    "bcoo_multiply_sparse": lambda x: sparse.bcoo_multiply_sparse(x, x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_wrong_types(name: str) -> None:
    with pytest.raises(TypeError, match=rf"{name} expects BCOO arrays, got .*ndarray.*fromdense"):
        FUNCTIONS[name](d3)


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m == m,
        lambda m: m != 0,
        lambda m: m < 1,
        lambda m: m <= m,
        lambda m: m > 1,
        lambda m: m >= 0,
        lambda m: m + 1,
        lambda m: 1 + m,
        lambda m: m - d3,
        lambda m: 1 / m,
        lambda m: m / m,
        lambda m: m**0,
        lambda m: m**-1,
        lambda m: m**2.5,
        lambda m: 2**m,
        lambda m: m**m,
    ],
)
def test_operators_with_dense_results(call: Any) -> None:
    with pytest.raises(NotImplementedError, match=r"nonzero where.*sparse.todense\(\)"):
        call(mat)


def test_missing_rules_are_not_implemented_errors() -> None:
    assert issubclass(UnsupportedRule, NotImplementedError)


def test_numpy_leaves_operators_to_sparse_arrays() -> None:
    case, full = matrix(), values(rng(9), (2, 3), np.float32)
    check(full * case.sparse, full * case.dense)
    close(full + case.sparse, full + case.dense)
    close(full - case.sparse, full - case.dense)
    close(full.T @ case.sparse, full.T @ case.dense)
    check(np.float32(2) * case.sparse, 2 * case.dense)


@pytest.mark.parametrize("dtype", REAL)
def test_device_put_moves_stored_arrays(dtype: Any) -> None:
    actual = px.device_put(matrix().sparse)
    check(actual, matrix().dense)
    assert isinstance(actual.data, px.Array) and isinstance(actual.indices, px.Array)


def test_sizes_that_are_arrays_become_numbers() -> None:
    size = pnp.max(np.array([0, 2])) + 1
    mat = BCOO((pnp.ones(2), np.array([[0, 1], [1, 2]])), shape=(2, size))
    assert mat.shape == (2, 3) and isinstance(mat.shape[1], int)
    close(sparse.bcoo_reduce_sum(mat, axes=(0,)).todense(), np.array([0.0, 1.0, 1.0], np.float32))
