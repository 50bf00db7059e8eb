"""``stop_gradient``: a value with zero derivative."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from .._base import pytree
from .._base.pytree import PyTree
from .._ir import dtypes
from .._ir.primitive import Primitive, abstract, batch, lower, transpose
from .._ir.printer import ALWAYS, hide_defaults
from .._ir.samples import Sample, c64, f32, i32, samples
from .._runtime.dispatch import as_operand
from .._trace.core import Tracer, typeof
from .._transform.zeros import SymbolicOperandError
from .elementwise import no_derivative

stop_gradient_p: Final = Primitive("stop_gradient")
hide_defaults("stop_gradient", unselected=ALWAYS)


def stop_gradient(x: PyTree) -> Any:
    """The same values, with zero derivative.

    Args:
      x: a pytree of arrays. Integers are returned unchanged.

    Returns:
      A pytree with the values of ``x``, constant for derivatives.

    Raises:
      TypeError: if a leaf is not an array.

    In both modes and in all orders the tangent is zero. Under ``jit`` nothing of it remains in
    the executable.

    >>> from primax_core import grad
    >>> float(grad(lambda x: stop_gradient(x) * x)(3.0))
    3.0
    >>> float(grad(lambda x: stop_gradient(x * x))(3.0))
    0.0
    """
    return pytree.tree_map(cut_off, x)


def cut_off(x: PyTree, *, unselected: bool = False) -> Any:
    """One array with zero derivative.

    ``unselected`` states that no result depends on the value, as in a branch that is computed and
    not selected. Only then it may be linear: its cotangent is zero.
    """
    aval = typeof(x)
    if not isinstance(x, Tracer):
        return as_operand(x) if isinstance(x, (np.ndarray, np.generic)) else x
    if not dtypes.issubdtype(aval.dtype, np.inexact):
        return x
    return stop_gradient_p.bind(x, **_params(unselected))


def _params(unselected: bool) -> dict[str, bool]:
    return {"unselected": True} if unselected else {}


@stop_gradient_p.rule(abstract)
def _abstract(x, *, unselected=False):
    return x


@stop_gradient_p.rule(lower)
def _lower(ctx, x, *, unselected=False):
    return x


no_derivative(stop_gradient_p)


@stop_gradient_p.rule(transpose)
def _transpose(ct, x, *, unselected=False):
    if not unselected:
        raise SymbolicOperandError("stop_gradient of a tangent has no transpose")
    return [None]


@stop_gradient_p.rule(batch)
def _batch(axis, args, dims, *, unselected=False):
    return stop_gradient_p.bind(*args, **_params(unselected)), dims[0]


@stop_gradient_p.rule(samples)
def _samples():
    stopped = dict.fromkeys(
        ("jvp", "transpose", "second order"), "the derivative is zero, not that of the values"
    )
    yield Sample(f32(3)).set(without=stopped)
    yield Sample(c64(0, 2)).set(without=stopped)
    yield Sample(i32())
