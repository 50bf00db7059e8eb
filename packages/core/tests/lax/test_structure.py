"""Broadcasts, transposes, reshapes, concatenations, slices and pads against NumPy."""

import numpy as np
import pytest

from primax_core import jit, lax, make_jaxpr
from test_support import check_batches, check_derivatives

rng = np.random.default_rng(0)
X, V = rng.standard_normal((3, 4)).astype("f"), rng.standard_normal(5).astype("f")

CASES = {
    "broadcast": (lambda x: lax.broadcast_in_dim(x, (2, 3, 4), (1, 2)),
                  lambda x: x + 0 * np.ones((2, 1, 1))),
    "permuted broadcast": (lambda x: lax.broadcast_in_dim(x, (4, 2, 3), (2, 0)),
                           lambda x: np.broadcast_to(x.T[:, None], (4, 2, 3))),
    "transpose": (lambda x: lax.transpose(x, (1, 0)), np.transpose),
    "rev": (lambda x: lax.rev(x, (1,)), lambda x: x[:, ::-1]),
    "reshape": (lambda x: lax.reshape(x, (2, 6)), lambda x: x.reshape(2, 6)),
    "turned reshape": (lambda x: lax.reshape(x, (2, 6), (1, 0)), lambda x: x.T.reshape(2, 6)),
    "expand_dims": (lambda x: lax.expand_dims(x, (1, -1)), lambda x: x[:, None, :, None]),
    "collapse": (lambda x: lax.collapse(x, 0), np.ravel),
    "tile": (lambda x: lax.tile(x, (2, 1)), lambda x: np.tile(x, (2, 1))),
    "concatenate": (lambda x: lax.concatenate([x, x], 1), lambda x: np.concatenate([x, x], 1)),
    "split": (lambda x: lax.split(x, (1, 3), 1)[1], lambda x: x[:, 1:]),
    "pad": (lambda x: lax.pad(x, np.zeros((), x.dtype)[()], [(1, 2, 0), (-1, 0, 0)]),
            lambda x: np.pad(x[:, 1:], [(1, 2), (0, 0)])),
    "slice": (lambda x: lax.slice(x, (1, 0), (3, 4), (1, 2)), lambda x: x[1:3, ::2]),
    "slice_in_dim": (lambda x: lax.slice_in_dim(x, -2, None, 1, -1), lambda x: x[:, -2:]),
    "index_in_dim": (lambda x: lax.index_in_dim(x, -1, 1, False), lambda x: x[:, -1]),
    "dynamic_slice": (lambda x: lax.dynamic_slice(x, (1, -3), (2, 2)), lambda x: x[1:3, 1:3]),
    "moved slice": (lambda x: lax.dynamic_slice(x, (9, 0), (2, 4)), lambda x: x[1:]),
}  # fmt: skip


@pytest.mark.parametrize("ours, expected", CASES.values(), ids=CASES)
def test_values_derivatives_batches(ours, expected):
    np.testing.assert_array_equal(np.asarray(ours(X)), expected(X))
    np.testing.assert_array_equal(np.asarray(jit(ours)(X)), expected(X))
    check_derivatives(ours, X)
    check_batches(ours, X, rtol=1e-6)


def test_interior_padding():
    got = lax.pad(np.array([1, 2, 3]), 0, [(-1, 1, 2)])
    assert np.asarray(got).tolist() == [0, 0, 2, 0, 0, 3, 0]
    check_derivatives(lambda x, v: lax.pad(x, v, [(-1, 1, 2)]), V, np.float64(2))
    check_batches(lambda v, x: lax.pad(x, v, [(-1, 1, 2)]), np.float32(2), V, rtol=1e-6)


def test_dynamic_updates():
    fun = jit(lambda x, u, i: lax.dynamic_update_slice(x, u, (i, 1)))
    u = np.ones((1, 2), "f")
    expected = X.copy()
    expected[2, 1:3] = 1
    np.testing.assert_array_equal(np.asarray(fun(X, u, -1)), expected)
    check_derivatives(lambda x, u: lax.dynamic_update_slice(x, u, (1, 9)), X, u)
    check_batches(
        lambda i, x, u: lax.dynamic_update_slice_in_dim(x, u, i, 0),
        np.int32(1),
        X,
        X[:1],
        rtol=1e-6,
    )
    check_batches(lambda i, x: lax.dynamic_slice_in_dim(x, i, 2, 1), np.int32(1), X, rtol=1e-6)


def test_small_index_dtypes_with_long_axes():
    x = np.arange(300)
    assert int(lax.dynamic_index_in_dim(x, np.int8(-1), keepdims=False)) == 299
    wrapped = jit(lambda x, i: lax.dynamic_index_in_dim(x, i, keepdims=False))
    assert int(wrapped(x, np.int8(-1))) == 299
    assert np.asarray(lax.dynamic_slice(x, (np.int8(-3),), (2,))).tolist() == [297, 298]


def test_an_index_is_compiled_once_for_all_values():
    take = lambda i: lax.dynamic_slice(V, (i,), (1,))
    take(0)
    before = len(lax.dynamic_slice_p.executables)
    for i in range(4):
        assert np.asarray(take(i))[0] == V[i]
    assert len(lax.dynamic_slice_p.executables) == before


def test_creation():
    assert np.asarray(lax.iota("int32", 3)).tolist() == [0, 1, 2]
    np.testing.assert_array_equal(
        np.asarray(lax.broadcasted_iota("float32", (2, 3), 1)), [[0, 1, 2]] * 2
    )
    assert lax.full((2,), 1.0).weak_type and not lax.full((2,), 1.0, "float32").weak_type
    assert np.asarray(lax.full((2,), 300, "int8")).tolist() == [44, 44]
    assert np.asarray(lax.full((1,), np.float32(2.7), "int32")).tolist() == [2]
    filled = jit(lambda v: lax.full((2,), v, "int32"))(2.5)
    assert filled.dtype == np.int32 and np.asarray(filled).tolist() == [2, 2]
    assert lax.full_like(lax.full((2,), 1.0), 3).weak_type
    assert lax.broadcast_shapes((2, 1), (3,)) == (2, 3)


def test_printed_form():
    text = str(
        make_jaxpr(lambda x: lax.broadcast_in_dim(lax.transpose(x, (1, 0)), (2, 4, 3), (1, 2)))(X)
    )
    assert "transpose[permutation=(1, 0)]" in text
    assert "broadcast_in_dim[broadcast_dimensions=(1, 2)]" in text


def test_identity_operations_return_the_operand():
    x = lax.full((2, 3), 1.0)
    assert lax.reshape(x, (2, 3)) is x
    assert lax.transpose(x, (0, 1)) is x
    assert lax.squeeze(x, ()) is x
    assert lax.concatenate([x], 0) is x


@pytest.mark.parametrize("call, error, phrase", [
    (lambda: lax.broadcast_in_dim(X, (2, 3), (0, 1)), TypeError, "must either be 1, or be equal"),
    (lambda: lax.broadcast_in_dim(X, (2, 3.5), (0, 1)), TypeError, "integer type"),
    (lambda: lax.broadcast_in_dim(X, (3, 4), (0, 0)), TypeError, "unique"),
    (lambda: lax.reshape(X, (5,)), TypeError, "total size must be unchanged"),
    (lambda: jit(lambda n: lax.reshape(X, (n,)))(12), TypeError, "static_argnums"),
    (lambda: lax.transpose(X, (0, 0)), TypeError, "isn't a permutation"),
    (lambda: lax.squeeze(X, (0,)), ValueError, "size not equal to one"),
    (lambda: lax.slice(X, (-1, 0), (1, 4)), TypeError, "nonnegative"),
    (lambda: lax.slice(X, (0, 0), (4, 4)), TypeError, "less than or equal to operand shape"),
    (lambda: lax.slice(X, (0, 0), (1, 1), (0, 1)), TypeError, "positive"),
    (lambda: lax.index_in_dim(X, 3), IndexError, "out of bounds"),
    (lambda: lax.dynamic_slice(X, (0,), (1, 1)), ValueError, "Length of slice indices"),
    (lambda: lax.dynamic_slice(X, (0, 0), (1,)), ValueError, "a size for each axis"),
    (lambda: lax.dynamic_slice(X, (0.0, 0), (1, 1)), TypeError, "integers of the same type"),
    (lambda: lax.dynamic_update_slice(X, V, (0, 0)), TypeError, "same rank"),
    (lambda: lax.dynamic_update_index_in_dim(X, 1.0, 0, 0), TypeError, "one axis less"),
    (lambda: lax.pad(X, 0, [(0, 0, 0)] * 2), TypeError, "same dtype"),
    (lambda: lax.pad(X, np.float32(0), [(0, 0)] * 2), ValueError, "low, high, interior"),
    (lambda: lax.tile(X, (1, -1)), TypeError, "nonnegative"),
    (lambda: lax.concatenate([X, V], 0), TypeError, "different numbers of dimensions"),
    (lambda: lax.split(X, (1, 1)), ValueError, "Sum of sizes"),
    (lambda: lax.iota("bool", 3), TypeError, "iota does not accept dtype bool"),
    (lambda: lax.empty((2,), "float16", out_sharding=int), TypeError, "sharding of a new array"),
    (lambda: lax.full((2,), 1.0, sharding="cpu"), TypeError, "got 'cpu' of type str"),
    (lambda: jit(lambda: lax.full((2,), 1.0, sharding=3))(), TypeError, "a device, a sharding or"),
])  # fmt: skip
def test_errors(call, error, phrase):
    with pytest.raises(error, match=phrase):
        call()
