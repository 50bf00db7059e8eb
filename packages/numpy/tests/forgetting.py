"""A fixture for long runs of tests that compile many programs."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest


def few_executables(every: int, *clear: Callable[[], Any]) -> Any:
    """A fixture that forgets compiled programs after every so many tests.

    Each program takes a mapping of memory, of which a process may have 65,530 on Linux; XLA crashes
    when they run out.
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
