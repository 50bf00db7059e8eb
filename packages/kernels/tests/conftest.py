"""Settings of this wheel's tests, which run with only its declared dependencies installed."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Iterator

import pytest

from primax_core import clear_caches

_tests = itertools.count(1)


@pytest.fixture(autouse=True)
def few_executables() -> Iterator[None]:
    """Clear compiled executables periodically, because each uses a memory mapping."""
    yield
    if next(_tests) % 200 == 0:
        clear_caches()
        gc.collect()
