"""Kernels that accelerators run as operations on arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from primax_core.extend import lower

from ._batching import BatchedKernel
from ._derivatives import JvpKernel
from ._kernel import Kernel


def is_derivative(kernel: Kernel) -> bool:
    """Return True if a kernel was derived for tangents, so that its backend may refuse it."""
    while isinstance(kernel, BatchedKernel):
        kernel = kernel.original
    return isinstance(kernel, JvpKernel)


def expansion_of(ctx: Any, values: Sequence[Any]) -> Any:
    """The lowering of the context's kernel as operations on arrays, whatever the platform."""
    return ctx.eqn.primitive.find(lower)(ctx, *values, **ctx.eqn.params)
