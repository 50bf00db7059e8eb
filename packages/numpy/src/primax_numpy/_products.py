"""Products of vectors, matrices and tensors."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.extend import Array, FastPath, any_number, dtypes, one_call, promoted
from primax_core.extend.dimensions import broadcast_shapes
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.extend.runtime import with_out_sharding
from primax_core.typing import ArrayLike, DTypeLike, ShardingLike

from ._checks import axes_of, check_arrays, check_out, one_axis
from ._functions import checked, compiled, elementwise
from ._promotion import repeated

Dimensions = tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]


@compiled("dimensions", "conjugate", "order", "precision", "preferred", name="dot")
def _contracted(a, b, *, dimensions, conjugate=False, order=None, precision=None, preferred=None):
    """One ``dot_general`` of promoted operands, with an optional conjugation and output
    transpose."""
    a, b = promoted("dot", a, b, any_number)
    if conjugate and dtypes.issubdtype(typeof(a).dtype, np.complexfloating):
        a = lax.conj(a)
    out = lax.dot_general(a, b, dimensions, precision, preferred)
    return out if order is None else lax.transpose(out, order)


@compiled("precision", "preferred", name="matmul")
def _matmul(a, b, *, precision, preferred):
    a, b = promoted("matmul", a, b, any_number)
    x, y = typeof(a), typeof(b)
    if x.ndim == 1 or y.ndim <= 2:
        # One operand has no batch axes: a single contraction suffices.
        row = x.ndim == 1 and y.ndim > 2
        if row:
            return lax.dot_general(b, a, (((y.ndim - 2,), (0,)), ((), ())), precision, preferred)
        contract = ((x.ndim - 1,), (0 if y.ndim == 1 else y.ndim - 2,))
        return lax.dot_general(a, b, (contract, ((), ())), precision, preferred)
    return _batched_product(a, b, 2, 2, precision, preferred)


def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: lax.PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Matrix product over the last two axes; the others broadcast. Vectors are rows or columns.

    Args:
      a: shape ``(..., n, k)`` or ``(k,)``.
      b: shape ``(..., k, m)`` or ``(k,)``.
      precision: a ``primax.lax.Precision``, a pair of them, or a name such as ``"highest"``.
      preferred_element_type: the dtype of the accumulator and of the result.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      An array of shape ``(..., n, m)``, without ``n`` or ``m`` for vectors.

    Raises:
      ValueError: if an operand is a scalar, or the batch axes do not broadcast.
      TypeError: if the contracted sizes differ.

    >>> matmul(np.eye(2), np.float32([1, 2]))
    Array([1., 2.], dtype=float32)
    """
    if out_sharding is not None:
        return with_out_sharding(
            matmul,
            out_sharding,
            a,
            b,
            precision=precision,
            preferred_element_type=preferred_element_type,
        )
    simple = precision is None and preferred_element_type is None
    if simple:
        fast: Array | None = _matmuls.lookup(None, a, b)
        if fast is not None:
            return fast
    check_arrays("matmul", a, b)
    x, y = typeof(a), typeof(b)
    for i, t in enumerate((x, y)):
        if not t.ndim:
            raise ValueError(
                f"matmul input operand {i} must have ndim at least 1, but it has ndim 0"
            )
    _check_sizes("matmul", x, y, x.shape[-1], y.shape[0] if y.ndim == 1 else y.shape[-2])
    if x.ndim > 2 and y.ndim > 2:
        _joint_batch("matmul", x, y, 2, 2)
    if simple:
        return _matmuls.call(None, (a, b), precision=None, preferred=None)
    return _matmul(a, b, precision=precision, preferred=_preferred_dtype(preferred_element_type))


_matmuls: Final = FastPath(_matmul)


def _preferred_dtype(preferred: Any) -> Any:
    return None if preferred is None else dtypes.canonicalize_dtype(preferred)


def _check_sizes(name: str, x: Any, y: Any, m: int, n: int) -> None:
    if m != n:
        raise TypeError(
            f"{name} got incompatible shapes for contraction: {x.shape} and {y.shape}: the summed "
            f"axis of the first has size {m}, that of the second {n}"
        )


def _joint_batch(name: str, x: Any, y: Any, m: int, n: int) -> tuple[int, ...]:
    """The broadcast shape of the batch axes."""
    try:
        return broadcast_shapes(x.shape[: x.ndim - m], y.shape[: y.ndim - n])
    except ValueError:
        raise ValueError(
            f"Incompatible types for {name} arguments: the leading axes of shapes {x.shape} and "
            f"{y.shape} do not broadcast"
        ) from None


@compiled()
def _scaled(a, b):
    a, b = promoted("dot", a, b, any_number)
    return (lax.bitwise_and if typeof(a).dtype == np.bool_ else lax.mul)(a, b)


def dot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: lax.PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Sum of products over the last axis of ``a`` and the second to last of ``b``.

    If an operand is a scalar, the result is the elementwise product. A vector ``b`` is summed over
    its only axis.

    Args:
      a, b: arrays or numbers.
      precision: a ``primax.lax.Precision``, a pair of them, or a name such as ``"highest"``.
      preferred_element_type: the dtype of the accumulator and of the result.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      An array of shape ``a.shape[:-1] + b.shape[:-2] + b.shape[-1:]``, of the promoted dtype.

    Raises:
      TypeError: if the summed sizes differ.

    >>> float(dot(np.array([1.0, 2.0]), np.array([3.0, 4.0])))
    11.0
    >>> dot(np.array([[1, 2], [3, 4]]), np.array([1, 1])).tolist()
    [3, 7]
    """
    if out_sharding is not None:
        return with_out_sharding(
            dot,
            out_sharding,
            a,
            b,
            precision=precision,
            preferred_element_type=preferred_element_type,
        )
    simple = precision is None and preferred_element_type is None
    if simple:
        fast: Array | None = _dots.lookup(None, a, b)
        if fast is not None:
            return fast
    check_arrays("dot", a, b)
    x, y = typeof(a), typeof(b)
    preferred = _preferred_dtype(preferred_element_type)
    if not x.ndim or not y.ndim:
        out = _scaled(a, b)
        return out if preferred is None else lax.convert_element_type(out, preferred)
    axis = max(y.ndim - 2, 0)
    _check_sizes("dot", x, y, x.shape[-1], y.shape[axis])
    dims = (((x.ndim - 1,), (axis,)), ((), ()))
    if simple:
        return _dots.call(None, (a, b), dimensions=dims)
    return _contracted(a, b, dimensions=dims, precision=precision, preferred=preferred)


_dots: Final = FastPath(_contracted)


@one_call()
def inner(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: lax.PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Sum of products over the last axes of both operands; for scalars a product.

    Args:
      a, b: arrays or numbers with equal last sizes. Complex numbers are not conjugated.
      precision: a ``primax.lax.Precision``, a pair of them, or a name such as ``"highest"``.
      preferred_element_type: the dtype of the accumulator and of the result.

    Returns:
      An array of shape ``a.shape[:-1] + b.shape[:-1]``, of the promoted dtype.

    Raises:
      TypeError: if the last sizes differ.

    >>> inner(np.array([[1, 2], [3, 4]]), np.array([1, 10])).tolist()
    [21, 43]
    """
    check_arrays("inner", a, b)
    x, y = typeof(a), typeof(b)
    if not x.ndim or not y.ndim:
        return dot(a, b, preferred_element_type=preferred_element_type)
    _check_sizes("inner", x, y, x.shape[-1], y.shape[-1])
    dims = (((x.ndim - 1,), (y.ndim - 1,)), ((), ()))
    preferred = _preferred_dtype(preferred_element_type)
    return _contracted(a, b, dimensions=dims, precision=precision, preferred=preferred)


@one_call()
def vdot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: lax.PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Sum of products of all elements, with ``a`` conjugated.

    Args:
      a, b: arrays with equal numbers of elements, which are flattened.
      precision: a ``primax.lax.Precision``, a pair of them, or a name such as ``"highest"``.
      preferred_element_type: the dtype of the accumulator and of the result.

    Returns:
      A scalar of the promoted dtype.

    Raises:
      TypeError: if the numbers of elements differ.

    >>> complex(vdot(np.array([1j, 2.0]), np.array([1j, 1.0])))
    (3+0j)
    """
    check_arrays("vdot", a, b)
    x, y = typeof(a), typeof(b)
    _check_sizes("vdot", x, y, x.size, y.size)
    return _vdot(a, b, precision=precision, preferred=_preferred_dtype(preferred_element_type))


@compiled("precision", "preferred")
def _vdot(a, b, *, precision, preferred):
    a, b = (lax.reshape(v, (typeof(v).size,)) for v in (a, b))
    dims = (((0,), (0,)), ((), ()))
    return _contracted(
        a, b, dimensions=dims, conjugate=True, precision=precision, preferred=preferred
    )


def vecdot(
    x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1, precision: lax.PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:  # fmt: skip
    """Sum of products along one axis, with the first operand conjugated; the other axes broadcast.

    Args:
      x1, x2: arrays with at least one axis.
      axis: the axis of the sum, by default the last.
      precision: a ``primax.lax.Precision``, a pair of them, or a name such as ``"highest"``.
      preferred_element_type: the dtype of the accumulator and of the result.

    Returns:
      An array of the common shape without the axis, of the promoted dtype.

    Raises:
      ValueError: if an operand is a scalar, or the sizes along the axis differ.

    >>> vecdot(np.array([[1, 2], [3, 4]]), np.array([1, 10])).tolist()
    [21, 43]
    """
    check_arrays("vecdot", x1, x2)
    x, y = typeof(x1), typeof(x2)
    if not x.ndim or not y.ndim:
        raise ValueError(f"vecdot needs at least one axis, got shapes {x.shape} and {y.shape}")
    i, j = one_axis(axis, x.ndim), one_axis(axis, y.ndim)
    if x.shape[i] != y.shape[j]:
        raise ValueError(f"vecdot: axes must match; got shapes {x.shape} and {y.shape}, {axis=}")
    preferred = _preferred_dtype(preferred_element_type)
    return _vecdot(x1, x2, axes=(i, j), precision=precision, preferred=preferred)


@compiled("axes", "precision", "preferred")
def _vecdot(a, b, *, axes, precision, preferred):
    a, b = promoted("vecdot", a, b, any_number)
    a, b = (_last(v, i) for v, i in zip((a, b), axes))
    x, y = typeof(a), typeof(b)
    batch = _joint_batch("vecdot", x, y, 1, 1)
    a, b = (repeated(v, (*batch, *x.shape[-1:])) for v in (a, b))
    n = len(batch)
    dims = (((n,), (n,)), (tuple(range(n)), tuple(range(n))))
    return _contracted(
        a, b, dimensions=dims, conjugate=True, precision=precision, preferred=preferred
    )


def _last(x: Any, axis: int) -> Any:
    n = typeof(x).ndim
    return lax.transpose(x, (*[i for i in range(n) if i != axis], axis))


def _check_core(name: str, m: int, n: int, x1: Any, x2: Any) -> None:
    check_arrays(name, x1, x2)
    x, y = typeof(x1), typeof(x2)
    if x.ndim < m or y.ndim < n:
        raise ValueError(
            f"{name} needs at least {m} axes and {n} axes, got shapes {x.shape} and {y.shape}"
        )
    sizes = x.shape[-1], y.shape[-n]
    if sizes[0] != sizes[1]:
        raise ValueError(
            f"{name}: inconsistent size for the summed axis: {sizes[0]} vs {sizes[1]} in shapes "
            f"{x.shape} and {y.shape}"
        )
    _joint_batch(name, x, y, m, n)


@checked(partial(_check_core, "matvec", 2, 1))
def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Product of matrices and vectors; the leading axes broadcast.

    Args:
      x1: matrices of shape ``(..., n, k)``.
      x2: vectors of shape ``(..., k)``.

    Returns:
      Vectors of shape ``(..., n)``, of the promoted dtype.

    Raises:
      ValueError: if there are too few axes, or sizes do not match.

    Complex matrices are not conjugated.

    >>> matvec(np.array([[1, 2], [3, 4]]), np.array([1, 10])).tolist()
    [21, 43]
    """
    a, b = promoted("matvec", x1, x2, any_number)
    return _batched_product(a, b, 2, 1)


@checked(partial(_check_core, "vecmat", 1, 2))
def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Product of vectors, conjugated, and matrices; the leading axes broadcast.

    Args:
      x1: vectors of shape ``(..., k)``.
      x2: matrices of shape ``(..., k, m)``.

    Returns:
      Vectors of shape ``(..., m)``, of the promoted dtype.

    Raises:
      ValueError: if there are too few axes, or sizes do not match.

    For real vectors the result is that of ``matmul(x1, x2)``.

    >>> vecmat(np.array([1, 10]), np.array([[1, 2], [3, 4]])).tolist()
    [31, 42]
    """
    a, b = promoted("vecmat", x1, x2, any_number)
    if dtypes.issubdtype(typeof(a).dtype, np.complexfloating):
        a = lax.conj(a)
    return _batched_product(a, b, 1, 2)


def _batched_product(
    a: Any, b: Any, m: int, n: int, precision: Any = None, preferred: Any = None
) -> Any:
    """Contraction of the last of ``m`` axes with the first of ``n`` axes; the others broadcast."""
    x, y = typeof(a), typeof(b)
    batch = _joint_batch("matmul", x, y, m, n)
    k = len(batch)
    a, b = repeated(a, (*batch, *x.shape[-m:])), repeated(b, (*batch, *y.shape[-n:]))
    dims = (((k + m - 1,), (k,)), (tuple(range(k)), tuple(range(k))))
    return lax.dot_general(a, b, dims, precision, preferred)


def tensordot(
    a: ArrayLike,
    b: ArrayLike,
    axes: int | Sequence[Any] = 2,
    *,
    precision: lax.PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Sum of products over several axes of both operands.

    Args:
      a, b: arrays or numbers.
      axes: a number (the last axes of ``a``, the first of ``b``), or a pair of axes or of lists.
      precision: a ``primax.lax.Precision``, a pair of them, or a name such as ``"highest"``.
      preferred_element_type: the dtype of the accumulator and of the result.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      An array of the other axes of ``a``, then those of ``b``.

    Raises:
      TypeError: if the axes are malformed, repeated, or of different sizes.

    >>> tensordot(np.ones((2, 3)), np.ones((3, 2)), axes=([0, 1], [1, 0])).tolist()
    6.0
    >>> tensordot(np.ones((2, 3, 4)), np.ones((3, 4, 5))).shape
    (2, 5)
    """
    if out_sharding is not None:
        return with_out_sharding(
            tensordot,
            out_sharding,
            a,
            b,
            axes,
            precision=precision,
            preferred_element_type=preferred_element_type,
        )
    check_arrays("tensordot", a, b)
    x, y = typeof(a), typeof(b)
    first, second = _pair_of_axes(axes, x, y)
    for i, j in zip(first, second):
        _check_sizes("tensordot", x, y, x.shape[i], y.shape[j])
    dims = ((first, second), ((), ()))
    preferred = _preferred_dtype(preferred_element_type)
    return _contracted(a, b, dimensions=dims, precision=precision, preferred=preferred)


def _pair_of_axes(axes: Any, x: Any, y: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if hasattr(axes, "__index__"):
        n = operator.index(axes)
        if n < 0 or n > min(x.ndim, y.ndim):
            raise TypeError(
                f"Number of tensordot axes (axes {n}) exceeds input ranks ({x.shape} and {y.shape})"
            )
        return tuple(range(x.ndim - n, x.ndim)), tuple(range(n))
    if isinstance(axes, (tuple, list)) and len(axes) == 2:
        pair = [(e,) if hasattr(e, "__index__") else e for e in axes]
        if all(isinstance(e, (tuple, list)) for e in pair):
            if len(pair[0]) != len(pair[1]):
                raise TypeError(
                    f"tensordot: both lists of axes must have the same length, got {axes}"
                )
            try:
                return axes_of(pair[0], x.ndim), axes_of(pair[1], y.ndim)
            except ValueError as e:
                raise TypeError(f"tensordot of shapes {x.shape} and {y.shape}: {e}") from None
    raise TypeError(
        "tensordot axes argument must be an int, a pair of ints, or a pair of lists/tuples of "
        f"ints, got {axes!r}"
    )


@one_call()
def outer(a: ArrayLike, b: ArrayLike, out: None = None) -> Array:
    """Products of all pairs of elements of two arrays.

    Args:
      a, b: arrays or numbers, which are flattened.
      out: unsupported.

    Returns:
      An array of shape ``(a.size, b.size)``, of the promoted dtype.

    Complex numbers are not conjugated.

    >>> outer(np.array([1, 2]), np.array([1, 10])).tolist()
    [[1, 10], [2, 20]]
    """
    check_arrays("outer", a, b)
    check_out("outer", out)
    return _outer(a, b)


@compiled()
def _outer(a, b):
    a, b = promoted("outer", a, b, any_number)
    m, n = typeof(a).size, typeof(b).size
    x = lax.broadcast_in_dim(lax.reshape(a, (m,)), (m, n), (0,))
    y = lax.broadcast_in_dim(lax.reshape(b, (n,)), (m, n), (1,))
    return (lax.bitwise_and if typeof(a).dtype == np.bool_ else lax.mul)(x, y)


@elementwise
def kron(a: ArrayLike, b: ArrayLike) -> Array:
    """Kronecker product: blocks of ``b`` scaled by the elements of ``a``.

    Args:
      a, b: arrays or numbers; leading axes of size 1 are added to the one of lower rank.

    Returns:
      An array whose sizes are the products of those of ``a`` and ``b``.

    Raises:
      TypeError: if an operand is not an array or a number.

    >>> kron(np.int32([1, 10]), np.int32([1, 2]))
    Array([ 1,  2, 10, 20], dtype=int32)
    >>> kron(np.eye(2, dtype=int), np.array([[1, 2]])).tolist()
    [[1, 2, 0, 0], [0, 0, 1, 2]]
    """
    a, b = promoted("kron", a, b, any_number)
    n = max(typeof(a).ndim, typeof(b).ndim)
    p, q = ((1,) * (n - typeof(v).ndim) + typeof(v).shape for v in (a, b))
    a = lax.reshape(a, [d for i in p for d in (i, 1)])
    b = lax.reshape(b, [d for i in q for d in (1, i)])
    shape = [d for pair in zip(p, q) for d in pair]
    x, y = (lax.broadcast_in_dim(v, shape, tuple(range(2 * n))) for v in (a, b))
    out = (lax.bitwise_and if typeof(x).dtype == np.bool_ else lax.mul)(x, y)
    return lax.reshape(out, tuple([i * j for i, j in zip(p, q)]))


def cross(
    a: ArrayLike,
    b: ArrayLike,
    axisa: int = -1,
    axisb: int = -1,
    axisc: int = -1,
    axis: int | None = None,
) -> Array:
    """Cross products of vectors with three components; the other axes broadcast.

    Args:
      a, b: arrays with an axis of size 3.
      axisa, axisb, axisc: the axes of the components of ``a``, ``b`` and the result, by default
        the last.
      axis: sets all three axes.

    Returns:
      An array of the common shape, of the promoted dtype.

    Raises:
      ValueError: if an axis does not have three elements.

    >>> cross(np.array([1, 0, 0]), np.array([0, 1, 0])).tolist()
    [0, 0, 1]
    """
    check_arrays("cross", a, b)
    x, y = typeof(a), typeof(b)
    if axis is not None:
        axisa = axisb = axisc = axis
    axes = one_axis(axisa, x.ndim), one_axis(axisb, y.ndim)
    for t, i in zip((x, y), axes):
        if not t.ndim or t.shape[i] != 3:
            raise ValueError(
                f"Dimension must be 3 for cross product, got shapes {x.shape} and {y.shape} with "
                f"axes {axes}: append a zero to two-dimensional vectors"
            )
    rank = max(x.ndim, y.ndim)
    return _cross(a, b, axes=axes, axis=one_axis(axisc, rank))


@compiled("axes", "axis")
def _cross(a, b, *, axes, axis):
    a, b = promoted("cross", a, b, any_number)
    a, b = (_last(v, i) for v, i in zip((a, b), axes))
    shape = broadcast_shapes(typeof(a).shape, typeof(b).shape)
    n = len(shape)
    x, y = (
        [
            lax.slice_in_dim(repeated(v, (*shape[:-1], 3)), i, i + 1, axis=n - 1)
            for i in range(3)
        ]
        for v in (a, b)
    )  # fmt: skip
    parts = [lax.sub(lax.mul(x[i], y[j]), lax.mul(x[j], y[i])) for i, j in ((1, 2), (2, 0), (0, 1))]
    out = lax.concatenate(parts, n - 1)
    order = list(range(n - 1))
    order.insert(axis, n - 1)
    return lax.transpose(out, tuple(order))
