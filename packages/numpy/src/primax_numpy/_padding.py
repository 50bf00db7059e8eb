"""Padding of arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from primax_core import lax, vmap
from primax_core.errors import ConcretizationTypeError
from primax_core.extend import Array, FastPath, Tracer, dtypes
from primax_core.extend.dimensions import index, is_static
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike

from ._checks import check_arrays, one_axis
from ._creation import asarray
from ._functions import compiled
from ._taking import rows_at

Widths = tuple[tuple[int, int], ...]

_OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "constant": {"constant_values": 0},
    "edge": {},
    "empty": {},
    "linear_ramp": {"end_values": 0},
    "maximum": {"stat_length": None},
    "mean": {"stat_length": None},
    "median": {"stat_length": None},
    "minimum": {"stat_length": None},
    "reflect": {"reflect_type": "even"},
    "symmetric": {"reflect_type": "even"},
    "wrap": {},
}


def pad(
    array: ArrayLike,
    pad_width: ArrayLike | Sequence[Any] | Mapping[int, Any],
    mode: str | Callable[..., Any] = "constant",
    **kwargs: Any,
) -> Array:
    """An array padded before and after its elements along each axis.

    Args:
      pad_width: a number, ``(before, after)``, or one of these for each axis; or a dictionary of
          them by axis. It must be static.
      mode: the padding mode:

        - ``"constant"``: ``constant_values`` (0), in the same forms as ``pad_width``;
        - ``"edge"``: the elements at the ends; ``"empty"``: unspecified values;
        - ``"linear_ramp"``: a linear ramp from the ends to ``end_values`` (0);
        - ``"maximum"``, ``"minimum"``, ``"mean"``, ``"median"`` of the ``stat_length`` elements
          at each end (of all by default);
        - ``"reflect"``, ``"symmetric"``: the elements in reversed order, without and with the edge
        element; ``reflect_type="odd"`` also reflects their values;
        - ``"wrap"``: the elements from the opposite end;
        - a function ``(vector, (before, after), axis, options) -> vector``, applied to all vectors
        along each axis in turn, after padding with zeros.

    Raises:
      ValueError: for negative widths, widths that do not match the axes, options of another mode,
          and modes that cannot extend an empty axis.
      NotImplementedError: for an unknown mode.

    >>> pad(np.array([1, 2, 3]), (1, 2), mode="edge")
    Array([1, 1, 2, 3, 3, 3], dtype=int32)
    """
    key = pad_width if not kwargs and mode == "constant" and _plain(pad_width) else None
    if key is not None:
        fast: Array | None = _padding.lookup(key, array)
        if fast is not None:
            return fast
    check_arrays("pad", array)
    x = asarray(array)
    widths = _widths(pad_width, x.ndim)
    if key is not None:
        return _padding.call(key, (x,), widths=widths)
    if callable(mode):
        return _padded_by(x, widths, mode, kwargs)
    return _padded(x, widths, mode, kwargs)


def _padded(x: Array, widths: Widths, mode: Any, kwargs: dict[str, Any]) -> Array:
    if mode not in _OPTIONS:
        raise NotImplementedError(
            f"pad: Unimplemented padding mode {mode!r}: use a function or one of {list(_OPTIONS)}"
        )
    unknown = kwargs.keys() - _OPTIONS[mode].keys()
    if unknown:
        raise ValueError(f"pad: unsupported keyword arguments for mode {mode!r}: {unknown}")
    options = {**_OPTIONS[mode], **kwargs}
    if mode not in ("constant", "empty"):
        for n, w in zip(x.shape, widths):
            if not n and any(w):
                raise ValueError(f"pad: Cannot apply {mode!r} padding to empty axis")
    if mode == "empty":
        mode, options = "constant", {"constant_values": 0}
    if mode in ("constant", "linear_ramp"):
        name = "constant_values" if mode == "constant" else "end_values"
        check_arrays("pad", *_leaves(options[name]))
        values = _pairs(name, options[name], x.ndim)
        return _TO_VALUES[mode](x, values, widths=widths)
    if "stat_length" in options:
        return _by_statistics(x, widths=widths, kind=mode, lengths=_lengths(options, x.shape))
    odd = _is_odd(options.get("reflect_type", "even"))
    if odd:
        return _reflected_odd(x, widths=widths, skip=mode == "reflect")
    return _from_elements(x, widths=widths, mode=mode)


def _plain(width: Any) -> bool:
    """True if a width consists of integers and tuples."""
    if type(width) is tuple:
        return all(type(w) is int or _plain(w) for w in width)
    return type(width) is int


def _leaves(x: Any) -> list[Any]:
    return [y for v in x for y in _leaves(v)] if isinstance(x, (list, tuple)) else [x]


def _is_odd(kind: Any) -> bool:
    if kind not in ("even", "odd"):
        raise ValueError(f"pad: reflect_type must be 'even' or 'odd', got {kind!r}")
    return bool(kind == "odd")


def _widths(pad_width: Any, ndim: int) -> Widths:
    if isinstance(pad_width, dict):
        by_axis = {one_axis(axis, ndim): w for axis, w in pad_width.items()}
        pad_width = [_widths(by_axis.get(i, 0), 1)[0] for i in range(ndim)]
    for w in _leaves(pad_width):
        if isinstance(w, Tracer):
            raise ConcretizationTypeError(
                w, "pad: pad_width must be static, because it determines the shape."
            )
    if not is_static(_leaves(pad_width)):
        return _symbolic_widths(pad_width, ndim)
    array = np.asarray(pad_width)
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"pad: `pad_width` must be of integral type, got {pad_width!r}.")
    _check_fit("pad_width", array.shape, ndim)
    full = np.broadcast_to(array.astype(np.int64), (ndim, 2)).tolist()
    if any(w < 0 for pair in full for w in pair):
        raise ValueError(f"pad: widths can't contain negative values, got {pad_width!r}")
    return tuple([(a, b) for a, b in full])


def _symbolic_widths(pad_width: Any, ndim: int) -> Widths:
    """Widths with symbolic dimensions."""
    array = np.empty(np.shape(pad_width), object)
    array[...] = pad_width
    _check_fit("pad_width", array.shape, ndim)
    full = np.broadcast_to(array, (ndim, 2)).tolist()
    widths = tuple([(index(a), index(b)) for a, b in full])
    if any(w < 0 for pair in widths for w in pair):
        raise ValueError(f"pad: widths can't contain negative values, got {pad_width!r}")
    return widths


def _check_fit(name: str, shape: tuple[int, ...], ndim: int) -> None:
    if shape not in ((), (1,), (2,), (1, 2), (ndim, 2)):
        raise ValueError(
            f"pad: {name} with nd={ndim} has unsupported shape {shape}: pass a number, (before, "
            f"after), or {ndim} pairs"
        )


def _pairs(name: str, values: Any, ndim: int) -> Any:
    """Values before and after each axis as nested lists of numbers and arrays."""
    array = values if isinstance(values, (list, tuple)) else asarray(values)
    rank_1 = array.shape if isinstance(array, Array) else _nested_shape(array)
    _check_fit(name, rank_1, ndim)
    if isinstance(array, Array):
        rows = [array[i] for i in range(len(array))] if array.ndim else array
    else:
        rows = array
    if rank_1 == ():
        return [[rows, rows]] * ndim
    if len(rank_1) == 1:
        return [[rows[0], rows[-1]]] * ndim
    pairs = [[r[0], r[1]] for r in rows]
    return pairs * ndim if len(pairs) == 1 and ndim != 1 else pairs


def _nested_shape(values: Any) -> tuple[int, ...]:
    if isinstance(values, (list, tuple)):
        return (len(values), *(_nested_shape(values[0]) if values else ()))
    return np.shape(values) if not isinstance(values, Array) else values.shape


def _lengths(options: dict[str, Any], shape: tuple[int, ...]) -> Widths:
    stat_length = options["stat_length"]
    if stat_length is None:
        return tuple([(n, n) for n in shape])
    widths = _widths(stat_length, len(shape))
    if any(w == 0 for pair in widths for w in pair):
        raise ValueError("pad: stat_length of 0 yields no value for padding")
    return tuple([(min(a, n), min(b, n)) for (a, b), n in zip(widths, shape)])


def _padded_by(x: Array, widths: Widths, mode: Callable[..., Any], options: Any) -> Array:
    """Pad with zeros, then map a function over all vectors along each axis."""
    out = _constant(x, [[0, 0]] * x.ndim, widths=widths)
    for axis, width in enumerate(widths):
        fun = partial(_vector, mode=mode, width=width, axis=axis, options=options)
        for _ in range(x.ndim - 1):
            fun = vmap(fun, 0)
        rows = lax.transpose(out, (*[i for i in range(x.ndim) if i != axis], axis))
        order = list(range(x.ndim - 1))
        order.insert(axis, x.ndim - 1)
        out = lax.transpose(fun(rows), tuple(order))
    return out


def _vector(v: Array, mode: Any, width: tuple[int, int], axis: int, options: Any) -> Array:
    out = mode(v, width, axis, options)
    if out is None or np.shape(out) != v.shape:
        raise TypeError(
            "pad: the function must return the padded vector, with the same shape "
            f"{v.shape} (arrays are immutable), got {type(out)}"
        )
    return asarray(out)


# Modes


@compiled("widths", name="pad")
def _with_zeros(x, *, widths):
    zero = lax.full_like(x, 0, shape=())
    return lax.pad(x, zero, [(a, b, 0) for a, b in widths]) if widths else x


_padding: Final = FastPath(_with_zeros)


@compiled("widths", name="pad")
def _constant(x, values, *, widths):
    aval = typeof(x)
    same = all(v is values[0][0] for pair in values for v in pair)
    if not widths:
        return x
    if same:
        fill = lax.convert_element_type(values[0][0], aval.dtype)
        return lax.pad(x, fill, [(a, b, 0) for a, b in widths])
    for axis, (pair, width) in enumerate(zip(values, widths)):
        for end in (0, 1):
            fill = lax.convert_element_type(pair[end], aval.dtype)
            config = [(0, 0, 0)] * aval.ndim
            config[axis] = (0, width[1], 0) if end else (width[0], 0, 0)
            x = lax.pad(x, fill, config)
    return x


@compiled("widths", name="pad")
def _ramp(x, values, *, widths):
    dtype = typeof(x).dtype
    for axis, (pair, width) in enumerate(zip(values, widths)):
        n = typeof(x).shape[axis]
        sides = []
        for end, count in enumerate(width):
            edge = (
                lax.slice_in_dim(x, n - 1, n, axis=axis)
                if end
                else lax.slice_in_dim(x, 0, 1, axis=axis)
            )
            sides.append(_ramp_side(pair[end], edge, count, axis, dtype, bool(end)))
        x = lax.concatenate([sides[0], x, sides[1]], axis)
    return x


def _ramp_side(value, edge, count: int, axis: int, dtype: Any, after: bool):
    """``count`` numbers from ``value`` up to, not including, ``edge``; reversed if ``after``."""
    exact = dtypes.issubdtype(dtype, np.inexact)
    kind = dtype if exact else dtypes.default_float()
    shape = list(typeof(edge).shape)
    shape[axis] = count
    start = lax.broadcast_in_dim(lax.convert_element_type(value, kind), tuple(shape), ())
    real = dtypes.finfo(kind).dtype
    steps = lax.broadcasted_iota(real, tuple(shape), axis) / np.asarray(max(count, 1), real)[()]
    steps = lax.convert_element_type(steps, kind)
    goal = lax.convert_element_type(edge, kind)
    goal = lax.broadcast_in_dim(goal, tuple(shape), tuple(range(len(shape))))
    out = start + (goal - start) * steps
    if not exact:
        out = lax.floor(out)
    out = lax.convert_element_type(out, dtype)
    return lax.rev(out, (axis,)) if after else out


_TO_VALUES: Final[dict[str, Callable[..., Any]]] = {"constant": _constant, "linear_ramp": _ramp}


@compiled("widths", "kind", "lengths", name="pad")
def _by_statistics(x, *, widths, kind, lengths):
    dtype = typeof(x).dtype
    for axis, (width, length) in enumerate(zip(widths, lengths)):
        n = typeof(x).shape[axis]
        sides = []
        for end, count in enumerate(width):
            first = n - length[1] if end else 0
            near = lax.slice_in_dim(x, first, first + length[end], axis=axis)
            value = _statistic(kind, near, axis)
            if dtypes.issubdtype(dtype, np.integer) and kind in ("mean", "median"):
                value = lax.round(value, lax.RoundingMethod.TO_NEAREST_EVEN)
            value = lax.convert_element_type(value, dtype)
            shape = list(typeof(x).shape)
            shape[axis] = count
            operand_axes = tuple([i for i in range(len(shape)) if i != axis])
            sides.append(lax.broadcast_in_dim(value, tuple(shape), operand_axes))
        x = lax.concatenate([sides[0], x, sides[1]], axis)
    return x


def _statistic(kind: str, x, axis: int):
    aval = typeof(x)
    if kind == "maximum":
        return lax.reduce_max(x, (axis,))
    if kind == "minimum":
        return lax.reduce_min(x, (axis,))
    n = aval.shape[axis]
    wide = x if dtypes.issubdtype(aval.dtype, np.inexact) else lax.convert_element_type(
        x, dtypes.default_float()
    )  # fmt: skip
    if kind == "mean":
        return lax.reduce_sum(wide, (axis,)) / np.asarray(n, typeof(wide).dtype)[()]
    ordered = lax.sort(wide, dimension=axis)
    middle = lax.slice_in_dim(ordered, (n - 1) // 2, n // 2 + 1, axis=axis)
    count = np.asarray(middle.shape[axis], typeof(wide).dtype)[()]
    return lax.reduce_sum(middle, (axis,)) / count


@compiled("widths", "mode", name="pad")
def _from_elements(x, *, widths, mode):
    for axis, (before, after) in enumerate(widths):
        n = typeof(x).shape[axis]
        if not before and not after:
            continue
        parts = _side(x, n, before, axis, mode, False), x, _side(x, n, after, axis, mode, True)
        x = lax.concatenate(parts, axis)
    return x


def _side(x, n: int, count: int, axis: int, mode: str, after: bool):
    """The elements on one side of the padded array."""
    if mode == "edge":
        edge = lax.slice_in_dim(x, n - 1 if after else 0, n if after else 1, axis=axis)
        shape = list(typeof(x).shape)
        shape[axis] = count
        return lax.broadcast_in_dim(edge, tuple(shape), tuple(range(len(shape))))
    if mode == "wrap":
        if count <= n:
            first = 0 if after else n - count
            return lax.slice_in_dim(x, first, first + count, axis=axis)
        places = np.arange(n, n + count) % n if after else np.arange(-count, 0) % n
        return rows_at(x, places.astype(np.int32), axis=axis)
    skip = int(mode == "reflect" and n > 1)
    if count + skip <= n:
        first = n - count - skip if after else skip
        return lax.rev(lax.slice_in_dim(x, first, first + count, axis=axis), (axis,))
    period = 2 * (n - 1) if mode == "reflect" and n > 1 else 2 * n
    places = np.arange(n, n + count) if after else np.arange(-count, 0)
    places = places % period
    mirror = period - skip - (1 - skip)
    if mode == "reflect" and n > 1:
        places = np.where(places < n, places, period - places)
    elif mode == "reflect":
        places = np.zeros_like(places)
    else:
        places = np.where(places < n, places, mirror - places)
    return rows_at(x, places.astype(np.int32), axis=axis)


@compiled("widths", "skip", name="pad")
def _reflected_odd(x, *, widths, skip):
    """Odd reflection: elements and values are reflected about the end points.

    For the last index ``L`` and the array ``f``, the extension satisfies
    ``f(-i) = 2 f(0) - f(i)`` and ``f(L + i) = 2 f(L) - f(L - i)``, thus
    ``f(i + 2 L) = f(i) + 2 f(L) - 2 f(0)``: every element is ``± f(j) + 2 m f(L) - 2 k f(0)``.
    """
    for axis, (before, after) in enumerate(widths):
        n = typeof(x).shape[axis]
        if not before and not after:
            continue
        if n == 1 and skip:
            x = _side_by_edges(x, before, after, axis)
            continue
        period = 2 * (n - 1) if skip else 2 * n
        places = np.arange(-before, n + after)
        k, q = np.divmod(places, period)
        reflected = q >= n
        rows = np.where(reflected, period - q - (not skip), q)
        sign, last, first = np.where(reflected, -1, 1), 2 * (k + reflected), -2 * k
        ends = lax.slice_in_dim(x, 0, 1, axis=axis), lax.slice_in_dim(x, n - 1, n, axis=axis)
        out = _times(rows_at(x, rows.astype(np.int32), axis=axis), sign, axis)
        shape = out.shape
        for end, weights in zip(ends, (first, last)):
            spread = lax.broadcast_in_dim(end, shape, tuple(range(len(shape))))
            out = lax.add(out, _times(spread, weights, axis))
        x = out
    return x


def _side_by_edges(x, before: int, after: int, axis: int):
    parts = _side(x, 1, before, axis, "edge", False), x, _side(x, 1, after, axis, "edge", True)
    return lax.concatenate(parts, axis)


def _times(x, weights: np.ndarray, axis: int):
    aval = typeof(x)
    factors = lax.convert_element_type(weights.astype(np.int32), aval.dtype)
    return lax.mul(x, lax.broadcast_in_dim(factors, aval.shape, (axis,)))
