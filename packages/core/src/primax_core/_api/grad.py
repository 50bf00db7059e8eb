"""``grad`` and ``value_and_grad``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from .._base import caches
from .._base.operand_trees import flatten_operands
from .._base.source import api_boundary_of
from .._ir import dtypes
from .._ir.avals import ShapedArray
from .._ir.jaxpr import Literal
from .._trace.core import typeof
from .._trace.staging import tracer_classes
from .arguments import Closed, check_callable, checked_argnums
from .vjp import VJP, pull_back

tree_flatten = flatten_operands

_P = ParamSpec("_P")
_R = TypeVar("_R")


def value_and_grad(
    fun: Callable[_P, _R],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[_P, tuple[_R, Any]]:
    """A function that returns the value of ``fun`` and its gradient.

    Args:
      fun: a function that returns a real scalar (or a complex one, if ``holomorphic``). Its
        arguments are arrays, numbers and pytrees of them.
      argnums: positional arguments to differentiate; a tuple gives a tuple of gradients. Keyword
        arguments are not differentiated.
      has_aux: ``fun`` returns ``(value, aux)``; ``aux`` may be any pytree.
      holomorphic: compute the complex derivative of a complex function.
      allow_int: return ``float0`` gradients for integer arguments instead of raising an error.

    Returns:
      A function with the signature of ``fun`` that returns ``(value, gradient)``, or ``((value,
      aux), gradient)``. The gradient has the structure, shapes and dtypes of the arguments.

    Raises:
      TypeError: if the result is not a real scalar, an argument is an integer, or fewer arguments
        are passed than ``argnums`` needs.

    For a complex argument the gradient is the conjugate of the direction of steepest ascent. The
    function is evaluated once, in reverse mode. It composes with ``jit``, ``vmap`` and itself.

    >>> value, g = value_and_grad(lambda x: x * x)(3.0)
    >>> float(value), float(g)
    (9.0, 6.0)
    >>> (value, aux), g = value_and_grad(lambda x: (x * x, "aux"), has_aux=True)(3.0)
    >>> aux, float(g)
    ('aux', 6.0)
    """
    summary = f"Value and gradient of {{}} with respect to argument {argnums}."
    both = _value_and_grad(fun, argnums, has_aux, holomorphic, allow_int)
    return api_boundary_of(fun, summary)(both)


def _value_and_grad(fun, argnums, has_aux: bool, holomorphic: bool, allow_int: bool) -> Callable:
    check_callable(fun)

    def value_and_grad_fun(*args, **kwargs):
        nums = checked_argnums(argnums, len(args), "grad")
        closed = Closed(fun, args, nums, kwargs)
        closed_args = tuple([args[i] for i in nums])
        for x in tree_flatten(closed_args)[0]:
            check_grad_input(x, holomorphic, allow_int, "grad")
        whole = not kwargs and nums == tuple(range(len(args)))
        value, pullback, aux = pull_back(fun if whole else closed, closed_args, has_aux)
        aval = _check_grad_output(value, pullback, holomorphic, "grad")
        grads = pullback(_one_of(aval))
        grads = grads if isinstance(argnums, (tuple, list)) else grads[0]
        return ((value, aux), grads) if has_aux else (value, grads)

    return value_and_grad_fun


_ones: dict = caches.bounded_cache()


def _one_of(aval: ShapedArray) -> Literal:
    one = _ones.get(aval)
    if one is None:
        one = _ones[aval] = Literal(np.ones((), aval.dtype)[()], aval)
    return one


def grad(
    fun: Callable[_P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[_P, Any]:
    """A function that returns the gradient of ``fun``.

    Args:
      fun: a function that returns a real scalar (or a complex one, if ``holomorphic``). Its
        arguments are arrays, numbers and pytrees of them.
      argnums: positional arguments to differentiate; a tuple gives a tuple of gradients. Keyword
        arguments are not differentiated.
      has_aux: ``fun`` returns ``(value, aux)``; ``aux`` may be any pytree.
      holomorphic: compute the complex derivative of a complex function.
      allow_int: return ``float0`` gradients for integer arguments instead of raising an error.

    Returns:
      A function with the signature of ``fun`` that returns the gradient, or ``(gradient, aux)``.
      The gradient has the structure, shapes and dtypes of the arguments; for several ``argnums``
      it is a tuple.

    Raises:
      TypeError: if the result is not a real scalar, an argument is an integer, or fewer arguments
        are passed than ``argnums`` needs.

    For a complex argument the gradient is the conjugate of the direction of steepest ascent. The
    function is evaluated in reverse mode. It composes with ``jit``, ``vmap`` and itself, to any
    order.

    >>> float(grad(lambda x: x * x * x)(2.0))
    12.0
    >>> float(grad(grad(lambda x: x * x * x))(2.0))
    12.0
    >>> [float(g) for g in grad(lambda x, y: x * y, argnums=(0, 1))(2.0, 3.0)]
    [3.0, 2.0]
    """
    both = _value_and_grad(fun, argnums, has_aux, holomorphic, allow_int)

    @api_boundary_of(fun, f"Gradient of {{}} with respect to argument {argnums}.")
    def grad_fun(*args, **kwargs):
        value, grads = both(*args, **kwargs)
        return (grads, value[1]) if has_aux else grads

    return grad_fun


def check_grad_input(x: Any, holomorphic: bool, allow_int: bool, name: str) -> None:
    """Raise an error for an argument without a gradient."""
    dtype = typeof(x).dtype
    if type(typeof(x)) in tracer_classes:
        raise TypeError(
            f"{name} cannot differentiate with respect to a Ref-typed argument, because the "
            "gradient for a ref must itself be accumulated into a ref. Use `vjp`, and bind a "
            "gradient ref with the `with_refs` method of the function that it returns. (Refs among "
            "the other arguments are fine.)"
        )
    if holomorphic:
        check_real_or_complex(dtype, True, name, "input")
    elif (
        dtypes.issubdtype(dtype, dtypes.extended)
        or dtypes.issubdtype(dtype, np.integer)
        or (dtype == np.bool_)
    ):
        if not allow_int or dtypes.issubdtype(dtype, dtypes.extended):
            raise TypeError(
                f"{name} requires real- or complex-valued inputs (input dtype that is a sub-dtype "
                f"of np.inexact), but got {dtype.name}. If you want to use Boolean- or "
                "integer-valued inputs, use vjp or set allow_int to True."
            )
    elif not dtypes.issubdtype(dtype, np.inexact):
        raise TypeError(
            f"{name} requires numerical-valued inputs (input dtype that is a sub-dtype of "
            f"np.inexact), but got {dtype.name}."
        )


OF_COMPLEX = (
    "For holomorphic differentiation, pass holomorphic=True. For differentiation of "
    "non-holomorphic functions involving complex outputs"
)


def check_real_or_complex(
    dtype: Any, holomorphic: bool, name: str, what: str, advice: str = ""
) -> None:
    """Raise an error unless the dtype of an input or output is real, or complex if holomorphic."""
    if holomorphic and not dtypes.issubdtype(dtype, np.complexfloating):
        raise TypeError(
            f"{name} with holomorphic=True requires {what}s with complex dtype, but got "
            f"{dtype.name}."
        )
    if not holomorphic and not dtypes.issubdtype(dtype, np.floating):
        raise TypeError(
            f"{name} requires real-valued {what}s ({what} dtype that is a sub-dtype of "
            f"np.floating), but got {dtype.name}. {advice}"
        )


def _check_grad_output(value, pullback: VJP, holomorphic: bool, name: str) -> ShapedArray:
    avals = pullback._out_avals
    if len(avals) != 1 or tree_flatten(value)[1] != _LEAF:
        raise TypeError(
            f"Gradient only defined for scalar-output functions. Output was {value}. Return one "
            "scalar, or use jacrev for functions with several results."
        )
    aval = avals[0]
    if aval.shape:
        raise TypeError(
            "Gradient only defined for scalar-output functions. Output had shape: "
            f"{aval.shape}. Sum the output, or use jacrev or vjp."
        )
    of_complex = dtypes.issubdtype(aval.dtype, np.complexfloating)
    advice = OF_COMPLEX if of_complex else "For differentiation of functions with integer outputs"
    check_real_or_complex(aval.dtype, holomorphic, name, "output", f"{advice}, use vjp directly.")
    return aval


_LEAF = tree_flatten(0)[1]
