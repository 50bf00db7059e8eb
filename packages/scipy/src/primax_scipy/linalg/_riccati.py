"""Algebraic Riccati equations."""

from __future__ import annotations

from typing import Any

import primax_numpy as pnp
from primax_core import lax, vmap
from primax_core.extend import Array, dtypes
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import compiled

from ._equations import _product
from ._matrices import adjoint, check_matrices, check_square, in_common_dtype, with_batch
from ._matrix_functions import solve_sylvester


def _sign(z: Any) -> Any:
    """The matrix sign function by Newton's method, scaled by the determinant (Byers, Linear
    Algebra Appl. 85, 1987)."""
    n = typeof(z).shape[-1]
    eps = float(dtypes.finfo(typeof(z).dtype).eps)

    def going(state: Any) -> Any:
        k, _, change = state
        return (k < 60) & (change > n * eps)

    def step(state: Any) -> Any:
        k, z, change = state
        _, log = pnp.linalg.slogdet(z)
        # Scaling is useful only far from the limit.
        scale = pnp.where(change > 1e-2, pnp.exp(-log / n), 1.0).astype(typeof(z).dtype)
        new = 0.5 * (scale * z + pnp.linalg.inv(z) / scale)
        size = pnp.max(pnp.sum(pnp.abs(new), 0))
        return k + 1, new, pnp.max(pnp.sum(pnp.abs(new - z), 0)) / size

    one = pnp.ones((), dtypes.finfo(typeof(z).dtype).dtype)
    return lax.while_loop(going, step, (0, z, one))[1]


def _by_sign_function(a: Any, g: Any, q: Any) -> Any:
    """The stabilizing solution (Roberts, Int. J. Control 32, 1980)."""
    n = len(a)
    w = _sign(pnp.block([[a, -g], [-q, -adjoint(a)]]))
    eye = pnp.eye(n, dtype=typeof(a).dtype)
    left = pnp.concatenate([w[:n, n:], w[n:, n:] + eye])
    right = -pnp.concatenate([w[:n, :n] + eye, w[n:, :n]])
    x = pnp.linalg.lstsq(left, right)[0]
    return 0.5 * (x + adjoint(x))


@compiled(name="solve_continuous_are")
def _continuous(a, b, q, r, e, s):
    if e is not None:
        a, b = (pnp.linalg.solve(e, v) for v in (a, b))
    inverse = pnp.linalg.solve(r, adjoint(b))
    if s is not None:
        gain = pnp.linalg.solve(r, adjoint(s))
        a, q = a - _product(b, gain), q - _product(s, gain)
    g = _product(b, inverse)
    g = 0.5 * (g + adjoint(g))
    x = _by_sign_function(*map(lax.stop_gradient, (a, g, q)))
    # Kleinman's Newton steps correct rounding errors. The derivative of a step with respect to x
    # is zero at the solution, so that steps from a constant x have its derivatives: of one order
    # after one step, of three after two.
    for _ in range(2):
        closed = a - _product(g, x)
        right = -(q + _product(_product(x, g), x))
        x = solve_sylvester(adjoint(closed), closed, right)
        x = 0.5 * (x + adjoint(x))
    if e is not None:
        x = pnp.linalg.solve(adjoint(e), adjoint(pnp.linalg.solve(adjoint(e), adjoint(x))))
    return x


def solve_continuous_are(
    a: ArrayLike,
    b: ArrayLike,
    q: ArrayLike,
    r: ArrayLike,
    e: ArrayLike | None = None,
    s: ArrayLike | None = None,
    balanced: bool = True,
) -> Array:
    """The stabilizing solution of the continuous algebraic Riccati equation.

    Args:
      a, b, q, r: ``number[..., n, n]``, ``number[..., n, m]``, ``number[..., n, n]``,
        ``number[..., m, m]``; ``q`` and ``r`` are Hermitian. Leading axes broadcast.
      e, s: ``number[..., n, n]`` and ``number[..., n, m]``, by default the identity and zero.
      balanced: ignored; the iteration is scaled.

    Returns:
      The Hermitian ``x`` with ``a^H x e + e^H x a - (e^H x b + s) r^-1 (b^H x e + s^H) + q = 0``,
      by the matrix sign function and two steps of Newton's method, on the CPU only; not finite if
      there is none. It has three derivatives in both modes.

    Raises:
      ValueError: if sizes do not match.

    >>> import numpy as np
    >>> one = np.float32([[1]])
    >>> round(float(solve_continuous_are(one, one, one, one)[0, 0]), 4)
    2.4142
    """
    name = "solve_continuous_are"
    check_square(name, a, q, r, *([] if e is None else [e]))
    check_matrices(name, b, *([] if s is None else [s]))
    n, m = typeof(a).shape[-1], typeof(r).shape[-1]
    expected = {"b": (b, (n, m)), "q": (q, (n, n)), "e": (e, (n, n)), "s": (s, (n, m))}
    for key, (v, shape) in expected.items():
        if v is not None and typeof(v).shape[-2:] != shape:
            raise ValueError(
                f"linalg.{name}: {key} of shape {typeof(v).shape} does not match a of shape "
                f"{typeof(a).shape} and r of shape {typeof(r).shape}: expected {shape}"
            )
    present = [pnp.asarray(v) for v in (a, b, q, r, e, s) if v is not None]
    batch = lax.broadcast_shapes(*[typeof(v).shape[:-2] for v in present])
    values = iter([with_batch(v, batch, 2) for v in in_common_dtype(*present)])
    operands = [None if v is None else next(values) for v in (a, b, q, r, e, s)]
    solve: Any = _continuous
    for _ in batch:
        solve = vmap(solve)
    out: Array = solve(*operands)
    return out
