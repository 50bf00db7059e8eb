"""Tests of ``python -m primax_ffi new``: the written project is built, installed and tested."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from primax_ffi._new_project import main, new_project

LANGUAGES = ["cpp", "rust"]
COMPILERS = {"cpp": ("g++", "clang++"), "rust": ("cargo",)}


def new(capsys, *arguments: str) -> str:
    """The message of the command, which ends with status 2."""
    with pytest.raises(SystemExit) as ended:
        main(["new", *arguments])
    assert ended.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("my-kernels", "use at least two lowercase letters, digits and underscores"),
        ("MyKernels", "use at least two lowercase letters"),
        ("2fast", "use at least two lowercase letters"),
        ("_fast", "use at least two lowercase letters"),
        ("fast_", "use at least two lowercase letters"),
        ("kernels/fast", "use at least two lowercase letters"),
        ("../fast", "use at least two lowercase letters"),
        ("größe", "use at least two lowercase letters"),
        ("lambda", "this is a keyword of Python"),
        ("json", "this is a module of Python's standard library"),
        ("numpy", "a package of this name is installed"),
        ("primax_core", "a package of this name is installed"),
    ],
)
def test_names_that_are_refused(name, message, tmp_path, capsys):
    assert message in new(capsys, name, "--into", str(tmp_path))
    assert not [*tmp_path.iterdir()]


def test_folders_that_are_refused(tmp_path, capsys):
    (tmp_path / "fastnorm").mkdir()
    assert "fastnorm' exists" in new(capsys, "fastnorm", "--into", str(tmp_path))
    assert "create it, or" in new(capsys, "fastnorm", "--into", str(tmp_path / "absent"))
    assert "invalid choice" in new(capsys, "fastnorm", "--language", "fortran")
    assert "--into" in new(capsys, "--into")
    assert [p.name for p in tmp_path.rglob("*")] == ["fastnorm"]
    with pytest.raises(ValueError, match="the language is 'fortran': there are cpp, rust"):
        new_project("fastnorm", tmp_path, "fortran")


def test_an_existing_folder_of_the_current_one_is_named_first(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    (tmp_path / "fastnorm").mkdir()
    assert "fastnorm' exists" in new(capsys, "fastnorm")
    other = tmp_path / "other"
    other.mkdir()
    main(["new", "fastnorm", "--into", str(other)])
    assert (other / "fastnorm" / "pyproject.toml").exists()


@pytest.mark.parametrize("language", LANGUAGES)
def test_files(language, tmp_path, capsys):
    main(["new", "fastnorm", "--into", str(tmp_path), "--language", language])
    folder = tmp_path / "fastnorm"
    assert f"cd {folder}" in capsys.readouterr().out
    texts = {p.relative_to(folder): p.read_text("utf-8") for p in folder.rglob("*") if p.is_file()}
    for path, text in texts.items():
        assert "mykernels" not in f"{path} {text}", path
        assert not re.search(r"@[A-Z_]+@", text), path
        assert text.endswith("\n") and max(map(len, text.splitlines())) <= 120, path
        if path.suffix == ".py":
            compile(text, path, "exec")
    project = tomllib.loads(texts[Path("pyproject.toml")])
    assert project["project"]["name"] == "fastnorm"
    jaxlib = [r for r in project["build-system"]["requires"] if r.startswith("jaxlib==")]
    assert len(jaxlib) == (language == "cpp")
    steps = re.findall(r"- run: (.*)", texts[Path(".github/workflows/tests.yml")])
    assert steps == ["python -m pip install .[test]", "python -m pytest"]
    for path in re.findall(r"^\| `([^`]*)`", texts[Path("README.md")], re.MULTILINE):
        assert (folder / path).exists(), path


@pytest.mark.parametrize(("language", "name"), [("cpp", "install"), ("rust", "fn")])
def test_the_project_is_built_installed_and_tested(language, name, tmp_path):
    """The names are reserved by CMake and Rust, but not by Python."""
    check_tools(language)
    folder, target = tmp_path / name, tmp_path / "installed"
    options = ["--into", str(tmp_path), "--language", language]
    python("-m", "primax_ffi", "new", name, *options, cwd=tmp_path)
    install = ["pip", "install", "--no-index", "--no-build-isolation", "--no-deps"]
    python("-m", *install, "--target", str(target), str(folder), cwd=tmp_path)
    (info,) = target.glob(f"{name}-*.dist-info")
    assert re.search(r"^Tag: py3-none-(?!any)\w+$", (info / "WHEEL").read_text(), re.MULTILINE)
    done = python("-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=folder, path=target)
    assert re.search(r"^1[0-9] passed", done, re.MULTILINE), done
    (example,) = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL)
    assert "1.13137" in python("-c", example, cwd=tmp_path, path=target)


def check_tools(language: str) -> None:
    """Skip the test if the tools of the build are missing."""
    if not any(map(shutil.which, COMPILERS[language])):
        pytest.skip(f"install {' or '.join(COMPILERS[language])}: the test builds a project")
    if not (shutil.which("cmake") or importlib.util.find_spec("cmake")):
        pytest.skip("pip install cmake: the test builds a project")
    for module in ("pip", "scikit_build_core"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"install {module.replace('_', '-')}: the test builds a project with it")


def python(*arguments: str, cwd: Path, path: Path | None = None) -> str:
    """The output of Python, which must succeed; ``path`` is importable."""
    folders = [str(path)] if path else []
    folders += filter(None, [os.environ.get("PYTHONPATH")])
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(folders),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    env = {k: v for k, v in env.items() if not k.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env=env, text=True, capture_output=True, timeout=300
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout
