"""The current trace, tracers, and the avals of values."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np

from .._base import errors, source
from .._base.config import state
from .._base.identity import is_own
from .._ir import dtypes
from .._ir.avals import ShapedArray
from .._ir.jaxpr import Jaxpr
from .._ir.primitive import Primitive
from . import foreign
from .array import Array


class Trace:
    """A running interpreter.

    ``parent`` is the enclosing trace (``None`` for eager evaluation). ``live`` becomes false when
    the trace ends. Its tracers must not be used after that.
    """

    __slots__ = ("parent", "live", "__weakref__")

    kind = "trace"

    def __init__(self, parent: Trace | None):
        self.parent: Trace | None = parent
        self.live: bool = True

    def process(self, prim: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Interpret one application of a primitive."""
        raise NotImplementedError

    def call(self, jaxpr: Jaxpr, args: list[Any], name: str | None = None) -> list[Any]:
        """Interpret a jaxpr."""
        raise NotImplementedError

    def call_custom(self, custom: Any, args: Sequence[Any]) -> list[Any]:
        """Interpret a call of a function with a custom rule (``custom_jvp``, ``custom_vjp``).

        Args:
          custom: has ``fun``, from arrays to a list, and ``rule`` or ``fwd`` and ``bwd``.

        This base method interprets the function and ignores its rule. The modules of custom rules
        register the behaviour of traces that differentiate or batch.
        """
        with set_trace(self):
            return custom.fun(*args)


class Tracer(Array):
    """A value in a trace, known by its type only."""

    __slots__ = ("_trace", "aval", "__weakref__")

    _trace: Trace
    aval: ShapedArray

    def __init__(self, trace: Trace, aval: ShapedArray):
        self._trace = trace
        self.aval = aval

    # Python looks these methods up on the class; the properties of Array read attributes.

    def __bool__(self) -> bool:
        if self.aval.size != 1:
            raise ValueError(
                "The truth value of an array with more than one element is ambiguous. "
                "Use a.any() or a.all()"
                if self.aval.size
                else "The truth value of an empty array is ambiguous."
            )
        return bool(self._concrete_or_raise(errors.TracerBoolConversionError))

    def __int__(self) -> int:
        return int(self._concrete_or_raise(errors.ConcretizationTypeError, "int"))

    def __float__(self) -> float:
        return float(self._concrete_or_raise(errors.ConcretizationTypeError, "float"))

    def __complex__(self) -> complex:
        return complex(self._concrete_or_raise(errors.ConcretizationTypeError, "complex"))

    def __index__(self) -> int:
        return int(self._concrete_or_raise(errors.TracerIntegerConversionError).__index__())

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        # Also for a known value: NumPy would compute with it outside the trace.
        raise errors.TracerArrayConversionError(self)

    __hash__: Any = None  # type: ignore[assignment]

    def __format__(self, spec: str) -> str:
        if not spec:
            return repr(self)
        raise TypeError(f"unsupported format string passed to {type(self).__name__}.__format__")

    def item(self, *args: Any) -> Any:
        """Raise: a tracer has no value to convert to a Python scalar."""
        value = self._concrete_or_raise(errors.ConcretizationTypeError, "item")
        return value.item(*args)

    def tolist(self) -> Any:
        """Raise: a tracer has no values to convert to nested lists."""
        return self._concrete_or_raise(errors.ConcretizationTypeError, "tolist").tolist()

    def __deepcopy__(self, memo: Any) -> Tracer:
        return self

    def __copy__(self) -> Tracer:
        return self

    def __reduce__(self) -> NoReturn:
        raise errors.ConcretizationTypeError(self)

    def _concrete_or_raise(self, error, context: str = "") -> Any:
        """The concrete value of the tracer; raise if there is none."""
        value = self._concrete()
        if value is None:
            raise error(self) if not context else error(self, context)
        return value

    def _concrete(self) -> Any | None:
        return None

    def _concrete_values(self) -> Sequence[Any]:
        """The arrays of a tracer that has several, such as one for each device."""
        return ()

    def _split(self) -> tuple[Any, Any]:
        """The (primal, extra) pair of a tracer of a subclass of this trace's tracer class."""
        return self, None

    def _origin(self) -> str:
        """Origin of the tracer, for error messages."""
        return ""


class Mutable:
    """Base of values with changing contents: always an argument of a jaxpr, never a constant."""

    __slots__ = ()


class RefTypeError(TypeError):
    """A reference was used as an array; code that can read references catches this error."""


class DischargeFirst(Exception):
    """Raised by a rule that cannot process an operation on references before its discharge."""


# Avals of values

_type_of: dict[type, Callable[[Any], ShapedArray]] = {}
_conversions: dict[type, Callable[[Any], Any]] = {}


def typeof(x: Any) -> ShapedArray:
    """The type of an operand (its aval): shape, dtype, weak type and sharding.

    Args:
      x: an array, a NumPy array, a number, a tracer or a reference.

    Returns:
      A ``ShapedArray``, or an ``AbstractRef`` for a reference.

    Raises:
      TypeError: if ``x`` is none of these; a list or a string for example.

    Nothing is computed or transferred. NumPy arrays have the type that they get as operands:
    64-bit dtypes only if ``enable_x64`` is set.

    >>> import numpy as np
    >>> from primax_core import typeof
    >>> typeof(np.zeros((2, 3)))
    ShapedArray(float32[2,3])
    >>> typeof(1.0).weak_type
    True
    """
    of_class = _type_of.get(type(x))
    if of_class is not None:
        return of_class(x)
    try:
        aval = x.aval
    except AttributeError:
        return _type_of_other(x)
    if type(aval) is ShapedArray and hasattr(type(x), "aval"):
        return aval
    return _unusual_aval(x, aval)


def placed_like(x: Any, aval: Any) -> Any:
    """A value with the placement of a type.

    Args:
      x: an array or a tracer.
      aval: a type with a placement over mesh axes.

    Returns:
      ``x``, or ``x`` cast to the placement.

    Cotangents have the placement of their results by it. Without placements in types nothing is
    done.

    >>> from primax_core import typeof
    >>> from primax_core.extend.placements import placed_like
    >>> placed_like(2.0, typeof(2.0))
    2.0
    """
    placement = aval.placement
    return x if typeof(x).placement is placement else placement.cast(x)


def argument_type(x: Any) -> ShapedArray:
    """The type of an argument of a library function.

    An object that converts itself to an array is converted, unlike operands of primitives.

    Args:
      x: an array, a number, a tracer or an object with a conversion method.

    Returns:
      A ``ShapedArray``.

    Raises:
      TypeError: if ``x`` is none of these.

    Functions whose arguments need checks of shapes and dtypes read them by it.

    >>> from primax_core.extend.elementwise import argument_type
    >>> argument_type(1.0)
    ShapedArray(float32[], weak_type=True)
    """
    # Not a call of `typeof`, for speed.
    of_class = _type_of.get(type(x))
    if of_class is not None:
        return of_class(x)
    try:
        aval = x.aval
    except AttributeError:
        return typeof(x.__jax_array__()) if foreign.converts_itself(x) else _type_of_other(x)
    if type(aval) is ShapedArray:
        return aval
    if not hasattr(type(x), "aval") and foreign.converts_itself(x):
        return typeof(x.__jax_array__())  # `aval` is that of a reference to its array
    return _unusual_aval(x, aval)


def _unusual_aval(x: Any, aval: Any) -> Any:
    """The aval of a value whose attribute ``aval`` is not a :class:`ShapedArray` of this core."""
    if isinstance(x, (Array, Mutable)):
        return aval
    if not hasattr(type(x), "aval") and foreign.converts_itself(x):
        raise foreign.invalid(x)  # its attributes are those of its array
    if is_own(type(aval).__module__):
        return aval
    if foreign.is_tracer(x):
        raise foreign.invalid(x)
    return foreign.aval_of_array(x) or aval


def _type_of_other(x: Any) -> ShapedArray:
    for cls in type(x).__mro__:
        if cls in _type_of:
            return _type_of[cls](x)
    raise foreign.invalid(x)


def is_valid_type(x: Any) -> bool:
    """Return True if a value can be an operand of primitives.

    Args:
      x: any value.

    Returns:
      A bool: whether ``typeof(x)`` succeeds.

    References and values of registered classes are operands too.

    >>> from primax_core.extend.traces import is_valid_type
    >>> is_valid_type(1.0), is_valid_type("text")
    (True, False)
    """
    try:
        typeof(x)
    except TypeError:
        return False
    return True


def register_value_type(
    cls: type,
    aval_of: Callable[[Any], ShapedArray],
    convert: Callable[[Any], Any] | None = None,
) -> None:
    """Accept values of a Python class as operands of primitives.

    Args:
      cls: the class, without its subclasses.
      aval_of: returns the type of a value.
      convert: returns the elements of a value, as an array or a NumPy array, unless an interpreter
        knows the class. By default the value is converted by its method ``__array__``.

    Returns:
      ``None``.

    Weak types are kept: a class of numbers can adapt to arrays as Python numbers do.

    >>> import numpy as np
    >>> from primax_core.extend import ShapedArray, typeof
    >>> from primax_core.extend.traces import register_value_type
    >>> class Celsius:
    ...     degrees = 20.0
    >>> register_value_type(Celsius, lambda value: ShapedArray((), np.dtype("float32")))
    >>> typeof(Celsius())
    ShapedArray(float32[])
    """
    _type_of[cls] = aval_of
    if convert:
        _conversions[cls] = convert


def converted(x: Any) -> Any:
    """The array of a value whose class has a conversion; other values are unchanged."""
    return _conversions[type(x)](x) if type(x) in _conversions else x


# NumPy's type characters of dtypes that arrays cannot have: objects, strings, times, structures,
# and the long double. Some element types of this library share these characters.
ODD_CHARS = frozenset("OSUMmVgG")


def _numpy_aval(x) -> ShapedArray:
    dtype = x.dtype
    if dtype.isnative:
        dtype = dtypes.canonicalize_dtype(dtype)
    else:  # values get the native byte order when they become an array
        dtype = dtypes.canonicalize_dtype(dtype.newbyteorder("="))
    if dtype.char in ODD_CHARS or type(x) not in _type_of and hasattr(x, "mask"):
        _check_numpy(x, dtype)
    return ShapedArray(x.shape, dtype)


def _check_numpy(x, dtype) -> None:
    dtypes.check_valid_dtype(dtype, x)
    if hasattr(x, "mask"):
        raise ValueError(
            "numpy masked arrays are not supported as direct inputs to Primax functions. Use "
            "arr.filled() to convert the value to a standard numpy array."
        )


def _scalar_aval(kind):
    wide, narrow = np.dtype(kind), dtypes.narrowed(np.dtype(kind))
    is_weak = kind is not np.bool_
    known = {True: ShapedArray((), wide, is_weak), False: ShapedArray((), narrow, is_weak)}

    def aval_of(x):
        return known[state.enable_x64]

    return aval_of


_type_of[np.ndarray] = _numpy_aval
_type_of[np.generic] = _numpy_aval
_type_of[bool] = _scalar_aval(np.bool_)
_type_of[int] = _scalar_aval(np.int64)
_type_of[float] = _scalar_aval(np.float64)
_type_of[complex] = _scalar_aval(np.complex128)


# The current trace


class set_trace:
    """Context manager that makes a trace the current one."""

    __slots__ = ("trace", "saved")

    def __init__(self, trace: Trace | None):
        self.trace: Trace | None = trace

    def __enter__(self) -> None:
        self.saved: Any = state.trace
        state.trace = self.trace

    def __exit__(self, *exc: object) -> None:
        state.trace = self.saved


def current_trace() -> Trace | None:
    """The innermost active trace, the interpreter of the current thread.

    Returns:
      A trace; ``None`` when evaluation is eager.

    A primitive's ``bind`` reads it. Code that must run eagerly uses ``ensure_compile_time_eval``.

    >>> from primax_core import make_jaxpr
    >>> from primax_core.extend.traces import current_trace
    >>> current_trace() is None
    True
    >>> names = []
    >>> _ = make_jaxpr(lambda x: names.append(type(current_trace()).__name__) or x)(1.0)
    >>> names
    ['StagingTrace']
    """
    return state.trace


@contextmanager
def ensure_compile_time_eval():
    """Context manager that evaluates operations on concrete values immediately.

    It applies under a trace too: the results are arrays, not operations of the jaxpr, so that
    Python code can read them. Operations on tracers are still traced.

    Returns:
      A context manager for the current thread.

    Shapes that depend on computed values can be computed in it.

    >>> from primax_core import ensure_compile_time_eval, lax, make_jaxpr
    >>> def f(x):
    ...     with ensure_compile_time_eval():
    ...         size = int(lax.add(1, 2))
    ...     return lax.broadcast(x, (size,))
    >>> make_jaxpr(f)(1.0).out_avals
    [ShapedArray(float32[3], weak_type=True)]
    """
    with set_trace(None):
        yield


def bind_on(
    trace: Trace | None, prim: Primitive, args: Sequence[Any], params: dict[str, Any]
) -> list[Any]:
    """Apply a primitive under a trace.

    Args:
      trace: a trace; ``None`` evaluates eagerly.
      prim: the primitive.
      args: the operands.
      params: the parameters.

    Returns:
      A list of results, also for primitives with one result.

    ``prim.bind`` uses the current trace. Rules that must reach an outer interpreter pass its
    trace.

    >>> from primax_core import lax
    >>> from primax_core.extend.traces import bind_on
    >>> [float(y) for y in bind_on(None, lax.add_p, [1.0, 2.0], {})]
    [3.0]
    """
    with set_trace(trace):
        out = prim.bind(*args, **params)
    return out if prim.multiple_results else [out]


def close_over(jaxpr: Jaxpr) -> tuple[Jaxpr, list]:
    """The jaxpr with its constants as leading arguments, and the values of these constants."""
    if not jaxpr.constvars:
        return jaxpr, []
    moved = jaxpr.replace(constvars=[], consts=[], invars=[*jaxpr.constvars, *jaxpr.invars])
    return moved, jaxpr.consts


def without_tracers(jaxpr: Jaxpr, args: Sequence) -> tuple[Jaxpr, Sequence]:
    """A jaxpr without tracers among its constants, and its arguments.

    If a constant is a tracer, all constants become leading arguments. The rule of a custom
    derivative may close over values of an enclosing transformation.
    """
    if not has_tracers(jaxpr.consts):
        return jaxpr, args
    moved, consts = close_over(jaxpr)
    return moved, [*consts, *args]


def has_tracers(values: Sequence) -> bool:
    """Return True if a value is a tracer or a mutable value."""
    return any(isinstance(v, (Tracer, Mutable)) for v in values)


def has_references(values: Sequence) -> bool:
    """Return True if a value is a concrete reference, not a tracer."""
    return any(isinstance(v, Mutable) for v in values)


def call_on(
    trace: Trace | None, jaxpr: Jaxpr, args: Sequence[Any], name: str | None = None
) -> list[Any]:
    """Evaluate a jaxpr under a trace.

    Args:
      trace: a trace; ``None`` compiles and runs the jaxpr.
      jaxpr: the jaxpr.
      args: arrays or tracers, one for each argument.
      name: name of the jaxpr in profiles.

    Returns:
      A list of results.

    Traces that stage inline the jaxpr or call it; others apply their rules to the whole.

    >>> from primax_core import lax, make_jaxpr
    >>> from primax_core.extend.traces import call_on
    >>> jaxpr = make_jaxpr(lambda x: lax.mul(x, x))(1.0)
    >>> [float(y) for y in call_on(None, jaxpr, [3.0])]
    [9.0]
    """
    if jaxpr.consts:
        jaxpr, args = without_tracers(jaxpr, args)
    if trace is None:
        return run_eagerly(jaxpr, args)
    return trace.call(jaxpr, args, name)


def _no_runtime(jaxpr, args):
    raise RuntimeError("no runtime is installed")


run_eagerly: Callable[[Jaxpr, list], list] = _no_runtime


def install_runner(fun: Callable[[Jaxpr, list], list]) -> None:
    """Install the function that compiles and runs jaxprs while no trace is active; called once."""
    global run_eagerly
    run_eagerly = fun


def made_by(what: str, fun: Callable | None, inner: Any) -> str:
    """Origin of a tracer, a text for error messages.

    Args:
      what: the transformation, such as ``"jit"``.
      fun: its function, or ``None``.
      inner: a tracer or value whose origin is added.

    Returns:
      A string.

    Errors about leaked tracers end with it.

    >>> from primax_core.extend.traces import made_by
    >>> def f(x): ...
    >>> made_by("jit", f, 1.0).startswith("It was made by jit of f at ")
    True
    """
    text = f"It was made by {what} of {source.summarize_function(fun)}." if fun else ""
    within = inner._origin() if isinstance(inner, Tracer) else ""
    return "\n".join(filter(None, (text, within)))


def check_live(tracer: Tracer) -> None:
    """Raise an error if the trace of the tracer has ended."""
    if not tracer._trace.live:
        raise errors.UnexpectedTracerError(_leak_message(tracer))


def check_leaks(trace: Trace, name: str) -> None:
    """Raise an error if a tracer of an ended trace is still referenced.

    The caller deletes its own references first.

    Args:
      trace: the trace that has ended.
      name: name of the traced function, for the error.

    Returns:
      ``None``.

    Raises:
      LeakedTracerError: with the objects that refer to the tracers.

    Interpreters call it when their trace ends, if the option ``check_tracer_leaks`` is on: it
    runs the garbage collector.

    >>> from primax_core import checking_leaks, jit
    >>> with checking_leaks():
    ...     float(jit(lambda x: x * 2.0)(3.0))
    6.0
    """
    gc.collect()
    leaked = [t for t in gc.get_referrers(trace) if isinstance(t, Tracer)]
    if leaked:
        shown = "\n".join(f"{t!r}. {t._origin()}" for t in leaked[:5])
        raise errors.LeakedTracerError(f"Leaked trace {name}. Leaked tracer(s): {shown}")


def _leak_message(tracer: Tracer) -> str:
    return (
        "Encountered an unexpected tracer. A transformed function had a side effect, "
        "allowing for a reference to an intermediate value with type "
        f"{tracer.aval} wrapped in a {type(tracer).__name__} to escape the scope of the "
        "transformation.\nTransformations need pure functions: return the value from the function "
        "instead of storing it outside.\n" + tracer._origin()
    )
