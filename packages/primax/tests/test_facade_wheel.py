"""Tests that the facade needs only the core and names the wheel of a missing module."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

import primax


def test_core_names_are_at_the_root() -> None:
    assert {"grad", "jit", "vmap", "value_and_grad", "lax", "tree"} <= set(dir(primax))
    assert primax.grad(lambda x: x * x)(3.0) == 6.0
    assert "jax" not in sys.modules


@pytest.mark.skipif(
    importlib.util.find_spec("primax_numpy") is not None, reason="the numpy wheel is installed"
)
@pytest.mark.parametrize("name", ["numpy", "random"])
def test_missing_wheel_error_has_the_install_command(name: str) -> None:
    with pytest.raises(ImportError, match=r"pip install .*primax\[numpy\]"):
        importlib.import_module(f"primax.{name}")
    with pytest.raises(ImportError, match=r"pip install .*primax\[numpy\]"):
        getattr(primax, name)


def test_unknown_name_raises_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = primax.no_such_name


def test_package_is_typed() -> None:
    assert (Path(primax.__path__[0]) / "py.typed").exists()
