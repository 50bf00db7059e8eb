"""Import of optional wheels, with installation instructions in the error."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


def wheel(module: str, extra: str | None) -> ModuleType:
    """Import a module of a wheel; with ``extra``, the wheel is optional.

    Raises:
      ImportError: if the wheel is missing; the message contains the command that installs it.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as e:
        package = module.partition(".")[0]
        if extra is not None and e.name == package:
            raise ImportError(
                f"{package} is not installed; get it with: pip install 'primax[{extra}]'"
            ) from e
        raise
