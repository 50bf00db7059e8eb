"""Arguments of ``vjp`` as residuals: ``saveable_args`` and the attribute ``args_res``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._base import pytree
from .._engine.results import as_python
from .grad_refs import _Mark

tree_flatten, tree_unflatten = pytree.tree_flatten, pytree.tree_unflatten


class NotNeeded(_Mark):
    """Placeholder for an argument that is not a residual."""

    __slots__ = ()


class NotSaveable(_Mark):
    """Placeholder for an argument that is a residual, but was not saved."""

    __slots__ = ()


for _mark in (NotNeeded, NotSaveable):
    pytree.register_pytree_node(_mark, lambda _: ((), None), lambda _, __, mark=_mark: mark())


def _is_mark(x: Any) -> bool:
    return type(x) in (NotNeeded, NotSaveable)


def leaf_mask(what: str, spec: Any, in_tree: Any) -> list[bool]:
    """One bool for each leaf of the arguments.

    Args:
      spec: a bool, or a container with an entry for each child of the arguments. The types of the
        containers need not be equal.

    Raises:
      ValueError: if an entry is neither, or the number of children differs.
    """
    if isinstance(spec, bool):
        return [spec] * in_tree.num_leaves
    if pytree.all_leaves([spec]):
        raise ValueError(
            f"{what} must be a tree of bools, for instance nested tuples, but it contains {spec!r} "
            f"of type {type(spec).__name__}"
        )
    children = list(pytree.flatten_one_level(spec)[0])
    parts = [] if in_tree.node_data() is None else in_tree.children()
    if len(children) != len(parts):
        raise ValueError(
            f"{what} must be a tree prefix of the arguments: a container has {len(children)} "
            f"entries where the arguments have {in_tree}"
        )
    return [m for child, part in zip(children, parts) for m in leaf_mask(what, child, part)]


class SavedArguments:
    """The arguments among the residuals of a pullback.

    Attributes:
      values: a list with a tree for each argument; its leaves are residuals or placeholders.
      slots: ``(node, residual, leaf)``, the positions of the leaves in the tape.
    """

    __slots__ = ("values", "slots")

    def __init__(self, values: Any, slots: Sequence[tuple[int, int, int]]):
        self.values = values
        self.slots = slots


def separate(tape: Sequence[Any], ids: Sequence[int], in_tree: Any, spec: Any) -> SavedArguments:
    """Remove the arguments from the residuals of a tape.

    Args:
      ids: the identities of the leaves of the arguments.
      spec: ``saveable_args``; the other arguments are not saved.
    """
    mask = leaf_mask("saveable_args", spec, in_tree)
    by_id = {x: i for i, x in enumerate(ids)}
    leaves: list[Any] = [NotNeeded()] * len(ids)
    slots = []
    for j, node in enumerate(tape):
        residuals = node.residuals = list(node.residuals)
        for k, r in enumerate(residuals):
            i = by_id.get(id(r))
            if i is not None:
                slots.append((j, k, i))
                leaves[i] = r if mask[i] else NotSaveable()
                residuals[k] = None
    return SavedArguments(list(tree_unflatten(in_tree, leaves)), slots)


class restored:
    """Context manager in which the arguments are residuals of the tape again.

    Raises:
      ValueError: if an argument that was not saved has no value.
    """

    def __init__(self, tape: Sequence[Any], saved: SavedArguments, in_tree: Any):
        self.tape, self.saved, self.in_tree = tape, saved, in_tree

    def __enter__(self) -> None:
        leaves = tree_flatten(tuple(self.saved.values), is_leaf=_is_mark)[0]
        if len(leaves) != self.in_tree.num_leaves:
            raise ValueError(
                f"args_res must have the structure of the arguments, {self.in_tree}, but has "
                f"{len(leaves)} leaves"
            )
        for j, k, i in self.saved.slots:
            if _is_mark(leaves[i]):
                raise ValueError(
                    "a pullback of vjp was called without an argument that saveable_args excludes "
                    "from its residuals: assign the arguments to the attribute args_res of the "
                    "pullback before the call"
                )
            self.tape[j].residuals[k] = leaves[i]

    def __exit__(self, *exc: object) -> None:
        for j, k, _ in self.saved.slots:
            self.tape[j].residuals[k] = None


def other_residuals(tape: Sequence[Any], saved: SavedArguments) -> list[Any]:
    """The residuals that are not arguments."""
    removed = {(j, k) for j, k, _ in saved.slots}
    return [
        as_python(r)
        for j, node in enumerate(tape)
        for k, r in enumerate(node.residuals)
        if (j, k) not in removed
    ]


def with_gaps(
    residuals: Sequence[Any], counts: Sequence[int], slots: Sequence[tuple[int, int, int]]
) -> list[Any]:
    """The residuals of all nodes, with ``None`` in the positions of arguments."""
    removed = {(j, k) for j, k, _ in slots}
    rest = iter(residuals)
    return [
        None if (j, k) in removed else next(rest) for j, n in enumerate(counts) for k in range(n)
    ]
