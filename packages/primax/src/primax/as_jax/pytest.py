"""Pytest plugin: ``pytest -p primax.as_jax.pytest`` runs tests written for JAX on Primax.

Pytest registers plugins given by ``-p`` before it imports test modules, ``conftest.py`` files and
installed plugins, and therefore before any import of jax.
"""

from __future__ import annotations

from typing import Any

from . import VERSION, install


def pytest_addoption(parser: Any) -> None:
    """Install Primax as ``jax``; pytest calls this hook before it loads other plugins."""
    install()


def pytest_report_header() -> str:
    """Report the actual implementation of ``jax`` in the log."""
    import primax

    return f"jax {VERSION}: Primax {primax.__version__}"
