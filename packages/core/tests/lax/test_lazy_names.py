"""Names of ``lax`` whose modules are imported on first use."""

from __future__ import annotations

import pytest

from primax_core import lax


@pytest.mark.parametrize("name", sorted(lax._MODULE_OF))
def test_lazy_names_resolve(name: str) -> None:
    assert getattr(lax, name) is not None
