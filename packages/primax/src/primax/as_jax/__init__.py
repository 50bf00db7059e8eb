"""Programs and libraries written for JAX, unchanged, on Primax.

``python -m primax.as_jax program.py arguments`` runs a program, ``python -m primax.as_jax -m
module`` a module, ``pytest -p primax.as_jax.pytest`` tests, and :func:`install` changes the process
that calls it: from then on ``import jax`` and what lies below it find Primax. A process that asks
for none of these is left alone, and so are the processes that it starts.
"""

from __future__ import annotations

from . import _finder, _type_names
from ._environment import read_options
from ._top import VERSION as VERSION

__all__ = ["VERSION", "install", "uninstall"]


def install() -> None:
    """Let ``import jax`` find Primax in this process, whether or not the real jax is installed.

    Options in the environment under the reference's names (``JAX_ENABLE_X64``) are taken over,
    where the same option is not set under Primax's (``PRIMAX_ENABLE_X64``). A second call changes
    nothing.

    Raises:
      ImportError: if the real jax is imported already, since modules may hold parts of it.
    """
    _finder.install()
    _type_names.take()
    read_options()


def uninstall() -> None:
    """Let ``import jax`` find what it found before.

    Modules that have imported names keep them; options stay as they are.
    """
    _finder.uninstall()
    _type_names.give_back()
