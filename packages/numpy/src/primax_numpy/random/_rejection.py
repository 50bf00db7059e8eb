"""The loop of samplers that draw again until all elements are accepted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from primax_core import lax
from primax_core.custom_batching import custom_vmap
from primax_core.extend import typeof


def any_of(condition: Any) -> Any:
    """True if any element is true."""
    return lax.reduce_or(condition, tuple(range(typeof(condition).ndim)))


@custom_vmap
def _anywhere(condition: Any) -> Any:
    """True if any element is true; under ``vmap``, in any batch, so that it is not mapped."""
    return any_of(condition)


@_anywhere.def_vmap
def _batch(size: int, mapped: list[bool], condition: Any) -> tuple[Any, bool]:
    return _anywhere(condition), False


def draw_until_done(
    draw: Callable[..., tuple[Any, ...]],
    unfinished: Callable[..., Any],
    start: tuple[Any, ...],
    key: Any,
    most: Any = None,
) -> tuple[Any, ...]:
    """Draw again with new keys until no element is unfinished.

    Args:
      draw: ``draw(key, *values)`` returns the next key and values.
      unfinished: ``unfinished(*values)`` is true for elements that need another draw.
      start: the first values.
      key: the first key.
      most: the largest number of draws, a NumPy integer.

    Returns:
      The last values.

    Under ``vmap`` all batches go on until the last one is finished. The values of a batch that is
    finished stay, and its key changes nevertheless: with ``rbg`` keys all batches draw from the
    first key, and with a loop that keeps it they would wait for other numbers without end.
    """

    def more(state: tuple[Any, ...]) -> tuple[Any, ...]:
        step, going, key, *values = state
        key, *drawn = draw(key, *values)
        values = [lax.select(going, new, old) for new, old in zip(drawn, values, strict=True)]
        step = step if most is None else step + most.dtype.type(1)
        return step, any_of(unfinished(*values)), key, *values

    def condition(state: tuple[Any, ...]) -> Any:
        step, going, *_ = state
        going = _anywhere(going)
        return going if most is None else lax.bitwise_and(going, lax.lt(step, most))

    step = () if most is None else most.dtype.type(0)
    state = (step, any_of(unfinished(*start)), key, *start)
    return lax.while_loop(condition, more, state)[3:]
