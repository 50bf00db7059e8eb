"""Functions that control flow holds: traced once, their constants made operands, types compared."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from ..._base import pytree
from ..._base.config import state
from ..._ir.avals import ShapedArray
from ..._ir.jaxpr import DebugInfo, Jaxpr
from ..._trace.axes import axis_env
from ..._trace.core import typeof
from ..._trace.staging import close_over, eval_jaxpr, has_tracers, stage
from ..._transform.staged import trace_function
from ..conversion import convert, convert_element_type

_flatten, _unflatten = pytree.tree_flatten, pytree.tree_unflatten
_traced: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


class Body:
    """A traced function: ``jaxpr`` takes ``consts`` before the arguments."""

    __slots__ = ("jaxpr", "consts", "out_tree", "info")

    def __init__(self, jaxpr: Jaxpr, consts: Sequence, out_tree, info: DebugInfo):
        self.jaxpr = jaxpr
        self.consts = consts
        self.out_tree = out_tree
        self.info = info


def trace_body(fun: Callable, in_tree, avals: Sequence[ShapedArray], what: str) -> Body:
    """Trace a function of positional arguments with this tree ``(arg, ...)``."""
    key = (state.trace_key, axis_env.key, in_tree, *avals)
    try:
        cache = _traced.setdefault(fun, {})
    except TypeError:
        cache = {}
    found = cache.get(key)
    if found is not None:
        return found
    info = DebugInfo(what, getattr(fun, "__name__", type(fun).__name__), *_where(fun))
    tree = _flatten((_unflatten(in_tree, [0] * in_tree.num_leaves), {}))[1]
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


def parameter_name(fun: Callable, i: int) -> str:
    """The name of a function's ``i``-th parameter, for messages."""
    code = getattr(fun, "__code__", None)
    if code is not None and i < code.co_argcount:
        return code.co_varnames[i]
    return f"args[{i}]"


def promote_weak(
    values: Sequence, avals: Sequence[ShapedArray], wanted: Sequence[ShapedArray]
) -> tuple[list, list[ShapedArray]] | None:
    """Weak initial values and their types as the body gives them; ``None`` if nothing changes.

    A value that only becomes strong stays as it is; its type is what the body sees.
    """
    changed = False
    found, types = [], []
    for x, a, w in zip(values, avals, wanted):
        if a.weak_type and a.shape == w.shape and (a.dtype != w.dtype or not w.weak_type):
            if a.dtype != w.dtype:
                x = convert_element_type(x, w.dtype)
            a, changed = a.update(dtype=w.dtype, weak_type=False), True
        found.append(x)
        types.append(a)
    return (found, types) if changed else None


def check_carry(
    what: str, name: str, in_tree, in_avals: Sequence, out_tree, out_avals: Sequence
) -> None:
    """Compare the types that a body takes and gives.

    Raises:
      TypeError: naming each component that differs, both types, and how to mend it.
    """
    ins = _with_paths(in_tree)
    if in_tree != out_tree:
        problems = [
            p.error(name).args[0].split("\n", 1)[-1].strip()
            for p in pytree.prefix_errors(
                _unflatten(in_tree, list(in_avals)), _unflatten(out_tree, list(out_avals))
            )
        ]
        raise TypeError(
            f"{what} function carry input and carry output must have the same pytree structure, "
            f"but they differ:\n\nThe input carry {name} has structure {in_tree} but the "
            f"corresponding output carry has structure {out_tree}"
            + (": " + "; ".join(problems[:3]) if problems else "")
            + ".\n\nRevise the function so that the carry output has the same pytree structure as "
            "the carry input."
        )
    wrong = [
        (f"{name}{path}", a, b)
        for path, a, b in zip(ins, in_avals, out_avals)
        if a.shape != b.shape or a.dtype != b.dtype
    ]
    if wrong:
        lines = [
            f"The input carry {'component ' if path != name else ''}{path} has type "
            f"{a.strip_weak_type()} but the corresponding output carry component has type "
            f"{b.strip_weak_type()}, so the {_difference(a, b)}."
            for path, a, b in wrong
        ]
        text = lines[0] if len(lines) == 1 else "\n".join(f"  * {line}" for line in lines)
        raise TypeError(
            f"{what} function carry input and carry output must have equal types, but they "
            f"differ:\n\n{text}\n\nRevise the function so that all output types match the "
            "corresponding input types."
        )


def _difference(a: ShapedArray, b: ShapedArray) -> str:
    if a.shape != b.shape and a.dtype != b.dtype:
        return "shapes and dtypes do not match"
    return "shapes do not match" if a.shape != b.shape else "dtypes do not match"


def _with_paths(tree) -> list[str]:
    leaves = pytree.tree_leaves_with_path(_unflatten(tree, list(range(tree.num_leaves))))
    return [pytree.keystr(path) for path, _ in leaves]


def same_types(jaxpr: Jaxpr, n: int, wanted: Sequence[ShapedArray]) -> Jaxpr:
    """The program with its first results of exactly the wanted weakness."""
    outs = jaxpr.out_avals[:n]
    if all(a is w for a, w in zip(outs, wanted)):
        return jaxpr
    def run(*args):
        found = eval_jaxpr(jaxpr, args)
        return [
            x if a is w else convert(x, w.dtype, w.weak_type)
            for x, a, w in zip(found, outs, wanted)
        ] + found[n:]

    return stage(run, jaxpr.in_avals, jaxpr.debug_info)


def permuted(jaxpr: Jaxpr, ins: Sequence[int], outs: Sequence[int]) -> Jaxpr:
    """The program with its arguments and results in another order."""
    return jaxpr.replace(
        invars=[jaxpr.invars[i] for i in ins], outvars=[jaxpr.outvars[i] for i in outs]
    )


def fixpoint(carry: Sequence[bool], step: Callable[[list[bool]], Sequence[bool]]) -> list[bool]:
    """The smallest set of carries, containing the given, that ``step`` keeps."""
    found = list(carry)
    while True:
        out = step(found)
        new = [a or b for a, b in zip(found, out)]
        if new == found:
            return found
        found = new
