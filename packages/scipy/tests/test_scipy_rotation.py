"""Rotations and their interpolation against SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.spatial.transform as theirs

from primax_core import enable_x64, grad, jit, vmap
from primax_core.testing import check_grads
from primax_numpy import random
from primax_scipy.spatial.transform import Rotation, Slerp

QUATS = np.random.default_rng(0).normal(size=(5, 4))
VECTORS = np.random.default_rng(1).normal(size=(5, 3))
OTHERS = theirs.Rotation.from_quat(QUATS)
SEQUENCES = ("xyz", "ZYX", "zxz", "XYX", "yzx")
OPERATIONS: dict[str, Any] = {
    "matrix": lambda r, c: r.as_matrix(),
    "rotvec": lambda r, c: r.as_rotvec(degrees=True),
    "mrp": lambda r, c: r.as_mrp(),
    "quat": lambda r, c: r.as_quat(canonical=True, scalar_first=True),
    "from matrix": lambda r, c: c.from_matrix(r.as_matrix()).as_quat(canonical=True),
    "from rotvec": lambda r, c: c.from_rotvec(r.as_rotvec()).as_quat(canonical=True),
    "from mrp": lambda r, c: c.from_mrp(r.as_mrp()).as_matrix(),
    "product": lambda r, c: (r * r[0]).as_matrix(),
    "power": lambda r, c: (r**0.5).as_matrix(),
    "inverse": lambda r, c: r.inv().as_matrix(),
    "magnitude": lambda r, c: r.magnitude(),
    "mean": lambda r, c: r.mean(weights=np.arange(1.0, 6.0)).as_matrix(),
    "apply": lambda r, c: r.apply(VECTORS),
    "apply one": lambda r, c: r[0].apply(VECTORS),
    "apply inverse": lambda r, c: r.apply(VECTORS[0], inverse=True),
    "align": lambda r, c: c.align_vectors(VECTORS, VECTORS[::-1].copy())[0].as_matrix(),
    "align rest": lambda r, c: c.align_vectors(VECTORS, VECTORS[::-1].copy())[1],
    "concatenate": lambda r, c: c.concatenate([r, r[0]]).as_matrix(),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations(name: str) -> None:
    operation = OPERATIONS[name]
    with enable_x64(True):
        actual = operation(Rotation.from_quat(QUATS), Rotation)
        np.testing.assert_allclose(actual, operation(OTHERS, theirs.Rotation), 1e-10, 1e-10)
    single = operation(Rotation.from_quat(QUATS.astype(np.float32)), Rotation)
    np.testing.assert_allclose(single, actual, 1e-4, 1e-4)


@pytest.mark.parametrize("seq", SEQUENCES)
def test_euler_angles(seq: str) -> None:
    """Angles are those of SciPy; where they are not unique, they give the same rotation."""
    with enable_x64(True):
        r = Rotation.from_quat(QUATS)
        np.testing.assert_allclose(r.as_euler(seq), OTHERS.as_euler(seq), 1e-10)
        again = Rotation.from_euler(seq, np.asarray(r.as_euler(seq, degrees=True)), degrees=True)
        np.testing.assert_allclose(again.as_matrix(), OTHERS.as_matrix(), 1e-10, 1e-12)
        for middle in (0.0, np.pi / 2, np.pi, -np.pi / 2):
            m = theirs.Rotation.from_euler(seq, [0.3, middle, -0.7]).as_matrix()
            angles = Rotation.from_matrix(m).as_euler(seq)
            np.testing.assert_allclose(Rotation.from_euler(seq, angles).as_matrix(), m, 1e-7, 1e-7)


def test_interpolation() -> None:
    times, at = np.array([0, 1.0, 2, 4, 5]), np.array([0.5, 4.2, 5.0])
    expected = theirs.Slerp(times, OTHERS)(at).as_matrix()
    with enable_x64(True):
        r = Rotation.from_quat(QUATS)
        for slerp in (Slerp.init(times, r), Slerp(times, r)):
            np.testing.assert_allclose(
                jit(lambda s, t: s(t))(slerp, at).as_matrix(), expected, 1e-9
            )
        assert slerp(np.float64(0.5)).single


@pytest.mark.rotate(every=4, whole=True)
def test_transformations() -> None:
    with enable_x64(True):
        for v in (np.zeros(3), np.array([0.3, -0.2, 1.1])):
            check_grads(lambda v: Rotation.from_rotvec(v).as_matrix(), (v,), 1, rtol=1e-4)
        check_grads(lambda v: Rotation.from_rotvec(v).as_rotvec(), (np.array([0.3, -0.2, 1.1]),), 2)
        assert np.isfinite(grad(lambda v: Rotation.from_rotvec(v).magnitude())(np.zeros(3))).all()
        stack = Rotation.from_quat(QUATS)
        looped = np.stack([np.asarray(stack[i].as_matrix()) for i in range(5)])
        np.testing.assert_allclose(vmap(lambda r: r.as_matrix())(stack), looped)


def test_random_and_identity() -> None:
    many = Rotation.random(random.key(0), 2000)
    assert len(many) == 2000 and not many.single and Rotation.random(random.key(0)).single
    # The mean angle of uniform rotations is π/2 + 2/π.
    assert abs(float(np.mean(many.magnitude())) - (np.pi / 2 + 2 / np.pi)) < 0.05
    np.testing.assert_array_equal(Rotation.identity(2).as_quat(), [[0, 0, 0, 1]] * 2)
    assert bool(many[0].approx_equal(many[0])) and not bool(many[0].approx_equal(many[1]))


def test_errors() -> None:
    r = Rotation.identity(3)
    with pytest.raises(ValueError, match=r"seq='xq' is not a sequence of axes: pass 1 or 2 or 3"):
        Rotation.from_euler("xq", np.zeros(2))
    with pytest.raises(ValueError, match=r"seq='xYz' is not a sequence of axes: pass 3 of"):
        r.as_euler("xYz")
    with pytest.raises(ValueError, match="the same axis twice in succession"):
        r.as_euler("xxz")
    with pytest.raises(ValueError, match=r"from_quat: the last axis must have size 4, got shape"):
        Rotation.from_quat(np.zeros(3))
    with pytest.raises(ValueError, match=r"weights of shape \(2,\) for 3 rotations"):
        r.mean(np.ones(2))
    with pytest.raises(TypeError, match=r"Single rotation has no len"):
        len(r[0])
    with pytest.raises(ValueError, match=r"times have shape \(2,\); 3 rotations need"):
        Slerp.init(np.zeros(2), r)
    with pytest.raises(TypeError, match="rotations must be a Rotation, got int"):
        Slerp(np.zeros(2), 3)
