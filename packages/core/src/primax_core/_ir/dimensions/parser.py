"""Parser of symbolic shapes and constraints."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from ..symbolic_dims import Dimension, max_dim, min_dim

if TYPE_CHECKING:
    from .scope import SymbolicScope

_TOKEN = re.compile(r"\s*(?:(\d+(?:\.\d*)?)|(\w+)|(\.\.\.|\*\*|//|[-+*^(),%/]|==|<=|>=|\S))")
_OPERATIONS = {
    "floordiv": lambda x, y: x // y,
    "mod": lambda x, y: x % y,
    "max": max_dim,
    "min": min_dim,
}

# Nesting that is parsed, compared and printed within Python's recursion limit.
_DEPTH = 32


class _Parser:
    """Parser of one text; ``like`` are the sizes for placeholders."""

    def __init__(self, text: str, what: str, scope: SymbolicScope, like: Sequence[Any] | None):
        self.text, self.what, self.scope, self.like = text, what, scope, like
        self.tokens: list[tuple[str, str, int]] = []
        for match in _TOKEN.finditer(text):
            group = match.lastindex or 0
            kind = ("number", "name", "sign")[group - 1]
            self.tokens.append((kind, match.group(group), match.start(group)))
        self.tokens.append(("end", "the end", len(text)))
        self.at = 0
        self.depth = 0
        self.dims: list[Any] = []

    def fail(self, expected: str, actual: str | None = None) -> NoReturn:
        kind, text, column = self.tokens[self.at]
        shown = actual or (text if kind == "end" else f"'{text}'")
        where = f" in dimension {len(self.dims)}" if self.what == "symbolic shape" else ""
        raise ValueError(
            f"syntax error in {self.what} '{self.text}'{where}: expected {expected}, found "
            f"{shown}.\n  {self.text}\n  {' ' * column}^"
        )

    def next_is(self, *texts: str) -> bool:
        kind, text, _ = self.tokens[self.at]
        return kind == "sign" and text in texts

    def take(self, text: str) -> bool:
        if self.next_is(text):
            self.at += 1
            return True
        return False

    def expect(self, text: str, expected: str) -> None:
        if not self.take(text):
            self.fail(expected)

    # Shapes

    def shape(self) -> tuple[Any, ...]:
        bracketed = self.take("(")
        closing = "')'" if bracketed else "the end"
        while not (self.next_is(")") if bracketed else self.tokens[self.at][0] == "end"):
            if self.take("..."):
                sizes = self.known_sizes()
                if len(self.dims) > len(sizes):
                    self.at -= 1
                    self.fail(f"at most {len(sizes)} dimensions, as 'like' has")
                self.dims.extend(sizes[len(self.dims) :])
                self.take(",")
                break
            self.dims.append(self.dimension())
            if not self.take(","):
                break
        if bracketed:
            self.expect(")", f"',', an operator or {closing}")
        if self.tokens[self.at][0] != "end":
            self.fail("the end" if bracketed else "',' or an operator")
        return tuple(self.dims)

    def known_sizes(self) -> Sequence[Any]:
        if self.like is None:
            self.at -= 1
            self.fail("a dimension", "a placeholder, though no 'like' shape was given to take from")
        return self.like

    def dimension(self) -> Any:
        i = len(self.dims)
        kind, text, _ = self.tokens[self.at]
        if kind == "name" and text == "_":
            self.at += 1
            sizes = self.known_sizes()
            if i >= len(sizes):
                self.at -= 1
                self.fail(f"at most {len(sizes)} dimensions, as 'like' has")
            if sizes[i] is None:
                self.at -= 1
                self.fail("a dimension", "a placeholder whose size is not known from 'like'")
            return sizes[i]
        start = self.at
        dim = self.expression()
        known = self.like[i] if self.like is not None and i < len(self.like) else None
        if known is not None and not isinstance(dim, Dimension) and dim != known:
            if not isinstance(known, Dimension):
                self.at = start
                self.fail(f"size {known}, that of like={tuple(self.like or ())}")
        return dim

    # Expressions

    def expression(self) -> Any:
        self.take("+")
        total = self.term()
        while self.next_is("+", "-"):
            negative = self.tokens[self.at][1] == "-"
            self.at += 1
            term = self.term()
            total = total - term if negative else total + term
        return total

    def term(self) -> Any:
        value = self.power()
        while self.take("*"):
            value = value * self.power()
        return value

    def power(self) -> Any:
        negative = False
        while self.take("-"):
            negative = not negative
        value = self.positive_power()
        return -value if negative else value

    def positive_power(self) -> Any:
        base = self.atom()
        if self.take("^"):
            kind, text, _ = self.tokens[self.at]
            if kind != "number" or not text.isdigit():
                self.fail("a nonnegative integer exponent")
            if len(text) > 2:  # powers are expanded
                self.fail("an exponent below 100")
            self.at += 1
            exponent = int(text)
            if type(base) is int and abs(base) > 1 and base.bit_length() * exponent > 512:
                self.fail("a smaller power")
            return base**exponent
        return base

    def atom(self) -> Any:
        kind, text, _ = self.tokens[self.at]
        if kind == "number":
            if not text.isdigit():
                self.fail("an integer")
            self.at += 1
            return int(text)
        if kind != "name" or not text.isidentifier():
            self.fail("a dimension variable, a number or '-'")
        self.at += 1
        if not self.next_is("("):
            return self.scope.variable(text)
        operation = _OPERATIONS.get(text)
        if operation is None:
            self.at -= 1
            self.fail("an operation (floordiv, mod, max or min)")
        if self.depth == _DEPTH:
            self.fail(f"at most {_DEPTH} nested operations")
        self.depth += 1
        self.at += 1
        x = self.expression()
        self.expect(",", "',' or an operator")
        y = self.expression()
        self.expect(")", "')' or an operator")
        self.depth -= 1
        return operation(x, y)


def parse_shape(text: str, scope: SymbolicScope, like: Sequence[Any] | None) -> tuple[Any, ...]:
    """The dimensions of a text such as ``"(a, 2*a, ...)"``."""
    return _Parser(text, "symbolic shape", scope, like).shape()


def parse_constraint(text: str, scope: SymbolicScope) -> tuple[Any, str, Any]:
    """The sides of a constraint and the symbol between them."""
    symbol = next((s for s in ("==", ">=", "<=") if s in text), None)
    if symbol is None:
        raise ValueError(
            f"Constraint parsing error: must contain one of '==' or '>=' or '<=': {text!r}"
        )
    sides = []
    for part in text.split(symbol, 1):
        reader = _Parser(part.strip(), "symbolic constraint", scope, None)
        sides.append(reader.expression())
        if reader.tokens[reader.at][0] != "end":
            reader.fail("an operator or the end")
    return sides[0], symbol, sides[1]
