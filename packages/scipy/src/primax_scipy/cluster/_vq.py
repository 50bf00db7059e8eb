"""Vector quantization, and k-means clustering by Lloyd's iteration."""

from __future__ import annotations

from typing import Any

import numpy as np

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import Array, typeof
from primax_core.typing import ArrayLike
from primax_numpy import random
from primax_numpy.declaring import check_arrays, compiled

from .._functions import promoted_floats


def _checked(name: str, obs: Any, code_book: Any) -> None:
    a, b = typeof(obs).shape, typeof(code_book).shape
    if len(a) != len(b):
        raise ValueError(
            f"{name}: observations of shape {a} and code book of shape {b} must have the same rank."
        )
    if len(a) not in (1, 2):
        raise ValueError(f"{name}: arrays of {len(a)} dimensions are not supported: pass 1 or 2.")
    if len(a) == 2 and a[1] != b[1]:
        raise ValueError(
            f"{name}: observations of shape {a} and code book of shape {b} must have rows of one "
            "length."
        )


def _matrix(x: Any) -> Any:
    return x if x.ndim == 2 else x[:, None]


def _nearest(obs: Any, code_book: Any) -> tuple[Any, Any]:
    gaps = obs[:, None, :] - code_book[None, :, :]
    squares = pnp.sum(lax.square(gaps), -1)
    code = pnp.argmin(squares, -1)
    return code, pnp.take_along_axis(squares, code[:, None], 1)[:, 0]


@compiled(name="vq")
def _vq(obs, code_book):
    code, square = _nearest(*map(_matrix, promoted_floats_of("vq", obs, code_book)))
    positive = square > 0
    root = lax.sqrt(pnp.where(positive, square, pnp.ones_like(square)))
    return code.astype(np.int32), pnp.where(positive, root, pnp.zeros_like(root))


def promoted_floats_of(name: str, *xs: Any) -> list[Any]:
    """Operands promoted to one floating-point dtype, with unchanged shapes."""
    dtype = typeof(promoted_floats(name, *[pnp.ravel(x)[:0] for x in xs])[0]).dtype
    return [lax.convert_element_type(x, dtype) for x in xs]


def vq(obs: ArrayLike, code_book: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """The nearest code of each observation, and its distance.

    Args:
      obs: ``float[m, n]``, or ``float[m]`` for ``n = 1``.
      code_book: ``float[k, n]``, or ``float[k]``.
      check_finite: accepted for compatibility; ignored.

    Returns:
      ``int32[m]``, the rows of the code book, and ``float[m]``, Euclidean distances, whose
      derivative is 0 where the distance is.

    Raises:
      ValueError: if shapes do not match.

    >>> import numpy as np
    >>> code, distance = vq(np.float32([[0, 1], [5, 5]]), np.float32([[0, 0], [5, 5]]))
    >>> print(code, distance)
    [0 1] [1. 0.]
    """
    check_arrays("vq", obs, code_book)
    _checked("vq", obs, code_book)
    code, distance = _vq(obs, code_book)
    return code, distance


@compiled(name="whiten")
def _whiten(obs):
    (obs,) = promoted_floats("whiten", obs)
    deviation = pnp.std(obs, 0, keepdims=True)
    return obs / pnp.where(deviation > 0, deviation, pnp.ones_like(deviation))


def whiten(obs: ArrayLike, check_finite: bool = True) -> Array:
    """Features divided by their standard deviations; constant features are unchanged.

    Args:
      obs: ``float[m, n]``, observations in rows.
      check_finite: accepted for compatibility; ignored.

    >>> import numpy as np
    >>> print(whiten(np.float32([[0, 1], [4, 1]])))
    [[0. 1.]
     [2. 1.]]
    """
    check_arrays("whiten", obs)
    out: Array = _whiten(obs)
    return out


def _means(obs: Any, code: Any, k: int) -> tuple[Any, Any]:
    """Sums of the observations of each code, and their number."""
    chosen = (code[:, None] == pnp.arange(k)[None, :]).astype(obs.dtype)
    return pnp.matmul(chosen.T, obs), pnp.sum(chosen, 0)


def _lloyd(obs: Any, centres: Any) -> Any:
    """One iteration; a code without observations is unchanged."""
    code, _ = _nearest(obs, centres)
    sums, counts = _means(obs, code, centres.shape[0])
    some = counts[:, None] > 0
    safe = pnp.where(some, counts[:, None], pnp.ones_like(counts[:, None]))
    return pnp.where(some, sums / safe, centres)


def _drawn(key: Any, obs: Any, k: int) -> Any:
    return obs[random.choice(key, obs.shape[0], (k,), replace=False)]


def _plus_plus(key: Any, obs: Any, k: int) -> Any:
    """Centres drawn with the squared distances as weights: D. Arthur and S. Vassilvitskii,
    "k-means++: the advantages of careful seeding", 2007."""
    keys = random.split(key, k)
    first = obs[random.randint(keys[0], (), 0, obs.shape[0])]
    centres = pnp.broadcast_to(first, (k, obs.shape[1]))

    def add(i: Any, centres: Any) -> Any:
        # Later rows repeat the first centre, so they do not change the nearest distance.
        _, square = _nearest(obs, centres)
        positive = square > 0
        logs = pnp.where(
            positive, lax.log(pnp.where(positive, square, pnp.ones_like(square))), -np.inf
        )
        logs = pnp.where(pnp.any(positive), logs, pnp.zeros_like(logs))
        return centres.at[i].set(obs[random.categorical(keys[i], logs)])

    return lax.fori_loop(1, k, add, centres)


@compiled("k", "iter", "thresh", name="kmeans")
def _kmeans(key, obs, centres, *, k, iter, thresh):
    def once(start: Any) -> tuple[Any, Any]:
        def step(state: Any) -> Any:
            centres, _, before = state
            following = _lloyd(obs, centres)
            distortion = pnp.mean(lax.sqrt(_nearest(obs, centres)[1]))
            return following, before - distortion, distortion

        def unfinished(state: Any) -> Any:
            return state[1] > thresh

        far = pnp.full((), np.inf, obs.dtype)
        centres = lax.while_loop(unfinished, step, (start, far, far))[0]
        return centres, pnp.mean(lax.sqrt(_nearest(obs, centres)[1]))

    if k is None:
        return once(centres)

    def attempt(carry: Any, key: Any) -> Any:
        centres, distortion = once(_drawn(key, obs, k))
        better = distortion < carry[1]
        return (pnp.where(better, centres, carry[0]), lax.min(distortion, carry[1])), None

    start = (pnp.zeros((k, obs.shape[1]), obs.dtype), pnp.full((), np.inf, obs.dtype))
    return lax.scan(attempt, start, random.split(key, iter))[0]


def _observations(name: str, obs: Any) -> Any:
    check_arrays(name, obs)
    if typeof(obs).ndim not in (1, 2):
        raise ValueError(
            f"{name}: observations of shape {typeof(obs).shape} are not supported: pass a matrix, "
            "or a vector of numbers."
        )
    (obs,) = promoted_floats(name, obs)
    return obs


def _count(name: str, k: Any, m: int) -> int | None:
    """The number of clusters, or None if centres were passed."""
    if pnp.ndim(k):
        return None
    k = int(k)
    if not 1 <= k <= m:
        raise ValueError(
            f"{name}: k={k} clusters of {m} observations: pass a number from 1 to {m}."
        )
    return k


def kmeans(
    obs: ArrayLike,
    k_or_guess: ArrayLike,
    iter: int = 20,
    thresh: float = 1e-5,
    check_finite: bool = True,
    *,
    key: ArrayLike | None = None,
) -> tuple[Array, Array]:
    """Centres of clusters, by Lloyd's iteration until the distortion changes by ``thresh``.

    Args:
      obs: ``float[m, n]``, or ``float[m]``.
      k_or_guess: the number of clusters, or their first centres ``float[k, n]``.
      iter: the number of attempts with other first centres, of which the best is returned.
      thresh: the change of the distortion at which an attempt ends.
      check_finite: accepted for compatibility; ignored.
      key: a random key, needed for a number of clusters: first centres are drawn.

    Returns:
      Centres ``float[k, n]`` (``float[k]`` of a vector), and the distortion, the mean distance to
      the nearest centre. A cluster that loses all observations keeps its centre, because shapes do
      not depend on values; SciPy removes it.

    Raises:
      ValueError: without a key, for a bad number of clusters or attempts, or for bad shapes.

    >>> import numpy as np
    >>> centres, distortion = kmeans(np.float32([0, 1, 10, 11]), np.float32([0, 10]))
    >>> print(centres, distortion)
    [ 0.5 10.5] 0.5
    """
    obs = _observations("kmeans", obs)
    k = _count("kmeans", k_or_guess, obs.shape[0])
    if iter < 1:
        raise ValueError(f"kmeans: iter={iter} attempts: pass at least 1.")
    guess = None
    if k is None:
        _checked("kmeans", obs, k_or_guess)
        guess = _matrix(lax.convert_element_type(pnp.asarray(k_or_guess), obs.dtype))
    elif key is None:
        raise ValueError("kmeans: first centres are drawn: pass a random key, key=random.key(0).")
    centres, distortion = _kmeans(key, _matrix(obs), guess, k=k, iter=iter, thresh=thresh)
    return (centres[:, 0] if obs.ndim == 1 else centres), distortion


@compiled("k", "iter", "minit", name="kmeans2")
def _kmeans2(key, obs, centres, *, k, iter, minit):
    if minit == "++":
        centres = _plus_plus(key, obs, k)
    elif minit == "points":
        centres = _drawn(key, obs, k)
    elif minit == "random":
        mean = pnp.mean(obs, 0)
        spread = pnp.atleast_2d(pnp.cov(obs.T))
        values, vectors = pnp.linalg.eigh(spread)
        root = vectors * pnp.sqrt(pnp.maximum(values, pnp.zeros_like(values)))[None, :]
        noise = random.normal(key, (k, obs.shape[1]), obs.dtype)
        centres = mean[None, :] + pnp.matmul(noise, root.T)
    centres = lax.fori_loop(0, iter, lambda _, c: _lloyd(obs, c), centres)
    return centres, _nearest(obs, centres)[0].astype(np.int32)


_STARTS = ("random", "points", "++", "matrix")


def kmeans2(
    data: ArrayLike,
    k: ArrayLike,
    iter: int = 10,
    thresh: float = 1e-5,
    minit: str = "random",
    missing: str = "warn",
    check_finite: bool = True,
    *,
    key: ArrayLike | None = None,
) -> tuple[Array, Array]:
    """Centres of clusters and the cluster of each observation, after ``iter`` iterations.

    Args:
      data: ``float[m, n]``, or ``float[m]``.
      k: the number of clusters, or their first centres.
      iter: the number of iterations.
      thresh, check_finite: accepted for compatibility; ignored, as SciPy does ``thresh``.
      minit: the first centres: ``"random"``, normal with the mean and covariance of the data;
        ``"points"``, observations; ``"++"``, distant observations; ``"matrix"``, the array ``k``.
      missing: ``"warn"``. A cluster that loses all observations keeps its centre.
      key: a random key, needed unless centres are passed.

    Returns:
      Centres ``float[k, n]`` (``float[k]`` of a vector) and ``int32[m]``.

    Raises:
      ValueError: without a key, or for bad arguments.
      NotImplementedError: for ``missing="raise"``.

    >>> import numpy as np
    >>> centres, label = kmeans2(np.float32([0, 1, 10, 11]), np.float32([0, 10]))
    >>> print(centres, label)
    [ 0.5 10.5] [0 0 1 1]
    """
    obs = _observations("kmeans2", data)
    if minit not in _STARTS:
        raise ValueError(f"kmeans2: unknown minit {minit!r}: pass one of {', '.join(_STARTS)}.")
    if iter < 1:
        raise ValueError(f"kmeans2: iter={iter} iterations: pass at least 1.")
    if missing == "raise":
        raise NotImplementedError(
            "kmeans2: missing='raise' is not supported, because a compiled function cannot raise "
            "for its values: compare the labels with the clusters after the call."
        )
    if missing != "warn":
        raise ValueError(f"kmeans2: unknown missing {missing!r}: pass 'warn'.")
    count = _count("kmeans2", k, obs.shape[0])
    guess = None
    if count is None:
        _checked("kmeans2", obs, k)
        guess = _matrix(lax.convert_element_type(pnp.asarray(k), obs.dtype))
        minit = "matrix"
    elif minit == "matrix":
        raise ValueError("kmeans2: minit='matrix' needs an array of centres k.")
    elif key is None:
        raise ValueError("kmeans2: first centres are drawn: pass a random key, key=random.key(0).")
    centres, label = _kmeans2(key, _matrix(obs), guess, k=count, iter=iter, minit=minit)
    return (centres[:, 0] if obs.ndim == 1 else centres), label
