"""Shapes that hold dimension variables: ``symbolic_shape`` and ``symbolic_args_specs``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._base import pytree
from .._base.tree_prefix import broadcast_prefix, prefix_errors
from .._ir.dimensions.parser import parse_shape
from .._ir.dimensions.scope import (
    SymbolicScope as SymbolicScope,
    symbolic_dim_bounds as symbolic_dim_bounds,
)
from .._ir.symbolic_dims import is_symbolic_dim as is_symbolic_dim
from .._trace.core import is_valid_type, typeof
from ..lax import dimensions as _dimensions  # noqa: F401 - lets dimensions be values
from .shape_struct import ShapeDtypeStruct


def symbolic_shape(
    shape_spec: str | None,
    *,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
    like: Sequence[int | None] | None = None,
) -> tuple[Any, ...]:
    """A shape whose sizes may be expressions over dimension variables.

    Args:
      shape_spec: dimensions separated by commas, perhaps in parentheses. A dimension is an integer,
        a variable (a Python name), or made of those by ``+``, ``-``, ``*``, ``^`` with an integer
        exponent, ``floordiv(e1, e2)``, ``mod(e1, e2)``, ``max(e1, e2)``, ``min(e1, e2)``. ``_``
        takes the size from ``like``, and a final ``...`` takes all that are left; ``None`` is the
        same as ``"..."``.
      constraints: what holds for all shapes: ``"a >= 8"``, ``"a <= b"``, ``"mod(a, 2) == 0"``. See
        :class:`SymbolicScope`.
      scope: where the variables belong; a new one if it is not given. Shapes used together must
        share one.
      like: the shape from which placeholders are filled.

    Returns:
      A tuple of Python ints and symbolic dimensions, which can be used in place of sizes.

    Raises:
      ValueError: for a text that cannot be read (it points at the place), or if both a scope and
        constraints are given.

    >>> symbolic_shape("b, 2*h, 3")
    (b, 2*h, 3)
    >>> symbolic_shape("n, ...", like=(10, 20))
    (n, 20)
    """
    if scope is None:
        scope = SymbolicScope(constraints)
    elif constraints:
        raise ValueError(
            "symbolic_shape takes constraints or a scope, and got both: give the constraints to "
            "SymbolicScope(...)"
        )
    if shape_spec is None:
        shape_spec = "..."
    elif not isinstance(shape_spec, str):
        raise ValueError(
            f"polymorphic shape spec should be None or a string. Found {shape_spec!r}."
        )
    return parse_shape(shape_spec, scope, None if like is None else tuple(like))


def symbolic_args_specs(
    args: Any,
    shapes_specs: Any,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
) -> Any:
    """Types of arguments, with symbolic shapes.

    Args:
      args: a pytree of arrays or of anything with ``shape`` and ``dtype``, usually the tuple of a
        function's arguments.
      shapes_specs: a text for all of them, or a pytree prefix of ``args`` with texts or ``None`` as
        leaves, as :func:`symbolic_shape` takes them; sizes left open are those of the arguments.
      constraints: those of a new scope for all shapes.
      scope: a scope to use instead.

    Returns:
      ``ShapeDtypeStruct`` in the place of each argument.

    Raises:
      ValueError: if a text cannot be read, or the prefix does not fit.

    >>> import numpy as np
    >>> symbolic_args_specs((np.ones((3, 4)), np.ones(4)), ("a, b", "b"))[1].shape
    (b,)
    """
    if scope is None:
        scope = SymbolicScope(constraints)
    elif constraints:
        raise ValueError("symbolic_args_specs takes constraints or a scope, and got both")
    leaves, tree = pytree.tree_flatten(args)
    specs = _specs_of_leaves(shapes_specs, args, len(leaves))
    found = [_spec_of(x, spec, scope) for x, spec in zip(leaves, specs)]
    return pytree.tree_unflatten(tree, found)


def _is_spec(x: Any) -> bool:
    return x is None or isinstance(x, str)


def _specs_of_leaves(shapes_specs: Any, args: Any, n: int) -> list[Any]:
    if _is_spec(shapes_specs):
        return [shapes_specs] * n
    try:
        return broadcast_prefix(shapes_specs, args, is_leaf=_is_spec)
    except ValueError:
        found = prefix_errors(shapes_specs, args, is_leaf=_is_spec)
        if not found:
            raise
        raise found[0].error("symbolic_args_specs shapes_specs") from None


def _spec_of(x: Any, spec: Any, scope: SymbolicScope) -> ShapeDtypeStruct:
    if hasattr(x, "shape") and hasattr(x, "dtype") and not is_valid_type(x):
        shape, dtype = x.shape, x.dtype  # something like an array: a ShapeDtypeStruct, say
        weak = bool(getattr(x, "weak_type", False))
    else:
        aval = typeof(x)
        shape, dtype, weak = aval.shape, aval.dtype, aval.weak_type
    found = symbolic_shape(spec, scope=scope, like=shape)
    return ShapeDtypeStruct(found, dtype, weak_type=weak)
