"""The stub of ``Array`` declares exactly the methods that arrays have at run time."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import numpy as np
import pytest

import primax
import primax.numpy as jnp

STUB = Path(inspect.getfile(primax.Array)).with_suffix(".pyi")
CONCRETE: type = type(jnp.zeros(1))
# Raises an error that names the alternative, so checkers should not offer it.
UNDECLARED = {"__setitem__"}


def class_of_stub(name: str) -> dict[str, ast.FunctionDef]:
    """Return the functions that the stub declares in a class."""
    (cls,) = [
        node
        for node in ast.parse(STUB.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and node.name == name
    ]
    return {node.name: node for node in cls.body if isinstance(node, ast.FunctionDef)}


def test_declared_methods_exist() -> None:
    for name in class_of_stub("Array"):
        assert hasattr(CONCRETE, name), name


def test_methods_are_declared() -> None:
    declared = {*class_of_stub("Array"), *UNDECLARED, *dir(object)}
    own = {name for name in vars(primax.Array) if not name.startswith("_") or name[-2:] == "__"}
    skipped = {"__slots__", "__module__", "__annotations__", "__array_priority__"}
    assert own - skipped <= declared


def test_updates_are_declared() -> None:
    updates = type(jnp.zeros(1).at[0])
    declared = class_of_stub("_Updates")
    assert set(declared) == {name for name in vars(updates) if not name.startswith("_")}


@pytest.mark.parametrize("name", ["sum", "max", "all", "mean", "var", "argmax", "astype", "clip"])
def test_parameters_are_declared(name: str) -> None:
    function = inspect.signature(getattr(CONCRETE, name))
    parameters = list(function.parameters)[1:]
    arguments = class_of_stub("Array")[name].args
    assert parameters == [a.arg for a in [*arguments.args[1:], *arguments.kwonlyargs]]


def test_operators_have_the_declared_return_types() -> None:
    x = jnp.ones(2, int)
    for name, node in class_of_stub("Array").items():
        returns = ast.unparse(node.returns) if node.returns else ""
        if name.startswith("__") and returns == "Array" and len(node.args.args) == 2:
            y = 0 if name in ("__getitem__", "__round__") else x
            out = getattr(x, name)(y)
            assert isinstance(out, primax.Array), name
    np.testing.assert_array_equal(x, np.ones(2))
