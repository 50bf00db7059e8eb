"""The parameters of a function in the text that Triton's front end prints."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from . import types
from .errors import TritonError

_HEADER: Final = re.compile(r"tt\.func public @([\w.$-]+)\(")


def rewritten(
    text: str, names: Sequence[str], order: Sequence[str], unused: Mapping[str, Any],
    constants: Mapping[str, Any],
) -> tuple[str, str]:  # fmt: skip
    """The name and text of a module whose function has other parameters.

    XLA passes pointers to the operands, then to the results, in one order.

    Args:
      text: a module with one public function.
      names: names of its parameters, which the text may lack.
      order: names of the parameters in the new order.
      unused: dtypes of the names in ``order`` that the function lacks.
      constants: values of parameters that are none of the new function.

    Raises:
      TritonError: if the text has another form.
    """
    match = _HEADER.search(text)
    if match is None:
        raise TritonError("the text of Triton's front end has no public function")
    end = _closing(text, match.end())
    listed = _split(text[match.end() : end])
    if len(listed) != len(names) or {*names} | {*unused} != {*order} | {*constants}:
        raise TritonError(
            f"the function {match[1]} has {len(listed)} parameters, expected {', '.join(names)}"
        )
    by_name = dict(zip(names, listed))
    parameters = [
        f"%{n}: !tt.ptr<{types.in_memory(unused[n])}>" if n in unused else by_name[n] for n in order
    ]
    body = text.index("{\n", _after_attributes(text, end)) + 2
    lines = [_constant(by_name[n], value) for n, value in constants.items()]
    head = text[: match.end()] + ", ".join(parameters) + text[end:body]
    return match[1], head + "".join(lines) + text[body:]


def _constant(parameter: str, value: Any) -> str:
    """The definition of a scalar parameter as a constant."""
    name, _, rest = parameter.partition(":")
    kind = rest.split()[0]
    dtype = next((d for d, e in types.ELEMENTS.items() if e == kind), None)
    if dtype is None:
        raise TritonError(f"the parameter {name} of type {kind} is no scalar")
    if kind == "i1":
        return f"    {name} = arith.constant {'true' if value else 'false'}\n"
    return f"    {name} = arith.constant {types.literal(value, np.dtype(dtype))} : {kind}\n"


def _after_attributes(text: str, end: int) -> int:
    """The position after ``attributes {...}`` of a function, if there are any."""
    match = re.compile(r"\)\s*attributes\s*\{").match(text, end)
    return end if match is None else _closing(text, match.end())


def _closing(text: str, start: int) -> int:
    """The position of the bracket that closes one before ``start``."""
    depth = 1
    for i, c in _unquoted(text, start):
        depth += (c in "([{<") - (c in ")]}>" and text[i - 1] != "-")
        if depth == 0:
            return i
    raise TritonError("the text of Triton's front end has brackets that are not closed")


def _split(text: str) -> list[str]:
    """The parts between commas outside of brackets."""
    parts, start, depth = [], 0, 0
    for i, c in _unquoted(text, 0):
        depth += (c in "([{<") - (c in ")]}>")
        if c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    return [p for p in (*parts, text[start:].strip()) if p]


def _unquoted(text: str, start: int) -> Iterator[tuple[int, str]]:
    """Positions and characters outside of quotation marks."""
    quoted = False
    i = start
    while i < len(text):
        if text[i] == "\\" and quoted:
            i += 1
        elif text[i] == '"':
            quoted = not quoted
        elif not quoted:
            yield i, text[i]
        i += 1
