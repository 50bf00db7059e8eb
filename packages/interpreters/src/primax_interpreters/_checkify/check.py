"""``check_p``: a condition that must hold, as a value that identifies the failed check."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from primax_core.extend import (
    Jaxpr,
    NamedEffect,
    Primitive,
    Sample,
    ShapedArray,
    abstract,
    batch,
    effects,
    eval_jaxpr,
    f32,
    impl,
    jaxprs_in,
    jvp,
    lower,
    move_axis,
    samples,
    stage,
    transpose,
    typeof,
)
from primax_core.extend.traces import derive_from_jaxpr
from primax_core.lax import (
    argmax,
    convert_element_type,
    dynamic_index_in_dim,
    ge,
    lt,
    select_n,
)

from .._insight.cost_rules import Cost, cost
from .errors import USER, FailedCheckError
from .faults import CODE, Fault, Site, Sites, faults, faulty, slots_of, split_faults

check_p: Final = Primitive("check", multiple_results=True)


class CheckEffect(NamedEffect):
    """The jaxpr contains a check that no ``checkify`` has turned into a value."""

    name: str = "Check"

    @staticmethod
    def only_where(program: Jaxpr) -> Jaxpr:
        """The jaxpr whose checks count only where a boolean, its first argument, is true."""
        return derive_from_jaxpr(program, "guarded checks", None, lambda: _guarded(program))


def _guarded(program: Jaxpr) -> Jaxpr:
    checked, sites = faulty(program, USER)

    def run(chosen, *args):
        outs, raised = split_faults(eval_jaxpr(checked, args), sites)
        for fault in raised:
            code = select_n(chosen, np.int32(-1), fault.code)
            check_p.bind(code, *fault.values, sites=sites, debug=not _insists(program))
        return outs

    avals = [ShapedArray((), np.dtype(bool)), *program.in_avals]
    return stage(run, avals, debug_info=program.debug_info, parent=None)


def _insists(program: Jaxpr) -> bool:
    """Return True if a jaxpr has a check that must not be ignored."""
    return any(
        e.primitive is check_p and not e.params["debug"] or any(map(_insists, jaxprs_in(e.params)))
        for e in program.eqns
    )


_EFFECT: Final = frozenset([CheckEffect()])
_LOOSE: Final = (
    "Cannot abstractly evaluate a checkify.check which was not functionalized. This probably means "
    "you tried to stage (jit/scan/pmap/...) a `check` without functionalizing it through "
    "`checkify.checkify`: call checkify.checkify on the function, outside of jit or inside, and "
    "look at the error it returns; or use checkify.debug_check, which does nothing elsewhere."
)


def first_error(fault: Fault) -> Exception | None:
    """The exception of a fault whose values are known."""
    code = int(np.asarray(fault.code))
    if code < 0:
        return None
    return exception_of(fault.sites, code, fault.values)


def exception_of(sites: Sites, code: int, values: Any) -> Exception:
    """The exception for the code of a site, and the values of the slots."""
    site = sites.sites[code]
    by_slot = dict(zip(sites.slots, values))
    return site.category(site.message([by_slot[s] for s in slots_of(site.payload)]))


@check_p.rule(abstract)
def _abstract(code, *values, sites, debug):
    return []


@check_p.rule(effects)
def _effects(code, *values, sites, debug):
    return _EFFECT


@check_p.rule(impl)
def _impl(code, *values, sites, debug):
    error = None if debug else first_error(Fault(sites, code, values))
    if error is not None:
        raise error
    return []


@check_p.rule(lower)
def _lower(ctx, code, *values, sites, debug):
    if debug:
        return []
    raise ValueError(_LOOSE)


@check_p.rule(cost)
def _cost(ins, outs, **_):
    return Cost(0, bytes=0)


@check_p.rule(jvp)
def _jvp(primals, tangents, **params):
    check_p.bind(*primals, **params)
    return [], []


check_p.unsupported(transpose, "checks are not linear")


@check_p.rule(batch)
def _batch(axis, args, dims, *, sites, debug):
    # The first example that failed speaks for the batch.
    args = [x if d is None else move_axis(x, d, 0, axis.size) for x, d in zip(args, dims)]
    if dims[0] is not None:
        mapped = [x for x, d in zip(args, dims) if d is not None]
        rows = iter(first_of(mapped))
        args = [x if d is None else next(rows) for x, d in zip(args, dims)]
    elif any(d is not None for d in dims):
        args = [x if d is None else _row(x, np.int32(0)) for x, d in zip(args, dims)]
    check_p.bind(*args, sites=sites, debug=debug)
    return [], []


def first_of(leaves: Sequence[Any]) -> list[Any]:
    """Of the leaves of several faults, along a leading axis, those of the first that failed."""
    which = argmax(ge(leaves[0], np.int32(0)), 0, np.int32)
    return [_row(x, which) for x in leaves]


def _row(x: Any, i: Any) -> Any:
    return dynamic_index_in_dim(x, i, 0, keepdims=False)


@check_p.rule(faults)
def _faults(categories, args, eqn):
    if FailedCheckError not in categories:
        return [], []
    return [], [Fault(eqn.params["sites"], args[0], args[1:])]


_SITES: Final = Sites((Site(FailedCheckError, lambda: "it is positive"),))


@check_p.rule(samples)
def _samples():
    def checked(x):
        code = select_n(lt(x, np.asarray(100, typeof(x).dtype)), np.int32(0), np.int32(-1))
        check_p.bind(convert_element_type(code, CODE.dtype), sites=_SITES, debug=True)
        return [x]

    yield Sample(f32()).set(call=checked)
