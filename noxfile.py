"""The project's commands, one nox session each. ``nox -l`` lists them.

Wheels of this repository are always built first and installed from ``dist/`` by path, with the
package index switched off for them. What they declare of others comes from the index.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import nox

sys.path.insert(0, str(Path(__file__).resolve().parent / "tools"))

import workspace
from workspace import BUILD, DIST, ROOT, Wheel

nox.needs_version = ">=2024.4.15"
nox.options.default_venv_backend = "virtualenv"
nox.options.sessions = ["lint", "boundaries", "typecheck", "tests"]
nox.options.error_on_external_run = True

TEST_TOOLS = ["pytest>=8", "hypothesis>=6.100", "pytest-xdist>=3.5"]
EVERYTHING = ["primax[all]"]
CORE = "primax-core[export]"
# The interpreter and jaxlib pairs that are supported; the first is what most machines get.
VERSIONS = [
    ("3.11", "0.10.2"),
    ("3.12", "0.11.2"),
    ("3.12", "0.12.0.1"),
    ("3.13", "0.12.0.1"),
]
QUICK = "--quick"
BETWEEN = ("3.12", "0.12.0.1")
WITHOUT_KIT = ["--ignore-glob", "**/conformance/test_primitives.py"]
# All samples of all primitives are tried where the wheel is tested; elsewhere one of each.
FIRST_SAMPLES = ["--samples", "first"]
# Runs in each session leave the user's own cache of executables alone.
TEST_ENV = {"PYTHONPATH": None, "XDG_CACHE_HOME": str(BUILD / "cache")}

_built: set[Path] = set()


def pip(session: nox.Session, python: str, *args: str) -> None:
    """Runs pip of the environment that ``python`` belongs to."""
    session.run(python, "-m", "pip", "--quiet", "--disable-pip-version-check", *args, external=True)


def build(session: nox.Session, python: str, wheel: Wheel) -> Path:
    """Builds ``wheel`` into ``dist/``, once in a run of nox."""
    if wheel.built not in _built:
        for stale in DIST.glob(f"{wheel.package}-*"):
            stale.unlink()
        pip(session, python, "wheel", "--no-deps", "--wheel-dir", str(DIST), str(wheel.folder))
        _built.add(wheel.built)
    return wheel.built


def install(
    session: nox.Session, *requirements: str, python: str = "python", also: list[str] | None = None
) -> None:
    """Installs wheels of ours with their declared dependencies, and ``also`` from the index."""
    ours, theirs = workspace.resolve(*requirements)
    pip(session, python, "install", *theirs, *(also or []))
    files = [str(build(session, python, wheel)) for wheel in ours]
    pip(session, python, "install", "--no-index", "--no-deps", "--force-reinstall", *files)
    pip(session, python, "check")


def install_oracle(session: nox.Session, python: str = "python") -> None:
    """Installs the jax that belongs to the installed jaxlib."""
    code = "from importlib.metadata import version; print(version('jaxlib'))"
    version = session.run(python, "-c", code, silent=True, external=True)
    if version is None:  # nox only lists what it would run
        return
    version = version.strip().splitlines()[-1]
    pip(session, python, "install", f"jax=={version}", f"jaxlib=={version}")


def pytest(session: nox.Session, *args: str, python: str = "python", **env: str) -> None:
    """Runs pytest on two workers with the repository's configuration."""
    command = [python, "-m", "pytest", "-n", "2", "--rootdir", str(ROOT)]
    further = [a for a in session.posargs if a != QUICK]
    command += ["-c", str(ROOT / "pyproject.toml"), *args, *further]
    session.run(*command, env={**TEST_ENV, **env}, external=True)


def own_environment(session: nox.Session, version: str, name: str) -> str:
    """Creates an environment on Python ``version`` and returns its interpreter.

    Nox's own lookup takes a pyenv shim for an interpreter, so these sessions look for themselves.
    """
    interpreter = workspace.find_interpreter(version)
    if interpreter is None:
        session.skip(f"Python {version} was not found on PATH or among pyenv's versions")
    folder = BUILD / "environments" / name
    shutil.rmtree(folder, ignore_errors=True)
    session.run(interpreter, "-m", "venv", str(folder), external=True)
    scripts = "Scripts" if sys.platform == "win32" else "bin"
    return str(folder / scripts / "python")


@nox.session
def demo(session: nox.Session) -> None:
    """Train a classifier of handwritten digits and draw how it went."""
    install(session, "primax[numpy]", also=["-r", "examples/requirements.txt"])
    folder = BUILD / "demo"
    folder.mkdir(parents=True, exist_ok=True)
    output = str(folder / "digits.png")
    session.run("python", "examples/digits.py", "--output", output, *session.posargs)


PARTS = [nox.param(w.distribution, id=w.name) for w in workspace.wheels().values()]


@nox.session
@nox.parametrize("part", [*PARTS, nox.param("integration", id="integration")])
def tests(session: nox.Session, part: str) -> None:
    """Test each built wheel with only its declared dependencies, then all of them together."""
    if part == "integration":
        integration(session, "python")
        compare_with_newest(session)
        return
    wheel = workspace.wheels()[part]
    install(session, CORE if part == "primax-core" else part, also=TEST_TOOLS)
    # The examples in docstrings are run where the wheel was installed.
    examples = ["--doctest-modules", "--doctest-ignore-import-errors", "--pyargs", wheel.package]
    pytest(session, str(wheel.folder / "tests"), *examples)


def integration(session: nox.Session, python: str, *folders: str, **pins: str) -> None:
    """Tests of all wheels together, beside the real jax."""
    versions = [f"{name}=={pin}" for name, pin in pins.items()]
    install(session, *EVERYTHING, python=python, also=[*TEST_TOOLS, "rich>=13", *versions])
    install_oracle(session, python)
    examples = [
        str(p.parent) for p in (ROOT / "integration_tests/thirdparty").glob("*/pyproject.toml")
    ]
    pip(session, python, "install", "--no-deps", *examples)
    pytest(session, *(folders or ["integration_tests"]), python=python)


def compare_with_newest(session: nox.Session) -> None:
    """Compare with the newest reference too, where the default interpreter is too old for it."""
    version, jaxlib = VERSIONS[2]
    if sys.version_info >= tuple(map(int, version.split("."))):
        return
    if workspace.find_interpreter(version) is None:
        session.log(f"Python {version} was not found: no comparison with jax {jaxlib}")
        return
    python = own_environment(session, version, "reference")
    integration(session, python, "integration_tests/oracle", jaxlib=jaxlib)


@nox.session(python=False)
@nox.parametrize(
    "version,jaxlib",
    [nox.param(v, j, id=f"python{v}-jaxlib{j}") for v, j in VERSIONS],
)
def versions(session: nox.Session, version: str, jaxlib: str) -> None:
    """Test the core on each supported pair of Python and jaxlib.

    All samples of the conformance kit too: ``nox -s versions -- --samples all``. The NumPy layer
    and what stands on it run on the newest jaxlib in the comparison with the reference.
    ``-- --quick`` leaves out pairs of a Python and a jaxlib that others have each.
    """
    if QUICK in session.posargs and (version, jaxlib) == BETWEEN:
        session.skip("its Python and its jaxlib are those of other pairs")
    if (version, jaxlib) == VERSIONS[0] and version == "{}.{}".format(*sys.version_info):
        session.skip("tests(core) runs on this pair")
    python = own_environment(session, version, f"versions-{version}-{jaxlib}")
    install(session, CORE, python=python, also=[*TEST_TOOLS, f"jaxlib=={jaxlib}"])
    kit = WITHOUT_KIT if kit_ran_before(version, jaxlib) else FIRST_SAMPLES
    pytest(session, "packages/core/tests", *kit, python=python)


def kit_ran_before(version: str, jaxlib: str) -> bool:
    """Whether an earlier pair that is found here has the same jaxlib."""
    earlier = [p for p in VERSIONS[: VERSIONS.index((version, jaxlib))] if p != BETWEEN]
    return any(j == jaxlib and workspace.find_interpreter(v) for v, j in earlier)


@nox.session
def vendored(session: nox.Session) -> None:
    """Test a copy of the core under another name, then beside the original and jax."""
    _, dependencies = workspace.resolve(CORE)
    pip(session, "python", "install", *dependencies, *TEST_TOOLS)
    folder = BUILD / "vendored"
    shutil.rmtree(folder, ignore_errors=True)
    session.run("python", "tools/vendor.py", "--name", "acme_core", "--into", str(folder))
    pytest(session, str(folder / "tests"), *WITHOUT_KIT, PYTHONPATH=str(folder))
    install(session, "primax-core")
    install_oracle(session)
    pytest(session, "integration_tests/test_coexistence.py")


@nox.session
def boundaries(session: nox.Session) -> None:
    """Check what each floor and wheel imports, and that a planted violation is found."""
    session.install("import-linter>=2.3", "deptry>=0.20")
    session.run("python", "tools/boundaries.py")


@nox.session
def typecheck(session: nox.Session) -> None:
    """Check the public surface with pyright and mypy."""
    install(session, *EVERYTHING, also=["pyright>=1.1.400", "mypy>=1.15"])
    session.run("python", "tools/typecheck.py", *[w.package for w in workspace.wheels().values()])


@nox.session(reuse_venv=True)
def lint(session: nox.Session) -> None:
    """Check style and formatting with ruff."""
    session.install("ruff>=0.12")
    session.run("ruff", "check", *session.posargs)
    session.run("ruff", "format", "--check")


@nox.session(python=False)
def ecosystem(session: nox.Session) -> None:
    """Run libraries written for JAX on Primax and on jax: their suites and small programs.

    ``nox -s ecosystem -- --quick`` runs of the suites under jax only what does not pass here,
    ``-- --only chex optax`` chooses parts, ``-- --rounds 3 --write`` brings the table in
    ``docs/compatibility.md`` up to date.
    """
    version, jaxlib = VERSIONS[2]
    if workspace.find_interpreter(version) is None:
        version = "{}.{}".format(*sys.version_info)
        jaxlib = next((j for v, j in VERSIONS if v == version), VERSIONS[-1][1])
    python = own_environment(session, version, "ecosystem")
    pins = ["-r", "integration_tests/ecosystem/requirements.txt", f"jaxlib=={jaxlib}"]
    install(session, *EVERYTHING, python=python, also=pins)
    install_oracle(session, python)
    command = [python, "-m", "integration_tests.ecosystem", *session.posargs]
    session.run(*command, env={"PYTHONPATH": None}, external=True)


@nox.session(python=False)
def bench(session: nox.Session) -> None:
    """Compare with jax, in turn and in separate processes; prints the budgets beside the ratios."""
    version = "3.12" if workspace.find_interpreter("3.12") else "3.11"
    python = own_environment(session, version, "bench")
    install(session, *EVERYTHING, python=python, also=["rich>=13", "numpy>=2"])
    install_oracle(session, python)
    command = [python, "-m", "integration_tests.benchmarks"]
    command += ["--json", str(BUILD / "benchmarks.json"), *session.posargs]
    session.run(*command, env={"PYTHONPATH": None}, external=True)
