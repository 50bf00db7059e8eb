"""A plugin: ``pytest -p primax.as_jax.pytest`` runs tests written for JAX on Primax.

Plugins given by ``-p`` are registered before test modules, ``conftest.py`` files and installed
plugins are imported, and so before anything that imports jax.
"""

from __future__ import annotations

from typing import Any

from . import VERSION, install


def pytest_addoption(parser: Any) -> None:
    """Pytest calls this as soon as the plugin is registered, before it loads others."""
    install()


def pytest_report_header() -> str:
    """The line that tells readers of the log what ``jax`` is."""
    import primax

    return f"jax {VERSION}: Primax {primax.__version__}"
