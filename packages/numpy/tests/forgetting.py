"""Fixture that clears compiled executables in long test runs."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest


def few_executables(every: int, *clear: Callable[[], Any]) -> Any:
    """A fixture that clears compiled executables after every ``interval`` tests.

    Each executable uses a memory mapping. Linux limits a process to 65,530 of them, and XLA
    crashes beyond.
    """
    tests = itertools.count(1)

    @pytest.fixture(autouse=True)
    def forget() -> Iterator[None]:
        yield
        if next(tests) % every == 0:
            for forget_all in clear:
                forget_all()
            gc.collect()

    return forget
