"""Files of packages that were installed a moment ago."""

from __future__ import annotations

import importlib
import time
from pathlib import Path

MARGIN = 11.0
"""Seconds; links on disk are switched off for sources that changed within ten seconds."""


def wait_until_settled(*packages: str) -> None:
    """Wait until links from jaxprs to executables are written for the installed packages.

    The core writes none in a process that began less than ten seconds after a change of its
    sources, as after an installation: they could have changed while they were imported.
    """
    latest = 0.0
    for name in packages:
        for folder in importlib.import_module(name).__path__:
            for path in Path(folder).rglob("*"):
                if path.is_file() and path.parent.name != "__pycache__":
                    status = path.stat()
                    latest = max(latest, status.st_mtime, status.st_ctime)
    time.sleep(max(0.0, min(MARGIN, latest + MARGIN - time.time())))
