"""Optional wheels: found when they are used, and named by the line that installs them."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


def wheel(module: str, extra: str | None) -> ModuleType:
    """A module of a wheel, which is optional if an extra brings it.

    Raises:
      ImportError: with the line that installs the wheel, if it is missing.
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
