"""Derivatives: against differences in double precision, and against each other."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..._api.forward import jvp
from ..._api.vjp import vjp
from ..._trace.core import typeof
from ..calls import Call, Failure, NotApplicable
from ..gradients import inner_product, numerical_jvp, random_tangent
from ..tolerance import mismatches, wide

_TOLERANCE = 2e-6


class _Setup:
    """The function of the differentiable operands in double precision, with random tangents."""

    def __init__(self, get: Callable[..., Call]):
        self.call = call = get(double=True)
        if not call.places:
            raise NotApplicable("no operand can be differentiated")
        self.places = call.places
        self.primals = tuple(call.args[i] for i in self.places)
        self.fun = call.of(self.places)
        self.outs = self.fun(*self.primals)
        if not self.outs:
            raise NotApplicable("no result can be differentiated")
        self.rng = np.random.default_rng(call.seed + 1)
        self.tangents = self.random(self.primals)
        self.cts = list(self.random(self.outs))
        self.tolerance = call.sample.tolerance or _TOLERANCE

    def random(self, values) -> tuple:
        return tuple(random_tangent(v, self.rng) for v in values)

    def same(self, what: str, found, expected, tolerance: float | None = None) -> None:
        text = mismatches(list(found), list(expected), tolerance or self.tolerance)
        if text:
            raise Failure(f"{what}: {text}")

    def same_number(self, what: str, a: float, b: float, tolerance: float) -> None:
        self.same(what, [np.asarray(a)], [np.asarray(b)], tolerance)


def check_jvp(get: Callable[..., Call]) -> None:
    """The forward derivative is that of central differences, and has the results' types."""
    s = _Setup(get)
    outs, dots = jvp(s.fun, s.primals, s.tangents)
    s.same("the value that comes with the derivative", outs, s.outs, 1e-12)
    for out, dot in zip(outs, dots):
        if typeof(dot).shape != typeof(out).shape or typeof(dot).dtype != typeof(out).dtype:
            raise Failure(f"a result of type {typeof(out)} has a tangent of type {typeof(dot)}")
    s.same("against central differences", dots, numerical_jvp(s.fun, s.primals, s.tangents))


def check_transpose(get: Callable[..., Call]) -> None:
    """``⟨J v, w⟩ = ⟨v, Jᵀ w⟩``."""
    s = _Setup(get)
    precision = 1e-10
    if "jvp" in s.call.sample.without:
        dots, precision = numerical_jvp(s.fun, s.primals, s.tangents), s.tolerance
    else:
        _, dots = jvp(s.fun, s.primals, s.tangents)
    outs, pullback = vjp(s.fun, *s.primals)
    s.same("the value that comes with the pullback", outs, s.outs, 1e-12)
    cts = pullback(s.cts)
    for x, ct in zip(s.primals, cts):
        if typeof(ct).shape != typeof(x).shape or typeof(ct).dtype != typeof(x).dtype:
            raise Failure(f"an operand of type {typeof(x)} has a cotangent of type {typeof(ct)}")
    left, right = inner_product(s.cts, dots), inner_product(cts, s.tangents)
    size = sum(float(np.abs(wide(d)).sum()) for d in dots if np.asarray(d).size)
    s.same_number("⟨v, Jᵀ w⟩ against ⟨J v, w⟩", right, left, precision * max(1.0, size))


def check_second_order(get: Callable[..., Call]) -> None:
    """Derivatives of derivatives: forward of forward against differences, reverse against it."""
    s = _Setup(get)

    def slope(*xs):
        return jvp(s.fun, xs, s.tangents)[1]

    ways = s.random(s.primals)
    _, second = jvp(slope, s.primals, ways)
    loose = max(2e-5, s.tolerance)
    s.same("forward of forward against differences", second,
           numerical_jvp(slope, s.primals, ways), loose)  # fmt: skip
    if "transpose" in s.call.sample.without:
        return
    left = inner_product(s.cts, second)
    _, pullback = vjp(slope, *s.primals)
    right = inner_product(list(pullback(s.cts)), list(ways))
    scale = 1e-9 * max(1.0, sum(float(np.abs(wide(d)).sum()) for d in second))
    s.same_number("reverse of forward against forward of forward", right, left, scale)

    def pulled(*xs):
        return vjp(s.fun, *xs)[1](s.cts)

    _, moved = jvp(pulled, s.primals, ways)
    s.same_number("forward of reverse against forward of forward",
                  inner_product(list(moved), list(s.tangents)), left, scale)  # fmt: skip


def check_zeros(get: Callable[..., Call]) -> None:
    """Tangents and cotangents that are known to be zero count as zeros that are not known."""
    s = _Setup(get)
    if len(s.places) == 1 and len(s.outs) == 1:
        raise NotApplicable("there is one operand and one result")
    reverse = "transpose" not in s.call.sample.without
    whole = vjp(s.fun, *s.primals)[1] if reverse else None
    for k, place in enumerate(s.places):
        alone = s.call.of([place])
        only = [s.tangents[k]]
        filled = [t if i == k else np.zeros_like(t) for i, t in enumerate(s.tangents)]
        s.same(f"tangent of operand {place} alone", jvp(alone, [s.primals[k]], only)[1],
               jvp(s.fun, s.primals, tuple(filled))[1], 1e-11)  # fmt: skip
        if whole is not None:
            s.same(f"cotangent of operand {place} alone",
                   vjp(alone, s.primals[k])[1](s.cts), [whole(s.cts)[k]], 1e-11)  # fmt: skip
    if whole is None or len(s.outs) == 1:
        return
    for k in range(len(s.outs)):
        one = s.call.of(s.places, lambda outs, k=k: [outs[k]])
        filled = [c if i == k else np.zeros_like(c) for i, c in enumerate(s.cts)]
        s.same(f"cotangents of result {k} alone", vjp(one, *s.primals)[1]([s.cts[k]]),
               whole(filled), 1e-11)  # fmt: skip
