"""Configuration of the tests of this wheel, which run with only its declared dependencies."""

from __future__ import annotations

import forgetting
from hypothesis import HealthCheck, settings

from primax_core import clear_caches

settings.register_profile(
    "primax", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("primax")


few_executables = forgetting.few_executables(200, clear_caches)
