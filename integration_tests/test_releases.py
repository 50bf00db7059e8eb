"""The logic of `nox -s release` and `nox -s compat`: versions, contents, notes, earlier wheels."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import earlier  # noqa: E402
import release  # noqa: E402
import smoke_sample  # noqa: E402
import workspace  # noqa: E402
from workspace import Wheel, wheels  # noqa: E402

INIT = '"""A wheel."""\n\n__version__ = "0.2.0"\n'
CHANGES = """\
# Changes of acme

## 0.2.0 (2026-12-01)

- A second thing.

## 0.1.0 (2026-11-01)

- A thing.
"""


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


@pytest.fixture
def acme(tmp_path) -> Wheel:
    """A wheel without a fault."""
    write(tmp_path / "CHANGELOG.md", CHANGES)
    write(tmp_path / "README.md", "# acme\n\n```python\nimport acme\n```\n")
    write(tmp_path / "src/acme/__init__.py", INIT)
    write(tmp_path / "src/acme/_core_version.py", 'requires("acme", since=(1, 4))\n')
    needs = ("primax-core[export]>=0.1,<1", "numpy>=2.0")
    return Wheel(tmp_path, "acme", "0.2.0", needs, {"all": ("primax-numpy>=0.1,<1",)})


# Versions


@pytest.mark.parametrize("wheel", wheels().values(), ids=lambda w: w.name)
def test_the_versions_of_this_wheel_agree(wheel):
    assert release.disagreements(wheel) == []


def test_versions_that_agree_are_accepted(acme):
    assert release.disagreements(acme) == []


@pytest.mark.parametrize(
    "file, old, new, message",
    [
        ("src/acme/__init__.py", "0.2.0", "0.1.9", "acme.__version__ is 0.1.9"),
        ("src/acme/__init__.py", "__version__", "version", "acme.__version__ is None"),
        ("CHANGELOG.md", "## 0.2.0", "## 0.2.1", "no section '## 0.2.0"),
        ("src/acme/_core_version.py", "requires", "print", "does not declare the extension API"),
    ],
)
def test_a_disagreement_is_found(acme, file, old, new, message):
    path = acme.folder / file
    write(path, path.read_text().replace(old, new))
    (line,) = release.disagreements(acme)
    assert message in line


@pytest.mark.parametrize("pin", ["primax-core", "primax-core>=0.1", "primax-core>=0.1,<0.2"])
def test_a_pin_that_does_not_follow_the_rule_is_found(acme, pin):
    wheel = Wheel(acme.folder, "acme", "0.2.0", (pin,), {})
    (line,) = release.disagreements(wheel)
    assert f"{pin!r} is to be pinned as 'primax-core>=X.Y,<1'" in line


def test_the_range_of_the_extension_api_is_read():
    wide = release.api_range('requires("acme", since=(1, 4), before=(3, 0))')
    assert wide is not None and (2, 7) in wide and (3, 0) not in wide and (1, 3) not in wide
    narrow = release.api_range('from x import requires\nrequires("acme", since=(2, 1))')
    assert narrow == release.ApiRange((2, 1), (3, 0))
    assert release.api_range("print(1)") is None


def test_tools_and_the_package_agree_on_the_version_of_the_extension_api():
    from primax_core.extend import API_VERSION

    assert earlier.newest_api_version() == API_VERSION


# Contents


def wheel_of(acme: Wheel, *names: str) -> Path:
    path = acme.folder / "acme-0.2.0-py3-none-any.whl"
    info = [f"acme-0.2.0.dist-info/{n}" for n in ("METADATA", "WHEEL", "RECORD")]
    with zipfile.ZipFile(path, "w") as archive:
        for name in (*info, *names):
            archive.writestr(name, "")
    return path


LICENSE = "acme-0.2.0.dist-info/licenses/LICENSE"
FILES = {"src/acme/__init__.py", "src/acme/py.typed", "src/acme/a.pyi", "tests/test_a.py"}


def test_a_wheel_that_holds_what_git_tracks_is_accepted(acme):
    built = wheel_of(acme, "acme/__init__.py", "acme/py.typed", "acme/a.pyi", LICENSE)
    assert release.check_wheel(built, acme, FILES) == []


def test_files_that_lack_or_do_not_belong_are_found(acme):
    built = wheel_of(acme, "acme/__init__.py", "acme/__pycache__/a.pyc", "tests/test_a.py")
    text = "\n".join(release.check_wheel(built, acme, FILES))
    for missing in (LICENSE, "acme/py.typed", "acme/a.pyi"):
        assert f"lacks {missing}" in text
    for more in ("acme/__pycache__/a.pyc", "tests/test_a.py"):
        assert f"holds {more}, unexpected" in text


def test_a_source_distribution_is_compared(acme):
    path = acme.folder / "acme-0.2.0.tar.gz"
    names = ["PKG-INFO", ".gitignore", *sorted(FILES - {"src/acme/a.pyi"}), "dist/old.whl"]
    with tarfile.open(path, "w:gz") as archive:
        for name in names:
            archive.addfile(tarfile.TarInfo(f"acme-0.2.0/{name}"), io.BytesIO())
    lacks, holds = release.check_sdist(path, acme, FILES)
    assert "lacks acme-0.2.0/src/acme/a.pyi" in lacks
    assert "holds acme-0.2.0/dist/old.whl, unexpected" in holds


def test_source_distributions_have_the_helpers_that_their_tests_import():
    for wheel in wheels().values():
        tests = (wheel.folder / "tests").rglob("*.py")
        imports = any("test_support" in path.read_text("utf-8") for path in tests)
        files = release.tracked(wheel.folder) | release.included(wheel)
        assert imports == ("tests/test_support/cases.py" in files), wheel.name


# Notes


def test_the_notes_are_the_section_of_the_changelog(acme, tmp_path, monkeypatch):
    monkeypatch.setattr(release, "BUILD", tmp_path / "build")
    notes = release.write_notes(acme)
    assert notes.read_text() == "# acme 0.2.0\n\n- A second thing.\n"
    first = Wheel(acme.folder, "acme", "0.3.0", (), {})
    with pytest.raises(ValueError, match=r"has no section for 0\.3\.0"):
        release.write_notes(first)


def test_the_smoke_program_has_the_examples_of_the_readme(acme):
    program = release.smoke(acme)
    assert "__version__ == '0.2.0'" in program and program.endswith("import acme\n")


def test_an_unknown_wheel_is_named():
    assert release.find_wheel("core") is release.find_wheel("primax-core")
    wheels = "core, distributed, ffi, ffi_cpu, interpreters, kernels, nn, "
    with pytest.raises(ValueError, match=f"no wheel is called 'plots'; there are {wheels}"):
        release.find_wheel("plots")


# Earlier wheels


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """Three commits with versions 1.3, 1.4 and 1.5 of the extension API; returns a git command."""

    def git(*args: str) -> str:
        identity = ["-c", "user.name=a", "-c", "user.email=a@b.example"]
        command = ["git", *identity, *args]
        return subprocess.run(
            command, cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout

    git("init", "--quiet")
    for minor, module in ((3, "__init__"), (4, "versions"), (5, "versions")):
        source = tmp_path / f"packages/core/src/primax_core/extend/{module}.py"
        write(source, f"API_VERSION: Final = (1, {minor})\n")
        git("add", ".")
        git("commit", "--quiet", "--no-gpg-sign", "--message", f"1.{minor}")
    write(tmp_path / "packages/acme/src/acme/_core_version.py", 'requires("a", since=(1, 4))\n')
    real = release.git
    monkeypatch.setattr(earlier, "git", lambda *args: real(*args, root=tmp_path))
    monkeypatch.setattr(earlier, "ROOT", tmp_path)
    monkeypatch.setattr(earlier, "earlier", earlier.earlier.__wrapped__)
    return git


def last_built(commit: str) -> str:
    return f'[tool.primax.last-built]\ncore = "{commit}"\n'


def test_releases_are_the_tags_below_head_in_their_order(repository):
    repository("tag", "core-v0.10.0", "HEAD^")
    repository("tag", "core-v0.9.0", "HEAD~2")
    repository("tag", "core-v0.11.0")  # at HEAD: this is the version that is compared
    repository("tag", "numpy-v0.1.0", "HEAD^")
    releases = earlier.earlier("core")
    assert [e.label for e in releases] == ["core-v0.9.0", "core-v0.10.0"]
    assert [e.api_version() for e in releases] == [(1, 3), (1, 4)]
    assert all(e.tagged for e in releases)


def test_without_a_tag_the_table_names_the_commit(repository, tmp_path):
    commit = repository("rev-parse", "HEAD^").strip()
    write(tmp_path / "pyproject.toml", last_built(commit))
    (only,) = earlier.earlier("core")
    assert only.commit == commit and not only.tagged and "last built" in only.label
    with pytest.raises(RuntimeError, match=r"no tag numpy-v\* .* numpy names no commit"):
        earlier.earlier("numpy")
    write(tmp_path / "pyproject.toml", last_built(commit) + 'numpy = ""\n')
    assert earlier.earlier("numpy") == ()
    write(tmp_path / "pyproject.toml", last_built("0123456"))
    with pytest.raises(RuntimeError, match="0123456 is not below HEAD; name a commit that is"):
        earlier.earlier("core")


def test_a_wheel_meets_the_oldest_core_that_it_accepts(repository, tmp_path, monkeypatch):
    for minor, version in ((3, "v0.1.0"), (4, "v0.2.0"), (5, "v0.3.0")):
        repository("tag", f"core-{version}", f"HEAD~{5 - minor}")
    repository("commit", "--quiet", "--no-gpg-sign", "--allow-empty", "--message", "later")
    folder = tmp_path / "packages/acme"
    acme = Wheel(folder, "acme", "0.2.0", ("primax-core>=0.1,<1",), {})
    monkeypatch.setattr(earlier, "above_the_core", lambda: [acme])
    write(tmp_path / "pyproject.toml", '[tool.primax.last-built]\nacme = "HEAD"\n')
    monkeypatch.setattr(earlier.workspace, "resolve", lambda name: ([acme], []))
    ((core, above),) = earlier.oldest_cores().items()
    assert core is not None and core.label == "core-v0.2.0" and above == [acme]
    write(folder / "src/acme/_core_version.py", 'requires("a", since=(1, 6))\n')
    assert list(earlier.oldest_cores()) == [None]
    write(folder / "src/acme/_core_version.py", 'requires("a", since=(1, 4))\n')
    write(tmp_path / "pyproject.toml", '[tool.primax.last-built]\nacme = ""\n')
    assert list(earlier.oldest_cores()) == [None]


def test_sources_are_unpacked_outside_the_checkout(repository, tmp_path_factory, monkeypatch):
    store = tmp_path_factory.mktemp("store")
    monkeypatch.setenv("PRIMAX_EARLIER_WHEELS", str(store))
    repository("tag", "core-v0.1.0", "HEAD^")
    (old,) = earlier.earlier("core")
    folder = old.unpack()
    assert store in folder.parents and folder == old.unpack() and old.built() is None
    assert "(1, 4)" in (folder / "src/primax_core/extend/versions.py").read_text()
    with pytest.raises(RuntimeError, match="holds no module that SMOKE"):
        old.smoke_tests()


def test_every_dependency_of_another_project_states_its_lowest_version():
    _, theirs = workspace.resolve("primax[all]")
    assert len(theirs) >= 4
    assert "jaxlib==0.10.2" in [workspace.lowest(requirement) for requirement in theirs]
    with pytest.raises(ValueError, match="'jaxlib<1' states no lowest version"):
        workspace.lowest("jaxlib<1")


@pytest.mark.parametrize("wheel", earlier.above_the_core(), ids=lambda w: w.name)
def test_the_smoke_part_of_each_suite_exists(wheel):
    assert len(earlier.smoke_tests(wheel.name, wheel.folder)) == len(earlier.SMOKE[wheel.name])


def test_a_sample_is_spread_over_the_module():
    assert smoke_sample.spread(4, 10) == {0, 1, 2, 3}
    assert smoke_sample.spread(100, 4) == {0, 25, 50, 75}
    assert all(len(smoke_sample.spread(n)) == min(n, 10) for n in range(1, 50))


@pytest.mark.parametrize("offers, status", [((2, 0), 0), ((1, 99), 1)])
def test_a_wheel_has_to_refuse_a_core_that_it_does_not_accept(offers, status):
    fake = f"import primax_core.extend.versions as v; v.API_VERSION = {offers}\n"
    command = [sys.executable, "-c", fake + earlier.refuses("scipy")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    assert status == 0 or "does not accept" in done.stderr
