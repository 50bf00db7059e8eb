"""Classes that ``vmap`` splits and joins by functions of their own: ``register_vmappable``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from operator import index
from typing import Any, Final, NamedTuple

import numpy as np

from primax_core import lax
from primax_core.extend import Array, Tracer, current_trace, move_axis, typeof
from primax_core.extend.facade import mapped_classes


class _Registered(NamedTuple):
    spec_type: type
    axis_size_type: type
    to_elt: Callable[..., Any]
    from_elt: Callable[..., Any]
    make_iota: Callable[..., Any] | None


class _Argument(NamedTuple):
    value: Any
    spec: Any


class _Batch(NamedTuple):
    value: Any


_registered: Final[dict[type, _Registered]] = {}


class _Classes:
    """The registered classes, as ``vmap`` sees them."""

    @property
    def specs(self) -> set[type]:
        return {r.spec_type for r in _registered.values()}

    def is_leaf(self, node: Any) -> bool:
        return type(node) in _registered

    def pack(self, value: Any, axis: Any) -> tuple[Any, int | None]:
        if type(value) in _registered:
            return _Argument(value, axis), None
        _check_axis("in_axes", axis, value)
        return value, axis

    def count(self, axis_size: Any) -> int | None:
        return None if axis_size is None else _count(axis_size)

    def split(self, values: Sequence[Any], axis_size: Any) -> list[Any]:
        iota = cache(lambda: _example(_iota(axis_size), 0, axis_size))
        return [_element(x, axis_size, iota) if type(x) is _Argument else x for x in values]

    def join(self, outs: Sequence[Any], out_axes: Sequence[Any], axis_size: Any) -> list[Any]:
        results = []
        for out, spec in zip(outs, out_axes):
            if type(out) in _registered:
                out = _Batch(_registered[type(out)].from_elt(_whole, axis_size, out, spec))
            else:
                _check_axis("out_axes", spec, out)
            results.append(out)
        return results

    def unpack(self, value: Any) -> tuple[bool, Any]:
        return (True, value.value) if type(value) is _Batch else (False, value)


def _check_axis(what: str, axis: Any, value: Any) -> None:
    if axis is not None and not isinstance(axis, (int, np.integer)):
        classes = " or ".join(
            c.__name__ for c, r in _registered.items() if r.spec_type is type(axis)
        )
        raise TypeError(
            f"vmap {what} has {axis!r} for {_described(value)}: a "
            f"{type(axis).__name__} belongs to values of class {classes}. Use an integer or None"
        )


def _described(value: Any) -> str:
    if isinstance(value, (Array, Tracer, np.ndarray)):
        return f"an array of type {typeof(value).strip_weak_type()}"
    return f"a value of class {type(value).__name__}"


def _count(axis_size: Any) -> int:
    """The number of examples; that of another class than int is the length of its iota."""
    try:
        return index(axis_size)
    except TypeError:
        return int(typeof(_iota(axis_size)).shape[0])


def _iota(axis_size: Any) -> Any:
    for r in _registered.values():
        if r.axis_size_type is type(axis_size) and r.make_iota is not None:
            return r.make_iota(axis_size)
    try:
        return lax.iota(np.int32, index(axis_size))
    except TypeError:
        raise TypeError(
            f"vmap's axis_size is a {type(axis_size).__name__}, for which register_vmappable was "
            "given no make_iota: pass an integer, or register a function that returns the indices "
            "of the examples"
        ) from None


def _element(argument: _Argument, axis_size: Any, iota: Callable[[], Any]) -> Any:
    def cont(value: Any, spec: Any) -> Any:
        if type(value) in _registered:
            return _element(_Argument(value, spec), axis_size, iota)
        return _example(value, spec, axis_size)

    return _registered[type(argument.value)].to_elt(cont, iota, *argument)


def _example(x: Any, axis: Any, axis_size: Any) -> Any:
    """One example of an array; ``axis`` may be ``None``."""
    if axis is None:
        return x
    _check_axis("in_axes", axis, x)
    shape, count = typeof(x).shape, _count(axis_size)
    axis = _position(axis, len(shape))
    if shape[axis] != count:
        raise ValueError(
            f"vmap maps {count} examples, but to_elt maps axis {axis} of an array of shape "
            f"{shape}, which has {shape[axis]}"
        )
    trace: Any = current_trace()
    (tracer,) = trace.wrap([x], [axis])
    return tracer


def _position(axis: Any, rank: int) -> int:
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} is out of bounds for array of dimension {rank}")
    return int(axis) % rank


def _whole(axis_size: Any, value: Any, spec: Any) -> Any:
    """The batch that an example stands for, with the mapped axis where ``spec`` says."""
    if type(value) in _registered:
        return _registered[type(value)].from_elt(_whole, axis_size, value, spec)
    trace: Any = current_trace()
    batch, dim = trace.split(value)
    if spec is None:
        if dim is not None:
            raise ValueError(
                f"vmap out_axes: from_elt gives None as the axis of a result that is mapped over "
                f"axis {dim}; None is only for values that do not depend on mapped arguments"
            )
        return batch
    _check_axis("out_axes", spec, value)
    rank = len(typeof(batch).shape) + (dim is None)
    return move_axis(batch, dim, _position(spec, rank), _count(axis_size))


def register_vmappable(
    data_type: type,
    spec_type: type,
    axis_size_type: type,
    to_elt: Callable[..., Any],
    from_elt: Callable[..., Any],
    make_iota: Callable[..., Any] | None,
) -> None:
    """Let ``vmap`` map values of a class, arguments and results, by functions of the class.

    The value of an argument need not be a pytree; if it is, these functions take precedence. Calls
    of ``vmap`` with no other mapped argument need ``axis_size``.

    Args:
      data_type: the class; subclasses are registered separately. A later registration replaces the
        earlier one.
      spec_type: a class whose instances are passed in ``in_axes`` and ``out_axes`` where the value
        is. ``to_elt`` and ``from_elt`` also get integers and ``None`` if these are passed.
      axis_size_type: the class of ``vmap``'s ``axis_size``, usually ``int``.
      to_elt: called as ``to_elt(cont, iota, value, spec)``, returns one example of ``value``.
        ``cont(array, axis)`` is one example of an array, or of a value of a registered class;
        ``iota()`` is the index of the example.
      from_elt: called as ``from_elt(cont, axis_size, example, spec)``, returns the batch.
        ``cont(axis_size, example, axis)`` is the batch of an array, mapped at ``axis``.
      make_iota: returns the indices of all examples for an ``axis_size`` of class
        ``axis_size_type``; required if this is not ``int``.

    Raises:
      TypeError: if ``data_type`` or ``spec_type`` is no class, or ``data_type`` is a class of
        arrays.

    >>> import numpy as np
    >>> import primax
    >>> class Columns:
    ...     def __init__(self, data):
    ...         self.data = data
    >>> register_vmappable(
    ...     Columns,
    ...     int,
    ...     int,
    ...     lambda cont, iota, value, axis: cont(value.data, 1),
    ...     lambda cont, size, example, axis: Columns(cont(size, example, 1)),
    ...     None,
    ... )
    >>> primax.vmap(primax.lax.neg, axis_size=3)(Columns(np.ones((2, 3), np.float32))).shape
    (3, 2)
    >>> unregister_vmappable(Columns)
    """
    for what, cls in (("data_type", data_type), ("spec_type", spec_type)):
        if not isinstance(cls, type):
            raise TypeError(f"register_vmappable takes a class as {what}, got {cls!r}")
    if issubclass(data_type, (Array, Tracer, np.ndarray, np.generic, int, float, complex)):
        raise TypeError(
            f"register_vmappable: vmap maps values of class {data_type.__name__} itself"
        )
    _registered[data_type] = _Registered(spec_type, axis_size_type, to_elt, from_elt, make_iota)
    mapped_classes.classes = _classes


def unregister_vmappable(data_type: type) -> None:
    """Undo :func:`register_vmappable`.

    Raises:
      KeyError: if the class is not registered.
    """
    del _registered[data_type]
    if not _registered:
        mapped_classes.classes = None


_classes: Final = _Classes()
