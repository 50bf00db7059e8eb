"""Running executables on several devices: what jaxlib does not check, and programs in flight.

Loaded on first use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from .._base.locks import new_lock
from .jaxlib_errors import JaxRuntimeError
from .jaxlib_versions import ABORTS_ON_DELETED_ARGUMENTS, COLLECTIVES_MAY_DEADLOCK

_COLLECTIVES: Final = (
    "all-reduce", "all-gather", "all-to-all", "collective-permute", "reduce-scatter",
    "collective-broadcast",
)  # fmt: skip

_lock: Final = new_lock()
_in_flight: list[Any] = []  # the token of the last executable with collectives


def execute_on(raw: Any, execute: Callable[..., Any]) -> Callable[..., Any]:
    """jaxlib's ``execute_sharded`` of an executable on several devices, made safe.

    On jaxlib 0.10 a deleted argument ends the process. Before 0.12 two executables whose
    collectives run at the same time on a CPU wait for each other until the process is aborted, so
    the second one waits for the first.
    """
    on_cpu = raw.local_devices()[0].platform == "cpu"
    if COLLECTIVES_MAY_DEADLOCK and on_cpu and _has_collectives(raw):
        execute = _one_at_a_time(execute)
    return _checked(execute) if ABORTS_ON_DELETED_ARGUMENTS else execute


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
