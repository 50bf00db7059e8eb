"""Reads and writes of references with masks, and atomic updates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from primax_core import dtypes, lax
from primax_core.extend import (
    Primitive,
    ReadEffect,
    ShapedArray,
    WriteEffect,
    Zero,
    abstract,
    discharge,
    effects,
    expand,
    instantiate,
    is_zero,
    jvp,
    typeof,
)
from primax_core.extend.references import (
    INTEGER_ARRAY,
    DynamicSlice,
    RefView,
    addupdate_p,
    read_at,
    selected_shape,
    write_at,
)

from ._typing import ArrayLike, Index, Reference

masked_get_p: Final[Primitive] = Primitive("masked_get")
"""Read of a part of a reference; ``other`` where the mask is false, also beyond the reference."""

former_get_p: Final[Primitive] = Primitive("former_get")
"""`masked_get_p` of memory that need not have been written."""

masked_swap_p: Final[Primitive] = Primitive("masked_swap")
"""Write of the elements of a part of a reference whose mask is true; the old part is the result."""

masked_add_p: Final[Primitive] = Primitive("masked_add", multiple_results=True)
"""Addition at arrays of positions, all repeated ones included, where the mask is true."""


def load(
    ref: Reference,
    *,
    mask: ArrayLike | None = None,
    other: ArrayLike | None = None,
    cache_modifier: str | None = None,
    eviction_policy: str | None = None,
    volatile: bool = False,
) -> Any:
    """Read a reference or a view of it (``ref.at[index]``).

    Args:
      mask: Booleans that broadcast to the part. Masked-off elements are not read, so a slice may
        reach beyond the reference there.
      other: value of masked-off elements, a scalar or an array that broadcasts; 0 by default.
      cache_modifier, eviction_policy, volatile: hints for GPUs.

    Raises:
      TypeError: if the mask has no Booleans.
      ValueError: if the mask does not broadcast to the part, or ``other`` comes without a mask.

    >>> from primax_core import ds, new_ref
    >>> ref = new_ref(np.arange(4, dtype=np.float32))
    >>> load(ref.at[ds(np.int32(2), 4)], mask=np.arange(4) < 2)
    Array([2., 3., 0., 0.], dtype=float32)
    """
    view = _view(ref)
    if mask is None:
        if other is not None:
            raise ValueError("load takes `other` together with a mask")
        return view.get()
    mask = _mask(mask, view.shape)
    other = _broadcast(0 if other is None else other, view.shape, view.dtype, "`other`")
    return _bind(masked_get_p, view, mask, other)


def store(
    ref: Reference,
    val: ArrayLike,
    *,
    mask: ArrayLike | None = None,
    eviction_policy: str | None = None,
) -> None:
    """Write a reference or a view of it (``ref.at[index]``).

    Args:
      val: the new elements; a scalar is broadcast. They are converted only from weak types, such
        as those of Python's numbers, and not from floating-point numbers to integers.
      mask: Booleans that broadcast to the part; masked-off elements are not written.
      eviction_policy: a hint for GPUs.

    Raises the errors of `load`.
    """
    view = _view(ref)
    aval = typeof(val)
    weak = aval.weak_type and (
        dtypes.issubdtype(view.dtype, np.inexact) or not dtypes.issubdtype(aval.dtype, np.inexact)
    )
    if aval.dtype != view.dtype and not weak:
        raise ValueError(
            f"store writes {aval.dtype} into a reference of {view.dtype}: convert the value"
        )
    value = _broadcast(val, view.shape, view.dtype, "the value")
    if mask is None:
        view.set(value)
    else:
        mask = _mask(mask, view.shape)
        _bind(masked_swap_p, view, value, mask)


def former(ref: Any, *, mask: Any = None) -> Any:
    """The contents of a reference or a view of it, which need not have been written."""
    view = _view(ref)
    mask = _mask(True if mask is None else mask, view.shape)
    other = _broadcast(0, view.shape, view.dtype, "`other`")
    return _bind(former_get_p, view, mask, other)


def described(x: Any) -> str:
    """The type of an array, or the text of another object, for errors."""
    try:
        return str(typeof(x))
    except TypeError:
        return repr(x)


def _view(ref: Any, index: Any = ...) -> RefView:
    if isinstance(ref, RefView):
        view = ref if index is ... else RefView(ref, index)
    else:
        if not hasattr(ref, "at") or not hasattr(ref, "shape"):
            raise TypeError(f"expected a reference or a view of one, got {described(ref)}")
        view = RefView(ref, index)
    if isinstance(view.base, RefView):
        raise ValueError(
            "a view of a part that an array of positions selects cannot be masked: index the "
            "reference once"
        )
    return view


def _mask(mask: Any, shape: tuple[int, ...]) -> Any:
    dtype = typeof(mask).dtype
    if dtype != np.bool_:
        raise TypeError(f"a mask has Booleans, got {dtype}: compare, as in x > 0")
    return _broadcast(mask, shape, np.dtype(bool), "the mask")


def _broadcast(x: Any, shape: tuple[int, ...], dtype: Any, what: str) -> Any:
    x = lax.convert_element_type(x, dtype)
    if x.shape == shape:
        return x
    aligned = (1,) * (len(shape) - x.ndim) + x.shape
    if len(aligned) > len(shape) or any(a not in (1, n) for a, n in zip(aligned, shape)):
        raise ValueError(
            f"{what} of shape {x.shape} does not broadcast to the part's shape {shape}"
        )
    return lax.broadcast_in_dim(x, shape, tuple(range(len(shape) - x.ndim, len(shape))))


def _bind(prim: Primitive, view: RefView, *args: Any) -> Any:
    return prim.bind(view.base, *args, *view.operands, index=view.index)


# Rules


def _part(ref: Any, index: Any, operands: Sequence[Any]) -> ShapedArray:
    inner = ref.inner_aval
    return ShapedArray(selected_shape(inner.shape, index, operands), inner.dtype)


@former_get_p.rule(abstract)
@masked_get_p.rule(abstract)
def _get_abstract(ref: Any, mask: Any, other: Any, *operands: Any, index: Any) -> ShapedArray:
    return _part(ref, index, operands)


@masked_swap_p.rule(abstract)
def _swap_abstract(ref: Any, value: Any, mask: Any, *operands: Any, index: Any) -> ShapedArray:
    return _part(ref, index, operands)


@former_get_p.rule(effects)
@masked_get_p.rule(effects)
def _get_effects(*avals: Any, index: Any) -> frozenset[Any]:
    return frozenset({ReadEffect(0)})


@masked_swap_p.rule(effects)
def _swap_effects(*avals: Any, index: Any) -> frozenset[Any]:
    return frozenset({ReadEffect(0), WriteEffect(0)})


@former_get_p.rule(discharge)
@masked_get_p.rule(discharge)
def _get_discharge(refs: Any, args: Any, *, index: Any) -> Any:
    x, mask, other, *operands = args
    return lax.select(mask, _read_in_place(x, index, operands), other), [None] * len(args)


@masked_swap_p.rule(discharge)
def _swap_discharge(refs: Any, args: Any, *, index: Any) -> Any:
    x, value, mask, *operands = args
    old, new = _write_in_place(x, index, operands, value, mask)
    return old, [new, *[None] * (len(args) - 1)]


# In a kernel of tangents a reference is an operand with a tangent: the reference to the tangents.


@former_get_p.rule(jvp)
def _former_get_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, index: Any) -> Any:
    return _get_jvp(former_get_p, primals, tangents, index)


@masked_get_p.rule(jvp)
def _masked_get_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, index: Any) -> Any:
    return _get_jvp(masked_get_p, primals, tangents, index)


def _get_jvp(
    prim: Primitive, primals: Sequence[Any], tangents: Sequence[Any], index: Any
) -> tuple[Any, Any]:
    ref, mask, other, *operands = primals
    of_ref, _, of_other, *_ = tangents
    out = prim.bind(ref, mask, other, *operands, index=index)
    if not dtypes.issubdtype(out.dtype, np.inexact):
        return out, Zero.like(out)
    if not is_zero(of_ref):
        return out, prim.bind(of_ref, mask, instantiate(of_other), *operands, index=index)
    if is_zero(of_other):
        return out, Zero.like(out)
    return out, lax.select(mask, lax.full(out.shape, 0, out.dtype), of_other)


@masked_swap_p.rule(jvp)
def _masked_swap_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, index: Any
) -> tuple[Any, Any]:
    ref, value, mask, *operands = primals
    of_ref, of_value, *_ = tangents
    old = masked_swap_p.bind(ref, value, mask, *operands, index=index)
    if is_zero(of_ref):
        if not is_zero(of_value):
            raise NotImplementedError(
                "a value with a tangent is written into a reference without tangents"
            )
        return old, Zero.like(old)
    tangent = instantiate(of_value)
    return old, masked_swap_p.bind(of_ref, tangent, mask, *operands, index=index)


@masked_add_p.rule(abstract)
def _add_abstract(ref: Any, value: Any, mask: Any, *operands: Any, index: Any) -> list[Any]:
    return []


@masked_add_p.rule(effects)
def _add_effects(*avals: Any, index: Any) -> frozenset[Any]:
    return frozenset({ReadEffect(0), WriteEffect(0)})


@masked_add_p.rule(expand)
def _add_expand(ref: Any, value: Any, mask: Any, *operands: Any, index: Any) -> list[Any]:
    """Masked-off positions, which may be outside, are moved to 0, where 0 is added."""
    operands = tuple(
        lax.select(mask, op, lax.full(op.shape, 0, op.dtype)) if op.shape == mask.shape else op
        for op in operands
    )
    value = lax.select(mask, value, lax.full(value.shape, 0, value.dtype))
    addupdate_p.bind(ref, value, *operands, index=index)
    return []


# A computed slice that reaches beyond the array is clamped. Elements of masked accesses must stay
# where they are, so the clamped part is shifted back.


def _read_in_place(x: Any, index: Any, operands: Sequence[Any]) -> Any:
    """The selected elements; those beyond the array are arbitrary."""
    x, operands = _with_room(x, index, operands)
    return read_at(x, index, operands)


def _write_in_place(
    x: Any, index: Any, operands: Sequence[Any], value: Any, mask: Any
) -> tuple[Any, Any]:
    """The old part, and the array with the elements whose mask is true."""
    if index is not None and INTEGER_ARRAY in index:
        return _write_positions(x, index, operands, value, mask)
    wide, shifted = _with_room(x, index, operands)
    old = read_at(wide, index, shifted)
    new = write_at(wide, index, shifted, lax.select(mask, value, old))
    starts = [(w - n) // 2 for w, n in zip(wide.shape, x.shape)]
    return old, lax.slice(new, starts, [s + n for s, n in zip(starts, x.shape)])


def _with_room(x: Any, index: Any, operands: Sequence[Any]) -> tuple[Any, list[Any]]:
    """The array with a margin along the axes of computed slices, and the moved operands."""
    operands = list(operands)
    if index is None:
        return x, operands
    margins = [0] * x.ndim
    position = 0
    for axis, entry in enumerate(index):
        if isinstance(entry, DynamicSlice):
            margins[axis] = (entry.size - 1) * entry.stride + 1
            operands[position] = lax.add(
                lax.convert_element_type(operands[position], np.int32), np.int32(margins[axis])
            )
            position += 1
        elif isinstance(entry, str):
            position += 1
    if not any(margins):
        return x, operands
    zero = lax.full((), 0, typeof(x).dtype)
    return lax.pad(x, zero, [(m, m, 0) for m in margins]), operands


def _write_positions(
    x: Any, index: Any, operands: Sequence[Any], value: Any, mask: Any
) -> tuple[Any, Any]:
    """Masked-off positions move beyond the array, where writes are dropped."""
    old = read_at(x, index, operands)
    arrays = [op for entry, op in zip(_with_operand(index), operands) if entry == INTEGER_ARRAY]
    if any(op.shape != mask.shape for op in arrays):
        raise ValueError(
            "a masked write at arrays of positions needs positions with the shape of the mask "
            f"{mask.shape}, got {[op.shape for op in arrays]}"
        )
    moved = list(operands)
    for i, entry in enumerate(_with_operand(index)):
        if entry == INTEGER_ARRAY:
            far = lax.full(mask.shape, np.iinfo(np.int32).max, np.int32)
            moved[i] = lax.select(mask, lax.convert_element_type(operands[i], np.int32), far)
            break
    return old, write_at(x, index, moved, value)


def _with_operand(index: Any) -> list[Any]:
    return [e for e in index if isinstance(e, (str, DynamicSlice))]


# Atomic updates


def _atomic(name: str, combine: Callable[[Any, Any], Any], doc: str) -> Callable[..., Any]:
    def atomic(
        x_ref_or_view: Reference, idx: Index, val: ArrayLike, *, mask: ArrayLike | None = None
    ) -> Any:
        view = _view(x_ref_or_view, idx)
        if view.index is not None and INTEGER_ARRAY in view.index:
            raise ValueError(
                f"{name} takes no arrays of positions, because repeated positions would "
                "count once; atomic_add does"
            )
        old = view.get() if mask is None else load(view, mask=mask)
        value = _broadcast(val, view.shape, view.dtype, "the value")
        store(view, combine(old, value), mask=mask)
        return old

    atomic.__name__ = atomic.__qualname__ = name
    atomic.__doc__ = f"""{doc} in one step; returns the old value.

    Args:
      x_ref_or_view: a reference or a view of it.
      idx: index in it; ``...`` is all of it.
      val: a value that broadcasts to the part.
      mask: Booleans; masked-off elements are not changed.

    Raises:
      ValueError: for arrays of positions, whose repeated positions would count once.
    """
    return atomic


atomic_max: Callable[..., Any] = _atomic(
    "atomic_max", lax.max, "Replace elements by their maximum with a value,"
)
atomic_min: Callable[..., Any] = _atomic(
    "atomic_min", lax.min, "Replace elements by their minimum with a value,"
)
atomic_and: Callable[..., Any] = _atomic(
    "atomic_and", lax.bitwise_and, "Replace elements by their AND with a value,"
)
atomic_or: Callable[..., Any] = _atomic(
    "atomic_or", lax.bitwise_or, "Replace elements by their OR with a value,"
)
atomic_xor: Callable[..., Any] = _atomic(
    "atomic_xor", lax.bitwise_xor, "Replace elements by their XOR with a value,"
)
atomic_xchg: Callable[..., Any] = _atomic(
    "atomic_xchg", lambda old, new: new, "Replace elements by a value,"
)


def atomic_add(
    x_ref_or_view: Reference, idx: Index, val: ArrayLike, *, mask: ArrayLike | None = None
) -> Any:
    """Add a value to elements in one step; returns the old value.

    Args:
      x_ref_or_view: a reference or a view of it.
      idx: index in it, also arrays of positions, whose repeated positions are all added.
      val: a value that broadcasts to the part.
      mask: Booleans; nothing is added to masked-off elements.
    """
    view = _view(x_ref_or_view, idx)
    value = _broadcast(val, view.shape, view.dtype, "the value")
    if mask is not None:
        mask = _mask(mask, view.shape)
    old = view.get() if mask is None else load(view, mask=mask)
    if view.index is None or INTEGER_ARRAY not in view.index:
        store(view, lax.add(old, value), mask=mask)
    elif mask is None:
        addupdate_p.bind(view.base, value, *view.operands, index=view.index)
    else:
        _bind(masked_add_p, view, value, mask)
    return old


def atomic_cas(ref: Reference, cmp: ArrayLike, val: ArrayLike) -> Any:
    """Replace a scalar by ``val`` if it equals ``cmp``, in one step; returns the old value.

    Raises:
      ValueError: if the reference or view is no scalar.
    """
    view = _view(ref)
    if view.shape != ():
        raise ValueError(f"atomic_cas takes a scalar reference, got the shape {view.shape}")
    old = view.get()
    cmp = lax.convert_element_type(cmp, view.dtype)
    val = lax.convert_element_type(val, view.dtype)
    view.set(lax.select(lax.eq(old, cmp), val, old))
    return old
