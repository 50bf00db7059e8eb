"""Sparse arrays against the reference: operators, transformations, ``sparsify``, errors."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from agreement import values
from sparse_sides import (
    OURS,
    THEIRS,
    agree,
    both_raise,
    close,
    derivatives_agree,
    tidy,
    untidy,
    works,
)

import primax_core as px
import primax_scipy.experimental.sparse as ours

# Operators and methods

FULL = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
CUBE = np.arange(1, 25, dtype=np.float32).reshape(2, 3, 4) - 7.5
as_array = lambda lib, x: lib.np.asarray(x)
sparsified = lambda lib, f, *xs: lib.sparse.sparsify(f)(*xs)
OPERATORS: dict[str, Callable[..., Any]] = {
    "signs": lambda lib, x: (-x, +x, abs(x)),
    "scalars": lambda lib, x: (x * 2, 2.5 * x, x / 2, x * np.float32(3), lib.np.ones(()) * x),
    "dense": lambda lib, x: (
        x + FULL, x * FULL, x / FULL, x * FULL[:1], as_array(lib, FULL) + x, as_array(lib, FULL) * x
    ),
    "sparse": lambda lib, x: (x + x, x - x, x * x, x + lib.sparse.eye(3, 4), x - 2 * x),
    "powers": lambda lib, x: (x**2, x**3, x**1),
    "products": lambda lib, x: (
        x @ FULL.T, x @ FULL[0], x @ as_array(lib, FULL.T), as_array(lib, FULL.T) @ x,
        as_array(lib, FULL[:, 0]) @ x,
    ),
    "sparse products": lambda lib, x: (x @ x.T, x @ x[0], x[:, 0] @ x),
    "turns": lambda lib, x: (x.T, x.transpose(), x.transpose((1, 0)), x.transpose([0, 1])),
    "shapes": lambda lib, x: (x.reshape(4, 3), x.reshape((2, -1)), x.reshape(-1), x.reshape(1, 12)),
    "sums": lambda lib, x: (
        x.sum(), x.sum(0), x.sum(axis=-1), x.sum((0, 1)), x.sum(0, keepdims=True)
    ),
    "types": lambda lib, x: (x.astype(np.float16), x.astype("complex64")),
    "methods": lambda lib, x: (
        x.sort_indices(), x.sum_duplicates(nse=12), x.todense(), x.update_layout(n_batch=0),
        x.update_layout(n_batch=1, on_inefficient=None),
    ),
    "integers": lambda lib, x: (x[0], x[-1], x[1, 2], x[:, 3], x[lib.np.int32(1)], x[2, -1]),
    "slices": lambda lib, x: (x[1:], x[:, ::2], x[::-1], x[::2, -1:0:-2], x[:], x[2:1], x[..., :1]),
    "new axes": lambda lib, x: (x[None], x[:, None], x[..., None, :], x[None, 1], x[..., 0]),
    "arrays": lambda lib, x: (
        x[np.array([0, 2, 0])], x[:, np.array([1, 3])], x[np.array([0, 1]), np.array([2, 3])],
        x[np.array([[0], [1]])], x[np.array([1, -1])],
    ),
    "masks": lambda lib, x: (x[np.array([True, False, True])], x[:, FULL[0] > 2], x[FULL > 5]),
    "iteration": lambda lib, x: list(x),
}  # fmt: skip
SLOPES = "signs scalars dense sparse products powers".split()


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name: str) -> None:
    call = OPERATORS[name]
    agree(call, untidy((3, 4)), eager=name in ("dense", "sparse"))
    if name in SLOPES:
        derivatives_agree(call, untidy((3, 4)))


def test_power_of_known_arrays() -> None:
    call = lambda lib, x: (x ** np.int32(2), x ** lib.np.int32(3))
    agree(call, untidy((3, 4)), concrete=True)


OF_BATCHES: dict[str, Callable[..., Any]] = {
    "arithmetic": lambda lib, x: (-x, 2 * x, x + x, x - x, x * x, x * CUBE, x + CUBE, x / CUBE),
    "smaller": lambda lib, x: (x * CUBE[:1], x * CUBE[0], x * CUBE[0, 0], x * CUBE[:, :, :1]),
    "product": lambda lib, x: (x @ CUBE.transpose(0, 2, 1), x @ CUBE[0].T, x @ CUBE[0, 0]),
    "sums": lambda lib, x: (x.sum(), x.sum(0), x.sum((0, 2)), x.sum(-1), x.sum((1, 2))),
    "parts": lambda lib, x: (x[0], x[:, 1], x[1, 2], x[..., 1:3], x[:, None], x[1:, ::-1], x[None]),
    "chosen": lambda lib, x: (x[:, np.array([0, 2])], x[np.array([1, 0])], x[..., np.array([1])]),
    "iteration": lambda lib, x: list(x),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_BATCHES)
@pytest.mark.parametrize("layout", [(1, 0), (1, 1)], ids=str)
def test_batched_operators(name: str, layout: tuple[int, int]) -> None:
    compare = works if layout[1] and name in ("product", "chosen") else agree
    compare(OF_BATCHES[name], untidy((2, 3, 4), *layout))


@pytest.mark.parametrize("layout", [(2, 0), (0, 1)], ids=str)
def test_other_batched_operators(layout: tuple[int, int]) -> None:
    call = lambda lib, x: (x * CUBE[0], x + x, x.sum(0), x.sum(-1), x[0], x[:, 1:], x[None])
    agree(call, untidy((2, 3, 4), *layout))


def test_additional_operations() -> None:
    numpy_first = lambda lib, x: (FULL + x, FULL * x, FULL.T @ x, np.float32(3) * x)
    works(numpy_first, untidy((3, 4)))
    x = untidy((2, 3, 4), 1)
    close(ours.bcoo_reduce_sum(x.made(OURS), axes=(-1,)).todense(), x.made(THEIRS).sum(2).todense())
    subtracted = lambda lib, x: (x - FULL, as_array(lib, FULL) - x, x * CUBE)
    works(subtracted, untidy((3, 4)))
    of_member = lambda lib, x: lib.api.vmap(lambda b: (b * as_array(lib, FULL), 2 * b + FULL))(x)
    works(of_member, x)
    works(
        lambda lib, x: lib.api.vmap(lambda d: (x * d, d + x))(as_array(lib, CUBE)), untidy((3, 4))
    )
    scanned = lambda lib, x: sparsified(
        lib, lambda x: lib.lax.scan(lambda c, v: (-c, c @ v + x @ v), x, FULL), x
    )
    works(scanned, untidy((3, 4)))
    two_deep = lambda b, lib: lib.api.vmap(lambda v: b @ v)(as_array(lib, FULL))
    works(lambda lib, x: lib.api.vmap(lambda b: two_deep(b, lib))(x), x)
    bools = values((3, 4), np.bool_)
    close(ours.bcoo_fromdense(bools).todense(), bools)


# Transformations


def as_made(lib: Any, data: Any, indices: Any) -> Any:
    return lib.sparse.BCOO((data, indices), shape=(3, 4))


VMAPPED: dict[str, Callable[..., Any]] = {
    "of methods": lambda lib, b, x: lib.api.vmap(
        lambda b: (
            -b, b.T, b.sum(0), b.sum(), b[1], b[:, ::2], b + b, 2 * b, b.reshape(-1), b.todense()
        )
    )(b),
    "of products": lambda lib, b, x: (
        lib.api.vmap(lambda b, x: b @ x.T)(b, CUBE),
        lib.api.vmap(lambda b: b @ FULL.T)(b),
        lib.api.vmap(lambda b, x: (b + x, x @ b.T), (0, None))(b, as_array(lib, FULL)),
        lib.api.vmap(lambda b, x: b * x)(b, CUBE),
    ),
    "closed over": lambda lib, b, x: lib.api.vmap(
        lambda d: (x @ d.T, x * d, d + x)
    )(as_array(lib, CUBE)),
    "other axes": lambda lib, b, x: lib.api.vmap(lambda v: x @ v, 1, 1)(FULL.T),
    "fromdense": lambda lib, b, x: lib.api.vmap(
        lambda d: lib.sparse.bcoo_fromdense(d, nse=13)
    )(CUBE),
    "extract": lambda lib, b, x: lib.api.vmap(lib.sparse.bcoo_extract)(b, CUBE),
    "functions": lambda lib, b, x: lib.api.vmap(
        lambda b: (lib.sparse.bcoo_sort_indices(b), lib.sparse.bcoo_sum_duplicates(b, nse=6))
    )(b),
    "sparse products": lambda lib, b, x: (
        lib.api.vmap(lambda b: (b * b, b @ b.T, b + x, b * x))(b)
    ),
    "parts": lambda lib, b, x: lib.api.vmap(
        lambda d, i: as_made(lib, d, i).todense(), (0, None)
    )(b.data, b.indices[0]),
}  # fmt: skip


@pytest.mark.parametrize("name", VMAPPED)
def test_vmap(name: str) -> None:
    args = untidy((2, 3, 4), 1), untidy((3, 4), seed=3)
    agree(VMAPPED[name], *args, eager=name == "of products")
    if name in ("of methods", "of products", "closed over", "fromdense"):
        derivatives_agree(VMAPPED[name], *args)


def test_vmap_of_two_batch_dimensions() -> None:
    twice = lambda lib, x: lib.api.vmap(lib.api.vmap(lambda v: (2 * v, v @ FULL[0])))(x)
    agree(twice, untidy((2, 3, 4), 2))
    agree(lambda lib, x: lib.api.vmap(lambda v: (v[1], v + v))(x), untidy((2, 3, 4), 1, 1))


def loops(lib: Any, x: Any, y: Any) -> Any:
    lax = lib.lax
    halved = lax.fori_loop(0, 3, lambda n, c: c / 2, x)
    doubled = lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, 2 * c[1]), (0, x))
    carried, sums = lax.scan(lambda c, v: (-c, c @ v), x, FULL)
    member = lambda total, d: (total + as_made(lib, *d).todense(), as_made(lib, *d) @ FULL[0])
    members = lax.scan(member, lib.np.zeros((3, 4)), (y.data, y.indices))
    chosen = lax.cond(sums.sum() > 0, lambda x: x, lambda x: -x, x)
    return halved, doubled, carried, sums, members, chosen


def test_control_flow() -> None:
    args = untidy((3, 4)), untidy((2, 3, 4), 1)
    agree(loops, *args)
    first = lambda lib, x, y: loops(lib, x, y)[2:]
    derivatives_agree(first, *args)
    b = untidy((2, 3, 4), 1)
    scanned = lambda lib: (
        lambda c, x: (c + x.sum(), x.sum(0).todense() if lib is OURS else x.sum(0))
    )
    total, sums = px.lax.scan(scanned(OURS), 0.0, b.made(OURS))
    expected = jax.lax.scan(scanned(THEIRS), 0.0, b.made(THEIRS).todense())
    close(total, expected[0])
    close(sums, expected[1])


def test_compositions() -> None:
    def loss(lib: Any) -> Callable:
        return lambda x, w: (lib.np.tanh(x @ w) ** 2).sum()

    def call(lib: Any, x: Any, w: Any) -> Any:
        of_data = lambda d, w: loss(lib)(as_made(lib, d, x.indices), w)
        api = lib.api
        return (
            api.grad(of_data, (0, 1))(x.data, w),
            api.jit(api.hessian(of_data, 1))(x.data, w),
            api.jacfwd(api.grad(of_data))(x.data, w),
            api.vmap(api.grad(of_data), (None, 0))(x.data, lib.np.stack([w, 2 * w])),
            api.linearize(of_data, x.data, w)[0],
            api.checkpoint(of_data)(x.data, w),
        )

    agree(call, untidy((3, 4)), values((4, 2), np.float32, 2))


def test_sparse_gradients() -> None:
    def call(lib: Any, x: Any, y: Any, w: Any) -> Any:
        s = lib.sparse
        loss = lambda x, w: ((x @ w) ** 2).sum()
        more = lambda x, y, w: (((x @ w) * (y @ w)).sum(), {"aux": 2 * x})
        return (
            s.grad(loss)(x, w),
            s.grad(loss, 1)(x, w),
            s.grad(loss, (0, 1))(x, w),
            s.value_and_grad(loss)(x, w),
            s.grad(more, (0, 1, 2), has_aux=True)(x, y, w),
            s.value_and_grad(more, 1, has_aux=True)(x, y, w),
            s.grad(lambda x: s.sparsify(lib.np.sum)(x * x))(x),
            s.grad(lambda t: loss(t["a"], t["b"]))({"a": x, "b": w}),
            s.jacfwd(lambda x: x @ w[:, 0])(x),
            s.jacrev(lambda x: x @ w[:, 0])(x),
        )

    args = untidy((3, 4)), tidy((3, 4)), values((4, 2), np.float32, 2)
    agree(call, *args, eager=True)


# Sparsify

ELEMENTWISE = (
    "abs negative square sin tan sinh tanh arcsin arctan arcsinh arctanh sqrt log1p expm1 "
    "real conj deg2rad rad2deg"
).split()
SPARSIFIED: dict[str, Callable[..., Any]] = {
    "elementwise": lambda lib, x, y, w: [getattr(lib.np, name)(y) for name in ELEMENTWISE],
    "of duplicates": lambda lib, x, y, w: (lib.np.abs(x), lib.np.tanh(x), lib.np.sqrt(x)),
    "sums": lambda lib, x, y, w: (
        lib.np.sum(x), lib.np.sum(x, 1), lib.np.sum(x, 0, keepdims=True), lib.np.mean(x),
        lib.np.mean(x, 0), lib.np.linalg.norm(x),
    ),
    "matmul": lambda lib, x, y, w: (lib.np.matmul(x, w), lib.np.dot(x, w), lib.np.dot(w.T, x.T)),
    "matmul of sparse": lambda lib, x, y, w: (x @ y.T, lib.np.dot(x.T, y), lib.np.vdot(x, y)),
    "einsum": lambda lib, x, y, w: (
        lib.np.einsum("ij,jk->ik", x, w), lib.np.einsum("ij,jk->ki", x, w),
        lib.np.einsum("ij->j", x), lib.np.einsum("ij,jk->", x, w), lib.np.einsum("ij->ji", x),
    ),
    "tensordot": lambda lib, x, y, w: (
        lib.np.tensordot(x, w, 1), lib.np.tensordot(x, FULL, 2),
        lib.np.tensordot(x, y, ((0,), (0,))), lib.np.inner(x, w.T),
    ),
    "outer": lambda lib, x, y, w: (lib.np.outer(x, y), lib.np.kron(x, y)),
    "turns": lambda lib, x, y, w: (
        lib.np.transpose(x), x.T, lib.np.swapaxes(x, 0, 1), lib.np.moveaxis(x, 0, 1),
        lib.np.flip(x), lib.np.roll(x, 1, 0),
    ),
    "joins": lambda lib, x, y, w: (
        lib.np.concatenate([x, y]), lib.np.concatenate([x, y, x], 1), lib.np.stack([x, y]),
        lib.np.vstack([x, y]), lib.np.hstack([x, y]),
    ),
    "shapes": lambda lib, x, y, w: (
        lib.np.reshape(x, (2, 6)), lib.np.ravel(x), lib.np.expand_dims(x, 0), x[None], x[:, None],
        lib.np.squeeze(x[:, None]), lib.np.broadcast_to(x, (1, 3, 4)),
        lib.np.broadcast_to(x, (2, 3, 4)),
    ),
    "parts": lambda lib, x, y, w: (
        x[0], x[:, 1], x[1:, ::2], x[lib.np.array([2, 0])],
        lib.lax.dynamic_slice(x, (1, 0), (2, 2)), lib.lax.slice(x, (0, 1), (3, 4)), lib.np.copy(x),
    ),
    "arithmetic": lambda lib, x, y, w: (
        x + y, x - y, x * y, 2 * x, x / 2, x * FULL, FULL * x, x + FULL, x**2, -x, 2.5 * x + y
    ),
    "types": lambda lib, x, y, w: (
        x.astype(np.float16), lib.lax.convert_element_type(x, np.complex64)
    ),
    "no sparse arguments": lambda lib, x, y, w: (lib.np.exp(w), lib.np.where(w > 0, w, 0), w[0]),
    "constants": lambda lib, x, y, w: (lib.np.zeros(3), x, w, 2.0),
    "trees": lambda lib, x, y, w: {"a": (x, [2 * y, None]), "b": lib.np.sum(w)},
    "todense": lambda lib, x, y, w: (
        lib.np.exp(lib.sparse.todense(x)), lib.sparse.todense(w), lib.sparse.todense(x.T) @ y
    ),
    "nested jit": lambda lib, x, y, w: lib.api.jit(lambda x, w: (x @ w, 2 * x))(x + y, w),
    "cond": lambda lib, x, y, w: (
        lib.lax.cond(w[0, 0] > 0, lambda x: 2 * x, lambda x: -x, x),
        lib.lax.cond(True, lambda x, w: x @ w, lambda x, w: (2 * x) @ w, x, w),
    ),
    "while": lambda lib, x, y, w: lib.lax.while_loop(
        lambda c: c[1] < 3, lambda c: (2 * c[0], c[1] + 1, c[2] + c[0] @ w), (x, 0, 0 * (x @ w))
    ),
    "fori": lambda lib, x, y, w: lib.lax.fori_loop(
        0, 3, lambda n, c: (c[0] / 2, c[1] + c[0].sum()), (x, 0.0)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SPARSIFIED)
def test_sparsify(name: str) -> None:
    call = lambda lib, *xs: lib.sparse.sparsify(lambda *a: SPARSIFIED[name](lib, *a))(*xs)
    args = untidy((3, 4)), tidy((3, 4), seed=5), values((4, 3), np.float32, 2)
    agree(call, *args, eager=name in ("arithmetic", "nested jit", "cond", "while"))
    if name in ("sums", "einsum", "joins", "cond"):
        derivatives_agree(call, *args)


def test_sparsify_composed() -> None:
    args = untidy((2, 3, 4), 1), values((4, 2), np.float32, 2)
    product = lambda lib: lib.sparse.sparsify(lambda x, w: lib.np.sin(x) @ w)
    agree(lambda lib, x, w: lib.api.vmap(product(lib), (0, None))(x, w), *args)
    loss = lambda lib: lib.sparse.sparsify(lambda x, w: lib.np.sum((lib.np.tanh(x) @ w) ** 2))
    agree(lambda lib, x, w: lib.api.grad(loss(lib), 1)(x, w), *args)
    agree(lambda lib, x, w: lib.sparse.grad(loss(lib), (0, 1))(x, w), *args)
    inside = lambda lib, w: lib.sparse.sparsify(lambda w: lib.sparse.eye(3, 4) @ w)(w)
    agree(inside, args[1])


# Errors

ONE = np.ones(2, np.float32), np.zeros((2, 2), np.int32)
REFUSED: dict[str, Callable[..., Any]] = {
    "fewer data": lambda lib, x, b: lib.sparse.BCOO((ONE[0][:1], ONE[1]), shape=(3, 4)),
    "fewer dimensions": lambda lib, x, b: lib.sparse.BCOO(ONE, shape=(3,)),
    "more dimensions": lambda lib, x, b: lib.sparse.BCOO(ONE, shape=(3, 4, 5)),
    "inexact indices": lambda lib, x, b: lib.sparse.BCOO((ONE[0], ONE[1] * 1.0), shape=(3, 4)),
    "one buffer": lambda lib, x, b: lib.sparse.BCOO(ONE[:1], shape=(3, 4)),
    "no shape": lambda lib, x, b: lib.sparse.BCOO(ONE),
    "other batches": lambda lib, x, b: lib.sparse.BCOO((b.data[0], b.indices), shape=b.shape),
    "many batches": lambda lib, x, b: lib.sparse.bcoo_fromdense(FULL, n_batch=3),
    "negative batches": lambda lib, x, b: lib.sparse.bcoo_fromdense(FULL, n_batch=-1),
    "fromdense in jit": lambda lib, x, b: lib.api.jit(lib.sparse.bcoo_fromdense)(FULL),
    "duplicates in jit": lambda lib, x, b: lib.api.jit(lib.sparse.bcoo_sum_duplicates)(x),
    "todense of a number": lambda lib, x, b: lib.sparse.bcoo_todense(3),
    "plus scalar": lambda lib, x, b: x + 1,
    "scalar plus": lambda lib, x, b: 1 + x,
    "plus smaller": lambda lib, x, b: x + FULL[0],
    "over sparse": lambda lib, x, b: 2 / x,
    "sparse over sparse": lambda lib, x, b: x / x,
    "equal": lambda lib, x, b: x == x,
    "less": lambda lib, x, b: x < x,
    "inverse power": lambda lib, x, b: x**-1,
    "zeroth power": lambda lib, x, b: x**0,
    "power of two": lambda lib, x, b: 2**x,
    "exp": lambda lib, x, b: sparsified(lib, lib.np.exp, x),
    "cos": lambda lib, x, b: sparsified(lib, lib.np.cos, x),
    "sort": lambda lib, x, b: sparsified(lib, lib.np.sort, x),
    "cumsum": lambda lib, x, b: sparsified(lib, lib.np.cumsum, x),
    "times another shape": lambda lib, x, b: x * FULL[:2],
    "times sparse of another shape": lambda lib, x, b: x * x[:2],
    "plus sparse of another shape": lambda lib, x, b: x + x[:2],
    "product of other sizes": lambda lib, x, b: x @ FULL,
    "product with scalar": lambda lib, x, b: x @ 2,
    "product of sparse of other sizes": lambda lib, x, b: x @ x,
    "invert": lambda lib, x, b: ~x,
    "modulo": lambda lib, x, b: x % 2,
    "float": lambda lib, x, b: float(x),
    "hash": lambda lib, x, b: hash(x),
    "assignment": lambda lib, x, b: operator.setitem(x, 0, 1),
    "length of none": lambda lib, x, b: len(x[0, 0]),
    "iteration of none": lambda lib, x, b: list(x[0, 0]),
    "turn of a batch": lambda lib, x, b: b.T,
    "not a permutation": lambda lib, x, b: x.transpose((0, 0)),
    "short permutation": lambda lib, x, b: x.transpose((0,)),
    "reshape of a batch": lambda lib, x, b: b.reshape(6, 4),
    "reshape to another size": lambda lib, x, b: x.reshape(5, 2),
    "indices": lambda lib, x, b: x[0, 1, 2],
    "name as index": lambda lib, x, b: x["a"],
    "number as index": lambda lib, x, b: x[1.5],
    "short mask": lambda lib, x, b: x[np.array([True, False])],
    "inefficient": lambda lib, x, b: x.update_layout(n_batch=1),
    "inefficient rows": lambda lib, x, b: x.update_layout(n_dense=1),
    "layout of three": lambda lib, x, b: x.update_layout(n_dense=3),
    "negative layout": lambda lib, x, b: x.update_layout(n_batch=-1),
    "concatenate none": lambda lib, x, b: lib.sparse.bcoo_concatenate([], dimension=0),
    "concatenate at 2": lambda lib, x, b: lib.sparse.bcoo_concatenate([x, x], dimension=2),
    "concatenate others": lambda lib, x, b: lib.sparse.bcoo_concatenate([x, x[:2]], dimension=1),
    "concatenate ranks": lambda lib, x, b: lib.sparse.bcoo_concatenate([x, b], dimension=0),
    "squeeze of three": lambda lib, x, b: lib.sparse.bcoo_squeeze(x, dimensions=(0,)),
    "squeeze at 2": lambda lib, x, b: lib.sparse.bcoo_squeeze(x, dimensions=(2,)),
    "sum at 2": lambda lib, x, b: lib.sparse.bcoo_reduce_sum(x, axes=(2,)),
    "slice of no step": lambda lib, x, b: lib.sparse.bcoo_slice(
        x, start_indices=(0, 0), limit_indices=(2, 2), strides=(0, 1)
    ),
    "slice outside": lambda lib, x, b: lib.sparse.bcoo_slice(
        x, start_indices=(0, 0), limit_indices=(4, 2)
    ),
    "slice of one": lambda lib, x, b: lib.sparse.bcoo_slice(
        x, start_indices=(0,), limit_indices=(2,)
    ),
    "large dynamic slice": lambda lib, x, b: lib.sparse.bcoo_dynamic_slice(x, (0, 0), (4, 2)),
    "short dynamic slice": lambda lib, x, b: lib.sparse.bcoo_dynamic_slice(x, (0,), (2,)),
    "reverse at 2": lambda lib, x, b: lib.sparse.bcoo_rev(x, (2,)),
    "reverse twice": lambda lib, x, b: lib.sparse.bcoo_rev(x, (0, 0)),
    "extract from another shape": lambda lib, x, b: lib.sparse.bcoo_extract(x, FULL[:2]),
    "dot of other sizes": lambda lib, x, b: lib.sparse.bcoo_dot_general(
        x, FULL, dimension_numbers=(([1], [0]), ([], []))
    ),
    "dot of dense": lambda lib, x, b: lib.sparse.bcoo_dot_general_sampled(
        FULL, FULL, x.indices, dimension_numbers=(([1], [0]), ([], []))
    ),
    "many random": lambda lib, x, b: lib.sparse.random_bcoo(
        lib.random.key(0), (3, 4), dtype=np.float32, nse=13
    ),
    "gradient of no argument": lambda lib, x, b: lib.sparse.grad(lambda x: x.sum(), 1)(x),
    "gradient of no scalar": lambda lib, x, b: lib.sparse.grad(lambda x: x.todense())(x),
    "gradient of integers": lambda lib, x, b: lib.sparse.grad(lambda x: x.sum())(x.astype(int)),
    "plain gradient": lambda lib, x, b: lib.api.grad(lambda x: x.sum())(x),
    "axis of no batch": lambda lib, x, b: lib.api.vmap(lambda x: x.todense(), 1)(b),
    "axis to no batch": lambda lib, x, b: lib.api.vmap(lambda x: 2 * x, out_axes=1)(b).todense(),
    "no batch": lambda lib, x, b: lib.api.vmap(lambda x: 2 * x)(x),
    "unknown choice": lambda lib, x, b: x.update_layout(n_batch=1, on_inefficient="perhaps"),
    "numpy function": lambda lib, x, b: lib.np.sin(x),
    "unknown format": lambda lib, x, b: lib.sparse.empty((2, 3), sparse_format="bad"),
    "branches of two kinds": lambda lib, x, b: sparsified(
        lib, lambda x: lib.lax.cond(True, lambda x: x, lambda x: lib.sparse.todense(x), x), x
    ),
    "carry of another kind": lambda lib, x, b: sparsified(
        lib, lambda x: lib.lax.fori_loop(0, 2, lambda n, c: c + FULL, x), x
    ),
    "carry that grows": lambda lib, x, b: lib.lax.fori_loop(0, 2, lambda n, c: c + c, x),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_errors(name: str) -> None:
    both_raise(REFUSED[name], tidy((3, 4)), tidy((2, 3, 4), 1))


def test_inefficiency_warns() -> None:
    for lib in (OURS, THEIRS):
        with pytest.warns(lib.sparse.SparseEfficiencyWarning):
            tidy((3, 4)).made(lib).update_layout(n_batch=1, on_inefficient="warn")
