"""Both libraries get several CPU devices, told before either is imported.

The facts that these tests hold Primax to are those of jax 0.12. Where an older one is installed,
as on Python 3.11, only what has not changed since is compared.
"""

import os
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

os.environ.setdefault("JAX_NUM_CPU_DEVICES", "4")
os.environ.setdefault("PRIMAX_NUM_CPU_DEVICES", "4")

# The cases of the wheels' own tests are compared with the reference too.
sys.path.append(str(Path(__file__).resolve().parents[2] / "packages/numpy/tests"))
sys.path.append(str(Path(__file__).resolve().parents[2] / "packages/nn/tests"))
sys.path.append(str(Path(__file__).resolve().parents[2] / "packages/scipy/tests"))

import forgetting

SINCE = (0, 12)
UNCHANGED = {"test_array_oracle", "test_dtypes_oracle", "test_tree_oracle"}


def reference_version() -> tuple[int, ...] | None:
    """The installed jax's version, ``None`` without one."""
    try:
        return tuple(int(part) for part in version("jax").split(".")[:2])
    except PackageNotFoundError:
        return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip comparisons with a reference that is older than the facts."""
    found = reference_version()
    if found is None or found >= SINCE:
        return
    skip = pytest.mark.skip(reason=f"compares with jax 0.12; jax {version('jax')} is installed")
    here = os.path.dirname(__file__)
    for item in items:
        name = item.path.stem
        if str(item.path).startswith(here) and name not in UNCHANGED:
            item.add_marker(skip)


def _clear_both() -> None:
    import jax

    import primax_core

    primax_core.clear_caches()
    jax.clear_caches()


few_executables = forgetting.few_executables(100, _clear_both)
