"""Backward passes that return logs: ``vjp(...)[1].with_logs(...)``."""

from __future__ import annotations

import copy
from functools import partial
from typing import TYPE_CHECKING, Any

from .._engine.backward_logs import collecting, has_logs, inlined
from .._transform.transpose import transposed_once

if TYPE_CHECKING:
    from .vjp import VJP


def run_with_logs(
    pullback: VJP, out_ct: Any, entries: list[Any] | None
) -> tuple[Any, dict[str, Any]]:
    """The cotangents of a pullback's arguments, and the logs of its backward rules."""
    tape = []
    for node in pullback._tape:
        if node.backward is None and has_logs(node.jaxpr):
            node = copy.copy(node)
            node.backward = partial(transposed_once, inlined(node.jaxpr))
        tape.append(node)
    pullback = copy.copy(pullback)
    pullback._tape = tape
    with collecting() as collection:
        cotangents = pullback._apply(out_ct, entries)
    return cotangents, collection.logs
