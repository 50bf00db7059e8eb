"""The value of ``interpret`` for kernels that leave it away."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Final

from primax_core import config
from primax_core.extend.runtime import define_option

from ._interpret_params import InterpretParams

_NAME: Final = "pallas_tpu_interpret_mode"
interpret_mode: Final[Any] = define_option(
    _NAME, object, None, "trace", "InterpretParams of kernels that leave `interpret` away",
    optional=True,
)  # fmt: skip


def force_tpu_interpret_mode(params: InterpretParams | None = None) -> AbstractContextManager[Any]:
    """A context manager that sets ``interpret`` of kernels that leave it away.

    Args:
      params: `InterpretParams`. With ``detect_races``, calls on concrete arrays are checked.

    Raises:
      TypeError: if ``params`` is something else.
    """
    return interpret_mode(_params("force_tpu_interpret_mode", params))


def set_tpu_interpret_mode(params: InterpretParams | None = None) -> None:
    """Set ``interpret`` of kernels that leave it away, for all threads.

    Arguments and errors are those of `force_tpu_interpret_mode`.
    """
    config.update(_NAME, _params("set_tpu_interpret_mode", params))


def reset_tpu_interpret_mode_state() -> None:
    """Begin without the memory of former kernels. On CPUs kernels leave none."""


def _params(function: str, params: Any) -> InterpretParams:
    if params is None:
        return InterpretParams()
    if not isinstance(params, InterpretParams):
        raise TypeError(f"{function} takes InterpretParams, got {params!r}")
    return params
