"""Parsed text of optimised HLO modules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_HEAD = re.compile(r"^(ENTRY )?%?([\w.\-]+) (?:\(.*\) -> .*)?\{\s*$")
_BODY = re.compile(r"^\s+(?:ROOT )?%?([\w.\-]+) = (.*)$")
_OPCODE = re.compile(r"^\s*([\w\-]+)\(")
_CALLED = re.compile(
    r"(?:calls|to_apply|body|condition|true_computation|false_computation)=%?([\w.\-]+)"
)
_BRANCHES = re.compile(r"branch_computations=\{([^}]*)\}")
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')
_NAME = re.compile(r'op_name="([^"]*)"')

_ASYNC = ("call", "conditional", "async-start")


class Instruction(NamedTuple):
    """An instruction: its name, its type, its opcode, and the text from the opcode on."""

    name: str
    type: str
    opcode: str
    rest: str

    @property
    def op_names(self) -> list[str]:
        """The names of the operations that it was made from."""
        return _NAME.findall(self.rest)

    @property
    def called(self) -> list[str]:
        """The names of the computations that it calls."""
        names: list[str] = _CALLED.findall(self.rest)
        for group in _BRANCHES.findall(self.rest):
            names.extend(b.strip().lstrip("%") for b in group.split(","))
        return names

    @property
    def operands(self) -> list[str]:
        """The names of its operands."""
        begin = self.rest.find("(") + 1
        inside = self.rest[begin : begin + end_of(self.rest[begin:], ")")]
        parts = [p.strip() for p in split(inside)]
        return [p.rpartition(" ")[2].lstrip("%") for p in parts if p]


class Module(NamedTuple):
    """The computations of a module by name, and the name of the first one."""

    computations: dict[str, list[Instruction]]
    entry: str

    def executed(self) -> Iterator[tuple[str, Instruction, int | None]]:
        """The instructions in the order of execution, those of loops in place.

        Yields:
          The computation, the instruction, and how often it runs; ``None`` if that is unknown.
        """
        if self.entry:
            yield from self._executed(self.entry, 1, frozenset())

    def _executed(
        self, name: str, times: int | None, above: frozenset[str]
    ) -> Iterator[tuple[str, Instruction, int | None]]:
        if name in above:
            return
        above |= {name}
        for one in self.computations.get(name, ()):
            if one.opcode == "while":
                m = _TRIPS.search(one.rest)
                inner = None if m is None or times is None else times * int(m.group(1))
                for c in one.called:
                    yield from self._executed(c, inner, above)
            elif one.opcode in _ASYNC:
                for c in one.called:
                    yield from self._executed(c, times, above)
            else:
                yield name, one, times


def parsed(text: str) -> Module:
    """The computations of the text of a module, or of several."""
    computations: dict[str, list[Instruction]] = {}
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
    return Module(computations, entry)


def _instruction(name: str, rest: str) -> Instruction:
    end = end_of(rest, " ")
    m = _OPCODE.match(rest[end:])
    return Instruction(name, rest[:end], m.group(1) if m else "?", rest[end:])


def end_of(text: str, last: str) -> int:
    """Position of a character outside of brackets; the length of the text if there is none."""
    depth = 0
    for i, c in enumerate(text):
        if c == last and depth == 0:
            return i
        if c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
    return len(text)


def split(text: str) -> list[str]:
    """The parts between commas outside of brackets."""
    parts = []
    while text:
        end = end_of(text, ",")
        parts.append(text[:end])
        text = text[end + 1 :]
    return parts
