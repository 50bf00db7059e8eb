"""Utilities for the arguments of transformations: the reference's ``jax.api_util``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Final

from primax_core.extend import DebugInfo, ShapedArray, typeof
from primax_core.tree_util import (
    PyTreeDef,
    keystr,
    tree_broadcast,
    tree_flatten,
    tree_flatten_with_path,
    tree_leaves,
    tree_map,
    tree_unflatten,
    treedef_children,
)
from primax_core.typing import PyTree

from ._adapters.jaxprs import parse_location
from ._adapters.sequences import safe_map as safe_map
from ._adapters.wrapped import Store, WrappedFun, transformation2, transformation_with_aux2


def _flattened(
    inside: Callable[..., Any], store: Store, in_tree: Any, has_kwargs: bool, *leaves: Any
) -> list[Any]:
    inputs = tree_unflatten(in_tree, leaves)
    args, kwargs = inputs if has_kwargs else (inputs, {})
    outs, out_tree = tree_flatten(inside(*args, **kwargs))
    store.store(out_tree)
    return outs


def flatten_fun(
    fun: WrappedFun, *gen_static_args: Any, use_eq_store: bool = False, unk_names: bool = False
) -> tuple[WrappedFun, Callable[[], Any]]:
    """Convert a function of pytrees to a function from leaves to a list of leaves.

    Args:
      fun: a function of pytrees.
      gen_static_args: the structure of ``(args, kwargs)``.
      use_eq_store: allow further runs if the results have the same structure.
      unk_names: the leaves have no names.

    Returns:
      The function, and a thunk that returns the structure of the results once it has run.
    """
    (in_tree,) = gen_static_args
    return transformation_with_aux2(
        _flattened, fun, in_tree, True, use_eq_store=use_eq_store, unk_names=unk_names
    )


def flatten_fun_nokwargs(
    fun: WrappedFun, *gen_static_args: Any, use_eq_store: bool = False, unk_names: bool = False
) -> tuple[WrappedFun, Callable[[], Any]]:
    """As :func:`flatten_fun`, with the structure of ``args`` only."""
    (in_tree,) = gen_static_args
    return transformation_with_aux2(
        _flattened, fun, in_tree, False, use_eq_store=use_eq_store, unk_names=unk_names
    )


def argnums_partial(
    f: WrappedFun,
    dyn_argnums: int | Sequence[int],
    args: Sequence[Any],
    require_static_args_hashable: bool = True,
) -> tuple[WrappedFun, tuple[Any, ...]]:
    """Return a function of the arguments in ``dyn_argnums`` only, and these arguments.

    Raises:
      ValueError: if another argument is not hashable and ``require_static_args_hashable`` is set.
    """
    numbers = (dyn_argnums,) if isinstance(dyn_argnums, int) else tuple(dyn_argnums)
    dynamic = tuple(sorted({n % len(args) for n in numbers}))
    fixed = tuple(None if i in dynamic else _Fixed(a) for i, a in enumerate(args))
    if require_static_args_hashable:
        for i, a in enumerate(args):
            if i not in dynamic and not _hashable(a):
                raise ValueError(
                    f"argument {i} of {f.__name__} is static and must be hashable, so that "
                    f"the jit cache can use it as a key, but it is of type {type(a)}"
                )
    return transformation2(_filled, f, dynamic, fixed), tuple(args[i] for i in dynamic)


class _Fixed:
    """A static argument; compares equal if the values can be compared and are equal."""

    __slots__ = ("val",)

    def __init__(self, val: Any) -> None:
        self.val = val

    def __eq__(self, other: object) -> bool:
        return (
            type(other) is _Fixed
            and type(other.val) is type(self.val)
            and (other.val is self.val or (_hashable(self.val) and bool(other.val == self.val)))
        )

    def __hash__(self) -> int:
        return hash(self.val) if _hashable(self.val) else id(self.val)


def _hashable(x: Any) -> bool:
    try:
        hash(x)
    except TypeError:
        return False
    return True


def _filled(
    inside: Callable[..., Any],
    dynamic: tuple[int, ...],
    fixed: tuple[_Fixed | None, ...],
    *dynamic_args: Any,
    **kwargs: Any,
) -> Any:
    rest = iter(dynamic_args)
    return inside(*[next(rest) if f is None else f.val for f in fixed], **kwargs)


def _numbers(argnums: int | Sequence[int]) -> tuple[int, ...]:
    return (argnums,) if isinstance(argnums, int) else tuple(argnums)


def donation_vector(
    donate_argnums: Sequence[int],
    donate_argnames: Sequence[str],
    in_tree: PyTreeDef,
    kws: bool = True,
) -> tuple[bool, ...]:
    """Return whether each leaf of the arguments is donated.

    Args:
      in_tree: the structure of ``(args, kwargs)``, or of ``args`` without ``kws``.
    """
    args_tree, kwargs_tree = treedef_children(in_tree) if kws else (in_tree, None)
    donated: list[bool] = []
    for i, child in enumerate(treedef_children(args_tree)):
        donated += [i in donate_argnums] * child.num_leaves
    if kwargs_tree is not None:
        kwargs = tree_unflatten(kwargs_tree, [None] * kwargs_tree.num_leaves)
        for name, child in zip(sorted(kwargs), treedef_children(kwargs_tree)):
            donated += [name in donate_argnames] * child.num_leaves
    return tuple(donated)


def rebase_donate_argnums(
    donate_argnums: int | Sequence[int], static_argnums: int | Sequence[int]
) -> tuple[int, ...]:
    """Return the positions of donated arguments among the dynamic arguments.

    Raises:
      ValueError: if an argument is both static and donated.
    """
    static, donated = sorted(_numbers(static_argnums)), sorted(_numbers(donate_argnums))
    both = set(static) & set(donated)
    if both:
        raise ValueError(
            f"`static_argnums` {static} and `donate_argnums` {donated} cannot intersect."
        )
    return tuple(d - sum(s < d for s in static) for d in donated)


_NO_AXIS: Final = object()


def flatten_axes(
    name: str,
    treedef: PyTreeDef,
    axis_tree: PyTree,
    *,
    kws: bool = False,
    tupled_args: bool = False,
) -> list[Any]:
    """Return one entry of ``axis_tree``, a tree prefix, for each leaf of a structure.

    Args:
      name: the name of the specification in error messages.
      axis_tree: a tree of entries; ``None`` is an entry.
      kws: the structure is that of ``(args, kwargs)``; ignored.
      tupled_args: add a hint about argument tuples to the error message.

    Raises:
      ValueError: if ``axis_tree`` is not a prefix.
    """

    def is_none(x: Any) -> bool:
        return x is None

    marked = tree_map(lambda a: _NO_AXIS if a is None else a, axis_tree, is_leaf=is_none)
    whole = tree_unflatten(treedef, [0] * treedef.num_leaves)
    try:
        entries = tree_leaves(tree_broadcast(marked, whole))
    except ValueError as e:
        tip = ""
        if tupled_args:
            tip = " Entries must be in a tuple like the arguments, also for a single argument."
        raise ValueError(
            f"{name} specification must be a tree prefix of the corresponding value: {e}{tip}"
        ) from None
    return [None if a is _NO_AXIS else a for a in entries]


def shaped_abstractify(x: object) -> Any:
    """Return the type of an array, a number, or any object with a shape and a dtype.

    Raises:
      TypeError: for other objects.
    """
    try:
        return typeof(x)
    except TypeError:
        if not hasattr(x, "shape") or not hasattr(x, "dtype"):
            raise
    return ShapedArray(x.shape, x.dtype, getattr(x, "weak_type", False))


def debug_info(
    traced_for: str,
    fun: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    *,
    static_argnums: Sequence[int] = (),
    static_argnames: Sequence[str] = (),
    result_paths_thunk: Callable[[], Any] | None = None,
    sourceinfo: str | None = None,
    signature: inspect.Signature | None = None,
) -> DebugInfo:
    """Create debug info: the function's name and location, and a name for each argument leaf.

    Args:
      traced_for: the transformation.
      static_argnums, static_argnames: static arguments, which have no leaves.
      result_paths_thunk: returns the names of the results, if they are known.
      sourceinfo: ``name at file:line``; by default determined from ``fun``.
      signature: the signature of ``fun``; by default determined from it.
    """
    name, file, line = _location(fun) if sourceinfo is None else parse_location(sourceinfo)
    static = {n % len(args) for n in static_argnums} if args else set()
    names = _leaf_names(fun, signature, args, kwargs, static, set(static_argnames))
    paths = None if result_paths_thunk is None else result_paths_thunk()
    return DebugInfo(traced_for, name, file, line, names, None if paths is None else tuple(paths))


def _location(fun: Any) -> tuple[str, str | None, int | None]:
    name = getattr(fun, "__name__", None) or type(fun).__name__
    inner = inspect.unwrap(fun) if callable(fun) else fun
    while hasattr(inner, "func"):
        inner = inner.func
    code = getattr(inner, "__code__", None) or getattr(type(inner).__call__, "__code__", None)
    return (name, code.co_filename, code.co_firstlineno) if code else (name, None, None)


def _leaf_names(
    fun: Any,
    signature: inspect.Signature | None,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    static: set[int],
    static_names: set[str],
) -> tuple[str, ...]:
    try:
        bound = (signature or inspect.signature(fun)).bind(*args, **kwargs)
        positions = _positional(bound, len(args))
    except (TypeError, ValueError):
        positions = [f"args[{i}]" for i in range(len(args))]
    entries = [(p, a) for i, (p, a) in enumerate(zip(positions, args)) if i not in static]
    entries += [(k, v) for k, v in sorted(kwargs.items()) if k not in static_names]
    return tuple(
        name + keystr(path)
        for name, value in entries
        for path, _ in tree_flatten_with_path(value)[0]
    )


def _positional(bound: inspect.BoundArguments, count: int) -> list[str]:
    names: list[str] = []
    for name, parameter in bound.signature.parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL:
            names += [f"{name}[{i}]" for i in range(len(bound.arguments.get(name, ())))]
        elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append(name)
    return names[:count]
