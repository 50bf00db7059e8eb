"""Shapes, creation and indices: errors, known values, and properties that cases do not cover."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp

import primax_numpy as pnp
from primax_core import device_put, devices, jit, make_jaxpr, no_tracing, vmap
from primax_core.errors import ConcretizationTypeError
from primax_core.extend import dtypes

X = np.arange(6, dtype=np.float32).reshape(2, 3)
N = np.arange(3)


REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: pnp.asarray("abc"), TypeError, "not a valid Primax array type"),
    (lambda: pnp.asarray([1, None]), ValueError, "None is not a valid value"),
    (lambda: pnp.asarray([[1, 2], [3]]), ValueError, "inhomogeneous"),
    (lambda: pnp.asarray([pnp.ones(2), [1, 2, 3]]), ValueError, "must have one shape"),
    (lambda: pnp.asarray([2**31]), OverflowError, "2147483648 out of bounds for int32"),
    (lambda: pnp.asarray([300.0], "int8"), OverflowError, "300 out of bounds for int8"),
    (lambda: pnp.asarray(300.0, "int8"), OverflowError, "300 out of bounds for int8"),
    (lambda: pnp.asarray(X, order="F"), NotImplementedError, "order='F'"),
    (lambda: pnp.zeros(2.5), TypeError, "Shapes must be 1D sequences"),
    (lambda: pnp.zeros(b"ab"), TypeError, "Shapes must be 1D sequences"),
    (lambda: pnp.full({2, 3}, 1), TypeError, "Shapes must be 1D sequences"),
    (lambda: pnp.broadcast_to(1, {2: 3}), TypeError, "Shapes must be 1D sequences"),
    (lambda: pnp.zeros((2, -1)), TypeError, "nonnegative"),
    (lambda: pnp.full((2, 3), np.ones(2)), ValueError, "(2,) does not broadcast to shape (2, 3)"),
    (lambda: pnp.full(2, [1, 2]), TypeError, "full requires ndarray or scalar arguments"),
    (lambda: pnp.zeros_like([1]), TypeError, "zeros_like requires ndarray or scalar"),
    (lambda: pnp.eye(-1), ValueError, "negative dimensions"),
    (lambda: pnp.eye(2.5), TypeError, "sizes must be concrete integers"),
    (lambda: pnp.eye(3, k=1.5), ValueError, "k must be a scalar integer; got 1.5"),
    (lambda: pnp.arange(0, 1, 0), ZeroDivisionError, "division by zero"),
    (lambda: pnp.arange(1j), ValueError, "bounds must be real"),
    (lambda: pnp.linspace(0, 1, -1), ValueError, "Number of samples, -1"),
    (lambda: pnp.meshgrid(X), ValueError, "must be 1D, got shapes [(2, 3)]"),
    (lambda: pnp.meshgrid(N, indexing="x"), ValueError, "'xy' and 'ij'"),
    (lambda: pnp.meshgrid(N, copy=False), ValueError, "no views"),
    (lambda: pnp.mgrid[2], TypeError, "a grid needs slices"),
    (lambda: pnp.r_[1, "r"], ValueError, "placed at the beginning"),
    (lambda: pnp.r_["x", 1], ValueError, "could not understand directive 'x'"),
    (lambda: pnp.ix_(X), ValueError, "must be 1-dimensional, got shape (2, 3)"),
    (lambda: pnp.tril(N), ValueError, "at least 2 axes, got shape (3,)"),
    (lambda: pnp.tril_indices_from(N), ValueError, "Only 2-D inputs"),
    (lambda: pnp.diag(np.ones((1, 1, 1))), ValueError, "1d or 2d, got shape (1, 1, 1)"),
    (lambda: pnp.diagonal(N), ValueError, "at least two dimensions"),
    (lambda: pnp.diagonal(X, axis1=1), ValueError, "cannot be the same"),
    (lambda: pnp.trace(X, out=X), NotImplementedError, "'out' argument"),
    (lambda: pnp.fill_diagonal(X, 1), NotImplementedError, "inplace=False"),
    (lambda: pnp.fill_diagonal(N, 1, inplace=False), ValueError, "at least 2-d"),
    (lambda: pnp.vander(X), ValueError, "one-dimensional"),
    (lambda: pnp.vander(N, -1), ValueError, "nonnegative"),
    # Shapes
    (lambda: pnp.reshape(X, 4), TypeError, "(2, 3) (size 6) into shape (4,)"),
    (lambda: pnp.reshape(X, (-1, 4)), TypeError, "not divisible by 4"),
    (lambda: pnp.reshape(X, (-1, -1)), ValueError, "one unknown dimension"),
    (lambda: pnp.reshape(X, 6, order="K"), ValueError, "order"),
    (lambda: pnp.ravel(X, "K"), NotImplementedError, "order='K'"),
    (lambda: pnp.resize(X, (-1, 2)), ValueError, "non-negative"),
    (lambda: pnp.transpose(X, (0, 0)), TypeError, "permutation"),
    (lambda: pnp.rollaxis(X, 0, 3), ValueError, "start=3 must satisfy -2<=start<=2"),
    (lambda: pnp.squeeze(X, 0), ValueError, "(2, 3)"),
    (lambda: pnp.swapaxes(X, 0, 5), ValueError, "axis 5 is out of bounds"),
    (lambda: pnp.broadcast_to(N, 2), ValueError, "(3,) and requested shape (2,)"),
    (lambda: pnp.concatenate([]), ValueError, "at least one array"),
    (lambda: pnp.concatenate([1, 2]), ValueError, "Zero-dimensional"),
    (lambda: pnp.concatenate([X, [1]]), TypeError, "list'> at position 1"),
    (lambda: pnp.concatenate(3), TypeError, "concatenate requires a sequence of arrays"),
    (lambda: pnp.stack([X, N]), ValueError, "[(2, 3), (3,)]"),
    (lambda: pnp.hstack([]), ValueError, "hstack: Need at least one"),
    (lambda: pnp.block((1, 2)), ValueError, "not tuples"),
    (lambda: pnp.block([]), ValueError, "empty lists"),
    (lambda: pnp.block([[X], X]), ValueError, "Mismatched list depths"),
    (lambda: pnp.split(N, 2), ValueError, "an axis of size 3 into 2 parts"),
    (lambda: pnp.array_split(N, 0), ValueError, "larger than 0"),
    (lambda: pnp.array_split(N, 2**31 - 1), ValueError, "2147483647 parts are too many"),
    (lambda: pnp.split(pnp.ones(0), 2**70), ValueError, "parts are too many"),
    (lambda: pnp.hsplit(np.float32(1), 1), ValueError, "axis 1 is out of bounds"),
    (lambda: pnp.unstack(1.0), ValueError, "axis"),
    (lambda: pnp.tile(X, (-1,)), ValueError, "not be negative"),
    (lambda: pnp.tile(X, 1.5), TypeError, "reps must be concrete integers"),
    (lambda: pnp.repeat(N, 1.5), TypeError, "repeats must be integers"),
    (lambda: pnp.repeat(N, np.array([1, 2])), ValueError, "(2,) do not match an axis of size 3"),
    (lambda: pnp.repeat(N, -1), ValueError, "may not be negative"),
    (lambda: pnp.rot90(X, axes=(0, 0)), ValueError, "axes must be two different"),
    (lambda: pnp.roll(X, (1, 2, 3), axis=(0, 1)), ValueError, "3 shifts and 2 axes"),
    (lambda: pnp.delete(N, 7), ValueError, "index 7 is out of bounds for axis 0 with size 3"),
    (lambda: pnp.delete(N, np.array([1, 9])), IndexError, "index 9 is out of bounds"),
    (lambda: pnp.delete(N, np.array([True])), ValueError, "a mask must have one axis"),
    (lambda: pnp.delete(N, 1.5), ValueError, "integers or booleans"),
    (lambda: pnp.insert(N, 1.5, 0), ValueError, "obj must be integers"),
    (lambda: pnp.trim_zeros(N, "x"), ValueError, "trim must be"),
    (lambda: pnp.pad(X, -1), ValueError, "negative values"),
    (lambda: pnp.pad(X, 1.5), TypeError, "integral type"),
    (lambda: pnp.pad(X, (1, 2, 3)), ValueError, "unsupported shape (3,)"),
    (lambda: pnp.pad(X, 1, "foo"), NotImplementedError, "padding mode 'foo'"),
    (lambda: pnp.pad(X, 1, "edge", end_values=1), ValueError, "{'end_values'}"),
    (lambda: pnp.pad(X[:0], 1, "edge"), ValueError, "empty axis"),
    (lambda: pnp.pad(X, 1, "mean", stat_length=0), ValueError, "stat_length of 0"),
    (lambda: pnp.pad(X, 1, "reflect", reflect_type="x"), ValueError, "'even' or 'odd'"),
    (lambda: pnp.pad(X, 1, lambda *a: None), TypeError, "must return the padded vector"),
    # Indices
    (lambda: pnp.nonzero(np.float32(1)), ValueError, "0d arrays"),
    (lambda: pnp.nonzero(X, size=3, fill_value=(1, 2, 3)), ValueError, "number of axes (2); got 3"),
    (lambda: pnp.nonzero(X, size=3, fill_value=N), ValueError, "scalar or tuple of scalars"),
    (lambda: pnp.nonzero(X, size=1.5), TypeError, "size must be a concrete integer"),
    (lambda: pnp.extract(X > 2, N), ValueError, "out of bounds of an axis of size 3"),
    (lambda: pnp.compress(X, X), ValueError, "1D array, got shape (2, 3)"),
    (lambda: pnp.compress(N, N, size=4), ValueError, "size=4 for 3 elements"),
    (lambda: pnp.choose(N, [N, N]), ValueError, "numbers from 0 to 2 for 2 choices"),
    (lambda: pnp.choose(X, [N]), ValueError, "integer typed"),
    (lambda: pnp.choose(N, [N], mode="x"), ValueError, "mode='x' not understood"),
    (lambda: pnp.take(X, 1.5), ValueError, "integer type"),
    (lambda: pnp.take(X, 1, mode="raise"), NotImplementedError, "mode='raise'"),
    (lambda: pnp.take(X, 1, mode="x"), ValueError, "Invalid mode 'x'"),
    (lambda: pnp.take(X[:0], 1), IndexError, "empty axis"),
    (lambda: pnp.take_along_axis(X, N), ValueError, "got shapes (3,) and (2, 3)"),
    (lambda: pnp.take_along_axis(X, X), TypeError, "integer type"),
    (lambda: pnp.take_along_axis(X, N[:, None], 1), ValueError, "Incompatible shapes"),
    (lambda: pnp.put(X, 0, 1), ValueError, "inplace=False"),
    (lambda: pnp.put(X, 0, 1, mode="raise", inplace=False), NotImplementedError, "raise"),
    (lambda: pnp.put_along_axis(X, N, 1, 0), ValueError, "inplace=False"),
    (lambda: pnp.place(X, N, 1, inplace=False), ValueError, "(2, 3) and (3,)"),
    (lambda: pnp.place(N, N, np.ones(0), inplace=False), ValueError, "empty array"),
    (lambda: pnp.ravel_multi_index((1,), (2, 3)), ValueError, "array of shape (2, 3)"),
    (lambda: pnp.ravel_multi_index((5, 0), (2, 3)), ValueError, "from 5 to 5 for 2 positions"),
    (lambda: pnp.ravel_multi_index((1.5, 0), (2, 3)), ValueError, "must be integers"),
    (lambda: pnp.unravel_index(1.5, (2, 3)), TypeError, "must be integers"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_errors(number: int) -> None:
    call, error, text = REFUSED[number]
    with pytest.raises(error, match=re.escape(text)):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda x: pnp.nonzero(x),
        lambda x: pnp.argwhere(x),
        lambda x: pnp.flatnonzero(x),
        lambda x: pnp.extract(x, x),
        lambda x: pnp.compress(x, x),
        lambda x: pnp.repeat(x, x),
        lambda x: pnp.delete(x, x),
        lambda x: pnp.trim_zeros(x),
        lambda x: pnp.choose(x, [x, x]),
        lambda x: pnp.ravel_multi_index((x,), (9,)),
        lambda x: pnp.split(x, x),
        lambda x: pnp.arange(x[0]),
        lambda x: pnp.pad(x, x[0]),
    ],
)
def test_traced_values_cannot_determine_shapes(call: Callable[[Any], Any]) -> None:
    with pytest.raises(ConcretizationTypeError, match=r"concrete|static|size|trace"):
        jit(call)(N)


def test_shapes_may_not_be_traced() -> None:
    with pytest.raises(TypeError, match="static_argnums"):
        jit(lambda n: pnp.reshape(X, n))(6)
    with pytest.raises(TypeError, match="concrete integers"):
        jit(lambda n: pnp.eye(n))(6)


MODES = ["edge", "reflect", "symmetric", "wrap", "linear_ramp", "maximum", "mean", "median"]


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_padding_agrees_with_numpy(data: st.DataObject) -> None:
    shape = data.draw(hnp.array_shapes(max_dims=2, max_side=4))
    mode = data.draw(st.sampled_from(MODES))
    widths = [(data.draw(st.integers(0, 5)), data.draw(st.integers(0, 5))) for _ in shape]
    options = {}
    if mode in ("reflect", "symmetric"):
        options["reflect_type"] = data.draw(st.sampled_from(["even", "odd"]))
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape) ** 2
    expected = np.pad(x, widths, mode, **options)
    np.testing.assert_allclose(pnp.pad(x, widths, mode, **options), expected, 1e-4)


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_split_inverts_concatenate(data: st.DataObject) -> None:
    shape = data.draw(hnp.array_shapes(max_dims=3, max_side=5))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    parts = pnp.array_split(x, data.draw(st.integers(1, 4)), axis)
    np.testing.assert_array_equal(pnp.concatenate(parts, axis), x)
    np.testing.assert_array_equal(pnp.stack(pnp.unstack(x, axis=axis), axis), x)
    shift = data.draw(st.integers(-9, 9))
    rolled = pnp.roll(x, shift, axis)
    np.testing.assert_array_equal(rolled, np.roll(x, shift, axis))
    np.testing.assert_array_equal(pnp.roll(rolled, -shift, axis), x)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=5), st.integers(0, 8))
def test_concrete_and_traced_repeats_agree(repeats: list[int], total: int) -> None:
    x, times = np.arange(len(repeats)), np.array(repeats)
    np.testing.assert_array_equal(pnp.repeat(x, times), np.repeat(x, times))
    known = pnp.repeat(x, times, total_repeat_length=total)
    traced = jit(lambda r: pnp.repeat(x, r, total_repeat_length=total))(times)
    np.testing.assert_array_equal(known, traced)


# Creation


def test_lists_of_many_numbers_and_arrays() -> None:
    many = [float(i) for i in range(1000)]
    np.testing.assert_array_equal(pnp.array(many), np.arange(1000, dtype=np.float32))
    scalars = [pnp.asarray(i) for i in range(100)]
    actual = pnp.array(scalars)
    assert (actual.dtype, actual.shape) == (np.int32, (100,))
    np.testing.assert_array_equal(actual, np.arange(100))
    np.testing.assert_array_equal(pnp.array([scalars[:2], [5, 6]]), [[0, 1], [5, 6]])
    np.testing.assert_array_equal(jit(lambda x: pnp.array([x, 1]))(3), [3, 1])
    small = np.array([1.5], dtypes.bf16)
    assert pnp.array([small, [2]]).dtype == dtypes.bf16
    assert pnp.array([True, 2]).dtype == np.int32
    assert bool(pnp.array([float("nan")])[0] != 0)


def test_placement() -> None:
    device = devices()[0]
    for x in (
        pnp.zeros(2, device=device),
        pnp.full_like(X, 1, device=device),
        pnp.arange(3, device=device),
        pnp.asarray(1, device=device),
        pnp.eye(2, device=device),
        pnp.linspace(0, 1, 3, device=device),
        pnp.ones(2, out_sharding=device_put(1, device).sharding),
    ):
        assert x.committed
        assert x.device == device


def test_copies() -> None:
    x = pnp.asarray(X)
    assert pnp.asarray(x) is x
    assert pnp.array(x, copy=False) is x
    for other in (pnp.copy(x), pnp.array(x), pnp.astype(x, x.dtype, copy=True), x.copy()):
        assert other is not x
        np.testing.assert_array_equal(other, x)
    assert pnp.astype(x, x.dtype) is x
    assert pnp.reshape(x, (2, 3)) is x
    assert pnp.reshape(x, (2, 3), copy=True) is not x


@pytest.mark.parametrize("make", [np.array, pnp.array])
def test_shapes_may_be_arrays(make: Callable[[Any], Any]) -> None:
    shape = make([2, 3])
    assert pnp.broadcast_to(1.0, shape).shape == (2, 3)
    assert pnp.broadcast_to(pnp.ones(3), shape).shape == (2, 3)
    assert pnp.broadcast_to(1.0, make(4)).shape == (4,)
    assert pnp.broadcast_shapes(make([2, 1]), (3,)) == (2, 3)
    assert pnp.ones(6).reshape(shape).shape == pnp.resize(1.0, shape).shape == (2, 3)
    assert pnp.ones(6).reshape(make(6)).shape == (6,)
    assert pnp.fromfunction(lambda i, j: i + j, shape, dtype=int).shape == (2, 3)
    with pytest.raises(TypeError, match="concrete values of integer type, got 'two'"):
        pnp.broadcast_to(1.0, "two")


# Files and strings


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    for x in (pnp.asarray(X), pnp.ones(3, dtypes.bf16), pnp.arange(2)):
        pnp.save(path, x)
        actual = pnp.load(path)
        assert actual.dtype == x.dtype
        np.testing.assert_array_equal(actual, x)
    pnp.save(path, pnp.ones(2, "float8_e5m2"))
    with pytest.raises(TypeError, match="without their type"):
        pnp.load(path)
    archive = tmp_path / "x.npz"
    pnp.savez(archive, pnp.arange(2), a=pnp.ones(1))
    with pnp.load(archive) as actual:
        assert sorted(actual) == ["a", "arr_0"]
    raw = tmp_path / "raw"
    X.tofile(raw)
    np.testing.assert_array_equal(pnp.fromfile(raw, dtype=np.float32, offset=4, count=2), [1, 2])
    buffer = io.BytesIO()
    pnp.save(buffer, pnp.arange(3))
    buffer.seek(0)
    np.testing.assert_array_equal(pnp.load(buffer), [0, 1, 2])


def test_printing() -> None:
    x = pnp.asarray([1.23456, 2.0])
    assert pnp.array_repr(x, precision=2) == "Array([1.23, 2.  ], dtype=float32)"
    assert pnp.array_str(x, precision=1) == "[1.2 2. ]"
    with pnp.printoptions(precision=3):
        assert repr(x) == "Array([1.235, 2.   ], dtype=float32)"
        assert pnp.get_printoptions()["precision"] == 3
    before = pnp.get_printoptions()["precision"]
    pnp.set_printoptions(precision=1)
    try:
        assert str(x) == "[1.2 2. ]"
    finally:
        pnp.set_printoptions(precision=before)


def test_iterators() -> None:
    np.testing.assert_array_equal(pnp.fromiter(iter([1, 2, 3]), int, count=2), [1, 2])
    with pytest.raises(ValueError, match="iterator too short"):
        pnp.fromiter(iter([1]), int, count=2)


def test_array_from_another_library() -> None:
    x = np.arange(3, dtype=np.float32)
    assert pnp.from_dlpack(x, copy=True).device == devices()[0]
    np.testing.assert_array_equal(np.from_dlpack(pnp.asarray(x)), x)


# Jaxprs


def operations(fun: Callable[..., Any], *args: Any) -> list[str]:
    """Names of the primitives in the jaxpr of a function."""
    return [e.primitive.name for e in make_jaxpr(fun)(*args).eqns]


def test_jaxprs_are_small() -> None:
    assert operations(lambda x: pnp.roll(x, 1, 0), X) == ["slice", "slice", "concatenate"]
    assert operations(lambda x: pnp.split(x, 3, 1), X) == ["split"]
    assert operations(lambda x: pnp.diagonal(x), X) == ["reshape", "slice"]
    assert operations(lambda x: pnp.flip(x), X) == ["rev"]
    assert operations(lambda x: pnp.tile(x, 2), X) == ["tile"]
    assert "gather" not in operations(lambda x: pnp.pad(x, 1, "reflect"), X)
    assert "scatter" not in operations(lambda x: pnp.diag(x), N)


def test_traced_diagonals() -> None:
    np.testing.assert_array_equal(jit(lambda k: pnp.eye(3, k=k))(1), np.eye(3, k=1))
    np.testing.assert_array_equal(
        vmap(lambda k: pnp.tri(2, 3, k))(np.arange(2)), [np.tri(2, 3, 0), np.tri(2, 3, 1)]
    )


def test_indices_keep_narrow_dtypes_if_they_suffice() -> None:
    narrow = np.array([1], np.int8)
    assert pnp.ravel_multi_index((narrow, narrow), (2, 3)).dtype == np.int8
    wide = pnp.ravel_multi_index((narrow, narrow), (100, 100))
    assert wide.dtype == np.int32
    assert int(wide[0]) == 101


def test_unsigned_indices_beyond_the_signed_range() -> None:
    i = np.array([2**32 - 1], np.uint32)
    assert float(pnp.take(N, i, mode="clip")[0]) == 2
    assert int(pnp.take(N, i, mode="fill", fill_value=-5)[0]) == -5
    assert int(pnp.take(N, i, mode="wrap")[0]) == (2**32 - 1) % 3


def test_fill_values_reuse_executables() -> None:
    x, i = pnp.asarray(X), np.array([9])
    for value in (float("nan"), np.float32("nan"), pnp.asarray(np.nan), np.float64(np.nan)):
        assert np.isnan(pnp.take(x, i, fill_value=value)[0])
        assert np.isnan(x.at[i].get(mode="fill", fill_value=value)[0, 0])
    with no_tracing(True):  # another NaN is a different object
        assert np.isnan(pnp.take(x, i, fill_value=float("nan"))[0])
        assert np.isnan(x.at[i].get(mode="fill", fill_value=float("nan"))[0, 0])
    with pytest.raises(TypeError, match="fill_value must be a concrete number"):
        jit(lambda v: pnp.take(X, 9, fill_value=v))(1.0)


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_matrices_from_index_expressions() -> None:
    for name in ("c_", "r_"):
        for key in (("r", [1, 2], [3, 4]), ("c", [1, 2], [3, 4]), ("c", [1, 2]), ("0,2", [1], [2])):
            actual, expected = getattr(pnp, name)[key], getattr(np, name)[key]
            np.testing.assert_array_equal(actual, expected, f"{name}{key}")
            assert actual.shape == expected.shape
