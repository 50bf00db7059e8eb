"""Guards on transfers between the host and devices, set by the options ``transfer_guard...``.

A transfer is explicit if the user requested it (``device_put``, ``device_get``), and implicit if an
operand had to be moved to a device. Reading an array on the CPU is not a transfer.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import Any, Final

from .._base import caches, log
from .._base.config import state
from .jaxlib_errors import JaxRuntimeError

unguarded: Final[set[Any]] = set()
"""Settings (values of ``state.key``) without guards."""
caches.register(unguarded.clear)


class _Checked(threading.local):
    """The types of transfers that are explicit in this thread."""

    kinds: tuple[str, ...] = ()


_checked: Final = _Checked()


def check(kind: str, explicit: bool, aval: Any, sharding: Any) -> None:
    """Log a transfer or raise an error, according to its guard.

    Args:
      kind: ``"host_to_device"``, ``"device_to_host"`` or ``"device_to_device"``.

    Raises:
      JaxRuntimeError: if the transfer is disallowed.
    """
    names = ("host_to_device", "device_to_host", "device_to_device")
    if not any(_level(name) for name in names):
        unguarded.add(state.key)
        return
    level = _level(kind)
    explicit = explicit or kind in _checked.kinds
    if level is None or level == "allow" or explicit and not level.endswith("_explicit"):
        return
    what = f"{kind.replace('_', '-')} transfer: aval={aval}, dst_sharding={sharding}"
    if level.startswith("log"):
        log.warning("%s", what)
        return
    raise JaxRuntimeError(
        f"INVALID_ARGUMENT: Disallowed {what}. Request the transfer with device_put or device_get, "
        f"or allow it with transfer_guard_{kind}"
    )


def _level(kind: str) -> str | None:
    own: str | None = getattr(state, f"transfer_guard_{kind}")
    return state.transfer_guard if own is None else own


@contextmanager
def checked(kind: str):
    """Context manager that makes transfers of one type explicit."""
    if state.key in unguarded:
        yield
        return
    before = _checked.kinds
    _checked.kinds = (*before, kind)
    try:
        yield
    finally:
        _checked.kinds = before
