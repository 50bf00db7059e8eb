"""The project's commands, one nox session each. ``nox -l`` lists them.

Wheels of this repository are always built first and installed from ``dist/`` by path, with the
package index switched off for them. What they declare of others comes from the index.
"""

from __future__ import annotations

import os
import shutil
import sys
import tomllib
from pathlib import Path

import nox
from nox.command import CommandFailed

sys.path.insert(0, str(Path(__file__).resolve().parent / "tools"))

import complete
import earlier
import release as releases
import steps
import test_environment
import workspace
from workspace import BUILD, DIST, ROOT, Wheel

nox.needs_version = ">=2024.4.15"
nox.options.default_venv_backend = "virtualenv"
nox.options.sessions = ["lint", "boundaries", "typecheck", "tests"]
nox.options.error_on_external_run = True

TEST_TOOLS = ["pytest>=9", "hypothesis>=6.100", "pytest-xdist>=3.5"]
EVERYTHING = ["primax[all]"]
CORE = "primax-core"
INTERPRETERS = "primax-interpreters[export]"
DISTRIBUTED = "primax-distributed"
NUMPY = "primax-numpy"
NATIVE = "primax-ffi-cpu"
# Parts of the names of tests (pytest -k): those of the operations that NATIVE replaces by kernels.
OVERRIDDEN = ["sort", "top_k", "cum", "median", "quantile", "percentile", "unique", "permutation"]
# All wheels that can be built here.
ALL = [*EVERYTHING, *([NATIVE] if workspace.compiler() else [])]
FFI = "primax-ffi"
KERNELS = "primax-kernels"
# Tools with which the tests of a wheel build projects, besides a compiler.
BUILD_TOOLS = {FFI: ["scikit-build-core>=0.10", "cmake>=3.20", "ninja"]}
# Tests of the interpreters' wheel that depend on the version of jaxlib.
ON_JAXLIB = ["packages/interpreters/tests/export", "packages/interpreters/tests/test_profiler.py"]
# The interpreter and jaxlib pairs that are supported; the first is what most machines get.
VERSIONS = [
    ("3.11", "0.10.2"),
    ("3.12", "0.11.2"),
    ("3.12", "0.12.0.1"),
    ("3.13", "0.12.0.1"),
]
# What builds the documentation site.
SITE = [
    "sphinx>=8.1",
    "myst-parser>=4",
    "pydata-sphinx-theme>=0.16",
    "sphinx-copybutton>=0.5",
    "sphinx-external-toc>=1.0",
    "sphinx-design>=0.6",
    "griffe>=1.5",
    "nbformat>=5.10",
]
QUICK = "--quick"
BETWEEN = ("3.12", "0.12.0.1")
WITHOUT_KIT = ["--ignore-glob", "**/testing/test_primitives.py"]
OF_COPIES = ("test_coexistence.py", "test_vendored_copies.py")
# Tests that need XLA's default optimisations; the others are compiled with few.
OPTIMISED = "optimised"
TEST_ENV = {**test_environment.variables(), "PYTHONPATH": None}

# Many tests start processes, each of which would compile all modules that it imports.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

_built: set[Path] = set()


def pip(session: nox.Session, python: str, *args: str) -> None:
    """Runs pip of the environment that ``python`` belongs to.

    Byte code is written when a module is first imported; most that is installed never is.
    """
    command = [python, "-m", "pip", "--quiet", "--disable-pip-version-check", *args]
    session.run(*command, env={"PIP_NO_COMPILE": "1"}, external=True)


def build(session: nox.Session, python: str, wheel: Wheel) -> Path:
    """Builds ``wheel`` into ``dist/``, unless it was built from the same sources."""
    if wheel.built in _built:
        return wheel.built
    digest, note = workspace.digest_of_sources(wheel), DIST / f"{wheel.package}.sources"
    if not (wheel.built.exists() and note.exists() and note.read_text() == digest):
        for stale in (*DIST.glob(f"{wheel.package}-*"), note):
            stale.unlink(missing_ok=True)
        pip(session, python, "wheel", "--no-deps", "--wheel-dir", str(DIST), str(wheel.folder))
        note.write_text(digest)
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


def jaxlib_version(session: nox.Session, python: str = "python") -> str | None:
    """The version of the installed jaxlib; ``None`` if nox only lists its commands."""
    code = "from importlib.metadata import version; print(version('jaxlib'))"
    version = session.run(python, "-c", code, silent=True, external=True)
    return None if version is None else version.strip().splitlines()[-1]


def install_oracle(session: nox.Session, python: str = "python") -> None:
    """Installs the jax that belongs to the installed jaxlib."""
    version = jaxlib_version(session, python)
    if version is None:
        return
    pip(session, python, "install", f"jax=={version}", f"jaxlib=={version}")


def pytest(
    session: nox.Session, *args: str, python: str = "python", step: str = "commit", **env: str
) -> None:
    """Runs pytest on two workers with the repository's configuration.

    ``step`` says which cases of large tests run; in the session ``full`` all of them do, with XLA's
    default optimisations. Elsewhere those are left to a run of the tests that need them.
    """
    command = [python, "-m", "pytest", "-n", "2", "--rootdir", str(ROOT), "-p", "tools.rotation"]
    command += ["-c", str(ROOT / "pyproject.toml"), *args]
    further = [a for a in session.posargs if a != QUICK]
    variables = {**TEST_ENV, **env}
    if complete.is_running():
        command += ["--rotation", "all"]
        session.run(*command, *further, env=variables, external=True)
        return
    # Random examples are drawn anew for each step, and found compiled when a step comes again.
    step_now = steps.step_of_commit()
    seed = [] if step_now is None else ["--hypothesis-seed", str(step_now.number)]
    command += ["--rotation", step, *seed]
    flags = {"XLA_FLAGS": quick_compilation(session, python)}
    few = ["-m", f"not {OPTIMISED}"]
    session.run(*command, *few, *further, env={**variables, **flags}, external=True)
    if workspace.marked(OPTIMISED, args):
        # A selection after -- may hold none of them, for which pytest returns 5.
        codes = [0, 5] if further or "-k" in args else [0]
        only = ["-m", OPTIMISED]
        session.run(*command, *only, *further, env=variables, external=True, success_codes=codes)


_flags: dict[str, str] = {}


def quick_compilation(session: nox.Session, python: str) -> str:
    """XLA_FLAGS with which the installed jaxlib compiles quickly."""
    if python not in _flags or python == "python":
        code = test_environment.PROBE
        found = session.run(python, "-c", code, silent=True, external=True) or ""
        _flags[python] = found.strip()
    return _flags[python]


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


@nox.session(python=False)
def env(session: nox.Session) -> None:
    """Create an environment with all wheels in ``.venv``, or in another folder: ``-- FOLDER``.

    The last step prints versions and devices, and tests the installation.
    """
    folder = Path(session.posargs[0] if session.posargs else ROOT / ".venv")
    if not (folder / "pyvenv.cfg").exists():
        session.run(sys.executable, "-m", "venv", str(folder), external=True)
    scripts = folder / ("Scripts" if sys.platform == "win32" else "bin")
    python = str(scripts / "python")
    install(session, *ALL, python=python)
    session.run(python, "-m", "primax", "--test", external=True)
    session.log(f"To use the environment: source {scripts / 'activate'}")


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
    """Test each built wheel with only its declared dependencies, then all of them together.

    Tests of several devices compute with operators of arrays, which are those of the NumPy layer.
    """
    if part == "integration":
        # The session vendored runs the tests of copies.
        alone = [f"--ignore=integration_tests/{name}" for name in OF_COPIES]
        integration(session, "python", "integration_tests", *alone)
        compare_with_newest(session)
        return
    wheel = workspace.wheels()[part]
    if wheel.native and not workspace.compiler():
        session.skip(f"{part} needs a C++ compiler, and none was found: install g++ or clang++")
    more = {
        NATIVE: [NUMPY],
        workspace.distribution_name(INTERPRETERS): [INTERPRETERS],
        DISTRIBUTED: [f"{DISTRIBUTED}[checkpoint]", NUMPY],
        FFI: [f"{FFI}[numba]"],
    }
    install(session, part, *more.get(part, ()), also=[*TEST_TOOLS, *BUILD_TOOLS.get(part, ())])
    # The examples in docstrings are run where the wheel was installed.
    examples = ["--doctest-modules", "--doctest-ignore-import-errors", "--pyargs", wheel.package]
    pytest(session, str(wheel.folder / "tests"), *examples)
    if wheel.native:
        folders = ["packages/core/tests/lax", "packages/numpy/tests"]
        pytest(session, *folders, "-p", wheel.package, "-k", " or ".join(OVERRIDDEN))


def integration(session: nox.Session, python: str, *folders: str, **pins: str) -> None:
    """Tests of all wheels together, beside the real jax."""
    versions = [f"{name}=={pin}" for name, pin in pins.items()]
    install(
        session,
        *ALL,
        python=python,
        also=[*TEST_TOOLS, "rich>=13", "mpmath>=1.3", "cloudpickle>=3", "numba>=0.60", *versions],
    )
    install_oracle(session, python)
    examples = [
        str(p.parent) for p in (ROOT / "integration_tests/thirdparty").glob("*/pyproject.toml")
    ]
    pip(session, python, "install", "--no-deps", *examples)
    variables = test_environment.reference_variables()
    pytest(session, *(folders or ["integration_tests"]), python=python, **variables)


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
    """Test what depends on jaxlib on each supported pair of Python and jaxlib.

    These are the core, profiles, export and native kernels. The NumPy layer and what stands on it
    run on the newest jaxlib in the comparison with the reference. ``-- --quick`` leaves out pairs
    of a Python and a jaxlib that others have each, and of the rest runs one, which changes with
    each commit, with a share of the cases of each test function whatever their kinds.
    """
    step, share = "commit", []
    if QUICK in session.posargs:
        step, share = step_of_pair(session, version, jaxlib), ["--one-kind"]
    if (version, jaxlib) == VERSIONS[0] and version == "{}.{}".format(*sys.version_info):
        session.skip("tests(core) runs on this pair")
    python = own_environment(session, version, f"versions-{version}-{jaxlib}")
    native = [NATIVE, NUMPY] if workspace.compiler() else []
    install(session, INTERPRETERS, *native, python=python, also=[*TEST_TOOLS, f"jaxlib=={jaxlib}"])
    kit = WITHOUT_KIT if kit_ran_before(version, jaxlib) else []
    pytest(session, "packages/core/tests", *kit, *share, python=python, step=step)
    folders = [str(workspace.wheels()[NATIVE].folder / "tests")] if native else []
    pytest(session, *ON_JAXLIB, *folders, *share, python=python, step=step)


def step_of_pair(session: nox.Session, version: str, jaxlib: str) -> str:
    """The rotation's step for a pair that runs every few commits; skips the session otherwise."""
    if (version, jaxlib) == BETWEEN:
        session.skip("its Python and its jaxlib are those of other pairs")
    default = "{}.{}".format(*sys.version_info)
    pairs = [p for p in VERSIONS if p != BETWEEN and p[0] != default]
    pairs = [p for p in pairs if workspace.find_interpreter(p[0])]
    commits = steps.commits()
    if (version, jaxlib) not in pairs or commits is None:
        return "commit"
    if pairs[commits % len(pairs)] != (version, jaxlib):
        session.skip("another pair is tested at this commit")
    return str(steps.step_of_commit(turns=len(pairs)))


def kit_ran_before(version: str, jaxlib: str) -> bool:
    """Whether an earlier pair that is found here has the same jaxlib."""
    earlier = [p for p in VERSIONS[: VERSIONS.index((version, jaxlib))] if p != BETWEEN]
    return any(j == jaxlib and workspace.find_interpreter(v) for v, j in earlier)


@nox.session
def vendored(session: nox.Session) -> None:
    """Test a copy of the core below another package, then copies beside the original and jax.

    A copy computes what the core computes, so one case of each test function is enough.
    """
    _, dependencies = workspace.resolve(CORE)
    pip(session, "python", "install", *dependencies, *TEST_TOOLS)
    folder = BUILD / "vendored"
    shutil.rmtree(folder, ignore_errors=True)
    package = folder / "acme"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    command = ["python", "-m", "primax_core.vendor", "--into", str(package / "_vendor")]
    session.run(*command, "--with", "tests", env={"PYTHONPATH": str(ROOT / "packages/core/src")})
    tests = package / "_vendor" / "primax_core_tests"
    limit = {"ACME_COMPILATION_CACHE_MAX_SIZE": str(test_environment.LIMIT)}
    pytest(session, str(tests), step="smoke", PYTHONPATH=str(folder), **limit)
    install(session, NUMPY)
    install_oracle(session)
    variables = test_environment.reference_variables()
    pytest(session, *[f"integration_tests/{name}" for name in OF_COPIES], **variables)


@nox.session(python=False)
def full(session: nox.Session) -> None:
    """Run everything: all cases, all pairs of versions, XLA's default optimisations.

    The last line is for the table of complete runs in ``docs/design/STATUS.md``.
    """
    session.run(sys.executable, "tools/complete.py", *session.posargs, external=True)


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation site in ``build/site``, with the gallery, and check both.

    The scripts of the gallery run with small sizes; ``-- --full`` runs them with full sizes, which
    takes minutes. Results are kept in ``build/gallery`` until a script or a wheel changes.
    """
    gallery = ["-r", "examples/requirements.txt"]
    install(session, *ALL, also=[*SITE, *gallery, "pytest>=9"])
    session.run("python", "-m", "tools.differences_page", "--check", env=TEST_ENV)
    site, sources = BUILD / "site", BUILD / "site-sources"
    shutil.rmtree(sources, ignore_errors=True)
    shutil.copytree(ROOT / "docs", sources)
    session.run("python", "-m", "tools.api_pages", str(sources / "api"), env=TEST_ENV)
    command = ["python", "-m", "tools.gallery", str(sources / "gallery"), *session.posargs]
    session.run(*command, env=TEST_ENV)
    command = ["python", "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-q"]
    session.run(*command, str(sources), str(site), env=TEST_ENV)
    tests = ["integration_tests/test_site.py", "integration_tests/test_gallery.py"]
    session.run("python", "-m", "pytest", "-q", *tests, env=TEST_ENV)
    session.log(f"The first page is {site / 'index.html'}")


@nox.session
def boundaries(session: nox.Session) -> None:
    """Check what each layer and wheel imports, and that a planted violation is found."""
    install(session, "primax-core", also=["import-linter>=2.3", "deptry>=0.20"])
    session.run("python", "tools/boundaries.py")


@nox.session
def typecheck(session: nox.Session) -> None:
    """Check the public surface with pyright and mypy."""
    install(session, *ALL, also=["pyright>=1.1.400", "mypy>=1.15"])
    wheels, _ = workspace.resolve(*ALL)
    session.run("python", "tools/typecheck.py", *[w.package for w in wheels])


@nox.session(reuse_venv=True)
def lint(session: nox.Session) -> None:
    """Check style, formatting, words and the length of docstrings."""
    session.install("ruff>=0.12")
    session.run("ruff", "check", *session.posargs)
    session.run("ruff", "format", "--check")
    session.run("python", "tools/release.py")
    session.run("python", "tools/words.py")
    session.run("python", "tools/docstring_lines.py")


@nox.session(python=False)
def ecosystem(session: nox.Session) -> None:
    """Run libraries written for JAX on Primax and on jax: their suites and small programs.

    ``nox -s ecosystem -- --quick`` runs of the suites under jax only what does not pass here,
    ``-- --only chex optax`` chooses parts, ``-- --rounds 3 --write`` brings the table in
    ``docs/compatibility.md`` up to date. Parts on demand run, and their libraries are installed,
    only if they are named, or with ``-- --all``; with ``--quick`` the commit chooses some of them.
    """
    sys.path.insert(0, str(ROOT))
    from integration_tests.ecosystem import choice

    options = list(session.posargs)
    version, jaxlib = VERSIONS[2]
    if workspace.find_interpreter(version) is None:
        session.warn(f"Python {version} was not found; the parts on demand that take turns need it")
        options.append(choice.NO_TURNS)
        version = "{}.{}".format(*sys.version_info)
        jaxlib = next((j for v, j in VERSIONS if v == version), VERSIONS[-1][1])
    python = own_environment(session, version, "ecosystem")
    libraries = choice.to_install(options)
    install(session, *EVERYTHING, python=python, also=[*libraries, f"jaxlib=={jaxlib}"])
    install_oracle(session, python)
    command = [python, "-m", "integration_tests.ecosystem", *options]
    session.run(*command, env={"PYTHONPATH": None}, external=True)


@nox.session(python=False)
def bench(session: nox.Session) -> None:
    """Compare with jax, in turn and in separate processes; prints the budgets beside the ratios."""
    version = "3.12" if workspace.find_interpreter("3.12") else "3.11"
    python = own_environment(session, version, "bench")
    install(session, *ALL, python=python, also=["rich>=13", "numpy>=2"])
    install_oracle(session, python)
    command = [python, "-m", "integration_tests.benchmarks"]
    command += ["--json", str(BUILD / "benchmarks.json"), *session.posargs]
    session.run(*command, env={"PYTHONPATH": None}, external=True)


@nox.session(python=False)
def fuzz(session: nox.Session) -> None:
    """Try many random inputs: ``nox -s fuzz -- --calls 100000 --only calls artifacts``.

    Crafted artifacts, damaged cache files, public functions with odd arguments, random indices, and
    random programs whose values and derivatives are compared with jax. The last line counts calls,
    aborts, hangs and faults.
    """
    version = "3.12" if workspace.find_interpreter("3.12") else "3.11"
    python = own_environment(session, version, "fuzz")
    install(session, *ALL, python=python)
    install_oracle(session, python)
    options = session.posargs or ["--calls", "10000"]
    command = [python, "-m", "integration_tests.fuzz", *options]
    session.run(*command, env=TEST_ENV, external=True)


@nox.session
def processes(session: nox.Session) -> None:
    """Kill processes at random 20 times, and go through 50 generations; about 10 minutes."""
    install(session, DISTRIBUTED, also=TEST_TOOLS)
    folder = str(workspace.wheels()[DISTRIBUTED].folder / "tests" / "processes")
    only = session.posargs or ["-k", "killed_at_random or many_generations"]
    command = ["python", "-m", "pytest", "--rootdir", str(ROOT), "-c", str(ROOT / "pyproject.toml")]
    long = {"PRIMAX_TEST_KILLS": "20", "PRIMAX_TEST_GENERATIONS": "50"}
    session.run(*command, folder, *only, env={**TEST_ENV, **long})


@nox.session
def compilers(session: nox.Session) -> None:
    """Build the native kernels with Clang: for this platform, with their tests, and for others.

    ``nox -s compilers -- aarch64-linux`` builds for one platform. Only the wheel of this platform
    is run; those for Linux on aarch64 and macOS on arm64 are compiled and linked.
    """
    install(session, NATIVE, also=[*TEST_TOOLS, "ziglang>=0.13", "cmake>=3.20", "ninja", "wheel"])
    pip(session, "python", "install", "jaxlib==0.10.2")  # the oldest headers
    (wheel,) = DIST.glob("primax_ffi_cpu-*.whl")
    into = BUILD / "compilers"
    session.run(
        "python", "tools/compilers.py", "--wheel", str(wheel), "--into", str(into), *session.posargs
    )
    own = [*(into / "x86_64-linux/wheel").glob("*.whl")]
    if own and sys.platform == "linux" and not session.posargs:
        pip(session, "python", "install", "--no-deps", "--force-reinstall", str(own[0]))
        pytest(session, str(workspace.wheels()[NATIVE].folder / "tests"))


@nox.session
def cuda_handlers(session: nox.Session) -> None:
    """Compile handlers with nvcc and programs for GPUs that call them; run them if there is one.

    No GPU is needed to compile: CUDA's plugin, of 130 MB, compiles for devices that are absent.
    """
    if shutil.which("nvcc") is None:
        session.skip("nvcc was not found on PATH: install the CUDA toolkit")
    install(session, *EVERYTHING, also=TEST_TOOLS)
    if version := jaxlib_version(session):
        plugins = ["jax-cuda13-pjrt", "jax-cuda13-plugin"]
        pip(session, "python", "install", "--no-deps", *[f"{p}=={version}" for p in plugins])
        if Path("/dev/nvidia0").exists():  # CUDA's libraries, of some GB, only to run programs
            pip(session, "python", "install", f"jax-cuda13-plugin[with-cuda]=={version}")
    pytest(session, "integration_tests/accelerator/test_cuda_handlers.py")


@nox.session
def triton(session: nox.Session) -> None:
    """Compile kernels for NVIDIA GPUs that are absent, with the compiler of CUDA's plugin (130 MB).

    ``PRIMAX_TEST_CUDA_LIBRARY`` may name the plugin's library, which is not installed then; all
    operations are compiled, which takes minutes. The package triton (200 MB) is installed too.
    """
    install(session, KERNELS, also=TEST_TOOLS)
    pip(session, "python", "install", "--no-deps", "triton>=3.9")
    if "PRIMAX_TEST_CUDA_LIBRARY" in os.environ:
        session.log(f"the plugin's library is {os.environ['PRIMAX_TEST_CUDA_LIBRARY']}")
    elif version := jaxlib_version(session):
        pip(session, "python", "install", "--no-deps", f"jax-cuda13-pjrt=={version}")
    pytest(session, str(workspace.wheels()[KERNELS].folder / "tests" / "triton_backend"))


@nox.session
def tpu(session: nox.Session) -> None:
    """Compile kernels for TPUs that are absent, with the compiler of libtpu (210 MB).

    ``PRIMAX_TEST_TPU_LIBRARY`` may name the library ``libtpu.so``, which is not installed then.
    """
    install(session, KERNELS, also=TEST_TOOLS)
    library = os.environ.get("PRIMAX_TEST_TPU_LIBRARY")
    if library is None:
        pip(session, "python", "install", "--no-deps", "libtpu")
        code = "from importlib.util import find_spec as f; print(f('libtpu').origin)"
        module = session.run("python", "-c", code, silent=True)
        library = str(Path(str(module).strip()).parent / "libtpu.so")
    session.env["PRIMAX_TEST_TPU_LIBRARY"] = library
    session.log(f"the compiler is {library}")
    pytest(session, str(workspace.wheels()[KERNELS].folder / "tests" / "mosaic_backend"))
    core = workspace.wheels()[CORE].folder / "tests" / "extend" / "test_mosaic_bytecode.py"
    pytest(session, str(core))


@nox.session
def accuracy(session: nox.Session) -> None:
    """Compare functions with mpmath: ``nox -s accuracy -- --only exp gamma --points 1000``.

    Prints worst and median errors in ulp, of Primax, jax, NumPy and SciPy; fails if an error
    exceeds its recorded bound. ``-- --write`` writes the table into ``docs/accuracy.md``.
    """
    install(session, *EVERYTHING, also=["mpmath>=1.3", "scipy"])
    install_oracle(session)
    session.run("python", "-m", "integration_tests.accuracy", *session.posargs, env=TEST_ENV)


@nox.session
def lowest(session: nox.Session) -> None:
    """Test the wheels on the lowest versions of the dependencies that they declare."""
    ours, theirs = workspace.resolve(*EVERYTHING)
    pins = [workspace.lowest(requirement) for requirement in theirs]
    session.log(f"lowest declared: {', '.join(pins)}")
    pip(session, "python", "install", *pins, *TEST_TOOLS)
    files = [str(build(session, "python", wheel)) for wheel in ours]
    pip(session, "python", "install", "--no-index", "--no-deps", "--force-reinstall", *files)
    pip(session, "python", "check")
    for wheel in ours:
        kit = WITHOUT_KIT if wheel.name == "core" else []
        pytest(session, str(wheel.folder / "tests"), *kit, step="smoke")


@nox.session
def extras(session: nox.Session) -> None:
    """Let the installer resolve the extras for accelerators, without installing anything."""
    for extra in session.posargs or ("cuda12", "cuda13", "tpu"):
        folder = workspace.wheels()["primax"].folder
        project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
        needed = project["optional-dependencies"][extra]
        pip(session, "python", "install", "--dry-run", "--ignore-installed", *needed)


@nox.session
def compat(session: nox.Session) -> None:
    """Test the newest wheels on the oldest core they accept, then the last ones on the newest."""
    if untagged := earlier.missing_tags():
        session.warn(f"no release tag below HEAD: {', '.join(untagged)}; their commits come from")
        session.warn("[tool.primax.last-built] of pyproject.toml instead")
    _, theirs = workspace.resolve(*EVERYTHING)
    pip(session, "python", "install", *theirs, *TEST_TOOLS)
    problems = newest_on_oldest_cores(session) + last_on_newest_core(session)
    if problems:
        session.error("; ".join(problems))


def build_earlier(session: nox.Session, wheel: earlier.Earlier) -> str:
    """Builds a wheel as it was at its commit, unless an earlier run did."""
    if wheel.built() is None:
        folder = str(wheel.unpack())
        pip(session, "python", "wheel", "--no-deps", "--wheel-dir", str(wheel.wheels), folder)
    return str(wheel.built())


def newest_on_oldest_cores(session: nox.Session) -> list[str]:
    """Smoke tests of the wheels here, each on the oldest core that it accepts."""
    problems = []
    for core, above in earlier.oldest_cores().items():
        names = ", ".join(w.name for w in above)
        if core is None:
            session.warn(f"NOT TESTED on an earlier core: {names} need a core not yet released")
            continue
        session.log(f"newest {names} on {core.label}, extension API {core.api_version()}")
        below, _ = workspace.resolve(*(w.distribution for w in above))
        files = [str(build(session, "python", w)) for w in below if w.name != "core"]
        replace_wheels(session, build_earlier(session, core), *files)
        for wheel in above:
            if not passes(session, ROOT, earlier.smoke_tests(wheel.name, wheel.folder)):
                problems.append(f"the newest {wheel.name} fails on {core.label}")
    return problems


def last_on_newest_core(session: nox.Session) -> list[str]:
    """Smoke tests of the last released wheels on the core here, or that they refuse it."""
    core = releases.find_wheel("core")
    last = [e[-1] for w in earlier.above_the_core() if (e := earlier.earlier(w.name))]
    files = [build_earlier(session, wheel) for wheel in last]
    replace_wheels(session, str(build(session, "python", core)), *files)
    problems, newest = [], earlier.newest_api_version()
    for wheel in last:
        session.log(f"{wheel.label} on the newest core, extension API {newest}")
        if newest in wheel.api_range():
            if not passes(session, wheel.sources, wheel.smoke_tests()):
                problems.append(f"{wheel.label} fails on the newest core")
        else:
            session.run("python", "-c", earlier.refuses(wheel.name), env=TEST_ENV)
    return problems


def replace_wheels(session: nox.Session, *files: str) -> None:
    """Installs these wheels of ours in place of those in the environment."""
    ours = [w.distribution for w in workspace.wheels().values()]
    pip(session, "python", "uninstall", "--yes", *ours)
    pip(session, "python", "install", "--no-index", "--no-deps", *files)
    pip(session, "python", "check")


def passes(session: nox.Session, root: Path, tests: list[str]) -> bool:
    """Whether some tests of each module pass; deprecations in the newest core are no errors."""
    command = ["python", "-m", "pytest", "-n", "2", "-q", "-p", "smoke_sample"]
    command += ["-W", "ignore::DeprecationWarning"]
    command += ["--rootdir", str(root), "-c", str(root / "pyproject.toml"), *tests]
    env = {**TEST_ENV, "PYTHONPATH": str(ROOT / "tools")}
    try:
        session.run(*command, env=env)
    except CommandFailed:
        return False
    return True


@nox.session
def release(session: nox.Session) -> None:
    """Build and check one wheel for a release: ``nox -s release -- core``."""
    if len(session.posargs) != 1:
        session.error("name one wheel: nox -s release -- core")
    try:
        wheel = releases.find_wheel(session.posargs[0])
    except ValueError as e:
        session.error(str(e))
    stop(session, releases.errors_before_building(wheel))
    session.install("build>=1.2", "twine>=6")
    folder = releases.folder(wheel)
    shutil.rmtree(folder, ignore_errors=True)
    session.run("python", "-m", "build", "--outdir", str(folder), str(wheel.folder))
    (sdist,), (built,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    session.run("twine", "check", "--strict", str(sdist), str(built))
    files = releases.tracked(wheel.folder)
    stop(session, releases.check_wheel(built, wheel, files))
    stop(session, releases.check_sdist(sdist, wheel, files | releases.included(wheel)))
    python = own_environment(session, "{}.{}".format(*sys.version_info), f"release-{wheel.name}")
    ours, theirs = workspace.resolve(wheel.distribution)
    below = [str(build(session, python, w)) for w in ours if w != wheel]
    pip(session, python, "install", *theirs)
    pip(session, python, "install", "--no-index", "--no-deps", str(built), *below)
    pip(session, python, "check")
    session.chdir(folder)  # nothing of the checkout is importable from here
    session.run(python, "-c", releases.smoke(wheel), env=TEST_ENV, external=True)
    session.log(f"notes: {releases.write_notes(wheel)}")
    for step in releases.steps_before_tagging(wheel):
        session.warn(f"before the tag: {step}")
    session.log(f"then: {releases.tag_command(wheel)}")


def stop(session: nox.Session, problems: list[str]) -> None:
    """Fails the session if there are problems, with all of them."""
    if problems:
        session.error("\n".join(problems))
