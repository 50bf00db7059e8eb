"""Error classes. Each message ends with the address of the page that explains it.

The classes of tracer errors receive the tracer that caused them. They read ``tracer.aval`` (its
shape and dtype) and ``tracer._origin()``: a text about the origin of the tracer, or ``""``.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from .identity import DOCS_URL

DOCS_FOLDER: Final = DOCS_URL + "errors/"
"""The folder with a page for each class."""

_PUBLIC: Final = __name__.removesuffix("._base.errors") + ".errors"


def _with_reference(cls: type, message: str) -> str:
    documented = next(c for c in cls.__mro__ if c.__module__ == _PUBLIC)
    return f"{message.rstrip()}\nSee {DOCS_FOLDER}{documented.__name__}.html"


def _described(tracer: Any) -> str:
    """``traced array with shape float32[2,3]``."""
    aval = tracer.aval
    dtype, shape = getattr(aval, "dtype", None), getattr(aval, "shape", None)
    if dtype is None or shape is None:
        return f"traced value of type {aval}"
    return f"traced array with shape {dtype.name}[{','.join(map(str, shape))}]"


def _about(tracer: Any, first_line: str, remedy: str = "") -> str:
    """The first line, the origin of the tracer if it is known, and what to write instead."""
    return "\n".join(line for line in (first_line, tracer._origin(), remedy) if line)


class _DocumentedError(Exception):
    """Base class that appends the address of the class's page of the documentation."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.__module__ == __name__:
            cls.__module__ = _PUBLIC  # tracebacks show a name that can be imported

    def __init__(self, message: str) -> None:
        super().__init__(_with_reference(type(self), message))

    def __reduce__(self) -> Any:
        return _rebuild, (type(self), *self.args)


class ErrorWithPage(Exception):
    """Base class for error classes of wheels: texts end with the address of the class's page.

    A class that is declared with ``page=True`` has a page in ``docs/errors``; other subclasses
    refer to the page of their base. The address is part of ``str(error)``, not of ``error.args``.

    >>> from primax_core.extend.runtime import ErrorWithPage
    >>> class OwnError(ErrorWithPage, ValueError, page=True):
    ...     "An error with a page."
    >>> print(OwnError("What happened."))
    What happened.
    See https://primax.readthedocs.io/en/latest/errors/OwnError.html
    """

    _page: ClassVar[str]

    def __init_subclass__(cls, page: bool = False, **options: Any) -> None:
        super().__init_subclass__(**options)
        if page:
            cls._page = cls.__name__

    def __str__(self) -> str:
        return f"{super().__str__().rstrip()}\nSee {DOCS_FOLDER}{self._page}.html"


def _rebuild(cls: type, *args: Any) -> Any:
    """Unpickle an error from its complete message, without its tracer."""
    error = cls.__new__(cls, *args)
    error.args = args
    return error


class PrimaxTypeError(_DocumentedError, TypeError):
    """A value is used in a way that its type does not allow.

    It is the base of the errors about tracers, and a ``TypeError``. Messages end with the address
    of a page that explains the error with examples.

    >>> from primax_core import errors
    >>> issubclass(errors.TracerBoolConversionError, errors.PrimaxTypeError)
    True
    >>> issubclass(errors.PrimaxTypeError, TypeError)
    True
    """


class PrimaxIndexError(_DocumentedError, IndexError):
    """An array is indexed in a way that cannot be compiled."""


_CONVERSION_HINTS = {
    "int": "If you want integers inside the traced function, use `x.astype(int)`.",
    "float": "If you want floats inside the traced function, use `x.astype(float)`.",
    "complex": "If you want complex numbers inside the traced function, use `x.astype(complex)`.",
    "item": "Return the array from the traced function and call `.item()` on the result.",
    "tolist": "Return the array from the traced function and call `.tolist()` on the result.",
}


class ConcretizationTypeError(PrimaxTypeError):
    """A concrete value is required, but tracing knows only the type.

    ``context`` is a sentence about the operation that requires the value, or the name of a
    conversion: ``"int"``, ``"float"``, ``"complex"``, ``"item"`` or ``"tolist"``.
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
    """A tracer is used as a Python bool, such as in ``if x > 0:``.

    A traced function runs once for all values, so Python cannot branch on them. Choose by value
    with ``lax.cond`` or ``lax.select``, or mark the argument as static if there are few values.

    >>> from primax_core import errors, jit
    >>> try:
    ...     jit(lambda x: x if x > 0 else -x)(1.0)
    ... except errors.TracerBoolConversionError as error:
    ...     print(str(error).splitlines()[0])
    Attempted boolean conversion of traced array with shape bool[].
    """

    def __init__(self, tracer: Any) -> None:
        first = f"Attempted boolean conversion of {_described(tracer)}."
        remedy = (
            "Choose by value with `lax.cond`, `lax.select` or `where`, or mark the argument as "
            "static (static_argnums) in jit."
        )
        PrimaxTypeError.__init__(self, _about(tracer, first, remedy))


class TracerIntegerConversionError(PrimaxTypeError):
    """A tracer is used as a Python integer, such as an index of a list or the length of a range.

    Lists and loops of Python need concrete integers. Mark the argument as static, convert the
    list to an array and index that, or use ``lax.fori_loop``.

    >>> from primax_core import errors, jit
    >>> try:
    ...     jit(lambda i: [10.0, 20.0][i])(1)
    ... except errors.TracerIntegerConversionError as error:
    ...     print("__index__" in str(error))
    True
    """

    def __init__(self, tracer: Any) -> None:
        first = f"The __index__() method was called on {_described(tracer)}"
        remedy = (
            "Shapes, lengths and indices of Python lists need concrete integers: mark the argument "
            "as static (static_argnums) in jit, or index an array instead of a list."
        )
        super().__init__(_about(tracer, first, remedy))


class TracerArrayConversionError(PrimaxTypeError):
    """A tracer is passed to NumPy.

    NumPy computes with values, which a tracer does not have. Use the functions of this library,
    or ``pure_callback`` for a function that needs NumPy.

    >>> import numpy as np
    >>> from primax_core import errors, jit
    >>> try:
    ...     jit(lambda x: np.sin(x))(1.0)
    ... except errors.TracerArrayConversionError as error:
    ...     print("__array__" in str(error))
    True
    """

    def __init__(self, tracer: Any) -> None:
        first = (
            f"The numpy.ndarray conversion method __array__() was called on {_described(tracer)}"
        )
        remedy = (
            "Use the function of `primax.numpy` instead of NumPy's, or call NumPy by "
            "`pure_callback`."
        )
        super().__init__(_about(tracer, first, remedy))


class UnexpectedTracerError(PrimaxTypeError):
    """A tracer is used after the end of its transformation.

    The tracer was stored outside of the traced function: in a global variable, an attribute or a
    list. Return the value from the function instead. The message gives the operation that created
    the tracer.

    >>> from primax_core import errors, jit, lax
    >>> leaked = []
    >>> _ = jit(lambda x: leaked.append(lax.sin(x)) or x)(1.0)
    >>> try:
    ...     lax.cos(leaked[0])
    ... except errors.UnexpectedTracerError:
    ...     print("leaked")
    leaked
    """


class NonConcreteBooleanIndexError(PrimaxIndexError):
    """A traced boolean mask is used as an index, so that the shape of the result is unknown."""

    def __init__(self, tracer: Any) -> None:
        first = f"Array boolean indices must be concrete; got {_described(tracer)}"
        remedy = (
            "The number of selected elements must not depend on values: use `where(mask, x, y)`, "
            "or `nonzero(mask, size=...)`."
        )
        super().__init__(_about(tracer, first, remedy))


class KeyReuseError(PrimaxTypeError):
    """A random key is used twice while ``debug_key_reuse`` is on.

    Numbers from the same key are equal, not independent. Split the key: one part for each use.
    """


class LeakedTracerError(_DocumentedError):
    """A tracer is referenced after the end of its trace while ``checking_leaks`` is on.

    The option finds references to tracers before they are used. The message lists the tracers;
    see :class:`UnexpectedTracerError` for the remedy.

    >>> from primax_core import checking_leaks, errors, jit, lax
    >>> leaked = []
    >>> with checking_leaks():
    ...     try:
    ...         jit(lambda x: leaked.append(lax.sin(x)) or x)(1.0)
    ...     except errors.LeakedTracerError:
    ...         print("leaked")
    leaked
    """


class TracingRecursionError(_DocumentedError, RecursionError):
    """A traced function calls itself without end."""


class JaxprTypeError(_DocumentedError, TypeError):
    """A jaxpr is not well typed, because of a bug in the pass that created it."""


class InconclusiveDimensionOperation(_DocumentedError):
    """An operation on symbolic dimensions has no result that is valid for all their values.

    Comparisons in shapes must have one answer for all sizes. Add a constraint to
    ``symbolic_shape``, or write the function without the comparison.

    >>> from primax_core import errors, export
    >>> (n,) = export.symbolic_shape("n")
    >>> try:
    ...     n > 5
    ... except errors.InconclusiveDimensionOperation:
    ...     print("undecided")
    undecided
    """


class InvalidArtifactError(_DocumentedError, ValueError):
    """Bytes are not a valid or trusted exported function or executable."""
