"""Python functions that executables call with their buffers, without copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._base.config import inherited, state
from .failures import inside, note_failure
from .jaxlib_versions import JAXLIB_VERSION, _jax

ExecutionContext: Any = getattr(getattr(_jax, "ffi", None), "ExecutionContext", None)
"""Class of the first argument of callbacks with buffers: ``stage``, and ``stream`` on a GPU."""

ExecutionStage: Any = getattr(getattr(_jax, "ffi", None), "ExecutionStage", None)
"""Enumeration of the stages of a native function."""


def check_supported() -> None:
    """Raise an error if the installed jaxlib cannot call Python with buffers.

    Raises:
      NotImplementedError: in this case.
    """
    if not hasattr(getattr(_jax, "ffi", None), "Buffer"):
        version = ".".join(map(str, JAXLIB_VERSION))
        raise NotImplementedError(
            f"jaxlib {version} cannot call Python functions with buffers: use kind='arrays', or "
            "install jaxlib 0.10.2 to 0.12"
        )


class Buffer:
    """The memory of an operand or result during a callback.

    ``np.asarray(buffer)`` is a view on a CPU, read-only for operands. On other platforms use
    ``__cuda_array_interface__`` or DLPack. No view may be used after the callback returns.
    """

    __slots__ = ("_raw",)

    def __init__(self, raw: Any):
        self._raw = raw

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return tuple(self._raw.shape)

    @property
    def dtype(self) -> np.dtype:
        """Type of the elements."""
        return np.dtype(self._raw.dtype)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self._raw.ndim

    @property
    def writeable(self) -> bool:
        """True for results."""
        return self._raw.writeable

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = np.asarray(self._raw)
        if not self._raw.writeable:  # jaxlib's view of an operand is writable
            array.flags.writeable = False
        if dtype is not None and np.dtype(dtype) != array.dtype:
            if copy is False:
                raise ValueError("a conversion of the dtype needs a copy, but copy=False was given")
            return array.astype(dtype)
        return array.copy() if copy else array

    def __dlpack__(self, **options: Any) -> Any:
        return self._raw.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._raw.__dlpack_device__()

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self._raw.__cuda_array_interface__

    def __repr__(self) -> str:
        return f"Buffer({self.dtype.name}{list(self.shape)}, writeable={self.writeable})"


class BufferCall:
    """Callable that XLA calls for a Python function of buffers.

    Args:
      function: called with the context of the call, the buffers of the operands and those of the
        results; it writes the results and returns ``None``.
      operands: the number of operands.
      tokens: a token precedes the operands and the results.
      what: its name in messages.
    """

    __slots__ = ("function", "operands", "tokens", "what", "_settings")

    def __init__(self, function: Callable[..., None], operands: int, tokens: int, what: str):
        self.function = function
        self.operands = operands
        self.tokens = tokens
        self.what = what
        self._settings = state.trace_key

    def __call__(self, context: Any, *raw: Any) -> None:
        n = self.tokens
        end = n + self.operands
        buffers = [Buffer(b) for b in (*raw[n:end], *raw[end + n :])]
        inside.depth += 1
        try:
            if state.trace_key is self._settings:
                returned = self.function(context, *buffers)
            else:
                with inherited(self._settings):
                    returned = self.function(context, *buffers)
            if returned is not None:
                raise TypeError(
                    f"{self.what} returned a {type(returned).__name__}, but callbacks with buffers "
                    "write into those of the results, for example np.asarray(out)[...] = value, "
                    "and return None"
                )
        except BaseException as e:
            raise RuntimeError(note_failure(e, self.what)) from None
        finally:
            inside.depth -= 1

    def __repr__(self) -> str:
        return f"BufferCall({self.what})"
