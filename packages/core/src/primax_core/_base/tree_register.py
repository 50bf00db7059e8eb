"""Registration of classes as tree nodes, and the containers of the standard library."""

from __future__ import annotations

import functools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

from ._pytree_native import registry
from .tree_keys import DictKey

_C = TypeVar("_C", bound=type)


def register_pytree_node(
    nodetype: type,
    flatten_func: Callable[[Any], tuple[Iterable[Any], Hashable]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_with_keys_func: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Hashable]]
    | None = None,
) -> None:
    """Register a class: its instances are tree nodes.

    Args:
      nodetype: the class. Subclasses are not registered.
      flatten_func: ``flatten_func(node)`` returns the children and hashable metadata.
      unflatten_func: ``unflatten_func(metadata, children)`` builds a node. The children may be of
        any type, also ``None`` or tracers, so it should not validate them.
      flatten_with_keys_func: like ``flatten_func`` with pairs of a key and a child.

    Returns:
      ``None``.

    Raises:
      ValueError: if the class is already registered.
      TypeError: if ``nodetype`` is not a class.

    The metadata is part of the tree structure: jitted functions are retraced when it changes.

    >>> from primax_core import tree_util
    >>> class Pair:
    ...     def __init__(self, a, b):
    ...         self.a, self.b = a, b
    >>> tree_util.register_pytree_node(Pair, lambda p: ((p.a, p.b), None), lambda _, ab: Pair(*ab))
    >>> tree_util.tree_leaves(Pair(1, [2, 3]))
    [1, 2, 3]
    """
    if not isinstance(nodetype, type):
        raise TypeError(f"register_pytree_node takes a class, got {nodetype!r}")
    registry.register_node(nodetype, flatten_func, unflatten_func, flatten_with_keys_func)


def register_pytree_node_class(cls: _C) -> _C:
    """Class decorator: register a class with methods ``tree_flatten`` and ``tree_unflatten``.

    ``tree_flatten(self)`` returns children and metadata; the class method ``tree_unflatten(cls,
    metadata, children)`` builds a node.

    Args:
      cls: the class.

    Returns:
      The class.

    >>> from primax_core import tree_util
    >>> @tree_util.register_pytree_node_class
    ... class Box:
    ...     def __init__(self, x):
    ...         self.x = x
    ...
    ...     def tree_flatten(self):
    ...         return (self.x,), None
    ...
    ...     @classmethod
    ...     def tree_unflatten(cls, metadata, children):
    ...         return cls(*children)
    >>> tree_util.tree_map(lambda x: x + 1, Box(1)).x
    2
    """
    register_pytree_node(cls, _call_method("tree_flatten"), cls.tree_unflatten)  # type: ignore[attr-defined]
    return cls


def register_pytree_with_keys(
    nodetype: type,
    flatten_with_keys: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Hashable]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_func: Callable[[Any], tuple[Iterable[Any], Hashable]] | None = None,
) -> None:
    """Register a class of tree nodes whose children have keys.

    Args:
      nodetype: the class. Subclasses are not registered.
      flatten_with_keys: ``flatten_with_keys(node)`` returns pairs of a key and a child, and
        hashable metadata. Keys are ``GetAttrKey("name")``, ``DictKey(key)`` or any hashable
        values.
      unflatten_func: ``unflatten_func(metadata, children)`` builds a node.
      flatten_func: returns the children without keys, and the metadata; by default the keys are
        dropped.

    Returns:
      ``None``.

    Raises:
      ValueError: if the class is already registered.
      TypeError: if ``nodetype`` is not a class.

    >>> from primax_core import tree_util
    >>> class Box:
    ...     def __init__(self, content):
    ...         self.content = content
    >>> key = tree_util.GetAttrKey("content")
    >>> tree_util.register_pytree_with_keys(
    ...     Box, lambda box: (((key, box.content),), None), lambda _, children: Box(*children)
    ... )
    >>> [tree_util.keystr(path) for path, _ in tree_util.tree_leaves_with_path(Box([1, 2]))]
    ['.content[0]', '.content[1]']
    """

    def without_keys(node: Any) -> tuple[Iterable[Any], Hashable]:
        keyed, metadata = flatten_with_keys(node)
        return [child for _, child in keyed], metadata

    register_pytree_node(nodetype, flatten_func or without_keys, unflatten_func, flatten_with_keys)


def register_pytree_with_keys_class(cls: _C) -> _C:
    """Class decorator: register a class of tree nodes whose children have keys.

    Args:
      cls: a class with the method ``tree_flatten_with_keys``, which returns pairs of a key and a
        child and hashable metadata, and the class method ``tree_unflatten(metadata, children)``.
        A method ``tree_flatten``, if it exists, is used when keys are not needed.

    Returns:
      The class.

    Raises:
      ValueError: if the class is already registered.
      AttributeError: if a method is missing.

    >>> from primax_core import tree_util
    >>> @tree_util.register_pytree_with_keys_class
    ... class Crate:
    ...     def __init__(self, content):
    ...         self.content = content
    ...
    ...     def tree_flatten_with_keys(self):
    ...         return ((tree_util.GetAttrKey("content"), self.content),), None
    ...
    ...     @classmethod
    ...     def tree_unflatten(cls, metadata, children):
    ...         return cls(*children)
    >>> tree_util.tree_map(lambda x: 10 * x, Crate(1)).content
    10
    """
    register_pytree_with_keys(
        cls,
        _call_method("tree_flatten_with_keys"),
        cls.tree_unflatten,  # type: ignore[attr-defined]
        _call_method("tree_flatten") if hasattr(cls, "tree_flatten") else None,
    )
    return cls


def _call_method(name: str) -> Callable[[Any], Any]:
    def call(node: Any) -> Any:
        return getattr(node, name)()

    return call


def register_dataclass(
    nodetype: _C,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> _C:
    """Register a dataclass: its data fields are children, its meta fields metadata.

    Args:
      nodetype: the dataclass, or another class, which needs both lists and is created by a call
        with the fields as keyword arguments.
      data_fields: names of the fields that are children. By default all fields that are not
        metadata.
      meta_fields: names of the fields that are metadata, with hashable values. By default those
        that are declared with ``field(metadata=dict(static=True))``, or with :func:`static`.
      drop_fields: names of fields that are neither; new objects have their defaults.

    Returns:
      The class, so that the function can be used as a decorator.

    Raises:
      ValueError: if the class is already registered, or the lists do not match the fields.
      TypeError: if only one list is given, or none for a class that is not a dataclass.

    >>> import dataclasses
    >>> from primax_core import tree_util
    >>> @tree_util.register_dataclass
    ... @dataclasses.dataclass
    ... class Layer:
    ...     weight: float
    ...     name: str = dataclasses.field(metadata=dict(static=True))
    >>> tree_util.tree_map(lambda x: 2 * x, Layer(1.5, "out"))
    Layer(weight=3.0, name='out')
    """
    if (data_fields is None) != (meta_fields is None):
        raise TypeError(
            "register_dataclass: data_fields and meta_fields must both be specified when either is "
            f"specified. Got {data_fields=} {meta_fields=}."
        )
    fields = _dataclass_fields(nodetype)
    if data_fields is None or meta_fields is None:
        if fields is None:
            raise TypeError(
                "register_dataclass: data_fields and meta_fields are required when nodetype is not "
                f"a dataclass. Got {nodetype=}."
            )
        included = [f for f in fields.values() if f.name not in drop_fields]
        meta_fields = [f.name for f in included if f.metadata.get("static", False)]
        data_fields = [f.name for f in included if not f.metadata.get("static", False)]
    _check_fields(fields, data_fields, meta_fields, drop_fields)
    registry.register_dataclass_node(nodetype, list(data_fields), list(meta_fields))
    return nodetype


def _dataclass_fields(nodetype: Any) -> dict[str, Any] | None:
    if not isinstance(nodetype, type):
        return None
    dataclass_fields = getattr(nodetype, "__dataclass_fields__", None)
    if dataclass_fields is None:
        return None
    import dataclasses  # the module is already loaded, by the definition of the class

    return {field.name: field for field in dataclasses.fields(nodetype)}


def _check_fields(
    fields: dict[str, Any] | None,
    data_fields: Sequence[str],
    meta_fields: Sequence[str],
    drop_fields: Sequence[str],
) -> None:
    both = set(data_fields) & set(meta_fields)
    if both:
        raise ValueError(
            f"data_fields and meta_fields must not overlap. Overlapping fields: {both}."
        )
    if fields is None:
        return
    listed = {*data_fields, *meta_fields}
    settable = {name for name, field in fields.items() if field.init} - set(drop_fields)
    head = (
        "data_fields and meta_fields must include all dataclass fields with ``init=True`` and only "
        "them."
    )
    if missing := settable - listed:
        raise ValueError(
            f"{head} Missing fields: {missing}. To leave them out, add them to drop_fields."
        )
    if unexpected := listed - settable:
        raise ValueError(f"{head} Unexpected fields: {unexpected}.")


def register_static(cls: _C) -> _C:
    """Class decorator: instances are nodes without children; the instance is the metadata.

    Args:
      cls: the class. Instances are compared and hashed by value, so it should define ``__eq__``
        and ``__hash__``.

    Returns:
      The class.

    Raises:
      ValueError: if the class is already registered.
      TypeError: if ``cls`` is not a class.

    Such an object in an argument of a jitted function is static: the function is retraced for
    each new value.

    >>> from primax_core import tree_util
    >>> @tree_util.register_static
    ... class Mode(str):
    ...     pass
    >>> tree_util.tree_leaves([Mode("train"), 1])
    [1]
    """
    register_pytree_node(
        cls, lambda node: ((), node), lambda node, _: node, lambda node: ((), node)
    )
    return cls


def static(**kwargs: Any) -> Any:
    """A metadata field of a dataclass for :func:`register_dataclass`.

    Args:
      kwargs: the arguments of ``dataclasses.field``.

    Returns:
      A dataclass field whose metadata contains ``{"static": True}``.

    Raises:
      TypeError: if an argument is unknown.

    The field is part of the tree structure, not a child. Its values must be hashable.

    >>> import dataclasses
    >>> from primax_core import tree
    >>> @dataclasses.dataclass
    ... class Options:
    ...     rate: float
    ...     name: str = tree.static(default="sgd")
    >>> dataclasses.fields(Options)[1].metadata["static"]
    True
    """
    import dataclasses

    metadata = {**(kwargs.pop("metadata", None) or {}), "static": True}
    return dataclasses.field(metadata=metadata, **kwargs)


class Partial(functools.partial[Any]):
    """``functools.partial`` as a node: the bound arguments are children, the function is metadata.

    It can be passed to and returned from transformed functions. If the function is itself a
    ``functools.partial``, it is metadata as a whole.

    >>> from primax_core import tree_util
    >>> add_two = tree_util.Partial(lambda x, y: x + y, 2)
    >>> add_two(3), tree_util.tree_leaves(add_two)
    (5, [2])
    """

    def __new__(cls, func: Callable[..., Any], /, *args: Any, **kw: Any) -> Partial:
        if isinstance(func, functools.partial):
            func = _Opaque(func)  # otherwise partial would merge the arguments
        return super().__new__(cls, func, *args, **kw)


class _Opaque:
    """A callable that hides the type of the callable it wraps."""

    __slots__ = ("wrapped",)

    def __init__(self, wrapped: Callable[..., Any]) -> None:
        self.wrapped = wrapped

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.wrapped(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Opaque) and self.wrapped == other.wrapped

    def __hash__(self) -> int:
        return hash(self.wrapped)

    def __repr__(self) -> str:
        return repr(self.wrapped)


def _partial_from(func: Any, children: Any) -> Partial:
    args, kw = children
    # Not through __new__: a wrapped function must not be wrapped again.
    return functools.partial.__new__(Partial, func, *args, **kw)


def _sorted_keys(node: defaultdict[Any, Any]) -> list[Any]:
    try:
        return sorted(node)
    except TypeError as error:
        raise ValueError(
            f"the keys of a dictionary must be sortable for it to be a tree: {error}"
        ) from None


def _flatten_defaultdict(node: defaultdict[Any, Any]) -> tuple[tuple[Any, ...], Hashable]:
    keys = _sorted_keys(node)
    return tuple([node[key] for key in keys]), (node.default_factory, tuple(keys))


def _flatten_defaultdict_with_keys(node: defaultdict[Any, Any]) -> tuple[tuple[Any, ...], Hashable]:
    keys = _sorted_keys(node)
    keyed = tuple([(DictKey(key), node[key]) for key in keys])
    return keyed, (node.default_factory, tuple(keys))


register_pytree_node(
    OrderedDict,
    lambda node: (tuple(node.values()), tuple(node.keys())),
    lambda keys, values: OrderedDict(zip(keys, values, strict=True)),
    lambda node: (tuple((DictKey(k), v) for k, v in node.items()), tuple(node.keys())),
)
register_pytree_node(
    defaultdict,
    _flatten_defaultdict,
    lambda metadata, values: defaultdict(metadata[0], zip(metadata[1], values, strict=True)),
    _flatten_defaultdict_with_keys,
)
register_pytree_node(
    Partial,
    lambda node: ((node.args, node.keywords), node.func),
    _partial_from,
)
