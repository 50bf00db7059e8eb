"""Compiled and mapped functions against direct calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from primax_core import jit, vmap

from .comparison import assert_close


def check_compiled(fun: Callable[..., Any], *args: Any, **limits: Any) -> None:
    """Check that ``jit`` of a function returns the type and the values of a direct call.

    Args:
      limits: tolerances of :func:`assert_close`.
    """
    eager, compiled = fun(*args), jit(fun)(*args)
    types = [(x.shape, x.dtype, x.weak_type) for x in (compiled, eager)]
    assert types[0] == types[1], f"compiled {compiled.aval}, eager {eager.aval}"
    assert_close(compiled, eager, **limits)


def check_batches(
    fun: Callable[..., Any],
    x: Any,
    *rest: Any,
    axes: Iterable[int] | None = None,
    **limits: Any,
) -> None:
    """Check ``vmap`` over axes of the first argument against a loop.

    Args:
      axes: the mapped axes, by default all.
      limits: tolerances of :func:`assert_close`.
    """
    for axis in range(x.ndim + 1) if axes is None else axes:
        xs = np.stack([x, np.flip(x) if x.ndim else -x, x], axis)
        mapped = np.asarray(vmap(fun, (axis, *[None] * len(rest)))(xs, *rest))
        for i in range(3):
            one = fun(np.take(xs, i, axis), *rest)
            assert_close(mapped[i], one, **limits, err_msg=f"axis {axis}, element {i}")
