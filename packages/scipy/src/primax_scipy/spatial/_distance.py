"""Distances between the rows of matrices."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

import primax_numpy as pnp
from primax_core import lax, vmap
from primax_core.extend import Array, typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import check_arrays, compiled

from .._functions import promoted_floats
from ..special import rel_entr

# Each metric is a function of arrays of pairs of rows, ``u`` and ``v``, that broadcast together.


def _root(x: Any) -> Any:
    """Square root whose derivative at 0 is 0."""
    positive = x > 0
    root = pnp.sqrt(pnp.where(positive, x, pnp.ones_like(x)))
    return pnp.where(positive, root, pnp.zeros_like(x))


def _quotient(a: Any, b: Any, at_zero: float = 0.0) -> Any:
    """``a / b``, with a value where ``b`` is 0."""
    zero = b == 0
    return pnp.where(zero, pnp.full_like(a, at_zero), a / pnp.where(zero, pnp.ones_like(b), b))


def _sum(x: Any, w: Any) -> Any:
    return pnp.sum(x if w is None else x * w, -1)


def _sqeuclidean(u: Any, v: Any, w: Any) -> Any:
    return _sum(lax.square(u - v), w)


def _minkowski(u: Any, v: Any, w: Any, p: float) -> Any:
    gaps = pnp.abs(u - v)
    if p == math.inf:
        return pnp.max(gaps, -1)
    positive = gaps > 0
    powers = pnp.where(positive, pnp.power(pnp.where(positive, gaps, 1.0), p), 0.0)
    total = _sum(powers, w)
    some = total > 0
    return pnp.where(some, pnp.power(pnp.where(some, total, 1.0), 1 / p), 0.0)


def _cosine(u: Any, v: Any, w: Any) -> Any:
    norms = pnp.sqrt(_sum(lax.square(u), w)) * pnp.sqrt(_sum(lax.square(v), w))
    return 1 - _sum(u * v, w) / norms


def _correlation(u: Any, v: Any, w: Any) -> Any:
    weight = None if w is None else w / pnp.sum(w)

    def centred(x: Any) -> Any:
        mean = pnp.mean(x, -1) if weight is None else pnp.sum(x * weight, -1)
        return x - mean[..., None]

    return _cosine(centred(u), centred(v), w)


def _canberra(u: Any, v: Any, w: Any) -> Any:
    return _sum(_quotient(pnp.abs(u - v), pnp.abs(u) + pnp.abs(v)), w)


def _bray_curtis(u: Any, v: Any, w: Any) -> Any:
    return _sum(pnp.abs(u - v), w) / _sum(pnp.abs(u + v), w)


def _jensen_shannon(u: Any, v: Any, w: Any) -> Any:
    p, q = (x / pnp.sum(x, -1, keepdims=True) for x in (u, v))
    p, q = pnp.broadcast_arrays(p, q)
    middle = 0.5 * (p + q)
    return _root(0.5 * pnp.sum(rel_entr(p, middle) + rel_entr(q, middle), -1))


def _hamming(u: Any, v: Any, w: Any) -> Any:
    unequal = (u != v).astype(u.dtype)
    return pnp.mean(unequal, -1) if w is None else pnp.sum(unequal * w, -1) / pnp.sum(w)


def _jaccard(u: Any, v: Any, w: Any) -> Any:
    either = (u != 0) | (v != 0)
    unequal = ((u != v) & either).astype(u.dtype)
    return _quotient(_sum(unequal, w), _sum(either.astype(u.dtype), w))


def _table(u: Any, v: Any, w: Any) -> tuple[Any, Any, Any]:
    """Weights of the features that both rows have, of those that one has, and of neither."""
    a, b = u != 0, v != 0
    both, one, none = a & b, a ^ b, ~(a | b)
    total = tuple(_sum(x.astype(u.dtype), w) for x in (both, one, none))
    return total[0], total[1], total[2]


def _dice(u: Any, v: Any, w: Any) -> Any:
    both, one, _ = _table(u, v, w)
    return one / (2 * both + one)


def _rogers_tanimoto(u: Any, v: Any, w: Any) -> Any:
    both, one, none = _table(u, v, w)
    return 2 * one / (both + none + 2 * one)


def _russell_rao(u: Any, v: Any, w: Any) -> Any:
    both, one, none = _table(u, v, w)
    return (one + none) / (both + one + none)


def _sokal_sneath(u: Any, v: Any, w: Any) -> Any:
    both, one, _ = _table(u, v, w)
    return 2 * one / (both + 2 * one)


def _yule(u: Any, v: Any, w: Any) -> Any:
    both, _, none = _table(u, v, w)
    left = _sum(((u != 0) & (v == 0)).astype(u.dtype), w)
    right = _sum(((u == 0) & (v != 0)).astype(u.dtype), w)
    return _quotient(2 * left * right, both * none + left * right)


_METRICS: Final[dict[str, Callable[..., Any]]] = {
    "braycurtis": _bray_curtis,
    "canberra": _canberra,
    "chebyshev": lambda u, v, w: pnp.max(pnp.abs(u - v), -1),
    "cityblock": lambda u, v, w: _sum(pnp.abs(u - v), w),
    "correlation": _correlation,
    "cosine": _cosine,
    "dice": _dice,
    "euclidean": lambda u, v, w: _root(_sqeuclidean(u, v, w)),
    "hamming": _hamming,
    "jaccard": _jaccard,
    "jensenshannon": _jensen_shannon,
    "rogerstanimoto": _rogers_tanimoto,
    "russellrao": _russell_rao,
    "sokalsneath": _sokal_sneath,
    "sqeuclidean": _sqeuclidean,
    "yule": _yule,
}
_FURTHER: Final = ("mahalanobis", "minkowski", "seuclidean")
_UNWEIGHTED: Final = ("chebyshev", "jensenshannon", "mahalanobis", "seuclidean")


def _distances(u: Any, v: Any, extra: Any, metric: str, p: Any) -> Any:
    """Distances of pairs of rows."""
    if metric == "seuclidean":
        return _root(pnp.sum(lax.square(u - v) / extra, -1))
    if metric == "mahalanobis":
        gaps = u - v
        return _root(pnp.sum(pnp.matmul(gaps, extra) * gaps, -1))
    if metric == "minkowski":
        return _minkowski(u, v, extra, p)
    return _METRICS[metric](u, v, extra)


@compiled("metric", "p", name="cdist")
def _cdist(a, b, extra, *, metric, p):
    return _distances(a[:, None, :], b[None, :, :], extra, metric, p)


@compiled("metric", "p", name="pdist")
def _pdist(x, extra, *, metric, p):
    first, second = np.triu_indices(x.shape[0], 1)
    return _distances(x[first], x[second], extra, metric, p)


def _matrices(name: str, *xs: Any) -> list[Any]:
    check_arrays(name, *xs)
    for x in xs:
        if typeof(x).ndim != 2:
            raise ValueError(f"{name}: an array of shape {typeof(x).shape} is not a matrix.")
    dtype = typeof(promoted_floats(name, *[pnp.ravel(x)[:0] for x in xs])[0]).dtype
    if np.dtype(dtype).kind == "c":
        raise ValueError(f"{name}: complex matrices are not supported.")
    out = [lax.convert_element_type(x, dtype) for x in xs]
    if len({x.shape[1] for x in out}) > 1:
        raise ValueError(
            f"{name}: matrices of shapes {', '.join(str(x.shape) for x in out)} must have the same "
            "number of columns."
        )
    return out


def _extra(name: str, metric: Any, rows: Any, p: Any, w: Any, V: Any, VI: Any) -> Any:
    """The array argument of a metric: weights, variances, or an inverse covariance."""
    if metric not in _METRICS and metric not in _FURTHER:
        known = ", ".join(sorted([*_METRICS, *_FURTHER]))
        raise ValueError(f"{name}: unknown metric {metric!r}: pass a function or one of {known}.")
    if metric == "minkowski" and not p > 0:
        raise ValueError(f"{name}: p={p} is not positive.")
    options = {"w": (w, None), "V": (V, "seuclidean"), "VI": (VI, "mahalanobis")}
    for option, (value, owner) in options.items():
        wrong = metric in _UNWEIGHTED if owner is None else metric != owner
        if value is not None and wrong:
            raise ValueError(f"{name}: the metric {metric!r} does not have the argument {option}.")
    dtype, n = rows.dtype, rows.shape[1]
    if metric == "seuclidean":
        value = pnp.var(rows, 0, ddof=1) if V is None else V
    elif metric == "mahalanobis":
        value = pnp.linalg.inv(pnp.atleast_2d(pnp.cov(rows.T))) if VI is None else VI
    elif w is None:
        return None
    else:
        value = w
    value = lax.convert_element_type(pnp.asarray(value), dtype)
    expected = (n, n) if metric == "mahalanobis" else (n,)
    if value.shape != expected:
        option = {"seuclidean": "V", "mahalanobis": "VI"}.get(metric, "w")
        raise ValueError(f"{name}: {option} has shape {value.shape}; rows need {expected}.")
    return value if metric == "mahalanobis" else value[None, None, :]


def cdist(
    XA: ArrayLike,
    XB: ArrayLike,
    metric: str | Callable[..., Any] = "euclidean",
    *,
    p: float = 2.0,
    w: ArrayLike | None = None,
    V: ArrayLike | None = None,
    VI: ArrayLike | None = None,
) -> Array:
    """Distances between the rows of two matrices.

    Args:
      XA: ``float[m, n]``.
      XB: ``float[k, n]``.
      metric: a function of two vectors, or ``"braycurtis"``, ``"canberra"``, ``"chebyshev"``,
        ``"cityblock"``, ``"correlation"``, ``"cosine"``, ``"dice"``, ``"euclidean"``,
        ``"hamming"``, ``"jaccard"``, ``"jensenshannon"``, ``"mahalanobis"``, ``"minkowski"``,
        ``"rogerstanimoto"``, ``"russellrao"``, ``"seuclidean"``, ``"sokalsneath"``,
        ``"sqeuclidean"`` or ``"yule"``. Metrics of sets take numbers other than 0 for True.
      p: the exponent of ``"minkowski"``, a number.
      w: ``float[n]``, weights of the columns.
      V: ``float[n]``, variances for ``"seuclidean"``; by default those of all rows.
      VI: ``float[n, n]``, the inverse covariance for ``"mahalanobis"``; by default of all rows.

    Returns:
      ``float[m, k]``. The derivative of a distance between equal rows is 0.

    Raises:
      ValueError: for an unknown metric, an argument of another metric, or bad shapes.

    >>> import numpy as np
    >>> print(cdist(np.float32([[0, 0]]), np.float32([[3, 4], [0, 1]])))
    [[5. 1.]]
    """
    a, b = _matrices("cdist", XA, XB)
    if callable(metric):
        return vmap(lambda u: vmap(lambda v: metric(u, v))(b))(a)
    extra = _extra("cdist", metric, pnp.concatenate([a, b]), p, w, V, VI)
    out: Array = _cdist(a, b, extra, metric=metric, p=p)
    return out


def pdist(
    X: ArrayLike,
    metric: str | Callable[..., Any] = "euclidean",
    *,
    p: float = 2.0,
    w: ArrayLike | None = None,
    V: ArrayLike | None = None,
    VI: ArrayLike | None = None,
) -> Array:
    """Distances between the rows of a matrix, each pair once.

    Args:
      X: ``float[m, n]``.
      metric, p, w, V, VI: as for :func:`cdist`.

    Returns:
      ``float[m (m - 1) / 2]``, the upper triangle of the matrix of distances, row by row;
      :func:`squareform` makes that matrix.

    >>> import numpy as np
    >>> print(pdist(np.float32([[0], [1], [3]])))
    [1. 3. 2.]
    """
    (x,) = _matrices("pdist", X)
    if callable(metric):
        first, second = np.triu_indices(x.shape[0], 1)
        return vmap(metric)(x[first], x[second])
    extra = _extra("pdist", metric, x, p, w, V, VI)
    if extra is not None and metric != "mahalanobis":
        extra = extra[0]
    out: Array = _pdist(x, extra, metric=metric, p=p)
    return out


def squareform(X: ArrayLike, force: str = "no", checks: bool = True) -> Array:
    """Conversion between a vector of distances and their symmetric matrix.

    Args:
      X: ``[n (n - 1) / 2]`` or ``[n, n]``.
      force: ``"tovector"`` or ``"tomatrix"``, to require one conversion.
      checks: accepted for compatibility; ignored, because symmetry is a property of values.

    Raises:
      ValueError: for other shapes, or another conversion than the required one.

    >>> import numpy as np
    >>> print(squareform(np.float32([1, 3, 2])))
    [[0. 1. 3.]
     [1. 0. 2.]
     [3. 2. 0.]]
    """
    check_arrays("squareform", X)
    x = pnp.asarray(X)
    required = {"no": (1, 2), "tomatrix": (1,), "tovector": (2,)}.get(force.lower())
    if required is None:
        raise ValueError(f"squareform: unknown force {force!r}: pass 'tovector' or 'tomatrix'.")
    if x.ndim not in required:
        raise ValueError(f"squareform: an array of shape {x.shape} with force={force!r}.")
    if x.ndim == 2:
        if x.shape[0] != x.shape[1]:
            raise ValueError(f"squareform: a matrix of shape {x.shape} is not square.")
        return x[np.triu_indices(x.shape[0], 1)]
    n = (1 + math.isqrt(1 + 8 * x.shape[0])) // 2
    if n * (n - 1) // 2 != x.shape[0]:
        raise ValueError(
            f"squareform: {x.shape[0]} is not the number of pairs of a set: n (n - 1) / 2."
        )
    first, second = np.triu_indices(n, 1)
    empty = pnp.zeros((n, n), x.dtype)
    return empty.at[first, second].set(x).at[second, first].set(x)
