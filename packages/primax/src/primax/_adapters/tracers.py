"""Forward-mode tracers in the reference's convention."""

from __future__ import annotations

from typing import Any

from primax_core.extend import JVPTrace as JVPTrace, JVPTracer as JVPTracer, Trace


def _main(self: Any) -> Any:
    """Shared state of all tracers of one transformation run: their trace."""
    return self


if not hasattr(Trace, "main"):
    setattr(Trace, "main", property(_main))  # noqa: B010 - not in its stub
