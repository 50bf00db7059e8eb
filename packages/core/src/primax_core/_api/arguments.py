"""Arguments of transformed functions: static and differentiated arguments, names for messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._base import pytree, source
from .._base.operand_trees import operand_tree
from .._base.source import name_of as name_of
from .._ir.jaxpr import DebugInfo


def check_callable(fun: Any) -> None:
    """Raise an error for a value that cannot be transformed.

    Args:
      fun: the argument of a transformation.

    Returns:
      ``None``.

    Raises:
      TypeError: if it is not callable, and for generator functions, which run when they are
        iterated.

    Transformations call it at once, so that the error has the line of the transformation, not
    that of a later call.

    >>> from primax_core.extend.traces import check_callable
    >>> check_callable(len)
    >>> try:
    ...     check_callable(3)
    ... except TypeError as error:
    ...     print(error)
    Expected a callable value, got 3
    """
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun!r}")
    code = getattr(fun, "__code__", None)
    if code is not None and code.co_flags & 0x20:
        raise TypeError(
            f"Expected a function, got a generator function: {fun!r}. A generator's values do not "
            "exist while it is traced; return them from a function."
        )


def debug_info(fun: Callable, traced_for: str, args: tuple, kwargs: dict) -> DebugInfo:
    """Debug information: the function, its source location, and a path for every leaf."""
    return DebugInfo(
        traced_for, name_of(fun), *_where(fun), tuple(leaf_names(fun, args, kwargs)), None
    )


def _where(fun: Callable) -> tuple[str | None, int | None]:
    while True:
        inner = getattr(fun, "__wrapped__", None) or getattr(fun, "func", None)
        if inner is None:
            break
        fun = inner
    code = getattr(fun, "__code__", None) or getattr(
        getattr(fun, "__func__", None), "__code__", None
    )
    if code is None:
        code = getattr(type(fun).__call__, "__code__", None)  # a callable object
    return (code.co_filename, code.co_firstlineno) if code is not None else (None, None)


def parameter_names(fun: Callable) -> list[str] | None:
    """Names of the positional parameters, if they can be determined cheaply."""
    skipped = 0
    while not hasattr(fun, "__code__"):
        if hasattr(fun, "__func__"):
            fun, skipped = fun.__func__, skipped + 1
        elif hasattr(fun, "__wrapped__"):
            fun = fun.__wrapped__
        elif hasattr(fun, "func"):
            skipped += len(getattr(fun, "args", ()))
            fun = fun.func
        elif hasattr(type(fun).__call__, "__code__"):
            fun, skipped = type(fun).__call__, skipped + 1
        else:
            return None
    code = fun.__code__
    if hasattr(fun, "__wrapped__") and code.co_argcount == 0:
        return parameter_names(fun.__wrapped__)
    return list(code.co_varnames[skipped : code.co_argcount])


def leaf_names(fun: Callable, args: tuple, kwargs: dict) -> list[str]:
    """A path for every leaf of the arguments: ``params['w']``."""
    names = parameter_names(fun) or []
    paths = []
    for i, arg in enumerate(args):
        base = names[i] if i < len(names) else f"args[{i - len(names)}]" if names else f"args[{i}]"
        for path, _ in pytree.tree_leaves_with_path(operand_tree(arg)):
            paths.append(base + pytree.keystr(path))
    for key, arg in sorted(kwargs.items()):
        for path, _ in pytree.tree_leaves_with_path(operand_tree(arg)):
            paths.append(key + pytree.keystr(path))
    return paths


def as_tuple(x: Any) -> tuple:
    """A tuple of one or several values."""
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


class Closed:
    """A function of some positional arguments; the others and the keyword arguments are fixed."""

    __slots__ = ("fun", "args", "open", "kwargs")

    def __init__(self, fun: Callable, args: Sequence, open_at: Sequence[int], kwargs: dict):
        self.fun = fun
        # Without the others: rules are kept with the jaxprs that call them, longer than a trace.
        self.args = [None if i in open_at else a for i, a in enumerate(args)]
        self.open = open_at
        self.kwargs = kwargs

    def __call__(self, *values):
        args = list(self.args)
        for i, value in zip(self.open, values):
            args[i] = value
        return self.fun(*args, **self.kwargs)


class Flattened:
    """A function of pytrees as a function of leaves.

    ``out_tree`` is the structure of its last result. A custom rule is called instead of the
    function, and sets it too.
    """

    __slots__ = ("fun", "in_tree", "out_tree")

    def __init__(self, fun: Callable, in_tree: Any):
        self.fun = fun
        self.in_tree = in_tree
        self.out_tree: Any = None

    def __call__(self, *leaves):
        out = self.fun(*pytree.tree_unflatten(self.in_tree, leaves))
        outs, self.out_tree = pytree.tree_flatten(out)
        return outs


def checked_argnums(argnums: Any, n_args: int, what: str) -> tuple[int, ...]:
    """Normalized positions of the differentiated arguments.

    Raises:
      TypeError: if a position is not an integer or out of range.
    """
    positions = []
    for i in as_tuple(argnums):
        try:
            i = i.__index__()
        except AttributeError:
            raise TypeError(
                f"{what}: argnums must be an int or a tuple of ints, got {argnums!r}"
            ) from None
        if not -n_args <= i < n_args:
            need = i + 1 if i >= 0 else -i
            raise TypeError(
                f"differentiating with respect to argnums={argnums} requires at least {need} "
                f"positional arguments to be passed by the caller, but got only {n_args} "
                "positional arguments."
            )
        positions.append(i % n_args)
    return tuple(positions)


def resolve_keywords(fun: Callable, args: tuple, kwargs: dict) -> tuple:
    """Positional arguments, with keyword arguments at their positions and default values.

    Raises:
      TypeError: if an argument has no position.
    """
    import inspect

    try:
        signature = inspect.signature(fun)
    except (ValueError, TypeError):
        if kwargs:
            raise TypeError(
                f"{name_of(fun)} has no signature to resolve keyword arguments with: pass them by "
                "position"
            ) from None
        return args
    try:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
    except TypeError as e:
        raise TypeError(f"The arguments of {name_of(fun)} do not fit its signature: {e}") from None
    # Defaults of keyword-only arguments, also those of a `functools.partial`, are left out.
    others = [name for name in bound.kwargs if name in kwargs]
    if others:
        raise TypeError(
            f"The keyword arguments {', '.join(others)} could not be resolved to positions; "
            "custom rules take positional arguments only. Check the keyword-only arguments of "
            f"{name_of(fun)}."
        )
    return bound.args


def describe(fun: Callable) -> str:
    """``f at file.py:12``."""
    return source.summarize_function(fun)
