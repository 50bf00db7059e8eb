"""Random numbers: known answers, statistics, keys, errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import primax_numpy as pnp
from primax_core import Array, jit, threefry_partitionable, vmap
from primax_numpy import random

KEY = random.PRNGKey(42)


def words(x: Array) -> str:
    """The bits of the elements in hexadecimal."""
    bits = np.asarray(x)
    width = bits.dtype.itemsize
    return " ".join(f"{v:0{2 * width}x}" for v in bits.view(f"u{width}").ravel())


VECTORS = {
    "bits": (lambda key: random.bits(key, (3,)), "7d1c13a2 ae0730d9 9dc3f9f9"),
    "bits of 16": (lambda key: random.bits(key, (3,), np.uint16), "13a2 30d9 f9f9"),
    "split": (random.split, "6d3e048f 1022172d 03d7b32d add083f4"),
    "fold_in": (lambda key: random.fold_in(key, 7), "97d0552f 51bf719f"),
    "uniform": (lambda key: random.uniform(key, (3,)), "3efa3824 3f2e0730 3f1dc3f8"),
    "normal": (lambda key: random.normal(key, (3,)), "bce7df15 3eef2be8 3e976661"),
    "permutation": (
        lambda key: random.permutation(key, 8),
        " ".join(f"{i:08x}" for i in (7, 4, 2, 5, 3, 6, 0, 1)),
    ),
}


@pytest.mark.parametrize("name", VECTORS)
def test_known_answers(name: str) -> None:
    draw, expected = VECTORS[name]
    assert words(draw(KEY)) == expected
    assert words(jit(draw)(KEY)) == expected
    assert words(vmap(draw)(pnp.stack([KEY, KEY]))) == f"{expected} {expected}"


def test_seeds() -> None:
    assert words(random.PRNGKey(0)) == "00000000 00000000"
    assert words(random.PRNGKey(-1)) == "00000000 ffffffff"
    assert words(random.PRNGKey(np.int8(-2))) == "00000000 fffffffe"
    assert words(random.PRNGKey(2**40 + 5)) == "00000000 00000005"
    assert words(random.PRNGKey(True)) == words(jit(random.PRNGKey)(1)) == "00000000 00000001"


def test_children_do_not_depend_on_their_number() -> None:
    few, many = random.split(KEY, 3), random.split(KEY, (2, 3))
    np.testing.assert_array_equal(few, many[0])
    np.testing.assert_array_equal(random.fold_in(KEY, 2), few[2])
    assert random.split(KEY, 0).shape == (0, 2)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, pnp.bfloat16])
def test_uniform(dtype: Any) -> None:
    x = np.asarray(random.uniform(KEY, (20000,), dtype)).astype(np.float64)
    assert x.min() >= 0 and x.max() < 1
    assert abs(x.mean() - 0.5) < 5 / math.sqrt(12 * x.size) + 2**-9
    assert abs(np.mean(x < 0.25) - 0.25) < 0.02
    y = np.asarray(random.uniform(KEY, (1000,), minval=-3, maxval=np.float32(5)))
    assert -3 <= y.min() < -2.9 and 4.9 < y.max() < 5
    assert random.uniform(KEY, (2, 3), minval=np.arange(3)).shape == (2, 3)


def test_normal() -> None:
    x = np.asarray(random.normal(KEY, (20000,))).astype(np.float64)
    assert abs(x.mean()) < 5 / math.sqrt(x.size)
    assert abs(x.std() - 1) < 0.03
    assert abs(np.mean(x**3)) < 0.15 and abs(np.mean(x**4) - 3) < 0.3
    assert random.normal(KEY, 5, np.float16).shape == (5,)


def test_bernoulli() -> None:
    assert abs(random.bernoulli(KEY, 0.3, (20000,)).mean() - 0.3) < 0.02
    actual = random.bernoulli(KEY, np.float32([0.0, 1.0]))
    assert actual.tolist() == [False, True]
    with pytest.raises(TypeError, match="floating dtype"):
        random.bernoulli(KEY, 1)


def test_permutation() -> None:
    many = np.asarray(random.permutation(KEY, 3000))
    np.testing.assert_array_equal(np.sort(many), np.arange(3000))
    rows = np.arange(12).reshape(4, 3)
    actual = np.asarray(random.permutation(KEY, rows))
    np.testing.assert_array_equal(actual[np.argsort(actual[:, 0])], rows)
    actual = np.asarray(random.permutation(KEY, rows, axis=1, independent=True))
    np.testing.assert_array_equal(np.sort(actual, 1), rows)
    assert random.permutation(KEY, -3).shape == (0,)
    # All permutations of three elements are about equally frequent.
    orders = np.asarray(vmap(lambda k: random.permutation(k, 3))(random.split(KEY, 3000)))
    _, counts = np.unique(orders, axis=0, return_counts=True)
    assert len(counts) == 6 and abs(counts - 500).max() < 100


def test_bits_are_independent_of_each_other() -> None:
    bits = np.asarray(random.bits(KEY, (4000,), np.uint8))
    flags = np.unpackbits(bits).reshape(-1, 8)
    assert abs(flags.mean() - 0.5) < 0.02
    np.testing.assert_allclose(np.cov(flags.T), np.eye(8) / 4, atol=0.03)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: random.PRNGKey(1.0), TypeError, "seed must be an integer"),
        (lambda: random.PRNGKey("a"), TypeError, "seed must be an integer"),
        (lambda: random.PRNGKey(np.arange(2)), TypeError, "must be a scalar"),
        (lambda: random.PRNGKey(2**64), OverflowError, "too large"),
        (lambda: random.PRNGKey(0, impl="dice"), ValueError, "unknown key implementation 'dice'"),
        (lambda: random.split([0, 1]), TypeError, "make one with random.key"),
        (lambda: random.normal(None), TypeError, "expected a key"),
        (lambda: random.bits(np.zeros(2, np.int32)), TypeError, "uint32 array of 2 words"),
        (lambda: random.bits(np.zeros(3, np.uint32)), TypeError, "uint32 array of 2 words"),
        (lambda: random.uniform(random.split(KEY)), ValueError, "Use vmap"),
        (lambda: random.bits(KEY, (), np.int32), ValueError, "unsigned int dtype"),
        (lambda: random.uniform(KEY, (), np.int32), ValueError, "float dtype"),
        (lambda: random.normal(KEY, (), np.int32), ValueError, "float or complex dtype"),
        (lambda: random.fold_in(KEY, np.arange(2)), TypeError, "accepts a scalar"),
        (lambda: random.fold_in(KEY, -1), OverflowError, "out of bounds for uint32"),
        (lambda: random.permutation(KEY, np.arange(3), axis=2), ValueError, "axis 2"),
        (lambda: random.permutation(KEY, 2.5), TypeError, "integer"),
    ],
)
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_layout_without_threefry_partitionable() -> None:
    """The layout without ``threefry_partitionable``, against known words."""
    with threefry_partitionable(False):
        key = random.PRNGKey(42)
        bits = np.asarray(random.bits(key, (3,)))
        assert [hex(w) for w in bits] == ["0x92fb20ea", "0x19a3f86f", "0xf38d913"]
        small = np.asarray(random.bits(key, (3,), np.uint8))
        assert [hex(w) for w in small] == ["0x8f", "0x4", "0x3e"]
        keys = np.asarray(random.split(key))
        assert [hex(w) for w in keys.ravel()] == [
            "0x92fb20ea", "0xdb4c98db", "0xf38d913", "0xff68959",
        ]  # fmt: skip
    assert hex(int(random.bits(random.PRNGKey(42), (1,))[0])) == "0x7d1c13a2"
