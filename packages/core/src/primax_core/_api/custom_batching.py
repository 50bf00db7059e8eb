"""``custom_vmap`` and ``sequential_vmap``: functions with custom batching rules."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from .._base import pytree
from .._base.config import state
from .._base.operand_trees import flatten_operands
from .._base.source import api_boundary, take_attributes
from .._engine.custom_vmap import CustomVmap, custom_vmap_call_p
from .._engine.results import as_result
from .._ir.samples import Sample, bf16, c64, f32, samples
from .._runtime.dispatch import as_operand
from .._trace.core import Tracer, typeof
from ..lax.broadcasting import broadcast
from ..lax.control.loops import map as lax_map
from .arguments import Flattened, check_callable, describe, name_of, resolve_keywords

_flatten, _unflatten = flatten_operands, pytree.tree_unflatten


class custom_vmap:
    """A function with a custom batching rule.

    Define the rule with :meth:`def_vmap`. Outside of ``vmap`` the function runs unchanged.
    Forward-mode derivatives follow from the function and the rule; reverse mode is not supported.

    Args:
      fun: the function of pytrees of arrays.

    Raises:
      AttributeError: if it is mapped before a rule is defined.
      TypeError: if ``fun`` is not callable.

    >>> import numpy as np
    >>> from primax_core import vmap
    >>> @custom_vmap
    ... def f(x):
    ...     return x + 1.0
    >>> @f.def_vmap
    ... def rule(axis_size, in_batched, xs):
    ...     return xs + 10.0, True
    >>> float(f(1.0)), vmap(f)(np.array([1.0, 2.0], np.float32)).tolist()
    (2.0, [11.0, 12.0])
    """

    def __init__(self, fun: Callable[..., Any]):
        check_callable(fun)
        take_attributes(self, fun)
        self.fun = fun
        self.vmap_rule: Callable[..., Any] | None = None

    def def_vmap(self, vmap_rule: Callable[..., Any]) -> Callable[..., Any]:
        """Set the batching rule of the function and return it; usable as a decorator.

        Args:
          vmap_rule: ``vmap_rule(axis_size, in_batched, *args)`` receives the number of examples,
            a list with a tree of bools for each argument (``True`` for mapped leaves), and the
            arguments. The mapped axis of an argument is axis 0. It returns the result and a tree
            of bools of the same structure; the mapped axis of a mapped result is axis 0.

        Returns:
          ``vmap_rule``.

        Nested ``vmap`` applies the rule once for each level.

        >>> import numpy as np
        >>> from primax_core import vmap
        >>> f = custom_vmap(lambda x: x + 1.0)
        >>> _ = f.def_vmap(lambda axis_size, in_batched, xs: (xs + axis_size, in_batched[0]))
        >>> vmap(f)(np.array([1.0, 2.0], np.float32)).tolist()
        [3.0, 4.0]
        """
        check_callable(vmap_rule)
        self.vmap_rule = vmap_rule
        return vmap_rule

    @api_boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        rule_fun = self.vmap_rule
        if rule_fun is None:
            raise AttributeError(
                f"No batching rule defined for custom_vmap function {name_of(self.fun)} using "
                "def_vmap."
            )
        args = resolve_keywords(self.fun, args, kwargs)
        leaves, in_tree = _flatten(args)
        flat = Flattened(self.fun, in_tree)

        def rule(size, batched, *flat_args):
            marks = list(_unflatten(in_tree, batched))
            pair = rule_fun(size, marks, *_unflatten(in_tree, flat_args))
            outs, out_marks, flat.out_tree = _checked(pair, size, flat.out_tree, rule_fun, self.fun)
            return outs, out_marks

        rule.__name__ = name_of(rule_fun)
        outs = CustomVmap(flat, rule, name_of(self.fun)).call(leaves)
        if state.trace is None:
            outs = [o if isinstance(o, Tracer) else as_operand(o) for o in outs]
        return _unflatten(flat.out_tree, [as_result(o) for o in outs])

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else partial(self, instance)


def _checked(pair: Any, size: int, out_tree: Any, rule: Callable, fun: Callable):
    """Flat results of a rule, the mask of the mapped results, and the structure of the results."""
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise TypeError(
            f"the batching rule {describe(rule)} for the custom_vmap function {name_of(fun)} must "
            f"return a pair (out, out_batched), but got {pair!r}"
        )
    outs, tree = _flatten(pair[0])
    marks, mark_tree = _flatten(pair[1])
    if tree != mark_tree:
        raise ValueError(
            "structure of output value and output batching specification returned by custom vmap "
            f"rule ({describe(rule)}) do not match.\nOutput values: {tree}\n"
            f"Batching spec: {mark_tree}"
        )
    if out_tree is not None and out_tree != tree:
        raise ValueError(
            f"the batching rule {describe(rule)} returned the structure {tree}, but the "
            f"custom_vmap function {name_of(fun)} returns {out_tree}"
        )
    for o, m in zip(outs, marks):
        shape = typeof(o).shape
        if m and (not shape or shape[0] != size):
            raise ValueError(
                f"the batching rule {describe(rule)} returns a mapped result of type "
                f"{typeof(o).strip_weak_type()}, but its first axis is not of size {size}"
            )
    return outs, [bool(m) for m in marks], tree


def sequential_vmap(f: Callable[..., Any]) -> custom_vmap:
    """The function, mapped by ``vmap`` as a loop over the examples.

    Args:
      f: a function of pytrees of arrays.

    Returns:
      A :class:`custom_vmap` function of the same arguments. Under ``vmap`` it is a loop like
      :func:`~primax_core.lax.map`: one example at a time, in order.

    Raises:
      TypeError: if ``f`` is not callable.

    It suits callbacks and operations without a batched form, and saves memory. Forward-mode
    derivatives follow from the function; reverse mode is not supported.

    >>> import numpy as np
    >>> from primax_core import vmap
    >>> vmap(sequential_vmap(lambda x: x * x))(np.array([1.0, 2.0], np.float32)).tolist()
    [1.0, 4.0]
    """
    mapped = custom_vmap(f)

    @mapped.def_vmap
    def rule(axis_size, in_batched, *args):
        leaves, tree = _flatten(args)
        marks = _flatten(in_batched)[0]
        batches = [x for x, m in zip(leaves, marks) if m]

        def one(slices):
            mapped_leaves = iter(slices)
            full = [next(mapped_leaves) if m else x for x, m in zip(leaves, marks)]
            return mapped(*_unflatten(tree, full))

        out = lax_map(one, batches)
        return out, pytree.tree_map(lambda _: True, out)

    return mapped


@custom_vmap_call_p.rule(samples)
def _samples():
    @custom_vmap
    def product(x, y):
        return x * y

    @product.def_vmap
    def _batch(axis_size, in_batched, x, y):
        a, b = (v if m else broadcast(v, (axis_size,)) for v, m in zip((x, y), in_batched))
        return a * b, True

    backwards = {"transpose": "it has no reverse mode"}
    yield Sample(f32(3), f32(3)).set(call=product, without=backwards)
    yield Sample(c64(), c64()).set(call=product, without=backwards)
    yield Sample(bf16(0, 2), bf16(0, 2)).set(call=product, without=backwards)
