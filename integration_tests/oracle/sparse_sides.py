"""Sparse arrays of both libraries, and their comparison.

Results are compared as dense arrays, with their types and layouts. Stored elements are compared
only where both libraries must store the same ones. The properties that describe the indices must be
true.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import jax
import jax.experimental.sparse as theirs
import numpy as np
import pytest
from agreement import TOLERANCES, values

import primax_core as px
import primax_numpy
import primax_numpy.linalg
import primax_numpy.random
import primax_scipy.experimental.sparse as ours
from test_support import assert_close, tolerance

OURS = SimpleNamespace(
    sparse=ours, np=primax_numpy, api=px, lax=px.lax, random=primax_numpy.random
)  # fmt: skip
THEIRS = SimpleNamespace(
    sparse=theirs, np=jax.numpy, api=jax, lax=jax.lax, random=jax.random
)  # fmt: skip

QUICK = {"xla_backend_optimization_level": 0}


@dataclass(frozen=True)
class Stored:
    """A library-independent sparse array; each library creates its own from the two arrays."""

    data: Any
    indices: np.ndarray
    shape: tuple[int, ...]
    n_batch: int = 0
    n_dense: int = 0
    tidy: bool = False

    def made(self, lib: Any, data: Any = None) -> Any:
        data = self.data if data is None else data
        flags = {"indices_sorted": self.tidy, "unique_indices": self.tidy}
        return lib.sparse.BCOO((data, self.indices), shape=self.shape, **flags)

    @property
    def n_sparse(self) -> int:
        return len(self.shape) - self.n_batch - self.n_dense


def untidy(
    shape: Sequence[int], n_batch: int = 0, n_dense: int = 0, dtype: Any = np.float32, seed: int = 0
) -> Stored:
    """Unsorted indices, the first two equal, the last out of bounds."""
    rng = np.random.default_rng(seed)
    end = len(shape) - n_dense
    batch, sizes, dense = shape[:n_batch], shape[n_batch:end], shape[end:]
    nse = 2 if not sizes else 5 + len(shape) // 3
    indices = rng.integers(0, np.array(sizes, int), (*batch, nse, len(sizes))).astype(np.int32)
    indices[..., 1, :] = indices[..., 0, :]
    if sizes:
        indices[..., -1, :] = sizes
    data = values((*batch, nse, *dense), dtype, seed + 1)
    return Stored(data, indices, tuple(shape), n_batch, n_dense)


def tidy(
    shape: Sequence[int], n_batch: int = 0, n_dense: int = 0, dtype: Any = np.float32, seed: int = 0
) -> Stored:
    """Sorted and unique indices, followed by padding."""
    rng = np.random.default_rng(seed)
    end = len(shape) - n_dense
    batch, sizes, dense = shape[:n_batch], shape[n_batch:end], shape[end:]
    full = math.prod(sizes)
    nse = (full + 1) // 2 + 1 if sizes else 1
    indices = np.empty((*batch, nse, len(sizes)), np.int32)
    indices[...] = sizes
    data = np.zeros((*batch, nse, *dense), dtype)
    for n, at in enumerate(np.ndindex(*batch)):
        count = max(nse - 1 - n % 2, 1)
        places = np.sort(rng.permutation(full)[:count])
        if sizes:
            indices[(*at, slice(count))] = np.stack(np.unravel_index(places, sizes), -1)
        data[(*at, slice(count))] = values((count, *dense), dtype, seed + n)
    return Stored(data, indices, tuple(shape), n_batch, n_dense, tidy=True)


def placed(lib: Any, args: Sequence[Any]) -> list[Any]:
    return [a.made(lib) if isinstance(a, Stored) else a for a in args]


def is_sparse(x: Any) -> bool:
    return isinstance(x, (ours.JAXSparse, theirs.JAXSparse))


def dense(out: Any) -> Any:
    """Convert all sparse arrays in a tree of results to dense arrays."""
    return jax.tree.map(lambda x: x.todense() if is_sparse(x) else x, out, is_leaf=is_sparse)


def filled(x: Any) -> np.ndarray:
    """Compute the dense values with NumPy, without either library."""
    sizes = x.shape[x.n_batch : x.n_batch + x.n_sparse]
    batch = x.shape[: x.n_batch]
    indices = np.broadcast_to(np.asarray(x.indices), (*batch, *x.indices.shape[-2:]))
    data = np.broadcast_to(np.asarray(x.data), (*batch, *x.data.shape[x.n_batch :]))
    out = np.zeros(x.shape, x.dtype)
    for at in np.ndindex(*indices.shape[:-1]):
        row = indices[at]
        if all(0 <= i < n for i, n in zip(row, sizes)):
            out[(*at[:-1], *row)] += data[at]
    return out


close = partial(assert_close, rtol=TOLERANCES, scaled=True, check_dtype=True)


def honest(x: Any) -> None:
    """Assert that the properties of a sparse array are correct."""
    indices, data = np.asarray(x.indices), np.asarray(x.data)
    assert x.nse == indices.shape[-2] == data.shape[x.n_batch]
    assert x.ndim == len(x.shape) == x.n_batch + x.n_sparse + x.n_dense
    assert (x.n_batch, x.n_sparse) == (indices.ndim - 2, indices.shape[-1])
    sizes = x.shape[x.n_batch : x.n_batch + x.n_sparse]
    for at in np.ndindex(*indices.shape[:-2]):
        rows = [tuple(row) for row in indices[at]]
        inside = [row for row in rows if all(i < n for i, n in zip(row, sizes))]
        assert not x.indices_sorted or rows == sorted(rows)
        assert not x.unique_indices or not sizes or len(set(inside)) == len(inside)


def elements(x: Any) -> tuple[np.ndarray, np.ndarray]:
    """Indices and data of the valid elements, with zeros for the padding."""
    indices, data = np.asarray(x.indices), np.asarray(x.data)
    sizes = np.array(x.shape[x.n_batch : x.n_batch + x.n_sparse], int)
    there = (indices < sizes).all(-1)
    dense_axes = tuple(range(there.ndim, data.ndim))
    there &= (data != 0).any(dense_axes)
    return indices * there[..., None], data * np.expand_dims(there, dense_axes)


def alike(actual: Any, expected: Any, what: str = "", exact: bool = False) -> None:
    """Assert that two trees of results have the same classes, layouts, types and values."""
    flat = [jax.tree.flatten(x, is_leaf=is_sparse) for x in (actual, expected)]
    assert flat[0][1] == flat[1][1], what
    for n, (o, t) in enumerate(zip(flat[0][0], flat[1][0])):
        where = f"{what} {n}: {o!r} and {t!r}"
        assert is_sparse(o) == is_sparse(t), where
        if not is_sparse(t):
            close(o, t, err_msg=where)
            continue
        assert isinstance(o, ours.BCOO), where
        of = lambda x: (x.shape, x.dtype, x.n_batch, x.n_sparse, x.n_dense)
        assert of(o) == of(t), where
        honest(o)
        close(filled(o), filled(t), err_msg=where)
        if exact:
            assert o.indices.shape == t.indices.shape and o.data.shape == t.data.shape, where
            for a, b in zip(elements(o), elements(t)):
                assert_close(a, b, rtol=1e-5, err_msg=where)


def agree(
    call: Callable, *args: Any, exact: bool = False, eager: bool = False, concrete: bool = False
) -> None:
    """Compare ``call(lib, *args)`` of the two libraries within ``jit``.

    Args:
      eager: whether to compare the eager result as well.
      concrete: whether concrete values are needed, so that ``jit`` is not used.
    """
    compiled = lambda lib: lib.api.jit(lambda *a: call(lib, *a), compiler_options=QUICK)
    if concrete:
        expected = call(THEIRS, *placed(THEIRS, args))
    else:
        expected = compiled(THEIRS)(*placed(THEIRS, args))
        alike(compiled(OURS)(*placed(OURS, args)), expected, "jit", exact)
    if eager or concrete:
        alike(call(OURS, *placed(OURS, args)), expected, "value", exact)


def derivatives_agree(call: Callable, *args: Any, backward: bool = True) -> None:
    """Compare forward and reverse derivatives of ``call(lib, *args)`` with respect to all inexact
    data.

    Args:
      backward: whether the reference supports reverse mode. Otherwise, compare with the transpose
        of forward mode.
    """
    by = [np.asarray(a.data if isinstance(a, Stored) else a) for a in args]
    moving = [i for i, a in enumerate(by) if a.dtype.kind in "fc"]
    primals = tuple(by[i] for i in moving)
    tangents = tuple(values(p.shape, p.dtype, 31 + i) for i, p in enumerate(primals))

    def run(lib: Any, backward: bool = True) -> dict[str, Any]:
        def of_data(*xs: Any) -> Any:
            full = placed(lib, args)
            for i, x in zip(moving, xs):
                full[i] = args[i].made(lib, x) if isinstance(args[i], Stored) else x
            return dense(call(lib, *full))

        actual = {"jvp": lib.api.jvp(of_data, primals, tangents)}
        if backward:
            out, pull = lib.api.vjp(of_data, *primals)
            actual["ct"] = jax.tree.map(lambda o: values(o.shape, o.dtype, 17), out)
            actual["vjp"] = pull(actual["ct"])
        return actual

    expected = jax.jit(lambda: run(THEIRS, backward), compiler_options=QUICK)()
    actual = px.jit(lambda: run(OURS), compiler_options=QUICK)()
    for name in expected:
        pairs = zip(jax.tree.leaves(actual[name]), jax.tree.leaves(expected[name]), strict=True)
        for n, (o, t) in enumerate(pairs):
            limit = 10 * tolerance(t.dtype, TOLERANCES)
            close(o, t, rtol=limit, err_msg=f"{name} {n}")
    dot = lambda a, b: sum(np.vdot(x, y) for x, y in zip(*map(jax.tree.leaves, (a, b))))
    forward, back = dot(actual["ct"], actual["jvp"][1]), dot(actual["vjp"], tangents)
    np.testing.assert_allclose(forward, back, 1e-3, 1e-3)


def works(call: Callable, *args: Any) -> None:
    """Compare with the dense computation where the reference has no counterpart."""
    actual = dense(call(OURS, *placed(OURS, args)))
    expected = call(THEIRS, *dense(placed(THEIRS, args)))
    for o, t in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        close(o, t)


def both_raise(call: Callable, *args: Any) -> None:
    """Assert that both raise, and that our error has a message even if the reference's has none."""
    with pytest.raises(Exception) as expected:
        call(THEIRS, *placed(THEIRS, args))
    usual = IndexError, TypeError, ValueError
    strict = issubclass(expected.type, NotImplementedError)
    with pytest.raises(NotImplementedError if strict else usual) as actual:
        call(OURS, *placed(OURS, args))
    assert str(actual.value).strip()
