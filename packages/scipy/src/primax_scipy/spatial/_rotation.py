"""Rotations in three dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

import primax_numpy as pnp
from primax_core import lax, tree_util
from primax_core.extend import Array
from primax_numpy import random as _random
from primax_numpy.declaring import check_arrays

from .._functions import floats
from . import _quaternions as quaternions

_AXES: Final = {"x": 0, "y": 1, "z": 2}


def _floats(name: str, x: Any, size: int) -> Any:
    """A float array whose last axis has a size."""
    check_arrays(name, x)
    (x,) = floats(name, pnp.asarray(x))
    if not x.ndim or x.shape[-1] != size:
        raise ValueError(f"{name}: the last axis must have size {size}, got shape {x.shape}.")
    return x


def _sequence(name: str, seq: str, sizes: tuple[int, ...]) -> tuple[tuple[int, ...], bool]:
    """Axes of a sequence, and whether they are fixed (lower case)."""
    letters = seq.lower()
    if len(seq) not in sizes or set(letters) - set(_AXES) or seq not in (letters, seq.upper()):
        raise ValueError(
            f"{name}: seq={seq!r} is not a sequence of axes: pass "
            f"{' or '.join(map(str, sizes))} of "
            "the letters xyz for fixed axes, or XYZ for axes that rotate along."
        )
    if any(a == b for a, b in pairwise(letters)):
        raise ValueError(f"{name}: seq={seq!r} has the same axis twice in succession.")
    return tuple(_AXES[c] for c in letters), seq == letters


@tree_util.register_pytree_node_class
class Rotation:
    """Rotations as quaternions ``(x, y, z, w)`` of length 1.

    A rotation is a pytree of one array, so functions of rotations can be transformed. A stack of
    ``n`` rotations has quaternions of shape ``(n, 4)``.

    Args:
      quat: ``float[4]`` or ``float[n, 4]``, of length 1; `from_quat` divides by the length.

    >>> import numpy as np
    >>> turn = Rotation.from_rotvec(np.float32([0, 0, np.pi / 2]))
    >>> print(turn.apply(np.float32([1, 0, 0])).round(4))
    [0. 1. 0.]
    """

    quat: Any

    def __init__(self, quat: Any) -> None:
        self.quat = quat

    def tree_flatten(self) -> Any:
        """The quaternions, and ``None``."""
        return (self.quat,), None

    @classmethod
    def tree_unflatten(cls, aux_data: Any, children: Any) -> Rotation:
        """The rotation of these quaternions."""
        return cls(*children)

    def __repr__(self) -> str:
        return f"Rotation(quat={self.quat!r})"

    # Constructors

    @classmethod
    def from_quat(cls, quat: Any, *, scalar_first: bool = False) -> Rotation:
        """Rotations of quaternions ``float[..., 4]``, which are divided by their lengths.

        Args:
          scalar_first: True for the order ``(w, x, y, z)``.
        """
        quat = _floats("Rotation.from_quat", quat, 4)
        if scalar_first:
            quat = pnp.roll(quat, -1, -1)
        return cls(quaternions.normalized(quat))

    @classmethod
    def from_matrix(cls, matrix: Any) -> Rotation:
        """Rotations of orthogonal matrices ``float[..., 3, 3]``."""
        matrix = _floats("Rotation.from_matrix", matrix, 3)
        if matrix.ndim < 2 or matrix.shape[-2] != 3:
            raise ValueError(
                f"Rotation.from_matrix: shape {matrix.shape} is not that of 3 x 3 matrices."
            )
        return cls(quaternions.from_matrices(matrix))

    @classmethod
    def from_rotvec(cls, rotvec: Any, degrees: bool = False) -> Rotation:
        """Rotations around vectors ``float[..., 3]``, by their lengths as angles."""
        rotvec = _floats("Rotation.from_rotvec", rotvec, 3)
        if degrees:
            rotvec = rotvec * (math.pi / 180)
        return cls(quaternions.from_vectors(rotvec))

    @classmethod
    def from_mrp(cls, mrp: Any) -> Rotation:
        """Rotations of modified Rodrigues parameters ``float[..., 3]``."""
        mrp = _floats("Rotation.from_mrp", mrp, 3)
        square = pnp.sum(lax.square(mrp), -1, keepdims=True)
        return cls(pnp.concatenate([2 * mrp, 1 - square], -1) / (1 + square))

    @classmethod
    def from_euler(cls, seq: str, angles: Any, degrees: bool = False) -> Rotation:
        """Rotations of Euler angles.

        Args:
          seq: up to three axes: ``"xyz"`` for fixed axes, ``"XYZ"`` for axes that rotate along.
          angles: ``float[..., len(seq)]``; for one axis also a number, or a vector of angles.
          degrees: True for degrees.

        Raises:
          ValueError: for another sequence, or a last axis of another size.
        """
        axes, extrinsic = _sequence("Rotation.from_euler", seq, (1, 2, 3))
        check_arrays("Rotation.from_euler", angles)
        (angles,) = floats("Rotation.from_euler", pnp.asarray(angles))
        if len(axes) == 1 and (not angles.ndim or angles.shape[-1] != 1):
            angles = angles[..., None]
        angles = _floats("Rotation.from_euler", angles, len(axes))
        if degrees:
            angles = angles * (math.pi / 180)
        out = quaternions.elementary(axes[0], angles[..., 0])
        for i, axis in enumerate(axes[1:], 1):
            following = quaternions.elementary(axis, angles[..., i])
            pair = (following, out) if extrinsic else (out, following)
            out = quaternions.product(*pair)
        return cls(out)

    @classmethod
    def identity(cls, num: int | None = None, dtype: Any = float) -> Rotation:
        """The identity, or a stack of ``num`` of them."""
        one = pnp.zeros(4, dtype).at[3].set(1)
        return cls(one if num is None else pnp.tile(one, (num, 1)))

    @classmethod
    def random(cls, random_key: Any, num: int | None = None) -> Rotation:
        """A uniform random rotation, or a stack of ``num`` of them."""
        shape = (4,) if num is None else (num, 4)
        return cls(quaternions.normalized(_random.normal(random_key, shape, float)))

    @classmethod
    def concatenate(cls, rotations: Sequence[Rotation]) -> Rotation:
        """A stack of the rotations in a sequence of rotations and stacks."""
        return cls(pnp.concatenate([pnp.atleast_2d(r.quat) for r in rotations]))

    @classmethod
    def align_vectors(cls, a: Any, b: Any, weights: Any = None) -> tuple[Rotation, Array]:
        """The rotation that best maps vectors ``b`` to vectors ``a``, and the root of the sum of
        weighted squares of the remaining differences.

        It is W. Kabsch's solution by singular values ("A solution for the best rotation to relate
        two sets of vectors", 1976).

        Args:
          a, b: ``float[n, 3]``.
          weights: ``float[n]``, by default 1.
        """
        a = pnp.atleast_2d(_floats("Rotation.align_vectors", a, 3))
        b = pnp.atleast_2d(_floats("Rotation.align_vectors", b, 3))
        if a.shape != b.shape:
            raise ValueError(f"Rotation.align_vectors: shapes {a.shape} and {b.shape} differ.")
        if weights is None:
            weights = pnp.ones(a.shape[0], a.dtype)
        weights = lax.convert_element_type(pnp.asarray(weights), a.dtype)
        b = lax.convert_element_type(b, a.dtype)
        u, s, v = pnp.linalg.svd(pnp.matmul((a * weights[:, None]).T, b))
        sign = pnp.sign(pnp.linalg.det(u) * pnp.linalg.det(v))
        flip = pnp.ones(3, a.dtype).at[2].set(sign)
        rotation = cls.from_matrix(pnp.matmul(u * flip[None, :], v))
        rest = pnp.sum(weights[:, None] * (lax.square(a) + lax.square(b))) - 2 * pnp.sum(s * flip)
        return rotation, pnp.sqrt(pnp.maximum(rest, pnp.zeros_like(rest)))

    # Representations

    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Array:
        """Quaternions ``float[..., 4]``.

        Args:
          canonical: True for the one of ``q`` and ``-q`` with a positive scalar.
          scalar_first: True for the order ``(w, x, y, z)``.
        """
        quat = quaternions.canonical(self.quat) if canonical else self.quat
        return pnp.roll(quat, 1, -1) if scalar_first else quat

    def as_matrix(self) -> Array:
        """Matrices ``float[..., 3, 3]``."""
        out: Array = quaternions.to_matrices(self.quat)
        return out

    def as_rotvec(self, degrees: bool = False) -> Array:
        """Rotation vectors ``float[..., 3]``, of lengths up to π."""
        out: Array = quaternions.to_vectors(self.quat)
        return out * (180 / math.pi) if degrees else out

    def as_mrp(self) -> Array:
        """Modified Rodrigues parameters ``float[..., 3]``, of lengths up to 1."""
        q = pnp.where(self.quat[..., 3:] < 0, -self.quat, self.quat)
        return q[..., :3] / (1 + q[..., 3:])

    def as_euler(self, seq: str, degrees: bool = False) -> Array:
        """Euler angles ``float[..., 3]``; if they are not unique, the last one is 0.

        Args:
          seq: three axes, as for `from_euler`.
        """
        axes, extrinsic = _sequence("Rotation.as_euler", seq, (3,))
        first, second, third = axes
        out: Array = quaternions.to_angles(self.quat, (first, second, third), extrinsic)
        return out * (180 / math.pi) if degrees else out

    # Operations

    def apply(self, vectors: Any, inverse: bool = False) -> Array:
        """Rotated vectors ``float[..., 3]``; one rotation or vector is repeated for several.

        Args:
          inverse: True to apply the inverse rotations.
        """
        vectors = _floats("Rotation.apply", vectors, 3)
        matrix = self.as_matrix()
        matrix = pnp.swapaxes(matrix, -1, -2) if inverse else matrix
        ndim = max(matrix.ndim - 1, vectors.ndim)
        matrix = lax.expand_dims(matrix, tuple(range(ndim + 1 - matrix.ndim)))
        vectors = lax.expand_dims(vectors, tuple(range(ndim - vectors.ndim)))
        dtype = pnp.promote_types(matrix.dtype, vectors.dtype)
        matrix, vectors = (lax.convert_element_type(v, dtype) for v in (matrix, vectors))
        return pnp.sum(matrix * vectors[..., None, :], -1)

    def __mul__(self, other: Rotation) -> Rotation:
        """The rotation ``other`` followed by this one."""
        dtype = pnp.promote_types(self.quat.dtype, other.quat.dtype)
        p, q = (lax.convert_element_type(v, dtype) for v in (self.quat, other.quat))
        return Rotation(quaternions.normalized(quaternions.product(p, q)))

    def __pow__(self, n: Any) -> Rotation:
        """The rotation ``n`` times, also for fractions."""
        return Rotation.from_rotvec(self.as_rotvec() * n)

    def inv(self) -> Rotation:
        """The inverse rotations."""
        return Rotation(self.quat * pnp.asarray(np.array([-1, -1, -1, 1]), self.quat.dtype))

    def magnitude(self) -> Array:
        """Angles of the rotations, in [0, π]."""
        return 2 * pnp.arctan2(quaternions.length(self.quat[..., :3]), pnp.abs(self.quat[..., 3]))

    def approx_equal(self, other: Rotation, atol: Any = None, degrees: bool = False) -> Array:
        """Return True where the angle between rotations is less than ``atol``, by default 1e-8
        (1e-4 in ``float32``)."""
        if atol is None:
            atol = 1e-8 if self.quat.dtype == np.float64 else 1e-4
        elif degrees:
            atol = atol * (math.pi / 180)
        return (other * self.inv()).magnitude() < atol

    def mean(self, weights: Any = None) -> Rotation:
        """The mean of a stack: the quaternion of the largest eigenvalue of the sum of the outer
        products (F. L. Markley et al., "Averaging quaternions", 2007).

        Args:
          weights: ``float[n]``, by default 1.
        """
        quat = pnp.atleast_2d(self.quat)
        if weights is None:
            weights = pnp.ones(quat.shape[0], quat.dtype)
        elif pnp.shape(weights) != (quat.shape[0],):
            raise ValueError(
                f"Rotation.mean: weights of shape {pnp.shape(weights)} for {quat.shape[0]} "
                "rotations."
            )
        weights = lax.convert_element_type(pnp.asarray(weights), quat.dtype)
        _, vectors = pnp.linalg.eigh(pnp.matmul(quat.T * weights[None, :], quat))
        return Rotation(vectors[:, -1])

    @property
    def single(self) -> bool:
        """True for one rotation, False for a stack."""
        return bool(self.quat.ndim == 1)

    def __bool__(self) -> bool:
        return True

    def __len__(self) -> int:
        if self.single:
            raise TypeError("Single rotation has no len().")
        return int(self.quat.shape[0])

    def __getitem__(self, index: Any) -> Rotation:
        if self.single:
            raise TypeError("Single rotation is not subscriptable.")
        return Rotation(self.quat[index])
