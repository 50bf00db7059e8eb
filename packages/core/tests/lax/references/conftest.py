"""Checks of every jaxpr that these tests create."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import primax_core as px


@pytest.fixture(autouse=True)
def checked_programs() -> Iterator[None]:
    with px.enable_checks(True):
        yield
