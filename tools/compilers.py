"""Wheels of primax-ffi-cpu built by Clang for this platform and for others.

The package ``ziglang`` brings Clang, with the headers and libraries of the platforms it compiles
for. The session ``compilers`` of nox runs this.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
SOURCES: Final = ROOT / "packages/ffi_cpu"


class Target(NamedTuple):
    """A platform.

    Attributes:
      triple: its name for the compiler.
      system, processor: its names for CMake.
      tag: the last part of names of wheels.
    """

    triple: str
    system: str
    processor: str
    tag: str


TARGETS: Final = {
    "x86_64-linux": Target(
        "x86_64-linux-gnu.2.17", "Linux", "x86_64", "manylinux_2_17_x86_64"
    ),
    "aarch64-linux": Target(
        "aarch64-linux-gnu.2.17", "Linux", "aarch64", "manylinux_2_17_aarch64"
    ),
    "arm64-macos": Target("aarch64-macos.11.0", "Darwin", "arm64", "macosx_11_0_arm64"),
}  # fmt: skip


def run(*command: object) -> None:
    """Run a program, which must succeed."""
    subprocess.run([str(c) for c in command], check=True)


def compiler(target: Target, folder: Path) -> Path:
    """A program that compiles C++ for a platform."""
    path = folder / "clang++"
    # Zig writes an underscore in the names of processors.
    path.write_text(
        "#!/bin/sh\n"
        'for a in "$@"; do shift; case "$a" in -march=x86-64-v2) a=-mcpu=x86_64_v2;; esac; '
        'set -- "$@" "$a"; done\n'
        f'exec "{sys.executable}" -m ziglang c++ -target {target.triple} "$@"\n'
    )
    path.chmod(0o755)
    return path


def library(target: Target, folder: Path) -> Path:
    """The library of a platform, compiled by Clang."""
    folder.mkdir(parents=True, exist_ok=True)
    prefix = folder / "installed"
    crossing = []
    if target is not TARGETS["x86_64-linux"]:
        crossing = [f"-DCMAKE_SYSTEM_NAME={target.system}",
                    f"-DCMAKE_SYSTEM_PROCESSOR={target.processor}"]  # fmt: skip
    if target.system == "Darwin":  # not needed for a library without paths in it
        crossing.append(f"-DCMAKE_INSTALL_NAME_TOOL={shutil.which('true')}")
    run("cmake", "-G", "Ninja", "-S", SOURCES, "-B", folder, "-DCMAKE_BUILD_TYPE=Release",
        f"-DCMAKE_CXX_COMPILER={compiler(target, folder)}", f"-DCMAKE_INSTALL_PREFIX={prefix}",
        f"-DPython3_EXECUTABLE={sys.executable}", *crossing)  # fmt: skip
    run("cmake", "--build", folder)
    run("cmake", "--install", folder, "--strip")
    (built,) = (prefix / "primax_ffi_cpu").glob("libprimax_ffi_cpu.*")
    return built


def wheel_with(library: Path, wheel: Path, target: Target, folder: Path) -> Path:
    """A wheel as another one, but with the library of a platform."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with zipfile.ZipFile(wheel) as file:
        file.extractall(folder / "content")
    for old in (folder / "content/primax_ffi_cpu").glob("libprimax_ffi_cpu.*"):
        old.unlink()
    shutil.copy(library, folder / "content/primax_ffi_cpu")
    run(sys.executable, "-m", "wheel", "pack", folder / "content", "--dest-dir", folder)
    (packed,) = folder.glob("*.whl")
    run(sys.executable, "-m", "wheel", "tags", "--remove", "--platform-tag", target.tag, packed)
    (tagged,) = folder.glob("*.whl")
    return tagged


def main(arguments: Sequence[str] | None = None) -> None:
    """Build a wheel for each platform."""
    parser = argparse.ArgumentParser(prog="python tools/compilers.py", description=__doc__)
    parser.add_argument("--wheel", type=Path, required=True, help="a wheel of this platform")
    parser.add_argument("--into", type=Path, required=True)
    parser.add_argument("targets", nargs="*", metavar="target", help=", ".join(TARGETS))
    options = parser.parse_args(arguments)
    names = options.targets or [*TARGETS]
    if unknown := {*names} - {*TARGETS}:
        parser.error(f"{', '.join(sorted(unknown))} not among {', '.join(TARGETS)}")
    for name in names:
        target, folder = TARGETS[name], options.into / name
        built = library(target, folder / "build")
        made = wheel_with(built, options.wheel, target, folder / "wheel")
        print(f"{name}: {made}, library of {built.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
