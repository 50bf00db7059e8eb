"""Configuration of the tests of this wheel, which run on 8 virtual devices of the CPU."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from primax_core import clear_caches, config

config.update("num_cpu_devices", 8)

settings.register_profile(
    "primax", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("primax")

_tests = itertools.count(1)


@pytest.fixture(autouse=True)
def few_executables() -> Iterator[None]:
    """Clear compiled executables periodically, because each uses a memory mapping."""
    yield
    if next(_tests) % 200 == 0:
        clear_caches()
        gc.collect()
