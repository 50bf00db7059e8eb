"""Test cases of every function, by area. :func:`all_cases` collects them."""

from __future__ import annotations

import importlib
import pkgutil

from test_support import Case as Case
from test_support import case as case


def all_cases() -> list[Case]:
    """The ``CASES`` of every module in this folder."""
    names = sorted(m.name for m in pkgutil.iter_modules(__path__))
    return [c for n in names for c in importlib.import_module(f"{__name__}.{n}").CASES]
