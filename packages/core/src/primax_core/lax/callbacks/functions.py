"""Python functions of flat arrays, the parameters of callback primitives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._base import pytree
from ..._base.source import summarize, summarize_function
from ..._ir.avals import ShapedArray
from ..._lower.lazy import callbacks
from ..._runtime.array import ArrayImpl, put, retyped
from ..._runtime.dispatch import device_of
from ..._runtime.failures import from_callback, note_failure
from ..._runtime.host_callbacks import HostCall, checked
from ..broadcasting import full


class FlatCallback:
    """A user-defined function as a function of the leaves of its arguments.

    Args:
      function: function from pytrees of arrays to pytrees of arrays.
      in_tree: the structure of ``(args, kwargs)``.
      out_tree: the expected structure of the result; ``None`` if the result is ignored.
    """

    __slots__ = ("function", "in_tree", "out_tree")

    def __init__(self, function: Callable[..., Any], in_tree: Any, out_tree: Any):
        self.function: Callable[..., Any] = function
        self.in_tree: Any = in_tree
        self.out_tree: Any = out_tree

    def __call__(self, *leaves: Any) -> list[Any]:
        args, kwargs = pytree.tree_unflatten(self.in_tree, leaves)
        out = self.function(*args, **kwargs)
        if self.out_tree is None:
            return []
        results, tree = pytree.tree_flatten(out)
        if tree != self.out_tree and not self._fits(out):
            raise TypeError(
                f"the callback {summarize_function(self.function)} returned the structure {tree}, "
                f"but result_shape_dtypes has the structure {self.out_tree}"
            )
        return results

    def _fits(self, out: Any) -> bool:
        # A list is accepted in place of a tuple, and a tuple in place of a list.
        if type(out) is list:
            return pytree.tree_structure(tuple(out)) == self.out_tree
        return type(out) is tuple and pytree.tree_structure(list(out)) == self.out_tree

    def __eq__(self, other: object) -> bool:
        return (
            type(other) is FlatCallback
            and other.function == self.function
            and other.in_tree == self.in_tree
            and other.out_tree == self.out_tree
        )

    def __hash__(self) -> int:
        return hash((self.function, self.in_tree))

    def __repr__(self) -> str:
        return f"FlatCallback(function={self.function!r}, in_tree={self.in_tree!r})"


class PerExample:
    """A callback of batches that calls another callback for each example, in order.

    Args:
      mapped: for each operand, True if it has a leading mapped axis.
    """

    __slots__ = ("callback", "size", "mapped")

    def __init__(self, callback: Callable[..., Any], size: int, mapped: tuple[bool, ...]):
        self.callback: Any = callback
        self.size: int = size
        self.mapped: tuple[bool, ...] = mapped

    @property
    def function(self) -> Any:
        """The user-defined function."""
        return self.callback.function

    def __call__(self, *args: Any) -> list[Any]:
        rows = [x._rows() if m else None for x, m in zip(args, self.mapped)]
        outs = []
        for _ in range(self.size):
            example = [x if row is None else next(row) for x, row in zip(args, rows)]
            outs.append(self.callback(*example))
        if not outs or not outs[0]:
            return []
        return [np.stack([_stored(x) for x in column]) for column in zip(*outs)]

    def _key(self) -> tuple[Any, ...]:
        return self.callback, self.size, self.mapped

    def __eq__(self, other: object) -> bool:
        return type(other) is PerExample and other._key() == self._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"PerExample({self.callback!r}, size={self.size})"


def _stored(x: Any) -> np.ndarray:
    return x._stored if isinstance(x, ArrayImpl) else np.asarray(x)


def what_is(kind: str, callback: Any, location: Any = None) -> str:
    """Description of a callback for messages: its kind, function and source location."""
    where = f", called at {summarize(location)}" if location is not None else ""
    return f"the {kind} {summarize_function(callback.function)}{where}"


def emit(
    ctx: Any, kind: str, callback: Any, values: Sequence[Any], out_avals: Sequence[ShapedArray],
    *, stays: bool, ordered: bool = False, partitioned: bool = False,
) -> list[Any]:  # fmt: skip
    """Emit a call of a callback; ``partitioned``, each device calls it with its parts."""
    what = what_is(kind, callback, ctx.eqn.source)
    call = HostCall(callback, ctx.in_avals, out_avals, ordered, what)
    return callbacks.emit_callback(
        ctx, call, values, out_avals, has_side_effect=stays, ordered=ordered,
        partitioned=partitioned,
    )  # fmt: skip


def run_now(kind: str, callback: Any, args: Sequence[Any], out_avals: Sequence[ShapedArray]) -> Any:
    """Call a callback eagerly, with arrays as arguments and results.

    Raises:
      JaxRuntimeError: if the callback raises an error or returns a wrong result, as for a call from
        an executable.
    """
    what = what_is(kind, callback)
    specs = [x._spec for x in args]
    device = device_of(specs) if any(s.committed for s in specs) else None
    try:
        operands = [retyped(x, x.aval.strip_weak_type()) for x in args]
        results = checked(callback(*operands), out_avals, what)
    except Exception as e:
        note_failure(e, what)
        raise from_callback(e, what) from e
    return [put(x, device, aval) for x, aval in zip(results, out_avals)]


def of_no_example(avals: Sequence[ShapedArray]) -> list[Any]:
    """Results for an empty batch, without a call of the function."""
    return [full((0, *a.shape), 0, a.dtype) for a in avals]


def batched_avals(avals: Sequence[ShapedArray], size: int) -> tuple[ShapedArray, ...]:
    """Types of batches of ``size`` examples."""
    return tuple(a.update(shape=(size, *a.shape)) for a in avals)
