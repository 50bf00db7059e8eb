"""``checkpoint``: recompute values in the backward pass to save memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, ParamSpec, TypeAlias, TypeVar

from .._base import pytree, source
from .._base.config import state
from .._base.operand_trees import flatten_operands, numbered
from .._base.pytree import PyTree
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

_flatten, _unflatten = flatten_operands, pytree.tree_unflatten

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

    Reverse mode saves the arguments of ``fun`` and the values that the policy selects. The others
    are computed again in the backward pass: less memory, more time.

    Args:
      fun: a function of pytrees of arrays.
      prevent_cse: prevent the compiler from undoing the recomputation; may be ``False`` inside
        ``scan``, where the compiler cannot undo it.
      policy: selects the values to save, see :data:`checkpoint_policies`; none by default.
      static_argnums: positions of arguments that are Python values.
      static_argnames: names of arguments that are Python values.

    Returns:
      A function with the signature and the results of ``fun``.

    Raises:
      TypeError: if ``fun`` is not callable.

    Values and forward-mode derivatives do not change. Under ``vmap`` the function is mapped as a
    whole. :func:`print_saved_residuals` shows what is saved.

    >>> from primax_core import grad
    >>> float(grad(checkpoint(lambda x: x * x * x))(2.0))
    12.0
    >>> saving = checkpoint(lambda x: x * x, policy=checkpoint_policies.everything_saveable)
    >>> float(grad(saving)(3.0))
    6.0
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
            *(numbered(tree) if tree else ((), {})),
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


def checkpoint_name(x: PyTree, name: str) -> Any:
    """The same values under a name for checkpoint policies.

    Args:
      x: a pytree of arrays.
      name: the name, for policies such as ``checkpoint_policies.save_only_these_names``.

    Returns:
      The pytree, with the same values. Outside of traced functions only the type changes: numbers
      become arrays.

    Raises:
      TypeError: if a leaf of ``x`` is not an array.

    The function is the identity in all transformations. Several values may have one name.

    >>> from primax_core import checkpoint, grad, lax
    >>> save_sine = checkpoint_policies.save_only_these_names("sine")
    >>> f = checkpoint(lambda x: lax.exp(checkpoint_name(lax.sin(x), "sine")), policy=save_sine)
    >>> [str(aval) for aval, _ in saved_residuals(f, 1.0)]
    ['~float32[]', '~float32[]']
    >>> float(grad(f)(0.0))
    1.0
    """
    return pytree.tree_map(lambda leaf: name_p.bind(leaf, name=name), x)


# Policies

Policy: TypeAlias = Callable[..., Any]


def everything_saveable(*_: Any, **__: Any) -> bool:
    """Policy for ``checkpoint``: save every value.

    Nothing is recomputed, as without ``checkpoint``.

    Args:
      _: the primitive and the types of its operands.
      __: the parameters.

    Returns:
      True.

    >>> from primax_core import checkpoint, lax
    >>> policy = checkpoint_policies.everything_saveable
    >>> f = checkpoint(lambda x: lax.sin(lax.sin(x)), policy=policy)
    >>> len(saved_residuals(f, 1.0)) > 1
    True
    """
    return True


def nothing_saveable(*_: Any, **__: Any) -> bool:
    """Policy for ``checkpoint``: save no value.

    All values are recomputed from the arguments. It is the default.

    Args:
      _: the primitive and the types of its operands.
      __: the parameters.

    Returns:
      False.

    >>> from primax_core import checkpoint, lax
    >>> policy = checkpoint_policies.nothing_saveable
    >>> f = checkpoint(lambda x: lax.sin(lax.sin(x)), policy=policy)
    >>> len(saved_residuals(f, 1.0))
    1
    """
    return False


def dots_saveable(prim: Primitive, *_: Any, **__: Any) -> bool:
    """Policy for ``checkpoint``: save results of matrix multiplications and convolutions.

    Elementwise operations are recomputed: they are cheap, and as large as the products.

    Args:
      prim: the primitive of the operation.
      _: the types of its operands.
      __: the parameters.

    Returns:
      A bool.

    >>> from primax_core import lax
    >>> policy = checkpoint_policies.dots_saveable
    >>> policy(lax.dot_general_p), policy(lax.sin_p)
    (True, False)
    """
    return prim is dot_general_p or prim.name == "conv_general_dilated"


def dots_with_no_batch_dims_saveable(prim: Primitive, *_: Any, **params: Any) -> bool:
    """Policy for ``checkpoint``: save results of matrix multiplications without batch dimensions.

    In transformers these are the products with weights; products of activations with each other,
    such as attention scores, are recomputed.

    Args:
      prim: the primitive of the operation.
      _: the types of its operands.
      params: the parameters.

    Returns:
      A bool.

    >>> from primax_core import lax
    >>> policy = checkpoint_policies.dots_with_no_batch_dims_saveable
    >>> policy(lax.dot_general_p, dimension_numbers=(((1,), (0,)), ((), ())))
    True
    >>> policy(lax.dot_general_p, dimension_numbers=(((2,), (1,)), ((0,), (0,))))
    False
    """
    if prim is dot_general_p:
        (_, _), (lhs_batch, rhs_batch) = params["dimension_numbers"]
        return not lhs_batch and not rhs_batch
    return False


def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Policy:
    """Policy for ``checkpoint``: offload results of unbatched matrix multiplications.

    The values are copied to another memory kind in the forward pass, and back in the backward
    pass.

    Args:
      offload_src: the memory kind of the values, such as ``"device"``.
      offload_dst: the memory kind of the copies, such as ``"pinned_host"``.

    Returns:
      A policy.

    >>> from primax_core import lax
    >>> policy = checkpoint_policies.offload_dot_with_no_batch_dims("device", "pinned_host")
    >>> policy(lax.dot_general_p, dimension_numbers=(((1,), (0,)), ((), ()))).dst
    'pinned_host'
    """

    def policy(prim, *_, **params):
        if dots_with_no_batch_dims_saveable(prim, **params):
            return Offloadable(offload_src, offload_dst)
        return Recompute

    return policy


def save_anything_except_these_names(*names_not_to_save: str) -> Policy:
    """Policy for ``checkpoint``: save every value except those with these names.

    Args:
      names_not_to_save: names given by ``checkpoint_name``.

    Returns:
      A policy.

    Values without a name are saved too.

    >>> from primax_core import lax
    >>> policy = checkpoint_policies.save_anything_except_these_names("a")
    >>> policy(lax.sin_p), policy(name_p, name="a")
    (True, False)
    """
    names = frozenset(names_not_to_save)
    return lambda prim, *_, **params: not (prim is name_p and params["name"] in names)


def save_any_names_but_these(*names_not_to_save: str) -> Policy:
    """Policy for ``checkpoint``: save every named value except those with these names.

    Args:
      names_not_to_save: names given by ``checkpoint_name``.

    Returns:
      A policy.

    Values without a name are recomputed.

    >>> from primax_core import lax
    >>> policy = checkpoint_policies.save_any_names_but_these("a")
    >>> policy(lax.sin_p), policy(name_p, name="a"), policy(name_p, name="b")
    (False, False, True)
    """
    names = frozenset(names_not_to_save)
    return lambda prim, *_, **params: prim is name_p and params["name"] not in names


def save_only_these_names(*names_which_can_be_saved: str) -> Policy:
    """Policy for ``checkpoint``: save only values with these names.

    Args:
      names_which_can_be_saved: names given by ``checkpoint_name``.

    Returns:
      A policy.

    All other values are recomputed.

    >>> from primax_core import lax
    >>> policy = checkpoint_policies.save_only_these_names("a")
    >>> policy(lax.sin_p), policy(name_p, name="a"), policy(name_p, name="b")
    (False, True, False)
    """
    names = frozenset(names_which_can_be_saved)
    return lambda prim, *_, **params: prim is name_p and params["name"] in names


def save_from_both_policies(policy_1: Policy, policy_2: Policy) -> Policy:
    """Policy for ``checkpoint``: save the values that either of two policies saves.

    Args:
      policy_1: a policy.
      policy_2: a policy.

    Returns:
      A policy.

    Calls can be nested, for more than two policies.

    >>> policy = checkpoint_policies.save_from_both_policies(
    ...     checkpoint_policies.dots_saveable, checkpoint_policies.save_only_these_names("a")
    ... )
    >>> from primax_core import lax
    >>> policy(lax.dot_general_p), policy(name_p, name="a"), policy(lax.sin_p)
    (True, True, False)
    """

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
    """Policy for ``checkpoint``: save some named values, and offload others.

    Args:
      names_which_can_be_saved: names of values that stay in their memory.
      names_which_can_be_offloaded: names of values that are copied.
      offload_src: the memory kind of the values, such as ``"device"``.
      offload_dst: the memory kind of the copies, such as ``"pinned_host"``.

    Returns:
      A policy.

    Raises:
      ValueError: if a name is in both lists.

    All other values are recomputed.

    >>> policy = checkpoint_policies.save_and_offload_only_these_names(
    ...     names_which_can_be_saved=["a"],
    ...     names_which_can_be_offloaded=["b"],
    ...     offload_src="device",
    ...     offload_dst="pinned_host",
    ... )
    >>> policy(name_p, name="b").dst
    'pinned_host'
    """
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

    A policy is ``(primitive, *avals, **params) -> bool``: ``True`` saves the operation's results,
    ``False`` recomputes them. It may also return ``Offloadable(src, dst)``, for results that are
    copied to another memory kind. Own policies are functions of this form.

    ``dots_saveable`` and ``dots_with_no_batch_dims_saveable`` are policies; the functions
    ``save_...`` and ``offload_...`` return one.

    >>> from primax_core import checkpoint, grad, lax
    >>> save_sines = lambda prim, *avals, **params: prim is lax.sin_p
    >>> f = checkpoint(lambda x: lax.cos(lax.sin(x)), policy=save_sines)
    >>> float(grad(f)(0.0))
    -0.0
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
    """Avals and origins of the values that reverse mode of ``fun`` saves.

    Args:
      fun: a function of pytrees of arrays.
      args: positional arguments of ``fun``, at which it is traced.
      kwargs: keyword arguments of ``fun``.

    Returns:
      A list of pairs: the type of the value, and a text about its origin: an argument, a
      constant, or an operation with its source location.

    Raises:
      TypeError: if an argument or a result is not an array.

    The function is traced, not run. Sum ``aval.size * aval.dtype.itemsize`` for the memory.

    >>> from primax_core import checkpoint, lax
    >>> f = lambda x: lax.sin(lax.sin(x))
    >>> len(saved_residuals(f, 1.0)), len(saved_residuals(checkpoint(f), 1.0))
    (2, 1)
    >>> saved_residuals(checkpoint(f), 1.0)[0][1]
    'from the argument x'
    """
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
    """Print a line for every value that reverse mode of ``fun`` saves.

    A line has the type of a value and its origin: an argument, a constant, or an operation with
    its source location.

    Args:
      fun: a function of pytrees of arrays.
      args: positional arguments of ``fun``, at which it is traced.
      kwargs: keyword arguments of ``fun``.

    Returns:
      ``None``.

    Raises:
      TypeError: if an argument or a result is not an array.

    The function is traced, not run. :func:`saved_residuals` returns the same as a list.

    >>> from primax_core import checkpoint, lax
    >>> print_saved_residuals(checkpoint(lambda x: lax.sin(lax.sin(x))), 1.0)
    f32[] from the argument x
    """
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
