"""Nothing of the core imports jax, and the hook that watches for it works."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import no_jax
import pytest

import primax_core


def test_hook_refuses_and_remembers() -> None:
    before = len(no_jax.attempts)
    with pytest.raises(ImportError, match="must not be"):
        importlib.import_module("jax.numpy")
    assert no_jax.attempts[before:][0].startswith("import of jax at")
    del no_jax.attempts[before:]


def test_importing_every_module_asks_for_no_jax() -> None:
    for module in pkgutil.walk_packages(primax_core.__path__, "primax_core."):
        importlib.import_module(module.name)
    assert "jax" not in sys.modules


def test_import_stays_light() -> None:
    """Importing the core loads neither MLIR nor scipy (starting no client follows from that)."""
    code = (
        "import sys, primax_core\n"
        "heavy = ('jaxlib.mlir.', 'scipy.', 'jax.')\n"
        "print([name for name in sys.modules if (name + '.').startswith(heavy)])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.strip() == "[]"


def test_package_is_typed_and_small() -> None:
    package = Path(primax_core.__path__[0])
    assert (package / "py.typed").exists()
    files = [f for f in package.rglob("*") if f.is_file() and "__pycache__" not in f.parts]
    size = sum(f.stat().st_size - documentation(f) for f in files)
    assert size < 2_221_000  # see docs/design/core.md, "Size"


def documentation(path: Path) -> int:
    """Bytes of the docstrings of a Python file, about: without their quotes and indentation."""
    if path.suffix not in (".py", ".pyi"):
        return 0
    nodes = ast.walk(ast.parse(path.read_bytes()))
    values = [n.value for n in nodes if isinstance(n, ast.Expr)]
    strings = [v.value for v in values if isinstance(v, ast.Constant) and type(v.value) is str]
    return sum(len(s.encode()) + 6 for s in strings)
