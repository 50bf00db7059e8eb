"""Typed keys: their dtype, and the primitives that work on arrays of them.

An array of keys holds the keys' words on a last axis that its shape does not show. Each operation
is a primitive, so that programs say what they do with keys, and stands for what its
implementation does with the words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from primax_core import lax, vmap
from primax_core.extend import (
    Array,
    Primitive,
    ShapedArray,
    Zero,
    abstract,
    batch,
    dtypes,
    expand,
    jvp,
    lower,
    move_axis,
    typeof,
)

from ._ciphers import U32, UNSIGNED
from ._implementations import Implementation, implementations


class KeyDType(dtypes.ExtendedDType):
    """The dtype of keys of one implementation."""

    __slots__ = ("impl", "itemsize", "name")
    type: Any = dtypes.prng_key

    def __init__(self, impl: Implementation) -> None:
        self.impl: Implementation = impl
        self.name: str = f"key<{impl.tag}>"
        self.itemsize: int = 4 * impl.words

    def physical_aval(self, aval: ShapedArray) -> ShapedArray:
        """The type of the words of an array of keys."""
        return ShapedArray((*aval.shape, self.impl.words), U32)

    def repr_of(self, array: Any) -> str:
        """The text of an array of keys."""
        words = np.asarray(random_unwrap_p.bind(array))
        return f"Array({array.shape}, dtype={self.name}) overlaying:\n{words}"

    def full(self, shape: tuple[int, ...], value: Any) -> Array:
        """Keys of which every word is a number, as ``zeros`` and ``ones`` make them."""
        words = lax.full((*shape, self.impl.words), np.asarray(value).astype(U32)[()])
        out: Array = random_wrap_p.bind(words, impl=self.impl)
        return out

    def __eq__(self, other: object) -> bool:
        return type(other) is KeyDType and other.impl is self.impl

    def __hash__(self) -> int:
        return hash((KeyDType, self.impl))

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__

    def __reduce__(self) -> tuple[Any, ...]:
        return _key_dtype_named, (self.impl.name,)


def _key_dtype_named(name: str) -> KeyDType:
    return dtype_of(implementations[name])


_dtypes: Final[dict[Implementation, KeyDType]] = {}


def dtype_of(impl: Implementation) -> KeyDType:
    """The dtype of an implementation's keys."""
    found = _dtypes.get(impl)
    if found is None:
        found = _dtypes.setdefault(impl, KeyDType(impl))
    return found


def is_key_dtype(dtype: Any) -> bool:
    """Whether a dtype is one of keys."""
    return isinstance(dtype, KeyDType)


random_seed_p: Final = Primitive("random_seed")
random_split_p: Final = Primitive("random_split")
random_fold_in_p: Final = Primitive("random_fold_in")
random_bits_p: Final = Primitive("random_bits")
random_wrap_p: Final = Primitive("random_wrap")
random_unwrap_p: Final = Primitive("random_unwrap")
random_clone_p: Final = Primitive("random_clone")


def _keys(name: str, aval: ShapedArray) -> Implementation:
    if not isinstance(aval.dtype, KeyDType):
        raise TypeError(f"{name} takes keys, got an array of type {aval.str_short()}")
    return aval.dtype.impl


def _over(fun: Callable[[Any], Any], rank: int) -> Callable[[Any], Any]:
    """A function of one key, applied to all keys of an array."""
    for _ in range(rank):
        fun = vmap(fun)
    return fun


def _no_derivative(prim: Primitive) -> None:
    @prim.rule(jvp)
    def _(primals, tangents, **params):
        out = prim.bind(*primals, **params)
        return out, Zero.like(out)


def _batched_in_place(prim: Primitive) -> None:
    """Batches of operations on each element: the mapped axis stays where it is."""

    @prim.rule(batch)
    def _(axis, args, dims, **params):
        return prim.bind(*args, **params), dims[0]


# From seeds


@random_seed_p.rule(abstract)
def _(seeds, *, impl):
    if not dtypes.issubdtype(seeds.dtype, np.integer):
        raise TypeError(f"random_seed takes integers, got {seeds.dtype.name}")
    return ShapedArray(seeds.shape, dtype_of(impl))


@random_seed_p.rule(expand)
def _(seeds, *, impl):
    words = _over(impl.seed, typeof(seeds).ndim)(seeds)
    return random_wrap_p.bind(words, impl=impl)


# To more keys


@random_split_p.rule(abstract)
def _(keys, *, shape):
    _keys("random_split", keys)
    return ShapedArray((*keys.shape, *shape), keys.dtype)


@random_split_p.rule(expand)
def _(keys, *, shape):
    aval = typeof(keys)
    impl = aval.dtype.impl
    words = _over(lambda k: impl.split(k, shape), aval.ndim)(random_unwrap_p.bind(keys))
    return random_wrap_p.bind(words, impl=impl)


@random_fold_in_p.rule(abstract)
def _(keys, data):
    _keys("random_fold_in", keys)
    if data.dtype != U32:
        raise TypeError(f"random_fold_in takes uint32 data, got {data.dtype.name}")
    if keys.shape and data.shape and keys.shape != data.shape:
        raise TypeError(
            f"random_fold_in: keys of shape {keys.shape} and data of shape {data.shape} differ"
        )
    return ShapedArray(keys.shape or data.shape, keys.dtype)


@random_fold_in_p.rule(expand)
def _(keys, data):
    key_aval, data_aval = typeof(keys), typeof(data)
    impl = key_aval.dtype.impl
    fold: Callable[..., Any] = impl.fold_in
    axes = (0 if key_aval.ndim else None, 0 if data_aval.ndim else None)
    for _ in range(max(key_aval.ndim, data_aval.ndim)):
        fold = vmap(fold, in_axes=axes)
    return random_wrap_p.bind(fold(random_unwrap_p.bind(keys), data), impl=impl)


@random_fold_in_p.rule(batch)
def _(axis, args, dims):
    ranks = [typeof(x).ndim - (d is not None) for x, d in zip(args, dims)]
    rank = max(ranks)
    shape = next(
        s[:d] + s[d + 1 :] if d is not None else s
        for s, d, r in zip((typeof(x).shape for x in args), dims, ranks)
        if r == rank
    )
    operands = []
    for x, d, r in zip(args, dims, ranks):
        if d is None and not r:  # shared, and stays so: what generators do depends on it
            operands.append(x)
            continue
        if d is not None:
            x = move_axis(x, d, 0, axis.size)
        kept = (() if d is None else (0,)) + tuple(range(1 + rank - r, 1 + rank))
        full = (axis.size, *shape)
        operands.append(x if typeof(x).shape == full else lax.broadcast_in_dim(x, full, kept))
    return random_fold_in_p.bind(*operands), 0


# To bits


@random_bits_p.rule(abstract)
def _(keys, *, bit_width, shape):
    _keys("random_bits", keys)
    return ShapedArray((*keys.shape, *shape), UNSIGNED[bit_width])


@random_bits_p.rule(expand)
def _(keys, *, bit_width, shape):
    aval = typeof(keys)
    impl = aval.dtype.impl
    return _over(lambda k: impl.bits(k, bit_width, shape), aval.ndim)(random_unwrap_p.bind(keys))


# Between keys and words


@random_wrap_p.rule(abstract)
def _(words, *, impl):
    check_words(words, impl)
    return ShapedArray(words.shape[:-1], dtype_of(impl))


def check_words(words: Any, impl: Implementation) -> None:
    """Refuse what are no words of keys.

    Raises:
      TypeError: saying what words of the implementation look like.
    """
    shape, dtype = getattr(words, "shape", None), getattr(words, "dtype", None)
    if shape is None or dtype is None:
        raise TypeError(f"words of keys are an array of uint32, got {type(words)}")
    if dtype != U32 or not shape or shape[-1] != impl.words:
        raise TypeError(
            f"a raw key of {impl.name} is a uint32 array of {impl.words} words on its last axis, "
            f"got {getattr(dtype, 'name', dtype)}{list(shape)}"
        )


@random_wrap_p.rule(lower)
def _(ctx, words, *, impl):
    return words


@random_wrap_p.rule(batch)
def _(axis, args, dims, *, impl):
    (x,), (d,) = args, dims
    if d == typeof(x).ndim - 1:
        x, d = move_axis(x, d, 0, axis.size), 0
    return random_wrap_p.bind(x, impl=impl), d


@random_unwrap_p.rule(abstract)
def _(keys):
    _keys("random_unwrap", keys)
    return keys.dtype.physical_aval(keys)


@random_unwrap_p.rule(lower)
def _(ctx, keys):
    return keys


@random_clone_p.rule(abstract)
def _(keys):
    return keys.strip_weak_type()


@random_clone_p.rule(lower)
def _(ctx, keys):
    return keys


for _prim in (random_seed_p, random_split_p, random_bits_p, random_unwrap_p, random_clone_p):
    _batched_in_place(_prim)
for _prim in (
    random_seed_p, random_split_p, random_fold_in_p, random_bits_p, random_wrap_p,
    random_unwrap_p, random_clone_p,
):  # fmt: skip
    _no_derivative(_prim)
