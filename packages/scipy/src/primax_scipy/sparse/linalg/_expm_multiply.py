"""Exponentials of large matrices times vectors."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

import primax_numpy as pnp
from primax_core import closure_convert, lax
from primax_core.extend import Array, dtypes, inexact, is_operand, typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import check_arrays

from ._exponential_action import exponential_action, in_dtype, operator_norm, plan_for
from ._operators import LinearOperator, OperatorLike, aslinearoperator, frozen, square_operator


def _operand(op: LinearOperator, B: ArrayLike) -> Any:
    check_arrays("expm_multiply", B)
    B = pnp.asarray(B)
    if B.ndim not in (1, 2) or B.shape[0] != op.shape[1]:
        raise ValueError(
            f"expm_multiply: B of shape {B.shape} does not match A of shape {op.shape}: pass a "
            f"vector [{op.shape[1]}] or a matrix [{op.shape[1]}, k]; use vmap for more."
        )
    avals = [(np.dtype(op.dtype), False), (B.dtype, typeof(B).weak_type)]
    dtype = inexact(*dtypes.lattice_result(tuple(avals)))[0]
    return lax.convert_element_type(B, dtype)


def _times(
    start: Any, stop: Any, num: Any, endpoint: Any, dtype: Any
) -> tuple[Any, Any, int] | None:
    """The first time, the difference of times, and their number; None for the time 1."""
    if all(v is None for v in (start, stop, num, endpoint)):
        return None
    if start is None or stop is None:
        raise TypeError(
            f"expm_multiply: start={start!r} and stop={stop!r}: pass both for results at num times "
            "between them, or none of start, stop, num and endpoint."
        )
    check_arrays("expm_multiply", start, stop)
    for name, value in (("start", start), ("stop", stop)):
        if typeof(value).shape or dtypes.issubdtype(typeof(value).dtype, np.complexfloating):
            raise ValueError(f"expm_multiply: {name} must be a real number, got {typeof(value)}.")
    count = 50 if num is None else operator.index(num)
    if count < 1:
        raise ValueError(f"expm_multiply: num={count} is the number of times: pass at least 1.")
    intervals = count - 1 if endpoint is None or endpoint else count
    first, last = (in_dtype(t, dtype) for t in (start, stop))
    return first, (last - first) / max(intervals, 1), count


def _is_zero(t: Any) -> bool:
    return isinstance(t, (int, float, np.generic)) and t == 0


def _trace(A: Any) -> Any:
    """The trace of a dense or ``BCOO`` matrix, and 0 for other operators."""
    if is_operand(A):
        return pnp.trace(pnp.asarray(A))
    indices = getattr(A, "indices", None)
    if indices is None or typeof(indices).shape[1:] != (2,) or typeof(A.data).ndim != 1:
        return 0.0
    row, column = indices[:, 0], indices[:, 1]
    on = (row == column) & (row < A.shape[0])
    return pnp.sum(pnp.where(on, A.data, pnp.zeros_like(A.data)))


def expm_multiply(
    A: OperatorLike,
    B: ArrayLike,
    start: ArrayLike | None = None,
    stop: ArrayLike | None = None,
    num: int | None = None,
    endpoint: bool | None = None,
    traceA: ArrayLike | None = None,
) -> Array:
    """The exponential of a matrix times vectors, ``expm(A) @ B``, without the exponential.

    Args:
      A: ``number[n, n]``, a sparse matrix or a :class:`LinearOperator`.
      B: ``number[n]`` or ``number[n, k]``.
      start, stop: real numbers; with them the results are ``expm(t * A) @ B`` at ``num`` times
        ``t`` with equal distances.
      num: the number of times, by default 50.
      endpoint: include ``stop`` in the times, the default.
      traceA: the trace of ``A``, or an estimate: the series is that of ``A`` less its mean
        eigenvalue. By default it is computed for dense and ``BCOO`` matrices, and 0 for others.

    Returns:
      An array like ``B``, or with times ``[num, n]`` or ``[num, n, k]``. Floats of 16 bits are
      computed in ``float32``.

    Raises:
      ValueError: if ``A`` is not square, shapes do not match, ``num`` is not positive, or a time
        is not a real number.
      TypeError: for one of ``start`` and ``stop`` without the other.

    Truncated Taylor series in stages, whose number and degree follow from estimates of norms of
    powers (Al-Mohy and Higham, SIAM J. Sci. Comput. 33, 2011); the products with ``A`` are counted
    in thousands if the norm is in hundreds. The results are differentiable in ``A`` (with arrays
    that a :class:`LinearOperator` closes over), ``B`` and the times, to any order, of which one may
    be in reverse mode. It stores 120 arrays like ``B``. A batch under ``vmap`` takes the time of
    the largest norm.

    >>> import numpy as np
    >>> rotation = np.float32([[0, -1], [1, 0]])
    >>> x = expm_multiply(rotation, np.float32([1, 0]), 0.0, np.pi / 2, num=3)
    >>> [[round(float(v), 4) + 0.0 for v in row] for row in x]
    [[1.0, 0.0], [0.7071, 0.7071], [0.0, 1.0]]
    """
    op = square_operator("expm_multiply", aslinearoperator(A))
    B = _operand(op, B)
    result = B.dtype
    wide = np.float32 if np.dtype(result).itemsize < 4 else result
    real = dtypes.finfo(wide).dtype
    times = _times(start, stop, num, endpoint, real)
    x = lax.convert_element_type(B, wide)
    if B.ndim == 1:
        x = x[:, None]
    n = op.shape[0]
    shape = B.shape if times is None else (times[2], *B.shape)
    if not n or not typeof(x).shape[1]:
        return pnp.zeros(shape, result)
    trace = _trace(A) if traceA is None else traceA
    mean = in_dtype(lax.stop_gradient(pnp.asarray(trace)), wide) / n

    def multiplied(x: Any) -> Any:
        return lax.convert_element_type(op.matmat(x), wide)

    def shifted(x: Any) -> Any:
        return multiplied(x) - mean * x

    known = None
    if is_operand(A):
        matrix = in_dtype(lax.stop_gradient(pnp.asarray(A)), wide)
        size = pnp.sum(pnp.abs(matrix - mean * pnp.eye(n, dtype=wide)), 0)
        known = pnp.max(size)
    norm = lax.stop_gradient(operator_norm(frozen(shifted), lax.full_like(x[:, :1], 0), known))
    norm = lax.convert_element_type(norm, real)
    converted, values = closure_convert(multiplied, x)

    def product(params: Any, x: Any) -> Any:
        time = params[0].astype(wide)
        # The result does not depend on the shift, which is constant therefore.
        return time * converted(x, *params[1]) - lax.stop_gradient(time) * mean * x

    def advanced(time: Any, x: Any) -> Any:
        fixed = lax.stop_gradient(time)
        plan = plan_for(norm * pnp.abs(fixed), mean * fixed.astype(wide))
        return exponential_action(product, (time, values), x, plan)

    if times is None:
        out = advanced(pnp.ones((), real), x)
        return lax.convert_element_type(pnp.reshape(out, shape), result)
    x = x if _is_zero(start) else advanced(times[0], x)

    def following(x: Any, _: None) -> Any:
        after = advanced(times[1], x)
        return after, after

    _, rest = lax.scan(following, x, None, length=times[2] - 1)
    out = pnp.concatenate([x[None], rest])
    return lax.convert_element_type(pnp.reshape(out, shape), result)
