"""Python functions on the buffers of programs, without copies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from primax_core import tree_util
from primax_core.extend import (
    Primitive,
    abstract,
    batch,
    effects,
    jvp,
    lower,
    native,
    summarize_function,
    transpose,
    typeof,
)
from primax_core.extend.runtime import api_boundary, as_result
from primax_core.typing import PyTree

from . import _types
from ._effects import effects_of
from ._vmapping import METHODS, batched

if TYPE_CHECKING:
    from primax_core.extend.native import (
        Buffer as Buffer,
        ExecutionContext as ExecutionContext,
        ExecutionStage as ExecutionStage,
    )

__all__ = ["Buffer", "ExecutionContext", "ExecutionStage", "buffer_callback"]

_OF_CORE: Final = ("Buffer", "ExecutionContext", "ExecutionStage")


def __getattr__(name: str) -> Any:
    if name not in _OF_CORE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(native, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_OF_CORE})


@api_boundary
def buffer_callback(
    callback: Callable[..., None],
    result_shape_dtypes: PyTree,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_output_aliases: Mapping[int, int] | None = None,
    command_buffer_compatible: bool = False,
) -> Callable[..., Any]:
    """A function that calls a Python function with the buffers of operands and results.

    It costs about half as much as ``pure_callback``, because nothing is copied or checked.

    Args:
      callback: called as ``callback(context, out, *args, **kwargs)`` with trees of buffers in place
        of arrays. It writes the results into those of ``out``, which contain arbitrary values
        before, and returns ``None``. On a CPU ``np.asarray(buffer)`` is a view, read-only for
        operands; on a GPU use DLPack or ``__cuda_array_interface__``, and ``context.stream``.
        Buffers are valid during the call only.
      result_shape_dtypes: a pytree of types, with ``shape`` and ``dtype``.
      has_side_effect: call the function even if its results are unused.
      vmap_method: behaviour under ``vmap``, as for ``ffi_call``, without functions.
      input_output_aliases: ``{operand: result}``, numbers in the flattened trees: results that use
        the memory of operands.
      command_buffer_compatible: a GPU may record the call in a command buffer (CUDA graph), and
        replay it without Python. It has no effect on a CPU.

    Returns:
      A function of pytrees of arrays.

    Raises:
      JaxRuntimeError: where a result is used, if the function raised an exception (its cause) or
        returned a value.
      ValueError: under ``jvp`` and ``grad``: define the derivative with ``custom_jvp``.

    >>> import numpy as np
    >>> from primax_core import ShapeDtypeStruct, jit
    >>> def double(context, out, x):
    ...     np.multiply(np.asarray(x), 2, out=np.asarray(out))
    >>> call = buffer_callback(double, ShapeDtypeStruct((2,), np.float32))
    >>> print(jit(call)(np.float32([1, 2])))
    [2. 4.]
    """
    if not callable(callback):
        raise TypeError(f"buffer_callback expects a function, got {callback!r}")
    if vmap_method is not None and vmap_method not in METHODS:
        raise ValueError(
            f"vmap_method of a buffer callback is {vmap_method!r}: it is one of {[*METHODS, None]}"
        )
    name = summarize_function(callback)
    leaves, out_tree = tree_util.tree_flatten(result_shape_dtypes)
    results, _ = _types.result_types(name, leaves)

    @api_boundary
    def call(*args: Any, **kwargs: Any) -> Any:
        flat, in_tree = tree_util.tree_flatten((args, kwargs))
        operands = [as_result(x) for x in flat]
        avals = [typeof(x) for x in operands]
        for i, aval in enumerate(avals):
            _types.check_operand(name, i, aval)
        outs = buffer_callback_p.bind(
            *operands,
            callback=_OnTrees(callback, in_tree, out_tree),
            result_avals=results,
            has_side_effect=bool(has_side_effect),
            vmap_method=vmap_method,
            input_output_aliases=_types.checked_aliases(
                name, input_output_aliases, avals, results, (None, None)
            ),
            command_buffer_compatible=bool(command_buffer_compatible),
        )
        return tree_util.tree_unflatten(out_tree, outs)

    return call


class _OnTrees:
    """A function of a sequence of buffers that calls one of trees of them."""

    __slots__ = ("__wrapped__", "_in_tree", "_out_tree")

    def __init__(self, function: Callable[..., None], in_tree: Any, out_tree: Any) -> None:
        self.__wrapped__ = function
        self._in_tree, self._out_tree = in_tree, out_tree

    def __call__(self, context: Any, *buffers: Any) -> Any:
        n = self._in_tree.num_leaves
        args, kwargs = tree_util.tree_unflatten(self._in_tree, buffers[:n])
        out = tree_util.tree_unflatten(self._out_tree, buffers[n:])
        return self.__wrapped__(context, out, *args, **kwargs)

    def _key(self) -> Any:
        return self.__wrapped__, self._in_tree, self._out_tree

    def __eq__(self, other: object) -> bool:
        return type(other) is _OnTrees and other._key() == self._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return summarize_function(self.__wrapped__)


buffer_callback_p: Final = Primitive("buffer_callback", multiple_results=True)


@buffer_callback_p.rule(abstract)
def _abstract(*avals, result_avals, **_):  # type: ignore[no-untyped-def]
    return list(result_avals)


@buffer_callback_p.rule(effects)
def _effects(*avals, has_side_effect, **_):  # type: ignore[no-untyped-def]
    return effects_of(has_side_effect)


@buffer_callback_p.rule(lower)
def _lower(  # type: ignore[no-untyped-def]
    ctx, *operands, callback, result_avals, has_side_effect, vmap_method, input_output_aliases,
    command_buffer_compatible,
):  # fmt: skip
    return native.callback(
        ctx,
        callback,
        operands,
        result_avals,
        kind="buffers",
        has_side_effect=has_side_effect,
        input_output_aliases=dict(input_output_aliases),
        capture=command_buffer_compatible,
    )


@buffer_callback_p.rule(jvp)
def _jvp(primals, tangents, *, callback, **_):  # type: ignore[no-untyped-def]
    raise ValueError(
        f"a derivative of the buffer callback {callback!r} is needed, and Python functions on "
        "buffers have none: define it for a function around the call, with custom_jvp or custom_vjp"
    )


buffer_callback_p.unsupported(transpose, "buffer callbacks are not linear")


@buffer_callback_p.rule(batch)
def _batch(axis, args, dims, **params):  # type: ignore[no-untyped-def]
    return batched(buffer_callback_p, repr(params["callback"]), axis, args, dims, params)
