"""The numpy wheel depends only on the core."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from importlib.metadata import requires
from pathlib import Path

import primax_numpy


def test_importing_every_module_needs_neither_jax_nor_the_facade() -> None:
    for module in pkgutil.walk_packages(primax_numpy.__path__, "primax_numpy."):
        importlib.import_module(module.name)
    assert "jax" not in sys.modules
    assert "primax" not in sys.modules


def test_package_is_typed() -> None:
    assert (Path(primax_numpy.__path__[0]) / "py.typed").exists()


def test_dependency_on_the_core_is_a_range() -> None:
    (core,) = [need for need in requires("primax-numpy") or () if need.startswith("primax-core")]
    assert "<" in core and ">=" in core
