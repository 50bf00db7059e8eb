"""Kernels of an executable, parsed from the text of its optimised HLO."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from .places import Line, Places

_HEAD = re.compile(r"^(ENTRY )?%?([\w.\-]+) (?:\(.*\) -> .*)?\{\s*$")
_BODY = re.compile(r"^\s+(?:ROOT )?%?([\w.\-]+) = (.*)$")
_OPCODE = re.compile(r"^\s*([\w\-]+)\(")
_CALLED = re.compile(
    r"(?:calls|to_apply|body|condition|true_computation|false_computation)=%?([\w.\-]+)"
)
_BRANCHES = re.compile(r"branch_computations=\{([^}]*)\}")
_KIND = re.compile(r"kind=k(\w+)")
_TARGET = re.compile(r'custom_call_target="([^"]*)"')
_FUSION = re.compile(r'"fusion_config":\{"kind":"([^"]*)"')
_NAME = re.compile(r'op_name="([^"]*)"')
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')
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


class _Instruction(NamedTuple):
    name: str
    type: str
    opcode: str
    rest: str


def kernels_of(text: str, places: Places) -> list[Kernel]:
    """The kernels of a module, in the order in which they run, those of loops in place."""
    computations, entry = _parsed(text)
    kernels: list[Kernel] = []
    if entry:
        _visit(entry, computations, places, 1, kernels, set())
    return kernels


def _parsed(text: str) -> tuple[dict[str, list[_Instruction]], str]:
    computations: dict[str, list[_Instruction]] = {}
    entry, now = "", None
    for line in text.splitlines():
        if line[:1] in (" ", "\t"):
            m = _BODY.match(line)
            if m and now is not None:
                now.append(_instruction(m.group(1), m.group(2)))
            continue
        m = _HEAD.match(line)
        if m:
            now = computations[m.group(2)] = []
            entry = m.group(2) if m.group(1) else entry
        else:
            now = None
    return computations, entry


def _instruction(name: str, rest: str) -> _Instruction:
    end = _type_end(rest)
    m = _OPCODE.match(rest[end:])
    return _Instruction(name, rest[:end], m.group(1) if m else "?", rest[end:])


def _type_end(text: str) -> int:
    """Length of the type at the start of a text; it ends at a space outside parentheses."""
    depth = 0
    for i, c in enumerate(text):
        if c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        elif c == " " and depth == 0:
            return i
    return len(text)


def _visit(
    name: str, computations: dict[str, list[_Instruction]], places: Places, times: int | None,
    instructions: list[Kernel], above: set[str],
) -> None:  # fmt: skip
    if name in above:
        return
    for one in computations.get(name, ()):
        called = _called(one)
        if one.opcode == "while":
            m = _TRIPS.search(one.rest)
            inner = None if m is None or times is None else times * int(m.group(1))
            for c in called:
                _visit(c, computations, places, inner, instructions, above | {name})
        elif one.opcode in ("call", "conditional", "async-start"):
            for c in called:
                _visit(c, computations, places, times, instructions, above | {name})
        elif one.opcode not in _NO_KERNEL and not one.opcode.endswith("-done"):
            instructions.append(_kernel(one, called, computations, places, times))


def _called(one: _Instruction) -> list[str]:
    lines = _CALLED.findall(one.rest)
    for group in _BRANCHES.findall(one.rest):
        lines.extend(b.strip().lstrip("%") for b in group.split(","))
    return lines


def _kernel(one, called, computations, places, times) -> Kernel:
    inside = [one]
    if one.opcode == "fusion":
        inside = [i for c in called for i in _all(c, computations)]
    names = [m.group(1) for i in (one, *inside) if (m := _NAME.search(i.rest))]
    numbers = {int(m[-1]) for n in names if (m := MARK.findall(n))}
    lines = [ln for k in sorted(numbers) if (ln := places.numbered(k)) is not None]
    scopes = dict.fromkeys(s for n in names if (s := _scope(n)))
    return Kernel(
        one.name, _kind(one), one.type, dict(Counter(
            i.opcode for i in inside if i.opcode not in _NOT_COUNTED
        )), tuple(scopes), tuple(lines), times,
    )  # fmt: skip


def _all(name: str, computations: dict[str, list[_Instruction]]) -> list[_Instruction]:
    """The instructions of a fused computation, and of fusions within it."""
    fused = []
    for i in computations.get(name, ()):
        if i.opcode == "fusion":
            fused += [j for c in _called(i) for j in _all(c, computations)]
        else:
            fused.append(i)
    return fused


def _scope(name: str) -> str:
    parts = MARK.sub("", name).split("/")[:-1]
    return "/".join(p for p in parts if not p.startswith("jit("))


def _kind(one: _Instruction) -> str:
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
