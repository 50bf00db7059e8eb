"""Products of a matrix with its own transpose."""

from __future__ import annotations

from typing import Any, Final

from ..._ir.primitive import Primitive, abstract, jvp, lower
from ..._ir.samples import Sample, f32, samples
from ..._trace.array import Array
from ..._trace.typing import ArrayLike
from ..._transform.zeros import Zero, add_tangents
from ..arithmetic import add, mul
from ..elementwise import full_like, weak
from .matrices import (
    REAL,
    batched_in_front,
    check_batches,
    check_operands,
    matmul,
    transposed,
    tril,
)

symmetric_product_p: Final = Primitive("symmetric_product")


def symmetric_product(
    a_matrix: ArrayLike,
    c_matrix: ArrayLike,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    symmetrize_output: bool = False,
) -> Array:
    """``alpha * a @ a^T + beta * c``.

    Args:
      a_matrix: ``float[..., n, k]`` of at least 32 bits.
      c_matrix: ``[..., n, n]``, symmetric.
      alpha, beta: Python numbers.
      symmetrize_output: copy the lower triangle of the result to the upper triangle; otherwise only
        the lower triangle is specified.

    Returns:
      An array of the shape of ``c_matrix``.

    Raises:
      TypeError: for other dtypes or numbers of axes.
      ValueError: if the sizes are incompatible.

    >>> import numpy as np
    >>> symmetric_product(np.array([[1.0], [2.0]]), np.zeros((2, 2))).tolist()
    [[1.0, 2.0], [2.0, 4.0]]
    """
    out = symmetric_product_p.bind(a_matrix, c_matrix, alpha=alpha, beta=beta)
    if symmetrize_output:
        out = add(tril(out), transposed(tril(out, -1)))
    return out


@symmetric_product_p.rule(abstract)
def _abstract(a, c, *, alpha, beta):
    check_operands("symmetric_product", (a, c), (2, 2), REAL)
    check_batches("symmetric_product", (a, c), (2, 2))
    n = a.shape[-2]
    if c.shape[-2:] != (n, n):
        raise ValueError(
            "symmetric_update expects a rectangular matrix of shape (m, n) and a square matrix of "
            f"shape (n, n). Got shapes {a.shape} and {c.shape}."
        )
    return c.update(weak_type=weak((a, c)))


def _scaled(x: Any, factor: Any) -> Any:
    return mul(x, full_like(x, factor))


@symmetric_product_p.rule(lower)
def _lower(ctx, a, c, *, alpha, beta):
    def product(a, c):
        out = _scaled(matmul(a, transposed(a)), alpha)
        # An operand with factor zero may be NaN, so it is not used.
        return add(out, _scaled(c, beta)) if beta else out

    return ctx.call(product, a, c)


@symmetric_product_p.rule(jvp)
def _jvp(primals, tangents, *, alpha, beta):
    (a, c), (ta, tc) = primals, tangents
    out = symmetric_product_p.bind(a, c, alpha=alpha, beta=beta)
    total: Any = Zero.like(out)
    if type(ta) is not Zero:
        half = _scaled(matmul(ta, transposed(a)), alpha)
        total = add(half, transposed(half))
    if type(tc) is not Zero:
        total = add_tangents(total, _scaled(tc, beta))
    return out, total


batched_in_front(symmetric_product_p)


@symmetric_product_p.rule(samples)
def _samples():
    yield Sample(f32(3, 2), f32(3, 3), alpha=1.0, beta=0.0)
    yield Sample(f32(2, 3, 4), f32(2, 3, 3), alpha=2.0, beta=-0.5)
    yield Sample(f32(2, 0), f32(2, 2), alpha=1.0, beta=1.0)
