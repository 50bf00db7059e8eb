"""Rational filters: direct forms, cascades of second order, forward and backward."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import Array, typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import compiled, one_axis

from .._double_precision import in_double
from .._layout import as_operand, check_mode, padded, resized, together
from ._convolution import by_transform
from ._recurrences import indices, recurrence, states_after, times
from ._spectra import extended

_PADS = ("odd", "even", "constant", None)
_UNROLLED = 64


def _coefficients(name: str, b: Any, a: Any) -> tuple[Any, Any]:
    b, a = as_operand(name, b), as_operand(name, a)
    for label, v in (("b", b), ("a", a)):
        shape = typeof(v).shape
        if len(shape) > 1 or shape == (0,):
            raise ValueError(f"{name}: {label} must be a nonempty vector, got shape {shape}")
    if _is_zero(a):
        raise ValueError(f"{name}: a[0] must not be zero")
    return b, a


def _precisely(fun: Callable[..., Any], *xs: Any) -> Any:
    """``fun(*xs)``, for ``float32`` computed in ``float64``: poles near 1 cost several digits."""
    return (in_double(fun) if typeof(xs[0]).dtype == np.float32 else fun)(*xs)


def _is_zero(a: Any) -> bool:
    return isinstance(a, np.ndarray) and a.reshape(-1)[0] == 0


def lfilter(
    b: ArrayLike, a: ArrayLike, x: ArrayLike, axis: int = -1, zi: ArrayLike | None = None
) -> Any:
    """Filter along an axis with the transfer function ``b(z) / a(z)``.

    ``a[0] y[i] = sum(b[k] x[i - k]) - sum(a[k] y[i - k])`` with zeros before the first element. The
    recurrence is computed in blocks; see `signal._recurrences`.

    Args:
      b, a: the coefficients, vectors or sequences of numbers.
      x: the signals.
      axis: the axis of time.
      zi: the initial state ``[..., max(len(a), len(b)) - 1]`` of the transposed direct form II, as
        from `lfilter_zi`, along the same axis.

    Returns:
      the filtered signals; with ``zi`` a tuple of them and the final state.

    Raises:
      ValueError: if the coefficients are not vectors, ``a[0]`` is zero, or the shape of ``zi``
        does not match.

    Signals in ``float32`` are computed in ``float64``, because poles near 1 cost several digits;
    on a TPU, and for other narrow dtypes, in their own precision.

    >>> lfilter([1.0], [1.0, -0.5], np.float32([1, 0, 0, 1])).tolist()
    [1.0, 0.5, 0.25, 1.125]
    """
    b, a = _coefficients("lfilter", b, a)
    x = as_operand("lfilter", x)
    if not typeof(x).ndim:
        raise ValueError("lfilter: x must have at least one dimension")
    position = one_axis(axis, typeof(x).ndim)
    if zi is None:
        return _filtered(b, a, x, axis=position)
    zi = as_operand("lfilter", zi)
    order = max(typeof(b).size, typeof(a).size) - 1
    expected = [*typeof(x).shape]
    expected[position] = order
    if len(typeof(zi).shape) != len(expected) or any(
        m not in (1, n) if i != position else m != n
        for i, (m, n) in enumerate(zip(typeof(zi).shape, expected))
    ):
        raise ValueError(
            f"lfilter: zi must have shape {tuple(expected)}, got {typeof(zi).shape}"
        )  # fmt: skip
    return _filtered_from(b, a, x, zi, axis=position)


@compiled("axis", name="lfilter")
def _filtered(b, a, x, *, axis):
    return _precisely(lambda b, a, x: _along(b, a, x, axis)[0], *together(b, a, x))


@compiled("axis", name="lfilter")
def _filtered_from(b, a, x, zi, *, axis):
    return _precisely(lambda b, a, x, zi: _along(b, a, x, axis, zi), *together(b, a, x, zi))


def _along(b, a, x, axis, zi=None):
    rows = pnp.moveaxis(x, axis, -1)
    shape = typeof(rows).shape
    flat = lax.reshape(rows, (int(np.prod(shape[:-1])), shape[-1]))
    order = max(typeof(b).size, typeof(a).size) - 1
    if zi is not None:
        zi = pnp.broadcast_to(pnp.moveaxis(zi, axis, -1), (*shape[:-1], order))
        zi = lax.reshape(zi, (typeof(flat).shape[0], order))
    y, state = filtered(b, a, flat, zi)
    y = pnp.moveaxis(lax.reshape(y, shape), -1, axis)
    if state is None:
        return y, None
    return y, pnp.moveaxis(lax.reshape(state, (*shape[:-1], order)), -1, axis)


def filtered(b: Any, a: Any, x: Any, zi: Any = None) -> tuple[Any, Any]:
    """Filtered rows ``[batch, n]``, and the final state if there is an initial one."""
    b, a = pnp.ravel(b), pnp.ravel(a)
    first = lax.slice_in_dim(a, 0, 1, axis=0)
    b, a = b / first, a / first
    order = max(typeof(b).shape[0], typeof(a).shape[0]) - 1
    tail = lax.slice_in_dim(a, 1, typeof(a).shape[0], axis=0)
    w = moving_sum(b, x)
    n = typeof(x).shape[1]
    if zi is not None and order:
        w = w + resized(zi, 1, n)
    y = recurrence(w, tail)
    if zi is None:
        return y, None
    return y, _final_state(b, tail, x, y, zi, order)


def _final_state(b, tail, x, y, zi, order):
    """``z[k] = sum(b[j] x[n + k - j] - a[j] y[n + k - j])`` over ``j > k``."""
    n = typeof(x).shape[1]
    if not order:
        return zi
    lags = indices(order)[None, :] - indices(order)[:, None] + order  # [i, k]
    zero = lax.full((1,), 0, typeof(b).dtype)
    total = padded(zi, 1, -min(n, order), min(n, order))
    for c, v, sign in ((lax.slice_in_dim(b, 1, typeof(b).shape[0], axis=0), x, 1), (tail, y, -1)):
        m = typeof(c).shape[0]
        if not m:
            continue
        # Row i is the element n - order + i; its coefficient in z[k] has index order - i + k.
        last = padded(v, 1, order - n, 0)
        index = lags - 1
        matrix = pnp.take(lax.concatenate([c, zero], 0), np.where(index < m, index, m), axis=0)
        part = lax.dot_general(last, matrix, (((1,), (0,)), ((), ())), precision="highest")
        total = total + sign * part
    return total


def moving_sum(b: Any, x: Any) -> Any:
    """``sum(b[k] x[i - k])`` of rows ``[batch, n]``."""
    m, n = typeof(b).shape[0], typeof(x).shape[1]
    if m > _UNROLLED:
        full = by_transform(x, lax.reshape(b, (1, m)), "full", (1,))
        return lax.slice_in_dim(full, 0, n, axis=1)
    total: Any = None
    for k in range(min(m, max(n, 1))):
        coefficient = lax.slice_in_dim(b, k, k + 1, axis=0)
        part = padded(x, 1, k, -k) * lax.reshape(coefficient, (1, 1))
        total = part if total is None else total + part
    return total


def lfilter_zi(b: ArrayLike, a: ArrayLike) -> Array:
    """Initial state of `lfilter` for the steady response to a constant 1.

    Args:
      b, a: the coefficients, vectors or sequences of numbers.

    Returns:
      The state ``[max(len(a), len(b)) - 1]``, for the argument ``zi`` of `lfilter`.

    Raises:
      ValueError: if the coefficients are not vectors, or ``a[0]`` is zero.

    For another constant, multiply the state by it. It is differentiable.

    >>> lfilter_zi([0.5], [1.0, -0.5]).tolist()
    [0.5]
    """
    b, a = _coefficients("lfilter_zi", b, a)
    out: Array = _steady(b, a)
    return out


@compiled(name="lfilter_zi")
def _steady(b, a):
    return steady(*together(b, a))


def steady(b: Any, a: Any) -> Any:
    """The state for a constant 1: ``z[k] = sum over j > k of b[j] - a[j] y``."""
    b, a = pnp.ravel(b), pnp.ravel(a)
    first = lax.slice_in_dim(a, 0, 1, axis=0)
    b, a = b / first, a / first
    n = max(typeof(b).shape[0], typeof(a).shape[0])
    b, a = resized(b, 0, n), resized(a, 0, n)
    gain = pnp.sum(b, keepdims=True) / pnp.sum(a, keepdims=True)
    difference = lax.slice_in_dim(b - a * gain, 1, n, axis=0)
    return lax.cumsum(difference, 0, reverse=True)


def filtfilt(
    b: ArrayLike,
    a: ArrayLike,
    x: ArrayLike,
    axis: int = -1,
    padtype: str | None = "odd",
    padlen: int | None = None,
    method: str = "pad",
    irlen: int | None = None,
) -> Array:
    """Filter forward and backward, without a delay of phase.

    Args:
      b, a, x, axis: as in `lfilter`.
      padtype: the extension at both ends: ``"odd"``, ``"even"``, ``"constant"`` or None.
      padlen: the number of elements of the extension, by default ``3 * max(len(a), len(b))``.
      method: only ``"pad"``; Gustafsson's method is not available.
      irlen: only for Gustafsson's method; must be None.

    Returns:
      The filtered signals, of the shape of ``x``.

    Raises:
      ValueError: if the signal is not longer than the extension, or an option is unknown.

    >>> x = np.ones(20, np.float32)
    >>> [round(float(v), 4) for v in filtfilt([0.5], [1.0, -0.5], x)[:3]]
    [1.0, 1.0, 1.0]
    """
    b, a = _coefficients("filtfilt", b, a)
    if method != "pad" or irlen is not None:
        raise ValueError(f"filtfilt: only method='pad' is available, got {method!r}; omit irlen")
    x = as_operand("filtfilt", x)
    default = 3 * max(typeof(a).size, typeof(b).size)
    position, width = _extension("filtfilt", x, axis, padtype, padlen, default)
    out: Array = _both_ways(b, a, x, axis=position, kind=padtype, width=width)
    return out


def _extension(name, x, axis, padtype, padlen, default) -> tuple[int, int]:
    check_mode(name, padtype, _PADS, "padtype")  # type: ignore[arg-type]
    position = one_axis(axis, typeof(x).ndim)
    width = 0 if padtype is None else default if padlen is None else int(padlen)
    n = typeof(x).shape[position]
    if width < 0 or n <= width:
        raise ValueError(
            f"{name}: the signal must be longer than padlen={width}, got {n} elements: pass a "
            "smaller padlen, at least 0."
        )
    return position, width


@compiled("axis", "kind", "width", name="filtfilt")
def _both_ways(b, a, x, *, axis, kind, width):
    def both(b, a, x):
        state = lax.expand_dims(steady(b, a), (0,))
        run = lambda v, first: filtered(b, a, v, first * state)[0]
        return _forward_backward(x, axis, kind, width, run)

    return _precisely(both, *together(b, a, x))


def _forward_backward(x, axis, kind, width, run):
    rows = pnp.moveaxis(x, axis, -1)
    shape = typeof(rows).shape
    rows = lax.reshape(rows, (int(np.prod(shape[:-1])), shape[-1]))
    if kind is not None:
        rows = extended(rows, kind, width)
    for _ in range(2):
        rows = run(rows, lax.slice_in_dim(rows, 0, 1, axis=1))
        rows = lax.rev(rows, (1,))
    rows = lax.slice_in_dim(rows, width, width + shape[-1], axis=1)
    return pnp.moveaxis(lax.reshape(rows, shape), -1, axis)


def _sections(name: str, sos: Any) -> Any:
    sos = as_operand(name, sos)
    shape = typeof(sos).shape
    if shape == (6,):
        return pnp.reshape(sos, (1, 6))
    if len(shape) != 2 or shape[1] != 6 or not shape[0]:
        raise ValueError(f"{name}: sos must have shape (sections, 6), got {shape}")
    return sos


def sosfilt(
    sos: ArrayLike | Sequence[Sequence[ArrayLike]],
    x: ArrayLike,
    axis: int = -1,
    zi: ArrayLike | None = None,
) -> Any:
    """Filter with a cascade of sections of second order.

    Args:
      sos: coefficients ``[sections, 6]``: ``b`` and ``a`` of each section; or ``[6]`` of one.
      x: the signals.
      axis: the axis of time.
      zi: the initial states ``[sections, ..., 2]``, with 2 in place of the axis of time.

    Returns:
      the filtered signals; with ``zi`` a tuple of them and the final states.

    Raises:
      ValueError: if a shape does not match.

    The precision is as in `lfilter`.

    >>> sosfilt([[1.0, 0, 0, 1.0, -0.5, 0]], np.float32([1, 0, 0, 1])).tolist()
    [1.0, 0.5, 0.25, 1.125]
    """
    sos = _sections("sosfilt", sos)
    x = as_operand("sosfilt", x)
    position = one_axis(axis, typeof(x).ndim)
    if zi is None:
        return _cascade(sos, x, axis=position)
    zi = as_operand("sosfilt", zi)
    expected = [typeof(sos).shape[0], *typeof(x).shape]
    expected[position + 1] = 2
    if typeof(zi).shape != tuple(expected):
        raise ValueError(f"sosfilt: zi must have shape {tuple(expected)}, got {typeof(zi).shape}")
    return _cascade_from(sos, x, zi, axis=position)


def _section(sos, k):
    row = lax.index_in_dim(sos, k, 0, keepdims=False)
    return lax.slice_in_dim(row, 0, 3, axis=0), lax.slice_in_dim(row, 3, 6, axis=0)


@compiled("axis", name="sosfilt")
def _cascade(sos, x, *, axis):
    sos, x = together(sos, x)
    rows = pnp.moveaxis(x, axis, -1)
    shape = typeof(rows).shape
    flat = lax.reshape(rows, (math.prod(shape[:-1]), shape[-1]))
    y = _precisely(lambda sos, x: _filtered_by_all(sos, x, None)[0], sos, flat)
    return pnp.moveaxis(lax.reshape(y, shape), -1, axis)


@compiled("axis", name="sosfilt")
def _cascade_from(sos, x, zi, *, axis):
    sos, x, zi = together(sos, x, zi)
    rows, zi = pnp.moveaxis(x, axis, -1), pnp.moveaxis(zi, axis + 1, -1)
    shape, states = typeof(rows).shape, typeof(zi).shape
    batch = math.prod(shape[:-1])
    flat, zi = lax.reshape(rows, (batch, shape[-1])), lax.reshape(zi, (states[0], batch, 2))
    y, zi = _precisely(_filtered_by_all, sos, flat, zi)
    y = pnp.moveaxis(lax.reshape(y, shape), -1, axis)
    return y, pnp.moveaxis(lax.reshape(zi, states), -1, axis + 1)


def _filtered_by_all(sos, x, zi):
    """Rows ``[batch, n]`` through all sections, and the final states for initial ones, both
    ``[sections, batch, 2]``.

    Many samples are divided into blocks. The responses of a block and of its final states to unit
    samples and to unit states are matrices, so a block is a product, and the states between blocks
    are one recurrence for all sections.
    """
    n, sections = typeof(x).shape[1], typeof(sos).shape[0]
    size = max(32, 2 * sections)
    if sections == 1 or n < 8 * size:
        return _section_by_section(sos, x, zi)
    width = size + 2 * sections
    units = pnp.eye(width, dtype=typeof(x).dtype)
    samples, states = lax.slice_in_dim(units, 0, size, axis=1), units[:, size:]
    states = lax.transpose(lax.reshape(states, (width, sections, 2)), (1, 0, 2))
    outputs, ends = _section_by_section(sos, samples, states)
    ends = lax.reshape(lax.transpose(ends, (1, 0, 2)), (width, 2 * sections))

    batch, count = typeof(x).shape[0], n // size
    blocks = lax.reshape(lax.slice_in_dim(x, 0, count * size, axis=1), (batch, count, size))
    if zi is None:
        zi = lax.full((sections, batch, 2), 0, typeof(x).dtype)
    zi = lax.reshape(lax.transpose(zi, (1, 0, 2)), (batch, 1, 2 * sections))
    before = states_after(times(blocks, ends[:size]), ends[size:], zi)
    y = times(blocks, outputs[:size]) + times(
        lax.slice_in_dim(before, 0, count, axis=1), outputs[size:]
    )
    last = lax.reshape(before[:, count], (batch, sections, 2))
    rest, last = _section_by_section(
        sos, lax.slice_in_dim(x, count * size, n, axis=1), lax.transpose(last, (1, 0, 2))
    )
    return lax.concatenate([lax.reshape(y, (batch, count * size)), rest], 1), last


def _section_by_section(sos, x, zi):
    states = []
    for k in range(typeof(sos).shape[0]):
        state = None if zi is None else lax.index_in_dim(zi, k, 0, keepdims=False)
        x, state = filtered(*_section(sos, k), x, state)
        states.append(state)
    return x, None if zi is None else pnp.stack(states)


def sosfilt_zi(sos: ArrayLike | Sequence[Sequence[ArrayLike]]) -> Array:
    """Initial states of `sosfilt` for the steady response to a constant 1.

    Args:
      sos: coefficients ``[sections, 6]``: ``b`` and ``a`` of each section.

    Returns:
      The states ``[sections, 2]``, for the argument ``zi`` of `sosfilt`.

    Raises:
      ValueError: if the shape is not ``[sections, 6]``.

    For another constant, multiply the states by it. It is differentiable.

    >>> sosfilt_zi([[0.5, 0, 0, 1.0, -0.5, 0]]).tolist()
    [[0.5, 0.0]]
    """
    out: Array = _steady_sections(_sections("sosfilt_zi", sos))
    return out


@compiled(name="sosfilt_zi")
def _steady_sections(sos):
    (sos,) = together(sos)
    return pnp.stack(_section_states(sos))


def _section_states(sos):
    scale: Any = None
    states = []
    for k in range(typeof(sos).shape[0]):
        b, a = _section(sos, k)
        state = steady(b, a)
        gain = pnp.sum(b, keepdims=True) / pnp.sum(a, keepdims=True)
        states.append(state if scale is None else state * scale)
        scale = gain if scale is None else scale * gain
    return states


def sosfiltfilt(
    sos: ArrayLike | Sequence[Sequence[ArrayLike]],
    x: ArrayLike,
    axis: int = -1,
    padtype: str | None = "odd",
    padlen: int | None = None,
) -> Array:
    """Filter forward and backward with sections of second order, without a delay of phase.

    Args:
      sos: coefficients ``[sections, 6]``: ``b`` and ``a`` of each section.
      x, axis, padtype: as in `filtfilt`.
      padlen: the number of elements of the extension; by default ``3 * (2 * sections + 1)``, less 3
        for each section with a zero and a pole at 0, if the coefficients are not traced.

    Returns:
      The filtered signals, of the shape of ``x``.

    Raises:
      ValueError: as `filtfilt`, and if the shape of ``sos`` is not ``[sections, 6]``.

    >>> x = np.ones(20, np.float32)
    >>> [round(float(v), 4) for v in sosfiltfilt([[0.5, 0, 0, 1.0, -0.5, 0]], x)[:3]]
    [1.0, 1.0, 1.0]
    """
    sos = _sections("sosfiltfilt", sos)
    x = as_operand("sosfiltfilt", x)
    default = 2 * typeof(sos).shape[0] + 1
    if isinstance(sos, np.ndarray):
        default -= int(min((sos[:, 2] == 0).sum(), (sos[:, 5] == 0).sum()))
    position, width = _extension("sosfiltfilt", x, axis, padtype, padlen, 3 * default)
    out: Array = _cascade_both_ways(sos, x, axis=position, kind=padtype, width=width)
    return out


@compiled("axis", "kind", "width", name="sosfiltfilt")
def _cascade_both_ways(sos, x, *, axis, kind, width):
    def both(sos, x):
        states = _section_states(sos)
        start = lambda first: pnp.stack([first * v[None] for v in states])
        run = lambda rows, first: _filtered_by_all(sos, rows, start(first))[0]
        return _forward_backward(x, axis, kind, width, run)

    return _precisely(both, *together(sos, x))
