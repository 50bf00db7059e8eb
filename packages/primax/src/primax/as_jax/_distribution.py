"""The distribution ``jax`` for ``importlib.metadata``."""

from __future__ import annotations

from importlib.metadata import Distribution
from pathlib import Path
from typing import Any

from ._top import VERSION


class Metadata(Distribution):
    """Name and version of the replacement of jax."""

    def read_text(self, filename: str) -> str | None:
        if filename != "METADATA":
            return None
        return f"Metadata-Version: 2.1\nName: jax\nVersion: {VERSION}\n"

    def locate_file(self, path: Any) -> Path:
        """Return the path of a file of the facade."""
        return Path(__file__).parent.parent / path
