"""Environment variables of test runs: where compiled programs are kept, and how they are compiled.

Executables are kept in a folder of the machine, which outlives the checkout:
``PRIMAX_TEST_CACHE``, by default ``primax-tests`` in the user's cache folder.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

LIMIT: Final = 4 << 30
FOLDER: Final = "PRIMAX_TEST_CACHE"

# Flags with which XLA compiles for the CPU in a third of the time (jaxlib 0.10) or in 85 % of it
# (0.12, which knows only the first). XLA ends the process over a flag that it does not know, so
# each is tried in a process of its own. The flags are part of the keys of the cache.
FLAGS: Final = (
    "--xla_backend_optimization_level=0",
    "--xla_cpu_use_fusion_emitters=false",
)
PROBE: Final = f"""
import os, subprocess, sys
known = []
for flag in {FLAGS!r}:
    code = "from jaxlib import _jax; _jax.CompileOptions()"
    env = {{**os.environ, "XLA_FLAGS": flag}}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True)
    if done.returncode == 0:
        known.append(flag)
print(" ".join(known))
"""


def cache_folder() -> Path:
    """The folder in which test runs keep executables."""
    chosen = os.environ.get(FOLDER)
    if chosen:
        return Path(chosen).expanduser().resolve()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "primax-tests"
    if sys.platform == "win32" and os.environ.get("LOCALAPPDATA"):
        return Path(os.environ["LOCALAPPDATA"]) / "primax-tests"
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "primax-tests"


def variables() -> dict[str, str | None]:
    """What every test run finds in its environment."""
    return {
        "XDG_CACHE_HOME": str(cache_folder()),
        "PRIMAX_COMPILATION_CACHE_MAX_SIZE": str(LIMIT),
    }


def reference_variables() -> dict[str, str]:
    """What a comparison with jax finds besides: jax keeps its executables too."""
    folder = cache_folder() / "jax"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    prune(folder, LIMIT)
    return {
        "JAX_COMPILATION_CACHE_DIR": str(folder),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }


def prune(folder: Path, limit: int) -> None:
    """Remove the files that were used least recently until the others take ``limit`` bytes."""
    files = []
    for path in folder.rglob("*"):
        try:
            if path.is_file():
                files.append((path.stat().st_mtime, path.stat().st_size, path))
        except OSError:
            continue
    excess = sum(size for _, size, _ in files) - limit
    for _, size, path in sorted(files):
        if excess <= 0:
            return
        path.unlink(missing_ok=True)
        excess -= size
