"""Source locations in user code, and tracebacks without the library's own frames.

`capture` is called for every traced operation, so it records only a code object and an instruction
offset. `locate` converts them to a file, a line and a column on demand.
"""

from __future__ import annotations

import builtins
import functools
import os
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from . import caches
from .config import state
from .identity import ENV_PREFIX

_F = TypeVar("_F", bound=Callable[..., Any])

Source: TypeAlias = tuple[types.CodeType, int]
"""A location in user code: the code object and the offset of the current instruction."""


class Location(NamedTuple):
    """A location in a source file. Lines and columns count from 1; a column of 0 is unknown."""

    file: str
    line: int
    column: int
    function: str
    end_line: int
    end_column: int


def _folder(path: str) -> str:
    return os.path.join(os.path.abspath(path), "")


_PACKAGE: Final = _folder(os.path.dirname(os.path.dirname(__file__)))
# The library's decorators and context managers run through these two modules.
_STDLIB_HELPERS: Final = tuple(
    os.path.join(os.path.dirname(os.__file__), name) for name in ("contextlib.py", "functools.py")
)
_internal_prefixes: tuple[str, ...] = (_PACKAGE, *_STDLIB_HELPERS)
# Keyed by file name, not by code object: strings cache their hash, code objects do not.
_is_internal: Final[dict[str, bool]] = caches.bounded_cache()


def register_internal_path(path: str) -> None:
    """Mark the code of a file or folder as internal.

    Source locations of operations and tracebacks of errors skip internal code, so that they show
    the user's lines. Packages that build on the core call it with their own folder.

    Args:
      path: an absolute path of a file or a folder, mostly ``os.path.dirname(__file__)``.

    Returns:
      ``None``.

    Code that was seen before is classified again.

    >>> import textwrap
    >>> from primax_core.extend import is_internal_code
    >>> register_internal_path(textwrap.__file__)
    >>> is_internal_code(textwrap.dedent.__code__)
    True
    >>> unregister_internal_path(textwrap.__file__)
    """
    global _internal_prefixes
    path = os.path.abspath(path)
    prefix = path if path.endswith(".py") else _folder(path)
    if prefix not in _internal_prefixes:
        _internal_prefixes = (*_internal_prefixes, prefix)
        _is_internal.clear()


def unregister_internal_path(path: str) -> None:
    """Mark the code of a file or folder as user code again.

    Args:
      path: the path that was passed to :func:`register_internal_path`.

    Returns:
      ``None``; also if the path is not registered.

    Tests of a package call it, so that their own lines appear.

    >>> import textwrap
    >>> from primax_core.extend import is_internal_code
    >>> register_internal_path(textwrap.__file__)
    >>> unregister_internal_path(textwrap.__file__)
    >>> is_internal_code(textwrap.dedent.__code__)
    False
    """
    global _internal_prefixes
    path = os.path.abspath(path)
    prefix = path if path.endswith(".py") else _folder(path)
    _internal_prefixes = tuple(p for p in _internal_prefixes if p != prefix)
    _is_internal.clear()


def is_internal(code: types.CodeType) -> bool:
    """Return True if a code object belongs to the library."""
    return _classify(code.co_filename)


is_internal_code = is_internal


def _classify(filename: str) -> bool:
    internal = _is_internal.get(filename)
    if internal is None:
        path = filename if filename.startswith("<") else os.path.abspath(filename)
        internal = _is_internal[filename] = path.startswith(_internal_prefixes)
    return internal


def capture() -> Source | None:
    """The source location of the operation that is being bound.

    It is the location of the interpreted equation, or else the innermost location on the call
    stack outside the library.

    Returns:
      A location in compact form, for :func:`locate` and :func:`summarize`; ``None`` if there is
      none.

    A capture costs less than a microsecond: line numbers are computed when they are read.

    >>> from primax_core.extend import capture, locate
    >>> def operation():
    ...     return capture()
    >>> locate(operation()).function
    'operation'
    """
    if state.source is not None:
        return state.source
    frame: types.FrameType | None = sys._getframe(1)
    known = _is_internal
    while frame is not None:
        code = frame.f_code
        filename = code.co_filename
        internal = known.get(filename)
        if internal is None:
            internal = _classify(filename)
        if not internal:
            return code, frame.f_lasti
        frame = frame.f_back
    return None


class in_users_code:
    """Context manager around user code: its operations have their own source locations."""

    __slots__ = ("saved",)

    def __enter__(self):
        self.saved = state.source
        state.source = None

    def __exit__(self, *exc: object):
        state.source = self.saved


def capture_stack(limit: int) -> tuple[Source, ...]:
    """Up to ``limit`` locations on the call stack outside the library, innermost first."""
    locations: list[Source] = []
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and len(locations) < limit:
        if not is_internal(frame.f_code):
            locations.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return tuple(locations)


@functools.lru_cache(maxsize=1024)
def _positions(code: types.CodeType) -> list[tuple[int | None, int | None, int | None, int | None]]:
    return list(code.co_positions())


def locate(source: Source) -> Location:
    """File, line, column and function of a captured location.

    Args:
      source: a result of :func:`capture`, or the ``source`` of an equation.

    Returns:
      A ``Location`` with the attributes ``file``, ``line``, ``column``, ``function``,
      ``end_line`` and ``end_column``.

    The line numbers are those of the code object, so a file that was edited since gives the old
    ones.

    >>> from primax_core.extend import capture, locate
    >>> def operation():
    ...     return capture()
    >>> location = locate(operation())
    >>> location.function, location.line
    ('operation', 2)
    """
    code, offset = source
    line, end_line, column, end_column = code.co_firstlineno, None, None, None
    if offset >= 0:
        positions = _positions(code)
        if offset // 2 < len(positions):
            at_line, end_line, column, end_column = positions[offset // 2]
            line = at_line or line
    return Location(
        code.co_filename,
        line,
        0 if column is None else column + 1,
        code.co_qualname,
        end_line or line,
        0 if end_column is None else end_column + 1,
    )


def summarize(source: Source | None) -> str:
    """A captured location as text, ``file:line:column (function)``.

    Args:
      source: a result of :func:`capture`, or the ``source`` of an equation, or ``None``.

    Returns:
      A string; a placeholder for an unknown location.

    Errors and printed residuals show locations in this form.

    >>> from primax_core.extend import capture, summarize
    >>> summarize(None)
    '<unknown place>'
    >>> def operation():
    ...     return capture()
    >>> summarize(operation()).endswith("(operation)")
    True
    """
    if not source:
        return "<unknown place>"
    at = locate(source)
    column = f":{at.column}" if at.column else ""
    return f"{at.file}:{at.line}{column} ({at.function})"


def summarize_function(fun: Any) -> str:
    """The name and the location of a function as text, ``name at file:line``.

    Args:
      fun: a function, a method, a partial or another callable object.

    Returns:
      A string; only the name if the function has no Python code.

    Errors about user functions begin with it.

    >>> from primax_core.extend import summarize_function
    >>> summarize_function(len)
    'len'
    >>> def f():
    ...     pass
    >>> summarize_function(f).startswith("f at ")
    True
    """
    fun = getattr(fun, "__wrapped__", fun)
    name = getattr(fun, "__name__", None) or repr(fun)
    code = getattr(fun, "__code__", None)
    if code is None:
        return name
    return f"{name} at {code.co_filename}:{code.co_firstlineno}"


def user_frame_text(source: Source | None) -> str:
    """The location and its source line, in the format of a traceback."""
    if not source:
        return "  <unknown place>"
    import linecache  # only for error messages

    at = locate(source)
    text = linecache.getline(at.file, at.line).strip()
    head = f'  File "{at.file}", line {at.line}, in {at.function}'
    return f"{head}\n    {text}" if text else head


def user_stacklevel() -> int:
    """The ``stacklevel`` for a ``warnings.warn`` by the caller that points at the user's line."""
    frame: types.FrameType | None = sys._getframe(1)
    level = 1
    while frame is not None and is_internal(frame.f_code):
        frame = frame.f_back
        level += 1
    return level


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning that points at the user's line."""
    warnings.warn(message, category, stacklevel=user_stacklevel())


# Tracebacks


def fold_traceback(error: BaseException) -> None:
    """Remove the library's frames from an exception's traceback, in place.

    For an ``except`` clause at a public boundary, followed by a bare ``raise``, which does not add
    a traceback entry. Without an error it has no cost::

        try:
            return traced(*args)
        except Exception as error:
            fold_traceback(error)
            raise

    The option ``traceback_filtering`` selects the behaviour: ``off`` does nothing, ``hide_frames``
    (or ``tracebackhide``) hides the frames in IPython and pytest, ``remove_frames`` removes them
    and adds a note. ``auto`` hides frames in IPython and removes them elsewhere. A frame of the
    library that failed unintentionally, not at a ``raise`` statement, is not removed, because a bug
    report needs it.

    Args:
      error: the exception, whose traceback is changed in place.

    Returns:
      ``None``.

    >>> import traceback
    >>> from primax_core import lax
    >>> try:
    ...     lax.sin("text")
    ... except TypeError as error:
    ...     fold_traceback(error)
    ...     len(traceback.extract_tb(error.__traceback__))
    1
    """
    mode = state.traceback_filtering
    if mode == "off":
        return
    if mode in ("hide_frames", "tracebackhide") or mode == "auto" and _in_ipython():
        _hide_frames(error)
        return
    entries = list(_entries(error.__traceback__))
    remaining = [entry for entry in entries if not is_internal(entry.tb_frame.f_code)]
    if entries and not _on_purpose(error, entries[-1]):
        remaining.append(entries[-1])
    if len(remaining) == len(entries):
        return
    folded = None
    for entry in reversed(remaining):
        folded = types.TracebackType(folded, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    error.__traceback__ = folded
    if mode == "remove_frames":
        _add_note(error)


def api_boundary(fun: _F) -> _F:
    """Decorator of a public function: errors are raised without the library's own frames.

    Args:
      fun: the function.

    Returns:
      A function with the same attributes.

    The option ``traceback_filtering`` selects what happens to the frames: they are removed,
    hidden from debuggers, or left.

    Frames of a failure that the library did not raise on purpose remain, because a bug report
    needs them.

    >>> from primax_core.extend.runtime import api_boundary
    >>> @api_boundary
    ... def f(x):
    ...     return x + 1
    >>> f(1), f.__name__
    (2, 'f')
    """

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return fun(*args, **kwargs)
        except Exception as error:
            fold_traceback(error)
            raise

    return call  # type: ignore[return-value]


def name_of(fun: Any) -> str:
    """The name of a function, for error messages.

    Args:
      fun: a function, a partial or another callable object.

    Returns:
      A string: the function's name, also from inside partials; the class of another object.

    :func:`summarize_function` adds the file and the line.

    >>> import functools
    >>> from primax_core.extend.traces import name_of
    >>> def f(x): ...
    >>> name_of(functools.partial(f, 1))
    'f'
    """
    name = getattr(fun, "__name__", None)
    if isinstance(name, str) and name:
        return name
    return name_of(fun.func) if hasattr(fun, "func") else type(fun).__name__


def take_attributes(wrapper: Any, fun: Any, summary: str | None = None) -> Any:
    """``functools.update_wrapper`` for any callable.

    A name that is not a string is replaced, and only functions pass on their own attributes.

    Args:
      summary: first line of the docstring, before that of ``fun``; ``{}`` becomes its name.
    """
    try:
        functools.update_wrapper(wrapper, fun, updated=())
        if isinstance(fun, types.FunctionType):
            own = vars(fun).items()
            vars(wrapper).update({k: v for k, v in own if not hasattr(v, "stage_of")})
            wrapper.__wrapped__ = fun
    except (TypeError, AttributeError):  # for instance, a name that is not a string
        wrapper.__name__ = wrapper.__qualname__ = name_of(fun)
        wrapper.__wrapped__ = fun
    if summary is not None:
        doc = getattr(fun, "__doc__", None)
        wrapper.__doc__ = summary.replace("{}", name_of(fun)) + (f"\n\n{doc}" if doc else "")
    return wrapper


def api_boundary_of(fun: Callable[..., Any], summary: str | None = None) -> Callable[[_F], _F]:
    """:func:`api_boundary` for a function that a transformation returns.

    Args:
      fun: the user's function, whose name, signature and docstring the result has.
      summary: first line of its docstring, with ``{}`` for the name of ``fun``.

    Returns:
      A decorator.

    ``help`` of a transformed function shows the docstring of the function after the summary.

    >>> from primax_core.extend.runtime import api_boundary_of
    >>> def f(x):
    ...     return 2 * x
    >>> f.__doc__ = "Doubles."
    >>> @api_boundary_of(f, "{} applied twice.")
    ... def twice(x):
    ...     return f(f(x))
    >>> twice.__name__, twice.__doc__.splitlines()
    ('f', ['f applied twice.', '', 'Doubles.'])
    """

    def decorate(transformed: _F) -> _F:
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return transformed(*args, **kwargs)
            except Exception as error:
                fold_traceback(error)
                raise

        return take_attributes(call, fun, summary)

    return decorate


_NOTE: Final = (
    "The library's own frames were removed from this traceback. To see them, set the option "
    f"traceback_filtering, or {ENV_PREFIX}TRACEBACK_FILTERING, to off."
)


def _in_ipython() -> bool:
    return hasattr(builtins, "__IPYTHON__")


def _add_note(error: BaseException) -> None:
    if _NOTE not in getattr(error, "__notes__", ()):
        error.add_note(_NOTE)


def _entries(traceback: types.TracebackType | None) -> Iterator[types.TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _hide_frames(error: BaseException) -> None:
    for entry in _entries(error.__traceback__):
        if is_internal(entry.tb_frame.f_code):
            entry.tb_frame.f_locals["__tracebackhide__"] = True


def _on_purpose(error: BaseException, last: types.TracebackType) -> bool:
    """Return True if the error is from user code, or from a ``raise`` statement of the library.

    An inner boundary may have removed the last frame, so the result is stored in the error.
    """
    known: bool | None = getattr(error, "_primax_on_purpose", None)
    if known is None:
        from opcode import opmap  # only when an error is reported

        code = last.tb_frame.f_code
        known = not is_internal(code) or code.co_code[last.tb_lasti] == opmap["RAISE_VARARGS"]
        try:
            error._primax_on_purpose = known  # type: ignore[attr-defined]
        except AttributeError:
            pass
    return known
