"""Keys: creation from seeds, splitting, folding, and conversion to words."""

from __future__ import annotations

import warnings
from typing import Any, Final, NewType

import numpy as np

from primax_core import lax
from primax_core.extend import (
    Array,
    ShapedArray,
    Tracer,
    as_operand,
    bounded_cache,
    dtypes,
    random_clone_p,
    random_unwrap_p,
    random_wrap_p,
    state,
    typeof,
)
from primax_core.extend.dimensions import index
from primax_core.typing import ArrayLike, DTypeLike

from .._functions import compiled
from ._ciphers import U32
from ._implementations import Implementation, default_implementation, implementation_of
from ._key_dtypes import KeyDType, is_key_dtype
from ._key_types import (
    check_words,
    random_bits_p,
    random_fold_in_p,
    random_seed_p,
    random_split_p,
)

Key = NewType("Key", Array)
"""Type of a key array, for annotations."""

# Inside compiled functions


def typed(key: Any) -> Any:
    """A typed key; raw keys get the default implementation."""
    if is_key_dtype(typeof(key).dtype):
        return key
    return random_wrap_p.bind(key, impl=default_implementation())


def children(key: Any, n: int) -> list[Any]:
    """Keys split from one typed key."""
    keys = random_split_p.bind(key, shape=(n,))
    return [at(keys, i) for i in range(n)]


def at(keys: Any, i: int) -> Any:
    """One key of a vector of keys."""
    return lax.index_in_dim(keys, i, 0, keepdims=False)


def random_words(key: Any, width: int, shape: tuple[int, ...]) -> Any:
    """Unsigned integers of a width from a typed key."""
    return random_bits_p.bind(key, bit_width=width, shape=shape)


# Checks

_accepted: Final[dict[tuple[Any, ShapedArray], bool]] = bounded_cache()
"""Avals of single keys that passed the checks, with the configuration."""


def check_key(name: str, key: Any) -> None:
    """Check that the argument is one key, typed or raw.

    Raises:
      TypeError: if it is not a key.
      ValueError: for an array of keys, and for raw keys if ``legacy_prng_key`` is ``"error"``.
    """
    try:
        if (state.key, key.aval) in _accepted:
            return
    except AttributeError:
        pass
    shape = check_keys(name, key)
    if shape:
        raise ValueError(
            f"{name} accepts a single key, but was given a key array of shape {shape} != (). Use "
            "vmap for batching."
        )
    if isinstance(key, Array) and (state.legacy_prng_key == "allow" or not _is_raw(key)):
        _accepted[state.key, typeof(key)] = True


def _is_raw(key: Any) -> bool:
    return not is_key_dtype(key.dtype)


def check_keys(name: str, keys: Any) -> tuple[int, ...]:
    """Check that the argument is an array of keys, and return its shape."""
    shape, dtype = getattr(keys, "shape", None), getattr(keys, "dtype", None)
    if shape is None or dtype is None:
        raise TypeError(f"{name}: expected a key, got {type(keys)}: make one with random.key")
    if is_key_dtype(dtype):
        return tuple(shape)
    try:
        check_words(keys, default_implementation())
    except TypeError as e:
        raise TypeError(f"{name}: {e}. Make keys with random.key.") from None
    _report_raw(name)
    return tuple(shape[: len(shape) - len(default_implementation().key_shape)])


def _report_raw(name: str) -> None:
    if state.legacy_prng_key == "allow":
        return
    text = (
        f"{name} was given a raw uint32 key. Make typed keys with random.key, or wrap the words "
        "with random.wrap_key_data; raw keys are accepted if legacy_prng_key is 'allow'."
    )
    if state.legacy_prng_key == "error":
        raise ValueError(text)
    warnings.warn(text, UserWarning, stacklevel=4)


# Seeds


def _checked_seed(seed: Any) -> Any:
    """A validated scalar integer seed, with the configured offset."""
    if isinstance(seed, (int, np.bool_)):
        seed = int(seed)
        if not -(2**63) <= seed < 2**63:
            raise OverflowError(f"Python int {seed} too large to convert to int64")
        seed += state.random_seed_offset
        if state.enable_x64:
            return np.uint64(seed & 0xFFFFFFFFFFFFFFFF).astype(np.int64)
        # Only the low word is used.
        low = seed & 0xFFFFFFFF
        return low if low < 2**31 else np.uint32(low)
    if isinstance(seed, (float, complex, str, np.inexact)) or not hasattr(seed, "dtype"):
        raise TypeError(f"PRNG key seed must be an integer; got {seed!r}")
    dtype = seed.dtype
    if is_key_dtype(dtype):
        raise TypeError(
            "PRNG key seed must be an integer; got a key: use it directly, or derive others "
            "from it with split and fold_in"
        )
    if not dtypes.issubdtype(dtype, np.integer):
        raise TypeError(f"PRNG key seed must be an integer; got an array of dtype {dtype.name}")
    if np.shape(seed):
        raise TypeError(
            f"PRNG key seed must be a scalar; got an array of shape {np.shape(seed)}. Use vmap "
            "for batching."
        )
    offset = state.random_seed_offset
    return seed + np.asarray(offset).astype(dtype)[()] if offset else seed


@compiled("impl", name="random_seed")
def _seeded(seed: Any, *, impl: Implementation) -> Any:
    return random_seed_p.bind(seed, impl=impl)


@compiled("impl", name="random_seed")
def _seeded_words(seed: Any, *, impl: Implementation) -> Any:
    return random_unwrap_p.bind(random_seed_p.bind(seed, impl=impl))


def key(seed: ArrayLike, *, impl: Any = None, dtype: DTypeLike | None = None) -> Array:
    """A typed key from an integer: a scalar array whose dtype names its implementation.

    Args:
      seed: an integer scalar. Without 64-bit types only its low 32 bits are used.
      impl: name of the implementation (``"threefry2x32"``, ``"rbg"``, ``"unsafe_rbg"``,
        ``"threefry4x32"``, ``"philox4x32"``, ``"philox2x32"``, or one registered with
        ``random.extend``) or a key dtype; by default the option ``default_prng_impl``.
      dtype: a synonym of ``impl``.

    Raises:
      TypeError: if the seed is not an integer scalar.
      OverflowError: if a Python integer does not fit 64 bits.
      ValueError: if the implementation is unknown, or both ``impl`` and ``dtype`` are specified.

    >>> key(42)
    Array((), dtype=key<fry>) overlaying:
    [ 0 42]
    """
    out: Array = _seeded(_checked_seed(seed), impl=_chosen("key", impl, dtype))
    return out


def _chosen(name: str, impl: Any, dtype: Any) -> Implementation:
    if impl is not None and dtype is not None:
        raise ValueError(f"{name}: pass the implementation as impl or as dtype, not both")
    return implementation_of(dtype if impl is None else impl)


def PRNGKey(seed: ArrayLike, *, impl: Any = None) -> Array:
    """A raw key from an integer: its words as a ``uint32`` array.

    :func:`key` is recommended: typed keys carry their implementation and cannot be confused with
    numbers. With the option ``enable_custom_prng`` the result is a typed key, too.

    Args:
      seed: an integer scalar, as for :func:`key`.
      impl: the name of the implementation, by default that of the configuration.

    Returns:
      ``uint32[*key_shape]``; the shape is ``(2,)`` for the default implementation.

    Raises:
      TypeError: if ``seed`` is not an integer scalar.

    >>> PRNGKey(0)
    Array([0, 0], dtype=uint32)
    """
    make = _seeded if state.enable_custom_prng else _seeded_words
    out: Array = make(_checked_seed(seed), impl=implementation_of(impl))
    return out


# Words


@compiled()
def _key_data(keys: Any) -> Any:
    return random_unwrap_p.bind(keys)


@compiled("impl")
def _wrap_key_data(words: Any, *, impl: Implementation) -> Any:
    return random_wrap_p.bind(words, impl=impl)


@compiled()
def _clone(keys: Any) -> Any:
    return random_clone_p.bind(keys)


def key_data(keys: ArrayLike) -> Array:
    """The words of keys. Raw keys are returned unchanged.

    Args:
      keys: a key or an array of keys, typed or raw.

    Returns:
      ``uint32[*keys.shape, *key_shape]``, with the shape of the words of one key last.

    Raises:
      TypeError: if ``keys`` are not keys.

    The inverse is :func:`wrap_key_data`. Use the words to store keys in files.

    >>> key_data(key(3))
    Array([0, 3], dtype=uint32)
    """
    check_keys("key_data", keys)
    out: Array = as_operand(keys) if not isinstance(keys, Array) else keys
    return _key_data(keys) if is_key_dtype(keys.dtype) else out


def wrap_key_data(
    key_bits_array: ArrayLike, *, impl: Any = None, dtype: DTypeLike | None = None
) -> Array:
    """Keys from their words, the inverse of :func:`key_data`.

    Args:
      key_bits_array: ``uint32[..., *key_shape]``, with the shape of the words of one key last.
      impl, dtype: the implementation, as for :func:`key`.

    Returns:
      An array of typed keys of the shape of the leading axes.

    Raises:
      TypeError: if the array has another dtype, or its last axes differ from the words of a key.

    >>> wrap_key_data(np.array([0, 42], np.uint32)) == key(42)
    Array(True, dtype=bool)
    """
    chosen = _chosen("wrap_key_data", impl, dtype)
    try:
        check_words(key_bits_array, chosen)
    except TypeError as e:
        raise TypeError(f"wrap_key_data: {e}") from None
    out: Array = _wrap_key_data(key_bits_array, impl=chosen)
    return out


def clone(key: ArrayLike) -> Array:
    """A copy of a key that ``debug_key_reuse`` treats as a new key.

    Args:
      key: one key or an array of keys.

    Returns:
      Keys of the shape and implementation of ``key``, with the same words.

    Raises:
      TypeError: if ``key`` is not a key.

    Samples of a key and of its clone are equal. It is meant for code that needs equal samples.

    >>> k = key(0)
    >>> clone(k) == k
    Array(True, dtype=bool)
    """
    check_keys("clone", key)
    out: Array = _clone(key)
    return out


def key_impl(keys: ArrayLike) -> str:
    """The name of the implementation of keys.

    Args:
      keys: a key or an array of keys, typed or raw.

    Returns:
      A string, such as ``"threefry2x32"`` or ``"rbg"``.

    Raises:
      TypeError: if ``keys`` are not keys.

    The result can be passed as ``impl`` to :func:`key` and :func:`wrap_key_data`.

    >>> key_impl(key(0))
    'threefry2x32'
    >>> key_impl(key(0, impl="rbg"))
    'rbg'
    """
    check_keys("key_impl", keys)
    dtype = keys.dtype
    return (dtype.impl if isinstance(dtype, KeyDType) else default_implementation()).name


def key_dtype(impl_spec: Any = None) -> Any:
    """The dtype of the keys of an implementation, by default the default one.

    Args:
      impl_spec: the name of an implementation, or ``None`` for the default one.

    Returns:
      An extended dtype, a subclass of ``prng_key``.

    Raises:
      ValueError: if the name is unknown; the message lists the known names.

    It can describe keys in ``ShapeDtypeStruct``.

    >>> key_dtype("rbg")
    key<rbg>
    >>> key_dtype() == key(0).dtype
    True
    """
    return implementation_of(impl_spec).dtype


# Derived keys


@compiled("shape", name="random_split")
def _split(key: Any, *, shape: tuple[int, ...]) -> Any:
    if is_key_dtype(typeof(key).dtype):
        return random_split_p.bind(key, shape=shape)
    return random_unwrap_p.bind(random_split_p.bind(typed(key), shape=shape))


def split(key: ArrayLike, num: int | tuple[int, ...] = 2) -> Array:
    """Independent keys derived from one key, which must not be reused.

    Args:
      key: one key.
      num: the number of keys, or the shape of an array of keys. It must be concrete.

    Returns:
      Keys of the implementation of ``key``; words if ``key`` is raw.

    Raises:
      ValueError: for an array of keys (use ``vmap``), and if ``num`` is negative.

    >>> first, second = split(key(0))
    >>> split(key(0), (2, 3)).shape
    (2, 3)
    """
    check_key("split", key)
    if type(num) is int:
        shape: tuple[int, ...] = (num,)
    elif hasattr(num, "__index__"):
        shape = (index(num),)
    else:
        shape = tuple(map(index, num))
    if any(d < 0 for d in shape):
        raise ValueError(f"split: the number of keys must not be negative, got {num}")
    out: Array = _split(key, shape=shape)
    return out


@compiled(name="random_fold_in")
def _fold_in(key: Any, data: Any) -> Any:
    data = lax.convert_element_type(data, U32)
    if is_key_dtype(typeof(key).dtype):
        return random_fold_in_p.bind(key, data)
    return random_unwrap_p.bind(random_fold_in_p.bind(typed(key), data))


def fold_in(key: ArrayLike, data: ArrayLike) -> Array:
    """A key derived from a key and an integer; different integers give independent keys.

    Args:
      key: one key.
      data: an integer scalar of 32 bits, which may be traced. Values of other types are converted
        to ``uint32``.

    Returns:
      A key of the implementation of ``key``; words if ``key`` is raw.

    Raises:
      TypeError: if ``data`` is not a scalar number.
      OverflowError: if a Python integer does not fit 32 unsigned bits.

    It suits the index of a step or of a device: no key has to be passed on.

    >>> fold_in(key(0), 1) == fold_in(key(0), 2)
    Array(False, dtype=bool)
    """
    check_key("fold_in", key)
    if isinstance(data, int):
        if not 0 <= data < 2**32:
            raise OverflowError(f"Python integer {data} out of bounds for uint32")
        data = np.uint32(data) if data >= 2**31 else int(data)
    elif isinstance(data, str) or is_key_dtype(getattr(data, "dtype", None)):
        raise TypeError(f"fold_in takes an integer as data, got {data!r}")
    elif not isinstance(data, Tracer) and np.ndim(data) or isinstance(data, Tracer) and data.ndim:
        raise TypeError(
            f"fold_in accepts a scalar, but was given an array of shape {np.shape(data)} != (). "
            "Use vmap for batching."
        )
    out: Array = _fold_in(key, data)
    return out
