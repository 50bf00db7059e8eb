"""Options of the current mesh: caches of jaxprs and executables distinguish its values."""

from __future__ import annotations

import threading
import warnings
from typing import Any, Final

from primax_core.extend.runtime import define_option

current_abstract_mesh: Final = define_option(
    "current_abstract_mesh", object, None, "trace", "mesh of traced functions"
)
current_mesh: Final = define_option(
    "current_mesh", object, None, "dispatch", "mesh of eager operations"
)
entered_mesh: Final = define_option(
    "entered_mesh", object, None, "trace", "mesh of the innermost `with mesh:`"
)
forbidden_axes: Final = define_option(
    "no_collectives", object, frozenset(), "trace", "mesh axes along which collectives are refused"
)


class _Entered(threading.local):
    """The meshes that a thread entered by ``with mesh:``."""

    def __init__(self) -> None:
        self.stack: list[Any] = []


_thread: Final = _Entered()


def enter_mesh(mesh: Any) -> None:
    """Set the mesh to which specs refer, until :func:`exit_mesh`."""
    warnings.warn(
        "`with mesh:` is deprecated: use `with set_mesh(mesh):`", DeprecationWarning, stacklevel=3
    )
    override = entered_mesh(mesh)
    override.__enter__()
    _thread.stack.append(override)


def exit_mesh() -> None:
    """Undo the last :func:`enter_mesh` of this thread."""
    _thread.stack.pop().__exit__(None, None, None)
