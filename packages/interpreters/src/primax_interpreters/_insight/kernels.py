"""Kernels of an executable, parsed from the text of its optimised HLO."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from .hlo_text import Instruction, Module
from .places import Line, Places

_KIND = re.compile(r"kind=k(\w+)")
_TARGET = re.compile(r'custom_call_target="([^"]*)"')
_FUSION = re.compile(r'"fusion_config":\{"kind":"([^"]*)"')
MARK = re.compile(r"#(\d+)(?=$|/)")

# They move no data, or are the frame in which others run.
_NO_KERNEL = frozenset(
    "parameter constant tuple get-tuple-element bitcast while call conditional after-all "
    "partition-id replica-id opt-barrier".split()
)
_NOT_COUNTED = frozenset(("parameter", "constant", "tuple", "get-tuple-element", "bitcast"))


class Kernel(NamedTuple):
    """One kernel of an executable.

    Attributes:
      name: XLA's name for it.
      kind: ``loop fusion``, ``custom fusion``, ``custom call`` or the operation.
      result: its type.
      operations: what it computes, with how often, by HLO's names.
      scopes: the named scopes of what it computes.
      lines: the lines of source it comes from.
      times: how often it runs; ``None`` if that is unknown.
    """

    name: str
    kind: str
    result: str
    operations: dict[str, int]
    scopes: tuple[str, ...]
    lines: tuple[Line, ...]
    times: int | None


def kernels_of(module: Module, places: Places) -> list[Kernel]:
    """The kernels of a module, in the order in which they run, those of loops in place."""
    return [
        _kernel(one, one.called, module.computations, places, times)
        for _, one, times in module.executed()
        if one.opcode not in _NO_KERNEL and not one.opcode.endswith("-done")
    ]


def _kernel(one, called, computations, places, times) -> Kernel:
    inside = [one]
    if one.opcode == "fusion":
        inside = [i for c in called for i in _all(c, computations)]
    names = [n for i in (one, *inside) for n in i.op_names[:1]]
    numbers = {int(m[-1]) for n in names if (m := MARK.findall(n))}
    lines = [ln for k in sorted(numbers) if (ln := places.numbered(k)) is not None]
    scopes = dict.fromkeys(s for n in names if (s := _scope(n)))
    return Kernel(
        one.name, _kind(one), one.type, dict(Counter(
            i.opcode for i in inside if i.opcode not in _NOT_COUNTED
        )), tuple(scopes), tuple(lines), times,
    )  # fmt: skip


def _all(name: str, computations: dict[str, list[Instruction]]) -> list[Instruction]:
    """The instructions of a fused computation, and of fusions within it."""
    fused = []
    for i in computations.get(name, ()):
        if i.opcode == "fusion":
            fused += [j for c in i.called for j in _all(c, computations)]
        else:
            fused.append(i)
    return fused


def _scope(name: str) -> str:
    parts = MARK.sub("", name).split("/")[:-1]
    return "/".join(p for p in parts if not p.startswith("jit("))


def _kind(one: Instruction) -> str:
    if one.opcode == "fusion":
        m = _FUSION.search(one.rest)
        if m:
            return f"{m.group(1).strip('_').replace('_fusion', '')} fusion"
        m = _KIND.search(one.rest)
        return f"{m.group(1).lower() if m else 'other'} fusion"
    if one.opcode == "custom-call":
        m = _TARGET.search(one.rest)
        return f"custom call {m.group(1)}" if m else "custom call"
    return one.opcode
