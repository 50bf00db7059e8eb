"""Random bits inside of kernels."""

from __future__ import annotations

import numpy as np
import pytest
from kernels_under_test import F32

import primax_kernels as pk
from primax_core import ShapeDtypeStruct, dtypes, lax, make_jaxpr
from primax_kernels import tpu
from primax_kernels._cpu.grid import plan_of
from primax_kernels._random_bits import threefry

U32 = np.uint32
EACH = [False, "python", "check"]


def call(kernel, shape=(4, 256), dtype=F32, steps=4, interpret=False):
    return pk.pallas_call(
        kernel, ShapeDtypeStruct(shape, dtype), grid=steps,
        out_specs=pk.BlockSpec((shape[0] // steps, *shape[1:]), lambda i: (i, 0)),
        interpret=interpret,
    )  # fmt: skip


def test_the_published_vectors():
    # Known answers of the authors' library (Random123) for threefry2x32 with 20 rounds.
    vectors = [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ]
    for key, block, expected in vectors:
        out = threefry([U32(k) for k in key], [U32(b) for b in block])
        assert [int(x) for x in out] == list(expected)


def seeded_in_each_step(o):
    tpu.prng_seed(7, pk.program_id(0))
    o[...] = tpu.stateful_uniform(o.shape)


def seeded_once(o):
    @pk.when(pk.program_id(0) == 0)
    def _seed():
        tpu.prng_seed(7)

    o[...] = tpu.stateful_normal(o.shape)


@pytest.mark.parametrize("interpret", EACH)
def test_seeds_of_each_step(interpret):
    x = np.asarray(call(seeded_in_each_step, interpret=interpret)())
    assert (x == np.asarray(call(seeded_in_each_step)())).all()
    assert len(np.unique(x)) > 1000 and 0 <= x.min() and x.max() < 1
    assert abs(x.mean() - 0.5) < 0.03 and abs(x.var() - 1 / 12) < 0.01
    assert abs(np.corrcoef(x)[0, 1]) < 0.2


def test_steps_with_own_seeds_are_parallel():
    def plan(kernel):
        return plan_of(make_jaxpr(call(kernel))().eqns[0].params["kernel"])

    assert plan(seeded_in_each_step).facts.parallel == (True,)
    assert plan(seeded_once).facts.parallel == (False,)


@pytest.mark.parametrize("interpret", EACH)
def test_the_state_passes_from_step_to_step(interpret):
    x = np.asarray(call(seeded_once, interpret=interpret)())
    np.testing.assert_allclose(x, call(seeded_once)(), rtol=1e-6)
    assert len(np.unique(x)) > 1000
    assert abs(x.mean()) < 0.1 and abs(x.std() - 1) < 0.1


def test_draws_differ():
    def kernel(o):
        tpu.prng_seed(1)
        o[0, :] = tpu.prng_random_bits((256,))
        o[1, :] = tpu.prng_random_bits((256,))

    x = np.asarray(call(kernel, (2, 256), np.int32, 1)())
    assert (x[0] != x[1]).mean() > 0.99


def test_bits_and_booleans():
    def kernel(o):
        tpu.prng_seed(1)
        o[0, :] = lax.convert_element_type(tpu.stateful_bits((256,), np.uint8), np.int32)
        o[1, :] = lax.convert_element_type(tpu.stateful_bernoulli(0.25, (256,)), np.int32)

    bits, heads = np.asarray(call(kernel, (2, 256), np.int32, 1)())
    assert 200 < bits.max() < 256 and bits.min() >= 0
    assert 0.1 < heads.mean() < 0.4


def test_reading_without_a_seed_is_found():
    def kernel(o):
        o[...] = tpu.stateful_uniform(o.shape)

    with pytest.raises(pk.KernelCheckError, match="which was not written before"):
        call(kernel, interpret="check")()


def test_stochastic_rounding():
    x = np.array([1.0, 1 + 2**-9, -(1 + 2**-9), np.inf, np.nan, 0.0], F32)
    low, high = (
        np.asarray(
            tpu.stochastic_round(x, np.full(6, b, U32), target_dtype=dtypes.bfloat16)
        ).astype(F32)
        for b in (0, 0xFFFF)
    )
    np.testing.assert_array_equal(low, np.array([1, 1, -1, np.inf, np.nan, 0], F32))
    up = F32(1 + 2**-7)
    np.testing.assert_array_equal(high, np.array([1, up, -up, np.inf, np.nan, 0], F32))
    bits = np.random.default_rng(0).integers(0, 2**32, 4000, U32)
    many = tpu.stochastic_round(np.full(4000, x[1], F32), bits, target_dtype=dtypes.bfloat16)
    assert abs((np.asarray(many).astype(F32) > 1).mean() - 0.25) < 0.03


def test_errors():
    with pytest.raises(RuntimeError, match="outside of a kernel"):
        tpu.prng_seed(1)
    with pytest.raises(ValueError, match="at least one seed"):
        call(lambda o: tpu.prng_seed())()
    with pytest.raises(TypeError, match="integer scalars"):
        call(lambda o: tpu.prng_seed(1.5))()
    with pytest.raises(TypeError, match="stateful_bits draws"):
        call(lambda o: tpu.stateful_bits((2,), np.int8))()
    with pytest.raises(TypeError, match="stateful_normal draws"):
        call(lambda o: tpu.stateful_normal((2,), np.float64))()
    with pytest.raises(TypeError, match="target_dtype=bfloat16"):
        tpu.stochastic_round(np.ones(2, F32), np.ones(2, U32), target_dtype=np.float16)


# Samples that do not depend on the sizes of blocks

KEY = np.array([0, 5], np.uint32)
FOLDED = [
    [2724472204, 3573582090], [202567368, 3886822060], [3594430910, 1784718894],
    [2939540675, 3076691462], [898128576, 3750995185], [972824557, 2491659272],
]  # fmt: skip
"""Keys that JAX folds from the key of the seed 5 and the numbers from 0."""


def words(key, shape, scale=1):
    """The first word of the key, as each sample."""
    first = lax.index_in_dim(key, 0, 0, keepdims=False)
    return lax.broadcast(first, shape) * np.uint32(scale)


def test_keys_of_tiles():
    """An array of 5 by 6 has 3 by 2 tiles of 2 by 4."""
    block = np.asarray(tpu.sample_block(words, KEY, (4, 8), (2, 4), (5, 6), (0, 0)))
    tiles = block.reshape(2, 2, 2, 4).transpose(0, 2, 1, 3).reshape(4, 8)
    for tile, (first, _) in zip(tiles, FOLDED):
        assert (tile == first).all()
    last = np.asarray(tpu.sample_block(words, KEY, (2, 4), (2, 4), (5, 6), (2, 1), scale=2))
    assert (last == np.uint32(2) * np.uint32(FOLDED[5][0])).all()


@pytest.mark.parametrize("interpret", [False, "check", "python"])
@pytest.mark.parametrize("block", [(2, 4), (4, 4), (4, 8)])
def test_samples_of_kernels_do_not_depend_on_blocks(block, interpret):
    def kernel(key, o):
        o[...] = tpu.sample_block(words, key[...], block, (2, 4), (4, 8))

    call = pk.pallas_call(
        kernel, ShapeDtypeStruct((4, 8), np.uint32), grid=(4 // block[0], 8 // block[1]),
        out_specs=pk.BlockSpec(block, lambda i, j: (i, j)), interpret=interpret,
    )  # fmt: skip
    whole = tpu.sample_block(words, KEY, (4, 8), (2, 4), (4, 8), (0, 0))
    np.testing.assert_array_equal(call(KEY), whole)


def test_bad_sizes_and_keys_of_samples():
    with pytest.raises(ValueError, match="have different lengths"):
        tpu.sample_block(words, KEY, (4,), (2, 4), (4, 8), (0,))
    with pytest.raises(ValueError, match=r"tiles of size \(3, 4\) do not divide blocks"):
        tpu.sample_block(words, KEY, (4, 4), (3, 4), (4, 8), (0, 0))
    with pytest.raises(ValueError, match="block_index has 1 entries, the block"):
        tpu.sample_block(words, KEY, (4, 4), (2, 4), (4, 8), (0,))
    with pytest.raises(TypeError, match=r"takes one key of Threefry, got uint32\[4\]"):
        tpu.sample_block(words, np.zeros(4, np.uint32), (4, 4), (2, 4), (4, 8), (0, 0))
    with pytest.raises(RuntimeError, match="program_id is called outside of a kernel"):
        tpu.sample_block(words, KEY, (4, 4), (2, 4), (4, 8))
