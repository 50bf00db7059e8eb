"""Check the boundaries between wheels and layers, and test that each check can fail.

import-linter checks the import contracts of the root ``pyproject.toml``; deptry compares the
imports of each wheel with its declared dependencies. A contract that can no longer fail proves
nothing, so each one also runs on a copy of the sources with a planted violation.

Run by ``nox -s boundaries``. Exit status 0 if the sources are clean and every planted violation
was detected.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import core_limits

ROOT = Path(__file__).resolve().parent.parent
CORE = "packages/core/src/primax_core"


@dataclass(frozen=True)
class Plant:
    """A violation, and the contract, deptry code or limit of the core that must detect it."""

    module: str
    line: str
    detected_by: str


PLANTS = (
    Plant("core/src/primax_core/_base", "from .._api import anything", "point down"),
    Plant("core/src/primax_core/_ir", "from ..lax import anything", "point down"),
    Plant("core/src/primax_core/_trace", "def f():\n    from .. import _lower", "point down"),
    Plant("core/src/primax_core/lax", "from .. import jit", "public root"),
    Plant("core/src/primax_core/_transform", "import jaxlib.xla_client", "import jaxlib"),
    Plant("core/src/primax_core/_runtime", "import jax.numpy", "imports jax"),
    Plant("core/src/primax_core/vendor", "from .._base import identity", "standard library alone"),
    Plant("core/src/primax_core/_api", "import primax_numpy", "wheels below"),
    Plant("numpy/src/primax_numpy", "from primax_core._ir import avals", "public modules"),
    Plant("numpy/src/primax_numpy", "import primax", "wheels below"),
    Plant("nn/src/primax_nn", "from primax_core._ir import avals", "public modules"),
    Plant("nn/src/primax_nn", "import primax", "wheels below"),
    Plant("numpy/src/primax_numpy", "import primax_nn", "wheels below"),
    Plant("interpreters/src/primax_interpreters", "import primax_numpy", "wheels below"),
    Plant("interpreters/src/primax_interpreters", "import primax", "wheels below"),
    Plant("numpy/src/primax_numpy", "import primax_interpreters", "wheels below"),
    Plant(
        "interpreters/src/primax_interpreters",
        "from primax_core._engine import call",
        "public modules",
    ),
    Plant(
        "interpreters/src/primax_interpreters",
        "from primax_core.extend import facade",
        "only the facade",
    ),
    Plant("scipy/src/primax_scipy", "from primax_core._ir import avals", "public modules"),
    Plant("scipy/src/primax_scipy", "import primax", "wheels below"),
    Plant("scipy/src/primax_scipy", "import primax_nn", "wheels below"),
    Plant("distributed/src/primax_distributed", "from primax_core import _trace", "public modules"),
    Plant("distributed/src/primax_distributed", "import primax_numpy", "wheels below"),
    Plant("distributed/src/primax_distributed", "import jaxlib", "import jaxlib"),
    Plant("ffi/src/primax_ffi", "from primax_core import _lower", "public modules"),
    Plant("ffi/src/primax_ffi", "import primax_numpy", "wheels below"),
    Plant("ffi/src/primax_ffi", "import jaxlib", "import jaxlib"),
    Plant("ffi_cpu/src/primax_ffi_cpu", "from primax_core import _lower", "public modules"),
    Plant("ffi_cpu/src/primax_ffi_cpu", "import primax_ffi", "wheels below"),
    Plant("ffi_cpu/src/primax_ffi_cpu", "import jaxlib", "import jaxlib"),
    Plant("kernels/src/primax_kernels", "from primax_core import _lower", "public modules"),
    Plant("kernels/src/primax_kernels", "import primax_numpy", "wheels below"),
    Plant("kernels/src/primax_kernels", "import jaxlib", "import jaxlib"),
    Plant("primax/src/primax", "from primax_core import _runtime", "public modules"),
    Plant("core/src/primax_core/_base", "import requests", "DEP001"),
    Plant("core/src/primax_core/_trace", "def install_planted():\n    pass", "hooks"),
    Plant("core/src/primax_core/_trace", f"# {'x' * core_limits.WHOLE}", "bytes"),
)


def wheel_folders(root: Path) -> list[Path]:
    """Folders of the wheels below ``packages``."""
    return sorted(p.parent for p in root.glob("packages/*/pyproject.toml"))


def run(command: list[str], cwd: Path, sources: list[Path]) -> tuple[int, str]:
    """Run ``command`` with ``sources`` importable; return its exit status and output."""
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(map(str, sources)), NO_COLOR="1")
    process = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True)
    return process.returncode, process.stdout + process.stderr


def lint_imports(root: Path) -> tuple[int, str]:
    """Check the import contracts of the sources below ``root``."""
    sources = [folder / "src" for folder in wheel_folders(root)]
    tool = str(Path(sys.executable).with_name("lint-imports"))
    return run([tool, "--no-logo", "--no-cache", "--config", "pyproject.toml"], root, sources)


def check_dependencies(folder: Path) -> tuple[int, str]:
    """Compare the imports of the wheel in ``folder`` with its declared dependencies."""
    return run([sys.executable, "-m", "deptry", "--no-ansi", "src"], folder, [folder / "src"])


def plant_is_detected(plant: Plant) -> bool:
    """Return True if the checks reject a copy of the sources that contains ``plant``."""
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        shutil.copy(ROOT / "pyproject.toml", root)
        for folder in wheel_folders(ROOT):
            copy = root / "packages" / folder.name
            shutil.copytree(folder / "src", copy / "src")
            shutil.copy(folder / "pyproject.toml", copy)
        target = root / "packages" / plant.module
        (target / "planted.py").write_text(plant.line + "\n")
        if plant.detected_by.startswith("DEP"):
            folder = root / "packages" / plant.module.split("/")[0]
            status, output = check_dependencies(folder)
            return status != 0 and plant.detected_by in output
        if plant.detected_by in ("hooks", "bytes"):
            core = root / CORE
            check = core_limits.hooks if plant.detected_by == "hooks" else core_limits.whole
            return not check(core).kept
        status, output = lint_imports(root)
        broken = [line for line in output.splitlines() if " BROKEN" in line]
        named = ".planted -> " in output
        return status != 0 and named and any(plant.detected_by in line for line in broken)


def main() -> int:
    """Run every check and print the output of each."""
    failed = False
    status, output = lint_imports(ROOT)
    print(output)
    failed |= status != 0
    for folder in wheel_folders(ROOT):
        status, output = check_dependencies(folder)
        print(f"deptry {folder.name}: {'passed' if status == 0 else output}")
        failed |= status != 0
    for measure in (core_limits.hooks, core_limits.whole, core_limits.loaded):
        result = measure(ROOT / CORE)
        print(result)
        failed |= not result.kept
    for plant in PLANTS:
        detected = plant_is_detected(plant)
        line = plant.line.splitlines()[-1].strip()[:80]
        print(f"planted {line!r} in {plant.module}: {'detected' if detected else 'NOT DETECTED'}")
        failed |= not detected
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
