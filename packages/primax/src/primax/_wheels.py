"""Optional wheels: found when they are used, and named by the line that installs them."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


def wheel(module: str, extra: str) -> ModuleType:
    """A module of an optional wheel.

    Raises:
      ImportError: with the line that installs the wheel, if it is missing.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as e:
        if e.name is not None and e.name.split(".")[0] == module.split(".")[0]:
            raise ImportError(
                f"{module} is not installed; get it with: pip install 'primax[{extra}]'"
            ) from e
        raise
