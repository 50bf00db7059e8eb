"""Export of kernels with symbolic shapes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from primax_core.extend.dimensions import is_static

_allowed: Final[ContextVar[bool]] = ContextVar("symbolic shapes of kernels", default=False)

REWRITE: Final = (
    "trace the call in `with pallas_export_experimental(True)`, where arrays and grids may have "
    "symbolic sizes, and blocks have known ones"
)
"""What to do about a symbolic size."""


@contextmanager
def pallas_export_experimental(dynamic_shapes: bool) -> Iterator[None]:
    """Context in which arrays and grids of kernels may have symbolic sizes, for ``export``.

    Args:
      dynamic_shapes: whether they may. Sizes of blocks are known nevertheless.

    Such a kernel runs as operations on arrays on all platforms: a loop over the steps of the grid,
    one after the other. Derivatives and ``vmap`` are those of the loop: there is no reverse mode if
    the number of steps is symbolic.

    Raises:
      TypeError: if ``dynamic_shapes`` is not a Boolean.

    >>> from primax_core import ShapeDtypeStruct, jit
    >>> from primax_kernels import BlockSpec, cdiv, pallas_call
    >>> def double(x):
    ...     rows = BlockSpec((4,), lambda i: (i,))
    ...     return pallas_call(
    ...         lambda x, out: out.__setitem__(..., 2 * x[...]),
    ...         x,
    ...         grid=cdiv(x.shape[0], 4),
    ...         in_specs=[rows],
    ...         out_specs=rows,
    ...     )(x)
    >>> with pallas_export_experimental(True):
    ...     shape = jit(double).trace(ShapeDtypeStruct((6,), "float32")).out_info.shape
    >>> shape
    (6,)
    """
    if not isinstance(dynamic_shapes, bool):
        raise TypeError(f"pallas_export_experimental takes True or False, got {dynamic_shapes!r}")
    token = _allowed.set(dynamic_shapes)
    try:
        yield
    finally:
        _allowed.reset(token)


def symbolic_sizes_are_allowed() -> bool:
    """Return True in the context of `pallas_export_experimental`."""
    return _allowed.get()


def has_symbolic_sizes(kernel: Any) -> bool:
    """Return True if an operand or a result of a kernel has a symbolic size."""
    return not all(is_static(m.aval.shape) for m in (*kernel.inputs, *kernel.outputs))
