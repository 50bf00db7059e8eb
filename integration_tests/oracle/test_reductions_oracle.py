"""Reductions, cumulative operations and sorts against the real jax."""

import ml_dtypes
import numpy as np
import pytest
from jax import lax as theirs
from structure_compare import check, check_error, check_values

from primax_core import lax as ours

rng = np.random.default_rng(0)


def f(*shape, dtype="float32"):
    values = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.standard_normal(shape)
    if np.dtype(dtype).kind in "iu":
        values = values * 10
    return np.asarray(values).astype(dtype)


NAN = np.array([1, np.nan, 3, np.nan, -1], "f")
TIES = np.array([[1, 3, 3, 2], [3, 3, 3, 3], [0, -0.0, 1, 1]], "f")
ZEROS = np.array([[1, 0, 3, 2], [0, 3, 0, 3], [1, 2, 3, 4]], "f")

NO_PRINT = {"printed": False}

CASES = {
    "sum": [
        (lambda L: lambda x: L.reduce_sum(x, (0,)), [f(3, 4)]),
        (lambda L: lambda x: L.reduce_sum(x, (2, 0)), [f(3, 4, 2)]),
        (lambda L: lambda x: L.reduce_sum(x, ()), [f(3, 4)]),
        (lambda L: lambda x: L.reduce_sum(x, (0,)), [f(0, 4)]),
    ],
    "prod": [
        (lambda L: lambda x: L.reduce_prod(x, (0,)), [f(3, 4)]),
        (lambda L: lambda x: L.reduce_prod(x, (2, 0)), [f(3, 4, 2)]),
        (lambda L: lambda x: L.reduce_prod(x, (1,)), [ZEROS]),
        (lambda L: lambda x: L.reduce_prod(x, (0,)), [f(0, 4)]),
        (lambda L: lambda x: L.reduce_prod(x, ()), [f(2)]),
    ],
    "max": [
        (lambda L: lambda x: L.reduce_max(x, (0,)), [f(3, 4)]),
        (lambda L: lambda x: L.reduce_max(x, (1,)), [TIES]),
        (lambda L: lambda x: L.reduce_min(x, (0, 1)), [TIES]),
        (lambda L: lambda x: L.reduce_max(x, (0,)), [NAN]),
        (lambda L: lambda x: L.reduce_min(x, (0,)), [f(0, 4)]),
        (lambda L: lambda x: L.reduce_max(x, ()), [f(3)]),
    ],
    "logical": [
        (lambda L: lambda x: L.reduce_and(x, (0,)), [TIES > 1]),
        (lambda L: lambda x: L.reduce_or(x, (1,)), [TIES > 2]),
        (lambda L: lambda x: L.reduce_xor(x, (0, 1)), [TIES > 1]),
        (lambda L: lambda x: L.reduce_and(x, (0,)), [f(3, 4, dtype="int32")]),
        (lambda L: lambda x: L.reduce_or(x, (0,)), [f(3, 4, dtype="uint8")]),
        (lambda L: lambda x: L.reduce_xor(x, (0,)), [f(3, 4, dtype="int8")]),
        (lambda L: lambda x: L.reduce_and(x, (0,)), [f(0, 4, dtype="uint8")]),
    ],
    "argmax": [
        (lambda L: lambda x: L.argmax(x, 0, np.dtype("int32")), [f(3, 4)]),
        (lambda L: lambda x: L.argmin(x, 1, np.dtype("int8")), [TIES]),
        (lambda L: lambda x: L.argmax(x, 1, np.dtype("uint32")), [TIES]),
        (lambda L: lambda x: L.argmax(x, 0, np.dtype("int32")), [NAN]),
        (lambda L: lambda x: L.argmin(x, 0, np.dtype("int32")), [NAN]),
        (lambda L: lambda x: L.argmin(x, 0, np.dtype("int32")), [TIES > 1]),
        (lambda L: lambda x: L.argmax(x, 0, np.dtype("int32")), [np.full(3, -np.inf, "f")]),
    ],
    "reduce": [
        (lambda L: lambda x: L.reduce(x, np.float32(0), L.add, (0,)), [f(3, 4)]),
        (lambda L: lambda x: L.reduce(x, -np.inf, L.max, (0,)), [f(3, 4)]),
        (lambda L: lambda x: L.reduce(x, np.float32(1), L.mul, (0,)), [f(3, 4)]),
        (lambda L: lambda x: L.reduce(x, np.float32(1), lambda a, b: L.mul(a, b), (0, 2)),
         [f(5, 4, 2)], NO_PRINT),
        (lambda L: lambda x, y: L.reduce(
            (x, y), (np.float32(0), np.float32(1)),
            lambda a, b: (L.add(a[0], b[0]), L.mul(a[1], b[1])), (1,)),
         [f(3, 4), f(3, 4)], NO_PRINT),
        (lambda L: lambda x: L.reduce(x, np.float32(1), L.max, (1,)), [f(3, 4)],
         {"printed": False, "derivatives": False}),  # the reference ignores the initial value
        (lambda L: lambda x: L.reduce(x, np.int32(3), L.add, (0,)),
         [f(3, 4, dtype="int32")], NO_PRINT),
    ],
    "cumulative": [
        (lambda L: lambda x: L.cumsum(x), [f(5, 2)]),
        (lambda L: lambda x: L.cumsum(x, 1, True), [f(2, 6)]),
        (lambda L: lambda x: L.cumprod(x, 1), [ZEROS]),
        (lambda L: lambda x: L.cumprod(x, 1, reverse=True), [f(2, 7)]),
        (lambda L: lambda x: L.cummax(x, 1), [TIES]),
        (lambda L: lambda x: L.cummin(x, 1, reverse=True), [TIES]),
        (lambda L: lambda x: L.cummax(x, 0), [NAN]),
        (lambda L: lambda x: L.cumlogsumexp(x, 0), [f(5, 2)]),
        (lambda L: lambda x: L.cumlogsumexp(x, 1, reverse=True), [f(2, 4) * 100]),
        (lambda L: lambda x: L.cumlogsumexp(x), [np.array([1, np.inf, 2, -np.inf], "f")]),
        (lambda L: lambda x: L.cumlogsumexp(x), [np.array([-np.inf, -np.inf, 2, 1], "f")]),
        (lambda L: lambda x: L.cumsum(x), [f(0, 2)]),
        (lambda L: lambda x: L.cumprod(x), [f(1, 2)]),
    ],
    "sort": [
        (lambda L: lambda x: L.sort(x), [f(3, 5)]),
        (lambda L: lambda x: L.sort(x, dimension=0), [TIES]),
        (lambda L: lambda x: L.sort(x), [np.array([np.nan, -np.inf, 0, -0.0, 1, -np.nan], "f")]),
        (lambda L: lambda x, y: L.sort([x, y], dimension=1, num_keys=2), [TIES, f(3, 4)]),
        (lambda L: lambda x, y: L.sort((x, y), num_keys=1), [TIES, f(3, 4)]),
        (lambda L: lambda x, y: L.sort((x, y), num_keys=1), [TIES, f(3, 4, dtype="int32")]),
        (lambda L: lambda x, y: L.sort_key_val(x, y, 0), [f(3, 4), f(3, 4)]),
        (lambda L: lambda x: L.sort(x, is_stable=False), [f(7)]),
        (lambda L: lambda x: L.sort(x), [f(0)]),
        (lambda L: lambda x: L.top_k(x, 2), [f(3, 4)]),
        (lambda L: lambda x: L.top_k(x, 3, axis=0), [TIES]),
        (lambda L: lambda x: L.top_k(x, 4), [NAN]),
        (lambda L: lambda x: L.top_k(x, 0), [f(3)]),
        (lambda L: lambda x: L.top_k(x, 2, is_stable=False), [f(5)]),
    ],
}  # fmt: skip


def parameters():
    return [
        pytest.param(make, args, *(options or [{}]), id=f"{group}{n}")
        for group, cases in CASES.items()
        for n, (make, args, *options) in enumerate(cases)
    ]


@pytest.mark.parametrize("make, args, options", parameters())
def test_case(make, args, options):
    check(make(ours), make(theirs), args, **options)


@pytest.mark.parametrize("group", CASES)
@pytest.mark.parametrize(
    "dtype",
    ["bool", "int8", "bfloat16", "complex64"],
)
def test_dtypes(group, dtype):
    if (dtype, group) == ("bool", "reduce"):
        pytest.skip("the reference turns -inf to False")
    dtype = np.dtype(getattr(ml_dtypes, dtype, dtype))
    for make, args, *_ in CASES[group][:5]:
        cast = [
            (rng.standard_normal(a.shape) * 3).astype(dtype)
            if dtype.name not in ("uint32", "bool")
            else rng.integers(0, 2, a.shape).astype(dtype)
            for a in args
        ]
        try:
            make(theirs)(*cast)
        except Exception as e:
            with pytest.raises((type(e), TypeError, ValueError)):
                make(ours)(*cast)
        else:
            check_values(make(ours), make(theirs), cast, f"{group} {dtype}")


def test_narrow_sums_have_wide_accumulators():
    ones = np.ones(1000, ml_dtypes.bfloat16)
    assert float(ours.reduce_sum(ones, (0,))) == 1000
    assert float(ours.reduce_sum(np.ones(70000, np.float16), (0,))) == np.inf
    assert float(np.asarray(ours.cumsum(ones))[-1]) == 1000


X, V = f(3, 4), f(5)
B = X > 0
I = np.arange(3, dtype=np.int32)


@pytest.mark.parametrize("make", [
    lambda L: lambda: L.reduce_sum(X, (2,)),
    lambda L: lambda: L.reduce_sum(X, (-1,)),
    lambda L: lambda: L.reduce_sum(X, (1, 1)),
    lambda L: lambda: L.reduce_sum(B, (1,)),
    lambda L: lambda: L.reduce_prod(B, (1,)),
    lambda L: lambda: L.reduce_and(X, (1,)),
    lambda L: lambda: L.argmax(X, 2, "int32"),
    lambda L: lambda: L.argmax(X, -1, "int32"),
    lambda L: lambda: L.argmax(X, 0, "float32"),
    lambda L: lambda: L.argmax(X[:0], 0, "int32"),
    lambda L: lambda: L.sort(X, dimension=2),
    lambda L: lambda: L.sort([X, V]),
    lambda L: lambda: L.sort([]),
    lambda L: lambda: L.sort(X, num_keys=2),
    lambda L: lambda: L.top_k(X, 5),
    lambda L: lambda: L.top_k(X, -1),
    lambda L: lambda: L.top_k(np.float32(2), 1),
    lambda L: lambda: L.top_k(X.astype("complex64"), 1),
    lambda L: lambda: L.cumsum(X, 2),
    lambda L: lambda: L.cumsum(X, -1),
    lambda L: lambda: L.cumsum(B),
    lambda L: lambda: L.cummax(B),
    lambda L: lambda: L.reduce(X, np.zeros(3, "f"), L.add, (0,)),
    lambda L: lambda: L.reduce(X, 0.0, L.add, (5,)),
])  # fmt: skip
def test_errors(make):
    check_error(make(ours), make(theirs), [])


@pytest.mark.parametrize("make", [
    lambda L: lambda: L.reduce(X, 0.0, lambda a, b: (a, b), (0,)),
    lambda L: lambda: L.reduce(X, 0.0, lambda a, b: a > b, (0,)),
    lambda L: lambda: L.reduce((X, V), (0.0, 0.0), lambda a, b: a, (0,)),
])  # fmt: skip
def test_errors_raised_before_compilation(make):
    check_error(make(ours), make(theirs), [], "reduce", (TypeError, ValueError))
