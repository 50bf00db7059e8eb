"""Compressed and coordinate formats: BCSR, COO, CSR, CSC, their functions and primitives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from sparse_cases import close, values

import primax_core as px
import primax_numpy as pnp
import primax_scipy.experimental.sparse as sparse
from primax_core import lax
from primax_core.extend import known_primitives, walk
from primax_core.test_util import check_grads
from primax_scipy.experimental.sparse import BCOO, BCSR, COO, CSC, CSR, sparsify

FORMATS = {"bcsr": BCSR, "coo": COO, "csr": CSR, "csc": CSC}
MATRICES = {name: FORMATS[name] for name in ("coo", "csr", "csc")}
every_format = pytest.mark.parametrize("name", FORMATS)
every_matrix = pytest.mark.parametrize("name", MATRICES)
I32 = np.int32


def dense(*shape: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return values(rng, shape, np.float32) * (rng.random(shape) < 0.6)


def parts(name: str, mat: np.ndarray) -> tuple[Any, Any, Any]:
    """The arrays of SciPy's matrix."""
    theirs = scipy.sparse.coo_matrix(mat).asformat("csr" if name == "bcsr" else name)
    if name == "coo":
        return theirs.data, theirs.row, theirs.col
    return theirs.data, theirs.indices, theirs.indptr


@every_format
def test_fromdense_stores_what_scipy_stores(name: str) -> None:
    mat = dense(4, 5)
    x = FORMATS[name].fromdense(mat)
    assert repr(x) == f"{name.upper()}(float32[4, 5], nse={np.count_nonzero(mat)})"
    for actual, expected in zip(x.tree_flatten()[0], parts(name, mat)):
        close(actual, expected)
    close(x.todense(), mat)
    close(px.jit(lambda m: FORMATS[name].fromdense(m, nse=13).todense())(mat), mat)
    truncated = FORMATS[name].fromdense(mat, nse=2)
    assert truncated.nse == np.count_nonzero(truncated.todense()) == 2
    assert FORMATS[name].fromdense(mat, index_dtype=np.int16).tree_flatten()[0][1].dtype == np.int16


@every_format
def test_parts_of_scipy_with_duplicates_and_padding(name: str) -> None:
    mat = dense(3, 4)
    data, *indices = parts(name, mat)
    x = FORMATS[name]((data, *indices), shape=mat.shape)
    close(x.todense(), mat)
    close(abs(x).todense(), np.abs(mat))
    first = (np.append(data, I32(7)).astype(data.dtype), np.append(indices[0], 0))
    if name == "coo":  # out of bounds
        first, indices = (first[0], np.append(indices[0], 3)), [None, np.append(indices[1], 0)]
    padded = FORMATS[name]((*first, indices[1]), shape=mat.shape)
    close(padded.todense(), mat)
    close(padded @ np.ones(4, "f"), mat.sum(1))


def test_duplicates_are_summed() -> None:
    twice = CSR((np.float32([1, 2, -3]), I32([1, 1, 0]), I32([0, 2, 3])), shape=(2, 2))
    close(twice.todense(), np.float32([[0, 3], [-3, 0]]))
    close((twice**2).todense(), np.float32([[0, 9], [9, 0]]))
    also = COO((np.float32([1, 2, -3]), I32([0, 0, 1]), I32([1, 1, 0])), shape=(2, 2))
    close(abs(also).todense(), np.float32([[0, 3], [3, 0]]))
    merged = BCSR.from_bcoo(twice.to_bcoo()).sum_duplicates()
    assert (merged.nse, merged.unique_indices, merged.indptr.tolist()) == (2, True, [0, 1, 2])


OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "2 * m": lambda m: 2 * m,
    "m * row": lambda m: m * np.float32([[1, 2, 0, 3]]),
    "m / 2": lambda m: m / 2,
    "-m": lambda m: -m,
    "m + m": lambda m: m + m,
    "m - 2 m": lambda m: m - 2 * m,
    "m**2": lambda m: m**2,
    "m.T": lambda m: m.T,
    "m @ m.T": lambda m: m @ m.T,
    "abs": abs,
    "sin": sparsify(pnp.sin),
    "sign": sparsify(pnp.sign),
    "concatenate": sparsify(lambda m: pnp.concatenate([m, 2 * m])),
    "columns": lambda m: m[:, 1:3],
    "reversed": lambda m: m[::-1],
}
DENSE_NAMES = {"abs": np.abs, "sin": np.sin, "sign": np.sign}
DENSE_NAMES["concatenate"] = lambda m: np.concatenate([m, 2 * m])


@every_format
@pytest.mark.parametrize("operation", OPERATIONS)
def test_operations_keep_the_format(name: str, operation: str) -> None:
    mat = dense(3, 4)
    actual = OPERATIONS[operation](FORMATS[name].fromdense(mat))
    expected = {**OPERATIONS, **DENSE_NAMES}[operation](mat)
    transposed = {"csr": CSC, "csc": CSR}.get(name, FORMATS[name])
    assert type(actual) is (transposed if operation == "m.T" else FORMATS[name])
    close(actual.todense(), expected.astype(np.float32), rtol=1e-5)


@every_format
def test_results_that_the_format_cannot_store(name: str) -> None:
    mat = dense(3, 4)
    x = FORMATS[name].fromdense(mat)
    for actual, expected in ((x.sum(0), mat.sum(0)), (x[1], mat[1]), (x.reshape(12), mat.ravel())):
        assert type(actual) is BCOO
        close(actual.todense(), expected)
    close(x.sum(), mat.sum())
    close(x + mat, 2 * mat)
    with pytest.raises(NotImplementedError, match="todense"):
        x + 1
    mixed = BCOO.fromdense(mat) + x
    assert type(mixed) is BCOO and type(x + BCOO.fromdense(mat)) is type(x)
    close(mixed.todense(), 2 * mat)


@every_format
def test_products_with_dense_arrays(name: str) -> None:
    mat, right, left = dense(3, 4), dense(4, 2, seed=1), dense(2, 3, seed=2)
    x = FORMATS[name].fromdense(mat)
    close(x @ right, mat @ right)
    close(x @ right[:, 0], mat @ right[:, 0])
    close(left @ x, left @ mat)
    close(left[0] @ x, left[0] @ mat)
    close(x.T @ left.T, mat.T @ left.T)
    close(x @ right.astype(I32), mat @ right)
    dot = sparsify(lambda m, v: pnp.einsum("ij,ik->jk", m, v))
    close(px.jit(dot)(x, left.T), mat.T @ left.T)


@every_format
def test_transformations(name: str) -> None:
    mat, v = dense(3, 4), dense(4, seed=1)
    x = FORMATS[name].fromdense(mat)

    def loss(m: Any) -> Any:
        return pnp.sum((m @ v) ** 2) + pnp.sum((2 * m.T).todense() ** 2)

    gradient = sparse.grad(loss)(x)
    expected = np.where(mat != 0, 2 * np.outer(mat @ v, v) + 8 * mat, 0)
    assert type(gradient) is FORMATS[name]
    close(px.jit(sparse.grad(loss))(x).todense(), expected, rtol=1e-5)
    close(gradient.todense(), expected, rtol=1e-5)
    check_grads(lambda d: loss(x.with_data(d)), (x.data,), 2, rtol=1e-2, atol=1e-2)
    mapped = px.vmap(lambda v: x @ v)(np.stack([v, 2 * v]))
    close(mapped, np.stack([mat @ v, 2 * mat @ v]))
    jacobian = sparse.jacrev(lambda m: m @ v)(x)
    assert type(jacobian) is (BCSR if name == "bcsr" else BCOO)
    close(jacobian.todense().sum(0), np.where(mat != 0, v, 0))
    doubled = sparsify(lambda m: lax.fori_loop(0, 2, lambda _, m: 2 * m, m))(x)
    assert type(doubled) is FORMATS[name]
    close(doubled.todense(), 4 * mat)


def test_conversions_between_formats() -> None:
    mat = dense(3, 4)
    for source in FORMATS.values():
        bcoo = source.fromdense(mat).to_bcoo()
        for target in FORMATS.values():
            close(target.from_bcoo(bcoo).todense(), mat)
    unsorted = BCOO((np.float32([1, 2, 3]), I32([[1, 0], [5, 5], [0, 2]])), shape=(2, 3))
    x = CSR.from_bcoo(unsorted)
    assert (x.indptr.tolist(), x.indices.tolist()) == ([0, 1, 2], [2, 0, 3])
    declared = BCOO(
        (np.float32([1, 2, 3]), I32([[0, 1], [0, 9], [1, 0]])), shape=(2, 3), indices_sorted=True
    )
    close(CSR.from_bcoo(declared).todense(), np.float32([[0, 1, 0], [3, 0, 0]]))
    theirs = scipy.sparse.csc_matrix(mat)
    close(BCSR.from_scipy_sparse(theirs).todense(), mat)
    assert COO.fromdense(mat).T.sort_indices().row.tolist() == sorted(np.nonzero(mat.T)[0])


# Batches of compressed rows


@pytest.mark.parametrize("n_batch, n_dense", [(1, 0), (0, 1), (1, 1), (2, 0)])
def test_batch_and_dense_dimensions(n_batch: int, n_dense: int) -> None:
    mat = dense(*(2, 3)[:n_batch], 3, 4, *(2,) * n_dense)
    x = BCSR.fromdense(mat, n_batch=n_batch, n_dense=n_dense)
    assert (x.n_batch, x.n_sparse, x.n_dense) == (n_batch, 2, n_dense)
    close(x.todense(), mat)
    close(x.to_bcoo().todense(), mat)
    close(BCSR.from_bcoo(x.to_bcoo()).todense(), mat)
    close(sparse.bcsr_extract(x.indices, x.indptr, mat), x.data)
    close(x.sum_duplicates().todense(), mat)
    close(sparse.bcsr_sum_duplicates(x, nse=12).todense(), mat)
    both = sparse.bcsr_concatenate([x, x], dimension=n_batch)
    close(both.todense(), np.concatenate([mat, mat], n_batch))
    if n_batch:
        close(px.vmap(lambda m: m.todense())(x), mat)
        assert repr(px.vmap(lambda m: 2 * m)(x)).startswith("BCSR(")
        close(px.vmap(lambda m: sparse.todense(m[1:] if n_batch == 1 else m))(x),
              mat[:, 1:] if n_batch == 1 else mat)  # fmt: skip
    contracted = n_batch + 1
    dims = (((contracted,), (0,)), ((), ()))
    v = dense(4, seed=3)
    expected = np.tensordot(mat, v, ((contracted,), (0,)))
    close(sparse.bcsr_dot_general(x, v, dimension_numbers=dims), expected)


def test_loops_over_batches() -> None:
    mat = dense(3, 2, 4)
    x = BCSR.fromdense(mat, n_batch=1)
    v = np.ones(4, np.float32)
    total, doubled = lax.scan(lambda c, m: (c + m @ v, 2 * m), np.zeros(2, np.float32), x)
    close(total, mat.sum((0, 2)))
    close(doubled.todense(), 2 * mat)
    stack = px.vmap(lambda m: BCSR.fromdense(m, nse=8))(mat)
    close(stack.todense(), mat)


def test_broadcasts_of_compressed_rows() -> None:
    mat = dense(2, 3)
    x = BCSR.fromdense(mat)
    for shape, dims in [((4, 2, 3), (1, 2)), ((1, 2, 3), (1, 2))]:
        actual = sparse.bcsr_broadcast_in_dim(x, shape=shape, broadcast_dimensions=dims)
        assert type(actual) is BCSR and actual.n_batch == 1
        close(actual.todense(), np.broadcast_to(mat, shape))
    grown = BCSR.fromdense(mat[:1])
    actual = sparse.bcsr_broadcast_in_dim(grown, shape=(2, 3), broadcast_dimensions=(0, 1))
    close(actual.todense(), np.broadcast_to(mat[:1], (2, 3)))
    data = np.ones((1, 2), np.float32)
    spread = BCSR((data, I32([[0, 1]]), I32([[0, 1, 2]])), shape=(3, 2, 2))
    assert spread.data.shape == (3, 2)
    close(spread.todense(), np.broadcast_to(np.eye(2, dtype=np.float32), (3, 2, 2)))


def test_products_of_compressed_rows() -> None:
    mat, other = dense(2, 3), dense(3, 4, seed=1)
    x, y = BCSR.fromdense(mat), BCSR.fromdense(other)
    dims = (((1,), (0,)), ((), ()))
    product = sparse.bcsr_dot_general(x, y, dimension_numbers=dims)
    assert type(product) is BCSR
    close(product.todense(), mat @ other)
    close(sparse.bcsr_dot_general(mat, y, dimension_numbers=dims), mat @ other)
    close(sparse.bcsr_dot_general(mat, other, dimension_numbers=dims), mat @ other)
    half = sparse.bcsr_dot_general(
        x, other, dimension_numbers=dims, preferred_element_type=np.float16
    )
    assert half.dtype == np.float16
    with pytest.raises(TypeError, match="contracting dimensions"):
        sparse.bcsr_dot_general(x, mat, dimension_numbers=dims)
    with pytest.raises(TypeError, match="expects BCSR arrays"):
        sparse.bcsr_dot_general(BCOO.fromdense(mat), other, dimension_numbers=dims)


# Functions and primitives


@pytest.mark.parametrize("name", ["coo", "csr"])
def test_functions_of_matrices(name: str) -> None:
    mat, right, left = dense(3, 4), dense(4, 2, seed=1), dense(3, 2, seed=2)
    function = lambda which: getattr(sparse, f"{name}_{which}")
    x = function("fromdense")(mat, nse=12)
    close(function("todense")(x), mat)
    close(function("matvec")(x, right[:, 0]), mat @ right[:, 0])
    close(function("matvec")(x, left[:, 0], transpose=True), mat.T @ left[:, 0])
    close(function("matmat")(x, right), mat @ right)
    close(function("matmat")(x, left, transpose=True), mat.T @ left)
    with pytest.raises(TypeError, match="needs operands of the same dtype, got float32 and int32"):
        function("matvec")(x, right[:, 0].astype(I32))
    with pytest.raises(ValueError, match=r"transpose=False needs a vector with 4 rows, got shape"):
        function("matvec")(x, left[:, 0])
    with pytest.raises(TypeError, match=f"{name}_todense expects a {name.upper()} matrix"):
        function("todense")(CSC.fromdense(mat))


def _names(fun: Callable[..., Any], *args: Any) -> set[str]:
    return {eqn.primitive.name for eqn in walk(px.make_jaxpr(fun)(*args))}


def test_jaxprs_contain_the_primitives() -> None:
    mat = dense(3, 4)
    bcoo, bcsr, coo, csr = (f.fromdense(mat) for f in (BCOO, BCSR, COO, CSR))
    dims = (((1,), (0,)), ((), ()))
    v = np.ones(4, np.float32)
    sampled = lambda a: sparse.bcoo_dot_general_sampled(
        a, a.T, I32([[0, 0]]), dimension_numbers=dims
    )
    cases = [
        ("bcoo_todense", lambda m: m.todense(), bcoo),
        ("bcoo_fromdense", lambda m: BCOO.fromdense(m, nse=3), mat),
        ("bcoo_transpose", lambda m: m.T, bcoo),
        ("bcoo_sort_indices", lambda m: m.sort_indices(), bcoo),
        ("bcoo_sum_duplicates", lambda m: m.sum_duplicates(nse=3), bcoo),
        ("bcoo_dot_general", lambda m: m @ v, bcoo),
        ("bcoo_dot_general", lambda m: v[:3] @ m, bcoo),
        ("bcoo_spdot_general", lambda m: m @ m.T, bcoo),
        ("bcoo_extract", lambda m: sparse.bcoo_extract(bcoo, m), mat),
        ("bcoo_dot_general_sampled", sampled, mat),
        ("bcsr_todense", lambda m: m.todense(), bcsr),
        ("bcsr_fromdense", lambda m: BCSR.fromdense(m, nse=3), mat),
        ("bcsr_dot_general", lambda m: m @ v, bcsr),
        ("bcsr_extract", lambda m: sparse.bcsr_extract(bcsr.indices, bcsr.indptr, m), mat),
        ("coo_todense", lambda m: m.todense(), coo),
        ("coo_fromdense", lambda m: COO.fromdense(m, nse=3), mat),
        ("coo_matvec", lambda m: m @ v, coo),
        ("coo_matmat", lambda m: m @ v[:, None], coo),
        ("csr_todense", lambda m: m.todense(), csr),
        ("csr_fromdense", lambda m: CSR.fromdense(m, nse=3), mat),
        ("csr_matvec", lambda m: m @ v, csr),
        ("csr_matmat", lambda m: m.T @ v[:3, None], CSC.fromdense(mat.T).T),
    ]
    for name, fun, arg in cases:
        assert name in _names(fun, arg), name
    known = {prim.name for prim in known_primitives()}
    assert {name for name, *_ in cases} <= known


def test_primitives_with_the_reference_s_parameters() -> None:
    mat = dense(3, 4)
    x, c, o = BCOO.fromdense(mat), CSR.fromdense(mat), COO.fromdense(mat)
    close(sparse.bcoo_todense_p.bind(x.data, x.indices, spinfo=x._info), mat)
    data, indices = sparse.bcoo_fromdense_p.bind(
        mat, nse=x.nse, n_batch=0, n_dense=0, index_dtype=np.int32
    )
    close(data, x.data), close(indices, x.indices)
    twice = np.concatenate([x.indices, x.indices])
    once = sparse.bcoo_extract_p.bind(twice, mat, assume_unique=False)
    close(once, np.concatenate([x.data, 0 * x.data]))
    close(sparse.bcoo_extract_p.bind(twice, mat, assume_unique=True), np.tile(x.data, 2))
    data, indices = sparse.bcoo_sum_duplicates_p.bind(
        np.tile(x.data, 2), twice, spinfo=x._info, nse=x.nse
    )
    close(data, 2 * x.data), close(indices, x.indices)
    ones = np.ones(4, np.float32)
    parts = c.data, c.indices, c.indptr
    close(sparse.csr_matvec_p.bind(*parts, ones, shape=(3, 4), transpose=False), mat.sum(1))
    parts = o.data, o.row, o.col
    close(sparse.coo_matvec_p.bind(*parts, ones, spinfo=o._info, transpose=False), mat.sum(1))


# Creation


@pytest.mark.parametrize("name", ["bcoo", *FORMATS])
def test_creation_in_every_format(name: str) -> None:
    x = sparse.empty((2, 3), sparse_format=name, nse=2)
    assert repr(x) == f"{name.upper()}(float32[2, 3], nse=2)"
    close(x.todense(), np.zeros((2, 3), np.float32))
    for k in (-1, 0, 1):
        close(sparse.eye(3, 4, k, sparse_format=name).todense(), np.eye(3, 4, k, np.float32))
    if name in MATRICES:
        with pytest.raises(ValueError, match=f"{name}' has no batch or dense dimensions"):
            sparse.empty((2, 2, 3), sparse_format=name, n_batch=1)
    elif name == "bcsr":
        close(sparse.eye(3, sparse_format=name).todense(), np.eye(3, dtype=np.float32))
        assert sparse.empty((4, 2, 3), sparse_format=name, n_batch=1).n_batch == 1


def test_errors_of_formats() -> None:
    one = np.float32([1])
    calls = [
        (lambda: CSR((one, I32([0]), I32([0, 1])), shape=(2, 3)), ValueError, "of lengths 1, 1, 3"),
        (lambda: CSR((one, one, I32([0, 1, 1])), shape=(2, 3)), TypeError, "indices of a CSR must"),
        (lambda: CSR((one, I32([0])), shape=(2, 3)), ValueError, "made of data, indices, indptr"),
        (lambda: COO((one, I32([0, 1]), I32([0])), shape=(2, 3)), ValueError, "do not match"),
        (lambda: COO((one, I32([0]), I32([0])), shape=(2, 3, 4)), ValueError, "use BCOO or BCSR"),
        (lambda: CSC.fromdense(one), ValueError, "CSC.fromdense needs a matrix"),
        (lambda: CSR.from_bcoo(BCOO.fromdense(one)), ValueError, "is not a matrix with two"),
        (lambda: CSR.fromdense(dense(2, 2)).transpose((0, 0)), ValueError, "not a permutation"),
        (lambda: BCSR.fromdense(one), ValueError, "two sparse dimensions: an array of shape"),
        (lambda: BCSR.from_bcoo(BCOO.fromdense(one)), ValueError, "has 1 sparse dimensions, not 2"),
        (lambda: BCSR((one, I32([0]), I32([0, 1])), shape=(2, 3)), ValueError, "than the 2 rows"),
        (lambda: BCSR((one, I32([0, 1]), I32([0, 1, 1])), shape=(2, 3)), ValueError, "require"),
        (lambda: BCSR((one, one, I32([0, 1])), shape=(1, 3)), TypeError, "of a BCSR must be int"),
        (lambda: sparse.bcsr_concatenate([], dimension=0), ValueError, "at least one operand"),
        (lambda: sparse.bcsr_todense(one), TypeError, "bcsr_todense expects BCSR arrays"),
        (lambda: sparse.bcsr_extract(I32([0]), I32([0, 1]), dense(2, 3)), ValueError, "not match"),
        (lambda: px.jit(CSR.fromdense)(dense(2, 2)), px.errors.ConcretizationTypeError, "`nse`"),
    ]  # fmt: skip
    for call, error, text in calls:
        with pytest.raises(error, match=text):
            call()
    x = CSR.fromdense(dense(2, 3))
    stacked = px.vmap(lambda d: x.with_data(d))(np.ones((4, x.nse), np.float32))
    with pytest.raises(ValueError, match="has no batch dimensions, but its data has the shape"):
        stacked.todense()


# Tracers, and convolutions


def test_sparsify_with_tracers() -> None:
    mat, v = dense(3, 4), dense(4, seed=1)
    types = []

    def f(m: Any, v: Any) -> Any:
        types.append(type(m))
        scale = 2 if float(pnp.sum(v * v)) > 0 else 1  # a value that Python reads
        return pnp.sign(scale * m), m @ v, px.jit(lambda x: x.T)(m)

    signs, product, turned = sparsify(f, use_tracer=True)(BCOO.fromdense(mat), v)
    assert types == [sparse.SparseTracer]
    close(signs.todense(), np.sign(mat))
    close(product, mat @ v)
    close(turned.todense(), mat.T)
    on_tracers = sparsify(lambda m: pnp.sum(m * m), use_tracer=True)
    close(px.jit(on_tracers)(CSR.fromdense(mat)), np.sum(mat * mat))
    gradient = sparse.grad(on_tracers)(BCOO.fromdense(mat))
    close(gradient.todense(), 2 * mat)
    with pytest.raises(NotImplementedError, match="exp does not support sparse arrays"):
        sparsify(pnp.exp, use_tracer=True)(BCOO.fromdense(mat))


@pytest.mark.parametrize("name", ["sign", "trunc", "nan_to_num", "isnan", "float_power"])
def test_compositions_that_map_zero_to_zero(name: str) -> None:
    fun = getattr(pnp, name)
    fun = (lambda x: pnp.float_power(x, 3)) if name == "float_power" else fun
    mat = dense(3, 4) * np.float32(1.5)
    actual = sparsify(fun)(BCOO.fromdense(mat))
    close(actual.todense(), np.asarray(fun(mat)))
    twice = BCOO((np.float32([1, -3]), I32([[0], [0]])), shape=(2,))
    close(sparsify(pnp.sign)(twice).todense(), np.float32([-1, 0]))


CONVOLUTIONS = {
    "1-D": ((1, 1, 10), (1, 1, 3), {"padding": [(2, 1)]}),
    "strides": ((1, 1, 10), (1, 1, 3), {"window_strides": (2,), "padding": "SAME"}),
    "dilations and groups": (
        (2, 4, 5, 6), (6, 2, 2, 3),
        {"window_strides": (2, 1), "padding": [(1, 0), (2, 2)], "lhs_dilation": (2, 1),
         "rhs_dilation": (1, 2), "feature_group_count": 2},
    ),
    "batch groups": ((4, 3, 5), (2, 3, 2), {"padding": "VALID", "batch_group_count": 2}),
    "axes": ((2, 5, 3), (2, 3, 4),
             {"padding": "SAME", "dimension_numbers": ("NHC", "HIO", "NHC")}),
}  # fmt: skip


@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_convolutions(case: str) -> None:
    left, right, options = CONVOLUTIONS[case]
    options = {"window_strides": (1,), **options}
    a, b = dense(*left), dense(*right, seed=1)
    expected = lax.conv_general_dilated(a, b, **options)
    convolve = sparse.bcoo_conv_general_dilated
    for x, y in ((BCOO.fromdense(a), BCOO.fromdense(b)), (BCOO.fromdense(a), b),
                 (a, BCOO.fromdense(b, nse=b.size))):  # fmt: skip
        close(convolve(x, y, **options).todense(), expected)
    run = sparsify(lambda x, y: lax.conv_general_dilated(x, y, **options))
    close(px.jit(run)(BCOO.fromdense(a), b).todense(), expected)


def test_convolution_of_vectors() -> None:
    a, b = dense(9), np.float32([1, 0, -2])
    actual = sparsify(pnp.convolve)(BCOO.fromdense(a), BCOO.fromdense(b))
    close(actual.todense(), np.convolve(a, b).astype(np.float32))
    x = BCOO.fromdense(a[None, None])
    run = lambda d: sparse.bcoo_conv_general_dilated(
        x.with_data(d), b[None, None], window_strides=(1,), padding="SAME"
    ).data  # fmt: skip
    check_grads(run, (x.data,), 1, rtol=1e-2, atol=1e-2)
    many = px.vmap(run)(np.stack([x.data, 2 * x.data]))
    close(many[1], 2 * many[0])
    with pytest.raises(ValueError, match="does not support precision='highest'"):
        sparse.bcoo_conv_general_dilated(
            x, x, window_strides=(1,), padding="SAME", precision="highest"
        )
    with pytest.raises(TypeError, match="at least one BCOO array"):
        sparse.bcoo_conv_general_dilated(a, b, window_strides=(1,), padding="SAME")
