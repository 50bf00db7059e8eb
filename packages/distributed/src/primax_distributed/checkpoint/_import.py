"""The package tensorstore, an optional dependency."""

from __future__ import annotations

try:
    import tensorstore as ts
except ModuleNotFoundError as e:
    if e.name != "tensorstore":
        raise
    raise ImportError(
        "checkpoints need tensorstore, which is not installed; get it with: "
        "pip install 'primax-distributed[checkpoint]'"
    ) from e

__all__ = ["ts"]
