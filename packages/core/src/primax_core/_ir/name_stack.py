"""Names of operations, from the named scopes and the transformations around them.

An equation's ``ctx`` contains scopes, outermost first. A transformation is a scope whose name ends
in brackets: ``("f", "jvp()", "g")`` is shown as ``f/jvp(g)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

BRACKETS: Final = "()"


class Attributes(str):
    """A scope without a name: XLA's frontend attributes of the operations in it.

    Attributes:
      items: pairs of names and texts; ``None`` as the text removes the attribute of an outer scope.
      inner: the operations of called functions have the attributes too.
    """

    items: tuple[tuple[str, str | None], ...]
    inner: bool

    def __new__(cls, items: tuple[tuple[str, str | None], ...], inner: bool = True) -> Attributes:
        scope = super().__new__(cls, f"attributes{items!r}")
        scope.items, scope.inner = items, inner
        return scope

    def __reduce__(self) -> Any:
        return Attributes, (self.items, self.inner)


def attributes_of(scopes: Sequence[str]) -> dict[str, str]:
    """The frontend attributes of an operation in these scopes.

    >>> attributes_of(("f", Attributes((("a", "1"), ("b", "2"))), Attributes((("a", None),))))
    {'b': '2'}
    """
    attributes: dict[str, str] = {}
    for scope in scopes:
        if isinstance(scope, Attributes):
            for name, text in scope.items:
                attributes.pop(name, None)
                if text is not None:
                    attributes[name] = text
    return attributes


def joined(scopes: Sequence[str]) -> str:
    """The text of scopes: ``f/jvp(g)``. An empty scope ends the transformations before it.

    >>> joined(("f", "transpose()", "jvp()", "g", "h"))
    'f/transpose(jvp(g))/h'
    >>> joined(("jvp()", "", "while"))
    'jvp()/while'
    """
    parts: list[str] = []
    around: list[str] = []  # transformations around the next scope
    for scope in scopes:
        if type(scope) is Attributes:
            continue
        if scope.endswith(BRACKETS):
            around.append(scope[:-2])
        elif scope or around:
            parts.append(_enclosed(scope, around))
            around = []
    if around:
        parts.append(_enclosed("", around))
    return "/".join(parts)


def _enclosed(name: str, transforms: list[str]) -> str:
    for transform in reversed(transforms):
        name = f"{transform}({name})"
    return name


def without_transforms(scopes: Sequence[str]) -> tuple[str, ...]:
    """The scopes that the user named.

    >>> without_transforms(("f", "jvp()", "g"))
    ('f', 'g')
    """
    return tuple([s for s in scopes if not s.endswith(BRACKETS)])


def transposed_scopes(outer: tuple[str, ...], scopes: tuple[str, ...]) -> tuple[str, ...]:
    """The scopes of the transpose of an operation.

    Args:
      outer: the scopes of the transposition.
      scopes: the scopes of the operation.

    >>> transposed_scopes(("a",), ("a", "jvp()", "b"))
    ('a', 'transpose()', 'jvp()', 'b')
    """
    n = 0
    for one, other in zip(outer, scopes):
        if one != other:
            break
        n += 1
    return (*outer, "transpose()", *scopes[n:])
