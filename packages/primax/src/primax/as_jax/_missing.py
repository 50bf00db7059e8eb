"""Names of ``jax`` that a program asks for and Primax does not have.

Nothing is recorded unless a function was registered with :func:`listen`; then the modules below
``jax`` are observed as they are imported.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType, FrameType, ModuleType
from typing import Any, Final

from primax_core.extend import is_internal_code

Listener = Callable[[str, CodeType, int], None]

_listeners: Final[list[Listener]] = []
_observed: Final[set[int]] = set()


def listen(listener: Listener) -> None:
    """Call ``listener(name, code, line)`` for each missing name, with the line that asks for it."""
    _listeners.append(listener)
    for name, module in [*sys.modules.items()]:
        if name.startswith("jax."):
            observe(name, module)


def note(name: str) -> None:
    """Record a missing name, such as ``jax.lax.name``, of the innermost line outside the library.

    Names with two underscores at the front are protocols of Python and are not recorded.
    """
    if not _listeners or name.rpartition(".")[2].startswith("__"):
        return
    frame = _asking(sys._getframe(1))
    if frame is not None:
        for listener in _listeners:
            listener(name, frame.f_code, frame.f_lineno)


def observe(name: str, module: ModuleType) -> None:
    """Record the attributes that other code reads from a module and that it does not have."""
    if not _listeners or id(module) in _observed or type(module) is not ModuleType:
        return
    _observed.add(id(module))
    own: Callable[[str], Any] | None = vars(module).get("__getattr__")

    def __getattr__(attribute: str) -> Any:
        try:
            if own is not None:
                return own(attribute)
        except AttributeError:
            _note_attribute(name, attribute)
            raise
        _note_attribute(name, attribute)
        raise AttributeError(f"module {module.__name__!r} has no attribute {attribute!r}")

    vars(module)["__getattr__"] = __getattr__


def _note_attribute(module: str, attribute: str) -> None:
    """Record an attribute, unless the library itself asks for it: lookups try several modules."""
    frame = _outside_importlib(sys._getframe(2))
    if frame is not None and not is_internal_code(frame.f_code):
        note(f"{module}.{attribute}")


def _asking(frame: FrameType | None) -> FrameType | None:
    while (frame := _outside_importlib(frame)) is not None:
        if not is_internal_code(frame.f_code):
            return frame
        frame = frame.f_back
    return None


def _outside_importlib(frame: FrameType | None) -> FrameType | None:
    while frame is not None and frame.f_globals.get("__name__", "").startswith("importlib"):
        frame = frame.f_back
    return frame
