"""``fwd_and_bwd``: the forward and the backward pass of a function as two functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._base.source import api_boundary
from .arguments import Closed, check_callable, checked_argnums
from .jit import jit
from .vjp import pull_back


def fwd_and_bwd(
    fun: Callable[..., Any],
    argnums: int | Sequence[int],
    has_aux: bool = False,
    jitted: bool = True,
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """A function's forward pass, which returns residuals, and its backward pass, which takes them.

    Args:
      fun: takes and returns pytrees of arrays.
      argnums: positional arguments to differentiate; a tuple gives a tuple of cotangents.
      has_aux: ``fun`` returns a pair with an auxiliary second element.
      jitted: compile both passes.

    Returns:
      ``(fwd, bwd)``: ``fwd(*args, **kwargs)`` returns ``(value, residuals)`` or ``(value,
      residuals, aux)``, and ``bwd(residuals, cotangent)`` returns the cotangents.

    >>> fwd, bwd = fwd_and_bwd(lambda x, y: x * y, argnums=(0, 1))
    >>> value, residuals = fwd(2.0, 3.0)
    >>> [float(ct) for ct in bwd(residuals, 1.0)]
    [3.0, 2.0]
    """
    check_callable(fun)

    def fwd(*args: Any, **kwargs: Any) -> Any:
        nums = checked_argnums(argnums, len(args), "fwd_and_bwd")
        closed = Closed(fun, args, nums, kwargs)
        value, residuals, aux = pull_back(closed, tuple(args[i] for i in nums), has_aux)
        return (value, residuals, aux) if has_aux else (value, residuals)

    def bwd(residuals: Any, ct: Any) -> Any:
        cts = residuals(ct)
        return cts if isinstance(argnums, (tuple, list)) else cts[0]

    return (jit(fwd), jit(bwd)) if jitted else (api_boundary(fwd), api_boundary(bwd))
