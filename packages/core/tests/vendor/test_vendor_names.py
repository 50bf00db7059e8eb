"""Names and folders that are refused."""

from __future__ import annotations

import os
import sys

import pytest
from small_core import run, tree

pytestmark = pytest.mark.usefixtures("core")


@pytest.mark.parametrize(
    "name,message",
    [
        ("3bad", "not a Python identifier"),
        ("two words", "not a Python identifier"),
        ("../up", "a name has no dots"),
        ("a/b", "not a Python identifier"),
        ("", "not a Python identifier"),
        ("class", "a keyword of Python"),
        ("json", "a module of the standard library"),
        ("acme._vendor.core", "--into acme/_vendor --name core"),
    ],
)
def test_bad_names(acme, capsys, name, message):
    assert run("--into", acme / "_vendor", "--name", name) == 2
    assert message in capsys.readouterr().err
    assert not (acme / "_vendor").exists()


@pytest.mark.parametrize("name", ["primax_core", "numpy", "pytest"])
def test_a_copy_does_not_hide_what_is_installed(tmp_path, capsys, name):
    assert run("--into", tmp_path / "top", "--name", name) == 2
    assert f"--name {name}: a module of this name is installed" in capsys.readouterr().err


def test_a_name_of_an_installed_module_is_free_below_a_package(acme):
    assert run("--into", acme / "_vendor", "--name", "numpy") == 0


@pytest.mark.parametrize("prefix", ["acme", "1A", "A-B", "ACME_", ""])
def test_bad_prefixes(acme, capsys, prefix):
    assert run("--into", acme / "_vendor", "--prefix", prefix) == 2
    assert "as in --prefix ACME for ACME_ENABLE_X64" in capsys.readouterr().err


def test_a_package_whose_name_gives_no_prefix(tmp_path, capsys):
    (tmp_path / "é").mkdir()
    (tmp_path / "é" / "__init__.py").touch()
    assert run("--into", tmp_path / "é" / "_vendor") == 2
    assert "--prefix" in capsys.readouterr().err
    assert run("--into", tmp_path / "é" / "_vendor", "--prefix", "E") == 0


def test_the_folder_is_a_file(acme, capsys):
    (acme / "_vendor").write_text("a file")
    assert run("--into", acme / "_vendor") == 2
    assert "is not a folder" in capsys.readouterr().err
    assert (acme / "_vendor").read_text() == "a file"


def test_an_empty_path(capsys):
    assert run("--into", "") == 2
    assert "--into is empty" in capsys.readouterr().err


def test_the_folder_above_does_not_exist(tmp_path, capsys):
    assert run("--into", tmp_path / "acne" / "_vendor", "--name", "core") == 2
    assert f"the folder {tmp_path / 'acne'} does not exist" in capsys.readouterr().err


def test_the_folder_is_a_link(acme, tmp_path, capsys):
    (tmp_path / "elsewhere").mkdir()
    (acme / "_vendor").symlink_to(tmp_path / "elsewhere")
    assert run("--into", acme / "_vendor") == 2
    assert f"is a symbolic link to {tmp_path / 'elsewhere'}" in capsys.readouterr().err
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.skipif(os.sep != "/", reason="the separator of this system")
def test_a_path_of_windows(acme, capsys):
    assert run("--into", rf"{acme}\_vendor") == 2
    assert f"write the path with /, as in {acme}/_vendor" in capsys.readouterr().err


def test_a_folder_that_cannot_be_imported(tmp_path, capsys):
    package = tmp_path / "my-framework"
    package.mkdir()
    (package / "__init__.py").touch()
    assert run("--into", package / "_vendor") == 2
    assert "'my-framework' cannot be imported" in capsys.readouterr().err


def test_the_folder_of_the_copy_itself(acme, capsys):
    assert run("--into", acme / "_vendor") == 0
    assert run("--into", acme / "_vendor" / "primax_core", "--update") == 2
    assert f"give the folder above, --into {acme / '_vendor'}" in capsys.readouterr().err


def test_the_folder_is_inside_the_original(capsys):
    package = sys.modules["primax_core"].__path__[0]
    assert run("--into", os.path.join(package, "_vendor")) == 2
    assert "inside the package that is copied" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["folder", "empty folder", "module", "link", "broken link"])
def test_what_exists_is_not_overwritten(acme, tmp_path, capsys, kind):
    folder = acme / "_vendor"
    folder.mkdir()
    path = folder / "primax_core"
    if kind == "module":
        (folder / "primax_core.py").write_text("mine")
    elif kind == "link":
        path.symlink_to(tmp_path)
    elif kind == "broken link":
        path.symlink_to(tmp_path / "nothing")
    else:
        path.mkdir()
        if kind == "folder":
            (path / "mine.txt").write_text("mine")
    before = tree(folder)
    assert run("--into", folder) == 2
    assert "exists, and no copy of primax_core is recorded there" in capsys.readouterr().err
    assert tree(folder) == before
    assert run("--into", folder, "--update") == 2


def test_files_beside_the_copy_stay(acme):
    folder = acme / "_vendor"
    folder.mkdir()
    (folder / "other.py").write_text("mine")
    assert run("--into", folder) == 0
    assert (folder / "other.py").read_text() == "mine" and not (folder / "__init__.py").exists()


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder(acme, capsys):
    acme.chmod(0o500)
    assert run("--into", acme / "_vendor") == 2
    assert "nothing was changed" in capsys.readouterr().err
    acme.chmod(0o700)


def test_a_folder_that_cannot_be_written(acme, monkeypatch, capsys):
    def refuse(self, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr("pathlib.Path.mkdir", refuse)
    assert run("--into", acme / "_vendor") == 2
    assert "error: nothing was changed: [Errno 13]" in capsys.readouterr().err


@pytest.mark.parametrize("failing", ["mkdir", "write_bytes"])
def test_a_failed_copy_leaves_no_folder(acme, monkeypatch, failing):
    def fail(self, *_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(f"pathlib.Path.{failing}", fail)
    with pytest.raises(KeyboardInterrupt):
        run("--into", acme / "_vendor")
    assert not (acme / "_vendor").exists()


def test_an_unknown_layer(acme, capsys):
    with pytest.raises(SystemExit):
        run("--into", acme / "_vendor", "--with", "pandas")
    assert "invalid choice: 'pandas'" in capsys.readouterr().err
