"""``ufunc`` objects: attributes, errors, ufuncs of Python functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import primax_numpy as pnp
from primax_core import grad, jit, vmap

IDENTITIES = {
    "add": 0, "subtract": None, "multiply": 1, "negative": None, "maximum": None,
    "minimum": None, "bitwise_and": -1, "bitwise_or": 0, "bitwise_xor": 0, "logical_and": True,
    "logical_or": False, "logical_xor": False, "logaddexp": -math.inf, "logaddexp2": -math.inf,
}  # fmt: skip


@pytest.mark.parametrize("name", IDENTITIES)
def test_attributes(name: str) -> None:
    fun = getattr(pnp, name)
    assert isinstance(fun, pnp.ufunc) and repr(fun) == f"<ufunc '{name}'>"
    count = 1 if name == "negative" else 2
    assert (fun.nin, fun.nout, fun.nargs) == (count, 1, count)
    assert fun.identity == IDENTITIES[name] and fun.__name__ == name
    assert fun == fun and hash(fun) == hash(fun) and fun.__doc__
    with pytest.raises(AttributeError):
        fun.nin = 3


def test_errors() -> None:
    x = pnp.arange(4)
    with pytest.raises(NotImplementedError, match=r"out argument of <ufunc 'add'>"):
        pnp.add(x, x, out=x)
    with pytest.raises(NotImplementedError, match=r"where argument of <ufunc 'add'>"):
        pnp.add(x, x, where=True)
    with pytest.raises(TypeError, match="dtype"):
        pnp.add(x, x, dtype=float)
    with pytest.raises(TypeError, match=r"add\(\) takes 2 positional arguments"):
        pnp.add(x, x, x)
    for method in ("reduce", "accumulate", "reduceat"):
        indices = (np.array([0]),) if method == "reduceat" else ()
        with pytest.raises(ValueError, match=f"{method} only supported for binary ufuncs"):
            getattr(pnp.negative, method)(x, *indices)
        with pytest.raises(NotImplementedError, match=rf"out argument of add\.{method}\(\)"):
            getattr(pnp.add, method)(x, *indices, out=x)
        with pytest.raises(
            TypeError, match=rf"subtract\.{method} requires .* 'list'> at position 0"
        ):
            getattr(pnp.subtract, method)([1], *indices)
        for fun in (pnp.add, pnp.subtract):
            with pytest.raises(ValueError, match="axis 3 is out of bounds"):
                getattr(fun, method)(x, *indices, axis=3)
    with pytest.raises(ValueError, match="outer only supported for binary ufuncs"):
        pnp.negative.outer(x, x)
    with pytest.raises(TypeError, match=r"add\.outer requires .* at position 1"):
        pnp.add.outer(x, [1])


def test_errors_of_reductions() -> None:
    x = pnp.arange(4)
    with pytest.raises(ValueError, match="zero-size array to reduction operation subtract"):
        pnp.subtract.reduce(x[:0])
    with pytest.raises(ValueError, match="zero-size array to reduction operation max"):
        pnp.maximum.reduce(x[:0])
    for fun in (pnp.subtract, pnp.maximum):
        with pytest.raises(ValueError, match="does not have an identity"):
            fun.reduce(x, where=x > 1)
        with pytest.raises(ValueError, match="axis 0 is out of bounds for array of dimension 0"):
            fun.reduce(pnp.asarray(1))
    with pytest.raises(NotImplementedError, match="tuple of axes"):
        pnp.subtract.reduce(pnp.ones((2, 2)), axis=(0, 1))
    with pytest.raises(ValueError, match="does not allow multiple axes"):
        pnp.subtract.accumulate(x, axis=None)


def test_errors_of_reduceat_and_at() -> None:
    x = pnp.arange(4)
    with pytest.raises(ValueError, match=r"must be one-dimensional, got indices.shape=\(1, 2\)"):
        pnp.add.reduceat(x, np.array([[0, 1]]))
    with pytest.raises(ValueError, match="indices must have an integer type, got float32"):
        pnp.add.reduceat(x, np.array([0.0]))
    for bad in (4, -1):
        with pytest.raises(IndexError, match=rf"index {bad} out of bounds for axis of size 4"):
            pnp.add.reduceat(x, np.array([0, bad]))
    with pytest.raises(NotImplementedError, match=r"inplace=False(.|\n)*>>> arr = add\.at\(arr"):
        pnp.add.at(x, 0, 1)
    with pytest.raises(TypeError, match="takes a second operand"):
        pnp.add.at(x, 0, inplace=False)
    with pytest.raises(TypeError, match="takes no second operand"):
        pnp.negative.at(x, 0, 1, inplace=False)


def test_reductions_of_empty_arrays_and_scalars() -> None:
    empty = np.zeros((0, 2), np.float32)
    for name, identity in IDENTITIES.items():
        if identity is not None and not name.startswith("bitwise"):
            actual = getattr(pnp, name).reduce(empty)
            assert actual.tolist() == [identity, identity]
    assert pnp.bitwise_and.reduce(empty.astype(int)).tolist() == [-1, -1]
    assert pnp.add.accumulate(2.0).tolist() == [2.0]
    assert pnp.add.accumulate(empty).shape == pnp.subtract.accumulate(empty).shape == (0, 2)
    assert pnp.add.reduceat(np.arange(3), np.zeros(0, int)).shape == (0,)


def test_updates_out_of_bounds_are_dropped() -> None:
    x = pnp.arange(3)
    index = np.array([1, 7, -1])
    assert pnp.add.at(x, index, 10, inplace=False).tolist() == [0, 11, 12]
    assert pnp.logaddexp.at(x, index, -np.inf, inplace=False).tolist() == [0.0, 1.0, 2.0]
    assert pnp.bitwise_or.at(x, (slice(0, 2),), 4, inplace=False).tolist() == [4, 5, 2]


def weigh(a: Any, b: Any) -> Any:
    """Not associative."""
    return 2 * a + b


def test_ufuncs_of_python_functions() -> None:
    function = pnp.frompyfunc(weigh, 2, 1, identity=0)
    theirs = np.frompyfunc(weigh, 2, 1, identity=0)
    x = np.arange(6).reshape(2, 3)
    assert repr(function) == "<ufunc 'weigh'>" and function == pnp.frompyfunc(
        weigh, 2, 1, identity=0
    )
    assert function != pnp.frompyfunc(weigh, 2, 1)
    for axis in (0, 1, -1):
        np.testing.assert_array_equal(function.reduce(x, axis=axis), theirs.reduce(x, axis=axis))
        np.testing.assert_array_equal(
            function.accumulate(x, axis=axis), theirs.accumulate(x, axis=axis)
        )
        at = np.array([1, 0, 1])
        np.testing.assert_array_equal(
            function.reduceat(x, at, axis=axis), theirs.reduceat(x, at, axis=axis)
        )
    np.testing.assert_array_equal(function(x, x[0]), theirs(x, x[0]))
    np.testing.assert_array_equal(function.outer(x, x[0]), theirs.outer(x, x[0]))
    assert function.reduce(x, axis=None, keepdims=True).shape == (1, 1)
    assert function.reduce(x[:0]).tolist() == [0, 0, 0]
    masked = function.reduce(x, where=np.array([True, False, True]), axis=1)
    assert masked.tolist() == [2, 11]
    assert function.reduce(x[0], initial=5).tolist() == 2 * (2 * (2 * 5) + 1) + 2


def test_dtypes_of_reductions_of_python_functions() -> None:
    halve = pnp.frompyfunc(lambda a, b: (a + b) / 2, 2, 1)
    x = np.arange(4)
    assert halve.reduce(x).dtype == halve.accumulate(x).dtype == np.float32
    assert float(halve.reduce(x)) == 2.125
    function = pnp.frompyfunc(weigh, 2, 1)
    assert function.reduce(x, dtype=np.float16).dtype == np.float16


def test_ufuncs_of_python_functions_under_transformations() -> None:
    function = pnp.frompyfunc(lambda a, b: a * b + a, 2, 1)
    x = np.array([1.0, 2.0, 3.0], np.float32)
    assert float(jit(function.reduce)(x)) == float(function.reduce(x)) == 12.0
    np.testing.assert_allclose(grad(function.reduce)(x), [12.0, 4.0, 3.0])
    np.testing.assert_allclose(vmap(function.reduce)(np.stack([x, 2 * x])), [12.0, 2 * 5 * 7])
    starts = np.array([0, 2])
    np.testing.assert_array_equal(jit(pnp.add.reduceat)(x, starts), pnp.add.reduceat(x, starts))


def test_construction() -> None:
    with pytest.raises(TypeError, match="expected a function, got int"):
        pnp.frompyfunc(3, 1, 1)
    with pytest.raises(TypeError, match="float"):
        pnp.frompyfunc(weigh, 2.5, 1)
    called = pnp.ufunc(
        weigh, 2, 1, name="w", nargs=2, call=lambda a, b: "called", reduce=lambda *a: "reduced",
        accumulate=lambda *a: "accumulated", at=lambda *a: "at", reduceat=lambda *a: "reduceat",
    )  # fmt: skip
    x = np.arange(2)
    assert called(1, 2) == "called" and called.reduce(x) == "reduced" and called.__name__ == "w"
    assert called.accumulate(x) == "accumulated" and called.reduceat(x, x) == "reduceat"
    assert called.at(x, 0, 1, inplace=False) == "at"
    two = pnp.frompyfunc(lambda a: (a, a + 1), 1, 2)
    assert [v.tolist() for v in two(x)] == [[0, 1], [1, 2]]
    with pytest.raises(ValueError, match="one result"):
        pnp.frompyfunc(lambda a, b: (a, b), 2, 2).reduce(x)
