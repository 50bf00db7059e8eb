"""``checkpoint``: recompute values in the backward pass to save memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, ParamSpec, TypeAlias, TypeVar

from .._base import pytree, source
from .._base.config import state
from .._base.source import api_boundary_of
from .._engine.jit_cache import JitCache
from .._engine.remat import Offloadable, Recompute, Saveable, name_p, remat_p
from .._engine.results import as_result
from .._ir.jaxpr import Var
from .._ir.primitive import Primitive
from .._ir.samples import Sample, bf16, c64, f32, samples
from .._trace.core import set_trace, typeof
from .._trace.reference_ops import references
from .._trace.staging import StagingTrace
from .._transform.linearize import linearize_of
from ..lax.contracting import dot_general_p
from ..lax.trigonometric import sin
from .arguments import as_tuple, check_callable, debug_info, leaf_names, name_of
from .vjp import differentiable

_flatten, _unflatten = pytree.tree_flatten, pytree.tree_unflatten

_P = ParamSpec("_P")
_R = TypeVar("_R")


def checkpoint(
    fun: Callable[_P, _R],
    *,
    prevent_cse: bool = True,
    policy: Callable[..., Any] | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
) -> Callable[_P, _R]:
    """The function, with its intermediate values recomputed in reverse-mode differentiation.

    Args:
      prevent_cse: prevent the compiler from undoing the recomputation; may be ``False`` inside
        ``scan``, where the compiler cannot undo it.
      policy: selects the values to save, see :data:`checkpoint_policies`; none by default.
      static_argnums, static_argnames: arguments that are Python values.

    >>> from primax_core import grad
    >>> float(grad(checkpoint(lambda x: x * x * x))(2.0))
    12.0
    """
    check_callable(fun)
    nums, names = as_tuple(static_argnums), as_tuple(static_argnames)
    cache = JitCache(fun, name_of(fun))

    @api_boundary_of(fun)
    def checkpointed(*args, **kwargs):
        fixed = {i % len(args): args[i] for i in nums} if args else {}
        named = {k: v for k, v in kwargs.items() if k in names}
        n = len(args)

        def bound(*rest, **others):
            remaining = iter(rest)
            full = [fixed[i] if i in fixed else next(remaining) for i in range(n)]
            return fun(*full, **others, **named)

        key = (
            tuple([(i, type(v), v) for i, v in fixed.items()]),
            tuple([(k, type(v), v) for k, v in sorted(named.items())]),
        )
        known = cache if _hashable(key) else JitCache(fun, name_of(fun))
        rest = tuple(a for i, a in enumerate(args) if i not in fixed)
        others = {k: v for k, v in kwargs.items() if k not in named}
        leaves, in_tree = _flatten((rest, others))
        known.debug = lambda tree, _: debug_info(
            fun,
            "checkpoint / remat",
            *(_unflatten(tree, [0] * tree.num_leaves) if tree else ((), {})),
        )
        avals = [known.aval_of(x, i, in_tree) for i, x in enumerate(leaves)]
        traced = known.trace(bound, key if known is cache else None, in_tree, avals)
        if references.ops.loaded:
            known.check_aliases(traced, leaves)
        outs = remat_p.bind(
            *traced.consts, *leaves, jaxpr=traced.jaxpr, prevent_cse=prevent_cse,
            differentiated=False, policy=policy,
        )  # fmt: skip
        return _unflatten(traced.out_tree, [as_result(o) for o in outs])

    return checkpointed


def _hashable(x: Any) -> bool:
    try:
        hash(x)
    except TypeError:
        return False
    return True


remat = checkpoint


def checkpoint_name(x: Any, name: str) -> Any:
    """The same values under a name for checkpoint policies."""
    return pytree.tree_map(lambda leaf: name_p.bind(leaf, name=name), x)


# Policies

Policy: TypeAlias = Callable[..., Any]


def everything_saveable(*_: Any, **__: Any) -> bool:
    """Save every value."""
    return True


def nothing_saveable(*_: Any, **__: Any) -> bool:
    """Save no value."""
    return False


def dots_saveable(prim: Primitive, *_: Any, **__: Any) -> bool:
    """Save results of matrix multiplications and convolutions."""
    return prim is dot_general_p or prim.name == "conv_general_dilated"


def dots_with_no_batch_dims_saveable(prim: Primitive, *_: Any, **params: Any) -> bool:
    """Save results of matrix multiplications without batch dimensions."""
    if prim is dot_general_p:
        (_, _), (lhs_batch, rhs_batch) = params["dimension_numbers"]
        return not lhs_batch and not rhs_batch
    return False


def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Policy:
    """Save results of unbatched matrix multiplications in another memory kind."""

    def policy(prim, *_, **params):
        if dots_with_no_batch_dims_saveable(prim, **params):
            return Offloadable(offload_src, offload_dst)
        return Recompute

    return policy


def save_anything_except_these_names(*names_not_to_save: str) -> Policy:
    """Save every value except those with these names."""
    names = frozenset(names_not_to_save)
    return lambda prim, *_, **params: not (prim is name_p and params["name"] in names)


def save_any_names_but_these(*names_not_to_save: str) -> Policy:
    """Save every named value except those with these names."""
    names = frozenset(names_not_to_save)
    return lambda prim, *_, **params: prim is name_p and params["name"] not in names


def save_only_these_names(*names_which_can_be_saved: str) -> Policy:
    """Save only values with these names."""
    names = frozenset(names_which_can_be_saved)
    return lambda prim, *_, **params: prim is name_p and params["name"] in names


def save_from_both_policies(policy_1: Policy, policy_2: Policy) -> Policy:
    """Save the values that either policy saves."""

    def policy(prim, *args, **params):
        return policy_1(prim, *args, **params) or policy_2(prim, *args, **params)

    return policy


def save_and_offload_only_these_names(
    *,
    names_which_can_be_saved: Sequence[str],
    names_which_can_be_offloaded: Sequence[str],
    offload_src: str,
    offload_dst: str,
) -> Policy:
    """Save some named values in their memory and others in another memory kind."""
    saved, offloaded = set(names_which_can_be_saved), set(names_which_can_be_offloaded)
    both = saved & offloaded
    if both:
        raise ValueError(f"the names {sorted(both)} are both to be saved and to be offloaded")

    def policy(prim, *_, **params):
        if prim is name_p and params["name"] in saved:
            return Saveable
        if prim is name_p and params["name"] in offloaded:
            return Offloadable(offload_src, offload_dst)
        return Recompute

    return policy


class CheckpointPolicies:
    """Policies for ``checkpoint(policy=...)``.

    A policy is ``(primitive, *avals, **params) -> bool``: ``True`` saves the operation's results.
    """

    everything_saveable: Policy = staticmethod(everything_saveable)
    nothing_saveable: Policy = staticmethod(nothing_saveable)
    dots_saveable: Policy = staticmethod(dots_saveable)
    checkpoint_dots: Policy = staticmethod(dots_saveable)
    dots_with_no_batch_dims_saveable: Policy = staticmethod(dots_with_no_batch_dims_saveable)
    checkpoint_dots_with_no_batch_dims: Policy = staticmethod(dots_with_no_batch_dims_saveable)
    offload_dot_with_no_batch_dims: Callable[..., Policy] = staticmethod(
        offload_dot_with_no_batch_dims
    )
    save_anything_except_these_names: Callable[..., Policy] = staticmethod(
        save_anything_except_these_names
    )
    save_any_names_but_these: Callable[..., Policy] = staticmethod(save_any_names_but_these)
    save_only_these_names: Callable[..., Policy] = staticmethod(save_only_these_names)
    save_from_both_policies: Callable[..., Policy] = staticmethod(save_from_both_policies)
    save_and_offload_only_these_names: Callable[..., Policy] = staticmethod(
        save_and_offload_only_these_names
    )


checkpoint_policies: Final = CheckpointPolicies()


# Inspection of residuals


def saved_residuals(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> list[tuple[Any, str]]:
    """Avals and origins of the values that reverse mode of ``fun`` saves."""
    leaves, in_tree = _flatten((args, kwargs))
    names = leaf_names(fun, args, kwargs)
    trace = StagingTrace(state.trace)
    ins = [trace.new_input(typeof(x)) for x in leaves]

    def flat(*flat_args):
        positional, keywords = _unflatten(in_tree, flat_args)
        return _flatten(fun(*positional, **keywords))[0]

    with set_trace(trace):
        _, tangents, linear, _ = linearize_of(flat, ins, [differentiable(t.aval) for t in ins])
        residuals = [r for node in _needed(linear.tape, tangents) for r in node.residuals]
        atoms = [trace.atom(r) for r in residuals]
    made_by = {v: eqn for eqn in trace.eqns for v in eqn.outvars}
    arguments = {t._var: n for t, n in zip(ins, names)}
    residuals_by_var: dict[Any, tuple[Any, str]] = {}
    for v in atoms:
        if type(v) is not Var or v in residuals_by_var:
            continue
        if v in arguments:
            residuals_by_var[v] = (v.aval, f"from the argument {arguments[v]}")
        elif v in made_by:
            eqn = made_by[v]
            where = source.summarize(eqn.source)
            if eqn.primitive is name_p:
                residuals_by_var[v] = (v.aval, f"named '{eqn.params['name']}' from {where}")
            else:
                residuals_by_var[v] = (v.aval, f"output of {eqn.primitive.name} from {where}")
        else:
            residuals_by_var[v] = (v.aval, "from a constant")
    return list(residuals_by_var.values())


def _needed(tape, tangents):
    used, stack = set(), [t.node for t in tangents if t is not None and t.node is not None]
    while stack:
        node = stack.pop()
        if node not in used:
            used.add(node)
            stack.extend(t.node for t in node.inputs if t.node is not None)
    return [n for n in tape if n in used]


def print_saved_residuals(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Print a line for every value that reverse mode of ``fun`` saves."""
    for aval, text in saved_residuals(fun, *args, **kwargs):
        print(f"{aval.str_short()} {text}")


@remat_p.rule(samples)
def _samples():
    again = checkpoint(lambda x, y: sin(sin(x) * y))
    saved = checkpoint(again, policy=everything_saveable)
    yield Sample(f32(3), f32(3)).set(call=again)
    yield Sample(f32(2), f32(2)).set(call=saved)
    yield Sample(c64(), c64()).set(call=again)
    yield Sample(bf16(0, 2), bf16(0, 2)).set(call=again)
