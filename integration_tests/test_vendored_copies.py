"""Two vendored copies below two packages, the original and jax in one process."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from primax_core.vendor import command

SCRIPT = Path(__file__).resolve().parent / "coexistence" / "copies.py"
DATA_FILES = 300
JAX = pytest.param(
    ("jax",), marks=pytest.mark.skipif(find_spec("jax") is None, reason="jax is not installed")
)


def vendor(into: Path, *options: str) -> None:
    assert command.main(["--into", str(into), *options]) == 0


@pytest.fixture(scope="module")
def frameworks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the packages ``acme`` and ``zenith``, each with a copy of its own."""
    folder = tmp_path_factory.mktemp("frameworks")
    (folder / "acme" / "data").mkdir(parents=True)
    (folder / "zenith" / "lib").mkdir(parents=True)
    (folder / "zenith" / "__init__.py").touch()
    for i in range(DATA_FILES):
        (folder / "acme" / "data" / f"{i}.txt").touch()
    imports = "from ._vendor import primax_core as core, primax_numpy as numpy\n"
    (folder / "acme" / "__init__.py").write_text(imports)
    (folder / "zenith" / "lib" / "__init__.py").write_text(
        "from .copies import base_core as core\n"
    )
    vendor(folder / "acme" / "_vendor", "--with", "numpy")
    vendor(folder / "zenith" / "lib" / "copies", "--name", "base_core")
    return folder


@pytest.fixture
def run(frameworks: Path, tmp_path: Path) -> Callable[..., Any]:
    """Run code beside the frameworks; the output of the process."""

    def process(*command: str, **variables: str) -> str:
        own = ("PRIMAX_", "ACME_", "ZENITH_", "JAX_")
        env = {k: v for k, v in os.environ.items() if not k.startswith(own)}
        env["PYTHONPATH"] = os.pathsep.join([str(frameworks), env.get("PYTHONPATH", "")])
        env["XDG_CACHE_HOME"] = str(tmp_path)
        done = subprocess.run(
            [sys.executable, *command], env={**env, **variables}, capture_output=True, text=True,
            timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
        assert not done.stderr, done.stderr
        return done.stdout

    return process


@pytest.mark.parametrize("options", [(), JAX], ids=["without jax", "with jax"])
def test_two_copies_and_the_original(run, tmp_path, options):
    report = json.loads(run(str(SCRIPT), *options, "busy", ACME_ENABLE_X64="1"))
    # Each has its own variables and its own cache folder.
    types = {**dict.fromkeys(report["dtypes"], "float32"), "acme": "float64"}
    assert report["dtypes"] == types
    folders = {"acme-primax", "zenith-primax", "primax"}
    assert {p.name for p in tmp_path.iterdir()} >= folders
    assert all(any((tmp_path / f).glob("*.xla")) for f in folders)
    first, *others = report["gradients"].values()
    for other in others:
        np.testing.assert_allclose(other, first, rtol=1e-5)
    assert all(report["pointers"].values()), report["pointers"]
    assert report["pickles"]["acme"].startswith("acme._vendor.primax_core.")
    assert report["pickles"]["zenith"].startswith("zenith.lib.copies.base_core.")
    assert report["methods"] == ["acme", "primax_core"]
    assert report["environment"].startswith("acme._vendor.primax_core: ")
    # The fingerprint covers the sources of the copy, not those of the package around it.
    assert abs(report["stamp"][0] - report["stamp"][1]) < DATA_FILES / 2
    assert report["vendor"] == []


def test_pickles_of_a_copy_in_another_process(run, tmp_path):
    code = (
        "import sys, pickle, acme; import numpy as np\n"
        "tree = acme.core.lax.sin(np.float32(1)), acme.core.devices()[0].platform\n"
        "open(sys.argv[1], 'wb').write(pickle.dumps(tree))"
    )
    run("-c", code, str(tmp_path / "pickle"))
    code = (
        "import sys, pickle; x, _ = pickle.load(open(sys.argv[1], 'rb'))\n"
        "import acme; assert isinstance(x, acme.core.Array); print(x)"
    )
    assert run("-c", code, str(tmp_path / "pickle")).strip() == "0.84147096"
    with pytest.raises(ModuleNotFoundError, match="acme"):
        pickle.loads((tmp_path / "pickle").read_bytes())


TEXTS = """
import sys, acme, acme._vendor.primax_core.vendor as vendor
try:
    acme.core.device_put(1.0, "x")
except Exception as error:
    print(error)
try:
    acme.core.jet
except AttributeError as error:
    print(error)
sys.stderr = sys.stdout
print(vendor.main())
"""


def test_commands_and_texts_name_the_copy(run, frameworks, tmp_path):
    path = run("-m", "acme._vendor.primax_core.cache", "path").strip()
    assert path == str(tmp_path / "acme-primax")
    texts = run("-c", TEXTS)
    assert "See acme._vendor.primax_core.devices()" in texts
    assert "python -m primax_core.vendor --update --with interpreters" in texts
    update = f"python -m primax_core.vendor --into {frameworks / 'acme' / '_vendor'} --update"
    assert update in texts and texts.endswith("\n2\n")


LOCATIONS = """
import acme, numpy as np
core = acme.core

def f(x):
    with core.named_scope("scope"):
        return core.lax.reduce_sum(core.lax.sin(x), (0,))

text = core.jit(core.grad(f)).lower(np.ones(3, np.float32)).compile().as_text()
assert 'op_name="jit(f)/jvp(scope)/cos"' in text and __file__ in text, text
assert "_vendor" not in text, text
"""


def test_compiled_functions_of_a_copy_have_the_lines_of_the_user(run, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(LOCATIONS)
    run(str(script))


def test_update_of_a_copy(run, frameworks, tmp_path, capsys):
    copy = frameworks / "zenith" / "lib" / "copies"
    code = (
        "import numpy as np, zenith.lib; c = zenith.lib.core\n"
        "print(c.lax.full((), 1.0).dtype, hasattr(c.lax.sin(np.float32(1)), 'sum'))"
    )
    variables = {"ZENITH_ENABLE_X64": "1", "BASE_ENABLE_X64": "0"}
    assert run("-c", code, **variables).split() == ["float64", "False"]
    vendor(copy, "--update", "--prefix", "BASE", "--with", "numpy")
    changed = capsys.readouterr().out.splitlines()
    assert "changed: base_core/_base/identity.py" in changed
    assert "added: base_numpy/__init__.py" in changed
    assert "changed: base_core/lax/gamma.py" not in changed
    code = code.replace("c = ", "import zenith.lib.copies.base_numpy; c = ")
    assert run("-c", code, **variables).split() == ["float32", "True"]
    vendor(copy, "--check")
