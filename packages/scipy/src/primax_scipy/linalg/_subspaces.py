"""Orthonormal bases of the range and of the null space of matrices."""

from __future__ import annotations

import operator
from typing import Any

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import Array, Tracer, dtypes
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import as_inexact

from ._matrices import adjoint, check_matrices


def _rank(name: str, s: Any, shape: tuple[int, ...], rcond: Any, rank: int | None) -> int:
    if rank is not None:
        rank = operator.index(rank)
        if not 0 <= rank <= min(shape[-2:]):
            raise ValueError(f"linalg.{name}: rank {rank} is not from 0 to {min(shape[-2:])}")
        return rank
    if isinstance(s, Tracer):
        raise ValueError(
            f"linalg.{name}: the number of columns depends on the singular values, which are "
            "traced: pass rank, the rank of the matrix"
        )
    if len(shape) > 2:
        raise ValueError(
            f"linalg.{name}: matrices of a batch may have different ranks, got shape {shape}: "
            "pass rank"
        )
    limit = max(shape[-2:]) * float(dtypes.finfo(typeof(s).dtype).eps) if rcond is None else rcond
    largest = float(pnp.max(s, initial=0))
    return int(pnp.sum(s > limit * largest))


def null_space(
    A: ArrayLike, rcond: ArrayLike | None = None, *, overwrite_a: bool = False,
    check_finite: bool = True, lapack_driver: str = "gesdd", rank: int | None = None,
) -> Array:  # fmt: skip
    """Orthonormal basis of the null space, by the singular value decomposition.

    Args:
      A: ``number[..., m, n]``.
      rcond: singular values up to ``rcond`` times the largest count as zero; by default the machine
        epsilon times ``max(m, n)``.
      overwrite_a, check_finite, lapack_driver: ignored.
      rank: the rank, a Python integer, required under ``jit``, ``grad`` and ``vmap`` and for
        batches, because it determines the shape. ``rcond`` is then not used.

    Returns:
      ``number[..., n, n - rank]`` with orthonormal columns. The basis is not unique; functions of
      it that do not depend on the choice, such as the projection, are well defined.

    Raises:
      ValueError: if the rank is needed and missing, or out of range.

    >>> import numpy as np
    >>> basis = null_space(np.float32([[1, 1]]))
    >>> basis.shape, round(abs(float(basis[0, 0])), 4)
    ((2, 1), 0.7071)
    """
    check_matrices("null_space", A)
    a = as_inexact(pnp.asarray(A))
    _, s, vh = lax.linalg.svd(a, full_matrices=True)[:3]
    count = _rank("null_space", s, typeof(a).shape, rcond, rank)
    return adjoint(vh)[..., count:]


def orth(A: ArrayLike, rcond: ArrayLike | None = None, *, rank: int | None = None) -> Array:
    """Orthonormal basis of the range, by the singular value decomposition.

    Args:
      A: ``number[..., m, n]``.
      rcond: singular values up to ``rcond`` times the largest count as zero; by default the machine
        epsilon times ``max(m, n)``.
      rank: the rank, a Python integer, required under ``jit``, ``grad`` and ``vmap`` and for
        batches, because it determines the shape. ``rcond`` is then not used.

    Returns:
      ``number[..., m, rank]`` with orthonormal columns, the left singular vectors.

    Raises:
      ValueError: if the rank is needed and missing, or out of range.

    >>> import numpy as np
    >>> orth(np.float32([[2, 0], [0, 0]])).shape
    (2, 1)
    """
    check_matrices("orth", A)
    a = as_inexact(pnp.asarray(A))
    u, s, _ = lax.linalg.svd(a, full_matrices=False)[:3]
    return u[..., : _rank("orth", s, typeof(a).shape, rcond, rank)]
