"""Reductions over axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from primax_core import lax
from primax_core.extend import Array, ShortRoads, dtypes, library_function, typeof

from ._checks import axes_of, check_arrays, check_out, one_axis, wanted_dtype

_Op: TypeAlias = Callable[..., Any]
_Reduction: TypeAlias = Callable[..., Array]


def _kept(out: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
    return lax.expand_dims(out, axes) if keepdims and axes else out


def _strong(x: Any) -> Any:
    aval = typeof(x)
    return lax.convert_element_type(x, aval.dtype) if aval.weak_type else x


def _short_key(axis: Any, keepdims: Any) -> Any:
    """A key for everyday arguments: no axis or one, and a flag."""
    simple = (axis is None or type(axis) is int) and type(keepdims) is bool
    return (axis, keepdims) if simple else None


def _int_sum_dtype(dtype: Any) -> Any:
    """Integers are summed in the default integer of their signedness."""
    if dtype == np.bool_:
        return dtypes.default_int()
    if dtypes.issubdtype(dtype, np.unsignedinteger):
        wide = dtypes.default_uint()
    elif dtypes.issubdtype(dtype, np.integer):
        wide = dtypes.default_int()
    else:
        return dtype
    return dtype if dtype.itemsize >= wide.itemsize else wide


def _masked(x: Any, where: Any, fill: Any) -> Any:
    """``x`` where the mask holds, elsewhere a scalar."""
    if where is None:
        return x
    aval = typeof(x)
    filled = lax.full(aval.shape, lax.convert_element_type(fill, aval.dtype))
    return lax.select(_spread(where, aval.shape), x, filled)


def _spread(mask: Any, shape: tuple[int, ...]) -> Any:
    """A mask broadcast to a shape."""
    rank = typeof(mask).ndim
    mask = lax.convert_element_type(mask, np.bool_)
    return lax.broadcast_in_dim(mask, shape, tuple(range(len(shape) - rank, len(shape))))


def _sum_like(name: str, reduce: _Op, combine: _Op, neutral: int, doc: str) -> _Reduction:
    def general(a, initial=None, where=None, *, axes, dtype, keepdims):
        x = lax.convert_element_type(a, dtype)
        out = reduce(_masked(x, where, neutral), axes)
        if initial is not None:
            out = combine(out, lax.convert_element_type(initial, typeof(out).dtype))
        return _kept(out, axes, keepdims)

    general.__name__ = name
    inline = library_function(general, static_argnames=("axes", "dtype", "keepdims"))
    roads = ShortRoads(inline)

    def function(
        a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False,
        initial: Any = None, where: Any = None, promote_integers: bool = True,
    ) -> Array:  # fmt: skip
        simple = initial is where is dtype is out is None and promote_integers
        key = _short_key(axis, keepdims) if simple else None
        if key is not None:
            found: Array | None = roads.quick(key, a)
            if found is not None:
                return found
        check_arrays(name, a)
        check_out(name, out)
        aval = typeof(a)
        wanted = wanted_dtype(dtype, name)
        if wanted is None:
            wanted = _int_sum_dtype(aval.dtype) if promote_integers else aval.dtype
        static = {"axes": axes_of(axis, aval.ndim), "dtype": wanted, "keepdims": bool(keepdims)}
        if key is not None:
            return roads.slow(key, (a,), **static)
        return inline(a, initial, where, **static)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


sum: _Reduction = _sum_like(
    "sum", lax.reduce_sum, lax.add, 0,
    "Sum over axes (all by default). Integers are summed in the default integer type.",
)  # fmt: skip
prod: _Reduction = _sum_like(
    "prod", lax.reduce_prod, lax.mul, 1,
    "Product over axes (all by default). Integers are multiplied in the default integer type.",
)  # fmt: skip


def _extreme(name: str, reduce: _Op, combine: _Op, doc: str) -> _Reduction:
    def general(a, initial=None, where=None, *, axes, keepdims):
        x = _strong(a)
        out = reduce(_masked(x, where, initial), axes)
        if initial is not None:
            out = combine(out, lax.convert_element_type(initial, typeof(out).dtype))
        return _kept(out, axes, keepdims)

    general.__name__ = name
    inline = library_function(general, static_argnames=("axes", "keepdims"))
    roads = ShortRoads(inline)

    def function(
        a: Any, axis: Any = None, out: None = None, keepdims: bool = False, initial: Any = None,
        where: Any = None,
    ) -> Array:  # fmt: skip
        key = _short_key(axis, keepdims) if initial is where is out is None else None
        if key is not None:
            found: Array | None = roads.quick(key, a)
            if found is not None:
                return found
        check_arrays(name, a)
        check_out(name, out)
        aval = typeof(a)
        axes = axes_of(axis, aval.ndim)
        if initial is None:
            if where is not None:
                raise ValueError(
                    f"reduction operation {name} does not have an identity, so to use a where "
                    "mask one has to specify 'initial'"
                )
            if 0 in [aval.shape[i] for i in axes]:
                raise ValueError(
                    f"zero-size array to reduction operation {name} which has no identity"
                )
        if key is not None:
            return roads.slow(key, (a,), axes=axes, keepdims=bool(keepdims))
        return inline(a, initial, where, axes=axes, keepdims=bool(keepdims))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


max: _Reduction = _extreme(
    "max", lax.reduce_max, lax.max, "Largest element over axes; NaN if one is NaN."
)
min: _Reduction = _extreme(
    "min", lax.reduce_min, lax.min, "Smallest element over axes; NaN if one is NaN."
)


def _truth(name: str, reduce: _Op, doc: str) -> _Reduction:
    def general(a, *, axes, keepdims):
        x = a
        if typeof(x).dtype != np.bool_:
            x = lax.ne(x, np.zeros((), typeof(x).dtype)[()])
        return _kept(reduce(x, axes), axes, keepdims)

    general.__name__ = name
    inline = library_function(general, static_argnames=("axes", "keepdims"))

    def function(a: Any, axis: Any = None, out: None = None, keepdims: bool = False) -> Array:
        check_arrays(name, a)
        check_out(name, out)
        return inline(a, axes=axes_of(axis, typeof(a).ndim), keepdims=bool(keepdims))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


all: _Reduction = _truth("all", lax.reduce_and, "Whether all elements are true, over axes.")
any: _Reduction = _truth("any", lax.reduce_or, "Whether some element is true, over axes.")


def _index_of(name: str, op: _Op, doc: str) -> _Reduction:
    def general(a, *, axis, keepdims):
        x, shape = a, typeof(a).shape
        if axis is None:
            x = lax.reshape(x, (typeof(a).size,))
            out = op(x, 0, dtypes.default_int())
            return lax.reshape(out, (1,) * len(shape)) if keepdims else out
        return _kept(op(x, axis, dtypes.default_int()), (axis,), keepdims)

    general.__name__ = name
    inline = library_function(general, static_argnames=("axis", "keepdims"))

    def function(
        a: Any, axis: int | None = None, out: None = None, keepdims: bool | None = None
    ) -> Array:
        check_arrays(name, a)
        check_out(name, out)
        aval = typeof(a)
        found = None if axis is None else one_axis(axis, aval.ndim)
        if not (aval.size if found is None else aval.shape[found]):
            raise ValueError(f"attempt to get {name} of an empty sequence")
        return inline(a, axis=found, keepdims=bool(keepdims))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


argmax: _Reduction = _index_of(
    "argmax", lax.argmax, "Index of the largest element; the first NaN wins."
)
argmin: _Reduction = _index_of(
    "argmin", lax.argmin, "Index of the smallest element; the first NaN wins."
)


def _float_of(dtype: Any) -> Any:
    if dtypes.issubdtype(dtype, np.inexact):
        return dtype
    return dtypes.f64 if dtypes.itemsize_bits(dtype) == 64 else dtypes.f32


def _count(shape: tuple[int, ...], axes: tuple[int, ...]) -> int:
    n = 1
    for i in axes:
        n *= shape[i]
    return n


def _mean_of(a, *, axes, dtype, keepdims):
    n = _count(typeof(a).shape, axes)
    # Half precision is summed in float32 and rounded once.
    wide = dtypes.f32 if dtype in (dtypes.f16, dtypes.bf16) else dtype
    total = lax.reduce_sum(lax.convert_element_type(a, wide), axes)
    out = lax.div(total, np.asarray(n).astype(wide)[()])
    return _kept(lax.convert_element_type(out, dtype), axes, keepdims)


_mean_of.__name__ = "mean"
_mean = library_function(_mean_of, static_argnames=("axes", "dtype", "keepdims"))


def mean(
    a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False, *,
    where: Any = None,
) -> Array:  # fmt: skip
    """Arithmetic mean over axes (all by default); integers give floats."""
    check_arrays("mean", a)
    check_out("mean", out)
    aval = typeof(a)
    wanted = wanted_dtype(dtype, "mean") or _float_of(aval.dtype)
    axes = axes_of(axis, aval.ndim)
    if where is not None:
        mask = _spread(where, aval.shape)
        count = sum(mask, axes, dtype=wanted, keepdims=keepdims)
        return sum(a, axes, dtype=wanted, keepdims=keepdims, where=where) / count
    return _mean(a, axes=axes, dtype=wanted, keepdims=bool(keepdims))


def _var_of(a, *, axes, dtype, keepdims, ddof):
    n = _count(typeof(a).shape, axes)
    wide = dtypes.f32 if dtype in (dtypes.f16, dtypes.bf16) else dtype
    x = lax.convert_element_type(a, wide)
    centre = lax.expand_dims(lax.div(lax.reduce_sum(x, axes), np.asarray(n).astype(wide)[()]), axes)
    d = lax.sub(x, lax.broadcast_in_dim(centre, typeof(x).shape, tuple(range(typeof(x).ndim))))
    if dtypes.issubdtype(wide, np.complexfloating):
        squares = lax.real(lax.mul(d, lax.conj(d)))
    else:
        squares = lax.mul(d, d)
    total = lax.reduce_sum(squares, axes)
    real = typeof(total).dtype
    out = lax.div(total, np.asarray(n - ddof).astype(real)[()])
    final = real if dtypes.issubdtype(dtype, np.complexfloating) else dtype
    return _kept(lax.convert_element_type(out, final), axes, keepdims)


_var_of.__name__ = "var"
_var = library_function(_var_of, static_argnames=("axes", "dtype", "keepdims", "ddof"))


def var(
    a: Any, axis: Any = None, dtype: Any = None, out: None = None, ddof: int = 0,
    keepdims: bool = False,
) -> Array:  # fmt: skip
    """Variance over axes: mean squared distance from the mean, with divisor ``n - ddof``."""
    check_arrays("var", a)
    check_out("var", out)
    aval = typeof(a)
    wanted = wanted_dtype(dtype, "var") or _float_of(aval.dtype)
    return _var(a, axes=axes_of(axis, aval.ndim), dtype=wanted, keepdims=bool(keepdims), ddof=ddof)


def std(
    a: Any, axis: Any = None, dtype: Any = None, out: None = None, ddof: int = 0,
    keepdims: bool = False,
) -> Array:  # fmt: skip
    """Standard deviation over axes: square root of :func:`var`."""
    return lax.sqrt(var(a, axis, dtype, out, ddof, keepdims))
