"""A plugin: ``pytest -p primax.as_jax.pytest`` runs tests written for JAX on Primax.

Plugins given by ``-p`` are imported before test modules, ``conftest.py`` files and installed
plugins, and so before anything that imports jax.
"""

from __future__ import annotations

from . import VERSION, install

install()


def pytest_report_header() -> str:
    """The line that tells readers of the log what ``jax`` is."""
    import primax

    return f"jax {VERSION}: Primax {primax.__version__}"
