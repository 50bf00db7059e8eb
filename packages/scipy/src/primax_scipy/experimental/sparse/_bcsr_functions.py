"""Functions of arrays of compressed rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import primax_numpy as pnp
from primax_core import Array, lax
from primax_core.extend.runtime import with_out_sharding
from primax_core.typing import ArrayLike, DTypeLike, ShardingLike

from ._bcoo import BCOO
from ._bcsr import BCSR, bcsr_extract_p
from ._products import bcoo_dot_general
from ._structure import bcoo_broadcast_in_dim, bcoo_concatenate


def _require_bcsr(name: str, *args: Any) -> None:
    for x in args:
        if not isinstance(x, BCSR):
            raise TypeError(
                f"{name} expects BCSR arrays, got {type(x)}; see BCSR.fromdense and BCSR.from_bcoo"
            )


def bcsr_fromdense(
    mat: ArrayLike,
    *,
    nse: int | None = None,
    n_batch: int = 0,
    n_dense: int = 0,
    index_dtype: DTypeLike = np.int32,
) -> BCSR:
    """The nonzero elements of an array: see :meth:`BCSR.fromdense`."""
    return BCSR.fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)


def bcsr_todense(mat: BCSR) -> Array:
    """The dense array: see :meth:`BCSR.todense`."""
    _require_bcsr("bcsr_todense", mat)
    return mat.todense()


def bcsr_sum_duplicates(mat: BCSR, nse: int | None = None) -> BCSR:
    """The array with unique indices, including zeros: see :meth:`BCSR.sum_duplicates`."""
    _require_bcsr("bcsr_sum_duplicates", mat)
    return mat.sum_duplicates(nse=nse, remove_zeros=False)


def bcsr_extract(indices: ArrayLike, indptr: ArrayLike, mat: ArrayLike) -> Array:
    """The elements of a dense array at the indices of a :class:`BCSR`.

    Args:
      indices, indptr: integers of shapes ``(*batch, nse)`` and ``(*batch, rows + 1)``.
      mat: an array of shape ``(*batch, rows, columns, *dense)``.

    Returns:
      The ``data``, of shape ``(*batch, nse, *dense)``; zero for padding.

    Raises:
      ValueError: if ``indptr`` does not match the rows of ``mat``.

    >>> import numpy as np
    >>> bcsr_extract(np.array([1, 0]), np.array([0, 1, 2]), np.float32([[1, 2], [3, 4]]))
    Array([2., 3.], dtype=float32)
    """
    indices, indptr, mat = map(pnp.asarray, (indices, indptr, mat))
    n_batch = indices.ndim - 1
    if mat.ndim < n_batch + 2 or indptr.shape[-1] != mat.shape[n_batch] + 1:
        raise ValueError(
            f"bcsr_extract: indices of shape {indices.shape} and indptr of shape {indptr.shape} do "
            f"not match an array of shape {mat.shape}"
        )
    data: Array = bcsr_extract_p.bind(indices, indptr, mat)
    return data


def bcsr_broadcast_in_dim(
    mat: BCSR, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: None = None
) -> BCSR:
    """The array broadcast to a shape, with axis ``i`` mapped to axis ``broadcast_dimensions[i]``.

    Raises:
      ValueError: if shapes do not match, or the result does not have two sparse dimensions: see
        :func:`bcoo_broadcast_in_dim`.
    """
    _require_bcsr("bcsr_broadcast_in_dim", mat)
    out = bcoo_broadcast_in_dim(
        mat.to_bcoo(), shape=shape, broadcast_dimensions=broadcast_dimensions, sharding=sharding
    )
    return BCSR.from_bcoo(out)


def bcsr_concatenate(operands: Sequence[BCSR], *, dimension: int) -> BCSR:
    """Arrays concatenated along a dimension.

    Raises:
      TypeError: if other dimensions differ, or an operand is not a :class:`BCSR`.
      ValueError: if there are no operands.
    """
    operands = list(operands)
    _require_bcsr("bcsr_concatenate", *operands)
    if not operands:
        raise ValueError("bcsr_concatenate needs at least one operand")
    return BCSR.from_bcoo(bcoo_concatenate([x.to_bcoo() for x in operands], dimension=dimension))


def bcsr_dot_general(
    lhs: ArrayLike | BCSR,
    rhs: ArrayLike | BCSR,
    *,
    dimension_numbers: lax.DotDimensionNumbers,
    precision: lax.PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Any:
    """General dot product of compressed rows and a dense array, or of two sparse arrays.

    Arguments and errors are those of :func:`bcoo_dot_general`, with :class:`BCSR` operands.

    Returns:
      A dense array if one operand is dense. The product of two sparse arrays is a :class:`BCSR` if
      it has two sparse dimensions, and a :class:`BCOO` otherwise.
    """
    options = {"precision": precision, "preferred_element_type": preferred_element_type}
    if out_sharding is not None:
        return with_out_sharding(
            bcsr_dot_general, out_sharding, lhs, rhs, dimension_numbers=dimension_numbers, **options
        )
    for x in (lhs, rhs):
        if isinstance(x, BCOO):
            _require_bcsr("bcsr_dot_general", x)
    lhs, rhs = (x if isinstance(x, BCSR) else pnp.asarray(x) for x in (lhs, rhs))
    if isinstance(lhs, BCSR) and not isinstance(rhs, BCSR):
        return lhs.dot_dense(rhs, dimension_numbers, precision, preferred_element_type)
    plain = [x.to_bcoo() if isinstance(x, BCSR) else x for x in (lhs, rhs)]
    out = bcoo_dot_general(*plain, dimension_numbers=dimension_numbers, **options)
    return lhs.stored_like(out) if isinstance(out, BCOO) else out
