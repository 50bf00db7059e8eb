"""The C++ files of this folder, compiled as one library.

A package compiles its library when its wheel is built; ``python -m primax_ffi new`` writes such a
project. The examples compile when they are first imported, and find the library later.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from primax.ffi import include_dir

FOLDER = Path(__file__).resolve().parent
BUILD = FOLDER.parent.parent / "build" / "native_examples"
# No -ffast-math: linked into a library, it can flush denormal numbers of the whole process.
FLAGS = ["-O2", "-std=c++17", "-Wall", "-Wextra", "-shared", "-fPIC", "-pthread"]


class NoCompilerError(RuntimeError):
    """No C++ compiler is installed."""


@cache
def path() -> Path:
    """The path of the library, which is compiled if a source or the headers changed.

    Raises:
      NoCompilerError: if neither g++ nor clang++ is installed.
    """
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        raise NoCompilerError("the examples are C++: install g++ or clang++")
    sources = sorted(FOLDER.glob("*.cc"))
    headers = Path(include_dir())
    parts = [p.read_bytes() for p in [*sources, *sorted((headers / "xla/ffi/api").iterdir())]]
    digest = hashlib.sha256(b"\0".join([repr([compiler, FLAGS]).encode(), *parts])).hexdigest()
    library = BUILD / f"{digest[:20]}.so"
    if not library.exists():
        BUILD.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=BUILD) as folder:
            # One translation unit, because most of the time is that of XLA's header.
            unit = Path(folder) / "all.cc"
            unit.write_text("".join(f'#include "{source}"\n' for source in sources))
            command = [compiler, *FLAGS, "-isystem", str(headers), str(unit)]
            subprocess.run([*command, "-o", f"{folder}/library.so"], check=True)
            os.replace(f"{folder}/library.so", library)
    return library
