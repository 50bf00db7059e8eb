"""Files of a copy: names, imports, license, notice, and what is left out."""

from __future__ import annotations

import json

import pytest
import small_core
from small_core import run


@pytest.fixture
def copy(core, acme):
    assert run("--into", acme / "_vendor", "--with", "numpy") == 0
    return acme / "_vendor"


def test_a_copy_below_a_package(core, acme, capsys):
    copy = acme / "_vendor"
    assert run("--into", copy, "--with", "numpy") == 0
    assert sorted(p.name for p in copy.iterdir()) == ["__init__.py", "primax_core", "primax_numpy"]
    out = capsys.readouterr().out
    assert f"copied primax_core to {copy / 'primax_core'}; import acme._vendor.primax_core" in out
    assert "environment variables: ACME_ENABLE_X64 and others" in out
    assert "add to the dependencies of your package: numpy>=2.0\n" in out


def test_texts_name_the_copy(copy):
    text = (copy / "primax_core/lax.py").read_text()
    assert "See acme._vendor.primax_core.devices(), acme._vendor.primax_numpy.add," in text
    assert "ACME_ENABLE_X64" in text
    assert ">>> from acme._vendor.primax_core import lax" in text
    assert "\"pip install 'flatbuffers>=24'\"" in text
    assert text.endswith("\n# Changed from the original: see NOTICE.\n")
    assert (copy / "primax_core/plain.py").read_text() == "ONE = 1\n"


def test_a_layer_that_is_not_copied_keeps_its_name(core, acme):
    assert run("--into", acme / "_vendor") == 0
    assert "primax.numpy.add" in (acme / "_vendor/primax_core/lax.py").read_text()


def test_names_of_a_package_that_contain_the_original(core, acme):
    folder = acme.parent / "primax" / "primax_core"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").touch()
    assert run("--into", folder) == 0
    text = (folder / "primax_core/lax.py").read_text()
    assert "See primax.primax_core.primax_core.devices(), primax.numpy.add" in text


def test_imports_of_layers_are_relative(copy):
    assert (copy / "primax_numpy/linalg/_norms.py").read_text().splitlines() == [
        "from ... import primax_core as core",
        "from ...primax_core import lax as lax",
        "from ...primax_core import (",
        "    plain,",
        ")",
        "from ...primax_core.lax import add  # not primax_core",
        "from ... import primax_numpy as pnp",
        "# Changed from the original: see NOTICE.",
    ]


def test_imports_of_a_copy_at_the_top_level(core, tmp_path):
    assert run("--into", tmp_path / "top", "--name", "zenith_core", "--with", "numpy") == 0
    folder = tmp_path / "top"
    assert sorted(p.name for p in folder.iterdir()) == ["zenith_core", "zenith_numpy"]
    assert (folder / "zenith_numpy/linalg/_norms.py").read_text().splitlines()[:3] == [
        "import zenith_core as core",
        "import zenith_core.lax as lax",
        "from zenith_core import (",
    ]
    assert 'ENV_PREFIX: Final = "ZENITH_"' in (folder / "zenith_core/_base/identity.py").read_text()


def test_the_names_of_the_package_change(copy):
    text = (copy / "primax_core/_base/identity.py").read_text()
    for line in (
        'ENV_PREFIX: Final = "ACME_"',
        'CACHE_FOLDER: Final = "acme-primax"',
        'PUBLIC_NAME: Final = "acme._vendor.primax_core"',
        "VENDORED: Final = True",
        'DOCS_URL: Final = "https://primax.readthedocs.io/en/latest/"',
    ):
        assert f"\n{line}\n" in text


def test_license_and_notice(copy):
    for package, version in (("primax_core", "1.0"), ("primax_numpy", "2.0")):
        assert (copy / package / "LICENSE").read_text() == "terms"
        notice = (copy / package / "NOTICE").read_text()
        original = f"{package.replace('_', '-')} {version}"
        assert f"acme._vendor.{package} is a copy of {original}" in notice
        assert "Changes:" in notice and "- numpy>=2.0" in notice and "primax-core>=" not in notice
    assert "(commit c0ffee)" in (copy / "primax_core/NOTICE").read_text()
    assert "(commit unknown)" in (copy / "primax_numpy/NOTICE").read_text()
    assert "left out: testing, test_util.py" in (copy / "primax_core/NOTICE").read_text()
    record = json.loads((copy / "primax_core/vendored.json").read_text())
    assert record["packages"]["primax_core"] == {"version": "1.0", "commit": "c0ffee"}


def test_the_kit_and_the_tests_are_copied_on_request(core, acme, copy):
    names = small_core.tree(copy / "primax_core")
    assert "test_util.py" not in names and not any(n.startswith("testing/") for n in names)
    assert "commit.txt" not in names and "vendor.py" in names
    assert run("--into", acme / "more", "--with", "kit") == 0
    assert (acme / "more/primax_core/testing/__init__.py").exists()
    assert run("--into", acme / "most", "--with", "tests", "--prefix", "ZENITH") == 0
    assert (acme / "most/primax_core/test_util.py").exists()
    tests = small_core.tree(acme / "most/primax_core_tests")
    assert list(tests) == ["test_it.py"]
    assert tests["test_it.py"].startswith(b"import acme.most.primax_core\n\nassert acme.most.")
    identity = (acme / "most/primax_core/_base/identity.py").read_text()
    assert 'ENV_PREFIX: Final = "ZENITH_"' in identity


def test_a_layer_without_the_layer_that_it_imports(core, acme, capsys):
    module = core.parent.parent.parent / "primax_numpy/src/primax_numpy/extra.py"
    module.write_text("import primax_scipy as scipy\n")
    assert run("--into", acme / "_vendor", "--with", "numpy") == 2
    assert "primax_numpy/extra.py imports primax_scipy: add scipy to --with" in (
        capsys.readouterr().err
    )
    assert not (acme / "_vendor").exists()


def test_sources_without_a_license(core, acme, capsys):
    (core.parent.parent / "LICENSE").unlink()
    assert run("--into", acme / "_vendor") == 2
    assert "primax-core has no file LICENSE" in capsys.readouterr().err
