"""Indexing and ``.at`` against NumPy, for generated shapes, dtypes and indices."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import primax_numpy as pnp
from primax_core import Array, ds, enable_x64, grad, jit, make_jaxpr
from primax_core.errors import NonConcreteBooleanIndexError
from primax_numpy import _reading, random
from test_support import assert_close, check_batches, check_compiled, check_derivatives

# Few shapes: each combination of shape and index is compiled.
SHAPES = [(), (1,), (4,), (3, 4), (2, 3, 4), (0, 3)]
DTYPES = [np.float32, np.int32, np.bool_, np.complex64]


def filled(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    """Distinct elements if the dtype has enough of them."""
    size = int(np.prod(shape))
    if dtype == np.bool_:
        return (np.arange(size) % 3 == 0).reshape(shape)
    return np.arange(1, size + 1).reshape(shape).astype(dtype)


@st.composite
def index_for(draw: st.DrawFn, shape: tuple[int, ...], masks: bool = True) -> Any:
    """An index that NumPy accepts for a shape."""
    length = draw(st.integers(0, 3))
    together = draw(st.sampled_from([(), (2,), (1, 2)]))
    parts: list[Any] = []
    for size in shape:
        kinds = ["slice", "all"]
        if size:
            kinds += ["int", "array", "numpy scalar", "list"] + (["mask"] if masks else [])
        kind = draw(st.sampled_from(kinds))
        if kind in ("int", "numpy scalar"):
            i = draw(st.integers(-size, size - 1))
            parts.append(i if kind == "int" else np.int16(i))
        elif kind == "slice":
            bound = st.none() | st.integers(-size - 2, size + 2)
            step = draw(st.none() | st.sampled_from([1, 2, -1, -2]))
            parts.append(slice(draw(bound), draw(bound), step))
        elif kind == "array" or kind == "mask":
            count = int(np.prod(together))
            chosen = draw(st.lists(st.integers(-size, size - 1), min_size=count, max_size=count))
            parts.append(np.array(chosen, np.int32).reshape(together))
        elif kind == "list":
            parts.append([draw(st.integers(-size, size - 1))])
        else:
            parts.append(slice(None))
    parts = parts[: max(length, 0)] if draw(st.booleans()) else parts
    if draw(st.booleans()):
        parts.insert(draw(st.integers(0, len(parts))), None)
    if len(parts) < len(shape) or draw(st.booleans()):
        parts.insert(draw(st.integers(0, len(parts))) if not _trailing(parts) else 0, Ellipsis)
    if len(parts) == 1 and not isinstance(parts[0], list) and draw(st.booleans()):
        return parts[0]
    return tuple(parts)


def _trailing(parts: list[Any]) -> bool:
    """True if the parts were truncated, so that an ellipsis may move them to other axes."""
    return any(isinstance(p, (int, np.integer, list, np.ndarray)) for p in parts)


def numpy_takes(x: np.ndarray, index: Any) -> bool:
    """True if NumPy can evaluate the index."""
    try:
        x[index]
    except IndexError:
        return False
    return True


@settings(max_examples=150)
@given(st.data())
def test_reading_agrees_with_numpy(data: st.DataObject) -> None:
    shape = data.draw(st.sampled_from(SHAPES))
    x = filled(shape, data.draw(st.sampled_from(DTYPES)))
    index = data.draw(index_for(shape).filter(lambda i: numpy_takes(x, i)))
    expected = x[index]
    actual: Any = pnp.asarray(x)[index]
    assert actual.dtype == expected.dtype
    np.testing.assert_array_equal(actual, expected)


@settings(max_examples=100)
@given(st.data())
def test_updates_agree_with_numpy(data: st.DataObject) -> None:
    shape = data.draw(st.sampled_from(SHAPES))
    x = filled(shape)
    index = data.draw(index_for(shape).filter(lambda i: numpy_takes(x, i)))
    method = data.draw(st.sampled_from(["set", "add", "multiply", "min", "max"]))
    shape_of_values = x[index].shape if data.draw(st.booleans()) else ()
    values = np.full(shape_of_values, 3, np.float32) * np.float32(1.5)
    expected = x.copy()
    if method == "set":
        expected[index] = values
    else:
        how = {"add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}
        how[method].at(expected, index, values)
    actual = getattr(pnp.asarray(x).at[index], method)(values)
    assert_close(actual, expected)


MASKS = [
    ((4,), np.array([True, False, True, True])),
    ((3, 4), np.array([True, False, True])),
    ((3, 4), np.arange(12).reshape(3, 4) % 3 == 0),
    ((3, 4), (slice(None), np.array([True, False, False, True]))),
    ((3, 4), (1, np.array([True, False, False, True]))),
    ((2, 3, 4), (np.array([[True, False, True], [False, True, True]]), 2)),
    ((4,), np.zeros(4, bool)),
    ((4,), True),
    ((4,), False),
    ((4,), np.True_),
    ((), True),
]


@pytest.mark.parametrize(("shape", "mask"), MASKS)
def test_masks(shape: tuple[int, ...], mask: Any) -> None:
    x = filled(shape)
    array: Any = pnp.asarray(x)
    np.testing.assert_array_equal(array[mask], x[mask])
    expected = x.copy()
    expected[mask] = -1
    np.testing.assert_array_equal(array.at[mask].set(-1), expected)
    expected[mask] += 2
    np.testing.assert_array_equal(array.at[mask].set(-1).at[mask].add(2), expected)


# Out of bounds


INDICES = [4, 9, -5, -9, -1]
EXPECTED = {None: [4, 4, 1, 1, 4], "clip": [4, 4, 1, 1, 4], "fill": [0, 0, 0, 0, 4]}


@pytest.mark.parametrize(
    "index",
    [
        (slice(None, None, 2), 1, ..., np.array([0, 1])),
        (slice(None, None, 2), np.array(-2), ..., np.array([True, False])),
        (slice(None, 0), np.array([1, 0]), ..., np.array([0])),
        (slice(None), np.array([2, 0]), ..., 1),
        (slice(None), np.array([2, 0]), 1, ...),
        (..., slice(1, None), np.array([2, 0]), 1),
    ],
    ids=repr,
)
def test_an_ellipsis_without_axes_separates_positions(index: Any) -> None:
    x = filled((3, 3, 2))
    expected = x[index]
    for read in (lambda x: x[index], jit(lambda x: x[index])):
        assert_close(read(pnp.asarray(x)), expected)
    values = -np.arange(1, expected.size + 1, dtype=x.dtype).reshape(expected.shape)
    changed = x.copy()
    changed[index] = values
    assert_close(pnp.asarray(x).at[index].set(values), changed)


@pytest.mark.parametrize("mode", [None, "clip", "fill"])
def test_reading_out_of_bounds(mode: str | None) -> None:
    x: Any = pnp.asarray(np.float32([1, 2, 3, 4]))

    def get(x: Any, i: Any) -> Array:
        return x.at[i].get(mode=mode, fill_value=0)  # type: ignore[no-any-return]

    for i, expected in zip(INDICES, EXPECTED[mode], strict=True):
        assert get(x, i) == expected  # a concrete position
        assert get(x, np.array([i], np.int8))[0] == expected
        assert jit(get)(x, i) == expected  # a traced one
        assert jit(lambda x, i=i: get(x, i))(x) == expected
        if mode is None:
            assert x[i] == expected and x[np.array([i])][0] == expected


def test_fill_values() -> None:
    for dtype, fill in [(np.float32, np.nan), (np.int32, -(2**31)), (np.uint8, 255), (bool, True)]:
        actual = pnp.ones(2, dtype).at[np.array([5])].get(mode="fill")
        np.testing.assert_array_equal(actual, np.array([fill], dtype))
    assert pnp.ones(2).at[7].get(mode="fill", fill_value=3) == 3


def test_updating_out_of_bounds() -> None:
    x: Any = pnp.asarray(np.float32([1, 2, 3, 4]))
    for i in (4, 9, -5, np.array([7]), np.array([-8])):
        for change in (
            lambda x, i: x.at[i].set(0),
            lambda x, i: x.at[i].add(1, mode="drop"),
        ):
            np.testing.assert_array_equal(change(x, i), x)
            np.testing.assert_array_equal(jit(change)(x, i), x)
            np.testing.assert_array_equal(jit(lambda x, i=i, change=change: change(x, i))(x), x)
    np.testing.assert_array_equal(x.at[9].set(0, mode="clip"), [1, 2, 3, 0])
    np.testing.assert_array_equal(x.at[np.array([-9])].add(1, mode="clip"), [2, 2, 3, 4])


def test_negative_positions_without_wrapping() -> None:
    x: Any = pnp.asarray(np.float32([1, 2, 3, 4]))
    assert x.at[-1].get(wrap_negative_indices=False) == 1
    assert np.isnan(x.at[np.array([-1])].get(mode="fill", wrap_negative_indices=False)[0])
    np.testing.assert_array_equal(x.at[-1].set(0, wrap_negative_indices=False), x)


def test_small_index_types_reach_the_end() -> None:
    x = pnp.arange(300)
    assert x[np.int8(-1)] == 299 and x[np.array([-1], np.int8)][0] == 299
    assert x[np.array([200], np.uint8)][0] == 200


# Updates


def test_repeated_positions() -> None:
    x: Any = pnp.zeros(3)
    twice = np.array([1, 1])
    assert x.at[twice].add(1.0)[1] == 2
    assert (x + 8).at[twice].multiply(2.0)[1] == 32
    assert (x + 8).at[twice].divide(2.0)[1] == 2
    assert x.at[twice].apply(lambda v: v + 1)[1] == 2
    assert x.at[twice].subtract(np.float32([1, 2]))[1] == -3
    np.testing.assert_array_equal((x + 3).at[1].power(2), [3, 9, 3])


def test_reversed_and_strided_slices() -> None:
    x: Any = pnp.arange(6)
    np.testing.assert_array_equal(x.at[::-1].set(np.arange(6)), np.arange(6)[::-1])
    np.testing.assert_array_equal(x.at[4::-2].add(np.int32([1, 2, 3])), [3, 1, 4, 3, 5, 5])
    np.testing.assert_array_equal(x.at[5:2].set(9), np.arange(6))


def test_updates_keep_the_dtype_of_the_array() -> None:
    x: Any = pnp.asarray([-3, 4])
    with pytest.warns(FutureWarning, match="cannot safely cast value from dtype=float32"):
        np.testing.assert_array_equal(x.at[0].add(1.7), [-1, 4])
    assert pnp.zeros(1, np.uint8).at[0].add(-3)[0] == 253
    assert pnp.zeros(1, np.uint32).at[0].set(2**32 - 1).tolist() == [2**32 - 1]
    assert x.at[0].set(True)[0] == 1
    assert pnp.full((2,), 1.0).at[0].set(np.float16(2)).weak_type is True


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (lambda x: x.at[0].set(None), ValueError, "None is not a valid value"),
        (lambda x: x.at[0].set("a"), TypeError, "not a valid Primax array type"),
        (lambda x: x.at[0].set(1.0, bogus=1), TypeError, "unexpected keyword argument 'bogus'"),
        (lambda x: x.at[0].set(1.0, mode="wrap"), ValueError, "Unknown gather mode 'wrap'"),
        (lambda x: x.at[0].set(np.ones(2)), ValueError, "broadcast to shape with fewer dim"),
        (lambda x: x.at[:2].set(np.ones(3)), ValueError, "Incompatible types for broadcasting"),
        (lambda x: x.at[0].undo(), AttributeError, "undo"),
        (lambda x: x.at[[0, 1]].set(1.0), TypeError, "non-tuple sequence"),
    ],
)
def test_errors_of_updates(change: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        change(pnp.ones(3))


# Bad indices


@pytest.mark.parametrize(
    ("index", "error", "text"),
    [
        ([0, 1], TypeError, "non-tuple sequence"),
        (1.0, TypeError, "integer or boolean type, got indexer with type float64 at position 0"),
        (np.array([1.0]), TypeError, "got indexer with type float32"),
        ("name", TypeError, "string indexing"),
        ({}, IndexError, "valid indices"),
        ((0, 0), IndexError, "Too many indices: array is 1-dimensional, but 2 were indexed"),
        ((..., ...), IndexError, "single ellipsis"),
        (slice(None, None, 0), ValueError, "step cannot be zero"),
        (slice(0.5, 2), TypeError, "slice indices must be integers"),
        (np.array([True, False]), IndexError, r"did not match .* got \(2,\), expected \[3\]"),
        (2**40, OverflowError, "too large to convert to int32"),
    ],
)
def test_errors_of_indices(index: Any, error: type[Exception], text: str) -> None:
    for x in (pnp.ones(3), pnp.ones(3)):
        with pytest.raises(error, match=text):
            x[index]
    if error is not OverflowError:
        with pytest.raises(error, match=text):
            jit(lambda x: x[index])(pnp.ones(3))


def test_equal_keys_of_other_types_raise_errors() -> None:
    x: Any = pnp.arange(5)
    assert x[1:3].shape == x[1:3].shape == (2,) and x[1] == 1
    for bad in (1.0, slice(1.0, 3), slice(1, 3.0), (slice(1.0, 3),)):
        with pytest.raises(TypeError):
            x[bad]
    assert x[True].shape == (1, 5)


def test_masks_and_bounds_must_be_concrete() -> None:
    x = pnp.arange(4.0)
    with pytest.raises(NonConcreteBooleanIndexError):
        jit(lambda x, m: x[m])(x, x > 1)
    with pytest.raises(NonConcreteBooleanIndexError):
        jit(lambda x, m: x.at[m].set(0))(x, x > 1)
    with pytest.raises(IndexError, match="static start/stop/step"):
        jit(lambda x, n: x[:n])(x, 2)
    assert x[pnp.asarray(1) : pnp.asarray(3)].shape == (2,)


def test_empty_axes() -> None:
    x: Any = pnp.zeros((0, 3))
    for index in (0, np.array([0])):
        with pytest.raises(IndexError, match="out of bounds for axis 0 with size 0"):
            x[index]
    with pytest.raises(IndexError, match="out of bounds for axis 0 with size 0"):
        jit(lambda x: x[0])(x)
    assert x[np.array([], int)].shape == (0, 3) and x[:, np.array([0])].shape == (0, 1)
    assert x.at[np.array([0])].set(1.0).shape == (0, 3)


# Under transformations


INDEXED = [
    1,
    slice(1, 3),
    slice(None, None, -2),
    (slice(None), 1),
    (0, slice(1, 3), None),
    np.array([2, 0, 2]),
    (slice(None), np.array([[1, 3]])),
    (np.array([0, 2]), np.array([3, 3])),
    (-1, ..., 2),
]


@pytest.mark.parametrize("index", INDEXED, ids=repr)
def test_indexing_under_transformations(index: Any) -> None:
    x = filled((3, 4))

    def get(x: Any) -> Array:
        return pnp.asarray(x)[index]  # type: ignore[no-any-return]

    def put(x: Any) -> Array:
        return pnp.asarray(x).at[index].multiply(2.0, unique_indices=True)  # type: ignore[no-any-return]

    check_compiled(get, x)
    check_batches(get, x)
    check_derivatives(get, x)
    check_compiled(put, x)
    check_batches(put, x)
    shape = get(x).shape

    def set_values(x: Any, v: Any) -> Array:
        return pnp.asarray(x).at[index].add(v)  # type: ignore[no-any-return]

    check_derivatives(set_values, x, np.ones(shape))


def test_derivatives_of_set() -> None:
    def put(x: Any, v: Any) -> Array:
        return pnp.asarray(x).at[1:3].set(v) ** 2  # type: ignore[no-any-return]

    check_derivatives(put, filled((4,)), np.float32([7, 8]))
    assert grad(lambda x: x.at[9].set(5.0).sum())(pnp.ones(3)).tolist() == [1, 1, 1]


def test_traced_positions() -> None:
    x, i = pnp.asarray(filled((3, 4))), pnp.asarray(2)
    for known, traced in [
        (lambda x: x[2], lambda x, i: x[i]),
        (lambda x: x[1:, 2], lambda x, i: x[1:, i]),
        (lambda x: x[2, ::-1], lambda x, i: x[i, ::-1]),
        (lambda x: x.at[2].set(0), lambda x, i: x.at[i].set(0)),
        (lambda x: x.at[2, 1:3].add(1), lambda x, i: x.at[i, 1:3].add(1)),
    ]:
        np.testing.assert_array_equal(jit(traced)(x, i), known(x))
        np.testing.assert_array_equal(jit(known)(x), known(x))


def test_simple_indices_lower_to_slices() -> None:
    names = lambda f: {str(e.primitive) for e in make_jaxpr(f)(pnp.zeros((3, 4))).eqns}
    for fun in (lambda x: x[1], lambda x: x[1:2, ::2], lambda x: x[None, -1]):
        assert not names(fun) & {"gather", "dynamic_slice"}
    assert "gather" not in names(lambda x: x[x[0, 0].astype(int)])


# The fast path


def test_one_executable_serves_all_integers() -> None:
    x: Any = pnp.asarray(filled((7, 3)))
    assert x[0].tolist() == [1, 2, 3]
    before = len(_reading._path._entries)
    for i in itertools.chain(range(-9, 9)):
        np.testing.assert_array_equal(x[i], filled((7, 3))[max(min(i, 6), -7)])
    assert len(_reading._path._entries) == before


def test_fast_paths_are_used() -> None:
    x = pnp.asarray(filled((5, 4)))
    for index in (1, slice(1, 3), (0, slice(None, 2)), (None, 1), (..., 2)):
        first = x[index]
        entry = _reading._fast_key(index)
        assert entry is not None
        again = _reading._path.lookup(entry[0], x, *entry[1])
        assert again is not None
        np.testing.assert_array_equal(again, first)


# Slices by start and size


def test_slices_by_start_and_size() -> None:
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    for start, first in ((1, 1), (3, 2), (-1, 2), (-9, 0)):
        actual = jit(lambda x, i: x[ds(i, 2)])(x, start)
        np.testing.assert_array_equal(actual, x[first : first + 2])
        np.testing.assert_array_equal(pnp.asarray(x)[ds(pnp.asarray(start), 2)], actual)
    np.testing.assert_array_equal(pnp.asarray(x)[ds(1, 2)], x[1:3])
    np.testing.assert_array_equal(jit(lambda x, i: x[ds(i, 2, 2)])(x, 1), x[1:5:2])
    np.testing.assert_array_equal(jit(lambda x, i: x[:, ds(i, 2)])(x, 1), x[:, 1:])
    np.testing.assert_array_equal(jit(lambda x, i: x[i, ds(i, 2)])(x, 1), x[1, 1:])
    rows = np.array([0, 3, 3])
    np.testing.assert_array_equal(jit(lambda x, i: x[rows, ds(i, 2)])(x, 1), x[rows, 1:])
    check_batches(lambda i, x: pnp.asarray(x)[ds(i, 2)], np.array(1), x)


def test_updates_by_start_and_size() -> None:
    x = np.arange(4, dtype=np.float32)
    for start, expected in ((1, [0, 9, 9, 3]), (3, x), (-9, x)):
        actual = jit(lambda x, i: x.at[ds(i, 2)].set(9))(x, start)
        np.testing.assert_array_equal(actual, expected)
    moved = jit(lambda x, i: x.at[ds(i, 2)].add(9, mode="clip"))(x, 7)
    np.testing.assert_array_equal(moved, [0, 1, 11, 12])
    square = np.zeros((3, 3), np.float32)
    rows = np.array([0, 2])
    actual = jit(lambda x, i: x.at[rows, ds(i, 2)].add(1))(square, 1)
    np.testing.assert_array_equal(actual, [[0, 1, 1], [0, 0, 0], [0, 1, 1]])
    outside = jit(lambda x, i: x.at[rows, ds(i, 2)].add(1))(square, 2)
    np.testing.assert_array_equal(outside, square)
    filled = jit(lambda x, i: x.at[ds(i, 2)].get(mode="fill", fill_value=7))(x, 3)
    np.testing.assert_array_equal(filled, [7, 7])


@pytest.mark.parametrize(
    "index, error, text",
    [
        (lambda i: ds(0, i), TypeError, "the size of a slice must be a concrete integer"),
        (lambda i: ds(i * 1.0, 2), TypeError, "the start of a slice must be an integer"),
        (lambda i: ds(i, 9), IndexError, "9 elements does not fit an axis of size 4"),
    ],
)
def test_errors_of_slices_by_start_and_size(index: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        jit(lambda x, i: x[index(i)])(np.arange(4), 1)


def names(fun: Any, *args: Any) -> set[str]:
    return {e.primitive.name for e in make_jaxpr(fun)(*args).eqns}


def test_windows_need_no_gathers_or_scatters() -> None:
    x = np.ones((4, 4), np.float32)
    one_of = {"gather", "scatter", "scatter_add", "scatter_mul", "scatter_max"}
    for fun in (
        lambda x, i: x[i],
        lambda x, i: x[i, 1:3],
        lambda x, i: x[ds(i, 2), i],
        lambda x, i: x.at[i].set(1.0),
        lambda x, i: x.at[i, 1].add(1.0),
        lambda x, i: x.at[1:3].multiply(2.0),
        lambda x, i: x.at[::2, ::-1].max(2.0),
        lambda x, i: x.at[ds(i, 2)].set(3.0),
        lambda x, i: x.at[1, 2].get(mode="clip"),
    ):
        assert not names(fun, x, 1) & one_of
    assert names(lambda x, i: x.at[i].set(1.0, mode="promise_in_bounds"), x, 1) <= {
        "convert_element_type", "lt", "add", "select_n", "broadcast_in_dim", "reshape",
        "dynamic_update_slice",
    }  # fmt: skip


def test_unchanged_elements_are_not_rounded_to_the_promoted_dtype() -> None:
    x = np.array([2**24 + 1, 5], np.int32)
    with pytest.warns(FutureWarning, match="incompatible types"):
        actual = pnp.asarray(x).at[1].set(1.5)
    np.testing.assert_array_equal(actual, [2**24 + 1, 1])


def test_integers_divided_become_floats() -> None:
    actual = pnp.arange(1, 4).at[0].divide(2)
    assert actual.dtype == np.float32
    np.testing.assert_array_equal(actual, [0.5, 2, 3])
    several = pnp.arange(1, 4).at[np.array([0, 0])].divide(2)
    np.testing.assert_array_equal(several, [0.25, 2, 3])


def test_arrays_of_keys() -> None:
    keys = random.split(random.key(0), 4)
    data = np.asarray(random.key_data(keys))

    def same(actual: Any, expected: np.ndarray) -> None:
        np.testing.assert_array_equal(random.key_data(actual), expected)

    same(keys[1], data[1])
    same(keys[::-2], data[::-2])
    same(keys[np.array([[0], [3]])], data[[[0], [3]]])
    same(keys.reshape(2, 2).T, data.reshape(2, 2, 2).swapaxes(0, 1))
    same(pnp.stack([keys, keys], 1), np.stack([data, data], 1))
    same(pnp.concatenate([keys, keys[:1]]), np.concatenate([data, data[:1]]))
    same(jit(lambda k, i: k.at[i].set(k[0]))(keys, 2), data[[0, 1, 0, 3]])
    same(keys.at[::2].set(keys[1]), data[[1, 1, 1, 3]])
    same(keys.at[np.array([0, 3])].set(keys[1:3]), data[[1, 1, 2, 2]])
    same(pnp.roll(keys, 1), data[[3, 0, 1, 2]])


@pytest.mark.parametrize("how", [lambda f: f, jit])
@pytest.mark.parametrize("kinds", list(itertools.product((np.int8, np.int32, np.int64), repeat=2)))
def test_dynamic_positions_of_all_widths(how: Any, kinds: tuple[Any, Any]) -> None:
    x = np.arange(60.0).reshape(3, 4, 5)
    with enable_x64(True):
        i, j = (pnp.asarray(n, kind) for n, kind in zip((1, 2), kinds))
        y = pnp.asarray(x)
        for f in (
            lambda y, i, j: y[i],
            lambda y, i, j: y[i, :, j],
            lambda y, i, j: y[:, i, 1:3],
            lambda y, i, j: y[None, i, ..., j],
            lambda y, i, j: y.at[j, i].set(7.0),
        ):
            expected = x.copy()
            if f.__code__.co_names:  # an update
                expected[2, 1] = 7.0
            else:
                expected = f(x, 1, 2)
            np.testing.assert_array_equal(how(f)(y, i, j), expected)
