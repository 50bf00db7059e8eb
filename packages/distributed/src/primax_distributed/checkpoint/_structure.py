"""Structure of saved trees: containers, paths of leaves, and matching with a target."""

from __future__ import annotations

import base64
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final

from primax_core import tree_util
from primax_core.extend import NodeSerialization, node_serialization
from primax_core.typing import PyTree

from ._errors import CheckpointMismatchError

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
            **_serialized_class(x),
        }

    return node(tree)


def _serialized_class(x: Any) -> dict[str, str]:
    """The name and the metadata of a node whose class is registered for serialization."""
    entry = node_serialization(type(x))
    if entry is None:
        return {}
    data = tree_util.tree_structure(x, is_leaf=lambda y: y is not x).node_data()
    assert data is not None  # a node
    auxiliary = entry.serialize_auxdata(data[1])
    if not isinstance(auxiliary, (bytes, bytearray)):
        raise TypeError(
            f"serialize_auxdata of {entry.nodetype.__name__} must return bytes, got "
            f"{type(auxiliary).__name__}"
        )
    return {"serialized_name": entry.name, "metadata": base64.b64encode(auxiliary).decode("ascii")}


def decode(node: Any, leaf: Callable[[int], Any]) -> Any:
    """A tree of a structure.

    Classes that are registered for serialization are restored, also ``OrderedDict``; others become
    dicts of their fields.
    """
    if isinstance(node, int):
        return leaf(node)
    if node is None:
        return None
    kind, children = node["kind"], node["children"]
    if kind in ("list", "tuple"):
        values = [decode(c, leaf) for c in children]
        return values if kind == "list" else tuple(values)
    items = [(key, decode(c, leaf)) for key, c in children]
    entry = node_serialization(node.get("serialized_name", ""))
    if entry is not None:
        return _instance(entry, node["metadata"], [value for _, value in items])
    return OrderedDict(items) if kind == "collections.OrderedDict" else dict(items)


def _instance(entry: NodeSerialization, metadata: str, children: list[Any]) -> Any:
    try:
        auxiliary = entry.deserialize_auxdata(base64.b64decode(metadata))
        if entry.from_children is not None:
            return entry.from_children(auxiliary, children)
        leaves = [tree_util.tree_structure(0)] * len(children)
        structure = tree_util.PyTreeDef.from_node_data_and_children(
            tree_util.default_registry, (entry.nodetype, auxiliary), leaves
        )
        return structure.unflatten(children)
    except Exception as e:
        raise CheckpointMismatchError(
            f"a node that was saved as {entry.name!r} cannot be restored as "
            f"{entry.nodetype.__name__}: {type(e).__name__}: {e}"
        ) from e


def unregistered_classes(node: PyTree) -> list[str]:
    """The names of serialized classes in a structure that this process has not registered."""
    name = node.get("serialized_name") if isinstance(node, dict) else None
    own = [name] if name is not None and node_serialization(name) is None else []
    return own + [n for child in _children(node) for n in unregistered_classes(child)]


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
    if isinstance(node, int):
        return [node]
    return [number for child in _children(node) for number in leaves_of(child)]


def _children(node: Any) -> list[Any]:
    if not isinstance(node, dict):
        return []
    children = node["children"]
    return children if node["kind"] in ("list", "tuple") else [child for _, child in children]


def listed(paths: Sequence[Path], limit: int = 5) -> str:
    """Some paths, for a message."""
    texts = [path_text(p) for p in paths[:limit]]
    more = f" and {len(paths) - limit} more" if len(paths) > limit else ""
    return ", ".join(texts) + more
