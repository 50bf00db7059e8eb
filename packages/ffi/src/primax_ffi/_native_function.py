"""Native functions from Python loops, which numba compiles."""

from __future__ import annotations

import ctypes
import dis
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from primax_core.extend import summarize_function
from primax_core.extend.runtime import api_boundary, library_function, new_lock

from . import _call_frame as frames
from ._call import check_method, ffi_call, operand
from ._signature_text import as_signature
from ._signatures import ArrayType, Signature, converted
from ._targets import pycapsule, register_ffi_target

_METHODS: Final = ("expand_dims", "broadcast_all", "sequential", "sequential_unrolled")

_functions: Final[list[NativeFunction]] = []
_names: Final[dict[str, int]] = {}
"""The number of functions with a name."""

_lock: Final = new_lock()


@api_boundary
def native_function(
    signature: str | Signature,
    *,
    name: str | None = None,
    vmap_method: str | Callable[..., Any] | None = "expand_dims",
    has_side_effect: bool = False,
    partition: str | None = None,
    boundscheck: bool = False,
    fastmath: bool = False,
    error_model: str = "python",
    cache: bool = False,
) -> Callable[[Callable[..., None]], NativeFunction]:
    """Decorator that compiles a Python loop function to a native function, by numba.

    The decorated function is called with arrays, eagerly and in compiled programs, and costs as
    much as an operation of XLA: no Python runs. It is compiled when a program that calls it is
    first compiled, or loaded from the disk, and runs on CPUs. Install numba with
    ``pip install primax-ffi[numba]``.

    Args:
      signature: a :class:`Signature`, or its text: the types of operands; names and types of
        attributes; types of results. Dtypes are booleans, integers of 8 to 64 bits, ``f32``,
        ``f64``, ``c64`` and ``c128``; attributes are numbers and arrays of numbers. The Python
        function takes the operands, then the results, then the attributes by name. Operands are
        read-only. Results contain arbitrary values, unless they use the memory of an operand
        (``aliases``), and are written in place. Arrays without axes are read and written as
        ``x[()]``. An array with ``...`` is passed without these axes: the function is called for
        each example along them. If one has ``...``, then all results have.
      name: the name of the native function, which belongs to the whole process and occurs in
        exported programs. By default those of the module and the function.
      vmap_method: behaviour under ``vmap`` as for :func:`ffi_call`. By default the compiled
        function loops over the examples, and operands that are not mapped are not copied.
      has_side_effect: run the function even if its results are unused.
      partition: axes along which devices divide the call, as for :func:`ffi_call`. By default those
        of ``...`` and of ``vmap``, unless the function has side effects.
      boundscheck: raise an error for an index out of bounds. Without it such an index reads or
        overwrites other memory, or ends the process.
      fastmath, error_model, cache: options of ``numba.njit``: reordering of floating-point
        arithmetic; ``"numpy"`` for a division by zero that does not raise an error; machine code
        of the function that later processes read from the disk.

    Returns:
      A decorator. The :class:`NativeFunction` takes arrays, and attributes as keyword arguments;
      the function's defaults apply to them.

    Raises:
      TypeError, ValueError: if the function's parameters do not fit the signature, or it never
        uses a result; while tracing, if a call does not fit.
      ImportError: when it is compiled, if numba is not installed.
      JaxRuntimeError: where a result is used, if the function raised an exception.

    There is no derivative: define it with ``custom_jvp`` or ``custom_vjp``.

    >>> import numpy as np
    >>> from primax_core import jit
    >>> @native_function("f32[n]; decay: f32 -> f32[n]")
    ... def smooth(x, y, decay=0.5):
    ...     total = np.float32(0)
    ...     for i in range(x.shape[0]):
    ...         total = decay * total + x[i]
    ...         y[i] = total
    >>> print(jit(smooth)(np.float32([1, 1, 1])))  # doctest: +SKIP
    [1.   1.5  1.75]
    """
    own = as_signature(signature, "the signature of a native function")
    options = {
        "boundscheck": bool(boundscheck),
        "fastmath": bool(fastmath),
        "error_model": error_model,
        "cache": bool(cache),
        "nogil": True,
    }
    if error_model not in ("python", "numpy"):
        raise ValueError(f"error_model is {error_model!r}: it is 'python' or 'numpy'")
    check_method(vmap_method)
    if isinstance(vmap_method, str) and vmap_method not in _METHODS:
        raise ValueError(
            f"vmap_method={vmap_method!r} does not work for functions that numba compiles: choose "
            f"one of {[*_METHODS, None]}, or a function"
        )

    if partition is not None and has_side_effect:
        raise ValueError(
            "native_function has partition and has_side_effect=True, but side effects happen on "
            "the first device of a program: leave one of them out"
        )

    def decorate(function: Callable[..., None]) -> NativeFunction:
        return NativeFunction(
            function, own, name, options, {
                "vmap_method": vmap_method,
                "has_side_effect": bool(has_side_effect),
                "partition": _along_examples(own) if partition is None and not has_side_effect
                else partition,
            }
        )  # fmt: skip

    return decorate


class NativeFunction:
    """A native function that numba compiles from a Python function; see :func:`native_function`.

    Attributes:
      name: the name of the native function.
      signature: the types of operands, results and attributes.
    """

    def __init__(
        self,
        function: Callable[..., None],
        signature: Signature,
        name: str | None,
        options: dict[str, Any],
        call_options: dict[str, Any],
    ) -> None:
        if not inspect.isfunction(function):
            raise TypeError(f"native_function takes a Python function, not {function!r}")
        if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
            raise TypeError(
                f"native_function takes a function with loops, but {function!r} is a coroutine or "
                "a generator: remove async and yield, and write into the results"
            )
        self._function, self._options, self._call_options = function, options, call_options
        self._handler: Any = None
        self._lock = new_lock()
        self.signature: Signature = signature
        where = f"native function {summarize_function(function)}"
        _check_signature(where, signature)
        self._attributes, self._defaults = _parameters(where, function, signature)
        if not call_options["has_side_effect"]:
            _check_written(where, function, signature)
        self.name: str = _new_name(where, function, name)
        functools.update_wrapper(self, function)
        with _lock:
            self._number = len(_functions)
            _functions.append(self)
        self.__signature__: inspect.Signature = _signature_of_calls(function, signature)
        register_ffi_target(self.name, load=self._load, signature=signature)
        self._call = call = ffi_call(self.name, **call_options)

        def compiled(*args: Any, **attributes: Any) -> Any:
            return call(*args, **attributes)

        # Calls outside of transformations are checked and compiled once.
        self._compiled_call = library_function(
            compiled, static_argnames=tuple(signature.attrs), name=self.name
        )

    @api_boundary
    def __call__(self, /, *args: Any, **attributes: Any) -> Any:
        values = {**self._defaults, **attributes}
        if all(isinstance(v, (bool, int, float, np.generic)) for v in values.values()):
            try:
                return self._compiled_call(*args, **values)
            except TypeError:
                for i, x in enumerate(args):
                    operand(self.name, i, x)  # the error that names the operand
                raise
        return self._call(*args, **values)

    def __reduce__(self) -> str:
        return self.__qualname__  # copies and pickles refer to the function of the module

    def compile(self) -> NativeFunction:
        """Compile the function now, instead of with the first program that calls it.

        Returns:
          The function itself.

        Raises:
          ImportError: if numba is not installed.
        """
        self._load()
        return self

    def _load(self) -> Any:
        """The capsule of the handler, compiled once."""
        with self._lock:
            if self._handler is None:
                self._handler = pycapsule(self._compiled())
            return self._handler

    def _compiled(self) -> int:
        """The address of the handler."""
        try:
            from . import _numba_handlers
        except ImportError as error:
            raise ImportError(
                f"the native function {self.name!r} is compiled by numba, which cannot be "
                f"imported ({error}): pip install 'primax-ffi[numba]'"
            ) from error
        try:
            return _numba_handlers.compile_handler(
                self._function, self.signature, self._attributes, self._number, _report,
                self._options,
            )  # fmt: skip
        except Exception as error:
            error.add_note(
                f"numba compiled the native function {self.name!r} for the signature "
                f"{self.signature}; operands are read-only arrays"
            )
            raise

    def __repr__(self) -> str:
        return f"<native function {self.name}: {self.signature}>"


def _report(frame: int, number: int, outcome: int, exception: int) -> int:
    """The error of a call that failed. It is called by compiled handlers."""
    function = _functions[number]
    if not exception:
        return frames.new_error(
            frame,
            f"the native function {function.name!r} has the signature {function.signature}, but is "
            f"called with {frames.describe(frame)}",
            invalid=True,
        )
    value: BaseException = ctypes.cast(exception, ctypes.py_object).value
    text = f"the native function {function.name!r} raised {type(value).__name__}: {_text(value)}"
    if (trace := value.__traceback__) is not None:
        while trace.tb_next is not None:
            trace = trace.tb_next
        text += f" ({trace.tb_frame.f_code.co_filename}:{trace.tb_lineno})"
    return frames.new_error(frame, text, invalid=False)


def _text(exception: BaseException) -> str:
    try:
        return str(exception)
    except Exception as error:
        return f"(its text raised {type(error).__name__})"


def _along_examples(signature: Signature) -> str:
    """The partition along the axes that the compiled function loops over."""

    def side(arrays: Sequence[ArrayType]) -> str:
        return ", ".join(" ".join(["..."] * t.leading + ["_"] * len(t.sizes)) for t in arrays)

    return f"{side(signature.operands)} -> {side(signature.results)}"


# Checks


def _check_signature(where: str, signature: Signature) -> None:
    arrays = [*signature.operands, *signature.results]
    if not signature.results:
        raise ValueError(f"the {where} has no results: its signature is {signature}")
    for type_ in arrays:
        if isinstance(type_.dtype, str):
            raise ValueError(
                f"the {where} has the dtype {type_.dtype}: numba compiles it for one dtype; "
                "decorate it for each"
            )
        _check_dtype(where, type_.dtype.name)
    if any(t.leading for t in arrays) and not all(t.leading for t in signature.results):
        raise ValueError(
            f"the {where} has operands with ... and results without: it is called for each example "
            f"along these axes, so its results have them, too; its signature is {signature}"
        )
    for name, kind in signature.attrs.items():
        if kind in ("str", "dtype", "dict"):
            raise ValueError(f"the {where} has the attribute {name!r} of type {kind}: use numbers")
        dtype = frames.attribute_dtype(kind).name
        _check_dtype(where, dtype)
        if dtype.startswith("complex") or (dtype == "bool" and kind != "bool"):
            raise ValueError(
                f"the {where} has the attribute {name!r} of type {kind}, which does not exist in "
                "XLA's interface: use two numbers for a complex one, u8[] for booleans"
            )


def _check_dtype(where: str, dtype: str) -> None:
    if dtype not in frames.CODES:
        raise ValueError(
            f"the {where} has the dtype {dtype}, which numba does not have: the dtypes are "
            f"{', '.join(frames.CODES)}"
        )


def _parameters(
    where: str, function: Callable[..., None], signature: Signature
) -> tuple[list[str], dict[str, Any]]:
    """The attributes in the order of the function's parameters, and their defaults."""
    arrays = len(signature.operands) + len(signature.results)
    parameters = list(inspect.signature(function).parameters.values())
    kinds = {p.kind for p in parameters}
    if kinds - {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}:
        raise TypeError(f"the {where} has *args, **kwargs or keyword-only parameters")
    names = [p.name for p in parameters]
    if len(names) < arrays or {*names[arrays:]} != {*signature.attrs}:
        expected = f"{len(signature.operands)} operands, {len(signature.results)} results"
        if signature.attrs:
            expected += f", and the attributes {sorted(signature.attrs)}"
        raise TypeError(
            f"the {where} has the parameters {names}, but its signature {signature!r} has "
            f"{expected}: it takes them in this order, and writes into the results"
        )
    for parameter in parameters[:arrays]:
        if parameter.default is not parameter.empty:
            raise TypeError(f"the {where} has a default for the array {parameter.name!r}")
    defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
    for name, value in defaults.items():
        converted(signature.attrs[name], value, f"the default of {name!r} of the {where}")
    return names[arrays:], defaults


def _check_written(where: str, function: Callable[..., None], signature: Signature) -> None:
    """Raise an error for a result that the function never uses, so that it is not written."""
    operands, code = len(signature.operands), function.__code__
    loaded: set[Any] = set()
    for instruction in dis.get_instructions(code):
        if "LOAD" in instruction.opname:
            value = instruction.argval
            loaded |= {*value} if isinstance(value, tuple) else {str(value)}
    for i, name in enumerate(code.co_varnames[operands : operands + len(signature.results)]):
        if name not in loaded and i not in signature.aliases.values():
            raise TypeError(
                f"the {where} does not write the result {name!r}. It returns nothing and "
                f"assigns elements, {name}[i] = ..., {name}[:] = ... or, without axes, {name}[()] "
                f"= ...; {name} = ... is another variable"
            )


def _signature_of_calls(function: Callable[..., None], signature: Signature) -> inspect.Signature:
    """The parameters of calls: operands, and attributes as keywords."""
    parameters = list(inspect.signature(function).parameters.values())
    operands = len(signature.operands)
    return inspect.Signature(
        [p.replace(kind=p.POSITIONAL_ONLY) for p in parameters[:operands]]
        + [p.replace(kind=p.KEYWORD_ONLY) for p in parameters[operands + len(signature.results) :]]
    )


def _new_name(where: str, function: Callable[..., None], name: str | None) -> str:
    """The name of a native function that no other has."""
    default = f"{function.__module__}.{function.__qualname__}".replace("<locals>.", "")
    own = default if name is None else name
    if not isinstance(own, str) or not own or not own.isprintable():
        raise TypeError(f"the name of the {where} is a printable text, not {name!r}")
    with _lock:
        count = _names[own] = _names.get(own, 0) + 1
    if count > 1 and name is not None:
        raise ValueError(
            f"the {where} has the name {name!r}, which another one has: choose another name; a "
            "function that is defined again, as in a notebook, gets a new name if name is left out"
        )
    return own if count == 1 else f"{own}-{count}"
