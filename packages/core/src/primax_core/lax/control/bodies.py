"""Bodies of control flow: traced once, with constants as operands and checks of types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from ..._base import caches, pytree
from ..._base.config import state
from ..._base.operand_trees import Parts, flatten_operands, numbered
from ..._base.pytree import PyTree, PyTreeDef
from ..._engine.jit_cache import trace_function
from ..._ir.avals import ShapedArray
from ..._ir.jaxpr import DebugInfo, Jaxpr
from ..._trace.axes import axis_env
from ..._trace.staging import close_over, has_tracers
from ..conversion import convert_element_type

_NO_KEYWORDS: Final = flatten_operands({})[1]
_traced = caches.OfFunctions()


class Body:
    """A traced function; ``consts`` precede the arguments of ``jaxpr``."""

    __slots__ = ("jaxpr", "consts", "out_tree", "info", "unchanged")

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any], out_tree: Any, info: DebugInfo):
        self.jaxpr: Jaxpr = jaxpr
        self.consts: Sequence[Any] = consts
        self.out_tree: Any = out_tree
        self.info: DebugInfo = info
        self.unchanged: tuple[bool, ...] | None = None  # see ``forwarding.unchanged_carries``


def trace_body(
    fun: Callable[..., Any], in_tree: PyTreeDef, avals: Sequence[ShapedArray], what: str
) -> Body:
    """Trace a function of positional arguments; ``in_tree`` is the structure ``(arg, ...)``."""
    key = (state.trace_key, axis_env.key, in_tree, *avals)
    cache = _traced.of(fun)
    cached = cache.get(key)
    if cached is not None:
        return cached
    name = getattr(fun, "__name__", type(fun).__name__)
    info = DebugInfo(what, name, *_where(fun), _argument_names(fun, in_tree), None)
    tree = pytree.treedef_tuple((in_tree, _NO_KEYWORDS))
    traced = trace_function(fun, tree, avals, info)
    if traced.consts:
        return Body(traced.jaxpr, traced.consts, traced.out_tree, info)
    jaxpr, consts = close_over(traced.jaxpr)
    body = Body(jaxpr, consts, traced.out_tree, info)
    if not has_tracers(consts):
        cache[key] = body
    return body


def _where(fun) -> tuple[str | None, int | None]:
    code = getattr(fun, "__code__", None)
    return (code.co_filename, code.co_firstlineno) if code is not None else (None, None)


def _argument_names(fun: Callable, in_tree) -> tuple[str, ...]:
    return tuple(
        parameter_name(fun, i) + path
        for i, arg in enumerate(in_tree.children())
        for path in leaf_paths(arg)
    )


def parameter_name(fun: Callable, i: int) -> str:
    """Name of the ``i``-th parameter of a function, for messages."""
    code = getattr(fun, "__code__", None)
    if code is not None and i < code.co_argcount:
        return code.co_varnames[i]
    return f"args[{i}]"


def promote_weak(
    values: Sequence[Any], avals: Sequence[ShapedArray], body_avals: Sequence[ShapedArray]
) -> tuple[list[Any], list[ShapedArray]] | None:
    """Weakly typed initial values with the body's dtypes, and their types; ``None`` if unchanged.

    A weakly typed value of the body's dtype remains weakly typed.
    """
    changed = False
    promoted, types = [], []
    for x, a, w in zip(values, avals, body_avals):
        if a.weak_type and a.shape == w.shape and a.dtype != w.dtype:
            x, a = convert_element_type(x, w.dtype), a.update(dtype=w.dtype, weak_type=False)
            changed = True
        promoted.append(x)
        types.append(a)
    return (promoted, types) if changed else None


def check_carry(
    what: str,
    name: str,
    in_tree: PyTreeDef,
    in_avals: Sequence[Any],
    out_tree: PyTreeDef,
    out_avals: Sequence[Any],
) -> None:
    """Compare the input and output carry types of a body.

    Raises:
      TypeError: if they differ, with each component, both types, and the solution.
    """
    if in_tree != out_tree:
        lines = [
            f"the input carry {'component ' if path else ''}{name}{path} is {a} but the "
            f"corresponding component of the carry output is {b}, so {why}"
            for path, a, b, why in structure_differences(in_tree, out_tree)
        ]
        raise TypeError(
            f"{what} function carry input and carry output must have the same pytree structure, "
            f"but they differ:\n\n{sentences(lines)}\n\nRevise the function so that the carry "
            "output has the same pytree structure as the carry input."
        )
    lines = [
        f"the input carry {'component ' if path else ''}{name}{path} has type "
        f"{a.strip_weak_type()} but the corresponding output carry component has type "
        f"{b.strip_weak_type()}, so {difference(a, b)}"
        for path, a, b in zip(leaf_paths(in_tree), in_avals, out_avals)
        if a.shape != b.shape or a.dtype != b.dtype or a.placement is not b.placement
    ]
    if lines:
        raise TypeError(
            f"{what} function carry input and carry output must have equal types, but they "
            f"differ:\n\n{sentences(lines)}\n\nRevise the function so that all output types "
            "match the corresponding input types."
        )


def sentences(lines: Sequence[str]) -> str:
    """One statement as a sentence, several statements as a list."""
    if len(lines) == 1:
        return f"{lines[0][0].upper()}{lines[0][1:]}."
    return ";\n".join(f"  * {line}" for line in lines) + "."


def difference(a: ShapedArray, b: ShapedArray) -> str:
    """The difference between two types, as the end of a sentence."""
    parts = ["shapes"] * (a.shape != b.shape) + ["dtypes"] * (a.dtype != b.dtype)
    if parts:
        return f"the {' and '.join(parts)} do not match"
    from ..._ir.placed_types import difference as of_placements

    return of_placements(a, b)


def structure_differences(a: PyTree, b: PyTree, path: str = "") -> list[tuple[str, str, str, str]]:
    """Differences of two tree structures.

    Args:
      a: a structure, a ``PyTreeDef``.
      b: a structure.
      path: key path of the structures in the whole.

    Returns:
      A list of tuples of strings: the key path, both nodes, and the reason. Children of nodes
      that differ are not compared.

    Errors about carries and branches list them.

    >>> from primax_core.extend.runtime import structure_differences
    >>> from primax_core.tree_util import tree_structure
    >>> ((path, *_, reason),) = structure_differences(
    ...     tree_structure({"a": (1,)}), tree_structure({"a": [1]})
    ... )
    >>> path, reason
    ("['a']", 'their Python types differ')
    """
    if a == b:
        return []
    data_a, data_b = a.node_data(), b.node_data()
    kind_a, kind_b = data_a and data_a[0], data_b and data_b[0]
    if kind_a is not kind_b:
        return [(path, _node_text(a), _node_text(b), "their Python types differ")]
    parts_a, parts_b = a.children(), b.children()
    if kind_a is Parts and data_a[1] != data_b[1]:
        return [(path, _node_text(a), _node_text(b), "their types differ")]
    if len(parts_a) != len(parts_b):
        why = f"the numbers of children do not match ({len(parts_a)} and {len(parts_b)})"
    elif data_a[1] != data_b[1]:
        why = f"their metadata differ: {data_a[1]!r} and {data_b[1]!r}"
    else:
        return [
            difference
            for key, x, y in zip(_child_keys(a), parts_a, parts_b)
            for difference in structure_differences(x, y, path + str(key))
        ]
    if kind_a is dict:
        odd = sorted(map(repr, set(data_a[1]) ^ set(data_b[1])))
        why += f"; keys of only one of them: {', '.join(odd)}"
    return [(path, _node_text(a), _node_text(b), why)]


def _child_keys(tree) -> list:
    node = numbered(tree)
    return [key for key, _ in pytree.flatten_one_level_with_keys(node)[0]]


def _node_text(tree) -> str:
    data = tree.node_data()
    if data is None:
        return "a pytree leaf"
    if data[0] is type(None):
        return "None"
    if data[0] is Parts:
        return f"a value of type {data[1]}"
    n = len(tree.children())
    return f"a {data[0]} with {n} {'child' if n == 1 else 'children'}"


def leaf_paths(tree: PyTree) -> list[str]:
    """The path of each leaf of a structure."""
    leaves = pytree.tree_leaves_with_path(numbered(tree))
    return [pytree.keystr(path) for path, _ in leaves]


def permuted(jaxpr: Jaxpr, ins: Sequence[int], outs: Sequence[int]) -> Jaxpr:
    """The jaxpr with permuted arguments and results."""
    return jaxpr.replace(
        invars=[jaxpr.invars[i] for i in ins], outvars=[jaxpr.outvars[i] for i in outs]
    )


def fixpoint(carry: Sequence[bool], step: Callable[[list[bool]], Sequence[bool]]) -> list[bool]:
    """The smallest set of carries that contains ``carry`` and is closed under ``step``."""
    marked = list(carry)
    while True:
        out = step(marked)
        new = [a or b for a, b in zip(marked, out)]
        if new == marked:
            return marked
        marked = new
