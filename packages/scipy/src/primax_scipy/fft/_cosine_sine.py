"""Cosine and sine transforms: arguments, normalization, inverses."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from primax_core.extend import Array, typeof
from primax_core.typing import ArrayLike, ShapeLike
from primax_numpy.declaring import axes_of, check_arrays, one_axis

from ._real import transformed

_NORMS = (None, "backward", "ortho", "forward")
_INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}
_OPPOSITE = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def _apply(
    name: str, x: Any, type: Any, sizes: Any, axes: Any, norm: Any, orthogonalize: Any
) -> Array:
    sine, back = name.startswith(("dst", "idst")), name.startswith("i")
    if type not in (1, 2, 3, 4):
        raise ValueError(f"{name}: type must be 1, 2, 3 or 4, got {type!r}")
    if norm not in _NORMS:
        raise ValueError(
            f"{name}: norm must be None, 'backward', 'ortho' or 'forward', got {norm!r}"
        )
    shape = typeof(x).shape
    lengths = [shape[a] for a in axes] if sizes is None else [operator.index(n) for n in sizes]
    if len(lengths) != len(axes):
        raise ValueError(f"{name}: {len(lengths)} sizes for {len(axes)} axes")
    least = 2 if type == 1 and not sine else 1
    if any(n < least for n in lengths):
        raise ValueError(f"{name}: sizes must be at least {least} for type {type}, got {lengths}")
    norm = norm or "backward"
    orthogonal = norm == "ortho" if orthogonalize is None else bool(orthogonalize)
    out: Array = transformed(
        x, axes=tuple(axes), sizes=tuple(lengths), kind=_INVERSE[type] if back else int(type),
        sine=sine, norm=_OPPOSITE[norm] if back else norm, orthogonal=orthogonal,
    )  # fmt: skip
    return out


def _single(
    name: str, x: Any, type: Any, n: int | None, axis: int, norm: Any, orthogonalize: Any
) -> Array:
    check_arrays(name, x)
    position = one_axis(axis, typeof(x).ndim)
    return _apply(
        name, x, type, None if n is None else (n,), (position,), norm, orthogonalize
    )  # fmt: skip


def _several(
    name: str, x: Any, type: Any, s: Any, axes: Any, norm: Any, orthogonalize: Any
) -> Array:
    check_arrays(name, x)
    ndim = typeof(x).ndim
    s = None if s is None else _tuple(s)
    if axes is None and s is not None:
        axes = range(ndim - len(s), ndim)
    positions = axes_of(None if axes is None else _tuple(axes), ndim)
    return _apply(name, x, type, s, positions, norm, orthogonalize)


def _tuple(values: Any) -> tuple[int, ...]:
    return tuple(values) if hasattr(values, "__iter__") else (values,)


def dct(
    x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None, *,
    orthogonalize: bool | None = None,
) -> Array:  # fmt: skip
    """Discrete cosine transform along an axis.

    With ``N`` elements ``x[j]``, element ``k`` is the sum over ``j`` of

    - type 1: ``2 x[j] cos(π j k / (N - 1))``, with half the weight for the first and last element;
    - type 2: ``2 x[j] cos(π k (2 j + 1) / (2 N))``;
    - type 3: ``2 x[j] cos(π j (2 k + 1) / (2 N))``, with half the weight for the first element;
    - type 4: ``2 x[j] cos(π (2 j + 1) (2 k + 1) / (4 N))``.

    Args:
      x: numbers; integers and narrow floats become ``float32`` or wider. The parts of complex
        numbers are transformed separately.
      type: 1, 2, 3 or 4.
      n: the length to which the axis is truncated or padded with zeros.
      axis: the axis.
      norm: None or ``"backward"`` for the sums above; ``"forward"`` divides by the period of the
        extension, ``"ortho"`` by its root.
      orthogonalize: change the weights of the edges so that the matrix is orthogonal up to a
        factor; by default only if ``norm`` is ``"ortho"``.

    Returns:
      An array of the shape of ``x``, with ``n`` elements along the axis.

    Raises:
      ValueError: if the type or norm is unknown, the axis does not exist, or it is too short.
      TypeError: if ``x`` is not an array or a number.

    The transform is linear, so its derivative is the transform of the tangent.

    >>> import numpy as np
    >>> dct(np.float32([1, 1])).tolist()
    [4.0, 0.0]
    """
    return _single("dct", x, type, n, axis, norm, orthogonalize)


def idct(
    x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None, *,
    orthogonalize: bool | None = None,
) -> Array:  # fmt: skip
    """Inverse of the discrete cosine transform `dct` along an axis.

    Args:
      x: numbers; integers and narrow floats become ``float32`` or wider. The parts of complex
        numbers are transformed separately.
      type: 1, 2, 3 or 4, of the transform that is inverted.
      n: the length to which the axis is truncated or padded with zeros.
      axis: the axis, the last by default.
      norm: the norm of the transform that is inverted: None or ``"backward"``, ``"forward"`` or
        ``"ortho"``.
      orthogonalize: change the weights of the edges so that the matrix is orthogonal up to a
        factor; by default only if ``norm`` is ``"ortho"``.

    Returns:
      An array of the shape of ``x``, with ``n`` elements along the axis.

    Raises:
      ValueError: if the type or norm is unknown, the axis does not exist, or it is too short.
      TypeError: if ``x`` is not an array or a number.

    The transform is linear, so its derivative is the transform of the tangent.

    >>> import numpy as np
    >>> idct(np.float32([4, 0])).tolist()
    [1.0, 1.0]
    >>> np.float64(idct(dct(np.float32([1, 2, 4]), 4), 4)).round(4).tolist()
    [1.0, 2.0, 4.0]
    """
    return _single("idct", x, type, n, axis, norm, orthogonalize)


def dst(
    x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None, *,
    orthogonalize: bool | None = None,
) -> Array:  # fmt: skip
    """Discrete sine transform along an axis.

    With ``N`` elements ``x[j]``, element ``k`` is the sum over ``j`` of

    - type 1: ``2 x[j] sin(π (j + 1) (k + 1) / (N + 1))``;
    - type 2: ``2 x[j] sin(π (k + 1) (2 j + 1) / (2 N))``;
    - type 3: ``2 x[j] sin(π (j + 1) (2 k + 1) / (2 N))``, half the weight for the last element;
    - type 4: ``2 x[j] sin(π (2 j + 1) (2 k + 1) / (4 N))``.

    The arguments are those of `dct`.

    Args:
      x: numbers; integers and narrow floats become ``float32`` or wider. The parts of complex
        numbers are transformed separately.
      type: 1, 2, 3 or 4.
      n: the length to which the axis is truncated or padded with zeros.
      axis: the axis, the last by default.
      norm: None or ``"backward"`` for unscaled sums, ``"forward"`` or ``"ortho"``; see `dct`.
      orthogonalize: change the weights of the edges so that the matrix is orthogonal up to a
        factor; by default only if ``norm`` is ``"ortho"``.

    Returns:
      An array of the shape of ``x``, with ``n`` elements along the axis.

    Raises:
      ValueError: if the type or norm is unknown, the axis does not exist, or it is too short.
      TypeError: if ``x`` is not an array or a number.

    The transform is linear, so its derivative is the transform of the tangent.

    >>> import numpy as np
    >>> dst(np.float32([1, -1])).round(4).tolist()
    [0.0, 4.0]
    """
    return _single("dst", x, type, n, axis, norm, orthogonalize)


def idst(
    x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None, *,
    orthogonalize: bool | None = None,
) -> Array:  # fmt: skip
    """Inverse of the discrete sine transform `dst` along an axis.

    Args:
      x: numbers; integers and narrow floats become ``float32`` or wider. The parts of complex
        numbers are transformed separately.
      type: 1, 2, 3 or 4, of the transform that is inverted.
      n: the length to which the axis is truncated or padded with zeros.
      axis: the axis, the last by default.
      norm: the norm of the transform that is inverted: None or ``"backward"``, ``"forward"`` or
        ``"ortho"``.
      orthogonalize: change the weights of the edges so that the matrix is orthogonal up to a
        factor; by default only if ``norm`` is ``"ortho"``.

    Returns:
      An array of the shape of ``x``, with ``n`` elements along the axis.

    Raises:
      ValueError: if the type or norm is unknown, the axis does not exist, or it is too short.
      TypeError: if ``x`` is not an array or a number.

    The transform is linear, so its derivative is the transform of the tangent.

    >>> import numpy as np
    >>> np.float64(idst(dst(np.float32([1, 2, 4]), 1), 1)).round(4).tolist()
    [1.0, 2.0, 4.0]
    """
    return _single("idst", x, type, n, axis, norm, orthogonalize)


def dctn(
    x: ArrayLike,
    type: int = 2,
    s: ShapeLike | None = None,
    axes: int | Sequence[int] | None = None,
    norm: str | None = None,
    *,
    orthogonalize: bool | None = None,
) -> Array:
    """Discrete cosine transforms along several axes, one after the other.

    Args:
      x: numbers; integers and narrow floats become ``float32`` or wider. The parts of complex
        numbers are transformed separately.
      type: 1, 2, 3 or 4.
      s: the lengths to which the axes are truncated or padded with zeros.
      axes: the axes, by default the last ``len(s)`` ones, or all.
      norm: None or ``"backward"`` for unscaled sums, ``"forward"`` or ``"ortho"``; see `dct`.
      orthogonalize: change the weights of the edges so that the matrix is orthogonal up to a
        factor; by default only if ``norm`` is ``"ortho"``.

    Returns:
      An array of the shape of ``x``, with the sizes ``s`` along the axes.

    Raises:
      ValueError: if the type or norm is unknown, an axis does not exist or is too short, or the
        sizes do not match the axes.
      TypeError: if ``x`` is not an array or a number.

    The transform is linear, so its derivative is the transform of the tangent.

    >>> import numpy as np
    >>> dctn(np.float32([[1, 1], [1, 1]])).tolist()
    [[16.0, 0.0], [0.0, 0.0]]
    """
    return _several("dctn", x, type, s, axes, norm, orthogonalize)


def idctn(
    x: ArrayLike,
    type: int = 2,
    s: ShapeLike | None = None,
    axes: int | Sequence[int] | None = None,
    norm: str | None = None,
    *,
    orthogonalize: bool | None = None,
) -> Array:
    """Inverse of the discrete cosine transforms `dctn` along several axes.

    Args:
      x: numbers; integers and narrow floats become ``float32`` or wider. The parts of complex
        numbers are transformed separately.
      type: 1, 2, 3 or 4, of the transform that is inverted.
      s: the lengths to which the axes are truncated or padded with zeros.
      axes: the axes, by default the last ``len(s)`` ones, or all.
      norm: the norm of the transform that is inverted: None or ``"backward"``, ``"forward"`` or
        ``"ortho"``.
      orthogonalize: change the weights of the edges so that the matrix is orthogonal up to a
        factor; by default only if ``norm`` is ``"ortho"``.

    Returns:
      An array of the shape of ``x``, with the sizes ``s`` along the axes.

    Raises:
      ValueError: if the type or norm is unknown, an axis does not exist or is too short, or the
        sizes do not match the axes.
      TypeError: if ``x`` is not an array or a number.

    The transform is linear, so its derivative is the transform of the tangent.

    >>> import numpy as np
    >>> idctn(np.float32([[16, 0], [0, 0]])).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    return _several("idctn", x, type, s, axes, norm, orthogonalize)


def dstn(
    x: ArrayLike,
    type: int = 2,
    s: ShapeLike | None = None,
    axes: int | Sequence[int] | None = None,
    norm: str | None = None,
    *,
    orthogonalize: bool | None = None,
) -> Array:
    """Discrete sine transforms along several axes, one after the other.

    Args:
      x: numbers; integers and narrow floats become ``float32`` or wider. The parts of complex
        numbers are transformed separately.
      type: 1, 2, 3 or 4.
      s: the lengths to which the axes are truncated or padded with zeros.
      axes: the axes, by default the last ``len(s)`` ones, or all.
      norm: None or ``"backward"`` for unscaled sums, ``"forward"`` or ``"ortho"``; see `dct`.
      orthogonalize: change the weights of the edges so that the matrix is orthogonal up to a
        factor; by default only if ``norm`` is ``"ortho"``.

    Returns:
      An array of the shape of ``x``, with the sizes ``s`` along the axes.

    Raises:
      ValueError: if the type or norm is unknown, an axis does not exist or is too short, or the
        sizes do not match the axes.
      TypeError: if ``x`` is not an array or a number.

    The transform is linear, so its derivative is the transform of the tangent.

    >>> import numpy as np
    >>> np.float64(dstn(np.float32([[1, -1], [-1, 1]]))).round(4).tolist()
    [[0.0, 0.0], [0.0, 16.0]]
    """
    return _several("dstn", x, type, s, axes, norm, orthogonalize)


def idstn(
    x: ArrayLike,
    type: int = 2,
    s: ShapeLike | None = None,
    axes: int | Sequence[int] | None = None,
    norm: str | None = None,
    *,
    orthogonalize: bool | None = None,
) -> Array:
    """Inverse of the discrete sine transforms `dstn` along several axes.

    Args:
      x: numbers; integers and narrow floats become ``float32`` or wider. The parts of complex
        numbers are transformed separately.
      type: 1, 2, 3 or 4, of the transform that is inverted.
      s: the lengths to which the axes are truncated or padded with zeros.
      axes: the axes, by default the last ``len(s)`` ones, or all.
      norm: the norm of the transform that is inverted: None or ``"backward"``, ``"forward"`` or
        ``"ortho"``.
      orthogonalize: change the weights of the edges so that the matrix is orthogonal up to a
        factor; by default only if ``norm`` is ``"ortho"``.

    Returns:
      An array of the shape of ``x``, with the sizes ``s`` along the axes.

    Raises:
      ValueError: if the type or norm is unknown, an axis does not exist or is too short, or the
        sizes do not match the axes.
      TypeError: if ``x`` is not an array or a number.

    The transform is linear, so its derivative is the transform of the tangent.

    >>> import numpy as np
    >>> x = np.float32([[1, 2], [3, 4]])
    >>> np.float64(idstn(dstn(x))).round(4).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    return _several("idstn", x, type, s, axes, norm, orthogonalize)
