"""Functions of the core with further parameters of the reference.

The core's functions do not have these parameters. A value that would change results is an error,
any other has no effect. The core's function does the work; what it returns is unchanged, so calls
of a transformed function take no longer.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import primax_core
from primax_core.extend import fold_traceback
from primax_core.typing import PyTree

_F = TypeVar("_F", bound=Callable[..., Any])
_P = ParamSpec("_P")
_R = TypeVar("_R")

_REDUCE_AXES = {"reduce_axes": "must be empty."}


def _extends(core: Callable[..., Any], parameters: dict[str, str]) -> Callable[[_F], _F]:
    """Decorator: a boundary for tracebacks, with the core's documentation and ``parameters``."""

    def decorate(fun: _F) -> _F:
        @functools.wraps(fun)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return fun(*args, **kwargs)
            except Exception as error:
                fold_traceback(error)
                raise

        more = "".join(f"  {name}: {text}\n" for name, text in parameters.items())
        call.__doc__ = f"{inspect.getdoc(core)}\n\nParameters of the reference:\n{more}"
        return call  # type: ignore[return-value]

    return decorate


def _refuse(function: str, parameter: str, value: Any, instead: str) -> None:
    """Raise an error for a parameter that the function does not support."""
    raise NotImplementedError(f"{function}: {parameter}={value!r} is not supported: {instead}")


def _check_reduce_axes(function: str, axes: Sequence[Any]) -> None:
    if axes:
        _refuse(function, "reduce_axes", axes, "use lax.psum inside the differentiated function")


@_extends(primax_core.value_and_grad, _REDUCE_AXES)
def value_and_grad(
    fun: Callable[_P, _R],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[_P, tuple[_R, Any]]:
    """:func:`primax_core.value_and_grad` with ``reduce_axes``."""
    _check_reduce_axes("value_and_grad", reduce_axes)
    return primax_core.value_and_grad(fun, argnums, has_aux, holomorphic, allow_int)


@_extends(primax_core.grad, _REDUCE_AXES)
def grad(
    fun: Callable[_P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[_P, Any]:
    """:func:`primax_core.grad` with ``reduce_axes``."""
    _check_reduce_axes("grad", reduce_axes)
    return primax_core.grad(fun, argnums, has_aux, holomorphic, allow_int)


@_extends(primax_core.vjp, _REDUCE_AXES)
def vjp(
    fun: Callable[..., Any],
    *primals: Any,
    has_aux: bool = False,
    reduce_axes: Sequence[Any] = (),
    saveable_args: PyTree = True,
    in_nzs: PyTree = None,
) -> Any:
    """:func:`primax_core.vjp` with ``reduce_axes``."""
    _check_reduce_axes("vjp", reduce_axes)
    return primax_core.vjp(
        fun, *primals, has_aux=has_aux, saveable_args=saveable_args, in_nzs=in_nzs
    )


@_extends(primax_core.linear_transpose, _REDUCE_AXES)
def linear_transpose(
    fun: Callable[..., Any], *primals: Any, reduce_axes: Sequence[Any] = ()
) -> Callable[..., Any]:
    """:func:`primax_core.linear_transpose` with ``reduce_axes``."""
    _check_reduce_axes("linear_transpose", reduce_axes)
    return primax_core.linear_transpose(fun, *primals)


@_extends(
    primax_core.custom_gradient,
    {
        "remat": "``fun`` returns ``(value, rule)``, where ``rule(*args)`` returns the value and "
        "its vjp function; the backward pass calls it.",
        "with_accums": "must be ``None``.",
    },
)
def custom_gradient(
    fun: Callable[..., Any] | None = None,
    *,
    with_logs: bool = False,
    remat: bool = False,
    with_accums: None = None,
) -> Any:
    """:func:`primax_core.custom_gradient` with ``remat`` and ``with_accums``."""
    if with_accums is not None:
        _refuse(
            "custom_gradient", "with_accums", with_accums, "return one cotangent for each argument"
        )
    if fun is None:
        return functools.partial(custom_gradient, with_logs=with_logs, remat=remat)
    fun = _rematerialized(fun) if remat else fun
    return primax_core.custom_gradient(fun, with_logs=with_logs)


def _rematerialized(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function that returns its vjp function, from one that returns a function for it."""

    @functools.wraps(fun)
    def run(*args: Any, **kwargs: Any) -> tuple[Any, Callable[[Any], Any]]:
        value, rule = fun(*args, **kwargs)
        return value, lambda ct: rule(*args, **kwargs)[1](ct)

    return run
