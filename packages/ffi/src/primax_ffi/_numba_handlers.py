"""Handlers of XLA's foreign-function interface, compiled by numba from loop functions.

A handler reads XLA's call frame itself. Python is needed only where a call fails. This module
imports numba; ``native_function`` imports it when it compiles the first function.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

from . import _call_frame as frames
from ._signatures import Signature

METADATA, WRONG_CALL, EXCEPTION = -1, -2, -3
"""Outcomes of a call other than a number of examples."""

Report = Callable[[int, int, int, int], int]
"""Function ``(frame, number, outcome, exception) -> error``, called where a call fails."""

_REPORT: Final = ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
)

_INT64: Final = ir.IntType(64)

_alive: Final[list[Any]] = []
"""What compiled handlers refer to; XLA calls them until the process ends."""


def compile_handler(
    function: Callable[..., None],
    signature: Signature,
    attributes: Sequence[str],
    number: int,
    report: Report,
    options: dict[str, Any],
) -> int:
    """The address of a handler that calls a loop function.

    Args:
      function: takes operands (read-only), results, and attributes in this order.
      attributes: their names in the order of the function's parameters.
      number, report: ``report(frame, number, ...)`` returns the error of a call that fails.
      options: of ``numba.njit``.

    Raises:
      TypeError: if the function returns a value.
      numba.core.errors.NumbaError: if numba cannot compile it.
    """
    arrays = [
        *[_array_type(t.dtype, len(t.sizes), True) for t in signature.operands],
        *[_array_type(t.dtype, len(t.sizes), False) for t in signature.results],
    ]
    scalars = [_attribute_type(signature.attrs[name]) for name in attributes]
    compiled = numba.njit(**options)(function)
    overload = _overload(compiled, (*arrays, *scalars))
    layout, names = frames.layout(signature)
    callback = _REPORT(_safe(report))
    call = _call(
        overload, [sorted(attributes).index(name) for name in attributes], number, callback
    )
    begin, place = _reading()
    address = layout.ctypes.data
    stack = _stack(2 * (len(arrays) + len(scalars)))

    def handler(frame):  # type: ignore[no-untyped-def]
        examples = begin(frame, address)
        if examples < 0:
            return 0 if examples == METADATA else callback(frame, number, examples, 0)
        table = stack()
        for example in range(examples):
            place(frame, address, example, table)
            error = call(frame, table)
            if error != 0:
                return error
        return 0

    function_of_xla = numba.cfunc(types.int64(types.int64))(handler)
    _alive.append((function_of_xla, layout, names, callback, compiled, overload, begin, place))
    return function_of_xla.address


def _overload(compiled: Any, arguments: tuple[Any, ...]) -> Any:
    """The machine code of a function for arguments of these types."""
    compiled.compile(arguments)
    overload = compiled.overloads[arguments]
    if overload.signature.return_type != types.none:
        raise TypeError(
            f"native functions return nothing, but this one returns a value of type "
            f"{overload.signature.return_type}: write the results into the arrays after the "
            "operands, y[i] = ..."
        )
    return overload


def _safe(report: Report) -> Report:
    """A callback that returns an error in any case: 0 would be success."""

    def call(frame: int, number: int, outcome: int, exception: int) -> int:
        try:
            return report(frame, number, outcome, exception or 0)
        except BaseException as error:
            return frames.new_error(frame, f"a native function failed: {error!r}", False)

    return call


def _array_type(dtype: Any, rank: int, readonly: bool) -> Any:
    return types.Array(numba.from_dtype(np.dtype(dtype)), rank, "C", readonly=readonly)


def _attribute_type(kind: str) -> Any:
    dtype = frames.attribute_dtype(kind)
    return _array_type(dtype, 1, True) if kind.endswith("[]") else numba.from_dtype(dtype)


# Access to memory


def _int64(value: int) -> Any:
    return ir.Constant(_INT64, value)


def _pointer(builder: Any, address: Any, kind: Any) -> Any:
    return builder.inttoptr(address, kind.as_pointer())


@intrinsic
def _word(typingctx: Any, address: Any, position: Any) -> Any:
    """The word at a position behind an address."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        words = _pointer(builder, args[0], _INT64)
        return builder.load(builder.gep(words, [args[1]]))

    return types.int64(types.int64, types.int64), codegen


@intrinsic
def _byte(typingctx: Any, address: Any, position: Any) -> Any:
    """The byte at a position behind an address."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = _pointer(builder, args[0], ir.IntType(8))
        return builder.load(builder.gep(data, [args[1]]))

    return types.uint8(types.int64, types.int64), codegen


@intrinsic
def _set_word(typingctx: Any, address: Any, position: Any, value: Any) -> Any:
    """Set the word at a position behind an address."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        words = _pointer(builder, args[0], _INT64)
        builder.store(args[2], builder.gep(words, [args[1]]))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


def _stack(entries: int) -> Any:
    """A function that returns the address of words on the stack."""

    @intrinsic
    def stack(typingctx: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            memory = cgutils.alloca_once(builder, _INT64, size=entries)
            return builder.ptrtoint(memory, _INT64)

        return types.int64(), codegen

    return stack


# Calls of the compiled function


def _call(overload: Any, order: Sequence[int], number: int, report: Any) -> Any:
    """A function that calls a compiled function, and returns the error of its exception, or 0.

    Args:
      order: the position in the call frame of each attribute.
      number, report: as for :func:`compile_handler`.
    """
    kinds = overload.signature.args
    arrays = len(kinds) - len(order)
    entries = [*range(arrays), *[arrays + position for position in order]]
    address = ctypes.cast(report, ctypes.c_void_p).value

    @intrinsic
    def call(typingctx: Any, frame: Any, table: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            context.active_code_library.add_linking_library(overload.library)
            values = [
                _value(context, builder, kind, args[1], 2 * entry)
                for kind, entry in zip(kinds, entries)
            ]
            status, _ = context.call_internal_no_propagate(
                builder, overload.fndesc, overload.signature, values
            )
            error = cgutils.alloca_once_value(builder, _int64(0))
            with builder.if_then(status.is_error, likely=False):
                python = context.get_python_api(builder)
                state = python.gil_ensure()
                context.call_conv.raise_error(builder, python, status)
                exception = _fetched(builder, python)
                kind = ir.FunctionType(_INT64, [_INT64, _INT64, _INT64, exception.type])
                function = _pointer(builder, _int64(address), kind)
                arguments = [args[0], _int64(number), _int64(EXCEPTION), exception]
                builder.store(builder.call(function, arguments), error)
                python.decref(exception)
                python.gil_release(state)
            return builder.load(error)

        return types.int64(types.int64, types.int64), codegen

    return call


def _value(context: Any, builder: Any, kind: Any, table: Any, entry: int) -> Any:
    """An array or a number, from the addresses of its elements and sizes in a table."""
    words = _pointer(builder, table, _INT64)
    data, sizes = (builder.load(builder.gep(words, [_int64(entry + k)])) for k in range(2))
    if not isinstance(kind, types.Array):
        return context.unpack_value(
            builder, kind, _pointer(builder, data, context.get_data_type(kind))
        )
    sizes = _pointer(builder, sizes, _INT64)
    shape = [builder.load(builder.gep(sizes, [_int64(axis)])) for axis in range(kind.ndim)]
    itemsize = context.get_constant(
        types.intp, context.get_abi_sizeof(context.get_data_type(kind.dtype))
    )
    strides, stride = [], itemsize
    for size in reversed(shape):
        strides.insert(0, stride)
        stride = builder.mul(stride, size)
    array = make_array(kind)(context, builder)
    populate_array(
        array,
        data=builder.inttoptr(data, array.data.type),
        shape=shape,
        strides=strides,
        itemsize=itemsize,
        meminfo=None,
    )
    return array._getvalue()


def _fetched(builder: Any, python: Any) -> Any:
    """The current exception, which is cleared."""
    kind = python.pyobj
    slots = [cgutils.alloca_once_value(builder, ir.Constant(kind, None)) for _ in range(3)]
    signature = ir.FunctionType(ir.VoidType(), [kind.as_pointer()] * 3)
    for name in ("PyErr_Fetch", "PyErr_NormalizeException"):
        function = cgutils.get_or_insert_function(builder.module, signature, name)
        builder.call(function, slots)
    type_, value, traceback = map(builder.load, slots)
    with builder.if_then(cgutils.is_not_null(builder, traceback)):
        signature = ir.FunctionType(ir.IntType(32), [kind, kind])
        function = cgutils.get_or_insert_function(
            builder.module, signature, "PyException_SetTraceback"
        )
        builder.call(function, [value, traceback])
    python.decref(type_)
    python.decref(traceback)
    return value


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
def _reading() -> tuple[Any, Any]:
    """The functions that read the call frame, compiled once."""
    word = types.int64
    begin = numba.cfunc(word(word, word), error_model="numpy")(_begin)
    place = numba.cfunc(types.void(word, word, word, word), error_model="numpy")(_place)
    _alive.append((begin, place))
    return begin.ctypes, place.ctypes
