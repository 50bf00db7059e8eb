"""Vector arithmetic on pytrees of arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import primax_numpy as pnp
from primax_core import lax, tree
from primax_core.extend import typeof
from primax_numpy.declaring import is_complex


def plus(x: Any, y: Any) -> Any:
    """The sum of two vectors."""
    return tree.map(lambda a, b: a + b, x, y)


def minus(x: Any, y: Any) -> Any:
    """The difference of two vectors."""
    return tree.map(lambda a, b: a - b, x, y)


def times(scale: Any, x: Any) -> Any:
    """A vector times a number, in the dtypes of the vector."""

    def scaled(a: Any) -> Any:
        factor = scale
        if is_complex(factor) and not is_complex(a):
            factor = lax.real(factor)
        return lax.convert_element_type(factor, typeof(a).dtype) * a

    return tree.map(scaled, x)


def product(x: Any, y: Any) -> Any:
    """``x^H y``, at full precision."""
    parts = [
        pnp.vdot(a, b, precision=lax.Precision.HIGHEST)
        for a, b in zip(tree.leaves(x), tree.leaves(y))
    ]
    return reduce(lambda a, b: a + b, parts)


def square(x: Any) -> Any:
    """The squared norm of a vector, a real number."""
    out = product(x, x)
    return lax.real(out) if is_complex(out) else out


def length(x: Any) -> Any:
    """The norm of a vector."""
    return lax.sqrt(square(x))


def chosen(condition: Any, x: Any, y: Any) -> Any:
    """One of two vectors, selected by a condition."""
    return tree.map(lambda a, b: pnp.where(condition, a, b), x, y)


Operator = Callable[[Any], Any]
