"""Pytest configuration: several CPU devices for both libraries, set before their import.

The comparisons assume jax 0.12. With an older version, as on Python 3.11, only behaviour that has
not changed since is compared.
"""

import os
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

os.environ.setdefault("JAX_NUM_CPU_DEVICES", "4")
os.environ.setdefault("PRIMAX_NUM_CPU_DEVICES", "4")

# The oracle tests also use the test cases of the wheels.
sys.path.append(str(Path(__file__).resolve().parents[2] / "packages/numpy/tests"))
sys.path.append(str(Path(__file__).resolve().parents[2] / "packages/nn/tests"))
sys.path.append(str(Path(__file__).resolve().parents[2] / "packages/scipy/tests"))

import forgetting

SINCE = (0, 12)
UNCHANGED = {"test_array_oracle", "test_dtypes_oracle", "test_tree_oracle"}


def reference_version() -> tuple[int, ...] | None:
    """Return the version of the installed jax, or ``None``."""
    try:
        return tuple(int(part) for part in version("jax").split(".")[:2])
    except PackageNotFoundError:
        return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip comparisons with behaviour that the installed reference does not have yet."""
    installed = reference_version()
    if installed is None or installed >= SINCE:
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
