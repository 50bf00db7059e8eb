"""Configuration of the tests of this wheel."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "primax", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("primax")
