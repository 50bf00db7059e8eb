"""The core's suite runs without jax: an import of it, by us or by jaxlib for us, fails the test."""

from __future__ import annotations

import os
from collections.abc import Iterator

import no_jax
import pytest
from hypothesis import HealthCheck, settings

no_jax.install()

# Moves between devices are tested too; read when the library is imported.
os.environ.setdefault("PRIMAX_NUM_CPU_DEVICES", "4")

settings.register_profile(
    "primax", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("primax")


@pytest.fixture(autouse=True)
def nothing_imports_jax() -> Iterator[None]:
    """Fails the test during which jax was asked for, even where the caller swallowed the error."""
    before = len(no_jax.attempts)
    yield
    if len(no_jax.attempts) > before:
        pytest.fail("\n\n".join(no_jax.attempts[before:]), pytrace=False)
