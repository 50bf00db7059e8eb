"""Guards on transfers between the host and devices, as the options ``transfer_guard...`` ask.

A transfer is explicit where the user asked for it (``device_put``, ``device_get``), implicit where
an operand had to be brought to a device. Reading an array of the CPU is no transfer.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import Any, Final

from .._base import caches, log
from .._base.config import state
from .jaxlib_errors import JaxRuntimeError

unguarded: Final[set[Any]] = set()
"""Settings (keys of ``state``) that are known to guard nothing."""
caches.register(unguarded.clear)


class _Checked(threading.local):
    """The kinds of transfers that are explicit in this thread."""

    kinds: tuple[str, ...] = ()


_checked: Final = _Checked()


def check(kind: str, explicit: bool, aval: Any, sharding: Any) -> None:
    """Log or refuse a transfer.

    Args:
      kind: ``"host_to_device"``, ``"device_to_host"`` or ``"device_to_device"``.

    Raises:
      JaxRuntimeError: if it is disallowed.
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
        f"INVALID_ARGUMENT: Disallowed {what}. Ask for the transfer with device_put or device_get, "
        f"or allow it with transfer_guard_{kind}"
    )


def _level(kind: str) -> str | None:
    own: str | None = getattr(state, f"transfer_guard_{kind}")
    return state.transfer_guard if own is None else own


@contextmanager
def checked(kind: str):
    """Within this context transfers of a kind are explicit."""
    if state.key in unguarded:
        yield
        return
    before = _checked.kinds
    _checked.kinds = (*before, kind)
    try:
        yield
    finally:
        _checked.kinds = before
