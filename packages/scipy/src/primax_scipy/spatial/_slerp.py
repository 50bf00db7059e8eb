"""Interpolation of rotations."""

from __future__ import annotations

from typing import Any

import primax_numpy as pnp
from primax_core import lax, tree_util

from .._functions import floats
from ._rotation import Rotation


@tree_util.register_pytree_node_class
class Slerp:
    """Spherical linear interpolation (K. Shoemake, "Animating rotation with quaternion curves",
    1985): between two times, the rotation is around a fixed axis with constant velocity.

    An interpolation is a pytree of arrays. `init` computes it; the constructor takes its parts, or
    the times and the rotations, as SciPy's.

    >>> import numpy as np
    >>> turns = Rotation.from_rotvec(np.float32([[0, 0, 0], [0, 0, 1]]))
    >>> middle = Slerp.init(np.float32([0, 2]), turns)(np.float32(1))
    >>> print(middle.as_rotvec().round(4))
    [0.  0.  0.5]
    """

    times: Any
    timedelta: Any
    rotations: Any
    rotvecs: Any

    def __init__(
        self, times: Any, timedelta: Any, rotations: Any = None, rotvecs: Any = None
    ) -> None:
        if rotations is None:
            times, timedelta, rotations, rotvecs = _parts(times, timedelta)
        self.times, self.timedelta, self.rotations, self.rotvecs = (
            times, timedelta, rotations, rotvecs,
        )  # fmt: skip

    @classmethod
    def init(cls, times: Any, rotations: Rotation) -> Slerp:
        """An interpolation.

        Args:
          times: ``float[n]``, increasing, with at least two elements.
          rotations: a stack of ``n`` rotations.

        Raises:
          ValueError: for one rotation, or times of another shape.
        """
        return cls(*_parts(times, rotations))

    def tree_flatten(self) -> Any:
        """The times, their differences, the rotations and the rotation vectors, and ``None``."""
        return (self.times, self.timedelta, self.rotations, self.rotvecs), None

    @classmethod
    def tree_unflatten(cls, aux_data: Any, children: Any) -> Slerp:
        """The interpolation of these parts."""
        out = object.__new__(cls)
        out.times, out.timedelta, out.rotations, out.rotvecs = children
        return out

    def __call__(self, times: Any) -> Rotation:
        """Rotations at times, a number or ``float[m]``.

        Outside of the interval the first or last rotation continues; SciPy raises an error, which
        a compiled function cannot.
        """
        times = lax.convert_element_type(pnp.asarray(times), self.times.dtype)
        flat = pnp.atleast_1d(times)
        at = pnp.searchsorted(self.times, flat, side="right") - 1
        at = pnp.clip(at, 0, self.timedelta.shape[0] - 1)
        part = (flat - self.times[at]) / self.timedelta[at]
        turn = Rotation.from_rotvec(self.rotvecs[at] * part[:, None])
        out = Rotation(self.rotations.quat[at]) * turn
        return out if times.ndim else out[0]


def _parts(times: Any, rotations: Any) -> tuple[Any, Any, Rotation, Any]:
    if not isinstance(rotations, Rotation):
        raise TypeError(f"Slerp: rotations must be a Rotation, got {type(rotations).__name__}.")
    if rotations.single or len(rotations) < 2:
        raise ValueError("Slerp: rotations must be a sequence of at least 2 rotations.")
    (times,) = floats("Slerp", pnp.asarray(times))
    if times.shape != (len(rotations),):
        raise ValueError(
            f"Slerp: times have shape {times.shape}; {len(rotations)} rotations need "
            f"({len(rotations)},)."
        )
    times = lax.convert_element_type(times, rotations.quat.dtype)
    first = rotations[:-1]
    vectors = (first.inv() * rotations[1:]).as_rotvec()
    return times, pnp.diff(times), first, vectors
