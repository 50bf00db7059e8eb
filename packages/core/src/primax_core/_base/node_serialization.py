"""Serialization of pytree nodes: how a node's metadata become bytes, by class and by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple


class NodeSerialization(NamedTuple):
    """Serialization of the nodes of a class.

    Attributes:
      nodetype: the class.
      name: its name in files, which must not change when the class is moved.
      serialize_auxdata: from a node's metadata to bytes.
      deserialize_auxdata: from such bytes to the metadata.
      from_children: from metadata and children to a node; ``None`` for the function that is
        registered for the class.
    """

    nodetype: type
    name: str
    serialize_auxdata: Callable[[Any], bytes]
    deserialize_auxdata: Callable[[bytes], Any]
    from_children: Callable[[Any, Any], Any] | None


_by_type: Final[dict[type, NodeSerialization]] = {}
_by_name: Final[dict[str, NodeSerialization]] = {}


def register_node_serialization(entry: NodeSerialization) -> None:
    """Register the serialization of a class of tree nodes, for files.

    Exported functions and checkpoints use it.

    Args:
      entry: a :class:`NodeSerialization`: the class, its name in files and the functions that
        convert the metadata.

    Returns:
      ``None``.

    Raises:
      ValueError: if the class or the name is already registered, or the name is no string.

    The class is registered as a tree node by itself, see
    :func:`~primax_core.tree_util.register_pytree_node`.

    >>> from primax_core.extend import NodeSerialization, node_serialization
    >>> class Box:
    ...     pass
    >>> write, read = (lambda data: b""), (lambda text: None)
    >>> entry = NodeSerialization(Box, "acme.Box", write, read, lambda data, children: Box())
    >>> register_node_serialization(entry)
    >>> node_serialization(Box) is entry
    True
    """
    existing = _by_type.get(entry.nodetype)
    if existing is not None:
        raise ValueError(
            f"Duplicate serialization registration for type {entry.nodetype}. It is registered as "
            f"{existing.name!r}."
        )
    existing = _by_name.get(entry.name)
    if existing is not None:
        raise ValueError(
            f"Duplicate serialization registration for serialized_name {entry.name!r}. It is the "
            f"name of {existing.nodetype}."
        )
    if not isinstance(entry.name, str) or not entry.name:
        raise ValueError(f"serialized_name must be a string, got {entry.name!r}")
    _by_type[entry.nodetype] = entry
    _by_name[entry.name] = entry


def node_serialization(key: type | str) -> NodeSerialization | None:
    """The serialization of a class of tree nodes, or that of a name.

    Args:
      key: a class, or the name of a class in files.

    Returns:
      A :class:`NodeSerialization`; ``None`` if there is none.

    Lists, tuples, dicts and ``None`` need none.

    >>> from primax_core.extend import NodeSerialization, node_serialization
    >>> node_serialization("acme.Unknown") is None
    True
    >>> class Crate:
    ...     pass
    >>> write, read = (lambda data: b""), (lambda text: None)
    >>> entry = NodeSerialization(Crate, "acme.Crate", write, read, lambda data, children: Crate())
    >>> register_node_serialization(entry)
    >>> node_serialization("acme.Crate").nodetype is Crate
    True
    """
    return _by_name.get(key) if isinstance(key, str) else _by_type.get(key)
