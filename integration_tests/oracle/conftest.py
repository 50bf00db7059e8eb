"""Pytest configuration: several CPU devices for both libraries, set before their import.

The comparisons assume jax 0.12. With an older version, as on Python 3.11, only behaviour that has
not changed since is compared.
"""

import os
import sys
from collections import Counter
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")
os.environ.setdefault("PRIMAX_NUM_CPU_DEVICES", "8")

# The oracle tests also use the test cases of the wheels.
sys.path.append(str(Path(__file__).resolve().parents[2] / "packages/numpy/tests"))
sys.path.append(str(Path(__file__).resolve().parents[2] / "packages/nn/tests"))
sys.path.append(str(Path(__file__).resolve().parents[2] / "packages/scipy/tests"))
sys.path.append(str(Path(__file__).resolve().parents[2] / "packages/distributed/tests"))
sys.path.append(str(Path(__file__).resolve().parents[2] / "packages/ffi/tests"))

import forgetting

from tools.rotation import LARGE

SINCE = (0, 12)
UNCHANGED = {"test_array_oracle", "test_dtypes_oracle", "test_tree_oracle"}


def reference_version() -> tuple[int, ...] | None:
    """Return the version of the installed jax, or ``None``."""
    try:
        return tuple(int(part) for part in version("jax").split(".")[:2])
    except PackageNotFoundError:
        return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Rotate large tests, and skip comparisons with what the installed reference does not have yet.

    The suites of the wheels test every kind of case each time; here ten runs visit all cases of a
    large test function, and three runs all other tests.
    """
    installed = reference_version()
    here = os.path.dirname(__file__)
    own = [item for item in items if str(item.path).startswith(here)]
    sizes = Counter(item.nodeid.partition("[")[0] for item in own)
    for item in own:
        if sizes[item.nodeid.partition("[")[0]] >= LARGE:
            item.add_marker(pytest.mark.rotate(every=10, whole=True))
        else:
            item.add_marker(pytest.mark.rotate(every=3, whole=True))
    if installed is None or installed >= SINCE:
        return
    skip = pytest.mark.skip(reason=f"compares with jax 0.12; jax {version('jax')} is installed")
    for item in own:
        if item.path.stem not in UNCHANGED:
            item.add_marker(skip)


def _clear_both() -> None:
    import jax

    import primax_core

    primax_core.clear_caches()
    jax.clear_caches()


few_executables = forgetting.few_executables(100, _clear_both)
