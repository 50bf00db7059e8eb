"""Error classes: those of the core, two of them also under the reference's names."""

from __future__ import annotations

from primax_core.errors import *  # noqa: F403
from primax_core.errors import PrimaxIndexError as _IndexError, PrimaxTypeError as _TypeError

JAXIndexError = _IndexError
JAXTypeError = _TypeError
