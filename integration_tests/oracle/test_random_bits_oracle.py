"""Random bits against the reference."""

import itertools

import jax
import numpy as np
import pytest
from agreement import check, check_batches, same, same_text
from jax import lax
from jax.extend.core.primitives import threefry2x32_p as reference_p

import primax_core as px
from primax_core._base import config
from primax_core.lax import random_bits

U = np.uint32
rng = np.random.default_rng(0)


def words(*shape):
    return rng.integers(0, 2**32, shape, U)


@pytest.mark.parametrize(
    "shapes",
    [
        ((), (), (), ()), ((), (), (5,), (5,)), ((3,), (3,), (3,), (3,)), ((1,), (1,), (4,), (4,)),
        ((2, 1), (2, 1), (1, 3), (1, 3)), ((), (), (0,), (0,)),
    ],
)  # fmt: skip
def test_threefry(shapes):
    args = [words(*s) for s in shapes]
    check(random_bits.threefry2x32_p.bind, reference_p.bind, *args, batch=False)
    # The reference maps both words of a key or counter, or none; Primax maps any.
    for mapped in itertools.product((True, False), repeat=4):
        if not any(mapped):
            continue
        axes = [0 if m else None for m in mapped]
        stacked = [words(2, *s) if m else words(*s) for m, s in zip(mapped, shapes)]
        actual = px.vmap(random_bits.threefry2x32_p.bind, axes)(*stacked)
        for i in range(2):
            one = [a[i] if m else a for m, a in zip(mapped, stacked)]
            same([f[i] for f in map(np.asarray, actual)], reference_p.bind(*one))
        if mapped[0] == mapped[1] and mapped[2] == mapped[3]:
            same(actual, jax.vmap(reference_p.bind, tuple(axes))(*stacked))


def test_threefry_errors():
    good = words(3)
    for args in [(good.astype(np.float32), good, good, good), (words(2), good, good, good),
                 (words(1, 1), good, good, good)]:  # fmt: skip
        with pytest.raises(TypeError):
            reference_p.bind(*args)
        with pytest.raises(TypeError, match="threefry2x32"):
            random_bits.threefry2x32_p.bind(*args)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
@pytest.mark.parametrize("algorithm", [0, 1, 2])
def test_generator(dtype, algorithm):
    for shape in [(), (3,), (2, 5), (0,)]:
        ours = random_bits.rng_bit_generator(
            k := words(4), shape, dtype, random_bits.RandomAlgorithm(algorithm)
        )
        same(ours, lax.rng_bit_generator(k, shape, dtype, lax.RandomAlgorithm(algorithm)))
    check(
        lambda k: tuple(random_bits.rng_bit_generator(
            k, (3,), dtype, random_bits.RandomAlgorithm(algorithm))),
        lambda k: tuple(lax.rng_bit_generator(k, (3,), dtype, lax.RandomAlgorithm(algorithm))),
        k,
        batch=False,
    )  # fmt: skip
    check_batches(
        lambda k: tuple(random_bits.rng_bit_generator(k, (3,), dtype)),
        lambda k: tuple(lax.rng_bit_generator(k, (3,), dtype)),
        (k,),
    )


def test_x64():
    with config.enable_x64(True), jax.enable_x64(True):
        k = words(4)
        same(random_bits.rng_bit_generator(k, (5,), np.uint64),
             lax.rng_bit_generator(k, (5,), np.uint64))  # fmt: skip
        state, bits = random_bits.rng_bit_generator(k.view(np.uint64), (5,), np.uint64)
        assert state.shape == (2,) and state.dtype == np.uint64
        same(bits, lax.rng_bit_generator(k, (5,), np.uint64)[1])


def test_generator_errors():
    for dtype in (np.int32, np.float32, np.bool_):
        with pytest.raises(TypeError, match=f"unsupported dtype {np.dtype(dtype).name}"):
            random_bits.rng_bit_generator(words(4), (3,), dtype)
    for key in (words(2), words(4).astype(np.int32), words(2, 2)):
        with pytest.raises(TypeError, match=r"uint32\[4\]"):
            random_bits.rng_bit_generator(key, (3,))


def test_uniform():
    for a, b in [(np.float32(2), np.float32(3)), (np.int32(-2), np.int32(5)), (0.0, 1.0)]:
        same_text(
            px.make_jaxpr(lambda a, b: random_bits.rng_uniform(a, b, (3,)))(a, b),
            jax.make_jaxpr(lambda a, b: lax.rng_uniform(a, b, (3,)))(a, b),
        )
        x = random_bits.rng_uniform(a, b, (1000,))
        y = lax.rng_uniform(a, b, (1000,))
        assert (x.dtype, x.shape, x.weak_type) == (y.dtype, y.shape, y.weak_type)
        x = np.asarray(x)
        assert (x >= a).all() and (x < b).all() and x.std() > 0
    bad = [(np.float32(0), np.int32(1)), (np.zeros(3, np.float32), np.float32(1))]
    for args in bad:
        with pytest.raises(ValueError) as reference:
            lax.rng_uniform(*args, (3,))
        with pytest.raises(ValueError) as ours:
            random_bits.rng_uniform(*args, (3,))
        assert str(ours.value) == str(reference.value)
    with pytest.raises(NotImplementedError, match="rng_bit_generator"):
        px.vmap(lambda a: random_bits.rng_uniform(a, 1.0, (3,)))(np.zeros(2, np.float32))
