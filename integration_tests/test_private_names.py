"""``tools/private_names.py``: names of jax that a library uses and that are missing."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tools import private_names

TOOL = Path(__file__).resolve().parent.parent / "tools" / "private_names.py"
LIBRARY = """
import jax
import jax.numpy as jnp
import jax.no_such_module
from jax import lax, tree_util as tu
from jax._src.no_such_private import thing
from jax.lax import no_such_function as f
import numpy as np

def g(x):
    jax.no_such_name(x)
    jnp.sin(x).no_such_method()
    np.no_such_thing
    return lax.scan, tu.tree_map, jax.lax.linalg.cholesky, jnp.linalg.no_such_solver
"""
MISSING = {
    "jax.no_such_module", "jax._src.no_such_private", "jax.lax.no_such_function",
    "jax.no_such_name", "jax.numpy.linalg.no_such_solver",
}  # fmt: skip


def run(*arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, str(TOOL), *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_missing_names_of_a_folder_and_of_a_wheel(tmp_path):
    folder = tmp_path / "acme"
    folder.mkdir()
    (folder / "__init__.py").write_text(LIBRARY)
    (folder / "broken.py").write_text("import jax.also_missing; def")
    wheel = tmp_path / "acme-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(folder / "__init__.py", "acme/__init__.py")
    for what in (folder, wheel):
        done = run(str(what))
        assert done.returncode == 1, done.stderr
        first, *rows = done.stdout.rstrip().split("\n")
        assert first.endswith("of them missing")
        assert {row.split()[0] for row in rows} == MISSING
        assert "jax.no_such_name  1 x, acme/__init__.py:11" in done.stdout


def test_nothing_is_missing(tmp_path):
    (tmp_path / "fine.py").write_text("from jax import numpy as jnp, grad\njnp.sin, grad\n")
    done = run(str(tmp_path), "--all")
    assert done.returncode == 0, done.stderr
    assert "0 of them missing" in done.stdout
    assert "available: jax.numpy.sin" in done.stdout


def test_what_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="is no wheel, no folder, and no package"):
        list(private_names.sources("no_such_library"))
