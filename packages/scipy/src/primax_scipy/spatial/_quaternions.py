"""Quaternions ``[..., 4]`` with the scalar last: products and conversions."""

from __future__ import annotations

from typing import Any

import numpy as np

import primax_numpy as pnp
from primax_core import lax


def normalized(q: Any) -> Any:
    """Quaternions of length 1; NaN for zeros."""
    return q / pnp.sqrt(pnp.sum(lax.square(q), -1, keepdims=True))


def stacked(*parts: Any) -> Any:
    """Parts of one shape along a new last axis."""
    return pnp.stack(parts, -1)


def product(p: Any, q: Any) -> Any:
    """Hamilton's product: the rotation ``q`` followed by ``p``."""
    p, q = _same_rank(p, q)
    x1, y1, z1, w1 = (p[..., i] for i in range(4))
    x2, y2, z2, w2 = (q[..., i] for i in range(4))
    return stacked(
        w1 * x2 + x1 * w2 + y1 * z2 - z1 * y2,
        w1 * y2 + y1 * w2 + z1 * x2 - x1 * z2,
        w1 * z2 + z1 * w2 + x1 * y2 - y1 * x2,
        w1 * w2 - x1 * x2 - y1 * y2 - z1 * z2,
    )


def _same_rank(p: Any, q: Any) -> tuple[Any, Any]:
    while p.ndim < q.ndim:
        p = p[None]
    while q.ndim < p.ndim:
        q = q[None]
    return p, q


def length(vectors: Any) -> Any:
    """Lengths of vectors; the derivative at zero is 0."""
    square = pnp.sum(lax.square(vectors), -1)
    positive = square > 0
    root = pnp.sqrt(pnp.where(positive, square, pnp.ones_like(square)))
    return pnp.where(positive, root, pnp.zeros_like(root))


def canonical(q: Any) -> Any:
    """The one of ``q`` and ``-q`` whose scalar, or first other part that is not 0, is positive."""
    x, y, z, w = (q[..., i] for i in range(4))
    zero = w == 0
    negative = (w < 0) | (zero & ((x < 0) | ((x == 0) & ((y < 0) | ((y == 0) & (z < 0))))))
    return pnp.where(negative[..., None], -q, q)


def from_vectors(vectors: Any) -> Any:
    """Quaternions of rotation vectors; near 0 by the Taylor series of ``sin(x / 2) / x``."""
    square = pnp.sum(lax.square(vectors), -1, keepdims=True)
    small = square < 1e-4
    angle = pnp.sqrt(pnp.where(small, pnp.ones_like(square), square))
    near = 0.5 - square / 48 + square * square / 3840
    scale = pnp.where(small, near, pnp.sin(0.5 * angle) / angle)
    cosine = pnp.where(
        small, 1 - square / 8 + square * square / 384, pnp.cos(0.5 * angle)
    )  # fmt: skip
    return pnp.concatenate([scale * vectors, cosine], -1)


def to_vectors(q: Any) -> Any:
    """Rotation vectors with angles up to π."""
    q = pnp.where(q[..., 3:] < 0, -q, q)
    axis, w = q[..., :3], q[..., 3:]
    square = pnp.sum(lax.square(axis), -1, keepdims=True)
    small = square < 1e-5
    sine = pnp.sqrt(pnp.where(small, pnp.ones_like(square), square))
    # asin(s) / s
    near = 2 * (1 + square / 6 + 3 / 40 * square * square)
    return axis * pnp.where(small, near, 2 * pnp.arctan2(sine, w) / sine)


def to_matrices(q: Any) -> Any:
    """Matrices of rotations."""
    x, y, z, w = (q[..., i] for i in range(4))
    rows = (
        (x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)),
        (2 * (x * y + z * w), -x * x + y * y - z * z + w * w, 2 * (y * z - x * w)),
        (2 * (x * z - y * w), 2 * (y * z + x * w), -x * x - y * y + z * z + w * w),
    )
    return pnp.stack([stacked(*row) for row in rows], -2)


def from_matrices(m: Any) -> Any:
    """Quaternions of matrices.

    All four formulas are computed, and that with the largest part is chosen: F. L. Markley, "Unit
    quaternion from rotation matrix", 2008.
    """
    a = [[m[..., i, j] for j in range(3)] for i in range(3)]
    trace = a[0][0] + a[1][1] + a[2][2]
    xs = [
        [1 - trace + 2 * a[i][i] if i == j else a[j][i] + a[i][j] for j in range(3)]
        for i in range(3)
    ]
    w = [a[2][1] - a[1][2], a[0][2] - a[2][0], a[1][0] - a[0][1]]
    rows = [stacked(*xs[i], w[i]) for i in range(3)] + [stacked(*w, 1 + trace)]
    sizes = stacked(a[0][0], a[1][1], a[2][2], trace)
    best = pnp.argmax(sizes, -1)
    q = rows[3]
    for i in range(3):
        q = pnp.where((best == i)[..., None], rows[i], q)
    return normalized(q)


def elementary(axis: int, angles: Any) -> Any:
    """Quaternions of rotations around a coordinate axis."""
    zero = pnp.zeros_like(angles)
    parts = [zero, zero, zero, pnp.cos(0.5 * angles)]
    parts[axis] = pnp.sin(0.5 * angles)
    return stacked(*parts)


def to_angles(q: Any, axes: tuple[int, int, int], extrinsic: bool) -> Any:
    """Euler angles for a sequence of axes.

    E. Bernardes and S. Viollet, "Quaternion to Euler angles conversion: a direct, general and
    computationally efficient method", 2022. If the first and last axes of the rotated frame are
    parallel, the last angle is 0.
    """
    i, j, k = axes if extrinsic else axes[::-1]
    symmetric = i == k
    k = 3 - i - j if symmetric else k
    sign = (i - j) * (j - k) * (k - i) // 2
    w = q[..., 3]
    if symmetric:
        a, b, c, d = w, q[..., i], q[..., j], q[..., k] * sign
    else:
        a, b = w - q[..., j], q[..., i] + q[..., k] * sign
        c, d = q[..., j] + w, q[..., k] * sign - q[..., i]
    first, second = length(stacked(c, d)), length(stacked(a, b))
    middle = 2 * pnp.arctan2(first, second)
    eps = 1e-7 if q.dtype == np.float64 else 1e-4
    at_zero, at_pi = first <= eps * second, second <= eps * first
    regular = ~(at_zero | at_pi)
    half_sum = pnp.arctan2(b, pnp.where((a == 0) & (b == 0), pnp.ones_like(a), a))
    half_difference = pnp.arctan2(d, pnp.where((c == 0) & (d == 0), pnp.ones_like(c), c))
    one, other = half_sum - half_difference, half_sum + half_difference
    if not extrinsic:
        one, other = other, one
    turned = -2 * half_difference if extrinsic else 2 * half_difference
    one = pnp.where(regular, one, pnp.where(at_zero, 2 * half_sum, turned))
    other = pnp.where(regular, other, pnp.zeros_like(other))
    if not symmetric:
        middle = middle - 0.5 * np.pi
        if extrinsic:
            other = other * sign
        else:
            one = one * sign
    return stacked(*[_wrapped(v) for v in (one, middle, other)])


def _wrapped(angle: Any) -> Any:
    """Angles in [-π, π]."""
    angle = pnp.where(angle < -np.pi, angle + 2 * np.pi, angle)
    return pnp.where(angle > np.pi, angle - 2 * np.pi, angle)
