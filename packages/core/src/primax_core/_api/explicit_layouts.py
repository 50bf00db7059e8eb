"""``explicit_layout``: a function with required layouts of its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._base.pytree import PyTree
from .._base.source import api_boundary_of
from ..lax.layout_constraint import with_layout_constraint
from .arguments import check_callable


def explicit_layout(
    f: Callable[..., Any] | None = None, /, *, in_layouts: PyTree | None = None
) -> Any:
    """A function that reads its arguments in required layouts.

    Args:
      f: a function of pytrees of arrays; without it a decorator is returned.
      in_layouts: a ``Layout`` for all arguments, or a tuple with a pytree prefix of layouts for
        each. ``None`` leaves them unchanged.

    Returns:
      A function with the signature of ``f``.

    Raises:
      TypeError: if a leaf of ``in_layouts`` is not a ``Layout``.
      ValueError: if a layout is not a permutation of the axes of its array.

    Arguments are rearranged by :func:`with_layout_constraint`. Values do not change.

    >>> import numpy as np
    >>> from primax_core.layout import Layout
    >>> column_major = explicit_layout(lambda x: x * 2, in_layouts=Layout((1, 0)))
    >>> column_major(np.ones((2, 3))).shape
    (2, 3)
    """
    if f is None:
        return lambda f: explicit_layout(f, in_layouts=in_layouts)
    check_callable(f)

    @api_boundary_of(f)
    def constrained(*args: Any, **kwargs: Any) -> Any:
        if in_layouts is not None:
            args = with_layout_constraint(args, in_layouts)
        return f(*args, **kwargs)

    return constrained
