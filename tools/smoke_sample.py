"""A pytest plugin that runs a few tests of each module, evenly spread: ``-p smoke_sample``."""

from __future__ import annotations

from itertools import groupby
from typing import Final

import pytest

PER_MODULE: Final = 10


def spread(count: int, most: int = PER_MODULE) -> set[int]:
    """At most ``most`` of the numbers below ``count``, the first among them."""
    return {i * count // most for i in range(most)} if count > most else set(range(count))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselects all other tests."""
    chosen: list[pytest.Item] = []
    others: list[pytest.Item] = []
    for _, group in groupby(items, key=lambda item: item.path):
        module = list(group)
        indices = spread(len(module))
        for i, item in enumerate(module):
            (chosen if i in indices else others).append(item)
    config.hook.pytest_deselected(items=others)
    items[:] = chosen
