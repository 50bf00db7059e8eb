"""Names of operations, from the named scopes and the transformations around them.

An equation's ``ctx`` contains scopes, outermost first. A transformation is a scope whose name ends
in brackets: ``("f", "jvp()", "g")`` is shown as ``f/jvp(g)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

BRACKETS: Final = "()"


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
        if type(scope) is not str:  # ``Attributes``
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
