"""Operand promotion and function declaration, shared by distributions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any, TypeVar

import numpy as np

from primax_core import lax
from primax_core.extend import library_function, typeof
from primax_numpy.declaring import check_arrays

from .._functions import floats

_F = TypeVar("_F", bound=Callable[..., Any])


def distribution_function(fun: _F) -> _F:
    """Compile a function of arrays; errors about other arguments contain its name."""
    return declared(f"{fun.__module__.rpartition('._')[2]}.{fun.__name__}", fun)


def declared(name: str, fun: Any) -> Any:
    """As `distribution_function`, with the name in errors."""
    return library_function(_in_single(fun), check=partial(check_arrays, name))


def with_signature(
    fun: Callable[..., Any], name: str, module: str, doc: str, parameters: Sequence[tuple[str, Any]]
) -> Callable[..., Any]:
    """A function of positional arguments with named parameters.

    Args:
      fun: takes one positional argument for each parameter.
      parameters: names and defaults; ``inspect.Parameter.empty`` for none.
    """
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    operands = [
        inspect.Parameter(n, kind, default=default, annotation="ArrayLike")
        for n, default in parameters
    ]
    signature = inspect.Signature(operands, return_annotation="Array")

    def bound(*args: Any, **named: Any) -> Any:
        complete = signature.bind(*args, **named)
        complete.apply_defaults()
        return fun(*complete.args)

    bound.__signature__ = signature  # type: ignore[attr-defined]
    bound.__name__ = bound.__qualname__ = name
    bound.__module__ = module
    bound.__doc__ = doc
    return bound


def _in_single(fun: Callable[..., Any]) -> Callable[..., Any]:
    """The function, computed in ``float32`` for narrower floats.

    Sums and quotients would lose half of the digits, and XLA takes minutes to compile some
    densities of floats of 8 bits: it writes out each of their conversions.
    """

    @wraps(fun)
    def computed(*args: Any, **options: Any) -> Any:
        avals = [typeof(x) for x in (*args, *options.values())]
        strong = {a.dtype for a in avals if not a.weak_type}
        inexact = [d for d in strong if d.name.startswith(("float", "bfloat", "complex"))]
        if len(inexact) != 1 or inexact[0].itemsize > 2:
            return fun(*args, **options)
        (narrow,) = inexact

        def wide(x: Any) -> Any:
            return lax.convert_element_type(x, np.float32) if typeof(x).dtype == narrow else x

        out = fun(*map(wide, args), **{name: wide(x) for name, x in options.items()})
        return lax.convert_element_type(out, narrow)

    return computed


def together(name: str, *xs: Any) -> list[Any]:
    """Operands promoted to one floating-point dtype and shape."""
    xs = tuple(floats(name, *xs))
    shape = lax.broadcast_shapes(*[typeof(x).shape for x in xs])
    return [_repeated(x, shape) for x in xs]


def _repeated(x: Any, shape: tuple[int, ...]) -> Any:
    own_shape = typeof(x).shape
    if own_shape == shape:
        return x
    return lax.broadcast_in_dim(x, shape, tuple(range(len(shape) - len(own_shape), len(shape))))


def inside(condition: Any, value: Any, x: Any, outside: float = -np.inf) -> Any:
    """Values where the condition is true, otherwise ``outside``; NaN where ``x`` is NaN."""
    selected = lax.select(condition, value, lax.full_like(value, outside))
    return lax.select(x == x, selected, lax.full_like(value, np.nan))
