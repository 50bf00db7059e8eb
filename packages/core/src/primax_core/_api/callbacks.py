"""``pure_callback`` and ``io_callback``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._base import pytree
from .._base.config import state
from .._base.pytree import PyTree
from .._base.source import api_boundary
from .._ir import dtypes
from .._ir.avals import ShapedArray
from .._runtime.sharding import ShardingLike, SingleDeviceSharding
from ..lax.callbacks.functions import FlatCallback
from ..lax.callbacks.io import io_callback_p
from ..lax.callbacks.pure import VMAP_METHODS, pure_callback_p
from .arguments import check_callable


@api_boundary
def pure_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: PyTree,
    *args: Any,
    sharding: ShardingLike | None = None,
    vmap_method: str | None = None,
    **kwargs: Any,
) -> Any:
    """Call a Python function without side effects, also from compiled functions.

    The function may be called any number of times, or not at all if its results are unused.

    Args:
      callback: takes arrays, returns NumPy arrays or arrays. It may use this library.
      result_shape_dtypes: a pytree of ``ShapeDtypeStruct`` (or arrays) like the result.
      args, kwargs: pytrees of arrays, passed to the function.
      sharding: the device on which the function runs.
      vmap_method: behaviour under ``vmap``. ``"sequential"`` calls the function for each example;
        ``"expand_dims"`` and ``"broadcast_all"`` call it once, with a leading axis on all
        arguments; the axis of an unmapped argument has length 1 for ``"expand_dims"``.
        ``"legacy_vectorized"`` leaves unmapped arguments unchanged. ``None`` raises an error.

    Returns:
      A pytree of arrays like ``result_shape_dtypes``.

    Raises:
      JaxRuntimeError: raised where a result is waited for, if the function raised an error (the
        cause) or its results do not match ``result_shape_dtypes``.
      ValueError: under ``jvp`` and ``grad``: define the derivative with ``custom_jvp``.

    >>> import numpy as np
    >>> from primax_core import ShapeDtypeStruct, jit
    >>> f = jit(lambda x: pure_callback(np.sinc, ShapeDtypeStruct((), np.float32), x))
    >>> float(f(0.0))
    1.0
    """
    check_callable(callback)
    if vmap_method not in VMAP_METHODS:
        raise ValueError(
            "vmap_method must be on of the allowed methods "
            f"{list(VMAP_METHODS)}, but got: {vmap_method}"
        )
    leaves, flat, avals, out_tree = _flat(callback, result_shape_dtypes, args, kwargs)
    outs = pure_callback_p.bind(
        *leaves, callback=flat, result_avals=avals, sharding=_checked_sharding(sharding),
        vmap_method=vmap_method,
    )  # fmt: skip
    return pytree.tree_unflatten(out_tree, outs)


@api_boundary
def io_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: PyTree,
    *args: Any,
    sharding: ShardingLike | None = None,
    ordered: bool = False,
    **kwargs: Any,
) -> Any:
    """Call a Python function with side effects, exactly once for each execution.

    Args:
      callback: takes arrays, returns NumPy arrays or arrays.
      result_shape_dtypes: a pytree of ``ShapeDtypeStruct`` (or arrays) like the result; ``None``
        for a function that returns ``None``.
      sharding: the device on which the function runs.
      ordered: the calls happen in program order, also between executions by the same thread.
      args: positional arguments of the function, pytrees of arrays.
      kwargs: keyword arguments of the function.

    Returns:
      A pytree of arrays like ``result_shape_dtypes``.

    Under ``vmap`` it is called for each example, in order; ordered callbacks cannot be mapped.

    Raises:
      JaxRuntimeError: raised where a result is waited for, if the function raised an error (the
        cause) or its results do not match ``result_shape_dtypes``.
      ValueError: under ``jvp`` and ``grad``, and under ``vmap`` if it is ordered.

    >>> import numpy as np
    >>> from primax_core import ShapeDtypeStruct, jit
    >>> seen = []
    >>> keep = lambda x: seen.append(float(x))
    >>> _ = jit(lambda x: io_callback(keep, None, x, ordered=True))(2.0)
    >>> from primax_core import effects_barrier
    >>> effects_barrier()
    >>> seen
    [2.0]
    """
    check_callable(callback)
    leaves, flat, avals, out_tree = _flat(callback, result_shape_dtypes, args, kwargs)
    outs = io_callback_p.bind(
        *leaves, callback=flat, result_avals=avals, ordered=bool(ordered),
        sharding=_checked_sharding(sharding),
    )  # fmt: skip
    return pytree.tree_unflatten(out_tree, outs)


def _flat(callback, result_shape_dtypes, args: tuple, kwargs: dict):
    leaves, in_tree = pytree.tree_flatten((args, kwargs))
    results, out_tree = pytree.tree_flatten(result_shape_dtypes)
    avals = tuple([_result_aval(x) for x in results])
    return leaves, FlatCallback(callback, in_tree, out_tree), avals, out_tree


def _result_aval(x: Any) -> ShapedArray:
    try:
        shape, dtype = tuple(x.shape), x.dtype
    except AttributeError:
        raise TypeError(
            "result_shape_dtypes must be a pytree of objects with a shape and a dtype, such as "
            f"ShapeDtypeStruct, got {x!r}"
        ) from None
    if isinstance(dtype, dtypes.ExtendedDType):
        raise TypeError(
            f"a callback cannot return arrays of dtype {dtype.name}: return their data (for random "
            "keys, random.key_data) and wrap it again"
        )
    dtype = np.dtype(dtype)
    if not state.enable_x64 and dtypes.canonicalize_dtype(dtype) != dtype:
        raise ValueError(
            "result_shape_dtypes cannot specify 64-bit types when `enable_x64` is disabled, got "
            f"{dtype.name}"
        )
    return ShapedArray(shape, dtype)


def _checked_sharding(sharding: Any) -> Any:
    if sharding is None or isinstance(sharding, SingleDeviceSharding):
        return sharding
    raise TypeError(f"sharding must be None or a SingleDeviceSharding, got {sharding!r}")
