"""Control flow on references: conditions, loops, memory that lives for a while."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primax_core import debug, dtypes, free_ref, lax, tree_util
from primax_core.extend import ShapedArray, Tracer, current_trace, typeof
from primax_core.ref import empty_ref

from ._memory_spaces import scratch_type
from ._poison import poison
from ._semaphores import begins_with_zeros
from ._tpu_memory import ACC, accumulators
from ._typing import ArrayLike, PyTree


def when(condition: ArrayLike, /) -> Callable[[Callable[[], None]], None]:
    """Decorator that runs a function without arguments if a condition holds.

    Args:
      condition: a Boolean scalar, known while tracing or computed.

    Raises:
      TypeError: if the function returns a value.

    >>> calls = []
    >>> @when(1 + 1 == 2)
    ... def _():
    ...     calls.append(1)
    >>> calls
    [1]
    """

    def decorate(fun: Callable[[], None]) -> None:
        def checked() -> None:
            result = fun()
            if result is not None:
                raise TypeError(
                    "a function under `when` writes into references and returns None, got "
                    f"{result!r}"
                )

        if isinstance(condition, Tracer):
            lax.cond(condition, checked, lambda: None)
        elif condition:
            checked()

    return decorate


def loop(
    lower: ArrayLike,
    upper: ArrayLike,
    *,
    init_carry: PyTree = None,
    step: ArrayLike = 1,
    unroll: int | bool | None = None,
) -> Callable[[Callable[..., Any]], Any]:
    """Decorator that runs a function for ``lower``, ``lower + step``, ... below ``upper``.

    Args:
      init_carry: initial carry; the function is then called with the index and the carry and
        returns the next carry. By default it is called with the index and returns ``None``.
      unroll: number of iterations that are written out in the program.

    Returns:
      A decorator whose result is the final carry.

    Raises:
      TypeError: if ``lower``, ``upper`` or ``step`` is no integer scalar.
      ValueError: if ``step`` is not positive.
    """
    for name, x in (("lower", lower), ("upper", upper), ("step", step)):
        if not _is_integer(x):
            raise TypeError(f"loop: {name} is an integer scalar, got {x!r}")
    if isinstance(step, int) and step < 1:
        raise ValueError(f"loop takes a positive step, got {step}")
    known = all(isinstance(x, (int, np.integer)) for x in (lower, upper, step))
    if known:
        count: Any = max(-(-(int(upper) - int(lower)) // int(step)), 0)
    else:
        count = lax.max(np.int32(0), (upper - lower + (step - 1)) // step)

    def decorate(fun: Callable[..., Any]) -> Any:
        def body(i: Any, carry: Any) -> Any:
            index = lower + i * step
            if init_carry is None:
                if (result := fun(index)) is not None:
                    raise TypeError(
                        f"a function under `loop` without init_carry returns None, got {result!r}"
                    )
                return None
            return fun(index, carry)

        return lax.fori_loop(0, count, body, init_carry, unroll=unroll)

    return decorate


def _is_integer(x: Any) -> bool:
    try:
        aval = typeof(x)
    except TypeError:
        return False
    return getattr(aval, "shape", None) == () and dtypes.issubdtype(aval.dtype, np.integer)


def run_scoped(
    f: Callable[..., Any], *types: Any, collective_axes: str | Sequence[str] = (), **kw_types: Any
) -> Any:
    """Call a function with references to new memory, which it must not keep.

    On CPUs the memory begins with NaN, or the least integer, and semaphores with 0; on accelerators
    see `enable_poison_buffers`.

    Args:
      f: function of the references.
      types: types of memory, such as ``VMEM((8, 128), float32)``, or pytrees of them.
      collective_axes: names of axes whose members share the memory; none are supported.

    Returns:
      What ``f`` returns.
    """
    if collective_axes:
        raise ValueError(f"run_scoped has no collective axes on this backend: {collective_axes}")
    leaves, tree = tree_util.tree_flatten(
        (types, kw_types), is_leaf=lambda x: hasattr(x, "get_ref_aval") or hasattr(x, "shape")
    )
    refs = []
    for leaf in leaves:
        aval = scratch_type(leaf)
        has_zeros = begins_with_zeros(aval.memory_space)
        space = aval.memory_space if current_trace() is not None else None
        ref = empty_ref(ShapedArray(aval.shape, aval.dtype), memory_space=space)
        if space is None and isinstance(aval.memory_space, ACC):
            accumulators[ref] = aval.memory_space
        if has_zeros:
            ref[...] = lax.full(aval.shape, 0, aval.dtype)
        else:
            poison(ref)
        refs.append(ref)
    args, kwargs = tree_util.tree_unflatten(tree, refs)
    result = f(*args, **kwargs)
    for ref in refs:
        free_ref(ref)
    return result


def with_scoped(
    *types: Any, collective_axes: str | Sequence[str] = (), **kw_types: Any
) -> Callable[..., Any]:
    """Decorator form of `run_scoped`: runs the function at once and becomes its result."""

    def decorate(f: Callable[..., Any]) -> Any:
        return run_scoped(f, *types, collective_axes=collective_axes, **kw_types)

    return decorate


def debug_print(fmt: str, *args: Any) -> None:
    """Print values when the kernel runs, from each step.

    Args:
      fmt: a format string, as of ``str.format``.
      args: its values. Steps that are computed together print one after the other.
    """
    debug.print(fmt, *args)
