"""Functions, compiled by numba, that read XLA's call frame.

Addresses are integers; words have 64 bits. ``_call_frame`` describes the frame and the layout of a
signature.
"""

from __future__ import annotations

import functools
from typing import Any, Final

import numba
from llvmlite import ir
from numba import extending, types
from numba.core import cgutils

from . import _call_frame as frames

METADATA, WRONG_CALL = -1, -2
"""Outcomes of :func:`_begin` other than a number of examples."""

INT64: Final = ir.IntType(64)

_intrinsic: Any = extending.intrinsic  # without its type, which has the first parameter, too

_alive: Final[list[Any]] = []
"""Compiled functions, which handlers call until the process ends."""


# Access to memory


def int64(value: int) -> Any:
    return ir.Constant(INT64, value)


def pointer(builder: Any, address: Any, kind: Any) -> Any:
    return builder.inttoptr(address, kind.as_pointer())


@_intrinsic
def _word(typingctx: Any, address: Any, position: Any) -> Any:
    """The word at a position behind an address."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        words = pointer(builder, args[0], INT64)
        return builder.load(builder.gep(words, [args[1]]))

    return types.int64(types.int64, types.int64), codegen


@_intrinsic
def _byte(typingctx: Any, address: Any, position: Any) -> Any:
    """The byte at a position behind an address."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = pointer(builder, args[0], ir.IntType(8))
        return builder.load(builder.gep(data, [args[1]]))

    return types.uint8(types.int64, types.int64), codegen


@_intrinsic
def _set_word(typingctx: Any, address: Any, position: Any, value: Any) -> Any:
    """Set the word at a position behind an address."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        words = pointer(builder, args[0], INT64)
        builder.store(args[2], builder.gep(words, [args[1]]))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


def stack_words(entries: int) -> Any:
    """A function that returns the address of words on the stack."""

    @_intrinsic
    def stack(typingctx: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            memory = cgutils.alloca_once(builder, INT64, size=entries)
            return builder.ptrtoint(memory, INT64)

        return types.int64(), codegen

    return stack


# The call frame


def _begin(frame, layout):  # type: ignore[no-untyped-def]
    """The number of examples along leading axes; ``METADATA`` where XLA asks for the version, which
    is written, and ``WRONG_CALL`` for a call that does not fit the layout."""
    extension = _word(frame, frames.EXTENSION)
    while extension != 0:
        if _word(extension, 1) & 0xFFFFFFFF == 1:
            metadata = _word(extension, 3)
            _set_word(metadata, 3, frames.VERSION[0] | frames.VERSION[1] << 32)
            _set_word(metadata, 4, 0)  # traits
            return METADATA
        extension = _word(extension, 2)
    if _word(frame, frames.STAGE) & 0xFFFFFFFF != 3:
        return WRONG_CALL
    operands, results, attributes = _word(layout, 0), _word(layout, 1), _word(layout, 2)
    if (
        _word(frame, frames.OPERANDS) != operands
        or _word(frame, frames.RESULTS) != results
        or _word(frame, frames.ATTRIBUTES) != attributes
    ):
        return WRONG_CALL
    for i in range(operands + results):
        if not _has_type(frame, layout, i):
            return WRONG_CALL
    for i in range(operands + results):
        if not _has_sizes(frame, layout, i):
            return WRONG_CALL
    for i in range(attributes):
        if not _has_attribute(frame, layout, i):
            return WRONG_CALL
    examples = 1
    first = _buffer(frame, layout, operands)
    for axis in range(_leading(frame, layout, operands)):
        examples *= _word(_word(first, 5), axis)
    return examples


@numba.njit(error_model="numpy")
def _buffer(frame, layout, i):  # type: ignore[no-untyped-def]
    """The buffer of an array; results follow operands."""
    operands = _word(layout, 0)
    if i < operands:
        return _word(_word(frame, frames.OPERANDS + 2), i)
    return _word(_word(frame, frames.RESULTS + 2), i - operands)


@numba.njit(error_model="numpy")
def _leading(frame, layout, i):  # type: ignore[no-untyped-def]
    """The number of leading axes of an array."""
    return _word(_buffer(frame, layout, i), 4) - _word(layout, 3 + 5 * i + 2)


@numba.njit(error_model="numpy")
def _has_type(frame, layout, i):  # type: ignore[no-untyped-def]
    """Return True if an array has the dtype and at least the rank of the signature."""
    buffer = _buffer(frame, layout, i)
    right = _word(buffer, 2) & 0xFFFFFFFF == _word(layout, 3 + 5 * i)
    return right and _leading(frame, layout, i) >= 0


@numba.njit(error_model="numpy")
def _has_sizes(frame, layout, i):  # type: ignore[no-untyped-def]
    """Return True if the sizes of an array fit those of the others."""
    operands = _word(layout, 0)
    sizes = _word(_buffer(frame, layout, i), 5)
    leading, most = _leading(frame, layout, i), _leading(frame, layout, operands)
    if leading > most or leading < most and (i >= operands or _word(layout, 3 + 5 * i + 3)):
        return False
    common = _word(_buffer(frame, layout, operands), 5)
    for axis in range(leading):
        size = _word(sizes, axis)
        if size != _word(common, axis) and (size != 1 or i >= operands):
            return False
    axes = _word(layout, 3 + 5 * i + 4)
    for axis in range(_word(layout, 3 + 5 * i + 2)):
        expected = _word(layout, axes + axis)
        if expected < 0:
            other, other_axis = divmod(-1 - expected, 256)
            others = _word(_buffer(frame, layout, other), 5)
            expected = _word(others, _leading(frame, layout, other) + other_axis)
        if _word(sizes, leading + axis) != expected:
            return False
    return True


@numba.njit(error_model="numpy")
def _has_attribute(frame, layout, i):  # type: ignore[no-untyped-def]
    """Return True if an attribute has the type and the name of the signature."""
    own = 3 + 5 * (_word(layout, 0) + _word(layout, 1)) + 4 * i
    kind = _word(_word(frame, frames.ATTRIBUTES + 1) + 4 * i, 0) & 0xFFFFFFFF
    if kind != _word(layout, own):
        return False
    name = _word(_word(frame, frames.ATTRIBUTES + 2), i)
    length = _word(layout, own + 2)
    if _word(_attribute(frame, i), 0) & 0xFFFFFFFF != _word(layout, own + 1):
        return False
    if _word(name, 1) != length:
        return False
    for k in range(length):
        if _byte(_word(name, 0), k) != _byte(_word(layout, own + 3), k):
            return False
    return True


def _place(frame, layout, example, table):  # type: ignore[no-untyped-def]
    """Write the addresses of the elements and the sizes of each array for an example; for an
    attribute, of its number or elements, and of its size."""
    operands, results, attributes = _word(layout, 0), _word(layout, 1), _word(layout, 2)
    common, most = _word(_buffer(frame, layout, operands), 5), _leading(frame, layout, operands)
    for i in range(operands + results):
        buffer = _buffer(frame, layout, i)
        data, sizes = _word(buffer, 3), _word(buffer, 5)
        leading = _leading(frame, layout, i)
        _set_word(table, 2 * i + 1, sizes + 8 * leading)
        if example > 0:
            stride = _word(layout, 3 + 5 * i + 1)
            for axis in range(leading, _word(buffer, 4)):
                stride *= _word(sizes, axis)
            rest = example
            for axis in range(most - 1, -1, -1):
                size = _word(common, axis)
                if axis < leading and _word(sizes, axis) == size:
                    data += rest % size * stride
                    stride *= size
                rest //= size
        _set_word(table, 2 * i, data)
    for i in range(attributes):
        entry = 2 * (operands + results + i)
        attribute = _attribute(frame, i)
        is_array = _word(layout, 3 + 5 * (operands + results) + 4 * i) == frames.ARRAY
        _set_word(table, entry, _word(attribute, 2 if is_array else 1))
        _set_word(table, entry + 1, attribute + 8)


@numba.njit(error_model="numpy")
def _attribute(frame, i):  # type: ignore[no-untyped-def]
    """The address of an attribute: its dtype, and the address of a number or the size and the
    address of an array."""
    return _word(_word(frame, frames.ATTRIBUTES + 3), i)


@functools.cache
def reading() -> tuple[Any, Any]:
    """The functions that read the call frame, compiled once."""
    word = types.int64
    begin = numba.cfunc(word(word, word), error_model="numpy")(_begin)
    place = numba.cfunc(types.void(word, word, word, word), error_model="numpy")(_place)
    _alive.extend((begin, place))
    return begin.ctypes, place.ctypes
