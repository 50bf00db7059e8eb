"""Tests that core modules are one object under both names, at any depth and import order."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
import sys
import primax
{first}
{second}
from importlib import import_module
facade, core = import_module("primax.{name}"), import_module("primax_core.{name}")
assert facade is core, (facade, core)
assert sys.modules["primax.{name}"] is sys.modules["primax_core.{name}"]
assert core.__spec__.name == "primax_core.{name}" == core.__name__
"""


@pytest.mark.parametrize("name", ["lax", "lax.linalg", "test_util", "typing", "tree_util"])
@pytest.mark.parametrize("order", [("primax", "primax_core"), ("primax_core", "primax")])
def test_core_modules_have_two_names_and_one_object(name, order):
    first, second = (f"import {root}.{name}" for root in order)
    code = CODE.format(first=first, second=second, name=name)
    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True)
    assert done.returncode == 0, done.stderr


def test_unknown_modules_raise():
    import primax

    assert primax.lax
    with pytest.raises(ModuleNotFoundError, match=r"lax\.nothing"):
        __import__("primax.lax.nothing")
