"""Evaluation."""

from primax._adapters.primitives import apply_primitive as apply_primitive
from primax_core import effects_barrier as _effects_barrier


def wait_for_tokens() -> None:
    """Wait for the effects of all executions that have started."""
    _effects_barrier()
