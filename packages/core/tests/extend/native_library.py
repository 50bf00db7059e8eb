"""The library of native functions for the tests, compiled once per session."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from primax_core.extend import native

SOURCE = Path(__file__).with_name("native_handlers.cc")


@cache
def path() -> str:
    """The path of the compiled library; the test is skipped without a compiler."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler is installed")
    out = str(Path(tempfile.mkdtemp(prefix="native_")) / "handlers.so")
    subprocess.run(
        [compiler, "-O0", "-w", "-std=c++17", "-shared", "-fPIC",
         f"-I{native.include_dir()}", str(SOURCE), "-o", out],
        check=True,
    )  # fmt: skip
    return out


@cache
def library() -> Any:
    """The compiled library."""
    return ctypes.CDLL(path())


def capsule(address: int, name: bytes | None = None) -> Any:
    """A capsule, as the bindings of C++ make them."""
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return new(address, name, None)


def address(function: Any) -> int:
    """The address of a function of the library."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0
