"""Rules with which the package replaces those of the core on CPUs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from primax_core.extend import Primitive, lower, native

from ._library import PREFIX
from ._option import native_kernels

CPU: Final = lower.on("cpu")


def override(primitive: Primitive, rule: Callable[..., Any]) -> None:
    """Replace the rule of a primitive for CPUs.

    The rule before lowers the operation where the kernels are switched off, in exported modules,
    and where XLA divides the operation among devices.

    Args:
      rule: a lowering rule; ``None`` as its result leaves the operation to the rule before.
    """

    def lowered(ctx: Any, *operands: Any, **params: Any) -> Any:
        if native_kernels.value and ctx.allows_native_calls:
            results = rule(ctx, *operands, **params)
            if results is not None:
                return results
        (before, *_) = primitive.rules_before(CPU, lowered)
        return before(ctx, *operands, **params)

    primitive.override(CPU, lowered)


def call(ctx: Any, handler: str, operands: Any, **attributes: Any) -> list[Any]:
    """A call of one of the library's handlers, with results of the equation's types."""
    return native.call(ctx, PREFIX + handler, list(operands), attributes=attributes)
