"""Evaluation of a case with Primax, the reference, or NumPy and SciPy."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

import numpy as np

from .case import Case

LIBRARIES: Final = ("primax", "jax", "numpy, scipy")


def available() -> list[str]:
    """Libraries that can be imported; Primax is always the first."""
    found = ["primax"]
    for name, needed in (("jax", "jax"), ("numpy, scipy", "scipy")):
        with contextlib.suppress(ImportError):
            import_module(needed)
            found.append(name)
    return found


def computed(library: str, case: Case, operands: Sequence[np.ndarray]) -> Any:
    """Result of a library for arrays of one dtype; ``None`` if it lacks the function."""
    if library == "jax" and case.slow:
        return None
    if library == "numpy, scipy":
        if not case.peer:
            return None
        path = case.name
    else:
        path = f"{library}.{case.name}"
    try:
        fun = _resolved(path)
    except (ImportError, AttributeError):
        if library == "primax":
            raise
        return None
    with _in_64_bits(library), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        out = fun(*operands, **case.keywords)
        return np.real(np.asarray(out if case.pick is None else out[case.pick]))


def _resolved(path: str) -> Any:
    """The attribute of a module, or of an object of a module such as ``scipy.stats.gamma``."""
    module, _, name = path.rpartition(".")
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError:
        return getattr(_resolved(module), name)


def _in_64_bits(library: str) -> Any:
    if library == "numpy, scipy":
        return contextlib.nullcontext()
    return import_module(library).enable_x64(True)
