"""Settings of this wheel's tests, which run with only its declared dependencies installed."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from primax_core import clear_caches

settings.register_profile(
    "primax", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("primax")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--without-derivatives",
        action="store_true",
        help="do not compare derivatives with differences, which do not depend on jaxlib",
    )


EVERY = 200
_done = 0


@pytest.fixture(autouse=True)
def few_executables() -> Iterator[None]:
    """Forget compiled programs now and then: each takes a mapping of memory, of which a process may
    have 65,530 on Linux; XLA crashes when they run out."""
    yield
    global _done
    _done += 1
    if _done % EVERY == 0:
        clear_caches()
        gc.collect()
