"""Projects for packages with native functions: ``python -m primax_ffi new mykernels``."""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import keyword
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from ._rust import rust_bindings

_PLACEHOLDER: Final = "mykernels"
"""The name of the project in the templates."""

_OLDEST_JAXLIB: Final = "0.10.2"
"""The oldest jaxlib that the core supports: its headers serve all."""

_COMMON: Final = {
    "pyproject.toml": "pyproject.toml",
    "README.md": "README.md",
    "gitignore": ".gitignore",
    "ci.yml": ".github/workflows/tests.yml",
    "__init__.py": "src/mykernels/__init__.py",
    "_native.py": "src/mykernels/_native.py",
    "_rms_norm.py": "src/mykernels/_rms_norm.py",
    "test_mykernels.py": "tests/test_mykernels.py",
}


class _Language(NamedTuple):
    """Files of a language (template, path in the project), and replacements in all files."""

    files: dict[str, str]
    replacements: dict[str, str]


_LANGUAGES: Final = {
    "cpp": _Language(
        {"CMakeLists.txt": "CMakeLists.txt", "mykernels.cc": "native/mykernels.cc"},
        {
            "@BUILD_REQUIRES@": f'["scikit-build-core>=0.10", "jaxlib=={_OLDEST_JAXLIB}"]',
            "@COMPILER@": "a C++17 compiler",
            "@NATIVE_FILES@": "| `native/mykernels.cc` | the handlers |",
            "@HEADERS@": (
                "\nHandlers are built with the headers of the oldest supported jaxlib, which "
                "`pyproject.toml` requires: newer ones\nrun such handlers."
            ),
        },
    ),
    "rust": _Language(
        {
            "CMakeLists.txt": "CMakeLists.txt",
            "Cargo.toml": "native/Cargo.toml",
            "lib.rs": "native/src/lib.rs",
        },
        {
            "@BUILD_REQUIRES@": '["scikit-build-core>=0.10"]',
            "@COMPILER@": "Rust (cargo)",
            "@NATIVE_FILES@": (
                "| `native/src/lib.rs` | the handlers |\n"
                "| `native/src/primax_ffi.rs` | bindings of XLA's interface, of primax-ffi |"
            ),
            "@HEADERS@": (
                "\nThe bindings have the version of the interface that the oldest supported jaxlib "
                "has: newer ones run such handlers."
            ),
        },
    ),
}


def new_project(name: str, into: Path, language: str = "cpp") -> Path:
    """Write a project with a native function, its signature, derivative and tests.

    Args:
      name: name of the package, and of the new folder.
      into: an existing folder.
      language: ``"cpp"`` or ``"rust"``.

    Returns:
      The new folder.

    Raises:
      ValueError: if the name is not possible.
      OSError: if the folder exists, or cannot be written.
    """
    if language not in _LANGUAGES:
        raise ValueError(f"the language is {language!r}: there are {', '.join(_LANGUAGES)}")
    if not into.is_dir():
        raise FileNotFoundError(f"there is no folder {str(into)!r}: create it, or choose another")
    folder = into / name
    _check_name(name)
    if folder.exists():
        raise FileExistsError(f"{str(folder)!r} exists: choose another name, or --into a folder")
    files = {path: _text("common", file, name, language) for file, path in _COMMON.items()}
    for file, path in _LANGUAGES[language].files.items():
        files[path] = _text(language, file, name, language)
    if language == "rust":
        files["native/src/primax_ffi.rs"] = rust_bindings().read_text("utf-8")
    folder.mkdir()
    try:
        for path, text in files.items():
            target = folder / path.replace(_PLACEHOLDER, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, "utf-8")
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return folder


def _text(group: str, file: str, name: str, language: str) -> str:
    template = Path(__file__).with_name("templates") / group / f"{file}.in"
    text = template.read_text("utf-8")
    for placeholder, value in _LANGUAGES[language].replacements.items():
        text = text.replace(placeholder, value)
    return text.replace(_PLACEHOLDER, name)


def _check_name(name: str) -> None:
    """Raise an error for a name that a package with native functions cannot have."""
    what = f"the name of the project is {name!r}, but "
    if not re.fullmatch(r"[a-z][a-z0-9_]*[a-z0-9]", name):
        raise ValueError(
            f"{what}it is the name of a Python package and the beginning of C symbols: use at "
            "least two lowercase letters, digits and underscores, with a letter in front and no "
            "underscore at the end"
        )
    if keyword.iskeyword(name):
        raise ValueError(f"{what}this is a keyword of Python: choose another name")
    if name in sys.stdlib_module_names:
        raise ValueError(
            f"{what}this is a module of Python's standard library: choose another name"
        )
    if _is_installed(name):
        raise ValueError(f"{what}a package of this name is installed: choose another name")


def _is_installed(name: str) -> bool:
    distributions = importlib.metadata.distributions()
    names = {re.sub(r"[-_.]+", "_", d.name or "").lower() for d in distributions}
    if name in names:
        return True
    spec = importlib.util.find_spec(name)
    if spec is None:
        return False
    # A folder of this name in the current folder is no package unless it has an __init__.py.
    folders = [Path(p).resolve().parent for p in spec.submodule_search_locations or ()]
    return spec.origin is not None or folders != [Path.cwd()]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; mistakes end the process with status 2 and a message."""
    parser = argparse.ArgumentParser(
        prog="python -m primax_ffi", description="Native functions for Primax."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    new = commands.add_parser("new", help="write a project with a native function and its tests")
    new.add_argument("name", help="name of the package, and of the new folder")
    new.add_argument(
        "--into", type=Path, default=Path(), metavar="DIR", help="parent of the new folder"
    )
    new.add_argument("--language", choices=[*_LANGUAGES], default="cpp", help="default: cpp")
    options = parser.parse_args(arguments)
    try:
        folder = new_project(options.name, options.into, options.language)
    except (ValueError, OSError) as error:
        parser.exit(2, f"primax_ffi new: {error}\n")
    print(f"{folder}: build, install and test it with\n  cd {folder}")
    print("  pip install .[test]\n  pytest")
