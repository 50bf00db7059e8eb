"""Bessel functions of real order and complex argument.

All follow from the modified functions in the first quadrant: those of the upper half-plane by DLMF
10.27.6, 10.27.8 and 10.34, those of negative order by 10.4 and 10.27, and those of the lower
half-plane as conjugates. The negative real axis is a cut; values on it are those above it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from primax_core import custom_jvp, jvp, lax
from primax_core.custom_derivatives import SymbolicZero
from primax_core.extend import typeof
from primax_numpy.declaring import is_complex, strong

from .._elementary import choose
from .._functions import promoted_floats
from ._bessel_kernels import without_zero_times
from ._complex_bessel_kernels import (
    as_complex,
    modified,
    modified_work,
    phase,
    phase_of_turns,
    sine_and_cosine_of_turns,
    stretched,
    times,
    times_i,
)
from ._operands import in_blocks, same_shape

_LARGEST_ORDER: Final = 1e6
_LARGEST: Final = 1e15
_modified = in_blocks(modified, modified_work)


def _split(v: Any, z: Any) -> tuple[Any, Any, Any]:
    """Absolute order, the argument or its conjugate in the upper half-plane, and whether they are
    in the domain of the kernel."""
    size = choose(v < 0, -v, v)
    largest = lax.max(lax.abs(lax.real(z)), lax.abs(lax.imag(z)))
    inside = (size <= _LARGEST_ORDER) & (largest > 0) & (largest < _LARGEST)
    upper = lax.complex(lax.real(z), choose(lax.imag(z) < 0, -lax.imag(z), lax.imag(z)))
    return choose(inside, size, 0.0), choose(inside, upper, 1.0), inside


def _conjugate_if(condition: Any, z: Any) -> Any:
    return lax.complex(lax.real(z), choose(condition, -lax.imag(z), lax.imag(z)))


def _at_zero(v: Any, z: Any) -> Any:
    """``J`` and ``I`` at 0."""
    positive = choose(v == 0, lax.full_like(z, 1.0), 0.0)
    return choose((v < 0) & (v != lax.floor(v)), np.nan, positive)


def _beyond(v: Any, z: Any, inside: Any, value: Any, at_zero: Any) -> Any:
    """A value inside of the domain, that at 0, and NaN elsewhere."""
    zero = (z == 0) & (lax.abs(v) <= _LARGEST_ORDER)
    nan = lax.complex(lax.full_like(v, np.nan), lax.full_like(v, np.nan))
    return choose(inside, value, choose(zero, at_zero, nan))


def _ordinary(v: Any, z: Any) -> tuple[Any, Any, Any, Any, Any]:
    """``exp(-Im z) J``, ``exp(-Im z) Y`` and ``exp(-iz) H1`` of order ``v`` in the upper
    half-plane; the argument, and whether it is in the domain."""
    s, z, inside = _split(v, z)
    x, y = lax.real(z), lax.imag(z)
    i, _, k, _ = _modified(s, lax.complex(y, choose(x < 0, -x, x)))
    right = x > 0
    i, k = _conjugate_if(right, i), _conjugate_if(right, k)
    quarter = phase_of_turns(0.5 * s)
    j = quarter * i
    h = (-2 / math.pi) * times_i(lax.conj(quarter) * k)
    decayed = _decayed(h, z)
    bessel_y = times_i(j - decayed)
    sine, cosine = sine_and_cosine_of_turns(s)
    left, turn = v < 0, phase_of_turns(s)
    left_j = lax.conj(turn) * j + without_zero_times(sine, times_i(decayed))
    left_y = times(sine, j) + without_zero_times(cosine, bessel_y)
    j, bessel_y = choose(left, left_j, j), choose(left, left_y, bessel_y)
    return j, bessel_y, choose(left, turn * h, h), z, inside


def _decayed(h: Any, z: Any) -> Any:
    """``exp(-Im z) H`` from ``exp(-iz) H``."""
    return times(lax.exp(-2 * lax.imag(z)), phase(lax.real(z)) * h)


def _j(v: Any, z: Any, scaled: bool) -> Any:
    j, _, _, upper, inside = _ordinary(v, z)
    j = j if scaled else stretched(lax.imag(upper), j)
    return _beyond(v, z, inside, _conjugate_if(lax.imag(z) < 0, j), _at_zero(v, z))


def _y(v: Any, z: Any, scaled: bool) -> Any:
    _, y, h, upper, inside = _ordinary(v, z)
    y = y if scaled else stretched(lax.imag(upper), y)
    y = _infinite_on_the_axis(y, h, z, -np.inf)
    infinite = choose(v < 0, lax.full_like(z, np.nan), -np.inf)
    return _beyond(v, z, inside, _conjugate_if(lax.imag(z) < 0, y), infinite)


def _infinite_on_the_axis(value: Any, size: Any, z: Any, limit: float) -> Any:
    """The limit where ``size`` overflows on the positive real axis, NaN where it does elsewhere."""
    over = ~(lax.abs(lax.real(size)) + lax.abs(lax.imag(size)) < np.inf)
    axis = (lax.imag(z) == 0) & (lax.real(z) > 0)
    infinite = lax.complex(choose(axis, limit, lax.full_like(lax.real(z), np.nan)),
                           choose(axis, 0.0, lax.full_like(lax.real(z), np.nan)))  # fmt: skip
    return choose(over, infinite, value)


def _hankel(v: Any, z: Any, first: bool, scaled: bool) -> Any:
    """``H1`` of the upper half-plane and ``H2 = 2J - H1``; below, the conjugate of the other."""
    j, _, h, upper, inside = _ordinary(v, z)
    x, y = lax.real(upper), lax.imag(upper)
    below = lax.imag(z) < 0
    turn = phase(x)
    # exp(iz) H2 and H2
    if scaled:
        second = turn * (2 * j - times(lax.exp(-2 * y), turn * h))
        one = h
    else:
        second = stretched(y, 2 * j - _decayed(h, upper))
        one = times(lax.exp(-y), turn * h)
    value = choose(below, lax.conj(second), one) if first else choose(below, lax.conj(one), second)
    return _beyond(v, z, inside, value, lax.full_like(z, np.nan))


def _modified_pair(v: Any, z: Any) -> tuple[Any, Any, Any, Any]:
    """``exp(-|Re z|) I`` and ``exp(z) K`` of order ``v`` in the upper half-plane; the argument, and
    whether it is in the domain."""
    s, z, inside = _split(v, z)
    x, y = lax.real(z), lax.imag(z)
    left = x < 0
    size = choose(left, -x, x)
    i, _, k, _ = _modified(s, lax.complex(size, y))
    i, k = _conjugate_if(left, i), _conjugate_if(left, k)
    turn = phase_of_turns(s)
    wave = phase(y)
    mirrored = times(lax.exp(-2 * size), lax.conj(turn) * wave * wave * k) - math.pi * times_i(
        wave * i
    )
    i, k = choose(left, turn * i, i), choose(left, mirrored, k)
    sine, _ = sine_and_cosine_of_turns(s)
    decay = times(lax.exp(choose(left, lax.full_like(x, 0.0), -2 * x)), lax.conj(wave))
    other = i + (2 / math.pi) * without_zero_times(sine, decay * k)
    return choose(v < 0, other, i), k, z, inside


def _i(v: Any, z: Any, scaled: bool) -> Any:
    i, _, upper, inside = _modified_pair(v, z)
    i = i if scaled else stretched(lax.abs(lax.real(upper)), i)
    return _beyond(v, z, inside, _conjugate_if(lax.imag(z) < 0, i), _at_zero(v, z))


def _k(v: Any, z: Any, scaled: bool) -> Any:
    _, k, upper, inside = _modified_pair(v, z)
    value = k if scaled else stretched(-lax.real(upper), lax.conj(phase(lax.imag(upper))) * k)
    value = _infinite_on_the_axis(value, k, z, np.inf)
    infinite = as_complex(lax.full_like(v, np.inf))
    return _beyond(v, z, inside, _conjugate_if(lax.imag(z) < 0, value), infinite)


# Derivatives


def _neighbours(function: Any, v: Any, z: Any) -> tuple[Any, Any]:
    """The function of the next lower and next higher order."""
    both = function(lax.concatenate([v[None] - 1, v[None] + 1], 0),
                    lax.concatenate([z[None], z[None]], 0))  # fmt: skip
    return both[0], both[1]


def _declare(
    fun: Callable[..., Any], slope: Callable[[Any, Any, Any, Any, Any, Any], Any]
) -> Callable[..., Any]:
    """A function of order and argument with the tangent ``slope(low, high, v, z, out, t)`` for the
    functions of the neighbouring orders; that of the order is that of the operations."""
    function: Any = custom_jvp(fun)

    def _rule(primals: Any, tangents: Any) -> Any:
        (v, z), (dv, dz) = primals, tangents
        out = function(v, z)
        total = lax.full_like(out, 0)
        if not isinstance(dv, SymbolicZero):
            unit = lax.full_like(v, 1.0)
            total = total + times(dv, jvp(lambda v: fun(v, z), (v,), (unit,))[1])
        if not isinstance(dz, SymbolicZero):
            low, high = _neighbours(function, v, z)
            total = total + slope(low, high, v, z, out, dz)
        return out, total

    function.defjvp(_rule, symbolic_zeros=True)
    return function


def _difference(low: Any, high: Any, v: Any, z: Any, out: Any, t: Any) -> Any:
    """DLMF 10.6.1."""
    return 0.5 * (low - high) * t


def _sign(x: Any) -> Any:
    return choose(x > 0, lax.full_like(x, 1.0), choose(x < 0, lax.full_like(x, -1.0), 0.0))


def _scaled_difference(low: Any, high: Any, v: Any, z: Any, out: Any, t: Any) -> Any:
    y = lax.imag(z)
    return 0.5 * (low - high) * t - times(_sign(y) * lax.imag(t), out)


def _mean(low: Any, high: Any, v: Any, z: Any, out: Any, t: Any) -> Any:
    """DLMF 10.29.1."""
    return 0.5 * (low + high) * t


def _scaled_mean(low: Any, high: Any, v: Any, z: Any, out: Any, t: Any) -> Any:
    return 0.5 * (low + high) * t - times(_sign(lax.real(z)) * lax.real(t), out)


_FUNCTIONS: Final = {
    "jv": _declare(lambda v, z: _j(v, z, False), _difference),
    "jve": _declare(lambda v, z: _j(v, z, True), _scaled_difference),
    "yv": _declare(lambda v, z: _y(v, z, False), _difference),
    "yve": _declare(lambda v, z: _y(v, z, True), _scaled_difference),
    "iv": _declare(lambda v, z: _i(v, z, False), _mean),
    "ive": _declare(lambda v, z: _i(v, z, True), _scaled_mean),
    "kv": _declare(lambda v, z: _k(v, z, False), lambda *xs: -_mean(*xs)),
    "kve": _declare(
        lambda v, z: _k(v, z, True), lambda *xs: xs[4] * xs[5] - _mean(*xs)
    ),
    "hankel1": _declare(lambda v, z: _hankel(v, z, True, False), _difference),
    "hankel2": _declare(lambda v, z: _hankel(v, z, False, False), _difference),
    "hankel1e": _declare(
        lambda v, z: _hankel(v, z, True, True),
        lambda *xs: _difference(*xs) - times_i(xs[4]) * xs[5],
    ),
    "hankel2e": _declare(
        lambda v, z: _hankel(v, z, False, True),
        lambda *xs: _difference(*xs) + times_i(xs[4]) * xs[5],
    ),
}  # fmt: skip


def of_complex(name: str, v: Any, z: Any) -> Any:
    """The function of a name for real orders and complex numbers, in the dtype of both.

    Raises:
      ValueError: if an order is complex.
    """
    if is_complex(v):
        raise ValueError(
            f"{name} does not support complex-valued orders: v.dtype={typeof(v).dtype}; pass a "
            "real order and a complex z"
        )
    v, z = (strong(x) for x in same_shape(*promoted_floats(name, v, z)))
    return _FUNCTIONS[name](lax.real(v), z)
