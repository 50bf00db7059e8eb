"""User functions of references: create, read, write, accumulate, free."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._base import pytree
from ..._base.config import state
from ..._base.source import api_boundary
from ..._ir import dtypes
from ..._ir.avals import ShapedArray
from ..._ir.ref_types import is_ref
from ..._runtime.dispatch import as_operand, check_range
from ..._trace.core import Tracer, typeof
from ..._trace.refs import Ref, RefOperations, get_p, new_ref_p, swap_p
from ..._trace.typing import ArrayLike
from .composition import compose_indices
from .indexing import Index, parse_index, selected_shape
from .parts import add_at, read_at, write_at
from .primitives import addupdate_p, empty_ref_p, free_ref_p, freeze_p, write_part


@api_boundary
def new_ref(
    init_val: ArrayLike, *, memory_space: Any = None, kind: Any = None, pin: bool = False
) -> Any:
    """A reference to a new array with initial value ``init_val``.

    ``ref[index]`` reads a part, ``ref[index] = value`` writes it, with integers, slices,
    ``ds(start, size)``, ``...`` and integer arrays as indices, as in NumPy. Values are neither
    broadcast nor converted. Concrete indices out of bounds raise an error. Traced indices are
    clamped; an integer array as index writes nothing out of bounds.

    Args:
      init_val: an array or number; its values are copied if necessary.
      memory_space: memory of the array, for references of kernels; only inside ``jit``.
      kind: a mark for interpreters; the core ignores it.
      pin: keep the array in its memory, for references of kernels; only inside ``jit``.

    Returns:
      A :class:`Ref` with the attributes ``shape``, ``dtype`` and ``ndim``.

    Raises:
      TypeError: if ``init_val`` is not an array or number.

    Under every transformation a function may use references that it creates, receives or closes
    over. In reverse mode the contents of references created inside the function are
    differentiated; only values that are not differentiated can be written to an outer reference.
    Under ``vmap`` only unbatched values can be written to an outer reference, unless it is a
    mapped argument.

    >>> ref = new_ref(np.zeros(3, np.float32))
    >>> ref[0] = 1.0
    >>> ref[1:] += 2.0
    >>> ref[...].tolist()
    [1.0, 2.0, 2.0]
    """
    return new_ref_p.bind(_initial(init_val), memory_space=memory_space, kind=kind, pin=bool(pin))


def _initial(x: Any) -> Any:
    if isinstance(x, RefOperations):
        raise TypeError(
            f"new_ref got a reference of type {x.aval}: give it an array, such as `ref[...]`"
        )
    try:
        return _value(x)
    except TypeError as e:
        raise TypeError(
            "Error interpreting argument to new_ref as an array. The problematic value is of "
            f"type {type(x)} and was passed to new_ref at position 0. {e}"
        ) from e


def _value(x: Any) -> Any:
    """A value to store: Python numbers are given a dtype, NumPy arrays are copied."""
    if isinstance(x, Tracer):
        return x
    aval = typeof(x)
    if isinstance(x, (bool, int, float, complex)):
        check_range(x, aval)
        return np.asarray(x, aval.dtype)[()]
    return as_operand(x) if isinstance(x, np.ndarray) else x


@api_boundary
def empty_ref(ty: Any, memory_space: Any = None, pin: bool = False) -> Any:
    """A reference to a new array with unspecified elements.

    Args:
      ty: the type of the array: any object with a shape and a dtype.
      memory_space: memory of the array, for references of kernels; only inside ``jit``.
      pin: keep the array in its memory, for references of kernels; only inside ``jit``.

    Returns:
      A :class:`Ref` of that shape and dtype.

    Raises:
      TypeError: if ``ty`` has no shape or dtype.

    Write every element before it is read; the elements are zeros at present, on which callers
    must not depend.

    >>> from primax_core import ShapeDtypeStruct
    >>> ref = empty_ref(ShapeDtypeStruct((2, 3), np.float32))
    >>> ref.shape, ref.dtype.name
    ((2, 3), 'float32')
    """
    if is_ref(ty) or not hasattr(ty, "shape") or not hasattr(ty, "dtype"):
        raise TypeError(
            f"Cannot interpret value of type {type(ty)} as the type of an array: empty_ref needs a "
            "shape and a dtype, such as ShapeDtypeStruct((3,), 'float32')"
        )
    aval = ShapedArray(tuple(ty.shape), dtypes.canonicalize_dtype(ty.dtype))
    return empty_ref_p.bind(ty=aval, memory_space=memory_space, pin=bool(pin))


@api_boundary
def freeze(ref: Ref) -> Any:
    """Free a reference and return its contents as an array.

    The contents are not copied. The reference cannot be used again.

    Args:
      ref: a reference that the function under tracing has created, or any reference outside of
        traced functions.

    Returns:
      An array of the reference's shape and dtype.

    Raises:
      ValueError: if ``ref`` is not a reference, was freed before, or was not created by the
        function under tracing.

    In reverse mode it is the identity: the cotangent of the array is the cotangent of the
    contents.

    >>> ref = new_ref(np.float32(2.0))
    >>> ref[...] = 3.0
    >>> freeze(ref)
    Array(3., dtype=float32)
    """
    return freeze_p.bind(_checked(ref, "freeze"))


@api_boundary
def free_ref(ref: Ref) -> None:
    """Free a reference and discard its contents.

    Args:
      ref: a reference, as for :func:`freeze`.

    Returns:
      ``None``.

    Raises:
      ValueError: if ``ref`` is not a reference, was freed before, or was not created by the
        function under tracing.

    A reference that is not freed is freed with its last use; the call frees its memory earlier.

    >>> ref = new_ref(np.float32(2.0))
    >>> free_ref(ref)
    >>> try:
    ...     ref[...]
    ... except ValueError as error:
    ...     print("freed" in str(error))
    False
    """
    free_ref_p.bind(_checked(ref, "free_ref"))


def _checked(ref: Any, name: str) -> Any:
    if not isinstance(ref, RefOperations):
        raise ValueError(f"Can only call `{name}` on a `Ref`: {ref}.")
    return ref


@api_boundary
def get(ref: Any, idx: Any = None) -> Any:
    """``ref[idx]``: the part of the array selected by an index.

    Args:
      ref: a reference or a view of one.
      idx: an integer, slice, ``ds(start, size)``, ``...``, an integer array or a tuple of these;
        by default the whole array.

    Returns:
      An array of the dtype of the reference: a copy, which later writes do not change.

    Raises:
      ValueError: if ``ref`` is not a reference, or a concrete index is out of bounds.

    Traced indices out of bounds are clamped. It is differentiable with respect to the contents.

    >>> ref = new_ref(np.arange(3.0, dtype=np.float32))
    >>> get(ref, 1)
    Array(1., dtype=float32)
    >>> get(ref).tolist()
    [0.0, 1.0, 2.0]
    """
    if type(ref) is RefView:
        return ref[idx]
    index, operands = parse_index(_checked(ref, "ref_get").shape, idx)
    return get_p.bind(ref, *operands, index=index)


@api_boundary
def set(ref: Any, idx: Any, value: ArrayLike) -> None:
    """``ref[idx] = value``: replace the part of the array selected by an index.

    Args:
      ref: a reference or a view of one.
      idx: an integer, slice, ``ds(start, size)``, ``...``, an integer array or a tuple of these;
        ``None`` is the whole array.
      value: the new elements, with the shape of the part and the dtype of the reference; it is
        not broadcast.

    Returns:
      ``None``.

    Raises:
      ValueError: if shape or dtype of ``value`` differ, ``ref`` is not a reference, or a concrete
        index is out of bounds.

    Traced indices out of bounds are clamped; positions out of bounds in an integer array are not
    written. It is differentiable with respect to ``value``.

    >>> ref = new_ref(np.zeros(2, np.float32))
    >>> set(ref, 1, 3.0)
    >>> ref
    Ref([0., 3.], dtype=float32)
    """
    if type(ref) is RefView:
        ref[idx] = value
        return
    index, operands = parse_index(_checked(ref, "ref_set").shape, idx)
    _write(ref, index, operands, _stored(value, "ref_set"))


def _write(ref: Any, index: Index, operands: Sequence[Any], value: Any) -> None:
    concrete = state.trace is None and type(ref) is Ref and index is not None
    if concrete and not any(isinstance(x, Tracer) for x in (value, *operands)):
        write_part(ref, value, operands, index)
    else:
        swap_p.bind(ref, value, *operands, index=index)


@api_boundary
def swap(ref: Any, idx: Any, value: ArrayLike, _function_name: str = "ref_swap") -> Any:
    """Replace the part of the array selected by an index, and return its old value.

    Args:
      ref: a reference or a view of one.
      idx: an integer, slice, ``ds(start, size)``, ``...``, an integer array or a tuple of these;
        ``None`` is the whole array.
      value: the new elements, with the shape of the part and the dtype of the reference; it is
        not broadcast.
      _function_name: name of the caller in errors.

    Returns:
      An array: the old elements of the part.

    Raises:
      ValueError: if shape or dtype of ``value`` differ, ``ref`` is not a reference, or a concrete
        index is out of bounds.

    The swap is atomic: of threads that swap the same reference concurrently, each receives a
    value written by another.

    >>> ref = new_ref(np.zeros(2, np.float32))
    >>> swap(ref, 0, 3.0)
    Array(0., dtype=float32)
    >>> ref
    Ref([3., 0.], dtype=float32)
    """
    if type(ref) is RefView:
        return RefView(ref, idx).swap(value)
    index, operands = parse_index(_checked(ref, _function_name).shape, idx)
    return swap_p.bind(ref, _stored(value, _function_name), *operands, index=index)


def _stored(value: Any, name: str) -> Any:
    if isinstance(value, RefOperations):
        raise ValueError(
            f"`{name}` got a reference of type {value.aval} as the value: write its contents, "
            "`other[...]`"
        )
    return _value(value)


@api_boundary
def addupdate(ref: Any, idx: Any, x: ArrayLike) -> None:
    """``ref[idx] += x`` in one operation; values at repeated indices are all added.

    Args:
      ref: a reference or a view of one.
      idx: an integer, slice, ``ds(start, size)``, ``...``, an integer array or a tuple of these;
        ``None`` is the whole array.
      x: the elements to add, with the shape of the part and the dtype of the reference.

    Returns:
      ``None``.

    Raises:
      ValueError: if shape or dtype of ``value`` differ, ``ref`` is not a reference, or a concrete
        index is out of bounds.

    With ``ref[idx] += x`` each position of an integer array is read once, so that repeated
    indices add only one value. In reverse mode cotangents are accumulated by this operation.

    >>> ref = new_ref(np.zeros(2, np.float32))
    >>> addupdate(ref, np.array([1, 1]), np.ones(2, np.float32))
    >>> ref
    Ref([0., 2.], dtype=float32)
    """
    if type(ref) is RefView:
        RefView(ref, idx).addupdate(x)
        return
    index, operands = parse_index(_checked(ref, "ref_addupdate").shape, idx)
    addupdate_p.bind(ref, _stored(x, "ref_addupdate"), *operands, index=index)


# Views


class RefIndexer:
    """``ref.at``; indexing it returns a view of a part of the reference."""

    __slots__ = ("ref",)

    def __init__(self, ref: Any):
        self.ref: Any = ref

    def __getitem__(self, idx: Any) -> RefView:
        return RefView(self.ref, idx)

    def __repr__(self) -> str:
        return f"RefIndexer({self.ref!r})"


class RefView:
    """View of a part of a reference, with the reference's operations.

    A view of a view is one access of the reference: the indices are composed, unless one of them
    has an array of positions. Positions in a view are clamped to the view.

    Attributes:
      base: the reference; or the view of which this is a part, if their indices are not composed.
      index: the index in ``base``, as :func:`parse_index` returns it.
      operands: the operands of the index.

    >>> ref = new_ref(np.arange(9, dtype=np.float32))
    >>> view = ref.at[2:8].at[1:3]
    >>> view.index, view.get().tolist()
    ((StaticSlice(start=3, size=2, stride=1),), [3.0, 4.0])
    """

    __slots__ = ("base", "index", "operands")

    def __init__(self, ref: Any, idx: Any):
        self.base: Any = ref
        self.index: Index
        self.operands: list[Any]
        self.index, self.operands = parse_index(ref.shape, idx)
        if type(ref) is RefView:
            composed = compose_indices(
                ref.base.shape, ref.index, ref.operands, self.index, self.operands
            )
            if composed is not None:
                self.base = ref.base
                self.index, self.operands = composed

    @property
    def root(self) -> Any:
        """The reference."""
        return self.base.root if type(self.base) is RefView else self.base

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the part's axes."""
        return selected_shape(self.base.shape, self.index, self.operands)

    @property
    def dtype(self) -> Any:
        """Type of the elements."""
        return self.base.dtype

    @property
    def ndim(self) -> int:
        """Number of the part's axes."""
        return len(self.shape)

    @property
    def at(self) -> RefIndexer:
        """Views of parts of the part."""
        return RefIndexer(self)

    def __getitem__(self, idx: Any) -> Any:
        return RefView(self, idx).get()

    def __setitem__(self, idx: Any, value: Any) -> None:
        RefView(self, idx).set(value)

    @api_boundary
    def set(self, value: Any) -> None:
        """Write the part."""
        base, value = self.base, _stored(value, "ref_set")
        if type(base) is RefView:
            base.set(write_at(base.get(), self.index, self.operands, value))
        else:
            _write(base, self.index, self.operands, value)

    @api_boundary
    def swap(self, value: Any) -> Any:
        """Write the part, and return its old value."""
        if type(self.base) is RefView:
            old = self.get()
            self.set(value)
            return old
        return swap_p.bind(self.base, _stored(value, "ref_swap"), *self.operands, index=self.index)

    @api_boundary
    def get(self) -> Any:
        """Read the part."""
        if type(self.base) is RefView:
            return read_at(self.base.get(), self.index, self.operands)
        return get_p.bind(self.base, *self.operands, index=self.index)

    @api_boundary
    def addupdate(self, value: Any) -> None:
        """Add to the part."""
        base, value = self.base, _stored(value, "ref_addupdate")
        if type(base) is RefView:
            base.set(add_at(base.get(), self.index, self.operands, value))
        else:
            addupdate_p.bind(base, value, *self.operands, index=self.index)

    def __repr__(self) -> str:
        return f"RefView({self.base!r}, {self.index!r}, {self.operands!r})"


def _flatten_view(view: RefView) -> tuple[tuple[Any, ...], Any]:
    return (view.base, *view.operands), (view.index, getattr(view.base, "shape", None))


def _unflatten_view(aux: Any, children: Sequence[Any]) -> RefView:
    index, shape = aux
    base, *operands = children
    if shape is not None and getattr(base, "shape", shape) != shape:
        raise TypeError(
            f"a view of a reference of shape {shape} cannot be mapped along an axis: map the "
            "reference, and take the view inside the function"
        )
    view = object.__new__(RefView)
    view.base, view.index, view.operands = base, index, operands
    return view


# As an argument of a transformed function, a view is its reference and the operands of its index.
pytree.register_pytree_node(RefView, _flatten_view, _unflatten_view)
