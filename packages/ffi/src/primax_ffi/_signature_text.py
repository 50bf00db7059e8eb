"""The grammar of signatures in texts and in comments of C and C++ sources.

.. code-block:: text

    declaration := name "(" types [";" attributes] ")" "->" results
    signature   :=          types [";" attributes]     "->" results
    types       := [type {"," type}]              type := "f32[b n]" | "f32"
    attributes  := name ":" kind {"," name ":" kind}
    results     := (type {"," type} | "[" types "]") ["," "aliases" "{" pairs "}"]
    pairs       := operand ":" result {"," operand ":" result}

A single type is a function that returns an array; several, or those in brackets, one that returns
a list.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn, TypeVar

from ._signatures import Signature

T = TypeVar("T")

_TOKEN: Final = re.compile(r"(?P<word>\w+)|(?P<mark>->|[\[\](){},;:])|(?P<other>\S)")
_TYPE: Final = re.compile(r"\w+(?:\s*\[[^\[\](){};:>]*\])?")
_DECLARATION: Final = re.compile(r"(?://|/\*|^\s*\*)[/!*<\s]*primax:")
_LINE: Final = re.compile(r"\s*//[/!]*\s*")
_IN_BLOCK: Final = re.compile(r"\s*(?:\*(?!/)\s*)?")
_GOES_ON: Final = (",", ";", "->", ":", "(", "[", "{")


class _Line(NamedTuple):
    """A part of a text, and its position in a file.

    Attributes:
      start: the offset in the text.
      number: of the line in the file.
      column: of the part in the line.
      line: the whole line.
    """

    start: int
    number: int
    column: int
    line: str


class _Token(NamedTuple):
    text: str
    is_word: bool
    start: int


class _Source(NamedTuple):
    """A text with a signature.

    Attributes:
      name: the file; ``None`` for a text in Python.
      lines: the lines of the text; a declaration may occupy several.
    """

    text: str
    name: str | None
    lines: list[_Line]

    def error(self, at: int, problem: str) -> NoReturn:
        """Raise the error of a position, with its line and a caret."""
        line = [x for x in self.lines if x.start <= at][-1]
        column = min(line.column + at - line.start, len(line.line))
        where = "signature" if self.name is None else f"{self.name}:{line.number}"
        text = line.line.replace("\t", " ")
        raise ValueError(f"{where}: {problem}\n  {text}\n  {' ' * column}^")


def signature_of_text(text: str) -> Signature:
    """The signature that a text such as ``"f32[b n], f32[n]; eps: f32 -> f32[b n]"`` describes.

    Raises:
      ValueError: with the position, if the text has another form.
    """
    lines: list[_Line] = []
    for i, line in enumerate(text.split("\n")):
        lines.append(_Line(sum(len(x.line) + 1 for x in lines), i + 1, 0, line))
    return _Parser(_Source(text, None, lines)).signature()


def as_signature(value: Any, what: str) -> Signature:
    """A signature or the text of one.

    Raises:
      TypeError, ValueError: for other values.
    """
    if isinstance(value, str):
        return signature_of_text(value)
    if not isinstance(value, Signature):
        raise TypeError(f"{what} is {value!r}, not a Signature or the text of one")
    return value


def declared_signatures(source: str | os.PathLike[str]) -> dict[str, Signature]:
    """The signatures that the comments of a C or C++ source declare.

    Args:
      source: a file, or its text, which contains ``primax:``.

    Raises:
      OSError: if the file cannot be read.
      ValueError: with the file and the line, for an invalid declaration, a repeated one, and a
        source without declarations.
    """
    if isinstance(source, str) and "primax:" in source:
        name, text = "signatures", source
    else:
        name = os.fspath(source)
        try:
            text = Path(source).read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{name} with signatures is not a text in UTF-8 ({error}): pass a C or C++ header"
            ) from None
    declared: dict[str, tuple[Signature, int]] = {}
    for declaration in _declarations(name, text):
        target, signature = _Parser(declaration).declaration()
        number = declaration.lines[0].number
        if declared.setdefault(target, (signature, number))[0] != signature:
            declaration.error(0, f"{target!r} has another signature in line {declared[target][1]}")
    if not declared:
        raise ValueError(
            f"{name} contains no signatures: declare each function in a comment such as\n"
            "  // primax: acme_norm(f32[b n]; eps: f32) -> f32[b n]"
        )
    return {target: signature for target, (signature, _) in declared.items()}


def _declarations(name: str, text: str) -> list[_Source]:
    """The declarations of a source. One goes on in the next line where it cannot end."""
    declarations = []
    lines = text.splitlines()
    i = 0
    while i < len(lines):
        match = _DECLARATION.search(lines[i])
        if match is None:
            i += 1
            continue
        column, joined, parts = match.end(), "", []
        while True:
            part = lines[i][column:].split("*/")[0].rstrip()
            parts.append(_Line(len(joined), i + 1, column, lines[i]))
            joined += part + "\n"
            closed = "*/" in lines[i][column:]
            i += 1
            if closed or i == len(lines) or not _is_open(joined):
                break
            following = (_LINE if "//" in match[0] else _IN_BLOCK).match(lines[i])
            if following is None:  # code
                break
            column = following.end()
        declarations.append(_Source(joined, name, parts))
    return declarations


def _is_open(text: str) -> bool:
    """Return True if a declaration cannot end after a text."""
    brackets = sum((c in "([{") - (c in ")]}") for c in text)
    stripped = text.rstrip()
    return brackets > 0 or "->" not in text or stripped.endswith(_GOES_ON)


class _Parser:
    """A parser by recursive descent of one signature."""

    def __init__(self, source: _Source) -> None:
        self._source = source
        self._tokens = [
            _Token(m[0], m.lastgroup == "word", m.start()) for m in _TOKEN.finditer(source.text)
        ]
        self._tokens.append(_Token("", False, len(source.text.rstrip())))
        self._next = 0

    def declaration(self) -> tuple[str, Signature]:
        """The name of a function and its signature."""
        name = self._word("the name of a function")
        self._expect("(", "before the types of the operands")
        signature = self._rest(")", "after the operands and attributes")
        return name, signature

    def signature(self) -> Signature:
        """A signature without the name of a function."""
        return self._rest("->", "before the types of the results")

    def _rest(self, end: str, why: str) -> Signature:
        start = self._token.start
        args = [] if self._token.text in (end, ";") else self._several(self._type)
        attributes: dict[str, str] = {}
        if self._take(";"):
            self._several(lambda: self._attribute(attributes))
        self._expect(end, why)
        if end != "->":
            self._expect("->", "before the types of the results")
        results: Any
        if self._take("["):
            results = [] if self._token.text == "]" else self._several(self._type)
            self._expect("]", "after the types of the results")
        else:
            results = self._several(self._type, before="aliases")
            results = results if len(results) > 1 else results[0]
        aliases: dict[int, int] = {}
        if self._take(","):
            self._aliases(aliases)
        if self._token.text:
            self._error(f"{self._token.text!r} is not expected here")
        try:
            return Signature(args, results, attributes, aliases)
        except (TypeError, ValueError) as error:
            self._source.error(start, str(error))

    def _type(self) -> str:
        token = self._token
        match = _TYPE.match(self._source.text, token.start)
        if match is None or not token.is_word:
            self._error("the type of an array is expected, such as f32[b n]")
        while self._token.start < match.end() and self._token.text:
            self._next += 1
        if self._token.text == "[":
            self._error("the sizes of an array lack the closing ']'")
        text = match[0].replace("\n", " ")
        return self._checked(lambda: Signature([text], []), token, text)

    def _attribute(self, attributes: dict[str, str]) -> None:
        token = self._token
        name = self._word("the name of an attribute")
        if name in attributes:
            self._source.error(token.start, f"the attribute {name!r} is declared twice")
        self._expect(":", "between the name of an attribute and its type")
        at = self._token
        kind = self._word("the type of an attribute, such as f32")
        if self._take("["):
            self._expect("]", "after the dtype of an array")
            kind += "[]"
        attributes[name] = self._checked(lambda: Signature([], [], {name: kind}), at, kind)

    def _aliases(self, aliases: dict[int, int]) -> None:
        if self._token.text != "aliases":
            self._error("the type of a result, or aliases {operand: result}, is expected")
        self._next += 1
        self._expect("{", "before the aliases")

        def pair() -> None:
            operand = self._number("an operand")
            self._expect(":", "between an operand and a result")
            aliases[operand] = self._number("a result")

        self._several(pair)
        self._expect("}", "after the aliases")

    # Tokens

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next]

    def _take(self, text: str) -> bool:
        if self._token.text != text:
            return False
        self._next += 1
        return True

    def _expect(self, text: str, why: str) -> None:
        if not self._take(text):
            self._error(f"{text!r} is expected {why}")

    def _word(self, what: str) -> str:
        token = self._token
        if not token.is_word or not token.text.isidentifier():
            self._error(f"{what} is expected")
        self._next += 1
        return token.text

    def _number(self, what: str) -> int:
        text = self._token.text
        if not text.isdecimal():
            self._error(f"the number of {what} is expected")
        self._next += 1
        return int(text)

    def _several(self, parse: Callable[[], T], before: str | None = None) -> list[T]:
        """Parts separated by commas, up to one before a word."""
        parts = [parse()]
        while self._token.text == ",":
            if before is not None and self._tokens[self._next + 1].text == before:
                break
            self._next += 1
            parts.append(parse())
        return parts

    def _checked(self, make: Callable[[], Any], token: _Token, value: str) -> str:
        """A part that is valid in a signature."""
        try:
            make()
        except (TypeError, ValueError) as error:
            self._source.error(token.start, str(error))
        return value

    def _error(self, problem: str) -> NoReturn:
        self._source.error(self._token.start, problem)
