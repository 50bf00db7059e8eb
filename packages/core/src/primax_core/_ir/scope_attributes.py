"""XLA's frontend attributes of operations, as scopes among the names of ``name_stack``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


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
