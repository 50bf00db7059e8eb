"""Tree structures in artifacts, and the registration of their classes for serialization."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from primax_core import tree_util
from primax_core.errors import InvalidArtifactError
from primax_core.extend import (
    NodeSerialization,
    node_serialization,
    register_node_serialization,
)

from .tables import DEPTH, Table, damaged, write_refs, write_strings, write_table

_C = TypeVar("_C", bound=type)

LEAF, NONE, TUPLE, LIST, DICT, REGISTERED = range(6)
_BUILTIN: Final = {type(None): NONE, tuple: TUPLE, list: LIST, dict: DICT}
_TYPES: Final = {kind: t for t, kind in _BUILTIN.items()}
# Fields of a node.
_KIND, _NAME, _KEYS, _AUX, _CHILDREN = range(5)


def register_pytree_node_serialization(
    nodetype: _C,
    *,
    serialized_name: str,
    serialize_auxdata: Callable[[Any], bytes],
    deserialize_auxdata: Callable[[bytes], Any],
    from_children: Callable[[Any, Any], Any] | None = None,
) -> _C:
    """Register a tree node class for serialization in the arguments and results of functions.

    Args:
      nodetype: a class registered with `primax.tree_util.register_pytree_node` or similar.
      serialized_name: its name in artifacts, which must not change when the class is moved.
      serialize_auxdata: from a node's metadata to bytes.
      deserialize_auxdata: from such bytes to the metadata. The bytes may come from an untrusted
        source (do not use ``pickle``).
      from_children: from metadata and children to a node; by default the registered function.

    Returns:
      The class. The process that reads an artifact must register it too.

    Raises:
      ValueError: if the class or the name is already registered.

    >>> from primax_core import tree_util
    >>> from primax_interpreters import export
    >>> class Box:
    ...     def __init__(self, x):
    ...         self.x = x
    >>> tree_util.register_pytree_node(Box, lambda b: ((b.x,), None), lambda _, xs: Box(*xs))
    >>> _ = export.register_pytree_node_serialization(
    ...     Box,
    ...     serialized_name="docs.Box",
    ...     serialize_auxdata=lambda aux: b"",
    ...     deserialize_auxdata=lambda data: None,
    ... )
    """
    if from_children is None and not tree_util.is_tree_node(nodetype):
        raise ValueError(
            f"{nodetype} is not registered as a tree node: call tree_util.register_pytree_node "
            "first, or pass from_children"
        )
    register_node_serialization(
        NodeSerialization(
            nodetype, serialized_name, serialize_auxdata, deserialize_auxdata, from_children
        )
    )
    return nodetype


def register_namedtuple_serialization(nodetype: _C, *, serialized_name: str) -> _C:
    """Register a named tuple for serialization in the arguments and results of functions.

    Returns:
      The class.

    Raises:
      ValueError: if it is not a named tuple, or the class or the name is already registered.

    >>> from collections import namedtuple
    >>> Point = namedtuple("Point", "x y")
    >>> register_namedtuple_serialization(Point, serialized_name="docs.Point").__name__
    'Point'
    """
    if not _is_namedtuple(nodetype):
        raise ValueError(
            f"{nodetype} is not a named tuple. Use register_pytree_node_serialization for classes "
            "other than those of collections.namedtuple."
        )
    register_node_serialization(
        NodeSerialization(
            nodetype, serialized_name, _fields_of(nodetype), _check_fields(nodetype), None
        )
    )
    return nodetype


def _is_namedtuple(nodetype: Any) -> bool:
    fields = getattr(nodetype, "_fields", None)
    return isinstance(nodetype, type) and issubclass(nodetype, tuple) and isinstance(fields, tuple)


def _fields_of(nodetype: Any) -> Callable[[Any], bytes]:
    return lambda aux: "\0".join(nodetype._fields).encode()


def _check_fields(nodetype: Any) -> Callable[[bytes], None]:
    def check(data: bytes) -> None:
        if data != _fields_of(nodetype)(None):
            fields = data.decode("utf-8", "replace").split("\0")
            raise ValueError(f"it was written with the fields {', '.join(fields)}")

    return check


# Keys of dictionaries: strings and integers, distinguished by a prefix letter.


def _key_text(key: Any) -> str:
    if type(key) is str:
        return "s" + key
    if type(key) is int:
        return f"i{key}"
    raise TypeError(
        "Serialization is supported only for dictionaries with string or integer keys. Found key "
        f"{key!r} of type {type(key)}."
    )


def _key_of(text: str) -> Any:
    if text[:1] == "s":
        return text[1:]
    if text[:1] == "i" and len(text) < 4000:
        try:
            return int(text[1:])
        except ValueError:
            pass
    damaged(f"{text[:40]!r} is not a key of a dictionary")


_ORDERED: Final = "collections.OrderedDict"


# Writing


def write_tree(b: Any, tree: Any, depth: int = 0) -> int:
    """Write a tree structure; return its reference.

    Raises:
      ValueError, TypeError: for nodes that cannot be serialized.
    """
    if depth > DEPTH - 10:
        raise ValueError("trees nested deeper than 290 levels cannot be serialized")
    data = tree.node_data()
    if data is None:
        return write_table(b, [(_KIND, "u8", LEAF)])
    nodetype, aux = data
    children = [write_tree(b, c, depth + 1) for c in tree.children()]
    refs = write_refs(b, children) if children else None
    kind, name, keys, text = _BUILTIN.get(nodetype, REGISTERED), None, None, None
    if kind == DICT or nodetype is OrderedDict:
        keys = write_strings(b, [_key_text(k) for k in aux])
    if nodetype is OrderedDict:
        name = b.CreateString(_ORDERED)
    elif kind == REGISTERED:
        entry = _entry(nodetype)
        name = b.CreateString(entry.name)
        text = b.CreateByteVector(_auxiliary(entry, aux))
    return write_table(b, [
        (_KIND, "u8", kind), (_NAME, "ref", name), (_KEYS, "ref", keys), (_AUX, "ref", text),
        (_CHILDREN, "ref", refs),
    ])  # fmt: skip


def _entry(nodetype: type) -> NodeSerialization:
    entry = node_serialization(nodetype)
    if entry is None:
        raise ValueError(
            f"Cannot serialize PyTreeDef containing an unregistered type `{nodetype}`. Use "
            "`export.register_pytree_node_serialization` or "
            "`export.register_namedtuple_serialization`."
        )
    return entry


def _auxiliary(entry: NodeSerialization, aux: Any) -> bytes:
    data = entry.serialize_auxdata(aux)
    if not isinstance(data, (bytes, bytearray)):
        raise ValueError(
            f"The function serialize_auxdata of {entry.nodetype} must return bytes. It returned a "
            f"{type(data)}."
        )
    return bytes(data)


# Reading


def read_tree(table: Table | None) -> Any:
    """The tree structure in a table.

    Raises:
      InvalidArtifactError: if it is invalid, or contains an unregistered class.
    """
    if table is None:
        damaged("a tree is missing")
    kind = table.number(_KIND, "u8", LEAF)
    children = [read_tree(t) for t in table.tables(_CHILDREN)]
    if kind in (LEAF, NONE) and children:
        damaged("a leaf has children")
    if kind == LEAF:
        return _make(None, children)
    if kind == DICT:
        keys = _keys(table, children)
        try:
            in_order = keys == sorted(set(keys))
        except TypeError:
            in_order = False
        if not in_order:
            damaged("the keys of a dictionary are out of order")
        return _make((dict, keys), children)
    if kind in _TYPES:
        return _make((_TYPES[kind], None), children)
    if kind != REGISTERED:
        damaged(f"unknown kind of tree node {kind}")
    name = table.string(_NAME)
    if name == _ORDERED:
        keys = _keys(table, children)
        if len(set(keys)) != len(keys):
            damaged("a dictionary has a key twice")
        return _make((OrderedDict, tuple(keys)), children)
    return _registered(name, table.blob(_AUX) or b"", children)


def _keys(table: Table, children: Sequence[Any]) -> list[Any]:
    keys = [_key_of(t) for t in table.strings(_KEYS)]
    if len(keys) != len(children):
        damaged("a dictionary does not have one value for each key")
    return keys


def _registered(name: str, data: bytes, children: list[Any]) -> Any:
    entry = node_serialization(name)
    if entry is None:
        raise InvalidArtifactError(
            f"Cannot deserialize a PyTreeDef that contains the class serialized as {name!r}: it is "
            "not registered in this process. Import the module that calls "
            "`export.register_pytree_node_serialization` or "
            "`export.register_namedtuple_serialization` with that name."
        )
    try:
        aux = entry.deserialize_auxdata(data)
    except Exception as e:
        raise InvalidArtifactError(
            f"the metadata of a {name!r} in the artifact cannot be read: {type(e).__name__}: {e}"
        ) from e
    if _is_namedtuple(entry.nodetype) and len(children) != len(entry.nodetype._fields):  # type: ignore[attr-defined]
        damaged(f"a {name!r} has {len(children)} children")
    return _make((entry.nodetype, aux), children)


def _make(data: Any, children: list[Any]) -> Any:
    try:
        return tree_util.PyTreeDef.from_node_data_and_children(
            tree_util.default_registry, data, children
        )
    except Exception as e:
        damaged(f"a tree cannot be built: {e}")
