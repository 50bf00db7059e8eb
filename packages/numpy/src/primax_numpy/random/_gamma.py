"""Gamma sampling and log-gamma sampling."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from primax_core import lax
from primax_core.extend import (
    Array,
    Primitive,
    Sample,
    ShapedArray,
    Zero,
    abstract,
    batch,
    dtypes,
    expand,
    f32,
    jvp,
    move_axis,
    random_wrap_p,
    samples,
    typeof,
    u32,
)
from primax_core.extend.runtime import with_out_sharding
from primax_core.typing import ArrayLike, DTypeLike, ShapeLike, ShardingLike

from .._functions import compiled
from .._promotion import repeated
from . import _draws as draws
from ._implementations import implementations
from ._key_dtypes import is_key_dtype
from ._key_types import random_split_p
from ._keys import check_key, children, typed
from ._streams import Stream, normals, stream_of, uniforms

random_gamma_p: Final = Primitive("random_gamma")
"""Gamma samples from keys and shape parameters ``a``. The axes of ``keys`` are the leading axes of
``a``; each key is used for all elements of its slice."""


@random_gamma_p.rule(abstract)
def _abstract(keys, a, *, log_space):
    if not is_key_dtype(keys.dtype) or a.shape[: keys.ndim] != keys.shape:
        raise TypeError(
            f"random_gamma takes keys and a float array with their axes first, got "
            f"{keys.str_short()} and {a.str_short()}"
        )
    return ShapedArray(a.shape, a.dtype)


@random_gamma_p.rule(expand)
def _expand(keys, a, *, log_space):
    rest = a.shape[keys.ndim :]
    own = random_split_p.bind(keys, shape=(math.prod(rest),))
    own, flat = (lax.reshape(v, (math.prod(a.shape),)) for v in (own, a))
    if typeof(keys).dtype.impl.counted:
        out = _samples(stream_of(own), flat, log_space)
    else:  # bits of platform generators depend on the batch: one call per element
        out = lax.map(lambda at: _samples(stream_of(at[0]), at[1], log_space), (own, flat))
    return lax.reshape(out, a.shape)


@random_gamma_p.rule(batch)
def _batch(axis, args, dims, *, log_space):
    moved = []
    for x, d in zip(args, dims):
        if d is None:
            shape = (axis.size, *typeof(x).shape)
            moved.append(lax.broadcast_in_dim(x, shape, tuple(range(1, len(shape)))))
        else:
            moved.append(move_axis(x, d, 0, axis.size))
    return random_gamma_p.bind(*moved, log_space=log_space), 0


@random_gamma_p.rule(jvp)
def _jvp(primals, tangents, *, log_space):
    keys, a = primals
    out = random_gamma_p.bind(keys, a, log_space=log_space)
    t = tangents[1]
    if type(t) is Zero:
        return out, Zero.like(out)
    if not log_space:
        return out, lax.mul(t, lax.random_gamma_grad(a, out))
    # The sample may underflow even if its logarithm does not.
    least = lax.full_like(out, dtypes.finfo(out.dtype).tiny)
    sample = lax.exp(out)
    sample = lax.select(lax.eq(sample, lax.full_like(out, 0)), least, sample)
    return out, lax.mul(t, lax.div(lax.random_gamma_grad(a, sample), sample))


# By Marsaglia and Tsang, "A simple method for generating gamma variables" (ACM TOMS 26, 2000)


class _Trial(NamedTuple):
    """The state of the rejection loop of each element: its keys and results."""

    key: Stream
    inner: Stream
    last: Stream
    again: Any  # v was not positive: repeat the normal draw only
    done: Any
    cube: Any


def _samples(keys: Stream, a: Any, log_space: bool) -> Any:
    dtype, shape = a.dtype, a.shape

    def const(v: float) -> Any:
        return repeated(draws.number(v, dtype), shape)

    one = const(1)
    plain = lax.ge(a, one)
    d = lax.sub(lax.select(plain, a, lax.add(a, one)), const(1 / 3))
    c = lax.div(const(1 / 3), lax.sqrt(d))
    keys, spare = keys.children(2)
    cube = _cubes(keys, c, d)
    u = uniforms(spare, dtype)
    if not log_space:
        boost = lax.pow(lax.sub(one, u), lax.div(one, a))
        return lax.mul(lax.mul(d, cube), lax.select(plain, one, boost))
    e = lax.log1p(lax.neg(u))
    zero = const(0)
    boost = lax.mul(e, lax.div(one, a))
    plain = lax.bitwise_or(plain, lax.eq(e, zero))
    return lax.add(lax.add(lax.log(d), lax.log(cube)), lax.select(plain, zero, boost))


def _cubes(keys: Stream, c: Any, d: Any) -> Any:
    """The accepted cubes ``(1 + c x)**3`` of each element."""
    none = lax.full_like(c, False, np.dtype(bool))
    trial = _Trial(keys, keys, keys, none, none, lax.full_like(c, 1))

    def unfinished(trial: _Trial) -> Any:
        return lax.bitwise_not(lax.reduce_and(trial.done, tuple(range(trial.done.ndim))))

    return lax.while_loop(unfinished, lambda t: _step(t, c, d), trial).cube


def _step(trial: _Trial, c: Any, d: Any) -> _Trial:
    """One normal sample for each element and, if ``v`` is positive, one acceptance test."""
    dtype = c.dtype

    def const(v: float) -> Any:
        return repeated(draws.number(v, dtype), c.shape)

    fresh = trial.key.children(3)
    current = (trial.key, trial.inner, trial.last)
    key, inner, last = (_chosen(trial.again, old, new) for old, new in zip(current, fresh))
    inner, drawn = inner.children(2)
    x = normals(drawn, dtype)
    v = lax.add(const(1), lax.mul(x, c))
    x, v = lax.optimization_barrier((x, v))
    positive = lax.gt(v, const(0))
    square, cube = lax.mul(x, x), lax.mul(lax.mul(v, v), v)
    u = uniforms(last, dtype)
    squeezed = lax.lt(u, lax.sub(const(1), lax.mul(const(0.0331), lax.mul(square, square))))
    bound = lax.add(
        lax.mul(square, const(0.5)),
        lax.mul(d, lax.add(lax.sub(const(1), cube), lax.log(cube))),
    )
    accepted = lax.bitwise_or(squeezed, lax.lt(lax.log(u), bound))
    # A comparison with NaN ends the loop, as it does in a loop for a single element.
    accepted = lax.bitwise_or(accepted, lax.ne(bound, bound))
    accepted = lax.bitwise_and(positive, accepted)
    undecided = lax.ne(v, v)
    accepted = lax.bitwise_or(accepted, undecided)
    cube = lax.select(lax.bitwise_and(accepted, lax.bitwise_not(trial.done)), cube, trial.cube)
    done = lax.bitwise_or(trial.done, accepted)
    return _Trial(key, inner, last, lax.bitwise_not(positive), done, cube)


def _chosen(condition: Any, x: Any, y: Any) -> Any:
    """Select keys between two streams."""
    return type(x)(*(lax.select(condition, p, q) for p, q in zip(x, y)))


# Approximate sampling


_ROWS: Final = (
    (1, -0.2237368, -0.01513904), (0.4713941, 0.02607083, -0.008986007),
    (0.0001348028, 0.01128186, 0.02277679), (-0.008553069, -0.01153761, -0.01323293),
    (0.00312558, 0.005169654, -0.006950356), (-0.0008426812, 0.00253001, 0.001060438),
    (0.00009780499, -0.001450117, 0.001565326),
)  # fmt: skip


def _approximate(key: Any, a: Any, shape: tuple[int, ...], log_space: bool, dtype: Any) -> Any:
    """Approximate samples: a fit to the quantile function of large ``a`` at one normal sample, and
    exponential factors that reduce the shape parameter."""
    working = dtypes.result_type(dtype, np.float32)
    a = lax.convert_element_type(a, working)
    first, second = children(key, 2)
    large = a + 4
    nu = 2 * large
    x = lax.optimization_barrier(draws.normal(first, a.shape, working))
    u = 1 / nu
    rows = [lax.polynomial(u, row) for row in _ROWS]
    p = lax.polynomial(x * lax.rsqrt(nu), rows)
    p = lax.max(p, repeated(draws.number(dtypes.finfo(working).tiny, working), p.shape))
    base = lax.log(large) + 3 * lax.log(p)
    e = lax.optimization_barrier(draws.exponential(second, (4, *a.shape), working))
    steps = lax.broadcasted_iota(working, (4, *a.shape), 0)
    terms = lax.div(lax.neg(e), lax.add(repeated(a, e.shape), steps))
    out = lax.add(base, lax.reduce_sum(terms, (0,)))
    return lax.convert_element_type(out if log_space else lax.exp(out), dtype)


_METHODS: Final = ("exact", "approximate")


def check_method(name: str, method: Any) -> None:
    """Check the name of a sampling method."""
    if method not in _METHODS:
        raise ValueError(f"method argument to `{name}` must be one of {_METHODS}, got {method!r}")


def gammas(
    key: Any, a: Any, shape: tuple[int, ...], dtype: Any, log_space: bool, method: str = "exact"
) -> Any:
    """Gamma samples for parameters that broadcast to a shape, from one typed key."""
    a = draws.parameter(a, dtype, shape)
    if method == "approximate":
        return _approximate(key, a, shape, log_space, dtype)
    return random_gamma_p.bind(key, a, log_space=log_space)


@compiled("shape", "dtype", "log_space", "method")
def _gamma(
    key: Any, a: Any, *, shape: tuple[int, ...], dtype: Any, log_space: bool, method: str
) -> Any:
    return gammas(typed(key), a, shape, dtype, log_space, method)


def gamma(
    key: ArrayLike,
    a: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    method: str = "exact",
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Gamma samples of shape parameter ``a`` and scale 1.

    Args:
      key: one key, typed or raw. It must not be used again.
      a: positive floats; 0 gives 0, negative numbers NaN.
      shape: the sample shape, by default that of ``a``, which must broadcast to it.
      dtype: a real float dtype, by default the default float.
      method: ``"exact"`` by rejection, or ``"approximate"``, which takes a constant time for all
        parameters.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      An array of shape ``shape``. Multiply it for another scale.

    Raises:
      ValueError: if the method is unknown, the dtype is not a float, or shapes do not match.

    Samples are differentiable with respect to ``a``, at constant cumulative probability.

    >>> from primax_numpy import random
    >>> x = random.gamma(random.key(0), 3.0, (1000,))
    >>> x.shape, float(x.min()) > 0
    ((1000,), True)
    """
    if out_sharding is not None:
        return with_out_sharding(gamma, out_sharding, key, a, shape, dtype, method=method)
    check_key("gamma", key)
    return _called("gamma", key, a, shape, dtype, False, method)


def loggamma(
    key: ArrayLike,
    a: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    method: str = "exact",
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Logarithms of gamma samples, accurate also if the samples underflow.

    Args:
      key: one key, typed or raw. It must not be used again.
      a: positive floats; 0 gives 0, negative numbers NaN.
      shape: the sample shape, by default that of ``a``, which must broadcast to it.
      dtype: a real float dtype, by default the default float.
      method: ``"exact"`` by rejection, or ``"approximate"``, which takes a constant time for all
        parameters.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      An array of shape ``shape``.

    Raises:
      ValueError: if the method is unknown, the dtype is not a float, or shapes do not match.

    Samples are differentiable with respect to ``a``, at constant cumulative probability.

    >>> from primax_numpy import random
    >>> x = random.loggamma(random.key(0), 0.001, (1000,))
    >>> bool((abs(x) < float("inf")).all())
    True
    """
    if out_sharding is not None:
        return with_out_sharding(loggamma, out_sharding, key, a, shape, dtype, method=method)
    check_key("loggamma", key)
    return _called("loggamma", key, a, shape, dtype, True, method)


def _called(
    name: str, key: Any, a: Any, shape: Any, dtype: Any, log_space: bool, method: str
) -> Array:
    draws.check_parameters(name, a)
    dtype = draws.float_dtype(dtype, name)
    check_method(name, method)
    sample_shape = draws.joint_shape(name, shape, a)
    out: Array = _gamma(key, a, shape=sample_shape, dtype=dtype, log_space=log_space, method=method)
    return out


@random_gamma_p.rule(samples)
def _random_gamma_samples():
    def call(words: Any, a: Any, log_space: bool = False) -> Any:
        keys = random_wrap_p.bind(words, impl=implementations["threefry2x32"])
        return random_gamma_p.bind(keys, a, log_space=log_space)

    # The rounding error of samples is too large for finite differences.
    rough = {"low": 0.5, "high": 3.0}
    yield Sample(u32(2), f32(3, **rough)).set(call=call, without=_DRAWN)
    yield Sample(u32(2, 2), f32(2, 3, **rough)).set(call=call, without=_DRAWN)
    yield Sample(u32(2), f32(2, **rough)).set(call=partial(call, log_space=True), without=_DRAWN)
    yield Sample(u32(2), f32(0, **rough)).set(call=call)


_DRAWN: Final = dict.fromkeys(
    ("jvp", "transpose", "second order"),
    "samples are discontinuous in their parameter where rejection ends; see the derivative tests",
)
