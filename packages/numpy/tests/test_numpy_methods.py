"""Methods of arrays: views, iteration, and unsupported methods."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import primax_numpy as pnp
from primax_core import jit
from primax_core.extend import dtypes

X = np.arange(8, dtype=np.float32).reshape(2, 4)


@pytest.mark.parametrize(
    "name, args",
    [
        ("argpartition", (1,)),
        ("argsort", ()),
        ("conj", ()),
        ("conjugate", ()),
        ("copy", ()),
        ("cumprod", (1,)),
        ("cumsum", ()),
        ("diagonal", (1,)),
        ("dot", (X.T,)),
        ("flatten", ("F",)),
        ("ravel", ()),
        ("repeat", (2,)),
        ("round", (1,)),
        ("swapaxes", (0, 1)),
        ("take", (np.array([1, 0]),)),
        ("trace", ()),
        ("compress", (np.array([True, False]), 0)),
        ("nonzero", ()),
        ("byteswap", ()),
    ],
)
def test_methods_agree_with_numpy(name: str, args: tuple[Any, ...]) -> None:
    actual = getattr(pnp.asarray(X), name)(*args)
    expected = getattr(X, name)(*args)
    if name == "argpartition":
        actual, expected = np.sort(actual), np.sort(expected)
    for a, b in zip(*[v if isinstance(v, tuple) else (v,) for v in (actual, expected)]):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("new", ["int8", "int32", "float16", "complex64", "uint16", "float32"])
@pytest.mark.parametrize("old", ["float32", "int8", "complex64", "uint8"])
def test_views(old: str, new: str) -> None:
    x = np.arange(16).reshape(2, 8).astype(old)
    actual = pnp.asarray(x).view(new)
    np.testing.assert_array_equal(actual, x.view(new))
    np.testing.assert_array_equal(jit(lambda a: a.view(new))(x), x.view(new))


def test_methods_that_differ_from_numpy() -> None:
    x = pnp.asarray(X[::-1])
    np.testing.assert_array_equal(x.sort(0), X)
    np.testing.assert_array_equal(x.ptp(1), [3, 3])
    np.testing.assert_array_equal(x.astype(int).choose(list(range(8))), X[::-1])
    assert int(x[:, 0].sort().searchsorted(2.0)) == 1


def test_views_of_booleans() -> None:
    mask = pnp.asarray(X > 2)
    np.testing.assert_array_equal(mask.view("uint8"), X > 2)
    np.testing.assert_array_equal(pnp.asarray([0, 1, 2], "uint8").view(bool), [False, True, True])
    assert mask.view().dtype == np.bool_


@pytest.mark.parametrize(
    "shape, old, new, text",
    [
        ((), "float32", "int8", "0d array"),
        ((2, 3), "float32", "complex64", "not a multiple of the 64 bits"),
    ],
)
def test_errors_of_views(shape: tuple[int, ...], old: str, new: str, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        pnp.ones(shape, old).view(new)


def test_byteswap() -> None:
    for dtype in ("int16", "complex64", "int8"):
        x = np.arange(3).astype(dtype)
        np.testing.assert_array_equal(pnp.asarray(x).byteswap(), x.byteswap())
    twice = pnp.ones(2, dtypes.bf16).byteswap().byteswap()
    np.testing.assert_array_equal(twice, np.ones(2))


def test_iteration() -> None:
    rows = list(pnp.asarray(X))
    assert [r.shape for r in rows] == [(4,), (4,)]
    total = jit(lambda x: sum([r * (i + 1) for i, r in enumerate(x)]))(X)
    np.testing.assert_array_equal(total, X[0] + 2 * X[1])
    with pytest.raises(TypeError, match="iteration over a 0-d array"):
        jit(lambda x: list(x))(1.0)


def test_containment() -> None:
    x = pnp.asarray(X)
    assert 3.0 in x
    assert 99 not in x
    assert None not in x


def test_unsupported_methods() -> None:
    x = pnp.asarray(X)
    with pytest.raises(NotImplementedError, match="flatten"):
        _ = x.flat
    for name in "fill put resize partition itemset tofile dump ctypes base strides flags".split():
        assert not hasattr(x, name), name
    with pytest.raises(AttributeError):
        _ = x.__array_interface__
    with pytest.raises(NotImplementedError, match="`type`"):
        x.view("int32", type=int)


def test_namespace() -> None:
    x = pnp.asarray(X)
    assert x.__array_namespace__() is pnp
    assert x.__array_namespace__(api_version="2024.12") is pnp
    with pytest.raises(ValueError, match=r"2024\.12"):
        x.__array_namespace__(api_version="1999.1")


def test_reshape_and_transpose_accept_tuples_and_separate_numbers() -> None:
    x = pnp.asarray(X)
    for args in ((4, 2), ((4, 2),), ([4, 2],), (-1, 2)):
        assert x.reshape(*args).shape == (4, 2)
    np.testing.assert_array_equal(x.reshape(4, 2, order="F"), X.reshape(4, 2, order="F"))
    assert x.reshape(8).shape == x.reshape(-1).shape == (8,)
    for args in ((), (None,), (1, 0), ((1, 0),)):
        assert x.transpose(*args).shape == (4, 2)


def test_attributes_of_tracers() -> None:
    def of(x: Any) -> Any:
        assert (x.shape, x.ndim, x.size, x.dtype, x.nbytes) == ((2, 4), 2, 8, np.float32, 32)
        return x.T.mT.real + x.imag

    np.testing.assert_array_equal(jit(of)(X), X)
