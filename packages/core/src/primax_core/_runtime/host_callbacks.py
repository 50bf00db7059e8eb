"""Python functions called by executables.

XLA calls a :class:`HostCall` with NumPy arrays and accepts any tuple unchecked, so the results are
checked here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from .._base.config import inherited, state
from .._ir.avals import ShapedArray
from .array import ArrayImpl, physical, spec_of
from .buffers import put_raw
from .devices import client_of
from .failures import inside, note_failure
from .sharding import SingleDeviceSharding


class HostCall:
    """Callable that XLA calls for a Python function: converts arguments, and checks results.

    Args:
      function: takes arrays, returns a sequence of values, one for each of ``out_avals``.
      tokens: a token precedes the operands and results.
      what: its name in messages, such as ``pure_callback of f at file.py:3``.
    """

    __slots__ = ("function", "in_avals", "out_avals", "tokens", "what", "_settings", "_specs")

    def __init__(
        self, function: Callable[..., Sequence[Any]], in_avals: Sequence[ShapedArray],
        out_avals: Sequence[ShapedArray], tokens: bool, what: str,
    ):  # fmt: skip
        self.function = function
        self.in_avals = in_avals
        self.out_avals = out_avals
        self.tokens = tokens
        self.what = what
        # The call runs in a thread of XLA, with the settings of the trace.
        self._settings = state.trace_key
        host = SingleDeviceSharding(client_of("cpu").local_devices()[0])
        self._specs = [spec_of(a.strip_weak_type(), host, False) for a in in_avals]

    def __call__(self, *buffers: Any) -> tuple[Any, ...]:
        if self.tokens:
            token, *buffers = buffers
        inside.depth += 1
        try:
            args = [self._array(s, b) for s, b in zip(self._specs, buffers)]
            if state.trace_key is self._settings:
                results = self.function(*args)
            else:
                with inherited(self._settings):
                    results = self.function(*args)
            outs = checked(results, self.out_avals, self.what)
        except BaseException as e:
            raise RuntimeError(note_failure(e, self.what)) from None
        finally:
            inside.depth -= 1
        return (token, *outs) if self.tokens else tuple(outs)

    def _array(self, spec, buffer) -> ArrayImpl:
        stored = spec.stored
        if buffer.shape != stored.shape:  # a part
            part = spec.aval.update(shape=buffer.shape[: spec.aval.ndim])
            spec = spec_of(part, spec.sharding, False)
            stored = spec.stored
        # jaxlib's view is valid during the call only; the array may live longer, so it is a copy.
        return spec.wrap(put_raw(np.asarray(buffer, stored.dtype), stored, spec.sharding))

    def __repr__(self) -> str:
        return f"HostCall({self.what})"


def checked(results: Sequence[Any], avals: Sequence[ShapedArray], what: str) -> list[np.ndarray]:
    """Results of a callback, converted to the declared avals.

    Raises:
      TypeError: for a wrong number of results, or a wrong dtype.
      ValueError: for a wrong shape.
    """
    if len(results) != len(avals):
        raise TypeError(
            f"{what} returned {len(results)} array{'' if len(results) == 1 else 's'}, but "
            f"result_shape_dtypes has {len(avals)}"
        )
    return [_result(x, aval, i, what) for i, (x, aval) in enumerate(zip(results, avals))]


def _result(x: Any, aval: ShapedArray, i: int, what: str) -> np.ndarray:
    stored = physical(aval)
    value = x if type(x) is np.ndarray else _to_numpy(x)
    if value.shape != stored.shape:
        raise ValueError(
            f"{what} returned an array of shape {value.shape} as result {i}, but "
            f"result_shape_dtypes says {aval.str_short()}"
        )
    if value.dtype != stored.dtype:
        value = _converted(x, value, stored.dtype, aval, i, what)
    return np.ascontiguousarray(value) if not value.flags.c_contiguous else value


def _to_numpy(x: Any) -> np.ndarray:
    return x._stored if isinstance(x, ArrayImpl) else np.asarray(x)


_NARROWED: Final = {
    np.dtype(np.float64): "f", np.dtype(np.int64): "i", np.dtype(np.uint64): "u",
    np.dtype(np.complex128): "c",
}  # fmt: skip


def _converted(x, value, dtype, aval, i: int, what: str) -> np.ndarray:
    """Convert a result: Python numbers to the declared dtype, and NumPy's default 64-bit dtypes to
    32 bits if 64-bit types are disabled."""
    is_number = type(x) in (bool, int, float, complex)
    kind = np.dtype(dtype).kind
    if is_number and np.result_type(type(x), dtype) == dtype:
        return value.astype(dtype)
    if _NARROWED.get(value.dtype) == kind and not state.enable_x64 and dtype.itemsize < 8:
        return value.astype(dtype)
    if value.dtype == np.complex128 and dtype == np.complex64 and not state.enable_x64:
        return value.astype(dtype)
    raise TypeError(
        f"{what} returned an array of dtype {value.dtype.name} as result {i}, but "
        f"result_shape_dtypes says {aval.str_short()}: convert it in the function, or change "
        "result_shape_dtypes"
    )
