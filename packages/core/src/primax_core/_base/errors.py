"""The error classes. Each message ends with the place of the documentation that explains it.

The classes of tracer errors take the tracer that caused them. Of it they use ``tracer.aval`` (for
its shape and dtype) and ``tracer._origin()``, a text that says where the tracer came from, or
``""``.
"""

from __future__ import annotations

from typing import Any

DOCS_PAGE = "docs/errors.md"


def _with_reference(cls: type, message: str) -> str:
    return f"{message.rstrip()}\nSee {DOCS_PAGE}, section {cls.__name__}."


def _described(tracer: Any) -> str:
    """``traced array with shape float32[2,3]``."""
    aval = tracer.aval
    dtype, shape = getattr(aval, "dtype", None), getattr(aval, "shape", None)
    if dtype is None or shape is None:
        return f"traced value of type {aval}"
    return f"traced array with shape {dtype.name}[{','.join(map(str, shape))}]"


def _about(tracer: Any, first_line: str) -> str:
    """The first line, and where the tracer came from when it knows."""
    origin = tracer._origin()
    return f"{first_line}\n{origin}" if origin else first_line


class _DocumentedError(Exception):
    """Base: appends the reference to the class's section of the documentation."""

    def __init__(self, message: str) -> None:
        super().__init__(_with_reference(type(self), message))

    def __reduce__(self) -> Any:
        return _rebuild, (type(self), *self.args)


def _rebuild(cls: type, *args: Any) -> Any:
    """Unpickle an error: from its finished message, not from the tracer that it was made for."""
    error = cls.__new__(cls, *args)
    error.args = args
    return error


class PrimaxTypeError(_DocumentedError, TypeError):
    """A value was used in a way that its kind does not allow."""


class PrimaxIndexError(_DocumentedError, IndexError):
    """An array was indexed in a way that cannot be compiled."""


_CONVERSION_HINTS = {
    "int": "If you want integers inside the traced function, use `x.astype(int)`.",
    "float": "If you want floats inside the traced function, use `x.astype(float)`.",
    "complex": "If you want complex numbers inside the traced function, use `x.astype(complex)`.",
    "item": "Return the array from the traced function and call `.item()` on the result.",
    "tolist": "Return the array from the traced function and call `.tolist()` on the result.",
}


class ConcretizationTypeError(PrimaxTypeError):
    """The value of a tracer was asked for, and tracing knows only its type.

    ``context`` is a sentence that says what wanted the value, or the name of the conversion that
    did: ``"int"``, ``"float"``, ``"complex"``, ``"item"`` or ``"tolist"``.
    """

    def __init__(self, tracer: Any, context: str = "") -> None:
        hint = _CONVERSION_HINTS.get(context)
        if hint is not None:
            context = f"The problem arose in `{context}` of a traced value. {hint}"
        first = (
            "Abstract tracer value encountered where concrete value is expected: "
            f"{_described(tracer)}"
        )
        super().__init__(_about(tracer, f"{first}\n{context}" if context else first))


class TracerBoolConversionError(ConcretizationTypeError):
    """A tracer was used where Python needs a true or a false, such as in ``if x > 0:``."""

    def __init__(self, tracer: Any) -> None:
        first = f"Attempted boolean conversion of {_described(tracer)}."
        PrimaxTypeError.__init__(self, _about(tracer, first))


class TracerIntegerConversionError(PrimaxTypeError):
    """A tracer was used where Python needs an integer, such as an index of a list."""

    def __init__(self, tracer: Any) -> None:
        first = f"The __index__() method was called on {_described(tracer)}"
        super().__init__(_about(tracer, first))


class TracerArrayConversionError(PrimaxTypeError):
    """A tracer was handed to NumPy."""

    def __init__(self, tracer: Any) -> None:
        first = (
            f"The numpy.ndarray conversion method __array__() was called on {_described(tracer)}"
        )
        super().__init__(_about(tracer, first))


class UnexpectedTracerError(PrimaxTypeError):
    """A tracer was used after the transformation that made it had ended."""


class NonConcreteBooleanIndexError(PrimaxIndexError):
    """A traced boolean mask was used as an index, so that the result's shape is unknown."""

    def __init__(self, tracer: Any) -> None:
        first = f"Array boolean indices must be concrete; got {_described(tracer)}"
        super().__init__(_about(tracer, first))


class KeyReuseError(PrimaxTypeError):
    """One random key was used twice while ``debug_key_reuse`` was on."""


class LeakedTracerError(_DocumentedError):
    """A tracer outlived its trace while ``checking_leaks`` was on."""


class TracingRecursionError(_DocumentedError, RecursionError):
    """A function called itself without end while it was traced."""


class JaxprTypeError(_DocumentedError, TypeError):
    """A program is not well typed: a pass that made it has a bug."""


class InconclusiveDimensionOperation(_DocumentedError):
    """An operation on symbolic dimensions has no answer that holds for all their values."""


class InvalidArtifactError(_DocumentedError, ValueError):
    """Bytes that should hold an exported program or an executable do not, or not one to trust."""
