"""Execution of unchanged programs and libraries written for JAX.

``python -m primax.as_jax program.py arguments`` runs a program, ``python -m primax.as_jax -m
module`` a module, and ``pytest -p primax.as_jax.pytest`` tests. :func:`install` changes the current
process: afterwards ``import jax`` and its submodules import Primax. In IPython and Jupyter,
``%load_ext primax.as_jax`` calls it. Other processes are not affected, child processes included,
unless ``PRIMAX_AS_JAX=1`` is in their environment: then each Python process of this installation
begins with :func:`install`.
"""

from __future__ import annotations

from typing import Any

from . import _finder, _type_names
from ._environment import read_options
from ._top import VERSION as VERSION

__all__ = ["VERSION", "install", "uninstall"]


def install() -> None:
    """Make ``import jax`` import Primax in this process, also if the real jax is installed.

    Environment variables with the reference's names (``JAX_ENABLE_X64``) set the corresponding
    options unless Primax's own variables (``PRIMAX_ENABLE_X64``) are set. A second call has no
    effect.

    Raises:
      ImportError: if the real jax is already imported, because modules may contain parts of it.
    """
    _finder.install()
    _type_names.rename()
    read_options()


def uninstall() -> None:
    """Undo :func:`install`.

    Names that modules have imported, and options, remain.
    """
    _finder.uninstall()
    _type_names.restore()


def load_ipython_extension(ipython: Any) -> None:
    """Call :func:`install`, for ``%load_ext primax.as_jax`` in IPython and Jupyter."""
    install()


def unload_ipython_extension(ipython: Any) -> None:
    """Call :func:`uninstall`, for ``%unload_ext primax.as_jax``."""
    uninstall()
