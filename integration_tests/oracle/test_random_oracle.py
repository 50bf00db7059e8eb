"""Random numbers against the reference, bit for bit: eagerly, compiled, and mapped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as rnp
import ml_dtypes
import numpy as np
import pytest

import primax_core as px
import primax_numpy as pnp

Draw = Callable[[Any, Any], Any]
BF16 = np.dtype(ml_dtypes.bfloat16)
DRAWS: dict[str, Draw] = {
    "split": lambda r, k: r.split(k),
    "split 5": lambda r, k: r.split(k, 5),
    "split (2, 3)": lambda r, k: r.split(k, (2, 3)),
    "fold_in": lambda r, k: r.fold_in(k, 2**31 + 5),
    "fold_in array": lambda r, k: r.fold_in(k, np.int32(-1)),
    "bits": lambda r, k: r.bits(k, (3, 5)),
    "bits u8": lambda r, k: r.bits(k, (7,), np.uint8),
    "bits u16": lambda r, k: r.bits(k, 7, np.uint16),
    "uniform": lambda r, k: r.uniform(k),
    "uniform f32": lambda r, k: r.uniform(k, (1000,)),
    "uniform f16": lambda r, k: r.uniform(k, (1000,), np.float16),
    "uniform bf16": lambda r, k: r.uniform(k, (1000,), BF16),
    "uniform between": lambda r, k: r.uniform(k, (1000,), minval=-3.7, maxval=np.float32(11.3)),
    "uniform between rows": lambda r, k: r.uniform(
        k, (2, 300), minval=np.float32([[-1], [2]]), maxval=7
    ),
    "uniform turned": lambda r, k: r.uniform(k, (100,), minval=2, maxval=1),
    "normal": lambda r, k: r.normal(k),
    "normal f32": lambda r, k: r.normal(k, (3, 4000)),
    "normal f16": lambda r, k: r.normal(k, (1000,), np.float16),
    "normal bf16": lambda r, k: r.normal(k, (1000,), BF16),
    "bernoulli": lambda r, k: r.bernoulli(k, 0.3, (1000,)),
    "bernoulli rows": lambda r, k: r.bernoulli(k, np.float32([[0.1], [0.9]]), (2, 500)),
    "bernoulli of p": lambda r, k: r.bernoulli(k, np.float16([0.1, 0.5, 0.9])),
    "permutation": lambda r, k: r.permutation(k, 10),
    "permutation of many": lambda r, k: r.permutation(k, 2100),
    "permutation of rows": lambda r, k: r.permutation(k, np.arange(30).reshape(10, 3)),
    "permutation of columns": lambda r, k: r.permutation(k, np.arange(30).reshape(3, 10), axis=1),
    "permutation each": lambda r, k: r.permutation(
        k, np.arange(30).reshape(3, 10), axis=1, independent=True
    ),
    "permutation of none": lambda r, k: r.permutation(k, 0),
    "chain": lambda r, k: r.normal(r.fold_in(r.split(k)[1], 3), (5,)),
}
SEEDS = [0, 42, -1, 2**31, 2**32 + 3]


def identical(ours: Any, theirs: Any) -> None:
    """Assert that two arrays have the same type and the same bits."""
    a, b = np.asarray(ours), np.asarray(theirs)
    assert (a.shape, a.dtype) == (b.shape, b.dtype)
    assert ours.weak_type == theirs.weak_type
    assert a.tobytes() == b.tobytes(), np.flatnonzero(a != b)[:10]


@pytest.mark.parametrize("name", DRAWS)
def test_draws(name: str) -> None:
    draw = DRAWS[name]
    for seed in (42, -1):
        ours, theirs = pnp.random.PRNGKey(seed), jax.random.PRNGKey(seed)
        identical(draw(pnp.random, ours), draw(jax.random, theirs))
    identical(
        px.jit(lambda k: draw(pnp.random, k))(ours),
        jax.jit(lambda k: draw(jax.random, k))(theirs),
    )
    keys = pnp.random.split(ours, 3)
    identical(
        px.vmap(lambda k: draw(pnp.random, k))(keys),
        jax.vmap(lambda k: draw(jax.random, k))(rnp.asarray(np.asarray(keys))),
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_keys(seed: int) -> None:
    identical(pnp.random.PRNGKey(seed), jax.random.PRNGKey(seed))


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.uint8, np.int32, np.uint32])
def test_keys_from_numpy_integers(dtype: Any) -> None:
    for value in (0, 1, 127, np.iinfo(dtype).min):
        identical(pnp.random.PRNGKey(dtype(value)), jax.random.PRNGKey(dtype(value)))
        identical(
            px.jit(pnp.random.PRNGKey)(dtype(value)), jax.jit(jax.random.PRNGKey)(dtype(value))
        )


WIDE: dict[str, Draw] = {
    "bits": lambda r, k: r.bits(k, (5,)),
    "uniform": lambda r, k: r.uniform(k, (1000,)),
    "uniform between": lambda r, k: r.uniform(k, (1000,), minval=-3.7, maxval=11.3),
    "normal": lambda r, k: r.normal(k, (1000,)),
    "bernoulli": lambda r, k: r.bernoulli(k, 0.3, (100,)),
    "permutation": lambda r, k: r.permutation(k, 10),
    "fold_in": lambda r, k: r.fold_in(k, 7),
}


@pytest.mark.parametrize("name", WIDE)
def test_x64(name: str) -> None:
    draw = WIDE[name]
    with px.enable_x64(True), jax.enable_x64(True):
        for seed in (-1, 2**40 + 7):
            ours, theirs = pnp.random.PRNGKey(seed), jax.random.PRNGKey(seed)
            identical(ours, theirs)
            identical(draw(pnp.random, ours), draw(jax.random, theirs))


BAD: dict[str, Draw] = {
    "float seed": lambda r, k: r.PRNGKey(1.0),
    "array seed": lambda r, k: r.PRNGKey(np.arange(3)),
    "text seed": lambda r, k: r.PRNGKey("a"),
    "large seed": lambda r, k: r.PRNGKey(2**64),
    "no key": lambda r, k: r.normal(None),
    "list": lambda r, k: r.split([0, 1]),
    "short key": lambda r, k: r.bits(np.zeros(1, np.uint32)),
    "signed key": lambda r, k: r.bits(np.zeros(2, np.int32)),
    "many keys": lambda r, k: r.uniform(r.split(k)),
    "signed bits": lambda r, k: r.bits(k, (), np.int32),
    "integer uniform": lambda r, k: r.uniform(k, (), np.int32),
    "integer normal": lambda r, k: r.normal(k, (), np.int32),
    "integer probability": lambda r, k: r.bernoulli(k, 1),
    "negative data": lambda r, k: r.fold_in(k, -1),
    "array data": lambda r, k: r.fold_in(k, np.arange(2)),
    "half a permutation": lambda r, k: r.permutation(k, 2.5),
    "no axis": lambda r, k: r.permutation(k, np.arange(3), axis=1),
    "bad bounds": lambda r, k: r.uniform(k, (3,), minval=np.zeros(2)),
    "bad probability": lambda r, k: r.bernoulli(k, np.float32([0.5, 0.5]), (3,)),
}


@pytest.mark.parametrize("name", BAD)
def test_errors(name: str) -> None:
    case = BAD[name]
    with pytest.raises((TypeError, ValueError, OverflowError)) as theirs:
        case(jax.random, jax.random.PRNGKey(0))
    with pytest.raises(theirs.type):
        case(pnp.random, pnp.random.PRNGKey(0))
