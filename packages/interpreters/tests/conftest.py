"""Settings of this wheel's tests, which run with only its declared dependencies installed."""

from __future__ import annotations

import gc
import itertools
import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# Several CPU devices, for views of shardings; read when the devices are first used.
os.environ.setdefault("PRIMAX_NUM_CPU_DEVICES", "4")

from primax_core import clear_caches

settings.register_profile(
    "primax", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("primax")

_tests = itertools.count(1)


@pytest.fixture(autouse=True)
def few_executables() -> Iterator[None]:
    """Forget compiled programs now and then, each of which takes a mapping of memory."""
    yield
    if next(_tests) % 200 == 0:
        clear_caches()
        gc.collect()
