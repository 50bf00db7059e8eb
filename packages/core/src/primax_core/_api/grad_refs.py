"""Gradients that are accumulated in references: ``vjp(...)[1].with_refs(...)``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._base import pytree
from .._base.config import state
from .._base.source import api_boundary
from .._engine.results import as_result
from .._ir import dtypes
from .._ir.jaxpr import DebugInfo
from .._ir.ref_types import AbstractRef, is_ref
from .._trace.core import call_on, typeof
from .._trace.reference_ops import references
from .._transform.dce import dce_jaxpr
from .._transform.linearize import Node, Tangent
from .._transform.transpose import run_tape_backwards, transpose_jaxpr
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
    """Argument of ``with_refs``: return the gradient of this argument."""

    __slots__ = ()


class DontWant(_Mark):
    """Argument of ``with_refs``: do not compute the gradient of this argument."""

    __slots__ = ()


class GradRef(_Mark):
    """Placeholder in a result for a gradient that was accumulated in a reference."""

    __slots__ = ()


class DidntWant(_Mark):
    """Placeholder in a result for a gradient that was not computed."""

    __slots__ = ()


for _mark in (GradRef, DidntWant):
    pytree.register_pytree_node(_mark, lambda _: ((), None), lambda _, __, mark=_mark: mark())


def check_entries(
    refs: tuple[Any, ...], in_tree: Any, in_avals: Sequence[Any], info: DebugInfo
) -> list[Any]:
    """Treatment of each argument's gradient: a reference or a marker for each leaf.

    Raises:
      ValueError: if the structure is not that of the arguments, or a reference has another type
        than the gradient.
    """
    if not refs:
        return [GradValue()] * in_tree.num_leaves
    leaves, tree = pytree.tree_flatten(refs)
    if tree != in_tree:
        raise ValueError(
            "unexpected tree structure in the arguments to a VJP function's `with_refs` method: "
            f"they must have the structure of the arguments of {info.func_src_info}, with a Ref, a "
            "GradValue() or a DontWant() for each array (None is an empty tree, without a "
            f"gradient). Got {tree}, expected {in_tree}."
        )
    entries = []
    for i, (x, aval) in enumerate(zip(leaves, in_avals)):
        if isinstance(x, _Mark):
            entries.append(x)
            continue
        ref_type = typeof(x)
        if not is_ref(ref_type):
            entries.append(GradValue())
            continue
        required = aval.tangent_aval()
        required = required if is_ref(required) else AbstractRef(required)
        if ref_type.shape != required.shape or (
            ref_type.dtype != required.dtype and required.dtype != dtypes.float0
        ):
            raise ValueError(
                "unexpected Primax type (e.g. shape/dtype) for gradient ref passed to the VJP "
                f"function's `with_refs` method for the argument at position {_name(info, i)} of "
                f"the differentiated function {info.func_src_info}: the given ref has type "
                f"{ref_type}, but accumulating this argument's gradient requires a ref of type "
                f"{required.strip_weak_type()}"
            )
        entries.append(x)
    return entries


def _name(info: DebugInfo, i: int) -> str:
    names = info.arg_names or ()
    return names[i] if i < len(names) else f"number {i}"


class GradAccumulation:
    """Accumulation of gradients in references, for gradients that are not returned.

    Raises:
      ValueError: if the gradient of a reference has no reference to accumulate in.
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
        """Return True if an argument's gradient is accumulated instead of returned."""
        return type(self.entries[i]) is not GradValue

    def add_last(self, cts: dict[Any, Any], last: Sequence[Any]) -> None:
        """Add cotangents of the final contents of references: the contents of their gradient
        refs.
        """
        refs = [i for i, (t, a) in enumerate(zip(self.ins, self.avals)) if t and is_ref(a)]
        for i, t in zip(refs, last):
            if t is not None and type(self.entries[i]) is not DontWant:
                ct, old = self.entries[i][...], cts.get(t)
                cts[t] = ct if old is None else add_tangents(old, ct)

    def accumulate(self, i: int, ct: Any) -> Any:
        """Accumulate a gradient (``None`` if zero); return its placeholder in the result."""
        entry, aval = self.entries[i], self.avals[i]
        if type(entry) is DontWant:
            return DidntWant()
        if is_ref(aval):
            inner = aval.inner_aval.tangent_aval()
            entry[...] = as_result(instantiate(Zero(inner)) if ct is None else ct)
        elif ct is not None:
            references.ops.addupdate(entry, ..., as_result(ct))
        return GradRef()


def run_tape_for(
    tape: Sequence[Node], out_cts: dict[Tangent, Any], ins: Sequence[Any], entries: Sequence[Any]
) -> list[Any]:
    """Cotangents of the inputs of a tape, without the computations for inputs marked ``DontWant``.

    Args:
      ins: the linear values of the arguments, ``None`` for those without a derivative.
    """
    pairs = [(t, e) for t, e in zip(ins, entries) if t is not None]
    inputs = [t for t, _ in pairs]
    if not any(type(e) is DontWant for _, e in pairs):
        return run_tape_backwards(tape, out_cts, inputs)
    needed = {t for t, e in pairs if type(e) is not DontWant}
    reduced: list[Node] = []
    for node in tape:
        if any(t in needed for t in node.inputs):
            needed.update(node.outputs)
            reduced.append(node)
    cts = dict(out_cts)
    for node in reversed(reduced):
        mask = tuple([t in needed for t in node.inputs])
        node_cts = [cts.pop(t, None) for t in node.outputs]
        inputs_of: Sequence[Tangent] = node.inputs
        if node.backward is not None or all(mask):
            inputs_of = list(dict.fromkeys(inputs_of))  # cotangents of equal inputs are added
            more = run_tape_backwards([node], dict(zip(node.outputs, node_cts)), inputs_of)
        else:
            more = _some_cotangents(node, node_cts, mask)
        for t, c in zip(inputs_of, more):
            if c is not None:
                cts[t] = c if t not in cts else add_tangents(cts[t], c)
    return [cts.get(t) if t in needed else None for t in inputs]


def _some_cotangents(node: Node, cts: Sequence[Any], needed: tuple[bool, ...]) -> list[Any]:
    """Cotangents of some inputs of a node; the computations for the others are removed."""
    results: list[Any] = [None] * len(needed)
    if all(c is None for c in cts):
        return results
    n = len(node.residuals)
    linear = (False,) * n + (True,) * len(node.inputs)
    types = tuple([None if c is None else typeof(c) for c in cts])
    jaxpr, out_mask = transpose_jaxpr(node.jaxpr, linear, types)
    which = [i for i, m in enumerate(out_mask[n:]) if m]
    jaxpr, used = dce_jaxpr(jaxpr, tuple([needed[i] for i in which]))
    operands = [*node.residuals, *(c for c in cts if c is not None)]
    outs = call_on(state.trace, jaxpr, [x for x, u in zip(operands, used) if u])
    for i, c in zip([i for i in which if needed[i]], outs):
        results[i] = c
    return results


class WithRefs:
    """A pullback that accumulates gradients of some arguments in references."""

    __slots__ = ("pullback", "entries")

    def __init__(self, pullback: Any, entries: list[Any]):
        self.pullback = pullback
        self.entries = entries

    @api_boundary
    def __call__(self, out_ct: Any) -> Any:
        return self.pullback._apply(out_ct, self.entries)

    @api_boundary
    def with_logs(self, out_ct: Any) -> tuple[Any, dict[str, Any]]:
        """The results of a call, and the logs of ``custom_vjp.defvjp_with_logs``."""
        from .vjp_logs import run_with_logs

        return run_with_logs(self.pullback, out_ct, self.entries)

    def __repr__(self) -> str:
        return f"{self.pullback!r}.with_refs({', '.join(map(repr, self.entries))})"


def functional_refs(fun: Callable[..., Any], leaves: Sequence[Any], mask: Sequence[bool]) -> Any:
    """A function of arrays from a function of some references: ``(flat function, arrays,
    indices)``.

    The function creates local references with the contents of the original ones, and returns their
    final contents after its results, for those in ``mask``. Both return an auxiliary value.
    """
    at = [i for i, (x, m) in enumerate(zip(leaves, mask)) if m and is_ref(typeof(x))]
    parent = state.trace
    values = list(leaves)
    for i in at:
        values[i] = references.ops.read_whole(parent, leaves[i])

    def run(*args: Any) -> tuple[list[Any], Any]:
        values = list(args)
        cells = []
        for i in at:
            values[i] = references.ops.cell(state.trace, typeof(leaves[i]), args[i])
            cells.append(values[i])
        outs, aux = fun(*values)
        return [*outs, *(c.value for c in cells)], aux

    return run, values, at
