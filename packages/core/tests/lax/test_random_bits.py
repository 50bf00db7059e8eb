"""Random bits against published test vectors."""

from __future__ import annotations

import numpy as np
import pytest

import primax_core as px
from primax_core.lax import random_bits

U = np.uint32


# Test vectors of the cipher's authors.
@pytest.mark.parametrize(
    "key, counter, expected",
    [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF,) * 2, (0xFFFFFFFF,) * 2, (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_threefry(key, counter, expected):
    actual = random_bits.threefry2x32_p.bind(*map(U, (*key, *counter)))
    assert tuple(map(int, actual)) == expected


def test_threefry_on_arrays():
    # Seed 42: children 0 and 1 of the key.
    counts = np.arange(2, dtype=U)
    a, b = random_bits.threefry2x32_p.bind(U(0), U(42), np.zeros(2, U), counts)
    assert np.asarray(a).tolist() == [0x6D3E048F, 0x03D7B32D]
    assert np.asarray(b).tolist() == [0x1022172D, 0xADD083F4]
    (a2, _) = px.vmap(lambda k, c: random_bits.threefry2x32_p.bind(U(0), k, U(0), c), (None, 0))(
        U(42), counts
    )
    assert np.array_equal(a, a2)
    with pytest.raises(TypeError, match="uint32 type, got f32"):
        random_bits.threefry2x32_p.bind(*[np.float32(0)] * 4)


def test_generator():
    # Seed 42: the key of two halves (0, 42, 0, 42).
    key = np.array([0, 42, 0, 42], U)
    state, bits = random_bits.rng_bit_generator(key, (5,))
    assert [hex(int(b)) for b in bits] == [
        "0x9c3738d2", "0xb254e659", "0x10d103e3", "0x9a5aa0ba", "0x6a13e9ea"
    ]  # fmt: skip
    assert np.asarray(state).tolist() == [0, 42, 2, 42]  # two blocks of four words
    _, narrow = random_bits.rng_bit_generator(key, (5,), np.uint8)
    assert np.asarray(narrow).tolist() == [int(b) & 0xFF for b in bits]
    _, mapped = px.vmap(lambda k: random_bits.rng_bit_generator(k, (5,)))(np.stack([key, key + 1]))
    assert np.array_equal(np.asarray(mapped)[0], bits)


def test_errors():
    with pytest.raises(TypeError, match="unsupported dtype int32"):
        random_bits.rng_bit_generator(np.zeros(4, U), (3,), np.int32)
    with pytest.raises(TypeError, match=r"uint32\[4\] or uint64\[2\], got uint32\[2\]"):
        random_bits.rng_bit_generator(np.zeros(2, U), (3,))
    with pytest.raises(ValueError, match="7"):
        random_bits.rng_bit_generator(np.zeros(4, U), (3,), algorithm=7)
    with pytest.raises(ValueError, match="scalars; got shapes"):
        random_bits.rng_uniform(np.zeros(2), np.zeros(2), (3,))
    with pytest.raises(TypeError, match="does not accept dtype complex64"):
        random_bits.rng_uniform(1j, 2j, (3,))


def test_uniform():
    x = np.asarray(random_bits.rng_uniform(np.float32(2), np.float32(3), (1000,)))
    assert ((x >= 2) & (x < 3)).all() and 0.2 < x.std() < 0.4
    y = np.asarray(random_bits.rng_uniform(np.float32(2), np.float32(3), (1000,)))
    assert not np.array_equal(x, y)
