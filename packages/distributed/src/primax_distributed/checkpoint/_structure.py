"""Structure of saved trees: containers, paths of leaves, and matching with a target."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final

from primax_core import tree_util

Path = tuple[Any, ...]
"""Position of a leaf: a key of a dict, an index, or the name of a field for each node above it."""

ABSENT: Final = object()


def path_of(keys: Sequence[Any]) -> Path:
    """A path without the kinds of nodes, so that a dict can be restored as a class."""
    return tuple([_entry(k) for k in keys])


def _entry(key: Any) -> Any:
    for attribute in ("key", "idx", "name"):
        if hasattr(key, attribute):
            value = getattr(key, attribute)
            return value if type(value) in (str, int) else repr(value)
    return repr(key)


def path_text(path: Path) -> str:
    """``['layers'][0]['w']``; ``the root`` for a tree that is a leaf.

    >>> path_text(("layers", 0))
    "['layers'][0]"
    """
    return "".join(f"[{entry!r}]" for entry in path) or "the root"


def encode(tree: Any) -> Any:
    """The containers of a tree as JSON; leaves are numbered in the order of ``tree_leaves``."""
    counter = iter(range(len(tree_util.tree_leaves(tree))))

    def node(x: Any) -> Any:
        if tree_util.all_leaves([x]):
            return next(counter)
        if x is None:
            return None
        items, _ = tree_util.tree_flatten_with_path(x, is_leaf=lambda y: y is not x)
        children = [[_entry(keys[0]), node(child)] for keys, child in items]
        if type(x) in (list, tuple):
            return {"kind": type(x).__name__, "children": [c for _, c in children]}
        if isinstance(x, dict) and type(x) is not OrderedDict:
            return {"kind": "dict", "children": children}
        return {
            "kind": f"{type(x).__module__}.{type(x).__qualname__}",
            "children": children,
        }

    return node(tree)


def decode(node: Any, leaf: Callable[[int], Any]) -> Any:
    """A tree of a structure. Classes other than ``OrderedDict`` become dicts of their fields."""
    if isinstance(node, int):
        return leaf(node)
    if node is None:
        return None
    kind, children = node["kind"], node["children"]
    if kind in ("list", "tuple"):
        values = [decode(c, leaf) for c in children]
        return values if kind == "list" else tuple(values)
    items = [(key, decode(c, leaf)) for key, c in children]
    return OrderedDict(items) if kind == "collections.OrderedDict" else dict(items)


def below(node: Any, path: Path) -> Any:
    """The part of a structure at a path, or :data:`ABSENT`."""
    for entry in path:
        if not isinstance(node, dict):
            return ABSENT
        if node["kind"] in ("list", "tuple"):
            inside = isinstance(entry, int) and 0 <= entry < len(node["children"])
            node = node["children"][entry] if inside else ABSENT
        else:
            node = next((child for key, child in node["children"] if key == entry), ABSENT)
    return node


def leaves_of(node: Any) -> list[int]:
    """The numbers of the leaves of a part of a structure."""
    numbers: list[int] = []
    decode(node, numbers.append)
    return numbers


def listed(paths: Sequence[Path], limit: int = 5) -> str:
    """Some paths, for a message."""
    texts = [path_text(p) for p in paths[:limit]]
    more = f" and {len(paths) - limit} more" if len(paths) > limit else ""
    return ", ".join(texts) + more
