"""Running executables on several devices: what jaxlib does not check, and programs in flight.

Loaded on first use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from .._base.locks import new_lock
from .jaxlib_errors import JaxRuntimeError
from .jaxlib_versions import ABORTS_ON_DELETED_ARGUMENTS, COLLECTIVES_MAY_DEADLOCK

_COLLECTIVES: Final = (
    "all-reduce", "all-gather", "all-to-all", "collective-permute", "reduce-scatter",
    "collective-broadcast",
)  # fmt: skip

_lock: Final = new_lock()
_in_flight: list[Any] = []  # the token of the last executable with collectives


def execute_on(
    raw: Any, execute: Callable[..., Any], callbacks: Sequence[ContainedCall] = ()
) -> Callable[..., Any]:
    """jaxlib's ``execute_sharded`` of an executable on several devices, made safe.

    Args:
      callbacks: the Python functions that it calls. It is waited for, and their errors are raised.

    On jaxlib 0.10 a deleted argument ends the process. Before 0.12 two executables whose
    collectives run at the same time on a CPU wait for each other until the process is aborted, so
    the second one waits for the first.
    """
    on_cpu = raw.local_devices()[0].platform == "cpu"
    if COLLECTIVES_MAY_DEADLOCK and on_cpu and _has_collectives(raw):
        execute = _one_at_a_time(execute)
    if callbacks:
        execute = _with_errors(execute, callbacks)
    return _checked(execute) if ABORTS_ON_DELETED_ARGUMENTS else execute


class ContainedCall:
    """A callback of an executable on several devices, whose errors are kept until all have ended.

    Devices that wait for a value of the one that failed would abort the process, so the call
    returns zeros.

    Args:
      call: the callback, a ``HostCall`` or ``BufferCall``.
      avals: the types of its results.
      tokens: the number of tokens before its operands and results.
      writes: it writes its results into buffers and returns ``None``.
    """

    __slots__ = ("call", "errors", "_results", "_tokens", "_writes")

    def __init__(self, call: Callable[..., Any], avals: Sequence[Any], tokens: int, writes: bool):
        self.call = call
        self.errors: list[RuntimeError] = []
        self._results = [(a.shape, a.dtype) for a in avals]
        self._tokens = tokens
        self._writes = writes

    def __call__(self, *args: Any) -> Any:
        try:
            return self.call(*args)
        except RuntimeError as e:
            self.errors.append(e)
        if self._writes:
            return None
        return (*args[: self._tokens], *(np.zeros(*r) for r in self._results))

    def take_errors(self) -> list[RuntimeError]:
        """The errors since the last call of this method."""
        errors, self.errors = self.errors, []
        return errors

    def __repr__(self) -> str:
        return repr(self.call)


def _with_errors(
    execute: Callable[..., Any], callbacks: Sequence[ContainedCall]
) -> Callable[..., Any]:
    def run(bufs: Sequence[Any], with_tokens: bool = False) -> Any:
        results = execute(bufs, with_tokens=True)
        token = results.consume_token()
        try:
            token.block_until_ready()
        finally:
            errors = [error for callback in callbacks for error in callback.take_errors()]
        if errors:
            raise JaxRuntimeError(f"INTERNAL: {errors[0]}")
        return _WithToken(results, token) if with_tokens else results

    return run


def _has_collectives(raw: Any) -> bool:
    text = "".join(module.to_string() for module in raw.hlo_modules())
    return any(name in text for name in _COLLECTIVES)


def _checked(execute: Callable[..., Any]) -> Callable[..., Any]:
    def run(bufs: Sequence[Any], **options: Any) -> Any:
        for i, buf in enumerate(bufs):
            if buf.is_deleted():
                raise JaxRuntimeError(f"INVALID_ARGUMENT: argument {i} has been deleted.")
        return execute(bufs, **options)

    return run


def _one_at_a_time(execute: Callable[..., Any]) -> Callable[..., Any]:
    def run(bufs: Sequence[Any], with_tokens: bool = False) -> Any:
        with _lock:
            while _in_flight:
                try:
                    _in_flight.pop().block_until_ready()
                except JaxRuntimeError:
                    pass  # raised where the results of that executable are read
            results = execute(bufs, with_tokens=True)
            token = results.consume_token()
            _in_flight.append(token)
        return _WithToken(results, token) if with_tokens else results

    return run


class _WithToken:
    """Results whose token was consumed already."""

    def __init__(self, results: Any, token: Any):
        self._results = results
        self._token = token

    def consume_token(self) -> Any:
        """The token of the execution."""
        return self._token

    def __getattr__(self, name: str) -> Any:
        return getattr(self._results, name)
