"""Schur form of matrices, on the CPU only."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import primax_numpy as pnp
from primax_core import custom_jvp, lax, vmap
from primax_core.extend import Array, inexact, promoted
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import as_inexact, compiled, is_complex

from ._matrices import adjoint, check_square, identity_like

_product = partial(pnp.matmul, precision=lax.Precision.HIGHEST)


def as_complex(x: Any) -> Any:
    dtype = np.promote_types(typeof(x).dtype, np.complex64)
    return lax.convert_element_type(x, dtype)


@compiled("output", name="schur")
def _schur(a, *, output):
    a = as_inexact(a)
    if output == "complex":
        a = as_complex(a)
    return tuple(schur_form(a))


@custom_jvp
def schur_form(a: Any) -> tuple[Any, Any]:
    """``T`` and ``Z``, with a derivative where eigenvalues differ."""
    t, z = lax.linalg.schur(a)
    return t, z


@schur_form.defjvp
def _schur_form_jvp(primals: Any, tangents: Any) -> Any:
    t, z = schur_form(*primals)
    change = _schur_change
    for _ in typeof(t).shape[:-2]:
        change = vmap(change)
    return (t, z), change(t, z, tangents[0])


def _schur_change(t: Any, z: Any, e: Any) -> tuple[Any, Any]:
    """Changes of ``T`` and ``Z`` for a change ``E`` of the matrix.

    With ``dZ = Z (L - L^H)`` for a strictly lower triangular ``L``, that part of ``L T - T L``
    equals that of ``Z^H E Z``.
    """
    m = _product(_product(adjoint(z), e), z)
    if typeof(t).shape[-1] < 2:
        return m, pnp.zeros_like(z)
    change, turn = (_change_of_triangle if is_complex(t) else _change_of_blocks)(t, m)
    return change, _product(z, turn)


def _lower_part(t: Any, m: Any) -> Any:
    """The solution of the equation for ``L``, column by column, from the first."""
    n = typeof(t).shape[-1]
    places, eye = pnp.arange(n), identity_like(t)

    def column(j: Any, low: Any) -> Any:
        earlier = pnp.where(places < j, t[:, j], 0)
        right = pnp.where(places > j, m[:, j] - _product(low, earlier), 0)
        below = (places[:, None] > j) & (places[None] > j)
        left = pnp.where(below, t[j, j] * eye - t, eye)
        solved = lax.linalg.triangular_solve(left, right[:, None], left_side=True, lower=False)
        return low.at[:, j].set(solved[:, 0])

    return lax.fori_loop(0, n, column, pnp.zeros_like(t))


def _change_of_triangle(t: Any, m: Any) -> tuple[Any, Any]:
    """The change of a triangular ``T``, and ``Z^H dZ``."""
    low = _lower_part(t, m)
    turn = low - adjoint(low)
    return pnp.triu(m - _product(turn, t) + _product(t, turn)), turn


def _change_of_blocks(t: Any, m: Any) -> tuple[Any, Any]:
    """The same for a real ``T`` with blocks of two rows for pairs of complex eigenvalues.

    The equation couples the elements of ``L`` below the blocks with each other only, so that they
    follow from the complex triangular form. A rotation within each block keeps the elements of its
    diagonal equal, as LAPACK computes them.
    """
    s, u = _rsf2csf(t, identity_like(t))
    low = _lower_part(s, _product(_product(adjoint(u), as_complex(m)), u))
    pair = pnp.diagonal(t, -1) != 0
    inside = pnp.diag(pair, -1)
    low = pnp.where(inside, pnp.zeros_like(low), low)
    low = lax.real(_product(_product(u, low), adjoint(u)))
    low = pnp.where(inside | ~pnp.tril(pnp.full_like(t, True, bool), -1), pnp.zeros_like(t), low)
    turn = low - low.T
    moved = m - _product(turn, t) + _product(t, turn)
    diagonal = pnp.diagonal(moved)
    sums = pnp.diagonal(t, 1) + pnp.diagonal(t, -1)
    angles = 0.5 * (diagonal[1:] - diagonal[:-1]) / pnp.where(pair, sums, pnp.ones_like(sums))
    angles = pnp.diag(pnp.where(pair, angles, pnp.zeros_like(angles)), -1)
    turn = turn + angles - angles.T
    moved = m - _product(turn, t) + _product(t, turn)
    upper = pnp.triu(pnp.full_like(t, True, bool)) | inside
    return pnp.where(upper, moved, pnp.zeros_like(moved)), turn


def schur(a: ArrayLike, output: str = "real") -> tuple[Array, Array]:
    """Schur form, ``a = Z @ T @ Z^H`` with unitary ``Z``.

    Args:
      a: ``number[..., n, n]``.
      output: ``"complex"`` for triangular ``T``; ``"real"`` for blocks of two rows for complex
        eigenvalues of a real matrix.

    Returns:
      ``T`` and ``Z``.

    Raises:
      ValueError: if the output is unknown.

    The derivative exists if the eigenvalues differ. A block of two rows ``[[a, b], [c, a]]`` is
    determined by the equal elements of its diagonal. If ``b = -c``, any rotation keeps them equal,
    and the derivative is not finite: pass ``"complex"``. ``Z`` of complex matrices is determined
    except for the phases of its columns, whose derivative is 0.

    >>> t, z = schur(np.float32([[2, 1], [1, 2]]))
    >>> [round(float(v), 4) for v in sorted(t.diagonal())]
    [1.0, 3.0]
    """
    check_square("schur", a)
    if output not in ("real", "complex"):
        raise ValueError(
            f"Expected 'output' to be either 'real' or 'complex', got output={output!r}."
        )
    out: tuple[Array, Array] = _schur(a, output=output)
    return out


@compiled(name="rsf2csf")
def _rsf2csf(t, z):
    t, z = (as_complex(x) for x in promoted("rsf2csf", t, z, inexact))
    n = typeof(t).shape[-1]

    def rotate(i: Any, state: Any) -> Any:
        t, z = state
        m = n - 1 - i
        block = lax.dynamic_slice(t, (m - 1, m - 1), (2, 2))
        # The eigenvalue of the block that is closer to its last element
        half = 0.5 * (block[0, 0] - block[1, 1])
        root = lax.sqrt(half * half + block[0, 1] * block[1, 0])
        up, down = half + root, half - root
        gap = pnp.where(pnp.abs(up) >= pnp.abs(down), up, down)
        size = lax.sqrt(pnp.abs(gap) ** 2 + pnp.abs(block[1, 0]) ** 2)
        live = pnp.abs(block[1, 0]) > 0
        size = as_complex(pnp.where(live, size, 1))
        c = pnp.where(live, gap / size, 1)
        s = pnp.where(live, block[1, 0] / size, 0)
        g = pnp.stack([pnp.stack([pnp.conj(c), pnp.conj(s)]), pnp.stack([-s, c])])
        rows = _product(g, lax.dynamic_slice(t, (m - 1, 0), (2, n)))
        t = lax.dynamic_update_slice(t, rows, (m - 1, 0))
        columns = _product(lax.dynamic_slice(t, (0, m - 1), (n, 2)), adjoint(g))
        t = lax.dynamic_update_slice(t, columns, (0, m - 1))
        columns = _product(lax.dynamic_slice(z, (0, m - 1), (n, 2)), adjoint(g))
        return t, lax.dynamic_update_slice(z, columns, (0, m - 1))

    t, z = lax.fori_loop(0, max(n - 1, 0), rotate, (t, z)) if n > 1 else (t, z)
    return pnp.triu(t), z


def rsf2csf(T: ArrayLike, Z: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """Conversion of a real Schur form to the complex, triangular form.

    Args:
      T, Z: the results of :func:`schur` for real matrices, ``[..., n, n]``.
      check_finite: ignored.

    Returns:
      The triangular ``T`` and the unitary ``Z``, both complex, with an unchanged ``Z @ T @ Z^H``.

    Raises:
      ValueError: if the matrices are not square, or the shapes differ.

    >>> [v.dtype.name for v in rsf2csf(*schur(np.float32([[0, 1], [-1, 0]])))]
    ['complex64', 'complex64']
    """
    check_square("rsf2csf", T, Z)
    if typeof(T).shape != typeof(Z).shape:
        raise ValueError(
            f"linalg.rsf2csf: shapes {typeof(T).shape} and {typeof(Z).shape} differ: pass both "
            "results of schur"
        )
    convert = _rsf2csf
    for _ in typeof(T).shape[:-2]:
        convert = vmap(convert)
    out: tuple[Array, Array] = convert(T, Z)
    return out
