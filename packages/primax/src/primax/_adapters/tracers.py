"""Forward mode's tracers, as code written for JAX knows them."""

from __future__ import annotations

from typing import Any

from primax_core.extend import JVPTrace as JVPTrace, JVPTracer as JVPTracer, Trace


def _main(self: Any) -> Any:
    """What is the same for all tracers of one run of a transformation: their trace."""
    return self


if not hasattr(Trace, "main"):
    setattr(Trace, "main", property(_main))  # noqa: B010 - not in its stub
