"""Fixtures: a small core, and a package to copy it into."""

from __future__ import annotations

from pathlib import Path

import pytest
import small_core


@pytest.fixture
def core(tmp_path, monkeypatch) -> Path:
    """Folder of the modules of the small core."""
    return small_core.install(tmp_path / "projects", monkeypatch)


@pytest.fixture
def acme(tmp_path) -> Path:
    """Folder of a package."""
    folder = tmp_path / "work" / "acme"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    return folder
