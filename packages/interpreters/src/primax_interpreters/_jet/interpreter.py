"""Taylor mode: values with their derivatives along a curve.

A moving value ``x(t)`` is represented by ``x(0), x'(0), x''(0), ...``, up to the order of the
trace. An operation is computed by its ``taylor`` rule, or by its forward derivative: ``y = f(x)``
has ``y' = df(x)[x']``, so the derivatives of ``y`` are those of the jvp jaxpr of ``f``, of one
order less. The jaxpr of each order is derived once for a signature, and common subexpressions of
the orders are computed once, so the work grows polynomially.

Griewank and Walther, Evaluating Derivatives (2nd edition, 2008), chapter 13.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

from primax_core.extend import (
    DebugInfo,
    Jaxpr,
    Primitive,
    RuleKind,
    Zero,
    dce_jaxpr,
    eval_jaxpr,
    instantiate,
    invalid_result,
    jvp,
    stage,
    typeof,
)
from primax_core.extend.traces import (
    CustomJVP,
    DualTrace,
    DualTracer,
    Trace,
    call_on,
    current_trace,
    derivative_jaxpr,
    derive,
    derive_from_jaxpr,
    jvp_primitive,
    made_by,
    rule_applies,
    set_trace,
)

from .cse import simplified

taylor: Final[RuleKind[Callable[..., tuple[Any, ...]]]] = RuleKind(
    "taylor",
    "(primals, series, **params) -> (out, series_out)",
    versioned=True,
    doc="""The derivatives of a result along a curve, for ``jet``.

    primals: the operands at 0.
    series: for each operand its derivatives at 0, first to last, lists of one length; a derivative
      that is known to be zero is a ``Zero``.
    Returns the result and the list of its derivatives; with multiple results, a list of each.
    """,
)

Terms: TypeAlias = list[Any] | None
"""Derivatives of a value, ``None`` for those that are zero; ``None`` for one that is constant."""
Mask: TypeAlias = tuple[bool, ...] | None
"""Mask of the derivatives that are not zero; ``None`` if all are."""


class TaylorTracer(DualTracer):
    """A value with derivatives along a curve."""

    __slots__ = ()

    def __init__(self, trace, primal, terms):
        self._trace = trace
        self.aval = typeof(primal)
        self.primal = primal
        self.extra = terms

    def __repr__(self):
        return f"TaylorTracer(primal={self.primal!r}, terms={self.extra!r})"

    def _origin(self):
        trace = self._trace
        assert isinstance(trace, TaylorTrace)
        return made_by("Taylor-mode differentiation", trace.of, self.primal)


class TaylorTrace(DualTrace):
    """Computes values together with their derivatives up to an order."""

    __slots__ = ("order",)

    tracer = TaylorTracer

    def __init__(self, parent: Trace | None, order: int, of: Callable | None = None):
        super().__init__(parent, of)
        self.order = order

    def apply(
        self,
        prim: Primitive,
        params: dict[str, Any],
        primals: list[Any],
        extra: list[Any],
        mask: tuple[bool, ...],
    ) -> list[Any]:
        masks = _masks(extra, mask)
        avals = [typeof(p) for p in primals]
        derived, out_masks = taylor_primitive(prim, params, avals, masks, self.order)
        return self.wrap(call_on(self.parent, derived, [*primals, *_given(extra)]), out_masks)

    def apply_jaxpr(
        self,
        jaxpr: Jaxpr,
        primals: list[Any],
        extra: list[Any],
        mask: tuple[bool, ...],
        name: str | None,
    ) -> list[Any]:
        derived, out_masks = taylor_jaxpr(jaxpr, _masks(extra, mask), self.order)
        outs = call_on(self.parent, derived, [*primals, *_given(extra)], name)
        return self.wrap(outs, out_masks)

    def call_custom(self, custom: Any, args: Sequence[Any]) -> list[Any]:
        if isinstance(custom, CustomJVP):
            return _by_custom_rule(self, args, custom)
        return super().call_custom(custom, args)

    def lift(self, x, terms: Terms) -> Any:
        """A tracer of a value with derivatives; the value itself if it has none."""
        return x if mask_of(terms) is None else TaylorTracer(self, x, terms)

    def wrap(self, outs: list, out_masks: Sequence[Mask]) -> list:
        """Results with their derivatives, which follow them in ``outs``."""
        n = len(out_masks)
        return [self.lift(o, t) for o, t in zip(outs[:n], given_terms(outs[n:], out_masks))]


def mask_of(terms: Terms) -> Mask:
    """Mask of the derivatives that are not zero."""
    if terms is None or all(t is None for t in terms):
        return None
    return tuple(t is not None for t in terms)


def given_terms(values: Sequence, masks: Sequence[Mask]) -> list[Terms]:
    """Derivatives by operand, from one list of those that are not zero."""
    rest = iter(values)
    return [None if m is None else [next(rest) if b else None for b in m] for m in masks]


def _masks(extra: Sequence[Terms], mask: Sequence[bool]) -> tuple[Mask, ...]:
    """The masks of all operands, given the derivatives of those that have some."""
    terms = iter(extra)
    return tuple(mask_of(next(terms)) if m else None for m in mask)


def _given(extra: Sequence[Terms]) -> list[Any]:
    """The derivatives that are not zero, in order."""
    return [t for terms in extra if terms is not None for t in terms if t is not None]


def term_avals(avals: Sequence, masks: Sequence[Mask]) -> list:
    """Types of the derivatives that are not zero."""
    return [a.tangent_aval() for a, m in zip(avals, masks) if m is not None for b in m if b]


# Programs


def taylor_primitive(
    prim: Primitive, params: dict, avals: list, masks: tuple[Mask, ...], order: int
):
    """Jaxpr ``(*primals, *terms) -> (*outs, *out terms)`` and the masks of the results."""

    def make():
        rule = prim.find(taylor) or prim.require(jvp, "Taylor mode (jet)")
        n = len(avals)

        def run(args):
            series = []
            for a, terms in zip(avals, given_terms(args[n:], masks)):
                terms = terms or [None] * order
                series.append([Zero(a.tangent_aval()) if t is None else t for t in terms])
            outs, derivatives = _checked(prim, rule, rule(list(args[:n]), series, **params), order)
            return outs, [[None if type(t) is Zero else t for t in terms] for terms in derivatives]

        return _staged(run, avals, masks, DebugInfo("jet", prim.name))

    key = (tuple(avals), masks, order, taylor.version)
    return derive("taylor", prim, params, key, make)


def taylor_jaxpr(
    jaxpr: Jaxpr, masks: tuple[Mask, ...], order: int, force: tuple[Mask, ...] | None = None
):
    """The same for a jaxpr; results have the derivatives in ``force`` even if they are zero."""

    def make():
        n = len(jaxpr.invars)

        def run(args):
            terms = given_terms(args[n:], masks)
            return taylor_of(lambda *a: eval_jaxpr(jaxpr, a), args[:n], terms, order)

        return _staged(run, jaxpr.in_avals, masks, jaxpr.debug_info, force)

    return derive_from_jaxpr(jaxpr, "taylor", (masks, order, force, taylor.version), make)


def _staged(run: Callable, avals, masks, info: DebugInfo, force=None):
    out_masks: list[Mask] = []

    def flat(*args):
        outs, derivatives = run(args)
        flat_terms = []
        for i, (o, terms) in enumerate(zip(outs, derivatives)):
            forced = force[i] if force is not None else None
            if forced is not None:
                terms = _filled(o, terms, forced)
            out_masks.append(mask_of(terms))
            flat_terms.extend(t for t in terms or () if t is not None)
        return [*outs, *flat_terms]

    jaxpr = stage(flat, [*avals, *term_avals(avals, masks)], debug_info=info, parent=None)
    return simplified(jaxpr), tuple(out_masks)


def _filled(out, terms: Terms, forced: tuple[bool, ...]) -> list:
    terms = terms or [None] * len(forced)
    zero = Zero.like(out)
    return [instantiate(zero) if t is None and w else t for t, w in zip(terms, forced)]


def _checked(
    prim: Primitive, rule: Callable[..., Any], result: Any, order: int
) -> tuple[Sequence[Any], Sequence[Any]]:
    """The results of a taylor rule, and a list of derivatives for each."""
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        invalid_result(prim, taylor, rule, f"returned {result!r}")
    outs, derivatives = result if prim.multiple_results else ([result[0]], [result[1]])
    if len(outs) != len(derivatives):
        problem = f"returned derivatives of {len(derivatives)} results for {len(outs)} results"
        invalid_result(prim, taylor, rule, problem)
    for o, terms in zip(outs, derivatives):
        if not isinstance(terms, (tuple, list)) or len(terms) != order:
            returned = len(terms) if isinstance(terms, (tuple, list)) else repr(terms)
            problem = f"returned {returned} as the {order} derivatives of a result"
            invalid_result(prim, taylor, rule, problem)
        for t in terms:
            if type(t) is not Zero and typeof(t).shape != typeof(o).shape:
                problem = f"returned a derivative of type {typeof(t)} of a result of {typeof(o)}"
                invalid_result(prim, taylor, rule, problem)
    return outs, derivatives


def taylor_of(fun: Callable, primals: Sequence, terms: Sequence[Terms], order: int):
    """Run a function of flat values along a curve: results, and their derivatives."""
    trace = TaylorTrace(current_trace(), order)
    ins = [trace.lift(p, t) for p, t in zip(primals, terms)]
    try:
        with set_trace(trace):
            outs = fun(*ins)
        split = [trace.split(o) for o in outs]
    finally:
        trace.live = False
    return [p for p, _ in split], [t for _, t in split]


# From forward derivatives


@taylor.falls_back
def _taylor_fallback(prim: Primitive) -> Callable | None:
    return partial(_by_derivative, prim) if prim.find(jvp) is not None else None


def _by_derivative(prim: Primitive, primals, series, **params):
    order = len(series[0]) if series else 0
    terms = [_or_none(s) for s in series]
    avals = [typeof(p) for p in primals]
    mask = tuple(t is not None for t in terms)
    forward, out_mask = jvp_primitive(prim, params, avals, mask)
    if not any(out_mask) or _is_linear(forward, mask, len(out_mask)):
        outs = prim.bind(*primals, **params)
        outs = outs if prim.multiple_results else [outs]
        derivatives = _term_by_term(prim, params, avals, primals, terms, outs, order)
    else:
        outs, derivatives = derived(forward, out_mask, primals, terms, order)
    derivatives = [
        [Zero.like(o) if t is None else t for t in ts or [None] * order]
        for o, ts in zip(outs, derivatives)
    ]
    return (outs, derivatives) if prim.multiple_results else (outs[0], derivatives[0])


def _or_none(series: Sequence) -> Terms:
    derivatives = [None if type(t) is Zero else t for t in series]
    return None if all(t is None for t in derivatives) else derivatives


def _is_linear(forward: Jaxpr, mask: tuple[bool, ...], n_outs: int) -> bool:
    """Return True if tangents of results depend on no moving operand, only on its tangent."""
    used = _tangents_only(forward, n_outs)[1]
    return not any(u and m for u, m in zip(used, mask))


def _tangents_only(forward: Jaxpr, n_outs: int):
    used_outputs = (False,) * n_outs + (True,) * (len(forward.outvars) - n_outs)
    return dce_jaxpr(forward, used_outputs)


def _term_by_term(prim, params, avals, primals, terms, outs, order: int) -> list[Terms]:
    """The derivatives of a function that is linear in what moves: each from those of its order."""
    derivatives: list[list] = [[None] * order for _ in outs]
    for k in range(order):
        now = [None if t is None else t[k] for t in terms]
        mask = tuple(t is not None for t in now)
        if not any(mask):
            continue
        forward, out_mask = jvp_primitive(prim, params, avals, mask)
        if not any(out_mask):
            continue
        program, used = _tangents_only(forward, len(outs))
        operands = [*primals, *(t for t in now if t is not None)]
        values = call_on(current_trace(), program, [x for x, u in zip(operands, used) if u])
        dots = iter(values)
        for i, m in enumerate(out_mask):
            if m:
                derivatives[i][k] = next(dots)
    return list(derivatives)


def derived(
    forward: Jaxpr, out_mask: Sequence[bool], primals: Sequence, terms: Sequence[Terms], order: int
) -> tuple[list, list[Terms]]:
    """Results and their derivatives by a jvp jaxpr ``(*primals, *tangents) -> (*outs,
    *out tangents)``, which takes tangents of the operands that have terms."""
    moving = [(p, t) for p, t in zip(primals, terms) if t is not None]
    tangents = [_filled(p, t[:1], (True,))[0] for p, t in moving]
    n = len(out_mask)
    if order == 1:
        values = call_on(current_trace(), forward, [*primals, *tangents])
        later: list[Terms] = [None] * len(values)
    else:
        lower = [None if t is None else t[:-1] for t in terms] + [t[1:] for _, t in moving]
        lower = [None if mask_of(t) is None else t for t in lower]
        run = partial(eval_jaxpr, forward)
        values, later = taylor_of(lambda *a: run(a), [*primals, *tangents], lower, order - 1)
    dots = iter(zip(values[n:], later[n:]))
    derivatives: list[Terms] = []
    for m in out_mask:
        if not m:
            derivatives.append(None)
            continue
        first, rest = next(dots)
        derivatives.append([first, *(rest or [None] * (order - 1))])
    return values[:n], derivatives


# Functions with a forward derivative of their author's


def _by_custom_rule(trace: TaylorTrace, args: Sequence, custom: CustomJVP) -> list:
    parts = [trace.split(a) for a in args]
    primals = [p for p, _ in parts]
    terms = [None if mask_of(t) is None else t for _, t in parts]
    if not rule_applies(trace, custom, terms):
        return custom.fun(*args)
    with set_trace(trace.parent):
        if all(t is None for t in terms):
            return custom.call(primals)
        mask = [t is not None for t in terms]
        forward, consts, out_mask = derivative_jaxpr(custom, primals, mask, trace)
        k = len(consts)
        outs, derivatives = derived(
            forward, out_mask, [*consts, *primals], [*[None] * k, *terms], trace.order
        )
    return [trace.lift(o, t) for o, t in zip(outs, derivatives)]
