"""Permutations, choices from arrays, and categorical sampling."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from primax_core import lax
from primax_core.errors import ConcretizationTypeError
from primax_core.extend import Array, Tracer, dtypes, typeof
from primax_core.extend.runtime import with_out_sharding
from primax_core.typing import ArrayLike, ShapeLike, ShardingLike

from .._checks import check_arrays, one_axis
from .._functions import compiled
from .._promotion import repeated
from . import _draws as draws
from ._floats import gumbel_mode, gumbel_noise
from ._keys import check_key, children, random_words, typed
from ._uniform import integers

# Permutations


@compiled("axis", "rounds", "by_position")
def _shuffle(key: Any, x: Any, *, axis: int, rounds: int, by_position: bool) -> Any:
    key = typed(key)
    if not by_position:
        return shuffled(key, x, axis, rounds)
    return taken(x, shuffled_range(key, x.shape[axis], rounds), axis)


@compiled("n", "dtype")
def _shuffled_range(key: Any, *, n: int, dtype: Any) -> Any:
    return lax.convert_element_type(shuffled_range(typed(key), n, rounds_for(n)), dtype)


def rounds_for(size: int) -> int:
    """Number of sort rounds after which equal sort keys do not bias the permutation."""
    return math.ceil(3 * math.log(max(1, size)) / math.log(2**32 - 1))


def shuffled_range(key: Any, n: int, rounds: int) -> Any:
    """The integers below ``n`` in random order."""
    return shuffled(key, lax.iota(np.dtype(np.int32), n), 0, rounds)


def shuffled(key: Any, x: Any, axis: int, rounds: int) -> Any:
    """An array sorted by random keys, in several rounds."""
    for _ in range(rounds):
        key, sub = children(key, 2)
        _, x = lax.sort_key_val(random_words(sub, 32, x.shape), x, axis)
    return x


def taken(x: Any, positions: Any, axis: int) -> Any:
    """Slices of an array at indices in bounds; the axes of the indices replace the axis."""
    n, rank = positions.ndim, x.ndim
    offset = tuple(range(axis)) + tuple(range(axis + n, rank - 1 + n))
    numbers = lax.GatherDimensionNumbers(
        offset_dims=offset, collapsed_slice_dims=(axis,), start_index_map=(axis,)
    )
    sizes = tuple(1 if i == axis else d for i, d in enumerate(x.shape))
    index = lax.expand_dims(positions, (n,))
    return lax.gather(x, index, numbers, sizes, mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS)


def _population(name: str, x: Any) -> int | None:
    """The concrete size of the population for an integer, ``None`` for an array."""
    check_arrays(name, x)
    aval = typeof(x)
    if aval.ndim:
        return None
    if not dtypes.issubdtype(aval.dtype, np.integer):
        raise TypeError(
            f"{name}: expected an integer or an array of at least one dimension, got {x!r}"
        )
    if isinstance(x, Tracer):
        raise ConcretizationTypeError(
            x, f"{name} needs a concrete number of elements: make the integer static."
        )
    return max(operator.index(x), 0)


def permutation(
    key: ArrayLike,
    x: ArrayLike,
    axis: int = 0,
    independent: bool = False,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """A random permutation of ``range(x)``, or of the slices of an array along an axis.

    Args:
      key: one key, typed or raw. It must not be used again.
      x: a concrete integer, or an array.
      axis: the axis of the slices, the first by default.
      independent: permute every row along ``axis`` independently.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      A vector of ``x`` integers, or an array of the shape of ``x``.

    Raises:
      TypeError: if ``x`` is neither an integer nor an array.
      ValueError: if the array has no such axis.

    >>> from primax_numpy import random
    >>> random.permutation(random.key(42), 8)
    Array([7, 4, 2, 5, 3, 6, 0, 1], dtype=int32)
    """
    if out_sharding is not None:
        return with_out_sharding(permutation, out_sharding, key, x, axis, independent)
    check_key("permutation", key)
    n = _population("permutation", x)
    if n is not None:
        out: Array = _shuffled_range(key, n=n, dtype=dtypes.default_int())
        return out
    aval = typeof(x)
    axis = one_axis(axis, aval.ndim)
    alone = independent or aval.ndim == 1
    plain = not isinstance(aval.dtype, dtypes.ExtendedDType)
    size = aval.size if alone else aval.shape[axis]
    if independent and not plain:
        raise TypeError("permutation: keys can be shuffled along an axis only, not independently")
    out = _shuffle(key, x, axis=axis, rounds=rounds_for(size), by_position=not (alone and plain))
    return out


# Choice


@compiled("n", "shape", "mode", "replace")
def _chosen(key: Any, p: Any, *, n: int, shape: Any, mode: str, replace: bool) -> Any:
    return _positions(typed(key), p, n, shape, mode, replace)


@compiled("axis", "shape", "mode", "replace")
def _choice(
    key: Any, a: Any, p: Any, *, axis: int, shape: tuple[int, ...], mode: str, replace: bool
) -> Any:
    key, n = typed(key), a.shape[axis]
    return taken(a, _positions(key, p, n, shape, mode, replace), axis)


def _positions(key: Any, p: Any, n: int, shape: Any, mode: str, replace: bool) -> Any:
    """Indices of the chosen elements."""
    count = math.prod(shape)
    p = None if p is None else draws.narrowed(p)
    if p is None and replace:
        return integers(key, 0, n, shape=shape, dtype=dtypes.default_int())
    if p is None:
        order = lax.slice_in_dim(shuffled_range(key, n, rounds_for(n)), 0, count)
    elif replace:
        cumulated = rounded(draws.running_sums(p, 0))
        whole = lax.index_in_dim(cumulated, n - 1, 0, keepdims=False)
        one = draws.number(1, p.dtype)
        u = draws.uniform(key, shape, p.dtype)
        order = _ranks(cumulated, rounded(lax.mul(whole, lax.sub(one, u))))
    else:
        noise = gumbel_noise(key, (n,), p.dtype, mode)
        order = lax.top_k(rounded(lax.add(noise, lax.log(p))), count)[1]
    return lax.convert_element_type(lax.reshape(order, shape), dtypes.default_int())


def rounded(x: Any) -> Any:
    """An array rounded to its dtype by an optimization barrier: XLA may keep narrow floats at a
    higher precision inside a fusion, which would order equal elements."""
    return lax.optimization_barrier(x) if x.dtype.itemsize < 4 else x


def _ranks(ordered: Any, values: Any) -> Any:
    """Number of elements of a sorted row that are less than each value, by bisection. Cumulative
    sums of narrow floats may be unsorted; the result then depends on the sequence of tested
    positions."""
    n = ordered.shape[0]
    low = lax.full_like(values, 0, np.dtype(np.int32))
    high = lax.full_like(values, n, np.dtype(np.int32))

    def halved(_: Any, bounds: Any) -> Any:
        low, high = bounds
        middle = lax.shift_right_logical(lax.add(low, high), np.int32(1))
        left = lax.le(values, taken(ordered, middle, 0))
        return lax.select(left, low, middle), lax.select(left, middle, high)

    return lax.fori_loop(0, n.bit_length(), halved, (low, high))[1]


def choice(
    key: ArrayLike,
    a: ArrayLike,
    shape: Sequence[int] = (),
    replace: bool = True,
    p: ArrayLike | None = None,
    axis: int = 0,
    mode: str | None = None,
) -> Array:
    """Random elements of ``range(a)``, or slices of an array along an axis.

    Args:
      key: one key, typed or raw. It must not be used again.
      a: an integer or an array.
      shape: a sequence: the shape of the choices, which replaces ``axis`` in the result.
      replace: sample with replacement.
      p: weights of the elements, ``float[n]``, not necessarily normalized; uniform by default.
      axis: the axis of the slices, the first by default.
      mode: the mode of Gumbel noise for weights without replacement; see :func:`gumbel`.

    Returns:
      An array of the dtype of ``a``; a scalar or a slice by default.

    Raises:
      TypeError: if ``shape`` is not a sequence.
      ValueError: if the population is empty, or too small without replacement; if the weights have
        another length; if concrete weights are negative, NaN or all zero.

    >>> from primax_numpy import random
    >>> sorted(random.choice(random.key(0), 4, (4,), replace=False).tolist())
    [0, 1, 2, 3]
    """
    check_key("choice", key)
    if not isinstance(shape, Sequence):
        raise TypeError(f"choice: shape must be a sequence, got {shape!r}")
    n, sample_shape = _population("choice", a), draws.shape_of(shape, "choice")
    if n is None:
        axis = one_axis(axis, typeof(a).ndim)
        size = typeof(a).shape[axis]
    else:
        size = n
    count = math.prod(sample_shape)
    if count == 0:
        return _empty_choice(a, n, axis, sample_shape)
    if size <= 0:
        raise ValueError("choice: a must be greater than 0 unless no samples are taken")
    if not replace and count > size:
        raise ValueError(
            f"choice: cannot take a larger sample (size {count}) than population (size {size}) "
            "when 'replace=False'"
        )
    static = {"shape": sample_shape, "mode": gumbel_mode(mode), "replace": bool(replace)}
    if p is not None:
        p = _weights(p, size)
    if n is not None:
        out: Array = _chosen(key, p, n=n, **static)
    elif p is None and not replace and typeof(a).ndim == 1:
        out = _choice(key, a, p, axis=0, **static)
    else:
        out = _choice(key, a, p, axis=axis, **static)
    return out


def _empty_choice(a: Any, n: int | None, axis: int, shape: tuple[int, ...]) -> Array:
    if n is not None:
        return lax.full(shape, 0, dtypes.default_int())
    aval = typeof(a)
    return lax.full((*aval.shape[:axis], *shape, *aval.shape[axis + 1 :]), 0, aval.dtype)


def _weights(p: Any, size: int) -> Any:
    """Weights as floats, with concrete values validated."""
    check_arrays("choice", p)
    aval = typeof(p)
    if aval.shape != (size,):
        raise ValueError(
            f"choice: p must be None or a 1D vector with the same size as a.shape[axis]: p has "
            f"shape {aval.shape} and a.shape[axis] is {size}"
        )
    if not isinstance(p, Tracer):
        values = np.asarray(p, np.float64)
        if not (values >= 0).all():
            raise ValueError("choice: p has weights that are negative or NaN")
        if not values.any():
            raise ValueError("choice: p sums to 0, so that nothing can be chosen")
    if not dtypes.issubdtype(aval.dtype, np.inexact):
        p = lax.convert_element_type(p, dtypes.result_type(aval.dtype, np.float32))
    return p


# Categories


@compiled("axis", "shape", "mode")
def _categorical(key: Any, logits: Any, *, axis: int, shape: Any, mode: str) -> Any:
    batch = logits.ndim - 1
    prefix, rest = shape[: len(shape) - batch], list(shape[len(shape) - batch :])
    rest.insert(axis, logits.shape[axis])
    full = (*prefix, *rest)
    # Not fused with argmax, which is not vectorised.
    noise = lax.optimization_barrier(gumbel_noise(typed(key), full, logits.dtype, mode))
    total = lax.add(noise, repeated(logits, full))
    return lax.argmax(total, len(prefix) + axis, dtypes.default_int())


@compiled("axis", "shape", "mode", "k")
def _categories(key: Any, logits: Any, *, axis: int, shape: Any, mode: str, k: int) -> Any:
    noise = gumbel_noise(typed(key), logits.shape, logits.dtype, mode)
    positions = lax.top_k(rounded(lax.add(noise, logits)), k, axis=axis)[1]
    order = (axis, *(i for i in range(logits.ndim) if i != axis))
    return lax.reshape(lax.transpose(positions, order), shape)


def categorical(
    key: ArrayLike,
    logits: ArrayLike,
    axis: int = -1,
    shape: ShapeLike | None = None,
    replace: bool = True,
    mode: str | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Categorical samples from unnormalized log-probabilities, by the Gumbel-max trick.

    Args:
      key: one key, typed or raw. It must not be used again.
      logits: log-probabilities up to an additive constant for each distribution.
      axis: the axis of the categories, by default the last.
      shape: leading axes followed by the shape of ``logits`` without ``axis``; by default no
        leading axes.
      replace: sample with replacement along the leading axes.
      mode: the mode of Gumbel noise, see :func:`gumbel`.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      Integers of shape ``shape``: indices of categories.

    Raises:
      ValueError: if logits are not floats, shapes do not match, or there are more samples without
        replacement than categories.
      IndexError: if the axis does not exist.

    >>> from primax_numpy import random
    >>> import numpy as np
    >>> random.categorical(random.key(0), np.float32([0, 100]), shape=(3,)).tolist()
    [1, 1, 1]
    """
    if out_sharding is not None:
        return with_out_sharding(categorical, out_sharding, key, logits, axis, shape, replace, mode)
    check_key("categorical", key)
    check_arrays("categorical", logits)
    aval = typeof(logits)
    if not dtypes.issubdtype(aval.dtype, np.floating):
        raise ValueError(
            f"categorical: logits must be floats (logarithms of probabilities), got {aval.dtype}"
        )
    logits = draws.narrowed(logits)
    if not -aval.ndim <= operator.index(axis) < aval.ndim:
        raise IndexError(
            f"categorical: axis {axis} is out of bounds for logits of shape {aval.shape}"
        )
    axis = operator.index(axis) % aval.ndim
    batch = aval.shape[:axis] + aval.shape[axis + 1 :]
    sample_shape = batch if shape is None else draws.shape_of(shape, "categorical")
    tail = sample_shape[len(sample_shape) - len(batch) :]
    draws.check_fits(
        "categorical", [batch], tail if len(sample_shape) >= len(batch) else sample_shape
    )
    noise_mode = gumbel_mode(mode)
    if replace:
        out: Array = _categorical(key, logits, axis=axis, shape=sample_shape, mode=noise_mode)
        return out
    k = math.prod(sample_shape[: len(sample_shape) - len(batch)])
    if k > aval.shape[axis]:
        raise ValueError(
            f"categorical: Number of samples without replacement ({k}) cannot exceed number of "
            f"categories ({aval.shape[axis]})."
        )
    return _categories(key, logits, axis=axis, shape=sample_shape, mode=noise_mode, k=k)  # type: ignore[no-any-return]
