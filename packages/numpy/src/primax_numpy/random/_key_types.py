"""Primitives on arrays of typed keys.

The words of an array of keys are on last axes that are not part of its shape. Each operation is a
primitive, so that jaxprs show the use of keys; it expands to operations of the implementation on
the words.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from primax_core import lax, vmap
from primax_core.extend import (
    Primitive,
    Sample,
    ShapedArray,
    Zero,
    abstract,
    batch,
    dtypes,
    expand,
    i32,
    jvp,
    move_axis,
    random_unwrap_p,
    random_wrap_p,
    samples,
    typeof,
    u32,
)

from ._ciphers import U32, UNSIGNED
from ._implementations import Implementation, implementations
from ._key_dtypes import KeyDType, is_key_dtype
from ._key_functions import drawn_bits, folded_in, seeded, split

random_seed_p: Final = Primitive("random_seed")
random_split_p: Final = Primitive("random_split")
random_fold_in_p: Final = Primitive("random_fold_in")
random_bits_p: Final = Primitive("random_bits")


def _keys(name: str, aval: ShapedArray) -> Implementation:
    if not isinstance(aval.dtype, KeyDType):
        raise TypeError(f"{name} takes keys, got an array of type {aval.str_short()}")
    return aval.dtype.impl


def _over(fun: Callable[[Any], Any], rank: int) -> Callable[[Any], Any]:
    """A function of one key mapped over all keys of an array."""
    for _ in range(rank):
        fun = vmap(fun)
    return fun


def _no_derivative(prim: Primitive) -> None:
    @prim.rule(jvp)
    def zero_jvp(primals, tangents, **params):
        out = prim.bind(*primals, **params)
        return out, Zero.like(out)


def _batched_in_place(prim: Primitive) -> None:
    """Register the batching rule of an operation on each key: the batch axis keeps its position."""

    @prim.rule(batch)
    def batch_in_place(axis, args, dims, **params):
        return prim.bind(*args, **params), dims[0]


# Seeding


@random_seed_p.rule(abstract)
def _random_seed_abstract(seeds, *, impl):
    if not dtypes.issubdtype(seeds.dtype, np.integer):
        raise TypeError(f"random_seed takes integers, got {seeds.dtype.name}")
    return ShapedArray(seeds.shape, impl.dtype)


@random_seed_p.rule(expand)
def _random_seed_expand(seeds, *, impl):
    words = _over(lambda s: seeded(impl, s), typeof(seeds).ndim)(seeds)
    return random_wrap_p.bind(words, impl=impl)


# Derived keys


@random_split_p.rule(abstract)
def _random_split_abstract(keys, *, shape):
    _keys("random_split", keys)
    return ShapedArray((*keys.shape, *shape), keys.dtype)


@random_split_p.rule(expand)
def _random_split_expand(keys, *, shape):
    aval = typeof(keys)
    impl = aval.dtype.impl
    words = _over(lambda k: split(impl, k, shape), aval.ndim)(random_unwrap_p.bind(keys))
    return random_wrap_p.bind(words, impl=impl)


@random_fold_in_p.rule(abstract)
def _random_fold_in_abstract(keys, data):
    _keys("random_fold_in", keys)
    if data.dtype != U32:
        raise TypeError(f"random_fold_in takes uint32 data, got {data.dtype.name}")
    if keys.shape and data.shape and keys.shape != data.shape:
        raise TypeError(
            f"random_fold_in: keys of shape {keys.shape} and data of shape {data.shape} differ"
        )
    return ShapedArray(keys.shape or data.shape, keys.dtype)


@random_fold_in_p.rule(expand)
def _random_fold_in_expand(keys, data):
    key_aval, data_aval = typeof(keys), typeof(data)
    impl = key_aval.dtype.impl
    fold: Callable[..., Any] = partial(folded_in, impl)
    axes = (0 if key_aval.ndim else None, 0 if data_aval.ndim else None)
    for _ in range(max(key_aval.ndim, data_aval.ndim)):
        fold = vmap(fold, in_axes=axes)
    return random_wrap_p.bind(fold(random_unwrap_p.bind(keys), data), impl=impl)


@random_fold_in_p.rule(batch)
def _random_fold_in_batch(axis, args, dims):
    ranks = [typeof(x).ndim - (d is not None) for x, d in zip(args, dims)]
    rank = max(ranks)
    shape = next(
        s[:d] + s[d + 1 :] if d is not None else s
        for s, d, r in zip((typeof(x).shape for x in args), dims, ranks)
        if r == rank
    )
    operands = []
    for x, d, r in zip(args, dims, ranks):
        if d is None and not r:  # unbatched operands stay unbatched: generators depend on it
            operands.append(x)
            continue
        if d is not None:
            x = move_axis(x, d, 0, axis.size)
        operand_axes = (() if d is None else (0,)) + tuple(range(1 + rank - r, 1 + rank))
        full = (axis.size, *shape)
        operands.append(
            x if typeof(x).shape == full else lax.broadcast_in_dim(x, full, operand_axes)
        )
    return random_fold_in_p.bind(*operands), 0


# Random bits


@random_bits_p.rule(abstract)
def _random_bits_abstract(keys, *, bit_width, shape):
    _keys("random_bits", keys)
    return ShapedArray((*keys.shape, *shape), UNSIGNED[bit_width])


@random_bits_p.rule(expand)
def _random_bits_expand(keys, *, bit_width, shape):
    aval = typeof(keys)
    impl = aval.dtype.impl
    words = random_unwrap_p.bind(keys)
    return _over(lambda k: drawn_bits(impl, k, bit_width, shape), aval.ndim)(words)


# Keys and words


def check_words(words: Any, impl: Implementation) -> None:
    """Check that an array has the dtype and shape of the words of keys.

    Raises:
      TypeError: with the expected dtype and shape.
    """
    shape, dtype = getattr(words, "shape", None), getattr(words, "dtype", None)
    if shape is None or dtype is None:
        raise TypeError(f"words of keys must be an array of uint32, got {type(words)}")
    n = len(impl.key_shape)
    if dtype != U32 or len(shape) < n or tuple(shape[len(shape) - n :]) != impl.key_shape:
        expected = (
            f"{impl.words} words on its last axis"
            if n == 1
            else f"words of shape {impl.key_shape} on its last axes"
        )
        raise TypeError(
            f"a raw key of {impl.name} is a uint32 array of {expected}, "
            f"got {getattr(dtype, 'name', dtype)}{list(shape)}"
        )


for _prim in (random_seed_p, random_split_p, random_bits_p):
    _batched_in_place(_prim)
for _prim in (random_seed_p, random_split_p, random_fold_in_p, random_bits_p):
    _no_derivative(_prim)


def _of_words(prim: Primitive, impl: str, **params: Any) -> Callable[..., Any]:
    """An operation on keys as a function of their words, for the conformance kit."""

    def call(words: Any, *others: Any) -> Any:
        keys = random_wrap_p.bind(words, impl=implementations[impl])
        out = prim.bind(keys, *others, **params)
        return random_unwrap_p.bind(out) if is_key_dtype(typeof(out).dtype) else out

    return call


@random_seed_p.rule(samples)
def _random_seed_samples():
    def call(seeds: Any) -> Any:
        keys = random_seed_p.bind(seeds, impl=implementations["threefry2x32"])
        return random_unwrap_p.bind(keys)

    for shape in ((), (3,), (0,)):
        yield Sample(i32(*shape)).set(call=call)


@random_split_p.rule(samples)
def _random_split_samples():
    for shape in ((2,), (3, 2), (3, 1, 2), (0, 2)):
        yield Sample(u32(*shape)).set(call=_of_words(random_split_p, "threefry2x32", shape=(2,)))
    yield Sample(u32(1)).set(call=_of_words(random_split_p, "philox2x32", shape=(2, 3)))


@random_fold_in_p.rule(samples)
def _random_fold_in_samples():
    fold = _of_words(random_fold_in_p, "threefry2x32")
    yield Sample(u32(2), u32()).set(call=fold)
    yield Sample(u32(3, 2), u32(3)).set(call=fold)
    yield Sample(u32(2), u32(3)).set(call=fold)
    yield Sample(u32(3, 2), u32()).set(call=fold)


@random_bits_p.rule(samples)
def _random_bits_samples():
    for shape, width in (((2,), 32), ((3, 2), 8), ((0, 2), 16)):
        bits = _of_words(random_bits_p, "threefry2x32", bit_width=width, shape=(4,))
        yield Sample(u32(*shape)).set(call=bits)
    scalars = _of_words(random_bits_p, "philox4x32", bit_width=32, shape=())
    yield Sample(u32(3, 2)).set(call=scalars)
