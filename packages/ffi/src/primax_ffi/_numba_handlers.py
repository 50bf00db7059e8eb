"""Handlers of XLA's foreign-function interface, compiled by numba from loop functions.

A handler reads XLA's call frame itself. Python is needed only where a call fails. This module
imports numba; ``native_function`` imports it when it compiles the first function.
"""

from __future__ import annotations

import ctypes
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
from ._numba_frame import INT64, METADATA, int64, pointer, reading, stack_words
from ._signatures import Signature

EXCEPTION = -3
"""Outcome of a call of the function that raised an exception."""

Report = Callable[[int, int, int, int], int]
"""Function ``(frame, number, outcome, exception) -> error``, called where a call fails."""

_REPORT: Final = ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
)

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
    if numba.config.DISABLE_JIT:
        raise RuntimeError(
            "numba does not compile functions, because NUMBA_DISABLE_JIT is set: unset it, or call "
            "the Python function itself to debug it"
        )
    compiled = numba.njit(**options)(function)
    overload = _overload(compiled, (*arrays, *scalars))
    layout, names = frames.layout(signature)
    callback = _REPORT(_safe(report))
    call = _call(
        overload, [sorted(attributes).index(name) for name in attributes], number, callback
    )
    begin, place = reading()
    address = layout.ctypes.data
    stack = stack_words(2 * (len(arrays) + len(scalars)))

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

    compiled_handler: Any = numba.cfunc(types.int64(types.int64))(handler)
    _alive.append((compiled_handler, layout, names, callback, compiled, overload, begin, place))
    return compiled_handler.address


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
    address: Any = ctypes.cast(report, ctypes.c_void_p).value

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
            error = cgutils.alloca_once_value(builder, int64(0))
            with builder.if_then(status.is_error, likely=False):
                python = context.get_python_api(builder)
                state = python.gil_ensure()
                context.call_conv.raise_error(builder, python, status)
                exception = _fetched(builder, python)
                kind = ir.FunctionType(INT64, [INT64, INT64, INT64, exception.type])
                function = pointer(builder, int64(address), kind)
                arguments = [args[0], int64(number), int64(EXCEPTION), exception]
                builder.store(builder.call(function, arguments), error)
                python.decref(exception)
                python.gil_release(state)
            return builder.load(error)

        return types.int64(types.int64, types.int64), codegen

    return call


def _value(context: Any, builder: Any, kind: Any, table: Any, entry: int) -> Any:
    """An array or a number, from the addresses of its elements and sizes in a table."""
    words = pointer(builder, table, INT64)
    data, sizes = (builder.load(builder.gep(words, [int64(entry + k)])) for k in range(2))
    if not isinstance(kind, types.Array):
        return context.unpack_value(
            builder, kind, pointer(builder, data, context.get_data_type(kind))
        )
    sizes = pointer(builder, sizes, INT64)
    shape = [builder.load(builder.gep(sizes, [int64(axis)])) for axis in range(kind.ndim)]
    itemsize = context.get_constant(
        types.intp, context.get_abi_sizeof(context.get_data_type(kind.dtype))
    )
    strides: list[Any] = []
    stride = itemsize
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
