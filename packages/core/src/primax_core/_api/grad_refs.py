"""Gradients that are added to references: ``vjp(...)[1].with_refs(...)``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._base import pytree
from .._base.config import state
from .._base.source import api_boundary
from .._engine.results import as_result
from .._ir.jaxpr import DebugInfo
from .._ir.ref_types import AbstractRef, is_ref
from .._trace.core import typeof
from .._trace.reference_ops import references
from .._transform.zeros import Zero, add_tangents, instantiate


class _Mark:
    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(type(self))


class GradValue(_Mark):
    """Passed to ``with_refs``: the gradient of this argument is wanted as a value."""

    __slots__ = ()


class DontWant(_Mark):
    """Passed to ``with_refs``: the gradient of this argument is not wanted."""

    __slots__ = ()


class GradRef(_Mark):
    """Stands in a result for a gradient that was added to a reference."""

    __slots__ = ()


class DidntWant(_Mark):
    """Stands in a result for a gradient that was not wanted."""

    __slots__ = ()


for _mark in (GradRef, DidntWant):
    pytree.register_pytree_node(_mark, lambda _: ((), None), lambda _, __, mark=_mark: mark())


def check_entries(
    given: tuple[Any, ...], in_tree: Any, in_avals: Sequence[Any], info: DebugInfo
) -> list[Any]:
    """What to do with each argument's gradient: a reference or a mark, for each leaf.

    Raises:
      ValueError: if the structure is not the arguments', or a reference has another type than the
        gradient.
    """
    if not given:
        return [GradValue()] * in_tree.num_leaves
    leaves, tree = pytree.tree_flatten(given)
    if tree != in_tree:
        raise ValueError(
            "unexpected tree structure in the arguments to a VJP function's `with_refs` method: "
            f"they must have the structure of the arguments of {info.func_src_info}, with a Ref, a "
            "GradValue() or a DontWant() for each array (None is an empty tree, and stands for "
            f"nothing). Got {tree}, expected {in_tree}."
        )
    found = []
    for i, (x, aval) in enumerate(zip(leaves, in_avals)):
        if isinstance(x, _Mark):
            found.append(x)
            continue
        given_type = typeof(x)
        if not is_ref(given_type):
            found.append(GradValue())
            continue
        wanted = aval.tangent_aval()
        wanted = wanted if is_ref(wanted) else AbstractRef(wanted)
        if given_type.shape != wanted.shape or (
            given_type.dtype != wanted.dtype and wanted.dtype.kind != "V"
        ):
            raise ValueError(
                "unexpected Primax type (e.g. shape/dtype) for gradient ref passed to the VJP "
                f"function's `with_refs` method for the argument at position {_name(info, i)} of "
                f"the differentiated function {info.func_src_info}: the given ref has type "
                f"{given_type}, but accumulating this argument's gradient requires a ref of type "
                f"{wanted.strip_weak_type()}"
            )
        found.append(x)
    return found


def _name(info: DebugInfo, i: int) -> str:
    names = info.arg_names or ()
    return names[i] if i < len(names) else f"number {i}"


class Delivery:
    """Where gradients go that are not returned.

    Raises:
      ValueError: if the gradient of a reference has nowhere to go.
    """

    def __init__(
        self, ins: Sequence[Any], avals: Sequence[Any], entries: list[Any] | None,
        info: Callable[[], DebugInfo],
    ):  # fmt: skip
        self.ins = ins
        self.avals = avals
        self.entries: list[Any] = [GradValue()] * len(avals) if entries is None else entries
        for i, (e, aval) in enumerate(zip(self.entries, avals)):
            if is_ref(aval) and type(e) is GradValue:
                raise ValueError(
                    f"the argument at position {_name(info(), i)} of the differentiated function "
                    f"{info().func_src_info} is Ref-typed, so its gradient must be accumulated "
                    "into a ref, but no gradient ref was provided. Bind one before applying the "
                    "function, as in `f_vjp.with_refs(grad_ref)(ct)`, or pass `ad.DontWant()` in "
                    "its place."
                )

    def takes(self, i: int) -> bool:
        """Whether an argument's gradient is delivered here."""
        return type(self.entries[i]) is not GradValue

    def add_last(self, given: dict[Any, Any], last: Sequence[Any]) -> None:
        """Add cotangents of what references hold at the end: what their gradient refs hold."""
        refs = [i for i, (t, a) in enumerate(zip(self.ins, self.avals)) if t and is_ref(a)]
        for i, t in zip(refs, last):
            if t is not None and type(self.entries[i]) is not DontWant:
                ct, old = self.entries[i][...], given.get(t)
                given[t] = ct if old is None else add_tangents(old, ct)

    def deliver(self, i: int, ct: Any) -> Any:
        """Deliver a gradient (``None`` if zero); what stands for it in the result."""
        entry, aval = self.entries[i], self.avals[i]
        if type(entry) is DontWant:
            return DidntWant()
        if is_ref(aval):
            inner = aval.inner_aval.tangent_aval()
            entry[...] = as_result(instantiate(Zero(inner)) if ct is None else ct)
        elif ct is not None:
            references.ops.addupdate(entry, ..., as_result(ct))
        return GradRef()


class WithRefs:
    """A pullback that adds gradients of some arguments to references."""

    __slots__ = ("pullback", "entries")

    def __init__(self, pullback: Any, entries: list[Any]):
        self.pullback = pullback
        self.entries = entries

    @api_boundary
    def __call__(self, out_ct: Any) -> Any:
        return self.pullback._apply(out_ct, self.entries)

    def __repr__(self) -> str:
        return f"{self.pullback!r}.with_refs({', '.join(map(repr, self.entries))})"


def followed_refs(fun: Callable[..., Any], leaves: Sequence[Any], mask: Sequence[bool]) -> Any:
    """A function of arrays from one of which some are references: ``(flat function, arrays)``.

    The function makes references of its own with what the given ones hold, and returns after its
    results what they hold at the end, of those in ``mask``.
    """
    at = [i for i, (x, m) in enumerate(zip(leaves, mask)) if m and is_ref(typeof(x))]
    parent = state.trace
    values = list(leaves)
    for i in at:
        values[i] = references.ops.read_whole(parent, leaves[i])

    def run(*args: Any) -> list[Any]:
        given = list(args)
        cells = []
        for i in at:
            given[i] = references.ops.cell(state.trace, typeof(leaves[i]), args[i])
            cells.append(given[i])
        return [*fun(*given), *(c.value for c in cells)]

    return run, values, at
