"""The native files of this folder, compiled as one library for the CPU and one for CUDA.

A package compiles its library when its wheel is built; ``python -m primax_ffi new`` writes such a
project. The examples compile when they are first imported, and find the library later.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from primax.ffi import include_dir

FOLDER = Path(__file__).resolve().parent
BUILD = FOLDER.parent.parent / "build" / "native_examples"
# No -ffast-math: linked into a library, it can flush denormal numbers of the whole process.
FLAGS = ["-O2", "-std=c++17", "-Wall", "-Wextra", "-shared", "-fPIC", "-pthread"]
# Machine code for Ampere and Hopper, and PTX, which drivers translate for later GPUs.
CUDA_FLAGS = ["-O2", "-std=c++17", "-shared", "-Xcompiler", "-fPIC", "-arch=compute_80"]
CUDA_FLAGS += ["-code=sm_80,sm_90,compute_80", "-cudart", "static"]


class NoCompilerError(RuntimeError):
    """A compiler is not installed."""


@cache
def path() -> Path:
    """The path of the library for the CPU, which is compiled if a source or the headers changed.

    Raises:
      NoCompilerError: if neither g++ nor clang++ is installed.
    """
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        raise NoCompilerError("the examples are C++: install g++ or clang++")
    return _compiled([compiler, *FLAGS, "-x", "c++"], sorted(FOLDER.glob("*.cc")))


@cache
def cuda_path() -> Path:
    """The path of the library for CUDA, which needs no GPU to be compiled.

    Raises:
      NoCompilerError: if nvcc is not installed.
    """
    compiler = shutil.which("nvcc")
    if compiler is None:
        raise NoCompilerError("handlers for CUDA are compiled by nvcc: install the CUDA toolkit")
    return _compiled([compiler, *CUDA_FLAGS, "-x", "cu"], sorted(FOLDER.glob("*.cu")))


def _compiled(command: Sequence[str], sources: Sequence[Path]) -> Path:
    """The library of these sources, one translation unit: most of the time is XLA's header."""
    headers = Path(include_dir())
    files = [*sources, *sorted(FOLDER.glob("*.h")), *sorted((headers / "xla/ffi/api").iterdir())]
    parts = [repr(command).encode(), *[p.read_bytes() for p in files]]
    digest = hashlib.sha256(b"\0".join(parts)).hexdigest()
    library = BUILD / f"{digest[:20]}.so"
    if not library.exists():
        BUILD.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=BUILD) as folder:
            unit = Path(folder) / "all"
            unit.write_text("".join(f'#include "{source}"\n' for source in sources))
            includes = ["-isystem", str(headers), f"-I{FOLDER}"]
            output = ["-o", f"{folder}/library.so"]
            subprocess.run([*command, *includes, str(unit), *output], check=True)
            os.replace(f"{folder}/library.so", library)
    return library
