"""Types defined as classes: the reference's ``HiType``.

Jaxprs hold arrays. A value of such a type is an operand of transformations and loops as the arrays
that its type lowers it to, and the transformed function gets a :class:`HiTracer`, which keeps these
arrays with the type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from primax_core import ShapeDtypeStruct
from primax_core.extend import (
    AbstractRef,
    Array,
    ShapedArray,
    Tracer,
    Zero,
    add_tangents,
    as_operand,
    instantiate,
    is_zero,
    register_value_type,
    typeof,
)
from primax_core.extend.facade import add_attributes
from primax_core.extend.traces import register_composite_type
from primax_core.ref import Ref

from . import binding as _binding  # noqa: F401 - methods of the types of arrays
from .jaxprs import AbstractValue, mapped_aval, unmapped_aval


class MappingSpec:
    """Base class for the mapped axes of a value under ``vmap``, in ``in_axes`` and ``out_axes``."""


class HiPspec:
    """Base class for the partitioning of user-defined types over a mesh, which is not supported."""

    def to_lo(self) -> tuple[Any, ...]:
        """Return the partitioning of the arrays."""
        raise NotImplementedError(f"{type(self).__name__} must define to_lo")


class HiType(AbstractValue):
    """Base class of user-defined types whose values consist of arrays.

    A subclass is hashable, and defines :meth:`lo_ty`, :meth:`lower_val` and :meth:`raise_val`;
    :meth:`to_tangent_aval` for derivatives; :meth:`dec_rank`, :meth:`inc_rank` and
    :meth:`leading_axis_spec` for ``vmap`` and ``scan``. Operations on the values are subclasses of
    ``HiPrim``.

    Attributes of the type are attributes of the traced values; methods and properties that need
    the value are marked by :class:`aval_method` and :class:`aval_property`. ``_add``,
    ``_getitem`` and the like, ``(value, *operands) -> result``, define operators.
    """

    is_high: bool = True

    def lo_ty(self) -> list[Any]:
        """Return the types of the arrays that represent a value."""
        raise self._undefined("lo_ty")

    def lower_val(self, hi_val: Any, /) -> list[Any]:
        """Return the arrays that represent a value."""
        raise self._undefined("lower_val")

    def raise_val(self, *lo_vals: Any) -> Any:
        """Construct the value from its arrays."""
        raise self._undefined("raise_val")

    def to_tangent_aval(self) -> HiType:
        """Return the type of tangents; its arrays must be tangents of the value's arrays."""
        raise self._undefined("to_tangent_aval")

    def to_ct_aval(self) -> HiType:
        """Return the type of cotangents."""
        return self.to_tangent_aval()

    def vspace_zero(self) -> Any:
        """Return a tangent whose arrays are zeros."""
        return raised(self, [instantiate(Zero(t)) for t in self.lo_ty()])

    def vspace_add(self, x: Any, y: Any) -> Any:
        """Return the sum of two tangents, array by array."""
        sums = [add_tangents(a, b) for a, b in zip(lowered(self, x), lowered(self, y))]
        return raised(self, sums)

    def dec_rank(self, size: int | None, spec: MappingSpec) -> HiType:
        """Return the type of one example of a batch; ``size`` may be unknown (``None``)."""
        raise self._undefined("dec_rank")

    def inc_rank(self, size: int | None, spec: MappingSpec) -> HiType:
        """Return the type of a batch of ``size`` examples."""
        raise self._undefined("inc_rank")

    def leading_axis_spec(self) -> MappingSpec:
        """Return the mapping along the leading axis of all arrays."""
        raise self._undefined("leading_axis_spec")

    def str_short(self, short_dtypes: bool = False, **_: Any) -> str:
        """The type in messages and jaxprs."""
        return str(self)

    def _undefined(self, method: str) -> NotImplementedError:
        return NotImplementedError(f"the type {type(self).__name__} must define {method}")

    def __getattr__(self, name: str) -> Any:
        if name in ("dtype", "ndim", "weak_type"):  # asked of the types of operands
            raise _no_array(self)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def _no_array(aval: HiType) -> TypeError:
    return TypeError(
        f"a value of the type {type(aval).__name__} is no array: operations on it are subclasses "
        "of HiPrim with the type among their in_avals"
    )


class aval_method(NamedTuple):
    """Define a method ``fun(value, ...)`` of all values of a type; use it in the type's class."""

    fun: Callable[..., Any]


class aval_property(NamedTuple):
    """Define a property ``fget(value)`` of all values of a type; use it in the type's class."""

    fget: Callable[..., Any]


# Traced values


class HiTracer:
    """A value of a user-defined type while it is traced: the type, and its arrays.

    It is an instance of ``core.Tracer``.
    """

    __slots__ = ("_aval", "_arrays")

    def __init__(self, aval: HiType, arrays: Sequence[Any]) -> None:
        self._aval = aval
        self._arrays = tuple(arrays)

    __class__ = property(lambda self: Tracer)  # type: ignore[assignment]

    @property
    def aval(self) -> HiType:
        """The type."""
        return self._aval

    def __repr__(self) -> str:
        return f"HiTracer({self._aval})"

    def __getattr__(self, name: str) -> Any:
        if name == "_trace":  # asked of operands
            raise _no_array(self._aval)
        attribute = getattr(self._aval, name)
        if isinstance(attribute, aval_property):
            return attribute.fget(self)
        if isinstance(attribute, aval_method):
            return partial(attribute.fun, self)
        return attribute

    def __hash__(self) -> int:
        return id(self)

    def __bool__(self) -> bool:
        rule = getattr(type(self._aval), "_bool", None)
        if rule is None:
            raise TypeError(f"a traced value of type {self._aval} has no truth value")
        return bool(rule(self._aval, self))


def _operator(name: str) -> Callable[..., Any]:
    def apply(self: HiTracer, *operands: Any) -> Any:
        rule = getattr(type(self._aval), f"_{name}", None)
        if rule is None:
            if name == "eq":
                return self is operands[0]
            if len(operands) == 1 and name not in _ACCESS:
                return NotImplemented
            raise TypeError(
                f"the type {type(self._aval).__name__} defines no _{name}, which __{name}__ of its "
                "values needs"
            )
        return rule(self._aval, self, *operands)

    apply.__name__ = f"__{name}__"
    return apply


_ACCESS: Final = ("getitem", "setitem", "len", "iter")
_BINARY: Final = tuple(
    "add sub mul matmul truediv floordiv mod divmod pow lshift rshift and xor or".split()
)
_OTHERS: Final = tuple(
    "eq lt le gt ge neg pos abs invert complex int float index round trunc floor ceil".split()
)
for _name in (*_ACCESS, *_BINARY, *(f"r{n}" for n in _BINARY), *_OTHERS):
    setattr(HiTracer, f"__{_name}__", _operator(_name))


# Values and their arrays

_ON_HOST: Final = (bool, int, float, complex, np.ndarray, np.generic)


def lo_types(aval: Any) -> list[Any]:
    """The types of the arrays of a value."""
    return aval.lo_ty() if isinstance(aval, HiType) else [aval]


def lowered(aval: Any, value: Any) -> list[Any]:
    """The arrays of a value."""
    if type(value) is HiTracer:
        return list(value._arrays)
    if not isinstance(aval, HiType):
        return [value]
    return [as_operand(x) if isinstance(x, _ON_HOST) else x for x in aval.lower_val(value)]


def raised(aval: Any, arrays: Sequence[Any]) -> Any:
    """The value of a type that consists of the arrays; a tracer if one of them is."""
    if not isinstance(aval, HiType):
        return arrays[0]
    traced = any(isinstance(x, Tracer) for x in arrays)
    return HiTracer(aval, arrays) if traced else aval.raise_val(*arrays)


def grouped(avals: Sequence[Any], arrays: Sequence[Any]) -> Iterator[tuple[Any, Sequence[Any]]]:
    """Each type with the arrays of its value."""
    start = 0
    for aval in avals:
        n = len(lo_types(aval))
        yield aval, arrays[start : start + n]
        start += n


def raised_tangent(aval: Any, arrays: Sequence[Any]) -> Any:
    """A tangent of a value of the type, from tangents of its arrays; they may be ``Zero``."""
    if not isinstance(aval, HiType):
        return arrays[0]
    tangent = tangent_type(aval)
    if all(map(is_zero, arrays)):
        return Zero(tangent)  # type: ignore[arg-type]
    return raised(tangent, [instantiate(x) if is_zero(x) else x for x in arrays])


def lowered_tangent(aval: Any, value: Any) -> list[Any]:
    """The tangents of a value's arrays."""
    if not isinstance(aval, HiType):
        return [value]
    if is_zero(value):
        return [Zero(t.tangent_aval()) for t in aval.lo_ty()]
    return lowered(typeof(value), value)


def tangent_type(aval: HiType) -> HiType:
    """The type of tangents.

    Raises:
      NotImplementedError: if they do not consist of the tangents of the value's arrays.
    """
    tangent = aval.to_tangent_aval()
    arrays = [t.tangent_aval() for t in aval.lo_ty()]
    if not _fit(lo_types(tangent), arrays):
        raise NotImplementedError(
            f"derivatives with respect to values of type {aval}: their tangents have the type "
            f"{tangent}, which consists of {_shown(lo_types(tangent))}. It must consist of the "
            f"tangents of the value's arrays, {_shown(arrays)}"
        )
    return tangent


def _shown(types: Sequence[Any]) -> str:
    return ", ".join(str(t) for t in types) or "no arrays"


def _fit(types: Sequence[Any], others: Sequence[Any]) -> bool:
    """True if types are equal up to weak types."""
    return len(types) == len(others) and all(map(_alike, types, others))


def _alike(a: Any, b: Any) -> bool:
    if isinstance(a, AbstractRef) or isinstance(b, AbstractRef):
        return bool(a == b)
    return bool((a.shape, a.dtype) == (b.shape, b.dtype))


# Values as operands of the core


class _Composition:
    """The type of a value, for the core, which takes values apart and restores them."""

    __slots__ = ("aval", "specs")

    def __init__(self, aval: HiType) -> None:
        self.aval = aval
        self.specs: list[Any] = []  # mappings by which vmap split or joined the arrays

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Composition) and self.aval == other.aval

    def __hash__(self) -> int:
        return hash(self.aval)

    def __repr__(self) -> str:
        return str(self.aval)

    def restore(self, arrays: Sequence[Any]) -> Any:
        """The value, or the type if ``arrays`` are ``ShapeDtypeStruct``."""
        if arrays and all(isinstance(x, ShapeDtypeStruct) for x in arrays):
            structs = [ShapedArray(x.shape, x.dtype) for x in arrays]
            return self._fitting(structs) or NotImplemented
        if not all(isinstance(x, (Array, Tracer, Ref, np.ndarray)) for x in arrays):
            return NotImplemented  # positions or types of the arrays, for example
        types = [typeof(x) for x in arrays]
        aval = self._fitting(types)
        if aval is None:
            raise TypeError(
                f"a value of type {self.aval} has become arrays of types {_shown(types)}, which "
                "belong neither to it, nor to its tangents, nor to an example or a batch of it: "
                "the type must define to_tangent_aval for derivatives, and dec_rank, inc_rank and "
                "leading_axis_spec for vmap and scan"
            )
        return raised(aval, arrays)

    def _fitting(self, types: Sequence[Any]) -> HiType | None:
        """The type with arrays of these types."""
        for aval in self._related(types):
            if _fit(aval.lo_ty(), types):
                return aval
        return None

    def _related(self, types: Sequence[Any]) -> Iterator[HiType]:
        """The type, and those of tangents, examples and batches of it."""
        yield self.aval
        with suppress(NotImplementedError):
            yield self.aval.to_tangent_aval()
        own = self.aval.lo_ty()
        with suppress(NotImplementedError):
            for spec in self.specs or [self.aval.leading_axis_spec()]:
                for size in _lost_sizes(own, types):
                    yield self.aval.dec_rank(size, spec)  # type: ignore[arg-type]
                for size in _lost_sizes(types, own):
                    yield self.aval.inc_rank(size, spec)  # type: ignore[arg-type]

    def resembles(self, other: Any) -> bool:
        """True if a value of the other type may be a tangent of one of this type."""
        types = [t.tangent_aval() for t in self.aval.lo_ty()]
        return type(self.aval) is type(other.aval) and _fit(other.aval.lo_ty(), types)

    def axes(self, spec: Any, of_result: bool) -> list[int | None]:
        """The mapped axis of each array."""
        self.specs.append(spec)
        example = self.aval if of_result else self._example(spec)
        batch = example.inc_rank(_PROBE, spec)
        return [t.shape.index(_PROBE) if _PROBE in t.shape else None for t in batch.lo_ty()]

    def _example(self, spec: Any) -> HiType:
        """The type of one example, also if the class accepts only the actual size of the batch."""
        try:
            return self.aval.dec_rank(None, spec)
        except NotImplementedError:
            raise
        except Exception:
            for size in sorted({n for t in self.aval.lo_ty() for n in t.shape}):
                with suppress(Exception):
                    example = self.aval.dec_rank(size, spec)
                    if example.inc_rank(size, spec) == self.aval:
                        return example
            raise


_PROBE: Final = 999_983
"""A size that no array has, to see where a mapping puts the mapped axis."""


def _lost_sizes(larger: Sequence[Any], smaller: Sequence[Any]) -> list[int]:
    """Sizes of the axis that arrays of the first types have, and those of the others have not."""
    for a, b in zip(larger, smaller):
        if len(a.shape) == len(b.shape) + 1:
            return sorted({n for n in a.shape if a.shape.count(n) > b.shape.count(n)})
    return []


def _take_apart(value: Any) -> tuple[_Composition, list[Any]]:
    aval = typeof(value)
    return _Composition(aval), lowered(aval, value)  # type: ignore[arg-type]


def register_hitype(val_cls: type, typeof_fn: Callable[[Any], Any]) -> None:
    """Register the class of the values of a type.

    Args:
      val_cls: the class.
      typeof_fn: returns the type of a value, a :class:`HiType`.

    ``typeof`` then accepts the values, and they may be arguments and results of ``jit``, ``grad``,
    ``vmap``, custom rules, loops and branches. Inside they are traced values with the attributes
    that the type defines.
    """
    register_value_type(val_cls, typeof_fn)
    register_composite_type(val_cls, _take_apart, MappingSpec)


register_value_type(HiTracer, lambda value: value._aval)
register_composite_type(HiTracer, _take_apart, MappingSpec)


# The types of arrays, as parts of such types


def _own_type(self: Any) -> list[Any]:
    return [self]


def _same(self: Any, value: Any, /) -> Any:
    return value


def _listed(self: Any, value: Any, /) -> list[Any]:
    return [value]


def _example_type(self: ShapedArray, size: int | None, spec: Any) -> Any:
    return self if spec is None else mapped_aval(self.shape[spec], spec, self)


def _batch_type(self: ShapedArray, size: int, spec: Any) -> Any:
    return self if spec is None else unmapped_aval(size, spec, self)


for _cls in (ShapedArray, AbstractRef):
    add_attributes(_cls, lo_ty=_own_type, lower_val=_listed, raise_val=_same)
add_attributes(ShapedArray, dec_rank=_example_type, inc_rank=_batch_type)
