"""``vjp``: the value of a function and its pullback."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base import pytree
from .._base.config import state
from .._base.operand_trees import flatten_operands, numbered, same_structure
from .._base.source import api_boundary
from .._engine.results import as_python, as_result
from .._ir import dtypes
from .._ir.avals import ShapedArray
from .._ir.jaxpr import DebugInfo, Literal
from .._ir.placement import is_placed
from .._trace.core import placed_like, typeof
from .._trace.foreign import InvalidOperand
from .._trace.reference_ops import references
from .._trace.staging import tracer_classes
from .._transform.linearize import Node, Tangent, linearize_with_aux, tape_to_jaxpr
from .._transform.transpose import run_tape_backwards
from .._transform.zeros import Zero, add_tangents, instantiate
from .arguments import check_callable, debug_info, describe, name_of

if TYPE_CHECKING:
    from .grad_refs import GradAccumulation, WithRefs
    from .saved_arguments import SavedArguments

tree_flatten, tree_unflatten = flatten_operands, pytree.tree_unflatten


class VJP:
    """The pullback returned by ``vjp``; a pytree of its residuals.

    It may be called any number of times, and returns one cotangent for each argument.
    """

    def __init__(self, tape, outs, ins, in_avals, in_tree, out_avals, out_tree, of=None):
        self._tape = tape
        # The linear values of the results, followed by those of the final contents of references.
        self._outs = outs
        self._of = of
        self._ins = ins
        self._in_avals = in_avals
        self.in_tree = in_tree
        self._out_avals = out_avals
        self.out_tree = out_tree
        # The identities of the arguments, until they are separated from the other residuals.
        self._ids: list[int] | None = None
        self._saved: SavedArguments | None = None

    @property
    def opaque_residuals(self) -> list[Any]:
        """The residuals of the backward pass, except those in ``args_res``."""
        if self._saved is not None:
            from .saved_arguments import other_residuals

            return other_residuals(self._tape, self._saved)
        return [as_python(r) for node in self._tape for r in node.residuals]

    @property
    def args_res(self) -> list[Any]:
        """A tree for each argument of its leaves that are residuals.

        The others are ``NotNeeded()``, and ``NotSaveable()`` if ``saveable_args`` excludes them.
        These must be assigned before the pullback is called.
        """
        return self._separated(True).values

    @args_res.setter
    def args_res(self, values: Any) -> None:
        self._separated(True).values = values

    def _separated(self, saveable: Any) -> SavedArguments:
        if self._saved is None:
            from .saved_arguments import separate

            ids = [0] * self.in_tree.num_leaves if self._ids is None else self._ids
            self._saved = separate(self._tape, ids, self.in_tree, saveable)
        return self._saved

    @property
    def out_nzs(self) -> Any:
        """The structure of the results with a bool for each: whether it has a derivative."""
        marks = [t is not None for t in self._outs[: self.out_tree.num_leaves]]
        return tree_unflatten(self.out_tree, marks)

    @property
    def jaxpr(self):
        """The linear jaxpr that the pullback transposes."""
        ins = [t for t in self._ins if t is not None]
        if self._saved is None:
            return tape_to_jaxpr(self._out_avals, self._outs, self._tape, ins)[0]
        from .saved_arguments import restored

        with restored(self._tape, self._saved, self.in_tree):
            return tape_to_jaxpr(self._out_avals, self._outs, self._tape, ins)[0]

    @api_boundary
    def __call__(self, out_ct, *extra):
        if extra:
            raise TypeError(
                "The function returned by `vjp` applied to a function with several results takes "
                "one argument: the cotangents in a tree of the results' structure."
            )
        return self._apply(out_ct, None)

    @api_boundary
    def with_logs(self, out_ct: Any) -> tuple[Any, dict[str, Any]]:
        """The cotangents of the arguments, and the logs of ``custom_vjp.defvjp_with_logs``."""
        from .vjp_logs import run_with_logs

        return run_with_logs(self, out_ct, None)

    def with_refs(self, *refs: Any) -> WithRefs:
        """The pullback with references in which gradients are accumulated.

        Args:
          refs: a tree of the structure of the differentiated function's arguments: a ``Ref``
            accumulates the gradient, ``ad.GradValue()`` returns it, and ``ad.DontWant()`` skips it.
            For an argument that is itself a reference, the passed one contains the gradient with
            respect to its final contents before the call, and its initial contents afterwards.

        Returns:
          A function of the results' cotangents; its result has ``ad.GradRef()`` in place of
          accumulated gradients.

        Raises:
          ValueError: if structures or types do not match.

        >>> from primax_core import new_ref
        >>> total = new_ref(np.float32(1.0))
        >>> _, pull = vjp(lambda x: x * x, np.float32(3.0))
        >>> pull.with_refs(total)(np.float32(1.0))
        (GradRef(),)
        >>> float(total[...])
        7.0
        """
        from .grad_refs import WithRefs, check_entries

        return WithRefs(self, check_entries(refs, self.in_tree, self._in_avals, self._info()))

    def _info(self) -> DebugInfo:
        if self._of is None:
            return DebugInfo("vjp", "a function")
        args = numbered(self.in_tree)
        return debug_info(self._of, "vjp", args, {})

    def _apply(self, out_ct: Any, entries: list[Any] | None) -> Any:
        cts, tree = tree_flatten(out_ct)
        if not same_structure(tree, self.out_tree):
            raise ValueError(
                "unexpected tree structure. The cotangents passed to a function that `vjp` "
                "returned must have the structure of the differentiated function's result: got "
                f"{tree}, but expected {self.out_tree}"
            )
        out_cts = {}
        for i, (t, ct, aval) in enumerate(zip(self._outs, cts, self._out_avals)):
            ct = checked_cotangent(ct, aval, i)
            if t is not None:
                old = out_cts.get(t)
                out_cts[t] = ct if old is None else add_tangents(old, ct)
        if len(self._outs) > len(cts):
            self._accumulation(entries).add_last(out_cts, self._outs[len(cts) :])
        in_cts = iter(self._backwards(out_cts, entries))
        results = []
        accumulation = None if entries is None else self._accumulation(entries)
        for i, (t, aval) in enumerate(zip(self._ins, self._in_avals)):
            ct = next(in_cts) if t is not None else None
            if accumulation is not None and accumulation.takes(i):
                results.append(accumulation.accumulate(i, ct))
            else:
                ct = instantiate(Zero(aval.tangent_aval())) if ct is None else ct
                results.append(as_result(ct))
        return tree_unflatten(self.in_tree, results)

    def _backwards(self, out_cts: dict[Tangent, Any], entries: list[Any] | None) -> list[Any]:
        ins = [t for t in self._ins if t]
        if self._saved is not None:
            from .saved_arguments import restored

            with restored(self._tape, self._saved, self.in_tree):
                return self._run_tape(out_cts, ins, entries)
        return self._run_tape(out_cts, ins, entries)

    def _run_tape(self, out_cts: dict, ins: list, entries: list[Any] | None) -> list[Any]:
        if entries is None:
            return run_tape_backwards(self._tape, out_cts, ins)
        from .grad_refs import run_tape_for

        return run_tape_for(self._tape, out_cts, self._ins, entries)

    def _accumulation(self, entries: list[Any] | None) -> GradAccumulation:
        from .grad_refs import GradAccumulation

        return GradAccumulation(self._ins, self._in_avals, entries, self._info)

    def __repr__(self):
        return f"VJP({self.in_tree} <- {self.out_tree})"


def _vjp_flatten(f: VJP):
    shape = tuple(len(n.residuals) for n in f._tape)
    residuals = f.opaque_residuals
    aux = _VjpAux(f, shape)
    if f._saved is None:
        return residuals, aux
    aux.slots = tuple(f._saved.slots)
    aux.key += (aux.slots,)
    return [*residuals, f._saved.values], aux


class _VjpAux:
    """The structure of a ``VJP`` without its residuals; equal for equal jaxprs."""

    __slots__ = ("nodes", "outs", "ins", "fields", "key", "of", "slots")

    def __init__(self, f: VJP, shape):
        self.slots: tuple | None = None
        index = {}
        for i, t in enumerate(f._ins):
            if t is not None:
                index[t] = ("in", i)
        for j, node in enumerate(f._tape):
            for k, t in enumerate(node.outputs):
                index[t] = (j, k)
        self.nodes = tuple(
            (n.jaxpr, tuple(index[t] for t in n.inputs), shape[j], n.backward)
            for j, n in enumerate(f._tape)
        )
        self.of = f._of
        self.outs = tuple(None if t is None else index[t] for t in f._outs)
        self.ins = tuple(None if t is None else t.aval for t in f._ins)
        self.fields = (f._in_avals, f.in_tree, f._out_avals, f.out_tree)
        self.key = (
            self.nodes, self.outs, self.ins, tuple(f._in_avals), f.in_tree,
            tuple(f._out_avals), f.out_tree,
        )  # fmt: skip

    def __eq__(self, other):
        return type(other) is _VjpAux and self.key == other.key

    def __hash__(self):
        return hash((len(self.nodes), self.outs))


def _vjp_unflatten(aux: _VjpAux, leaves) -> VJP:
    leaves = list(leaves)
    if aux.slots is not None:
        from .saved_arguments import SavedArguments, with_gaps

        saved = SavedArguments(leaves.pop(), aux.slots)
        leaves = with_gaps(leaves, [n for _, _, n, _ in aux.nodes], aux.slots)
    else:
        saved = None
    tangents: dict = {}
    ins = []
    for i, aval in enumerate(aux.ins):
        t = None if aval is None else Tangent(None, i, aval)
        ins.append(t)
        tangents["in", i] = t
    tape, at = [], 0
    for j, (jaxpr, inputs, n, backward) in enumerate(aux.nodes):
        node = Node(jaxpr, leaves[at : at + n], [tangents[k] for k in inputs], backward)
        at += n
        tape.append(node)
        for k, t in enumerate(node.outputs):
            tangents[j, k] = t
    outs = [None if k is None else tangents[k] for k in aux.outs]
    in_avals, in_tree, out_avals, out_tree = aux.fields
    pullback = VJP(tape, outs, ins, in_avals, in_tree, out_avals, out_tree, aux.of)
    pullback._saved = saved
    return pullback


pytree.register_pytree_node(VJP, _vjp_flatten, _vjp_unflatten)


def checked_cotangent(ct: Any, aval: ShapedArray, index: int) -> Any:
    """The cotangent of a result, with the placement of the result.

    Raises:
      ValueError: it does not have the type of the result.
    """
    if type(ct) is Literal:
        return placed_like(ct.scalar, aval) if is_placed(aval) else ct
    expected = aval.tangent_aval()
    got = typeof(ct) if not isinstance(ct, np.ndarray) or ct.dtype != dtypes.float0 else None
    if got is None:
        if expected.dtype != dtypes.float0 or ct.shape != expected.shape:
            raise ValueError(
                "unexpected Primax type (e.g. shape/dtype) for argument to VJP function: got "
                f"float0{list(ct.shape)}, but expected {expected.strip_weak_type()} for result "
                f"number {index}"
            )
        return ct
    if expected.dtype == dtypes.float0:
        return ct  # an integer cotangent of an integer result is tolerated and ignored
    if got.shape != expected.shape or got.dtype != expected.dtype:
        raise ValueError(
            "unexpected Primax type (e.g. shape/dtype) for argument to VJP function: got "
            f"{got.strip_weak_type()}, but expected {expected.strip_weak_type()} because the "
            f"corresponding result (number {index}) of the differentiated function has that type"
        )
    return ct if got.placement is expected.placement else expected.placement.cast(ct)


@api_boundary
def vjp(
    fun: Callable[..., Any],
    *primals: Any,
    has_aux: bool = False,
    saveable_args: Any = True,
    in_nzs: Any = None,
) -> Any:
    """Value of a function, and its pullback from cotangents of results to those of arguments.

    Args:
      fun: takes and returns pytrees of arrays.
      primals: the arguments, at which it is differentiated; integer and boolean leaves get
        ``float0`` cotangents.
      has_aux: ``fun`` returns a pair with an auxiliary second element.
      saveable_args: a bool, or nested tuples of bools that are a prefix of the arguments. Those
        with ``False`` are not saved as residuals: assign the arguments to ``vjp_fn.args_res``
        before calling ``vjp_fn``.
      in_nzs: bools for the arguments that are differentiated, in the same form; the cotangents of
        the others are zero.

    Returns:
      ``(value, vjp_fn)`` or ``(value, vjp_fn, aux)``. ``vjp_fn(cotangent)`` takes a cotangent of
      the structure and types of the value and returns a tuple of cotangents, one for each
      argument. It may be called repeatedly. It is a pytree, so a jitted function can return it.

    Raises:
      TypeError: if an argument or a result is not an array, or ``fun`` does not return a pair for
        ``has_aux``.
      ValueError: raised by ``vjp_fn`` if the cotangent does not have the types of the value.

    The value is computed once, and residuals are saved; :func:`checkpoint` limits them. It can be
    differentiated again, in both modes, and mapped.

    >>> y, pull = vjp(lambda x: x * x, 3.0)
    >>> float(y), float(pull(1.0)[0])
    (9.0, 6.0)
    >>> _, pull = vjp(lambda x, y: (x * y, x), 3.0, 2.0)
    >>> [float(ct) for ct in pull((1.0, 10.0))]
    [12.0, 3.0]
    """
    check_callable(fun)
    out, pullback, aux = pull_back(fun, primals, has_aux, in_nzs)
    pullback._ids = [id(x) for x in tree_flatten(primals)[0]]
    if saveable_args is not True:
        pullback._separated(saveable_args)
    return (out, pullback, aux) if has_aux else (out, pullback)


def pull_back(fun: Callable[..., Any], primals: tuple[Any, ...], has_aux: bool, in_nzs: Any = None):
    """Value, pullback and auxiliary value of a function."""
    leaves, in_tree = tree_flatten(primals)
    in_avals = [input_aval(x, fun) for x in leaves]
    mask = [differentiable(a) for a in in_avals]
    if in_nzs is not None:
        from .saved_arguments import leaf_mask

        mask = [m and nz for m, nz in zip(mask, leaf_mask("in_nzs", in_nzs, in_tree))]

    def flat(*args):
        out = fun(*tree_unflatten(in_tree, args))
        if has_aux:
            out, aux = split_aux(out, fun)
            aux_leaves, aux_tree = tree_flatten(aux)
        else:
            aux_leaves, aux_tree = [], None
        outs, out_tree = tree_flatten(out)
        return [*outs, *aux_leaves], (out_tree, len(outs), aux_tree)

    given_refs: list[int] = []
    run: Callable[..., Any] = flat
    if references.ops.loaded and any(type(a) in tracer_classes for a in in_avals):
        from .grad_refs import functional_refs

        run, leaves, given_refs = functional_refs(flat, leaves, mask)
        refs = tree_flatten(primals)[0]
    outs, tangents, trace, ins, structure = linearize_with_aux(run, leaves, mask, fun)
    last: list[Any] = []
    if given_refs:
        k = len(outs) - len(given_refs)
        for i, x in zip(given_refs, outs[k:]):
            references.ops.write_whole(state.trace, refs[i], x)
        last = tangents[k:]
        outs, tangents = outs[:k], tangents[:k]
    out_tree, n, aux_tree = structure
    aux = tree_unflatten(aux_tree, [as_result(a) for a in outs[n:]]) if has_aux else None
    outs, tangents = outs[:n], [*tangents[:n], *last]
    out_avals = [output_aval(o, fun) for o in outs]
    differentiated = iter(ins)
    all_ins = [next(differentiated) if m else None for m in mask]
    pullback = VJP(trace.tape, tangents, all_ins, in_avals, in_tree, out_avals, out_tree, fun)
    return tree_unflatten(out_tree, [as_result(o) for o in outs]), pullback, aux


def input_aval(x, fun) -> ShapedArray:
    """The aval of an argument leaf."""
    try:
        return typeof(x)
    except InvalidOperand:
        raise
    except TypeError:
        raise TypeError(
            f"an argument of {name_of(fun)} has type {type(x)}, which is not a valid Primax type: "
            "differentiated functions take pytrees of arrays and numbers"
        ) from None


def output_aval(x, fun) -> ShapedArray:
    """The aval of a result leaf."""
    try:
        return typeof(x)
    except InvalidOperand:
        raise
    except TypeError:
        raise TypeError(
            f"the function {describe(fun)} returned a value of type {type(x)}, which is not a "
            "valid Primax type"
        ) from None


def differentiable(aval: ShapedArray) -> bool:
    """Return True if values of an aval have tangents."""
    return dtypes.issubdtype(aval.dtype, np.inexact)


def split_aux(out: Any, fun: Callable[..., Any]):
    """The value and the auxiliary value returned by a function."""
    if not isinstance(out, (tuple, list)) or len(out) != 2:
        raise TypeError(
            "expected function with aux output to return a two-element tuple, but "
            f"{describe(fun)} returned {out!r}"
        )
    return out
