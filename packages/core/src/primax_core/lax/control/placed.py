"""Placements of the carries of loops and of the results of branches.

Loaded with the first loop or conditional that has a placed type. The common placement of several
values is that of the result of ``select_n`` on them, so it needs no rules of its own. Values that
are selected by a condition depend on it: they have its placement too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from ..._base.source import is_internal
from ..._ir.avals import ShapedArray
from ..._ir.jaxpr import Var
from ..._ir.placement import is_placed
from ..._trace.core import placed_like
from ..._trace.staging import eval_jaxpr, infer, stage
from ..._trace.typing import ArrayLike
from ..._transform.derived import derive_from_jaxpr
from ..selection import select_n_p
from .bodies import Body

_BOOL: Final = np.dtype(bool)
_ALWAYS: Final = ShapedArray((), _BOOL)


def written_by_library(fun: Callable[..., Any]) -> bool:
    """Return True for a function of the library, in which users cannot insert casts."""
    code = getattr(getattr(fun, "__wrapped__", fun), "__code__", None)
    return code is not None and is_internal(code)


def joined(condition: ArrayLike, avals: Sequence[Any]) -> Any:
    """The first aval, with the placement of a value that a condition selects from several."""
    first = avals[0]
    if type(first) is not ShapedArray or not any(map(is_placed, (condition, *avals))):
        return first
    if any((a.shape, a.dtype) != (first.shape, first.dtype) for a in avals):
        return first  # an error, which is reported later
    if not is_placed(condition) and all(a.placement is first.placement for a in avals):
        return first  # also if it is unreduced
    which = condition.update(dtype=_BOOL, weak_type=False)
    for other in (*avals[1:], first):
        (selected,), *_ = infer(select_n_p, [which, first, other], {})
        first = first.update(placement=selected.placement)
    return first


def with_results(body: Body, avals: Sequence[Any]) -> Body:
    """The body with its results cast to the placements of some types."""
    jaxpr = body.jaxpr
    if all(o.placement is a.placement for o, a in zip(jaxpr.out_avals, avals)):
        return body

    def run(*args):
        return [
            placed_like(x, a) if type(a) is ShapedArray else x
            for x, a in zip(eval_jaxpr(jaxpr, args), avals)
        ]

    cast = derive_from_jaxpr(
        jaxpr, "cast results", tuple(avals), lambda: stage(run, jaxpr.in_avals, body.info)
    )
    return Body(cast, body.consts, body.out_tree, body.info)


def check_leading_axes(avals: Sequence[Any]) -> None:
    """Raise ``ValueError`` if slices along axis 0 would be on different devices."""
    for aval in avals:
        if is_placed(aval) and aval.placement.only_axis(0) is not None:
            raise ValueError(
                f"scan slices its arguments along axis 0, but a leaf of xs has the type {aval}, "
                "whose axis 0 is divided over devices. Divide it along other axes with reshard"
            )


def _is_convertible(value: Any, own: Any, aval: Any) -> bool:
    """Return True for a value that is used as one of a type whose axes are divided.

    A value of the host is on no device; one whose type says nothing is whole on each, so it is
    divided without communication, as an operand beside divided ones. A manual axis along which the
    other values vary needs a cast by the user, unless the value is one of the host.
    """
    if not is_placed(aval) or not any(_divided_axes(aval)):
        return False
    if isinstance(value, (np.ndarray, np.generic)):
        return True
    for i in reversed(range(aval.ndim)):
        if is_placed(aval):
            aval = aval.without_axis(i)
    return not is_placed(own) and not is_placed(aval)


def _divided_axes(aval: Any) -> list[bool]:
    return [aval.placement.only_axis(i) is not None for i in range(aval.ndim)]


Traced = tuple[Body | None, Body]


def with_common_carry(
    trace: Callable[[Sequence[Any]], Traced],
    leaves: Sequence[Any],
    avals: Sequence[Any],
    bodies: Traced,
    fun: Callable[..., Any],
) -> tuple[Sequence[Any], Sequence[Any], Traced]:
    """The initial carry, its types and the bodies of a loop, with the same placements everywhere.

    A carry whose placement a user's body changes is left as it is, which is an error, unless the
    type of the first carry says nothing and the body returns one whose axes are divided.

    Args:
      trace: the condition (or ``None``) and the body, traced for types of the carry.
      bodies: its result for ``avals``.
      fun: the function of the body.
    """
    n = len(avals)
    automatic = written_by_library(fun)
    while True:
        condition, body = bodies
        outs = body.jaxpr.out_avals
        which = _ALWAYS if condition is None else condition.jaxpr.out_avals[0]
        same = len(outs) >= n and which.shape == ()
        same = same and all(o.shape == a.shape and o.dtype == a.dtype for o, a in zip(outs, avals))
        if not same:
            return leaves, avals, bodies
        rows = zip(leaves, avals, outs)
        changed = [(x, a, o) for x, a, o in rows if o.placement is not a.placement]
        if not automatic and not all(_is_convertible(*row) for row in changed):
            return leaves, avals, bodies
        common = [joined(which, [a, o]) for a, o in zip(avals, outs)]
        if all(w is a for w, a in zip(common, avals)):
            return leaves, avals, (condition, with_results(body, [*common, *outs[n:]]))
        leaves = [placed_like(x, w) if is_placed(w) else x for x, w in zip(leaves, common)]
        automatic = automatic or not changed  # the condition varies, so all carries do
        avals = common
        bodies = trace(avals)


def with_common_results(
    index: ArrayLike, bodies: Sequence[Body], funs: Sequence[Callable[..., Any]]
) -> list[Body]:
    """The branches of a conditional with results of the same placements.

    Different placements of the results of users' functions are left as they are, which is an error,
    unless their types say nothing and those of the other branches have divided axes.
    """
    types = [b.jaxpr.out_avals for b in bodies]
    if len({len(t) for t in types}) > 1:
        return list(bodies)
    if not all(map(written_by_library, funs)):
        values = [_results_from_outside(b) for b in bodies]
        if not all(map(_are_alike, zip(*types), zip(*values))):
            return list(bodies)
    common = [joined(index, row) for row in zip(*types)]
    return [with_results(b, common) for b in bodies]


def _results_from_outside(body: Body) -> list[Any]:
    """The results of a body that are values it closes over; ``None`` for others."""
    known = dict(zip(body.jaxpr.invars, body.consts))
    return [known.get(v) if type(v) is Var else None for v in body.jaxpr.outvars]


def _are_alike(avals: Sequence[Any], values: Sequence[Any]) -> bool:
    """Return True if results of branches have the same placement, or are converted to it."""
    placed = next((a for a in avals if is_placed(a)), avals[0])
    return all(
        a.placement is placed.placement or _is_convertible(x, a, placed)
        for a, x in zip(avals, values)
    )


def common_operands(
    leaves: Sequence[Any], avals: Sequence[Any], bodies: Sequence[Body]
) -> tuple[list[Any], bool]:
    """Operands with the placements of the results of some functions of them.

    Returns:
      The operands, and True if a placement has changed.
    """
    outs = [b.jaxpr.out_avals for b in bodies]
    common = [joined(_ALWAYS, row) for row in zip(avals, *outs)]
    cast = [placed_like(x, w) if is_placed(w) else x for x, w in zip(leaves, common)]
    return cast, any(w is not a for w, a in zip(common, avals))
