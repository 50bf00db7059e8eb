"""Checks of derivatives against central differences, and of forward against reverse mode."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np

from .._api.forward import jvp
from .._api.vjp import vjp
from .._base import pytree
from .._base.pytree import PyTree
from .._ir import dtypes
from .._ir.element_types import DTypeLike
from .._trace.core import typeof
from .._trace.typing import ArrayLike
from .tolerance import difference_step, gradient_tolerance, mismatch, to_float64

_map, _leaves = pytree.tree_map, pytree.tree_leaves
_DIRECTIONS: Final = 3
_SMALLER: Final = 50.0

Tolerance: TypeAlias = float | Mapping[Any, float]
"""A limit, or limits by dtype."""


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int,
    modes: Sequence[str] = ("fwd", "rev"),
    atol: Tolerance | None = None,
    rtol: Tolerance | None = None,
    eps: float | None = None,
) -> None:
    """Check the derivatives of a function up to an order, in both modes and their mixtures.

    Tangents and cotangents are drawn with a fixed seed. Arguments and results are pytrees of floats
    or complex numbers; integers among them are ignored.

    Args:
      f: the function, called with ``*args``.
      order: 1 checks first derivatives, 2 also second derivatives, and so on.
      modes: ``"fwd"`` and ``"rev"``, or one of them.
      atol, rtol: allowed errors, absolute and relative to the largest value, or dictionaries of
        these by dtype; by default the accuracy of differences in the dtype of the arguments.
      eps: step of the differences, by default the cube root of the dtype's precision; if the
        derivative disagrees with the differences, a fiftieth of it is tried.
      args: the arguments, a sequence of pytrees.

    Returns:
      ``None``.

    Raises:
      AssertionError: with the mode, the order and the greatest difference.
      ValueError: if a mode is unknown.

    >>> from primax_core import lax
    >>> check_grads(lax.sin, (np.float32(1.0),), order=2)
    """
    unknown = set(modes) - {"fwd", "rev"}
    if unknown:
        raise ValueError(f"modes are 'fwd' and 'rev', got {sorted(unknown)}")
    _check(f, tuple(args), order, tuple(modes), (atol, rtol, eps), np.random.default_rng(0), "")


def _check(f, args, order, modes, limits, rng, path: str) -> None:
    atol, rtol, eps = limits
    for mode in modes:
        here = f"{path}{mode}"
        if mode == "fwd":
            check_jvp(f, partial(jvp, f), args, atol, rtol, eps, err_msg=here)
            if order > 1:
                tangents = _random_tangents(args, rng)
                _check(
                    lambda *xs, ts=tangents: jvp(f, xs, ts)[1],
                    args, order - 1, modes, limits, rng, f"{here} then ",
                )  # fmt: skip
        else:
            check_vjp(f, partial(vjp, f), args, atol, rtol, eps, err_msg=here)
            if order > 1:
                ct = _random_tangents(f(*args), rng)
                _check(
                    lambda *xs, ct=ct: _inexact(vjp(f, *xs)[1](ct), xs),
                    args, order - 1, modes, limits, rng, f"{here} then ",
                )  # fmt: skip


def check_jvp(
    f: Callable[..., Any],
    f_jvp: Callable[..., Any],
    args: Sequence[Any],
    atol: Tolerance | None = None,
    rtol: Tolerance | None = None,
    eps: float | None = 1e-4,
    err_msg: str = "",
) -> None:
    """Check a forward derivative of a function by differences.

    Args:
      f: a function, called with ``*args``.
      f_jvp: ``f_jvp(primals, tangents)`` returns ``(value, tangent)``.
      args: the arguments, pytrees of floats or complex numbers.
      atol: allowed absolute error, or a dictionary by dtype; by default the accuracy of
        differences.
      rtol: allowed error relative to the largest value, or a dictionary by dtype.
      eps: step of the differences.
      err_msg: the beginning of error messages.

    Returns:
      ``None``.

    Raises:
      AssertionError: with the greatest difference.

    Tangents are drawn with a fixed seed.

    >>> from primax_core import lax
    >>> check_jvp(lax.cos, lambda x, t: (lax.cos(*x), -lax.sin(*x) * t[0]), (np.float32(1.0),))
    """
    args = tuple(args)
    tangents = _random_tangents(args, np.random.default_rng(0))
    out, tangent = f_jvp(args, tangents)
    expected = f(*args)
    _compare(out, expected, atol, rtol, f"{err_msg}: value of the JVP", expected)

    def compare(step: float) -> None:
        numeric = numerical_jvp(f, args, tangents, step)
        _compare(tangent, numeric, atol, rtol, f"{err_msg}: tangent of the JVP", args)

    _with_some_step(compare, args, eps)


def check_vjp(
    f: Callable[..., Any],
    f_vjp: Callable[..., Any],
    args: Sequence[Any],
    atol: Tolerance | None = None,
    rtol: Tolerance | None = None,
    eps: float | None = 1e-4,
    err_msg: str = "",
) -> None:
    """Check a pullback of a function by ``⟨J v, w⟩ = ⟨v, Jᵀ w⟩``.

    ``J v`` is computed by differences, ``Jᵀ w`` by the pullback.

    Args:
      f: a function, called with ``*args``.
      f_vjp: ``f_vjp(*args)`` returns ``(value, pullback)``.
      args: the arguments, pytrees of floats or complex numbers.
      atol: allowed absolute error, or a dictionary by dtype; by default the accuracy of
        differences.
      rtol: allowed error relative to the largest value, or a dictionary by dtype.
      eps: step of the differences.
      err_msg: the beginning of error messages.

    Returns:
      ``None``.

    Raises:
      AssertionError: with the difference of both sides.

    Vectors are drawn with a fixed seed.

    >>> from primax_core import lax
    >>> def square_vjp(x):
    ...     return x * x, lambda ct: (2 * x * ct,)
    >>> check_vjp(lambda x: x * x, square_vjp, (np.float32(3.0),))
    """
    args = tuple(args)
    rng = np.random.default_rng(0)
    out, pullback = f_vjp(*args)
    expected = f(*args)
    _compare(out, expected, atol, rtol, f"{err_msg}: value of the VJP", expected)
    for _ in range(_DIRECTIONS):  # a single inner product may be small by chance
        tangents = _random_tangents(args, rng)
        ct = _random_tangents(expected, rng)
        right = inner_product(tuple(pullback(ct)), tangents)

        def compare(step: float, tangents=tangents, ct=ct, right=right) -> None:
            left = inner_product(ct, numerical_jvp(f, args, tangents, step))
            _compare(right, left, atol, rtol, f"{err_msg}: inner product with the VJP", args)

        _with_some_step(compare, args, eps)


def _with_some_step(
    compare: Callable[[float], None], args: Sequence[Any], eps: float | None
) -> None:
    """Raise the error of a comparison with differences, unless a smaller step agrees.

    The default step keeps rounding errors small. For a function with strong curvature or a nearby
    discontinuity a much smaller step is more accurate. A wrong derivative agrees with neither.
    """
    usual = difference_step(_narrowest(args))
    try:
        compare(usual if eps is None else eps)
    except AssertionError:
        if eps is not None:
            raise
        try:
            compare(usual / _SMALLER)
        except AssertionError:
            pass
        else:
            return
        raise


def numerical_jvp(
    f: Callable[..., Any], args: Sequence[Any], tangents: Sequence[Any], eps: float | None = None
) -> Any:
    """The derivative of a function along tangents, by central differences.

    Args:
      f: a function of pytrees of arrays.
      args: the arguments.
      tangents: tangents of the arguments, of their structure.
      eps: step of the differences; by default the cube root of the dtype's precision.

    Returns:
      A pytree like the result.

    The error is of the order of the square of the step, and rounding errors divided by it.

    >>> from primax_core import lax
    >>> tangent = numerical_jvp(lax.sin, (np.float32(0.0),), (np.float32(1.0),))
    >>> round(float(tangent), 2)
    1.0
    """
    step = difference_step(_narrowest(args)) if eps is None else eps

    def moved(by: float):
        return f(*_map(lambda x, t: _moved(x, t, by), tuple(args), tuple(tangents)))

    return _map(lambda a, b: _difference_quotient(a, b, step), moved(step), moved(-step))


def _moved(x: Any, t: Any, by: float) -> Any:
    value = np.asarray(x)
    if not is_inexact(value.dtype):
        return x
    return np.asarray(to_float64(value) + by * to_float64(t)).astype(value.dtype)


def _difference_quotient(a: Any, b: Any, step: float) -> Any:
    a, b = np.asarray(a), np.asarray(b)
    if not is_inexact(a.dtype):
        return np.zeros(a.shape, dtypes.float0)
    return ((to_float64(a) - to_float64(b)) / (2 * step)).astype(a.dtype)


def inner_product(xs: PyTree, ys: PyTree) -> float:
    """Real part of the sum of products of leaves; integers are ignored."""
    total = 0.0
    for x, y in zip(_leaves(xs), _leaves(ys), strict=True):
        x, y = np.asarray(x), np.asarray(y)
        if is_inexact(x.dtype) and is_inexact(y.dtype):
            total += float(np.sum(to_float64(x) * to_float64(y)).real)
    return total


def is_inexact(dtype: DTypeLike) -> bool:
    """Return True if values of a dtype can be differentiated."""
    return bool(dtypes.issubdtype(dtype, np.inexact))


def random_tangent(x: ArrayLike, rng: np.random.Generator) -> Any:
    """A random tangent (or cotangent) for a value.

    Args:
      x: an array or a number.
      rng: a NumPy generator.

    Returns:
      A NumPy array of the shape and dtype of the tangent: normal numbers, or ``float0`` for
      integers.

    Checks of derivatives draw directions by it.

    >>> random_tangent(np.ones((2, 3), np.float32), np.random.default_rng(0)).shape
    (2, 3)
    """
    aval = typeof(x)
    if not is_inexact(aval.dtype):
        return np.zeros(aval.shape, dtypes.float0)
    drawn: Any = rng.standard_normal(aval.shape)
    if dtypes.issubdtype(aval.dtype, np.complexfloating):
        drawn = drawn + 1j * rng.standard_normal(aval.shape)
    return np.asarray(drawn).astype(aval.dtype)


def _random_tangents(tree: Any, rng: np.random.Generator) -> Any:
    return _map(lambda x: random_tangent(x, rng), tree)


def _inexact(cts: Any, args: Any) -> list:
    """The cotangents of differentiable leaves."""
    pairs = zip(_leaves(cts), _leaves(args), strict=True)
    return [c for c, x in pairs if is_inexact(typeof(x).dtype)]


def _narrowest(tree: Any) -> Any:
    """The least precise inexact dtype among leaves."""
    leaf_dtypes = [typeof(x).dtype for x in _leaves(tree)]
    return max(
        (d for d in leaf_dtypes if is_inexact(d)),
        key=gradient_tolerance,
        default=np.dtype(np.float32),
    )


def _limit(tolerance: Any, x: Any, usual: float) -> float:
    """A tolerance for values of the dtype of ``x``."""
    if isinstance(tolerance, Mapping):
        dtype = np.asarray(x).dtype
        tolerance = next((v for d, v in tolerance.items() if np.dtype(d) == dtype), None)
    return usual if tolerance is None else tolerance


def _compare(actual: Any, expected: Any, atol, rtol, what: str, like: Any) -> None:
    usual = gradient_tolerance(_narrowest(like))
    for a, b in zip(_leaves(actual), _leaves(expected), strict=True):
        if np.asarray(b).dtype == dtypes.float0:
            continue
        relative, absolute = (_limit(t, a, usual) for t in (rtol, atol))
        size = np.abs(to_float64(b))
        scale = max(1.0, float(np.nanmax(size))) if size.size else 1.0
        text = mismatch(a, b, (absolute + relative * scale) / scale)
        if text is not None:
            raise AssertionError(f"{what.removeprefix(': ')}: {text}")
