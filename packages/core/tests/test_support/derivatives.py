"""Derivatives against finite differences in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primax_core import enable_x64, float0, jvp, tree, vjp
from primax_core.extend import dtypes
from primax_core.testing import check_grads, numerical_jvp

from .comparison import assert_close

_ROUNDING = 1e-9


def check_derivatives(
    fun: Callable[..., Any],
    *args: Any,
    order: int = 1,
    modes: Sequence[str] = ("fwd", "rev"),
    step: float | None = 1e-6,
    rtol: float = 0.0,
    atol: float = 1e-6,
    value_rtol: float = 0.0,
) -> None:
    """Check a function's derivatives in float64, up to an order, in both modes.

    The oracle of both modes is central differences, as in
    :func:`primax_core.testing.check_grads`. First derivatives of the two modes must also agree with
    each other up to rounding, ``⟨w, J v⟩ = ⟨Jᵀ w, v⟩``, and the modes must return the same values.

    Args:
      args: pytrees of numbers and arrays, converted to float64 and complex128; integers and
        booleans are passed unchanged and are not differentiated.
      step: step of the differences; ``None`` tries the steps of ``check_grads``.
      rtol: error relative to the largest derivative, or to 1.
      atol: absolute error. Both are for the comparison with differences.
      value_rtol: relative error of the values that the modes return, by default none; XLA may fuse
        the operations of the two differently.

    Raises:
      AssertionError: the message begins with the mode and the order.
    """
    with enable_x64(True):
        points = tuple(tree.map(_double, args))
        check_grads(fun, points, order, modes, atol, rtol, step)
        if "fwd" in modes and "rev" in modes:
            _check_adjoint(fun, points, value_rtol)


def _check_adjoint(fun: Callable[..., Any], args: tuple[Any, ...], value_rtol: float) -> None:
    rng = np.random.default_rng(0)
    tangents = tree.map(lambda x: _drawn_like(x, rng), args)
    out, tangent = jvp(fun, args, tangents)
    same, pullback = vjp(fun, *args)
    assert_close(tree.leaves(same), tree.leaves(out), rtol=value_rtol, err_msg="value of the VJP")
    weights = tree.map(lambda x: _drawn_like(x, rng), out)
    forward = _inner_product(weights, tangent)
    reverse = _inner_product(pullback(weights), tangents)
    text = "inner products of the JVP and of the VJP"
    assert_close(reverse, forward, rtol=_ROUNDING, err_msg=text)


def numerical_gradient(fun: Callable[..., Any], x: Any) -> Any:
    """Derivatives of a function of one array with respect to its elements, by central differences.

    The function is called in float64. The last axes of each result are those of ``x``.

    >>> round(float(numerical_gradient(lambda x: x * x, np.float32(3))), 6)
    6.0
    """
    with enable_x64(True):
        x = np.asarray(_double(x))
        units = np.eye(x.size).reshape((x.size, *x.shape)).astype(x.dtype)
        columns = [np.asarray(numerical_jvp(fun, (x,), (unit,))) for unit in units]
    return np.stack(columns, -1).reshape((*columns[0].shape, *x.shape))


def _is_inexact(x: Any) -> bool:
    return bool(dtypes.issubdtype(np.asarray(x).dtype, np.inexact))


def _double(x: Any) -> Any:
    if not _is_inexact(x):
        return x
    x = np.asarray(x)
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def _drawn_like(x: Any, rng: np.random.Generator) -> np.ndarray:
    """A random tangent or cotangent."""
    x = np.asarray(x)
    if not _is_inexact(x):
        return np.zeros(x.shape, float0)
    values: Any = rng.standard_normal(x.shape)
    if x.dtype.kind == "c":
        values = values + 1j * rng.standard_normal(x.shape)
    return np.asarray(values).astype(x.dtype)


def _inner_product(xs: Any, ys: Any) -> float:
    pairs = zip(tree.leaves(xs), tree.leaves(ys), strict=True)
    arrays = [(np.asarray(x), np.asarray(y)) for x, y in pairs]
    return sum(float(np.sum(x * y).real) for x, y in arrays if _is_inexact(x))
