"""Products of sparse arrays: elementwise, contractions, sampled products, operators, derivatives,
and the sizes of intermediate arrays."""

from __future__ import annotations

import math
import string
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from sparse_cases import (
    NUMBERS,
    StoredArray,
    cases,
    check,
    close,
    dense_of,
    largest,
    stored,
    values,
)

import primax_core as px
import primax_numpy as pnp
import primax_scipy.experimental.sparse as sparse
from primax_core.test_util import check_grads
from primax_scipy.experimental.sparse import BCOO

some = settings(max_examples=20)
I32 = np.int32


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def matrix(
    shape: tuple[int, ...] = (2, 3), n_batch: int = 0, n_dense: int = 0, **kw: Any
) -> StoredArray:
    kw = {"dtype": np.float32, "nse": 4, **kw}
    return stored(rng(len(shape)), shape, n_batch, n_dense, **kw)


def layout(rng: np.random.Generator, ndim: int) -> tuple[int, int]:
    n_batch = int(rng.integers(0, ndim + 1))
    return n_batch, int(rng.integers(0, ndim - n_batch + 1))


# Elementwise


@some
@given(cases())
def test_multiply_dense(case: StoredArray) -> None:
    """Axes of the other operand may have size 1, and leading axes may be missing."""
    shape = [1 if case.rng.random() < 0.3 else n for n in case.shape]
    shape = shape[int(case.rng.integers(0, len(shape) + 1)) :]
    other = case.values(shape)
    data = sparse.bcoo_multiply_dense(case.sparse, other)
    known = {"indices_sorted": case.known, "unique_indices": case.known}
    actual = BCOO((data, case.indices), shape=case.shape, **known)
    check(actual, case.dense * other, case.n_batch, case.n_dense)


@some
@given(cases())
def test_multiply_sparse(case: StoredArray) -> None:
    ones = case.rng.random(len(case.shape)) < 0.3
    shapes = [list(case.shape), list(case.shape)]
    for d in np.flatnonzero(ones):
        shapes[int(case.rng.integers(0, 2))][d] = 1
    first = case.other(shapes[0], case.n_batch, case.n_dense, nse=4, thin=True)
    n_batch, n_dense = layout(case.rng, len(case.shape))
    second = case.other(shapes[1], n_batch, n_dense, nse=5, known=case.known)
    actual = sparse.bcoo_multiply_sparse(first.sparse, second.sparse)
    expected_layout = min(n_batch, case.n_batch), min(n_dense, case.n_dense)
    check(actual, first.dense * second.dense, *expected_layout)


DOT = (((0,), (0,)), ((), ()))
MIXED: dict[str, Any] = {
    "*": lambda m, v: (m * v).todense(),
    "* sparse": lambda m, v: sparse.bcoo_multiply_sparse(m, BCOO.fromdense(v)).todense(),
    "sparse *": lambda m, v: sparse.bcoo_multiply_sparse(BCOO.fromdense(v), m).todense(),
    "@": lambda m, v: m @ v,
    "dot_general": lambda m, v: sparse.bcoo_dot_general(m, v, dimension_numbers=DOT),
    "dot_general sparse": lambda m, v: sparse.bcoo_dot_general(
        BCOO.fromdense(v), m, dimension_numbers=DOT
    ).todense(),
}


@pytest.mark.parametrize("other", [np.float32, np.complex64])
@pytest.mark.parametrize("dtype", [np.int32, np.bool_, np.float32])
@pytest.mark.parametrize("name", MIXED)
def test_promotion_after_summing_duplicates(name: str, dtype: Any, other: Any) -> None:
    """Duplicates are summed in their own dtype before promotion."""
    data, indices = np.array([1, 1, 0]).astype(dtype), I32([[1], [1], [0]])
    v = np.array([2, 3]).astype(other)
    expected = dense_of(data, indices, (2,)) * v
    expected = expected if "*" in name else expected.sum()
    wide = pnp.promote_types(dtype, other)
    close(MIXED[name](BCOO((data, indices), shape=(2,)), v), expected.astype(wide))


def test_padding_is_ignored() -> None:
    """Also for nonfinite elements of the other operand, and padding that equals its indices."""
    mat = BCOO((np.float32([1, 2, 3]), I32([[0], [5], [-9]])), shape=(2,))
    v = np.float32([2, np.inf])
    check(mat * v, np.float32([2, 0]))
    check(mat / np.float32([2, 0]), np.float32([0.5, 0]))
    other = BCOO((np.float32([4, np.nan, np.inf]), I32([[-2], [5], [2]])), shape=(2,))
    check(mat * other, np.float32([4, 0]))
    check(other * mat, np.float32([4, 0]))
    close(mat @ np.float32([2, 1]), np.float32(2))
    close(other @ np.float32([2, 1]), np.float32(8))
    check(mat @ other, np.float32(4))
    actual = BCOO((np.float32([np.nan, 1]), I32([[7], [1]])), shape=(2,)) @ np.ones((2, 2), "f")
    close(actual, np.ones(2, np.float32))


@pytest.mark.parametrize("shape", [(0, 2), (2, 0)])
def test_products_of_empty_batches(shape: tuple[int, int]) -> None:
    mat = sparse.empty(shape, n_batch=1, nse=1)
    for other in ((1, 1), (1, shape[1]), (shape[0], 1), (1,), ()):
        check(mat * np.ones(other, np.float32), np.zeros(shape, np.float32), 1, 0)
        check(mat / np.ones(other, np.float32), np.zeros(shape, np.float32), 1, 0)
    check(mat * mat, np.zeros(shape, np.float32), 1, 0)


# Contractions


def dims_of(case: StoredArray, most_free: int = 2) -> tuple[Any, tuple[int, ...]]:
    """Random dimension numbers, and the shape of the other operand."""
    kinds = case.rng.integers(0, 3, len(case.shape))
    axes = case.rng.permutation(len(case.shape))
    batch = [int(d) for d in axes if kinds[d] == 0]
    contracted = [int(d) for d in axes if kinds[d] == 1]
    free = int(case.rng.integers(0, most_free + 1))
    order = case.rng.permutation(len(batch) + len(contracted) + free)
    sizes = [case.shape[d] for d in (*batch, *contracted)] + [2, 3][:free]
    shape, at = [0] * len(order), [int(d) for d in order]
    for d, n in zip(at, sizes):
        shape[d] = n
    theirs = at[: len(batch)], at[len(batch) : len(batch) + len(contracted)]
    dims = ((tuple(contracted), tuple(theirs[1])), (tuple(batch), tuple(theirs[0])))
    return dims, tuple(shape)


def swapped(dims: Any) -> Any:
    (lc, rc), (lb, rb) = dims
    return (rc, lc), (rb, lb)


def product(lhs: np.ndarray, rhs: np.ndarray, dims: Any) -> np.ndarray:
    """The product by ``numpy.einsum``."""
    (lc, rc), (lb, rb) = dims
    left = list(string.ascii_lowercase[: lhs.ndim])
    right = list(string.ascii_uppercase[: rhs.ndim])
    for a, b in zip((*lc, *lb), (*rc, *rb)):
        right[b] = left[a]
    out = [left[d] for d in lb]
    out += [x for d, x in enumerate(left) if d not in (*lc, *lb)]
    out += [x for d, x in enumerate(right) if d not in (*rc, *rb)]
    dense_product = np.einsum(f"{''.join(left)},{''.join(right)}->{''.join(out)}", lhs, rhs)
    return np.asarray(dense_product, lhs.dtype)


@settings(max_examples=25)
@given(cases(dtypes=NUMBERS))
def test_dot_general_with_a_dense_array(case: StoredArray) -> None:
    dims, shape = dims_of(case)
    other = case.values(shape)
    actual = sparse.bcoo_dot_general(case.sparse, other, dimension_numbers=dims)
    assert isinstance(actual, px.Array)
    close(actual, product(case.dense, other, dims))
    if case.rng.random() < 0.5:
        actual = sparse.bcoo_dot_general(other, case.sparse, dimension_numbers=swapped(dims))
        close(actual, product(other, case.dense, swapped(dims)))


@some
@given(cases(dims=(0, 3), dtypes=NUMBERS))
def test_dot_general_of_sparse_arrays(case: StoredArray) -> None:
    dims, shape = dims_of(case)
    other = case.other(shape, *layout(case.rng, len(shape)), nse=3, thin=True)
    actual = sparse.bcoo_dot_general(case.sparse, other.sparse, dimension_numbers=dims)
    expected = product(case.dense, other.dense, dims)
    n_batch = actual.n_batch
    check(actual, expected, None, 0)
    assert n_batch == 0 or n_batch in range(len(dims[1][0]), case.n_batch + 1)
    assert actual.nse <= max(math.prod(expected.shape[n_batch:]), 1)


@pytest.mark.parametrize("result_dtype", [None, np.float32, np.complex64])
def test_dot_general_of_other_types(result_dtype: Any) -> None:
    case, v = matrix(dtype=np.int32), np.array([1, 2, 3], np.int32)
    dims = (((1,), (0,)), ((), ()))
    expected = (case.dense @ v).astype(result_dtype or np.int32)
    how = {
        "dimension_numbers": dims,
        "preferred_element_type": result_dtype,
        "precision": "highest",
    }
    close(sparse.bcoo_dot_general(case.sparse, v, **how), expected)
    check(sparse.bcoo_dot_general(case.sparse, BCOO.fromdense(v), **how), expected)
    close(sparse.bcoo_dot_general(case.dense, v, **how), expected)


@some
@given(cases(dims=(0, 3), dtypes=NUMBERS))
def test_dot_general_sampled(case: StoredArray) -> None:
    dims, shape = dims_of(case, most_free=1)
    lhs, rhs = case.values(case.shape), case.values(shape)
    expected = product(lhs, rhs, dims)
    places = case.other(expected.shape, *layout(case.rng, expected.ndim), nse=3)
    actual = sparse.bcoo_dot_general_sampled(lhs, rhs, places.indices, dimension_numbers=dims)
    assert actual.shape == places.data.shape
    ones = np.ones_like(places.data)
    taken = dense_of(ones, places.indices, expected.shape) * expected
    check(BCOO((actual, places.indices), shape=expected.shape), taken)


# Operators


def operand(shape: tuple[int, ...], seed: int = 5) -> np.ndarray:
    return values(rng(seed), shape, np.float32)


@pytest.mark.parametrize(
    ("shape", "n_batch", "n_dense", "other"),
    [
        ((2, 3), 0, 0, (3,)),
        ((2, 3), 0, 0, (3, 4)),
        ((2, 3), 1, 0, (3, 4)),
        ((2, 3), 0, 1, (3, 4)),
        ((2, 3), 1, 1, (3,)),
        ((3,), 0, 0, (3,)),
        ((3,), 0, 0, (3, 2)),
        ((2, 2, 3), 1, 0, (3,)),
        ((2, 2, 3), 1, 0, (2, 3, 4)),
        ((2, 2, 3), 1, 0, (1, 3, 4)),
        ((2, 3), 0, 0, (2, 3, 4)),
        ((2, 2, 3), 2, 0, (3, 2)),
    ],
)
def test_matmul(shape: Any, n_batch: int, n_dense: int, other: Any) -> None:
    case, v = matrix(shape, n_batch, n_dense), operand(other)
    close(case.sparse @ v, case.dense @ v)
    if len(shape) == len(other) == 2:
        flipped = matrix(shape[::-1], n_batch, n_dense)
        close(v.T @ flipped.sparse, v.T @ flipped.dense)
    sparse_v = BCOO.fromdense(v)
    check(case.sparse @ sparse_v, case.dense @ v)


@pytest.mark.parametrize(
    ("shape", "other"),
    [
        ((2, 3), (2, 3)),
        ((2, 3), ()),
        ((2, 3), (3,)),
        ((2, 3), (2, 1)),
        ((3,), (2, 3)),
        ((1, 3), (2, 1)),
    ],
)
@pytest.mark.parametrize("n_batch", [0, 1])
def test_products_and_quotients(shape: Any, other: Any, n_batch: int) -> None:
    """Smaller dense arrays broadcast to the sparse one; the sparse one broadcasts to larger
    ones."""
    case, v = matrix(shape, n_batch), operand(other) + 5
    check(case.sparse * v, case.dense * v)
    check(v * case.sparse, v * case.dense)
    check(case.sparse / v, case.dense / v)
    second = BCOO.fromdense(v)
    check(case.sparse * second, case.dense * v)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (((2, 3), 0, 0), ((2, 3), 0, 0)),
        (((2, 3), 1, 0), ((2, 3), 0, 1)),
        (((2, 3), 1, 1), ((2, 3), 2, 0)),
        (((2, 3), 0, 0), ((3,), 0, 0)),
        (((2, 1), 0, 0), ((3,), 0, 0)),
        (((2, 2, 3), 1, 1), ((1, 3), 0, 1)),
    ],
)
def test_sums_of_sparse_arrays(first: Any, second: Any) -> None:
    a, b = (matrix(*what, nse=3 + k) for k, what in enumerate((first, second)))
    check(a.sparse + b.sparse, a.dense + b.dense)
    check(a.sparse - b.sparse, a.dense - b.dense)
    check(b.sparse - a.sparse, b.dense - a.dense)


@pytest.mark.parametrize("n_batch", [0, 1])
def test_sums_with_arrays(n_batch: int) -> None:
    case, v = matrix((2, 3), n_batch), operand((2, 3))
    for actual, expected in (
        (case.sparse + v, case.dense + v),
        (v + case.sparse, case.dense + v),
        (case.sparse - v, case.dense - v),
        (v - case.sparse, v - case.dense),
    ):
        assert isinstance(actual, px.Array)
        close(actual, expected)
    close(matrix((3,)).sparse + v, matrix((3,)).dense + v)


def test_numbers() -> None:
    case = matrix(dtype=np.int32)
    for actual, expected in (
        (2 * case.sparse, 2 * case.dense),
        (case.sparse * True, case.dense),
        (case.sparse * 2.5, (case.dense * 2.5).astype(np.float32)),
        (case.sparse / 2, (case.dense / 2).astype(np.float32)),
        (case.sparse * 1j, (case.dense * 1j).astype(np.complex64)),
    ):
        check(actual, expected, 0, 0)


def test_index_flags_of_products() -> None:
    case = matrix((3, 4), known=True)
    for actual in (2 * case.sparse, case.sparse * operand((3, 4)), case.sparse * case.sparse):
        assert actual.indices_sorted and actual.unique_indices
        check(actual, dense_of(actual.data, actual.indices, (3, 4)))
    check(case.sparse + case.sparse, 2 * case.dense)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda m: sparse.bcoo_multiply_dense(m, operand((4, 2, 3))),
            ValueError,
            r"shape \(2, 3\) does not broadcast implicitly to match \(4, 2, 3\)",
        ),
        (lambda m: sparse.bcoo_multiply_dense(m, operand((2,))), ValueError, "ncompatible shapes"),
        (
            lambda m: sparse.bcoo_multiply_sparse(m, matrix((2, 4)).sparse),
            TypeError,
            r"mul got incompatible shapes for broadcasting: \(2, 3\), \(2, 4\)",
        ),
        (
            lambda m: sparse.bcoo_multiply_sparse(m, matrix((2, 3, 1)).sparse),
            TypeError,
            "mul got incompatible shapes",
        ),
        (
            lambda m: sparse.bcoo_dot_general(
                m, operand((2,)), dimension_numbers=(((1,), (0,)), ((), ()))
            ),
            TypeError,
            r"contracting dimensions to have the same shape, got \(3,\) and \(2,\)",
        ),
        (
            lambda m: sparse.bcoo_dot_general(
                m, matrix((4, 3)).sparse, dimension_numbers=(((1,), (1,)), ((0,), (0,)))
            ),
            TypeError,
            r"batch dimensions to have the same shape, got \(2,\) and \(4,\)",
        ),
        (
            lambda m: sparse.bcoo_dot_general_sampled(
                operand((2, 3)), operand((2,)), m.indices,
                dimension_numbers=(((1,), (0,)), ((), ())),
            ),
            TypeError,
            "contracting dimensions",
        ),
    ],
)  # fmt: skip
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call(matrix().sparse)


# Derivatives

LAYOUTS = [((3, 2), 0, 0), ((2, 3, 2), 1, 1)]


@pytest.mark.parametrize("what", LAYOUTS)
def test_derivatives_of_elementwise_products(what: Any) -> None:
    case = matrix(*what, nse=2)
    v = operand(case.shape) + 1
    check_grads(lambda d, v: sparse.bcoo_multiply_dense(case.sparse.like(d), v), (case.data, v), 2)
    other = case.other(case.shape, *what[1:], nse=2)
    of = lambda d, e: sparse.bcoo_multiply_sparse(case.sparse.like(d), other.sparse.like(e)).data
    check_grads(of, (case.data, other.data), 2)


@pytest.mark.parametrize("what", LAYOUTS)
def test_derivatives_of_contractions(what: Any) -> None:
    case = matrix(*what, nse=2)
    v = operand((2, 2)) + 1
    dims = (((len(case.shape) - 1,), (0,)), ((), ()))
    of = lambda d, v: sparse.bcoo_dot_general(case.sparse.like(d), v, dimension_numbers=dims)
    check_grads(of, (case.data, v), 2)
    of = lambda d, v: sparse.bcoo_dot_general(
        v, case.sparse.like(d), dimension_numbers=swapped(dims)
    )
    check_grads(of, (case.data, v), 1)


def test_derivatives_of_products_of_sparse_arrays() -> None:
    case, other = matrix((3, 2), nse=3), matrix((2, 3), nse=3)
    of = lambda d, e: (case.sparse.like(d) @ other.sparse.like(e)).todense()
    check_grads(of, (case.data, other.data), 2)


def test_derivatives_of_sampled_products() -> None:
    dims = (((1,), (0,)), ((), ()))
    indices = I32([[0, 1], [1, 1], [5, 0]])
    of = lambda a, b: sparse.bcoo_dot_general_sampled(a, b, indices, dimension_numbers=dims)
    check_grads(of, (operand((2, 3)), operand((3, 2))), 2)


def test_complex_derivatives() -> None:
    case, v = matrix((2, 3), dtype=np.complex64), values(rng(3), (3,), np.complex64)
    check_grads(lambda d, v: case.sparse.like(d) @ v, (case.data, v), 1)
    actual = px.grad(lambda d: pnp.abs(pnp.sum(case.sparse.like(d) @ v)) ** 2)(case.data)
    wide = px.grad(lambda m: pnp.abs(pnp.sum(m @ v)) ** 2)(case.dense)
    taken = sparse.bcoo_extract(case.sparse, wide, assume_unique=True)
    close(actual, np.asarray(taken.data), rtol=1e-4)


# Sizes of intermediate arrays

N = 100_000
BIG: dict[str, Any] = {
    "*": lambda m, v: (m * v).data,
    "/": lambda m, v: (m / v).data,
    "@": lambda m, v: m @ v,
    "@ from the left": lambda m, v: v @ m,
    "@ sparse": lambda m, v: (m @ m).data,
    "transpose": lambda m, v: (m.T.data, m.T.indices),
    "slice": lambda m, v: (m[5:70_000:3, 10:].data, m[5:70_000:3, 10:].indices),
    "row": lambda m, v: m[17].indices,
    "computed row": lambda m, v: m[v[0].astype(I32)].indices,
    "reverse": lambda m, v: m[::-1].indices,
    "reduce_sum": lambda m, v: m.sum(0).indices,
    "sum": lambda m, v: m.sum(),
    "reshape": lambda m, v: m.reshape(50_000, 2, 1_000, 100).indices,
    "concatenate": lambda m, v: sparse.bcoo_concatenate([m, m], dimension=1).indices,
    "+": lambda m, v: (m + m).indices,
    "-": lambda m, v: (m - m.T).indices,
    "multiply_sparse": lambda m, v: sparse.bcoo_multiply_sparse(m, m.T).data,
    "sum_duplicates": lambda m, v: m.sum_duplicates(nse=10).data,
    "sort_indices": lambda m, v: m.sort_indices().data,
    "square": lambda m, v: (m**2).data,
    "broadcast": lambda m, v: (
        sparse.bcoo_broadcast_in_dim(m, shape=(3, N, N), broadcast_dimensions=(1, 2)).indices
    ),
    "grad": lambda m, v: sparse.grad(lambda m, v: pnp.sum((m @ v) ** 2), argnums=(0, 1))(m, v)[1],
    "grad of *": lambda m, v: sparse.grad(lambda m: pnp.sum((m * m).data))(m).data,
    "sparsify": lambda m, v: sparse.sparsify(lambda m, v: pnp.sin(m.T * 2) @ v)(m, v),
}


@pytest.mark.parametrize("layout", [(0, 0), (0, 1), (1, 0)])
def test_products_in_the_preferred_element_type(layout: tuple[int, int]) -> None:
    a, b = np.full((2, 3), 100, np.int8), np.full((3, 2), 100, np.int8)
    how: Any = {"dimension_numbers": (((1,), (0,)), ((), ())), "preferred_element_type": I32}
    mat = BCOO.fromdense(a, n_batch=layout[0], n_dense=layout[1])
    for other in (b, BCOO.fromdense(b)):
        actual = sparse.todense(sparse.bcoo_dot_general(mat, other, **how))
        close(actual, np.full((2, 2), 30000, I32))


@pytest.mark.parametrize("name", BIG)
def test_no_dense_intermediates(name: str) -> None:
    """Jaxprs for ten elements of a matrix of 10**10 elements."""
    data, indices = np.ones(10, np.float32), np.zeros((10, 2), I32)
    of = lambda d, i, v: BIG[name](BCOO((d, i), shape=(N, N)), v)
    assert 0 < largest(px.make_jaxpr(of)(data, indices, np.ones(N, np.float32))) <= N


FULL_FREE = ("transpose", "slice", "reshape", "concatenate", "+", "-", "multiply_sparse", "sum")


@pytest.mark.parametrize("name", FULL_FREE)
def test_no_intermediates_of_the_size_of_a_row(name: str) -> None:
    data, indices = np.ones(10, np.float32), np.zeros((10, 2), I32)
    of = lambda d, i: BIG[name](BCOO((d, i), shape=(N, N)), None)
    assert 0 < largest(px.make_jaxpr(of)(data, indices)) < 1000


def test_sampled_products_compute_only_samples() -> None:
    dims = (((1,), (0,)), ((), ()))
    of = lambda a, b, i: sparse.bcoo_dot_general_sampled(a, b, i, dimension_numbers=dims)
    tall = np.ones((N, 2), np.float32)
    assert largest(px.make_jaxpr(of)(tall, tall.T, np.zeros((10, 2), I32))) <= 2 * N
