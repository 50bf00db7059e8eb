"""``checkify``: errors of compiled functions as values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Final, TypeAlias

import numpy as np

from primax_core.errors import ConcretizationTypeError, TracerIntegerConversionError
from primax_core.extend import capture, typeof
from primax_core.extend.runtime import api_boundary, api_boundary_of, library_function
from primax_core.extend.traces import (
    call_on,
    check_callable,
    current_trace,
    is_valid_type,
    name_of,
    trace_function,
)
from primax_core.lax import index_in_dim, select_n
from primax_core.tree_util import register_pytree_node, tree_flatten, tree_unflatten
from primax_core.typing import ArrayLike

from . import control as _control, operations as _operations  # noqa: F401
from .check import check_p, exception_of, first_of
from .errors import (
    CheckError,
    DivisionByZeroError,
    FailedCheckError,
    InfError,
    NaNError,
    OOBError,
)
from .faults import NO_SITES, Fault, Site, Sites, faulty, split_faults
from .format_fields import check_format

JaxRuntimeError: TypeAlias = CheckError
ErrorCategory: TypeAlias = type[CheckError]

user_checks: Final[frozenset[ErrorCategory]] = frozenset({FailedCheckError})
nan_checks: Final[frozenset[ErrorCategory]] = frozenset({NaNError})
inf_checks: Final[frozenset[ErrorCategory]] = frozenset({InfError})
div_checks: Final[frozenset[ErrorCategory]] = frozenset({DivisionByZeroError})
index_checks: Final[frozenset[ErrorCategory]] = frozenset({OOBError})
float_checks: Final[frozenset[ErrorCategory]] = nan_checks | div_checks
automatic_checks: Final[frozenset[ErrorCategory]] = float_checks | index_checks
all_checks: Final[frozenset[ErrorCategory]] = automatic_checks | user_checks


class Error:
    """The error value of a checked function: none, or the first check that failed.

    It is a pytree, so that compiled and mapped functions can return it; a mapped one holds the
    error of each example.
    """

    __slots__ = ("_sites", "_code", "_values")

    def __init__(self, sites: Sites = NO_SITES, code: Any = None, values: Any = ()):
        self._sites: Sites = sites
        self._code: Any = np.int32(-1) if code is None else code
        self._values: tuple[Any, ...] = tuple(values)

    def get(self) -> str | None:
        """The message, or ``None``; of a mapped function one line for each example that failed."""
        errors = self._errors()
        if not errors:
            return None
        if np.ndim(self._code) == 0:
            return str(errors[()].args[0])
        return "\n".join(f"at mapped index {_index(i)}: {e.args[0]}" for i, e in errors.items())

    def get_exception(self) -> CheckError | None:
        """The exception that :meth:`throw` would raise, or ``None``."""
        errors = self._errors()
        if not errors:
            return None
        first = next(iter(errors.values()))
        return first if np.ndim(self._code) == 0 else type(first)(self.get())

    def throw(self) -> None:
        """Raise the error, if there is one.

        Raises:
          JaxRuntimeError: of the module ``checkify``, a ``ValueError``; its subclass tells what
            kind of check failed.
        """
        error = self.get_exception()
        if error is not None:
            raise error

    def _errors(self) -> dict[tuple[int, ...], Any]:
        codes = np.asarray(self._code)
        return {
            tuple(i): exception_of(
                self._sites, int(codes[tuple(i)]), [_example(v, i) for v in self._values]
            )
            for i in np.argwhere(codes >= 0).tolist()
        }

    def __repr__(self) -> str:
        try:
            return f"Error({self.get()})"
        except TypeError:  # within a trace nothing is known yet
            return f"Error({len(self._sites)} checks)"

    def tree_flatten(self) -> tuple[tuple[Any, ...], Sites]:
        """The code and the values, and their sites."""
        return (self._code, *self._values), self._sites

    @classmethod
    def tree_unflatten(cls, sites: Sites, leaves: Any) -> Error:
        """The inverse of :meth:`tree_flatten`."""
        return cls(sites, leaves[0], leaves[1:])


def _example(value: Any, index: list[int]) -> Any:
    """The part of a mapped value that belongs to one example."""
    for i in index:
        value = index_in_dim(value, i, keepdims=False)
    return value


def _index(index: tuple[int, ...]) -> str:
    return ",".join(map(str, index))


register_pytree_node(Error, Error.tree_flatten, Error.tree_unflatten)
init_error: Final = Error()


def checkify(
    f: Callable[..., Any], errors: Iterable[ErrorCategory] = user_checks
) -> Callable[..., tuple[Error, Any]]:
    """A function that returns ``(error, result)``: the first check that failed, as a value.

    Args:
      f: a function of pytrees of arrays. It may be compiled, mapped or differentiated inside, with
        loops and branches. Arguments that are not arrays are constants, and so are Python numbers
        whose values it needs, as a length for instance.
      errors: which checks: ``user_checks`` (those of :func:`check`), ``nan_checks``,
        ``inf_checks``, ``div_checks``, ``index_checks``, ``float_checks``, ``automatic_checks``,
        ``all_checks`` (without ``inf_checks``), or a union of them.

    The checked function can itself be compiled, mapped and differentiated. It always computes its
    result; ``error.throw()`` raises.

    Raises:
      ValueError: for a ``while_loop`` mapped over its condition within ``f``; map the checked
        function instead.

    >>> from primax_core import jit, lax
    >>> def f(x):
    ...     check(x > 0, "x must be positive, got {x}", x=x)
    ...     return lax.log(x)
    >>> error, y = jit(checkify(f))(-1.0)
    >>> print(error.get().partition(" (at")[0])
    x must be positive, got -1.0 (`check` failed)
    >>> checkify(f)(1.0)[0].throw()
    """
    check_callable(f)
    categories = frozenset(errors)
    unknown = [c for c in categories if not (isinstance(c, type) and issubclass(c, CheckError))]
    if unknown:
        raise TypeError(
            f"errors must be sets of checks such as checkify.user_checks, got {unknown[0]!r}"
        )

    compiled = _compiled(f, categories)
    specialized = lru_cache(maxsize=_MOST_SPECIALIZED)(
        lambda key: _compiled(_with_static_leaves(f, key), categories)
    )

    def checked_with_static(args: Any, kwargs: Any, static: Callable[[Any], bool]) -> Any:
        leaves, tree = tree_flatten((args, kwargs))
        mask = tuple(map(static, leaves))
        if not any(mask):
            return compiled(*args, **kwargs)
        key = _StaticLeaves(tree, mask, [x for x, s in zip(leaves, mask) if s])
        return specialized(key)(*[x for x, s in zip(leaves, mask) if not s])

    @api_boundary_of(f)
    def checked(*args: Any, **kwargs: Any) -> tuple[Error, Any]:
        try:
            return checked_with_static(args, kwargs, _is_static)
        except (ConcretizationTypeError, TracerIntegerConversionError, ValueError) as e:
            # A Python number may be a length, a flag or a static argument, which is hashed.
            if type(e) is ValueError and not isinstance(e.__cause__, TypeError):
                raise
            if not any(type(x) in _NUMBERS for x in tree_flatten((args, kwargs))[0]):
                raise
        return checked_with_static(args, kwargs, lambda x: type(x) in _NUMBERS or _is_static(x))

    return checked


def _compiled(
    f: Callable[..., Any], categories: frozenset[ErrorCategory]
) -> Callable[..., tuple[Error, Any]]:
    """The checked function of arrays, compiled once for each signature."""

    def run(*args: Any, **kwargs: Any) -> tuple[Error, Any]:
        leaves, _ = tree_flatten((args, kwargs))
        traced = trace_function(f, args, kwargs, "checkify")
        program, sites = faulty(traced.jaxpr, categories)
        outs = call_on(current_trace(), program, [*traced.consts, *leaves], name_of(f))
        results, faults = split_faults(outs, sites)
        fault = faults[0] if faults else None
        error = init_error if fault is None else Error(sites, fault.code, fault.values)
        return error, tree_unflatten(traced.out_tree, results)

    run.__name__ = run.__qualname__ = f"checkify_{name_of(f)}"
    run.__doc__ = None
    return library_function(run)


_MOST_SPECIALIZED: Final = 64
_NUMBERS: Final = frozenset((bool, int, float, complex))


def _is_static(x: Any) -> bool:
    """Return True for an argument that is a constant of the checked function: no array."""
    return not is_valid_type(x) and not hasattr(x, "__jax_array__")


class _StaticLeaves:
    """The static leaves of a call, as a key; objects that are not hashable differ by identity."""

    __slots__ = ("tree", "mask", "values", "_key")

    def __init__(self, tree: Any, mask: tuple[bool, ...], values: list[Any]):
        self.tree, self.mask, self.values = tree, mask, values
        self._key = (tree, mask, *map(_key_of, values))

    def __eq__(self, other: object) -> bool:
        return type(other) is _StaticLeaves and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


def _key_of(x: Any) -> Any:
    if type(x) in _NUMBERS:
        return type(x), repr(x)  # 0.0 equals -0.0
    try:
        hash(x)
    except TypeError:
        return type(x), id(x)
    return type(x), x


def _with_static_leaves(f: Callable[..., Any], static: _StaticLeaves) -> Callable[..., Any]:
    """The function of the other leaves."""

    def fixed(*dynamic: Any) -> Any:
        values, rest = iter(static.values), iter(dynamic)
        leaves = [next(values) if s else next(rest) for s in static.mask]
        args, kwargs = tree_unflatten(static.tree, leaves)
        return f(*args, **kwargs)

    fixed.__name__ = fixed.__qualname__ = name_of(f)
    return fixed


@api_boundary
def check(
    pred: ArrayLike, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any
) -> None:
    """Let a function fail unless a condition holds, where it is run through :func:`checkify`.

    Args:
      pred: a boolean scalar, which should be true.
      msg: a format string for the message.
      fmt_args, fmt_kwargs: pytrees of arrays for its fields.
      debug: do nothing outside of ``checkify``, instead of refusing to compile.

    Outside of compiled functions and ``checkify`` it raises at once.

    Raises:
      JaxRuntimeError: of the module ``checkify``, a ``ValueError``, if ``pred`` is known and false.
      ValueError: in a compiled function that is not run through ``checkify``.
      TypeError: if ``pred`` is not a boolean scalar, or a field's value not an array.
    """
    if not is_valid_type(pred) or typeof(pred).shape or typeof(pred).dtype != np.bool_:
        raise TypeError(f"check takes a scalar pred as argument, got {pred}")
    if not isinstance(msg, str):
        raise TypeError(f"the message of a check must be a format string, got {msg!r}")
    leaves, tree = tree_flatten((fmt_args, fmt_kwargs))
    for x in leaves:
        if not is_valid_type(x):
            raise TypeError(
                "Formatting arguments to checkify.check need to be PyTrees of arrays, but got "
                f"{x!r} of type {type(x)}."
            )
    check_format(msg, fmt_args, fmt_kwargs)

    def describe(*values: Any) -> str:
        args, kwargs = tree_unflatten(tree, values)
        return f"{msg.format(*args, **kwargs)} (`check` failed)"

    avals = tuple(typeof(x).strip_weak_type() for x in leaves)
    sites = Sites((Site(FailedCheckError, describe, avals, capture()),))
    code = select_n(pred, np.int32(0), np.int32(-1))
    fault = Fault.with_payload(sites, code, leaves)
    check_p.bind(*fault.leaves, sites=sites, debug=bool(debug))


@api_boundary
def debug_check(pred: ArrayLike, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """Like :func:`check`, but without effect where the function is not run through ``checkify``."""
    check(pred, msg, *fmt_args, debug=True, **fmt_kwargs)


@api_boundary
def check_error(error: Error) -> None:
    """Let a function fail with an error that :func:`checkify` found within it.

    Outside of compiled functions and ``checkify`` it raises at once.

    Raises:
      TypeError: if ``error`` is not an :class:`Error`.
    """
    if not isinstance(error, Error):
        raise TypeError(f"check_error takes an Error, which checkify returns, got {error!r}")
    if not len(error._sites):
        return
    leaves = [error._code, *error._values]
    for _ in typeof(error._code).shape:
        leaves = first_of(leaves)
    check_p.bind(*leaves, sites=error._sites, debug=False)
