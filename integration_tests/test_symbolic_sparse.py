"""Operations on sparse arrays whose shapes have symbolic dimensions, as exported functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import primax
import primax.numpy as jnp
from primax import export
from primax.experimental import sparse


def batched(x: Any) -> Any:
    """The array with one batch dimension."""
    return sparse.bcoo_update_layout(x, n_batch=1, on_inefficient=None)


def product(x: Any, y: Any) -> Any:
    """The matrix product of each pair of batch elements."""
    dims = (((2,), (1,)), ((0,), (0,)))
    return sparse.bcoo_dot_general(batched(x), batched(y), dimension_numbers=dims)


def grown(x: Any, *new: int) -> Any:
    """The array broadcast along new last dimensions."""
    shape = (*x.shape, *new)
    return sparse.bcoo_broadcast_in_dim(x, shape=shape, broadcast_dimensions=range(x.ndim))


CUBE = ("b", 3, 3)
CALLS: dict[str, tuple[Callable[..., Any], list[tuple[Any, ...]]]] = {
    "expanded": (lambda x: grown(x, 1), [CUBE]),
    "repeated": (lambda x: grown(x, 4), [CUBE]),
    "squeezed": (lambda x: sparse.bcoo_squeeze(x, dimensions=(1, 3)), [("b", 1, 3, 1)]),
    "reshaped": (lambda x: sparse.bcoo_reshape(x, new_sizes=(x.shape[0], 9)), [CUBE]),
    "sum 0": (lambda x: sparse.bcoo_reduce_sum(x, axes=(0,)), [CUBE]),
    "sum 1": (lambda x: sparse.sparsify(lambda v: jnp.sum(v, 1))(x), [CUBE]),
    "unique": (lambda x: sparse.bcoo_sum_duplicates(x, nse=x.nse), [CUBE]),
    "sorted": (lambda x: x.sort_indices(), [CUBE]),
    "batched": (batched, [CUBE]),
    "unbatched": (lambda x: batched(x).update_layout(n_batch=0), [CUBE]),
    "dense": (lambda x: x.update_layout(n_dense=1, on_inefficient=None), [CUBE]),
    "multiplied": (lambda x, y: sparse.bcoo_multiply_sparse(x, y), [CUBE, CUBE]),
    "products": (product, [CUBE, CUBE]),
    "matrix product": (lambda x, y: x @ y, [("b", 3), (3, "b")]),
    "sliced": (lambda x: x[:, 1:], [CUBE]),
    "element": (lambda x: x[0], [CUBE]),
    "window": (lambda x: sparse.bcoo_dynamic_slice(x, (0, 1, 0), (x.shape[0], 2, 3)), [CUBE]),
    "joined": (lambda x, y: sparse.bcoo_concatenate([x, y], dimension=1), [CUBE, CUBE]),
    "reversed": (lambda x: sparse.bcoo_rev(x, dimensions=(0,)), [CUBE]),
    "empty": (lambda x: sparse.empty(x.shape) + x, [CUBE]),
}


@pytest.mark.parametrize("name", CALLS)
def test_symbolic_shapes(name: str) -> None:
    """An exported function computes what the function of static shapes does."""
    fun, shapes = CALLS[name]
    (size,) = export.symbolic_shape("b", constraints=["b >= 2"])

    def dense(*arrays: Any) -> Any:
        out = fun(*[sparse.BCOO.fromdense(x, nse=9) for x in arrays])
        return out.todense()

    def with_size(n: Any) -> list[tuple[Any, ...]]:
        return [tuple(n if d == "b" else d for d in shape) for shape in shapes]

    specs = [primax.ShapeDtypeStruct(shape, np.float32) for shape in with_size(size)]
    exported = export.export(primax.jit(dense))(*specs)
    draws = np.random.default_rng(0)
    arrays = [draws.normal(size=s) * (draws.random(s) < 0.4) for s in with_size(4)]
    arrays = [x.astype(np.float32) for x in arrays]
    expected = primax.jit(dense)(*arrays)
    np.testing.assert_allclose(exported.call(*arrays), expected, 1e-6, 1e-6)
