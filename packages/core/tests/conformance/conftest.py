"""An option for runs that try one sample of each primitive instead of all."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("samples") == "all":
        return
    later = [i for i in items if getattr(i, "callspec", None) and i.callspec.params.get("index")]
    config.hook.pytest_deselected(items=later)
    items[:] = [i for i in items if i not in set(later)]
