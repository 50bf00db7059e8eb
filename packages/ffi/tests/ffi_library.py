"""The library of native functions for the tests, compiled once per session."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from primax_ffi import include_dir, register_ffi_target

SOURCE = Path(__file__).with_name("handlers.cc")


@cache
def path() -> str:
    """The path of the compiled library; the test is skipped without a compiler."""
    if compiled := os.environ.get("ACME_LIBRARY"):
        return compiled
    return build(SOURCE, include_dir())


def build(source: Path, headers: str) -> str:
    """The path of a library, compiled from a source file."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler is installed: these tests compile native functions")
    out = str(Path(tempfile.mkdtemp(prefix="primax_ffi_")) / f"{source.stem}.so")
    subprocess.run(
        [compiler, "-O0", "-w", "-std=c++17", "-shared", "-fPIC", f"-I{headers}",
         str(source), "-o", out],
        check=True,
    )  # fmt: skip
    return out


@cache
def library() -> Any:
    """The compiled library."""
    return ctypes.CDLL(path())


def registered(name: str, **options: Any) -> str:
    """The name of a function of the library, registered under it."""
    register_ffi_target(name, getattr(library(), name), **options)
    return name


def logged() -> list[float]:
    """The numbers that the functions with side effects wrote since the last call."""
    out = (ctypes.c_float * 100)()
    n = library().acme_logged(out, 100)
    return list(out[:n])


def run(code: str, *, timeout: float = 300, library: bool = True, **environment: str) -> str:
    """Run code in a new interpreter and return its output; errors and crashes fail.

    Args:
      library: ``ACME_LIBRARY`` is the path of the compiled library.
    """
    env = {k: v for k, v in os.environ.items() if not k.startswith("PRIMAX_")}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**env, **({"ACME_LIBRARY": path()} if library else {}), **environment},
        capture_output=True, text=True, timeout=timeout, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout.strip()
