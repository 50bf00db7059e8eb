"""``debug.callback``, ``debug.print`` and ``debug.log``: values of a running function."""

from __future__ import annotations

import logging
import string
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from .._base import pytree, source
from .._base.identity import ROOT
from .._base.source import api_boundary
from .._trace.core import is_valid_type
from ..lax.callbacks.debugging import debug_callback_p, debug_effect, ordered_debug_effect
from .arguments import check_callable


@api_boundary
def callback(
    callback: Callable[..., Any] | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: Any,
) -> Any:
    """Call a Python function with values of a running function; its result is ignored.

    Args:
      callback: receives arrays in place of arrays, and other arguments unchanged. Without it a
        decorator with the other options is returned.
      args: positional arguments, pytrees of arrays or other values.
      ordered: the calls happen in program order; others may be interleaved.
      partitioned: each device calls the function with its shards of the values.
      kwargs: keyword arguments.

    Returns:
      ``None``, or a decorator.

    Raises:
      TypeError: if ``callback`` is not callable.

    Under ``vmap`` it is called for each example, in order; under ``grad``, in the forward pass
    (and again where ``checkpoint`` recomputes it). Its errors are raised by
    :func:`~primax_core.effects_barrier`, or where a result is waited for.

    >>> from primax_core import effects_barrier, jit
    >>> seen = []
    >>> jit(lambda x: callback(lambda x: seen.append(int(x)), x))(3)
    >>> effects_barrier()
    >>> seen
    [3]
    """
    if callback is None:
        return partial(_callback, ordered=ordered, partitioned=partitioned)
    return _callback(callback, *args, ordered=ordered, partitioned=partitioned, **kwargs)


def _callback(function, *args, ordered=False, partitioned=False, **kwargs) -> None:
    check_callable(function)
    arrays, whole = _split(args, kwargs)

    def flat(*values: Any) -> None:
        args, kwargs = whole(values)
        function(*args, **kwargs)

    _show(function, flat, arrays, ordered, partitioned)


def _split(args: Any, kwargs: Any) -> tuple[list[Any], Callable[[Sequence[Any]], Any]]:
    """The arrays among arguments, and a function from their values to the arguments."""
    leaves, tree = pytree.tree_flatten((args, kwargs))
    others = {i: x for i, x in enumerate(leaves) if not is_valid_type(x)}
    count = len(leaves)  # the leaves are not stored: they may be tracers

    def join(values: Sequence[Any]) -> Any:
        arrays = iter(values)
        return pytree.tree_unflatten(
            tree, [others[i] if i in others else next(arrays) for i in range(count)]
        )

    return [x for i, x in enumerate(leaves) if i not in others], join


class _Shown:
    """A debugging function of arrays; errors name the user's function."""

    __slots__ = ("function", "flat")

    def __init__(self, function: Any, flat: Callable[..., None]):
        self.function = function
        self.flat = flat

    def __call__(self, *values: Any) -> list[Any]:
        self.flat(*values)
        return []

    def __repr__(self) -> str:
        return f"debug callback {self.function!r}"


def _show(function, flat, arrays, ordered: bool, partitioned: bool) -> None:
    effect = ordered_debug_effect if ordered else debug_effect
    debug_callback_p.bind(
        *arrays, callback=_Shown(function, flat), effect=effect, partitioned=bool(partitioned)
    )


# Format strings


class _Checker(string.Formatter):
    """Looks up the fields of a format string, and raises an error for unused arguments."""

    def format_field(self, value: Any, format_spec: str) -> str:
        return ""

    def convert_field(self, value: Any, conversion: str | None) -> Any:
        return value

    def check_unused_args(self, used_args: Any, args: Sequence[Any], kwargs: Any) -> None:
        unused = [x for i, x in enumerate(args) if i not in used_args]
        if unused:
            raise ValueError(f"Unused positional arguments to `debug.print`: {unused}")
        unused_keywords = [k for k in kwargs if k not in used_args]
        if unused_keywords:
            raise ValueError(
                f"Unused keyword arguments to `debug.print`: {unused_keywords}. Did you mean to "
                f"add {', '.join('{' + k + '}' for k in unused_keywords)} to the format string?"
            )


_checker: Final = _Checker()


def check_format(text: str, args: tuple[Any, ...], kwargs: dict[str, Any], unused: bool) -> None:
    """Raise an error for a format string with fields without arguments.

    Args:
      unused: allow arguments that no field uses.
    """
    try:
        _checker.vformat(text, args, kwargs)
    except ValueError:
        if not unused:
            raise


@api_boundary
def print(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    _use_logging: bool = False,
    **kwargs: Any,
) -> Any:
    """Print values of a running function.

    Args:
      fmt: a format string for ``str.format``. Without it a decorator with the other options is
        returned.
      args: values of the positional fields of ``fmt``: pytrees of arrays, or other values.
      ordered: the lines appear in program order.
      partitioned: each device prints its shards of the values.
      skip_format_check: allow unused arguments and missing fields.
      _use_logging: ``True`` writes to the logger instead, see :func:`log`.
      kwargs: values of the named fields.

    Returns:
      ``None``, or a decorator.

    Raises:
      ValueError: if an argument is not used by a field.
      TypeError: if ``fmt`` is not a string.
      IndexError, KeyError: if a field has no argument.

    It prints once for each example under ``vmap``, and in the forward pass under ``grad``.
    NumPy's print options are those at the time of the call.

    >>> from primax_core import effects_barrier, jit
    >>> jit(lambda x: print("x is {x:.1f}, twice that {}", 2 * x, x=x))(1.5)
    x is 1.5, twice that 3.0
    >>> effects_barrier()
    """
    options = {
        "ordered": ordered, "partitioned": partitioned, "skip_format_check": skip_format_check,
        "_use_logging": _use_logging,
    }  # fmt: skip
    if fmt is None:
        return partial(_print, **options)
    return _print(fmt, *args, **options, **kwargs)


def _print(
    fmt, *args, ordered=False, partitioned=False, skip_format_check=False, _use_logging=False,
    **kwargs,
) -> None:  # fmt: skip
    if not isinstance(fmt, str):
        raise TypeError(
            f"debug.print takes a format string and the values of its fields, got {fmt!r}: write "
            "debug.print('{}', x)"
        )
    if not skip_format_check:
        check_format(fmt, args, kwargs, unused=False)
    arrays, whole = _split(args, kwargs)
    record = source.capture() if _use_logging else None
    options = np.get_printoptions()

    def flat(*values: Any) -> None:
        args, kwargs = whole(values)
        with np.printoptions(**options):
            text = fmt.format(*args, **kwargs)
        if record is None:
            sys.stdout.write(text + "\n")
        else:
            _log(text, record)

    _show(print, flat, arrays, ordered, partitioned)


@api_boundary
def log(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    _use_logging: bool = True,
    **kwargs: Any,
) -> Any:
    """Write values of a running function to the logger ``primax_core.debug``, level INFO.

    Args:
      fmt: a format string for ``str.format``. Without it a decorator with the other options is
        returned.
      args: values of the positional fields of ``fmt``: pytrees of arrays, or other values.
      ordered: the records appear in program order.
      partitioned: each device logs its shards of the values.
      skip_format_check: allow unused arguments and missing fields.
      _use_logging: ``False`` prints instead.
      kwargs: values of the named fields.

    Returns:
      ``None``, or a decorator.

    Raises:
      ValueError: if an argument is not used by a field.
      TypeError: if ``fmt`` is not a string.
      IndexError, KeyError: if a field has no argument.

    The record names the file and the line that called ``log``. It is written once for each
    example under ``vmap``, and in the forward pass under ``grad``.

    >>> import logging
    >>> from primax_core import effects_barrier, jit
    >>> records = []
    >>> handler = logging.Handler()
    >>> handler.emit = lambda record: records.append(record.getMessage())
    >>> logger = logging.getLogger("primax_core.debug")
    >>> logger.addHandler(handler)
    >>> logger.setLevel("INFO")
    >>> jit(lambda x: log("x is {}", x))(1.5)
    >>> effects_barrier()
    >>> logger.removeHandler(handler)
    >>> logger.setLevel("NOTSET")
    >>> records
    ['x is 1.5']
    """
    return print(
        fmt, *args, ordered=ordered, partitioned=partitioned, skip_format_check=skip_format_check,
        _use_logging=_use_logging, **kwargs,
    )  # fmt: skip


_logger: Final = logging.getLogger(f"{ROOT}.debug")


def _log(text: str, location: Any) -> None:
    at = source.locate(location)
    if _logger.isEnabledFor(logging.INFO):
        record = _logger.makeRecord(
            _logger.name, logging.INFO, at.file, at.line, text, (), None, at.function
        )
        _logger.handle(record)
