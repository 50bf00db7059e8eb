"""Sparse arrays against the reference: construction, and every function in every layout."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from agreement import values
from sparse_sides import (
    OURS,
    THEIRS,
    Stored,
    agree,
    close,
    derivatives_agree,
    honest,
    tidy,
    untidy,
    works,
)

import primax_core as px
import primax_scipy.experimental.sparse as ours

# Construction and properties

LAYOUTS: dict[str, tuple[tuple[int, ...], int, int]] = {
    "vector": ((5,), 0, 0),
    "matrix": ((3, 4), 0, 0),
    "rows": ((3, 4), 0, 1),
    "all-batch": ((2, 3), 2, 0),
    "cube": ((2, 3, 4), 0, 0),
    "batched": ((2, 3, 4), 1, 0),
    "two-batches": ((2, 3, 4), 2, 0),
    "four": ((2, 3, 1, 4), 1, 1),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_properties(layout: str) -> None:
    names = (
        "shape dtype nse n_batch n_sparse n_dense ndim size indices_sorted unique_indices"
    ).split()  # fmt: skip
    for make in (untidy, tidy):
        stored = make(*LAYOUTS[layout])
        o, t = stored.made(OURS), stored.made(THEIRS)
        if not stored.n_sparse:  # the reference always reports unique indices
            names = [n for n in names if n != "unique_indices"]
        assert {n: getattr(o, n) for n in names} == {n: getattr(t, n) for n in names}
        assert repr(o) == repr(t) and str(o) == str(t) and len(o) == len(t)
        with pytest.raises(TypeError):
            hash(o)
        honest(o)
        leaves, tree = px.tree.flatten(o)
        assert [x.shape for x in leaves] == [stored.data.shape, stored.indices.shape]
        back = px.tree.unflatten(tree, leaves)
        assert {n: getattr(back, n) for n in names} == {n: getattr(t, n) for n in names}
        for same in (px.tree.map(lambda x: x, {"a": (o,)})["a"][0], px.jit(lambda x: x)(o)):
            assert repr(same) == repr(t) and same.indices_sorted == t.indices_sorted
            close(same.data, t.data)
            close(same.indices, t.indices)
        again = px.tree.unflatten(tree, [2 * leaves[0], leaves[1]])
        np.testing.assert_allclose(again.todense(), 2 * np.asarray(t.todense()))


@pytest.mark.parametrize("dtype", [np.int32, np.float16, np.complex64])
def test_dtypes(dtype: Any) -> None:
    calls: list[Callable] = [
        lambda lib, x: (x, x.T, x.sum(0), -x, x * x, x + x, x - x, x / 2, 3 * x, x @ x.T, abs(x)),
        lambda lib, x: (x @ values((4, 2), np.float32), x @ values((4, 2), np.int32)),
        lambda lib, x: (x * values((3, 4), np.complex64), x + values((3, 4), np.int32)),
        lambda lib, x: [x.astype(t) for t in ("complex64", "int8")[: 2 - (dtype is np.complex64)]],
    ]
    if dtype is np.float16:
        del calls[2:]  # rounding to another dtype before or after the sum
    agree(lambda lib, x: [call(lib, x) for call in calls], untidy((3, 4), dtype=dtype))


def test_batches_of_size_one() -> None:
    """Batches in which all examples share their data or their indices."""
    x = untidy((2, 3, 4), 1)
    one_data = Stored(x.data[:1], x.indices, (2, 3, 4), 1)
    one_indices = Stored(x.data, x.indices[:1], (2, 3, 4), 1)
    full = values((2, 3, 4), np.float32, 5)
    extracted = lambda lib, x: lib.sparse.bcoo_extract(x, full)
    agree(
        lambda lib, *xs: [
            (x, -x, x * 2, x[1], x[:, 1:], x + x, x.transpose((0, 2, 1)), x * full, x @ full[0].T)
            for x in xs
        ],
        one_data,
        one_indices,
    )
    agree(lambda lib, x: (x.sum(2), x.sum(0), x.sort_indices(), extracted(lib, x)), one_data)
    works(lambda lib, x: (x.sum(2), x.sum(0), x.reshape(2, 2, 6)), one_indices)
    for stored in (one_data, one_indices):
        rebuilt = stored.made(OURS).update_layout(n_batch=0)
        close(rebuilt.todense(), stored.made(THEIRS).todense())


def test_constructors() -> None:
    for call in (
        lambda lib: lib.sparse.BCOO(([1.0, 2.0], [[0, 0], [2, 1]]), shape=(3, 2)),
        lambda lib: lib.sparse.BCOO(([1, 2], np.int8([[0], [2]])), shape=[4]),
        lambda lib: lib.sparse.empty((2, 3)),
        lambda lib: lib.sparse.empty((2, 3), np.int32, n_batch=1, nse=2),
        lambda lib: lib.sparse.empty((2, 3), np.float16, n_dense=1, index_dtype=np.int8),
        lambda lib: [lib.sparse.eye(*a) for a in ((3,), (3, 4), (3, 4, 1), (3, 4, -2), (3, 2, 5))],
        lambda lib: lib.sparse.eye(3, dtype=np.int32, index_dtype=np.int16),
        lambda lib: [lib.sparse.eye(3, 4, k, n_batch=1) for k in (0, 1, -1)],
        lambda lib: [lib.sparse.eye(3, 4, k, n_dense=1) for k in (0, 1)],
        lambda lib: [lib.sparse.eye(3, n_batch=2), lib.sparse.eye(3, n_batch=1, n_dense=1)],
    ):
        agree(call, exact=True, concrete=True)
    x = tidy((3, 4)).made(OURS).todense()
    close(ours.todense(x), x)
    assert ours.todense(3.0) == 3.0


@pytest.mark.parametrize("options", [
    {"nse": 5, "indices_dtype": np.int16}, {"nse": 0.5, "n_batch": 1}, {"n_dense": 1, "nse": 2},
    {"sorted_indices": True, "unique_indices": False, "dtype": np.int32, "nse": 9},
])  # fmt: skip
def test_random(options: dict[str, Any]) -> None:
    options = {"dtype": np.float32, **options}
    if options["dtype"] is np.int32:
        options["generator"] = lambda key, shape, dtype: np.ones(shape, dtype)
    arrays = [
        lib.sparse.random_bcoo(lib.random.key(0), (3, 4), **options) for lib in (OURS, THEIRS)
    ]
    of = lambda x: (x.shape, x.dtype, x.nse, x.n_batch, x.n_dense, x.indices.dtype)
    assert of(arrays[0]) == of(arrays[1])
    honest(arrays[0])
    rows = np.asarray(arrays[0].indices)
    assert (rows >= 0).all() and (
        rows < np.array([3, 4][arrays[0].n_batch :][: rows.shape[-1]])
    ).all()
    if options.get("unique_indices", True):
        for at in np.ndindex(*rows.shape[:-2]):
            assert len({tuple(row) for row in rows[at]}) == rows.shape[-2]


EDGES: dict[str, Stored] = {
    "no elements": Stored(np.zeros(0, np.float32), np.zeros((0, 2), np.int32), (2, 3)),
    "no rows": Stored(np.zeros(0, np.float32), np.zeros((0, 2), np.int32), (0, 3)),
    "small indices": Stored(np.float32([1, 2]), np.int8([[1, 0], [0, 2]]), (2, 3)),
}


@pytest.mark.parametrize("name", EDGES)
def test_edges(name: str) -> None:
    def call(lib: Any, x: Any) -> Any:
        right = np.arange(6, dtype=np.float32).reshape(3, 2)
        return x, -x, x + x, x * x, x @ right, x.T, x.sum(0), x.sum(), x[:, 1:], x[..., 0], abs(x)

    agree(call, EDGES[name])


def test_no_dimensions() -> None:
    call = lambda lib, x: (x, x + x, 2 * x, x * x, x.sum(), x.todense())
    agree(call, Stored(np.float32([3]), np.zeros((1, 0), np.int32), ()))


# Every function in every layout


def transposes(x: Stored) -> Iterator[dict[str, Any]]:
    axes, end = list(range(len(x.shape))), x.n_batch + x.n_sparse
    kinds = axes[: x.n_batch], axes[x.n_batch : end], axes[end:]
    for parts in itertools.product(*map(itertools.permutations, kinds)):
        yield {"permutation": tuple(itertools.chain(*parts))}


def reductions(x: Stored) -> Iterator[dict[str, Any]]:
    for count in range(min(len(x.shape), 3) + 1):
        for axes in itertools.combinations(range(len(x.shape)), count):
            yield {"axes": axes}


def layouts(x: Stored) -> Iterator[dict[str, Any]]:
    for n_batch, n_dense in itertools.product(range(x.n_batch + 1), range(x.n_dense + 1)):
        yield {"n_batch": n_batch, "n_dense": n_dense}


def wider_layouts(x: Stored) -> Iterator[dict[str, Any]]:
    for n_batch, n_dense in itertools.product(range(3), range(3)):
        fits = n_batch + n_dense <= len(x.shape)
        if fits and (n_batch > x.n_batch or n_dense > x.n_dense):
            yield {"n_batch": n_batch, "n_dense": n_dense, "on_inefficient": None}


def slices(x: Stored) -> Iterator[dict[str, Any]]:
    n, stop = len(x.shape), list(x.shape)
    some = [min(1, s - 1) for s in x.shape]
    yield {"start_indices": [0] * n, "limit_indices": [max(s - 1, 1) for s in x.shape]}
    yield {"start_indices": some, "limit_indices": stop, "strides": [2] * n}
    yield {"start_indices": [0] * n, "limit_indices": stop, "strides": [1, 2, 3, 1][:n]}


def dynamic_slices(x: Stored) -> Iterator[dict[str, Any]]:
    n = len(x.shape)
    sizes = [max(s - 1, 1) for s in x.shape]
    yield {"start_indices": np.arange(n, dtype=np.int32), "slice_sizes": [1] * n}
    yield {"start_indices": [-1, 7, 0, 0][:n], "slice_sizes": sizes}


def reversals(x: Stored) -> Iterator[dict[str, Any]]:
    for axes in ((), *((axis,) for axis in range(len(x.shape))), tuple(range(len(x.shape)))):
        yield {"dimensions": axes}


def broadcasts(x: Stored) -> Iterator[dict[str, Any]]:
    n, first, rest = len(x.shape), x.shape[:1], x.shape[1:]
    yield {"shape": (1, *x.shape), "broadcast_dimensions": range(1, n + 1)}
    if x.n_batch == 0:
        yield {"shape": (*first, 1, *rest), "broadcast_dimensions": (0, *range(2, n + 1))}
    else:
        yield {"shape": (3, *x.shape), "broadcast_dimensions": range(1, n + 1)}
    if x.n_dense:
        yield {"shape": (*x.shape, 2), "broadcast_dimensions": range(n)}


def reshapes(x: Stored) -> Iterator[dict[str, Any]]:
    """Reshape batch and sparse dimensions separately; dense dimensions are tested below."""
    if x.n_dense:
        return
    batch, sizes = x.shape[: x.n_batch], x.shape[x.n_batch :]
    if sizes:
        yield {"new_sizes": (*batch, math.prod(sizes))}
        yield {"new_sizes": (*batch, 1, *sizes[::-1])}
    if batch:
        yield {"new_sizes": (math.prod(batch), *sizes)}
        yield {"new_sizes": (1, *batch, *sizes)}
    if len(sizes) > 1:
        order = (*range(x.n_batch), *range(len(x.shape) - 1, x.n_batch - 1, -1))
        yield {"new_sizes": (*batch, math.prod(sizes)), "dimensions": order}


ALL = tuple(LAYOUTS)
SOME = "matrix", "rows", "batched", "four"
FUNCTIONS: dict[str, tuple[tuple[str, ...], Callable[[Stored], Iterator[dict[str, Any]]]]] = {
    "sort_indices": (SOME, lambda x: iter([{}])),
    "sum_duplicates": (SOME, lambda x: iter([{"nse": x.indices.shape[-2]}, {"nse": 1}])),
    "transpose": (ALL, transposes),
    "reduce_sum": (ALL, reductions),
    "update_layout": (SOME, layouts),
    "wider update_layout": (("matrix", "batched"), wider_layouts),
    "slice": (SOME, slices),
    "dynamic_slice": (SOME, dynamic_slices),
    "rev": (SOME, reversals),
    "broadcast_in_dim": (ALL, broadcasts),
    "reshape": (ALL, reshapes),
}
EXACT = {"sort_indices", "sum_duplicates", "transpose", "reduce_sum", "update_layout"}


@pytest.mark.parametrize("name, layout", [(n, k) for n, (ks, _) in FUNCTIONS.items() for k in ks])
def test_functions(name: str, layout: str) -> None:
    pair = untidy(*LAYOUTS[layout]), tidy(*LAYOUTS[layout])
    every = list(FUNCTIONS[name][1](pair[0]))
    every *= 1 + (len(every) < 3)

    def call(lib: Any, *xs: Any) -> Any:
        function = getattr(lib.sparse, f"bcoo_{name.split()[-1]}")
        return [function(xs[n % 2], **params) for n, params in enumerate(every)]

    agree(call, *pair, exact=name in EXACT)


@pytest.mark.parametrize("name", ["transpose", "reduce_sum", "slice", "reshape", "sum_duplicates"])
def test_derivatives_of_functions(name: str) -> None:
    for layout in ("matrix", "batched"):
        x = untidy(*LAYOUTS[layout])
        every = list(FUNCTIONS[name][1](x))[-3:]
        f = lambda lib, x, every=every: [getattr(lib.sparse, f"bcoo_{name}")(x, **p) for p in every]
        derivatives_agree(f, x)


def test_sum_duplicates_of_known_indices() -> None:
    """Without a given number of elements, the result has exactly as many as needed."""
    for x in (untidy((3, 4), 1), tidy((3, 4), 0, 1)):
        agree(lambda lib, x: x.sum_duplicates(), x, exact=True, concrete=True)


def test_reshapes_with_dense_dimensions() -> None:
    works(lambda lib, x: (x.reshape(1, 3, 4), x.reshape(3, 2, 2)), untidy((3, 4), 0, 1))
    works(lambda lib, x: (x.reshape(2, 1, 3, 4), x.reshape(1, 2, 3, 4)), untidy((2, 3, 4), 1, 1))


@pytest.mark.parametrize("layout", (*SOME, "all-batch"))
def test_fromdense_and_extract(layout: str) -> None:
    shape, n_batch, n_dense = LAYOUTS[layout]
    x = np.where(values(shape, np.bool_, 3), values(shape, np.float32), np.float32(0))
    size = {"n_batch": n_batch, "n_dense": n_dense}

    make = lambda lib, x, **params: lib.sparse.bcoo_fromdense(x, **size, **params)
    if layout == "batched":
        agree(lambda lib: make(lib, x, index_dtype=np.int16), exact=True, concrete=True)
        agree(lambda lib: lib.sparse.BCOO.fromdense(x, **size), exact=True, concrete=True)
    pair = untidy(*LAYOUTS[layout]), tidy(*LAYOUTS[layout])
    other = values(shape, np.float32, 4)

    def call(lib: Any, a: Any, b: Any, x: Any) -> Any:
        extract = lib.sparse.bcoo_extract
        unique = [extract(s, other, assume_unique=True) for s in (a, b)]
        return unique, make(lib, x, nse=2), make(lib, x, nse=20), extract(b, x)

    agree(call, *pair, x, exact=True)
    agree(lambda lib, a: lib.sparse.bcoo_extract(a, other), pair[0])
    if layout in ("rows", "batched"):
        derivatives_agree(lambda lib, a, b, x: (*call(lib, a, b, x)[1:], a.todense()), *pair, x)


@pytest.mark.parametrize("layout", SOME)
def test_concatenate(layout: str) -> None:
    shape, n_batch, n_dense = LAYOUTS[layout]
    operands = []
    for axis in range(len(shape) - n_dense):
        wider = [s + (n == axis) for n, s in enumerate(shape)]
        x = tidy(shape, n_batch, n_dense, seed=axis)
        operands += [x, tidy(wider, n_batch, n_dense, seed=4) if axis >= n_batch else x]

    def call(lib: Any, *xs: Any) -> Any:
        pairs = enumerate(zip(xs[::2], xs[1::2]))
        return [lib.sparse.bcoo_concatenate([a, b, a], dimension=n) for n, (a, b) in pairs]

    agree(call, *operands, exact=True)
    if layout != "rows":  # the reference's padding becomes part of the array
        derivatives_agree(call, *operands)


@pytest.mark.parametrize("layout", SOME)
def test_multiply(layout: str) -> None:
    pair = untidy(*LAYOUTS[layout]), tidy(*LAYOUTS[layout], seed=9)
    shape = pair[0].shape
    full = np.arange(1, math.prod(shape) + 1, dtype=np.float32).reshape(shape)

    def by_dense(lib: Any, a: Any, x: Any) -> Any:
        others = (x, x[:1], x[..., :1], x[0], np.float32(3))
        results = [lib.sparse.bcoo_multiply_dense(a, o) for o in others]
        return [lib.sparse.BCOO((data, a.indices), shape=shape) for data in results]

    by_sparse = lambda lib, a, b: [lib.sparse.bcoo_multiply_sparse(a, o) for o in (a, b)]
    agree(by_dense, pair[0], full)
    agree(by_sparse, *pair)
    if layout == "batched":
        derivatives_agree(by_dense, pair[0], full)
    if layout == "rows":
        derivatives_agree(by_sparse, *pair)


SQUEEZES = [
    ((1, 3, 1, 1), 1, 1, (0,)), ((1, 3, 1, 1), 1, 1, (2, 3)), ((1, 3, 1, 1), 2, 0, (0, 3)),
    ((1, 3, 1, 3), 0, 2, (2,)), ((1, 4, 1), 0, 0, (0, 2)),
]  # fmt: skip


@pytest.mark.parametrize("shape, n_batch, n_dense, axes", SQUEEZES)
def test_squeeze(shape: Any, n_batch: int, n_dense: int, axes: Any) -> None:
    call = lambda lib, *xs: [
        [lib.sparse.bcoo_squeeze(x, dimensions=d) for d in (axes, ())] for x in xs
    ]
    agree(call, untidy(shape, n_batch, n_dense), tidy(shape, n_batch, n_dense), eager=True)


def test_squeeze_of_all_sparse_dimensions() -> None:
    """The reference counts the padding here."""
    works(
        lambda lib, x: x[:, 0, :] if lib is THEIRS else lib.sparse.bcoo_squeeze(x, dimensions=(1,)),
        untidy((2, 1, 4), 1, 1),
    )


# left layout, right layout or dense shape, contracted and batched axes
DOTS: list[tuple[Any, Any, Any]] = [
    (((5,), 0, 0), (5,), (([0], [0]), ([], []))),
    (((3, 4), 0, 0), (4,), (([1], [0]), ([], []))),
    (((3, 4), 0, 0), (4, 2), (([1], [0]), ([], []))),
    (((3, 4), 0, 0), (2, 3), (([0], [1]), ([], []))),
    (((3, 4), 0, 0), (3, 4), (([0, 1], [0, 1]), ([], []))),
    (((3, 4), 0, 0), (2,), (([], []), ([], []))),
    (((3, 4), 1, 0), (4, 2), (([1], [0]), ([], []))),
    (((3, 4), 1, 0), (3, 4), (([1], [1]), ([0], [0]))),
    (((3, 4), 1, 0), (2, 3), (([0], [1]), ([], []))),
    (((3, 4), 0, 1), (3, 2), (([0], [0]), ([], []))),
    (((2, 3, 4), 1, 0), (2, 4, 5), (([2], [1]), ([0], [0]))),
    (((2, 3, 4), 1, 0), (4, 2), (([2], [0]), ([], []))),
    (((2, 3, 4), 1, 1), (2, 3), (([1], [1]), ([0], [0]))),
    (((2, 3, 4), 2, 0), (2, 3, 4), (([2], [2]), ([0, 1], [0, 1]))),
    (((2, 3, 4), 0, 0), (4, 3), (([1, 2], [1, 0]), ([], []))),
    (((3, 4), 0, 0), ((4, 2), 0, 0), (([1], [0]), ([], []))),
    (((3, 4), 0, 0), ((2, 4), 0, 0), (([1], [1]), ([], []))),
    (((5,), 0, 0), ((5,), 0, 0), (([0], [0]), ([], []))),
    (((3, 4), 0, 0), ((4,), 0, 0), (([1], [0]), ([], []))),
    (((3,), 0, 0), ((2,), 0, 0), (([], []), ([], []))),
    (((2, 3, 4), 1, 0), ((2, 4, 2), 1, 0), (([2], [1]), ([0], [0]))),
    (((2, 3, 4), 1, 0), ((4, 2), 0, 0), (([2], [0]), ([], []))),
]
# the reference fails when the dense array comes first, or the batches second
ONE_WAY = [n for n, (left, right, _) in enumerate(DOTS) if left[2] or n == len(DOTS) - 1]


@pytest.mark.parametrize("number", range(len(DOTS)))
def test_dot_general(number: int) -> None:
    left, right, numbers = DOTS[number]
    swapped = tuple(tuple(pair[::-1]) for pair in numbers)
    both_ways = number not in ONE_WAY

    def call(lib: Any, x: Any, y: Any) -> Any:
        dot = lib.sparse.bcoo_dot_general
        first = dot(x, y, dimension_numbers=numbers)
        return (first, dot(y, x, dimension_numbers=swapped)) if both_ways else first

    is_dense = not isinstance(right[0], tuple)
    other = values(right, np.float32, 6) if is_dense else untidy(*right, seed=6)
    agree(call, untidy(*left), other, eager=number in (2, 15))
    if number in (1, 2, 3, 7, 9, 10, 12, 15):
        derivatives_agree(call, untidy(*left), other, backward=is_dense and not left[2])


SAMPLED = [
    ((3, 4), (4, 2), (([1], [0]), ([], [])), ((3, 2), 0, 0)),
    ((3, 4), (2, 4), (([1], [1]), ([], [])), ((3, 2), 1, 0)),
    ((2, 3, 4), (2, 4, 5), (([2], [1]), ([0], [0])), ((2, 3, 5), 1, 0)),
    ((2, 3, 4), (2, 4, 5), (([2], [1]), ([0], [0])), ((2, 3, 5), 1, 1)),
    ((3,), (4,), (([], []), ([], [])), ((3, 4), 0, 0)),
]


@pytest.mark.parametrize("a, b, numbers, out", SAMPLED)
def test_dot_general_sampled(a: Any, b: Any, numbers: Any, out: Any) -> None:
    indices = untidy(*out).indices
    sampled = lambda lib: lib.sparse.bcoo_dot_general_sampled
    call = lambda lib, x, y: sampled(lib)(x, y, indices, dimension_numbers=numbers)
    pair = values(a, np.float32, 1), values(b, np.float32, 2)
    agree(call, *pair)
    derivatives_agree(call, *pair)


# start, sizes, offset_dims, collapsed_slice_dims, start_index_map
GATHERS: list[tuple[Any, ...]] = [
    ([1], (1, 4), (0,), (0,), (0,)),
    ([1, 2], (2, 2), (0, 1), (), (0, 1)),
    ([[2], [0]], (1, 4), (1,), (0,), (0,)),
]


def test_gather() -> None:
    def call(lib: Any, x: Any) -> Any:
        mode = lib.lax.GatherScatterMode.PROMISE_IN_BOUNDS
        return [
            lib.sparse.bcoo_gather(
                x, lib.np.int32(at), lib.lax.GatherDimensionNumbers(*numbers), sizes, mode=mode
            )
            for at, sizes, *numbers in GATHERS
        ]

    agree(call, untidy((3, 4)))
