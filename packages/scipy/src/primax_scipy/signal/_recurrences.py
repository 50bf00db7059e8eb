"""Linear recurrences with constant coefficients, computed in blocks.

Within a block the recurrence is a product with the inverse of a triangular Toeplitz matrix. The
states between blocks are a recurrence of vectors, which is itself computed in blocks: Blelloch,
Prefix sums and their applications (1990); the number of sequential steps is about twice the root of
the number of blocks.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import typeof

from .._layout import resized

_BLOCK = 32


def recurrence(w: Any, a: Any) -> Any:
    """The solution of ``y[i] = w[i] - sum(a[k - 1] * y[i - k])`` along the last axis.

    Args:
      w: inexact values ``[batch, n]``.
      a: the ``p`` coefficients of the delayed values, in the same dtype.
    """
    batch, n = typeof(w).shape
    p = typeof(a).shape[0]
    if not p or not n:
        return w
    size = max(_BLOCK, p)
    if n <= size:
        return _product(w, _inverse(a, n))
    count = -(-n // size)
    blocks = lax.reshape(resized(w, 1, count * size), (batch, count, size))
    inverse = _inverse(a, size)
    local = _product(blocks, inverse)
    # The homogeneous solutions for each of the last p values of the preceding block.
    decay = -_product(_transposed(_corner(a, size)), inverse)  # [p, size]
    ends = lax.slice_in_dim(local, size - p, size, axis=2)
    matrix = lax.slice_in_dim(decay, size - p, size, axis=1)
    states = _states(ends, matrix)
    before = resized(states, 1, count - 1)
    before = lax.pad(before, lax.full((), 0, typeof(w).dtype), [(0, 0, 0), (1, 0, 0), (0, 0, 0)])
    out = local + times(before, decay)
    return resized(lax.reshape(out, (batch, count * size)), 1, n)


def _inverse(a: Any, n: int) -> Any:
    """The inverse of the lower triangular Toeplitz matrix of the coefficients.

    It is the Toeplitz matrix of the response to a unit sample. A triangular solve would call BLAS,
    whose threads wait for each other.
    """

    def step(delayed, _):
        new = -pnp.sum(a * delayed, keepdims=True)
        return lax.concatenate([new, delayed[:-1]], 0), new

    dtype = typeof(a).dtype
    first = pnp.eye(1, typeof(a).shape[0], dtype=dtype)[0]
    _, rest = lax.scan(step, first, None, length=n - 1)
    zero, one = lax.full((1,), 0, dtype), lax.full((1,), 1, dtype)
    response = lax.concatenate([one, lax.reshape(rest, (n - 1,)), zero], 0)
    lags = indices(n)[:, None] - indices(n)[None, :]
    return pnp.take(response, np.where(lags >= 0, lags, n), axis=0)


def indices(n: int) -> Any:
    """Integers from 0 below ``n``, of 32 bits with any value of the option ``enable_x64``."""
    return np.arange(n, dtype=np.int32)


def _corner(a: Any, n: int) -> Any:
    """The coefficients ``[n, p]`` with which the last values of a block enter the next one."""
    p = typeof(a).shape[0]
    # Value j of the last p has delay p - j + i at element i.
    delay = p - indices(p)[None, :] + indices(n)[:, None]
    column = lax.concatenate([a, lax.full((1,), 0, typeof(a).dtype)], 0)
    return pnp.take(column, np.where(delay <= p, delay - 1, p), axis=0)


def _transposed(x: Any) -> Any:
    return lax.transpose(x, (1, 0))


def _product(x: Any, inverse: Any) -> Any:
    """Vectors in the last axis times a matrix from the left."""
    return lax.dot_general(
        x, inverse, (((typeof(x).ndim - 1,), (1,)), ((), ())), precision="highest"
    )


def times(x: Any, rows: Any) -> Any:
    """Vectors in the last axis times a matrix from the right."""
    return lax.dot_general(x, rows, (((typeof(x).ndim - 1,), (0,)), ((), ())), precision="highest")


def states_after(u: Any, matrix: Any, first: Any) -> Any:
    """``first [batch, 1, p]`` and all states after it, ``s[k + 1] = s[k] @ matrix + u[k]``, as
    ``[batch, count + 1, p]``."""
    start = lax.slice_in_dim(u, 0, 1, axis=1) + times(first, matrix)
    u = lax.concatenate([start, lax.slice_in_dim(u, 1, typeof(u).shape[1], axis=1)], 1)
    return lax.concatenate([first, _states(u, matrix)], 1)


def _states(u: Any, matrix: Any) -> Any:
    """All states ``s[k] = s[k - 1] @ matrix + u[k]`` of ``[batch, count, p]``."""
    batch, count, p = typeof(u).shape
    length = math.isqrt(count - 1) + 1
    groups = -(-count // length)
    u = lax.reshape(resized(u, 1, groups * length), (batch * groups, length, p))
    # The identity's rows give the powers of the matrix in the same pass.
    eye = pnp.eye(p, dtype=typeof(u).dtype)

    def step(state, x):
        state = times(state, matrix)
        rows = resized(x, 0, batch * groups + p)
        state = state + rows
        return state, state

    zero = lax.full((batch * groups, p), 0, typeof(u).dtype)
    _, all_states = lax.scan(step, lax.concatenate([zero, eye], 0), lax.transpose(u, (1, 0, 2)))
    local = lax.slice_in_dim(all_states, 0, batch * groups, axis=1)
    powers = lax.slice_in_dim(all_states, batch * groups, batch * groups + p, axis=1)
    local = lax.reshape(local, (length, batch, groups, p))
    whole = lax.index_in_dim(powers, length - 1, 0, keepdims=False)

    def join(state, x):
        return times(state, whole) + x, state

    ends = lax.transpose(
        lax.index_in_dim(local, length - 1, 0, keepdims=False), (1, 0, 2)
    )  # fmt: skip
    _, starts = lax.scan(join, lax.full((batch, p), 0, typeof(u).dtype), ends)
    # [groups, batch, p] times [length, p, p] gives [groups, batch, length, p]
    rest = lax.dot_general(starts, powers, (((2,), (1,)), ((), ())), precision="highest")
    out = lax.transpose(local, (2, 1, 0, 3)) + rest
    out = lax.reshape(lax.transpose(out, (1, 0, 2, 3)), (batch, groups * length, p))
    return resized(out, 1, count)
