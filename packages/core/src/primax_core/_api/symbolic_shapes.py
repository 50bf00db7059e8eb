"""Shapes with dimension variables: ``symbolic_shape`` and ``symbolic_args_specs``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._base import pytree
from .._base.pytree import PyTree
from .._base.tree_prefix import broadcast_prefix, prefix_errors
from .._ir.dimensions.parser import parse_shape
from .._ir.dimensions.scope import (
    SymbolicScope as SymbolicScope,
    symbolic_dim_bounds as symbolic_dim_bounds,
)
from .._ir.symbolic_dims import is_symbolic_dim as is_symbolic_dim
from .._trace.core import is_valid_type, typeof
from ..lax import dimensions as _dimensions  # noqa: F401 - registers the rules of dimension values
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
      shape_spec: dimensions separated by commas, optionally in parentheses. A dimension is an
        integer, a variable (a Python name), or an expression of these with ``+``, ``-``, ``*``,
        ``^`` and an integer exponent, ``floordiv(e1, e2)``, ``mod(e1, e2)``, ``max(e1, e2)``,
        ``min(e1, e2)``. ``_`` takes the size from ``like``, and a final ``...`` takes all remaining
        sizes; ``None`` is equivalent to ``"..."``.
      constraints: constraints on all shapes: ``"a >= 8"``, ``"a <= b"``, ``"mod(a, 2) == 0"``. See
        :class:`SymbolicScope`.
      scope: the scope of the variables; by default a new one. Shapes used together must share one.
      like: the shape with the sizes of placeholders.

    Returns:
      A tuple of Python ints and symbolic dimensions, which can be used in place of sizes.

    Raises:
      ValueError: for a syntax error (the message points at it), or if both a scope and constraints
        are passed.
      TypeError: if the scope is no ``SymbolicScope``.

    >>> symbolic_shape("b, 2*h, 3")
    (b, 2*h, 3)
    >>> symbolic_shape("n, ...", like=(10, 20))
    (n, 20)
    """
    if scope is None:
        scope = SymbolicScope(constraints)
    elif not isinstance(scope, SymbolicScope):
        raise TypeError(
            f"symbolic_shape: scope must be a SymbolicScope, got {scope!r} of type "
            f"{type(scope).__name__}: pass SymbolicScope(constraints)"
        )
    elif constraints:
        raise ValueError(
            "symbolic_shape takes constraints or a scope, but got both: pass the constraints to "
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
    args: PyTree,
    shapes_specs: PyTree,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
) -> Any:
    """Types of arguments with symbolic shapes.

    Args:
      args: a pytree of arrays or other values with ``shape`` and ``dtype``, usually the tuple of a
        function's arguments.
      shapes_specs: a string for all of them, or a pytree prefix of ``args`` with strings or
        ``None`` as leaves, in the syntax of :func:`symbolic_shape`; placeholders take the sizes of
        the arguments.
      constraints: constraints of a new scope for all shapes.
      scope: an existing scope.

    Returns:
      ``ShapeDtypeStruct`` in place of each argument.

    Raises:
      ValueError: for a syntax error, or if the prefix does not match.

    >>> import numpy as np
    >>> symbolic_args_specs((np.ones((3, 4)), np.ones(4)), ("a, b", "b"))[1].shape
    (b,)
    """
    if scope is None:
        scope = SymbolicScope(constraints)
    elif constraints:
        raise ValueError("symbolic_args_specs takes constraints or a scope, but got both")
    leaves, tree = pytree.tree_flatten(args)
    specs = _specs_of_leaves(shapes_specs, args, len(leaves))
    types = [_spec_of(x, spec, scope) for x, spec in zip(leaves, specs)]
    return pytree.tree_unflatten(tree, types)


def _is_spec(x: Any) -> bool:
    return x is None or isinstance(x, str)


def _specs_of_leaves(shapes_specs: Any, args: Any, n: int) -> list[Any]:
    if _is_spec(shapes_specs):
        return [shapes_specs] * n
    if isinstance(args, tuple) and isinstance(shapes_specs, list):
        shapes_specs = tuple(shapes_specs)
    try:
        return broadcast_prefix(shapes_specs, args, is_leaf=_is_spec)
    except ValueError:
        mismatches = prefix_errors(shapes_specs, args, is_leaf=_is_spec)
        if not mismatches:
            raise
        raise mismatches[0].error("symbolic_args_specs shapes_specs") from None


def _spec_of(x: Any, spec: Any, scope: SymbolicScope) -> ShapeDtypeStruct:
    if hasattr(x, "shape") and hasattr(x, "dtype") and not is_valid_type(x):
        shape, dtype = x.shape, x.dtype  # for example a ShapeDtypeStruct
        weak = bool(getattr(x, "weak_type", False))
    else:
        aval = typeof(x)
        shape, dtype, weak = aval.shape, aval.dtype, aval.weak_type
    symbolic = symbolic_shape(spec, scope=scope, like=shape)
    return ShapeDtypeStruct(symbolic, dtype, weak_type=weak)
