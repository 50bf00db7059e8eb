"""``sparsify``: operations, control flow, compiled functions, transformations, derivatives,
errors."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import scipy.special
from hypothesis import given, settings
from sparse_cases import REAL, StoredArray, cases, check, close, stored, values

import primax_core as px
import primax_numpy as pnp
import primax_scipy.experimental.sparse as sparse
import primax_scipy.special as special
from primax_core import lax
from primax_core.extend import MissingRule, UnsupportedRule
from primax_core.test_util import check_grads
from primax_scipy.experimental.sparse import BCOO, SparseEfficiencyError, sparsify

I32 = np.int32


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def matrix(
    shape: tuple[int, ...] = (2, 3), n_batch: int = 0, n_dense: int = 0, **kw: Any
) -> StoredArray:
    kw = {"dtype": np.float32, "nse": 4, **kw}
    return stored(rng(len(shape)), shape, n_batch, n_dense, **kw)


def full(*shape: int, seed: int = 5) -> np.ndarray:
    return values(rng(seed), shape, np.float32)


def small(case: StoredArray) -> np.ndarray:
    """Elements within the domain of all functions, also after summing duplicates."""
    return (case.data / 8).astype(case.data.dtype)


# Operations

ZERO_AT_ZERO: dict[str, Any] = {
    "abs": (pnp.abs, np.abs),
    "arcsin": (pnp.arcsin, np.arcsin),
    "arcsinh": (pnp.arcsinh, np.arcsinh),
    "arctan": (pnp.arctan, np.arctan),
    "arctanh": (pnp.arctanh, np.arctanh),
    "cbrt": (pnp.cbrt, np.cbrt),
    "ceil": (pnp.ceil, np.ceil),
    "copy": (pnp.copy, np.copy),
    "deg2rad": (pnp.deg2rad, np.deg2rad),
    "expm1": (pnp.expm1, np.expm1),
    "floor": (pnp.floor, np.floor),
    "log1p": (pnp.log1p, np.log1p),
    "negative": (pnp.negative, np.negative),
    "round": (pnp.round, np.round),
    "sign": (lax.sign, np.sign),
    "sin": (pnp.sin, np.sin),
    "sinh": (pnp.sinh, np.sinh),
    "sqrt": (lambda x: pnp.sqrt(pnp.abs(x)), lambda x: np.sqrt(np.abs(x))),
    "square": (pnp.square, np.square),
    "tan": (pnp.tan, np.tan),
    "tanh": (pnp.tanh, np.tanh),
    "cube": (lambda x: x**3, lambda x: x**3),
    "stop_gradient": (lax.stop_gradient, np.copy),
    "to int": (lambda x: (x * 8).astype(I32), lambda x: (x * 8).astype(I32)),
    "to bool": (lambda x: x.astype(bool), lambda x: x.astype(bool)),
    "reduce_precision": (lambda x: lax.reduce_precision(x, 8, 23), np.copy),
}


@pytest.mark.parametrize("name", ZERO_AT_ZERO)
def test_functions_that_map_zero_to_zero(name: str) -> None:
    """Duplicates are summed first."""
    ours, theirs = ZERO_AT_ZERO[name]
    indices = I32([[0, 1], [1, 2], [0, 1], [-1, 0], [2, 0], [-2, -2]])
    data = np.float32([0.25, 0.5, -0.125, -0.25, 9, 0.375])
    mat = BCOO((data, indices), shape=(2, 3))
    dense = np.float32([[0, 0.5, 0], [-0.25, 0, 0.5]])
    check(sparsify(ours)(mat), theirs(dense), 0, 0)
    tidy = BCOO.fromdense(dense)
    actual = sparsify(ours)(tidy)
    check(actual, theirs(dense), 0, 0)
    assert actual.unique_indices and actual.nse == 3


def test_special_functions() -> None:
    case = matrix(known=True)
    for name in ("erf", "erfinv", "i1e"):
        actual = sparsify(getattr(special, name))(case.sparse / 8)
        check(
            actual, getattr(scipy.special, name)(case.dense / 8).astype(np.float32), tolerance=1e-4
        )


def test_functions_with_custom_derivatives() -> None:
    """Elementwise functions that map zero to zero act on the stored elements."""

    @px.custom_jvp
    def cube(x):
        return x * pnp.sinh(x) ** 2

    cube.defjvp(lambda primals, tangents: (cube(*primals), 7 * tangents[0]))

    @px.custom_jvp
    def shifted(x):
        return pnp.sinh(x) + 1

    shifted.defjvp(lambda primals, tangents: (shifted(*primals), tangents[0]))
    case = matrix(known=True)
    expected = case.dense * np.sinh(case.dense) ** 2
    for f in (cube, px.jit(cube)):
        check(sparsify(f)(case.sparse), expected, tolerance=1e-5)
    actual = sparsify(special.i1)(case.sparse)
    check(actual, scipy.special.i1(case.dense).astype("f"), tolerance=1e-4)
    gradient = sparse.grad(lambda m: sparsify(cube)(m).data.sum())(BCOO.fromdense(case.dense))
    assert set(np.asarray(gradient.data).tolist()) == {7.0}
    with pytest.raises(NotImplementedError, match=r"nonzero where its operands are zero|sum of a"):
        sparsify(shifted)(case.sparse)


def test_complex_parts() -> None:
    case = matrix(dtype=np.complex64)
    for ours, theirs in ((pnp.real, np.real), (pnp.imag, np.imag), (pnp.conj, np.conj)):
        check(sparsify(ours)(case.sparse), theirs(case.dense), 0, 0)
    check(sparsify(pnp.abs)(case.sparse), np.abs(case.dense), 0, 0)


OPERATIONS: dict[str, Any] = {
    "transpose": lambda np, x, y: np.transpose(x),
    "matrix_transpose": lambda np, x, y: np.swapaxes(x, 0, 1),
    "moveaxis": lambda np, x, y: np.moveaxis(x, 0, 1),
    "reshape": lambda np, x, y: np.reshape(x, (3, 2)),
    "ravel": lambda np, x, y: np.ravel(x),
    "expand_dims": lambda np, x, y: np.expand_dims(x, (0, 2)),
    "squeeze": lambda np, x, y: np.squeeze(np.reshape(x, (2, 1, 3))),
    "broadcast_to": lambda np, x, y: np.broadcast_to(x, (2, 2, 3)),
    "tile": lambda np, x, y: np.concatenate([x, x, x], axis=1),
    "stack": lambda np, x, y: np.stack([x, y]),
    "vstack": lambda np, x, y: np.vstack([x, y]),
    "hstack": lambda np, x, y: np.hstack([x, y]),
    "split": lambda np, x, y: np.split(x, 3, axis=1)[1],
    "flip": lambda np, x, y: np.flip(x, 1),
    "slice": lambda np, x, y: x[:, ::2],
    "row": lambda np, x, y: x[1],
    "sum": lambda np, x, y: np.sum(x, axis=1),
    "mean": lambda np, x, y: np.mean(x, axis=0),
    "add": lambda np, x, y: x + y,
    "subtract": lambda np, x, y: x - y,
    "multiply": lambda np, x, y: x * y,
    "divide": lambda np, x, y: x / np.float32(2),
    "matmul": lambda np, x, y: x @ y.T,
    "einsum": lambda np, x, y: np.einsum("ij,kj->ki", x, y),
    "tensordot": lambda np, x, y: np.tensordot(x, y, ((0,), (0,))),
    "several": lambda np, x, y: np.sin(2 * x.T) @ (y * y),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations(name: str) -> None:
    """Operations on two sparse arrays."""
    a, b = matrix(), matrix(nse=3)
    of = OPERATIONS[name]
    check(sparsify(lambda x, y: of(pnp, x, y))(a.sparse, b.sparse), of(np, a.dense, b.dense))
    jitted = px.jit(sparsify(lambda x, y: of(pnp, x, y)))
    check(jitted(a.sparse, b.sparse), of(np, a.dense, b.dense))


@settings(max_examples=10)
@given(cases(dims=(1, 3), dtypes=REAL))
def test_functions_of_every_layout(case: StoredArray) -> None:
    """Results with the same layout, and others."""
    v = case.values(case.shape[-1:])
    of = lambda np, x, v: (np.sin(-2 * x) * v, x @ v, x + x - 3 * x)
    scaled, product, total = sparsify(lambda x, v: of(pnp, x, v))(case.sparse, v)
    expected = of(np, case.dense, v)
    check(scaled, expected[0], case.n_batch, case.n_dense)
    close(product, expected[1])
    check(total, expected[2], case.n_batch, case.n_dense)


def test_arguments_and_results_are_pytrees() -> None:
    case, v = matrix(), full(3)

    def of(pair: Any, *, scale: Any, rest: Any = None) -> Any:
        assert rest is None
        return {"a": pair["mat"] * scale, "b": (pair["mat"] @ pair["v"], None), "c": scale}

    actual = sparsify(of)({"mat": case.sparse, "v": v}, scale=2.0)
    check(actual["a"], 2 * case.dense)
    close(actual["b"][0], case.dense @ v)
    assert actual["b"][1] is None and float(actual["c"]) == 2
    assert sparsify(of).__name__ == "of"
    check(sparsify(lambda x: x, use_tracer=True)(case.sparse), case.dense)
    close(sparsify(lambda x: x + 1)(v), v + 1)


def test_operations_independent_of_sparse_arrays() -> None:
    """Constants, methods of closed-over sparse arrays, exp of dense operands."""
    case, v = matrix(), full(3)
    close(sparsify(lambda x, v: x @ pnp.exp(v))(case.sparse, v), case.dense @ np.exp(v), rtol=1e-4)
    close(sparsify(lambda v: case.sparse @ v)(v), case.dense @ v)
    check(sparsify(lambda x: x * v)(case.sparse), case.dense * v)


def test_todense_inside() -> None:
    case, v = matrix(), full(2, 3)
    of = sparsify(lambda x, y: pnp.exp(sparse.todense(x)) + sparse.todense(y))
    close(of(case.sparse, v), np.exp(case.dense) + v, rtol=1e-4)
    close(px.jit(of)(case.sparse, case.sparse), np.exp(case.dense) + case.dense, rtol=1e-4)
    close(sparse.todense(v), v)
    close(px.vmap(sparse.todense)(v), v)
    close(px.grad(lambda x: pnp.sum(sparse.todense(x) ** 2))(v), 2 * v)
    assert [e.primitive.name for e in px.make_jaxpr(sparse.todense)(v).eqns] == ["todense"]
    assert sparse.todense_p.name == "todense"


def test_gather_in_bounds() -> None:
    case, rows = matrix((3, 2), nse=5), np.array([2, 0, 2])
    of = lambda x: pnp.asarray(x).at[rows].get(mode="promise_in_bounds")
    check(sparsify(of)(case.sparse), case.dense[rows])
    of = lambda x, i: lax.dynamic_index_in_dim(x, i, 1, keepdims=False)
    check(sparsify(of)(case.sparse, 1), case.dense[:, 1])


# Control flow


def test_transformations_inside() -> None:
    case, v = matrix(), full(3)
    double = px.custom_vjp(lambda x: 2 * x)
    double.defvjp(lambda x: (2 * x, None), lambda _, g: (g * 2,))
    check(sparsify(double)(case.sparse), 2 * case.dense)
    check(sparsify(px.checkpoint(lambda x: pnp.sin(x)))(case.sparse), np.sin(case.dense))
    check(sparsify(px.vmap(lambda r: r * v))(case.sparse), case.dense * v)
    close(sparsify(px.vmap(lambda r: r @ v))(case.sparse), case.dense @ v)
    check(sparsify(px.grad(lambda x: pnp.sum(x * x)))(case.sparse), 2 * case.dense)
    slope = px.grad(lambda v, x: pnp.sum((x @ v) ** 2))
    close(sparsify(slope)(v, case.sparse), 2 * (case.dense @ v) @ case.dense)
    out, tangent = sparsify(lambda x: px.jvp(lambda v: x @ v, (v,), (2 * v,)))(case.sparse)
    close(out, case.dense @ v)
    close(tangent, 2 * case.dense @ v)


def test_compiled_functions_inside() -> None:
    case, v = matrix(), full(3)
    inner = px.jit(lambda x, v: {"p": x @ v, "x": -x})
    actual = sparsify(lambda x, v: inner(x * 2, v))(case.sparse, v)
    close(actual["p"], 2 * case.dense @ v)
    check(actual["x"], -2 * case.dense)
    outer = px.jit(sparsify(px.jit(lambda x, v: inner(inner(x, v)["x"], v)["x"])))
    check(outer(case.sparse, v), case.dense)
    tidy = matrix(known=True).sparse
    assert sparsify(px.jit(lambda x: -x))(tidy).unique_indices
    check(sparsify(px.jit(lambda x: -x))(tidy), -matrix(known=True).dense)


@pytest.mark.parametrize("which", [True, False])
def test_cond(which: bool) -> None:
    case, other = matrix(), matrix(known=True, nse=4)
    mats = case.sparse, BCOO((other.data, other.indices), shape=(2, 3), unique_indices=True)
    of = lambda c, x, y: lax.cond(c, lambda x, y: 2 * x, lambda x, y: -y, x, y)
    expected = 2 * case.dense if which else -other.dense
    check(sparsify(of)(which, *mats), expected)
    check(px.jit(sparsify(of))(which, *mats), expected)
    v = full(3)
    total = lambda c, x: lax.cond(c, lambda x: x @ v, lambda x: pnp.sum(x, 1) @ pnp.ones((2, 2)), x)
    close(
        sparsify(total)(which, case.sparse),
        case.dense @ v if which else case.dense.sum(1) @ np.ones((2, 2), np.float32),
    )


@pytest.mark.parametrize("which", [0, 1, 2])
def test_switch(which: int) -> None:
    case = matrix()
    branches = [lambda x: x, lambda x: 2 * x, pnp.negative]
    of = sparsify(lambda i, x: lax.switch(i, branches, x))
    check(of(which, case.sparse), [1, 2, -1][which] * case.dense)


def test_fori_loop() -> None:
    case, v = matrix((3, 3)), full(3)
    of = lambda x, v: lax.fori_loop(0, 3, lambda i, v: x @ v, v)
    close(sparsify(of)(case.sparse, v), case.dense @ (case.dense @ (case.dense @ v)))
    of = lambda x: lax.fori_loop(0, 3, lambda i, x: x * 2, x)
    check(sparsify(of)(case.sparse), 8 * case.dense)
    of = lambda n, x: lax.fori_loop(0, n, lambda i, x: x * 2, x)
    check(px.jit(sparsify(of))(3, case.sparse), 8 * case.dense)


def test_while_loop() -> None:
    case = matrix((3, 3), known=True)
    of = lambda x: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, -2 * s[1]), (0, x))
    count, actual = sparsify(of)(case.sparse)
    assert int(count) == 3
    check(actual, -8 * case.dense)
    of = lambda x, v: lax.while_loop(
        lambda v: pnp.sum(pnp.abs(x) @ v) < 100, lambda v: pnp.abs(x) @ v + 9, v
    )
    v, expected = np.ones(3, np.float32), np.ones(3, np.float32)
    while np.sum(np.abs(case.dense) @ expected) < 100:
        expected = np.abs(case.dense) @ expected + 9
    close(sparsify(of)(case.sparse, v), expected)


def test_scan() -> None:
    case, v = matrix((3, 2, 2), 1), full(2)
    step = lambda carry, x: (x @ carry, 2 * x)
    of = lambda xs, v: lax.scan(step, v, xs)
    last, doubled = sparsify(of)(case.sparse, v)
    expected = case.dense[2] @ (case.dense[1] @ (case.dense[0] @ v))
    close(last, expected)
    check(doubled, 2 * case.dense, 1, 0)
    close(px.jit(sparsify(of))(case.sparse, v)[0], expected)
    carried = lambda xs, m: lax.scan(lambda m, x: (m * 2, m @ x), m, xs)
    square = matrix((2, 2), known=True)
    last, products = sparsify(carried)(case.sparse, square.sparse)
    check(last, 8 * square.dense)
    check(products, np.stack([2**k * square.dense @ case.dense[k] for k in range(3)]), 1)
    backwards = lambda xs, v: lax.scan(step, v, xs, reverse=True)[0]
    close(
        sparsify(backwards)(case.sparse, v),
        case.dense[0] @ (case.dense[1] @ (case.dense[2] @ v)),
    )
    wide = matrix((3, 2, 2), 2)
    check(sparsify(of)(wide.sparse, v)[1], 2 * wide.dense, 2, 0)


def test_scan_of_a_stored_batch_of_size_one() -> None:
    data, indices = full(1, 3), np.array([[[0], [1], [-1]]] * 4, I32)
    mat = BCOO((data, indices), shape=(4, 2))
    last, _ = sparsify(lambda xs: lax.scan(lambda c, x: (c + pnp.sum(x), None), 0.0, xs))(mat)
    close(last, np.float32(data.sum() * 4))
    thin = BCOO((data, indices[:1]), shape=(4, 2))
    last, _ = sparsify(lambda xs: lax.scan(lambda c, x: (c + pnp.sum(x), None), 0.0, xs))(thin)
    close(last, np.float32(data.sum() * 4))


# Transformations from outside


def test_jit_of_sparse_arrays() -> None:
    case = matrix(known=True)
    seen = []

    @px.jit
    def of(m: BCOO, k: Any) -> Any:
        seen.append(m)
        return {"m": m * k, "t": m.T}, m.nse

    actual, nse = of(case.sparse, 2.0)
    check(actual["m"], 2 * case.dense)
    check(actual["t"], case.dense.T)
    assert int(nse) == case.sparse.nse and actual["m"].unique_indices
    of(case.sparse * 2, 3.0)
    assert len(seen) == 1


def test_scan_carries_sparse_arrays() -> None:
    case, batch = matrix(), matrix((3, 2, 3), 1)
    last, out = lax.scan(lambda m, k: (m * 2.0, m * k), case.sparse, np.float32([1, 2, 3]))
    check(last, 8 * case.dense)
    check(out, np.stack([k * 2**k / 2 * case.dense for k in (1, 2, 3)]).astype("f"), 1)
    total, rows = lax.scan(
        lambda c, m: (c + m.todense(), m @ np.ones(3, "f")), full(2, 3), batch.sparse
    )
    close(total, full(2, 3) + batch.dense.sum(0))
    close(rows, batch.dense.sum(2))
    actual = lax.fori_loop(0, 2, lambda i, m: -m * 3.0, case.sparse)
    check(actual, 9 * case.dense)
    actual = lax.while_loop(lambda m: m.sum() < -1e9, lambda m: m, case.sparse)
    check(actual, case.dense)
    actual = lax.cond(True, lambda m: m, lambda m: 2.0 * m, case.sparse)
    check(actual, case.dense)


def test_eval_shape() -> None:
    types = px.eval_shape(lambda m, v: (m.T, m @ v), matrix().sparse, full(3))
    assert (types[0].shape, types[0].data.shape, types[1].shape) == ((3, 2), (4,), (2,))


@pytest.mark.parametrize("axis", [0, 1])
def test_vmap_over_batch_dimensions(axis: int) -> None:
    case, v = matrix((2, 3, 4), 2), full(4)
    expected = np.moveaxis(case.dense, axis, 0)
    over = lambda f, **kw: px.vmap(f, in_axes=axis, **kw)(case.sparse)
    close(over(lambda m: m @ v), expected @ v)
    close(over(lambda m: m.todense()), expected)
    check(over(lambda m: m * v), expected * v, 2, 0)
    check(over(lambda m: m, out_axes=axis), case.dense, 2, 0)
    check(over(lambda m: -m, out_axes=1 - axis), np.moveaxis(-case.dense, axis, 1 - axis), 2, 0)
    shapes = []
    over(lambda m: shapes.append((m.shape, m.n_batch, m.nse)) or m.data)
    assert shapes == [(expected.shape[1:], 1, 4)]
    check(px.jit(px.vmap(sparsify(lambda m: 2 * m), in_axes=axis))(case.sparse), 2 * expected, 2)


@pytest.mark.parametrize("axis", [0, 1])
def test_vmap_in_and_out(axis: int) -> None:
    """Over dense arrays that are converted to sparse ones, or multiplied by one."""
    case, vs = matrix(), full(4, 3)
    close(px.vmap(lambda v: case.sparse @ v)(vs), vs @ case.dense.T)
    actual = px.vmap(lambda v: case.sparse * v, out_axes=0)(vs)
    check(actual, case.dense * vs[:, None], 1, 0)
    xs = full(2, 4, 3)
    batched = px.vmap(lambda x: BCOO.fromdense(x, nse=12 // (axis + 1)), in_axes=axis)(xs)
    check(batched, np.moveaxis(xs, axis, 0), 1, 0)
    nested = px.vmap(px.vmap(lambda x: BCOO.fromdense(x, nse=3)), in_axes=axis)(xs)
    check(nested, np.moveaxis(xs, axis, 0), 2, 0)
    pairs = px.vmap(lambda m, v: m @ v, in_axes=(0, 1))(nested, full(3, 2 + 2 * axis))
    close(pairs, np.einsum("bij,jb->bi", np.moveaxis(xs, axis, 0), full(3, 2 + 2 * axis)))
    reduced = px.vmap(lambda m: m.sum(0).todense())(nested)
    close(reduced, np.moveaxis(xs, axis, 0).sum(1))


@pytest.mark.parametrize("shape", [(1, 3, 4), (3, 1, 4), (1, 1, 4), (3, 3, 4)])
@pytest.mark.parametrize("axis", [0, 1])
def test_vmap_over_batch_dimensions_of_size_one(shape: Any, axis: int) -> None:
    case = matrix(shape, 2)
    expected = np.moveaxis(case.dense, axis, 0)
    close(px.vmap(lambda m: m.todense(), in_axes=axis)(case.sparse), expected)
    actual = px.vmap(lambda m: m * 2.0, in_axes=axis, out_axes=axis)(case.sparse)
    check(actual, 2 * case.dense, 2, 0)


@pytest.mark.parametrize("out", [0, 1])
def test_vmap_of_stored_batches_of_size_one(out: int) -> None:
    """Results with an inner batch of size 1 in data and indices."""
    data, indices = full(3, 1, 2), np.array([[[0], [3]]], I32)
    inner = lambda d: BCOO((d, indices), shape=(3, 4))
    expected = np.zeros((3, 3, 4), np.float32)
    expected[:, :, [0, 3]] = data
    actual = px.vmap(inner, out_axes=out)(data)
    check(actual, np.moveaxis(expected, 0, out), 2, 0)


# Derivatives


def test_derivatives_of_functions() -> None:
    case, v = matrix((3, 2)), full(2) + 1
    of = sparsify(lambda x, v: (x * x) @ v)
    check_grads(lambda d, v: of(case.sparse.like(d), v), (case.data, v), 2)
    loop = sparsify(
        lambda x, v: lax.scan(lambda v, _: (0.1 * (x.T @ (x @ v)), None), v, None, 2)[0]
    )
    check_grads(lambda d, v: loop(case.sparse.like(d), v), (case.data, v), 1)


def test_grad() -> None:
    case, v = matrix(nse=3), full(3)
    loss = lambda m, v: pnp.sum((m @ v) ** 2)
    wide, slope = px.grad(loss, (0, 1))(case.dense, v)
    taken = sparse.bcoo_extract(case.sparse, wide, assume_unique=True).data
    actual = sparse.grad(loss)(case.sparse, v)
    assert isinstance(actual, BCOO)
    assert np.array_equal(actual.indices, case.indices)
    close(actual.data, np.asarray(taken))
    close(sparse.grad(loss, 1)(case.sparse, v), slope)
    close(sparse.grad(loss, -1)(case.sparse, v), slope)
    both = sparse.grad(loss, (1, 0))(case.sparse, v)
    close(both[0], slope)
    close(both[1].data, np.asarray(taken))
    (only,) = sparse.grad(loss, (0,))(case.sparse, v)
    close(only.data, np.asarray(taken))
    value, actual = sparse.value_and_grad(loss)(case.sparse, v)
    close(value, np.asarray(loss(case.dense, v)))
    close(actual.data, np.asarray(taken))
    jitted = px.jit(sparse.grad(loss, (0, 1)))(case.sparse, v)
    close(jitted[0].data, np.asarray(taken))
    close(sparse.grad(loss)(case.dense, v), np.asarray(wide))
    tidy = sparse.grad(loss)(matrix(known=True).sparse, v)
    assert tidy.unique_indices and tidy.indices_sorted


def test_grad_with_keyword_arguments_and_aux() -> None:
    case, v = matrix(nse=3), full(3)
    of = lambda m, v, *, k: (pnp.sum(m @ v) * k, {"m": m, "k": k})
    actual, aux = sparse.grad(of, has_aux=True)(case.sparse, v, k=2.0)
    close(actual.data, np.asarray(sparse.grad(lambda m: 2 * pnp.sum(m @ v))(case.sparse).data))
    check(aux["m"], case.dense)
    (value, aux), (by_m, by_v) = sparse.value_and_grad(of, (0, 1), has_aux=True)(
        case.sparse, v, k=2.0
    )
    close(value, 2 * (case.dense @ v).sum())
    close(by_m.data, np.asarray(actual.data))
    close(by_v, 2 * case.dense.sum(0))
    check(aux["m"], case.dense)
    holomorphic = sparse.grad(lambda m: pnp.sum(m.data**2), holomorphic=True)
    wide = matrix(dtype=np.complex64)
    close(holomorphic(wide.sparse).data, 2 * wide.data)


def test_grad_of_pytrees() -> None:
    case, v = matrix(nse=3), full(3)
    loss = lambda p: pnp.sum((p["layers"][0] @ p["v"] + p["layers"][1]) ** 2)
    tree = {"layers": [case.sparse, full(2)], "v": v}
    actual = sparse.grad(loss)(tree)
    wide = px.grad(loss)({"layers": [case.dense, full(2)], "v": v})
    close(actual["v"], np.asarray(wide["v"]))
    close(actual["layers"][1], np.asarray(wide["layers"][1]))
    taken = sparse.bcoo_extract(case.sparse, wide["layers"][0], assume_unique=True)
    close(actual["layers"][0].data, np.asarray(taken.data))
    step = px.tree_util.tree_map(lambda p, g: p - 0.1 * g, tree, actual)
    close(step["layers"][0].data, case.data - 0.1 * np.asarray(taken.data))


@pytest.mark.parametrize("jac", [sparse.jacfwd, sparse.jacrev, sparse.jacobian])
def test_jacobians(jac: Any) -> None:
    case, v = matrix(nse=3), full(3)
    of = lambda m, v: m @ v
    by_data = np.asarray(px.jacfwd(lambda d: case.sparse.like(d) @ v)(case.data))
    actual = jac(of)(case.sparse, v)
    assert (actual.shape, actual.n_batch) == ((2, 2, 3), 1)
    close(actual.data, by_data)
    close(jac(of, 1)(case.sparse, v), case.dense)
    by_m, by_v = jac(of, (0, 1))(case.sparse, v)
    close(by_m.data, by_data)
    close(by_v, case.dense)
    actual, aux = jac(lambda m, v: (m @ v, v), has_aux=True)(case.sparse, v)
    close(actual.data, by_data)
    close(aux, v)
    actual = jac(lambda m, v: pnp.sum(m @ v))(case.sparse, v)
    assert actual.shape == (2, 3)
    close(actual.data, by_data.sum(0))


@pytest.mark.parametrize("jac", [sparse.jacfwd, sparse.jacrev])
def test_jacobians_of_pytrees(jac: Any) -> None:
    """Results that are pairs are not confused with derivatives with respect to two arguments."""
    case, v = matrix(nse=3), full(3)
    actual = jac(lambda m, v: (m @ v, {"s": m.sum()}), (0, 1))(case.sparse, v)
    (first_by_m, first_by_v), of_sum = actual
    sum_by_m, sum_by_v = of_sum["s"]
    assert first_by_m.shape == (2, 2, 3) and sum_by_m.shape == (2, 3)
    close(first_by_v, case.dense)
    close(sum_by_v, np.zeros(3, np.float32))
    first, second = jac(lambda m: (m @ v, 2 * (m @ v)))(case.sparse)
    close(2 * np.asarray(first.data), np.asarray(second.data))
    (only,) = jac(lambda m: (m @ v,))(case.sparse)
    close(only.data, np.asarray(first.data))
    actual = jac(lambda t: (t["m"] @ t["v"], t["v"]))({"m": case.sparse, "v": v})
    px_jac = px.jacfwd(lambda t: (t["m"] @ t["v"], t["v"]))({"m": case.dense, "v": v})
    close(actual[0]["v"], np.asarray(px_jac[0]["v"]))
    close(actual[1]["v"], np.eye(3, dtype=np.float32))


def test_derivatives_of_mapped_functions() -> None:
    case, v = matrix((2, 2, 3), 1, nse=3), full(3)
    loss = lambda m: pnp.sum((m @ v) ** 2)
    actual = px.vmap(sparse.grad(loss))(case.sparse)
    wide = sparse.grad(lambda m: pnp.sum((m @ v) ** 2))(case.sparse)
    assert actual.shape == (2, 2, 3)
    close(actual.data, np.asarray(wide.data))
    of = sparsify(lambda x: pnp.sum(pnp.tanh(x) @ v))
    actual = sparse.grad(of)(matrix(known=True).sparse)
    check(actual, np.where(actual.todense() != 0, actual.todense(), 0))


# Errors

DENSE_RESULTS: dict[str, Any] = {
    "exp": pnp.exp,
    "exp2": pnp.exp2,
    "cos": pnp.cos,
    "cosh": pnp.cosh,
    "log": pnp.log,
    "arccos": pnp.arccos,
    "rsqrt": lax.rsqrt,
    "logistic": lax.logistic,
    "is_finite": pnp.isfinite,
    "==": lambda x: x == 0,
    "!=": lambda x: x != 1,
    "<": lambda x: x < 1,
    ">=": lambda x: x >= x,
    "1 / x": lambda x: 1 / x,
    "x / x": lambda x: x / x,
    "x + 1": lambda x: x + 1,
    "x - v": lambda x: x - pnp.ones(3),
    "x ** 0": lambda x: lax.integer_pow(x, 0),
    "x ** -2": lambda x: x**-2,
    "x ** -2.5": lambda x: x**-2.5,
    "concatenate": lambda x: pnp.concatenate([x, pnp.ones((2, 3))]),
    "clip": lambda x: lax.clamp(1.0, x, 2.0),
}


@pytest.mark.parametrize("name", DENSE_RESULTS)
@pytest.mark.parametrize("compiled", [False, True])
def test_results_that_would_not_be_sparse(name: str, compiled: bool) -> None:
    of = px.jit(DENSE_RESULTS[name]) if compiled else DENSE_RESULTS[name]
    with pytest.raises(NotImplementedError, match=r"nonzero where.*sparse.todense\(\)"):
        sparsify(of)(matrix().sparse)


ROWS = lax.GatherDimensionNumbers((), (0,), (0,))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (sparsify(pnp.exp), UnsupportedRule, "primitive exp does not support sparse arrays"),
        (sparsify(pnp.max), MissingRule, "primitive reduce_max .* has no sparse rule, which spa"),
        (sparsify(lambda x: pnp.cumsum(x, 0)), NotImplementedError, "primitive cumsum"),
        (
            sparsify(lambda x: pnp.asarray(x).at[np.array([0, 5])].get(mode="fill")),
            NotImplementedError,
            "fill values for indices out of bounds: index with mode='clip' or 'promise_in_bounds'",
        ),
        (
            sparsify(lambda x: lax.gather(pnp.ones(3), x.astype(I32)[:, :1], ROWS, (1,))),
            TypeError,
            "gather of sparse arrays expects BCOO arrays",
        ),
        (sparsify(lambda x: lax.scan(lambda c, r: (c, r), 0, x)), SparseEfficiencyError, "n_batch"),
        (sparsify(lambda x: x + "a"), TypeError, r"unsupported operand|str"),
        (lambda x: sparse.grad(lambda x: x.sum(), 1)(x), ValueError, "argnums=1 .* 1 positional"),
        (lambda x: sparse.jacfwd(lambda x: x.sum(), (0, 2))(x), ValueError, r"argnums=\(0, 2\) of"),
        (lambda x: sparse.grad(lambda x: x.sum(), -2)(x), ValueError, "argnums=-2 of a call"),
        (lambda x: sparse.grad(lambda x: x @ full(3))(x), TypeError, "only .* scalar-output"),
        (lambda x: sparse.grad(lambda x: x.sum())(x.astype(I32)), TypeError, "int32"),
        (lambda x: pnp.sin(x), TypeError, "BCOO"),
        (lambda x: lax.sin(x), TypeError, "BCOO"),
        (lambda x: pnp.asarray(x), TypeError, "BCOO"),
        (lambda x: px.jit(lambda x: x, static_argnums=0)(x), ValueError, "Non-hashable static"),
        (lambda x: np.asarray(x), TypeError, "sparse|BCOO"),
        (
            lambda x: px.vmap(sparsify(lambda x: x @ full(3)))(x),
            ValueError,
            "batch dimension",
        ),
    ],
)  # fmt: skip
def test_errors(call: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        call(matrix().sparse)


def test_branches_that_store_different_numbers_of_elements() -> None:
    of = lambda c, x: lax.cond(c, lambda x: x + x, lambda x: x, x)
    with pytest.raises(TypeError, match="must have the same pytree structure"):
        sparsify(of)(True, matrix().sparse)
    of = lambda x: lax.fori_loop(0, 2, lambda i, x: x + x, x)
    with pytest.raises(TypeError, match="must have the same pytree structure"):
        sparsify(of)(matrix().sparse)


def test_another_primitive_may_be_named_jit():
    code = (
        "from primax_core.extend import Primitive\n"
        "other = Primitive('jit')\n"
        "import primax_scipy.experimental.sparse._control\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
