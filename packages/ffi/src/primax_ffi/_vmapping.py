"""Calls of native functions under ``vmap``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from primax_core import lax, tree_util
from primax_core.extend import Axis, Primitive, ShapedArray, move_axis, typeof

from ._tokens import TOKEN

METHODS: Final = (
    "sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized",
)  # fmt: skip

Bind = Callable[..., list[Any]]
Batched = tuple[list[Any], list[int | None]]


def batched(
    prim: Primitive,
    name: str,
    axis: Axis,
    args: Sequence[Any],
    dims: Sequence[Any],
    params: dict[str, Any],
) -> Batched:
    """The results of a call for all examples, and their mapped axes.

    Args:
      name: the name of the called function.

    Raises:
      NotImplementedError: if the call has no ``vmap_method``.
      ValueError: if it is ordered.
    """
    method = params["vmap_method"]
    if params.get("ordered") or any(a.dtype == TOKEN.dtype for a in map(typeof, args)):
        raise ValueError(
            f"the call of {name!r} is ordered by tokens, and examples of "
            "vmap have no order: use scan"
        )
    if method is None:
        raise NotImplementedError(
            f"vmap of {name!r}, whose call has no vmap_method: choose one of "
            f"{', '.join(map(repr, METHODS))}, or a function"
        )
    mapped = [d is not None for d in dims]
    args = [x if d is None else move_axis(x, d, 0, axis.size) for x, d in zip(args, dims)]
    if callable(method):
        return _by_function(name, axis.size, mapped, args, params)
    if method.startswith("sequential"):
        unroll = method == "sequential_unrolled"
        return _one_by_one(prim.bind, axis.size, mapped, args, params, unroll)
    return _at_once(prim.bind, name, axis, mapped, args, params)


def _one_by_one(
    bind: Bind, size: int, mapped: list[bool], args: list[Any], params: dict[str, Any], unroll: bool
) -> Batched:
    def body(carry: None, examples: list[Any]) -> tuple[None, list[Any]]:
        following = iter(examples)
        return None, bind(*[next(following) if m else x for x, m in zip(args, mapped)], **params)

    examples = [x for x, m in zip(args, mapped) if m]
    _, outs = lax.scan(body, None, examples, length=size, unroll=max(size, 1) if unroll else 1)
    return outs, [0] * len(outs)


def _at_once(
    bind: Bind, name: str, axis: Axis, mapped: list[bool], args: list[Any], params: dict[str, Any]
) -> Batched:
    """One call with a leading axis on operands and results."""
    size = axis.size
    whole = {i for i, _ in params["input_output_aliases"]}
    if params["vmap_method"] == "broadcast_all":
        whole = {*range(len(args))}
    elif params["vmap_method"] == "legacy_vectorized" and not all(mapped[i] for i in whole):
        raise ValueError(
            f"vmap of {name!r}: a result uses the memory of an operand that is "
            "the same for all examples: use vmap_method='expand_dims' or 'broadcast_all'"
        )
    expand = params["vmap_method"] == "expand_dims"
    leading = [m or i in whole or expand for i, m in enumerate(mapped)]
    args = [
        x if m else move_axis(x, None, 0, size) if i in whole else _expanded(x) if expand else x
        for i, (x, m) in enumerate(zip(args, mapped))
    ]
    results = params["result_avals"]
    axes = {"input_layouts": leading, "output_layouts": [True] * len(results)}
    changed = {k: _with_leading(params[k], added) for k, added in axes.items() if k in params}
    if "division" in params:
        if leading != [True] * len(leading):
            raise ValueError(
                f"vmap of {name!r}: a call with partition has a leading axis on all operands: use "
                "vmap_method='expand_dims' or 'broadcast_all'"
            )
        examples = [m or i in whole for i, m in enumerate(mapped)]
        changed["division"] = params["division"].mapped(axis, examples)
    changed["result_avals"] = tuple([ShapedArray((size, *a.shape), a.dtype) for a in results])
    outs = bind(*args, **{**params, **changed})
    return outs, [0] * len(outs)


def _expanded(x: Any) -> Any:
    return lax.expand_dims(x, (0,))


def _with_leading(layouts: Any, leading: list[bool]) -> Any:
    """Layouts (slowest axis first) of arrays of which some have another axis in front."""
    if layouts is None:
        return None
    return tuple(
        [order if order is None or not added else (0, *[axis + 1 for axis in order])
         for order, added in zip(layouts, leading)]
    )  # fmt: skip


def _by_function(
    target: str, size: int, mapped: list[bool], args: list[Any], params: dict[str, Any]
) -> Batched:
    results = params["result_avals"]
    attributes = {name: frozen.value for name, frozen in params["attributes"]}
    returned = params["vmap_method"](size, mapped, *args, **attributes)
    if not isinstance(returned, (tuple, list)) or len(returned) != 2:
        raise TypeError(
            f"the vmap_method of {target!r} must return the results and whether they have a "
            f"leading axis, (outs, out_batched), got {returned!r}"
        )
    outs, marks = map(tree_util.tree_leaves, returned)
    if len(outs) != len(results) or len(marks) != len(results):
        raise TypeError(
            f"the vmap_method of {target!r} returned {len(outs)} results and {len(marks)} marks, "
            f"but the function has {len(results)} results"
        )
    for i, (out, mark, aval) in enumerate(zip(outs, marks, results)):
        expected = ShapedArray((size, *aval.shape) if mark else aval.shape, aval.dtype)
        actual = typeof(out)
        if (actual.shape, actual.dtype) != (expected.shape, expected.dtype):
            raise TypeError(
                f"the vmap_method of {target!r} returned {actual} as result {i}, but {expected} is "
                "expected"
            )
    return outs, [0 if mark else None for mark in marks]
