"""Products of vectors and matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend import Array, any_number, library_function, promoted, typeof

from ._checks import check_arrays


def _matmul_of(a, b, *, precision, preferred):
    a, b = promoted("matmul", a, b, any_number)
    x, y = typeof(a), typeof(b)
    a_vector, b_vector = x.ndim == 1, y.ndim == 1
    if a_vector or b_vector or y.ndim == 2:
        # No batch of matrices on the right: one contraction does it.
        contract = ((x.ndim - 1,), (0 if b_vector else y.ndim - 2,))
        if a_vector and y.ndim > 2:
            out = lax.dot_general(b, a, (((y.ndim - 2,), (0,)), ((), ())), precision, preferred)
            return out
        if b_vector or y.ndim == 2:
            return lax.dot_general(a, b, (contract, ((), ())), precision, preferred)
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    n = len(batch)
    a = _to_batch(a, batch, x.shape[-2:])
    b = _to_batch(b, batch, y.shape[-2:])
    dims = (((n + 1,), (n,)), (tuple(range(n)), tuple(range(n))))
    return lax.dot_general(a, b, dims, precision, preferred)


_matmul_of.__name__ = "matmul"
_matmul = library_function(_matmul_of, static_argnames=("precision", "preferred"))


def _to_batch(x: Any, batch: tuple[int, ...], tail: tuple[int, ...]) -> Any:
    shape = (*batch, *tail)
    aval = typeof(x)
    if aval.shape == shape:
        return x
    return lax.broadcast_in_dim(x, shape, tuple(range(len(shape) - aval.ndim, len(shape))))


def matmul(
    a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Array:  # fmt: skip
    """Matrix product over the last two axes, the others broadcast; vectors are rows or columns.

    Raises:
      ValueError: for scalars.
      TypeError: if the contracted sizes differ.
    """
    check_arrays("matmul", a, b)
    x, y = typeof(a), typeof(b)
    for i, t in enumerate((x, y)):
        if not t.ndim:
            raise ValueError(
                f"matmul input operand {i} must have ndim at least 1, but it has ndim 0"
            )
    k = y.shape[0] if y.ndim == 1 else y.shape[-2]
    if x.shape[-1] != k:
        raise TypeError(
            f"matmul got incompatible shapes for contraction: {x.shape} and {y.shape}: the last "
            f"axis of the first has size {x.shape[-1]}, the contracted axis of the second {k}"
        )
    return _matmul(a, b, precision=precision, preferred=preferred_element_type)


def dot(
    a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Array:  # fmt: skip
    """Sum over the last axis of ``a`` and the second last of ``b``; a product for scalars."""
    check_arrays("dot", a, b)
    x, y = typeof(a), typeof(b)
    if not x.ndim or not y.ndim:
        return lax.mul(*promoted("dot", a, b, any_number))
    if y.ndim <= 2 and x.ndim <= 2:
        return matmul(a, b, precision=precision, preferred_element_type=preferred_element_type)
    a, b = promoted("dot", a, b, any_number)
    contract = ((x.ndim - 1,), (y.ndim - 2 if y.ndim > 1 else 0,))
    return lax.dot_general(a, b, (contract, ((), ())), precision, preferred_element_type)


def outer(a: Any, b: Any, out: None = None) -> Array:
    """Products of all pairs of elements."""
    check_arrays("outer", a, b)
    a, b = promoted("outer", a, b, any_number)
    x = lax.reshape(a, (typeof(a).size,))
    y = lax.reshape(b, (typeof(b).size,))
    return lax.dot_general(x, y, (((), ()), ((), ())))
