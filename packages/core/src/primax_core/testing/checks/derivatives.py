"""Checks of derivatives against finite differences in double precision, and of each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..._api.forward import jvp
from ..._api.jit import jit
from ..._api.vjp import vjp
from ..._trace.core import typeof
from ...lax.arithmetic import mul
from ...lax.elementwise import full_like
from ..calls import Call, Failure, NotApplicable
from ..gradients import inner_product, numerical_jvp, random_tangent
from ..tolerance import mismatches, to_float64

_TOLERANCE = 2e-6
_ROUNDING = 1e-10


class _Setup:
    """The function of the differentiable operands in double precision, with random tangents."""

    def __init__(self, get: Callable[..., Call]):
        self.call = call = get(double=True)
        if not call.differentiable:
            raise NotApplicable("no operand can be differentiated")
        if all(call.sample.operands[i].dtype.itemsize == 2 for i in call.differentiable):
            raise NotApplicable("in double precision the sample equals the wider ones")
        self.indices = call.differentiable
        self.primals = tuple(call.args[i] for i in self.indices)
        self.fun = call.of(self.indices)
        self.outs = self.fun(*self.primals)
        if not self.outs:
            raise NotApplicable("no result can be differentiated")
        self.rng = np.random.default_rng(call.seed + 1)
        self.tangents = self.random(self.primals)
        self.cts = list(self.random(self.outs))
        self.tolerance = call.sample.tolerance or _TOLERANCE

    def random(self, values) -> tuple:
        return tuple(random_tangent(v, self.rng) for v in values)

    def same(self, what: str, results, expected, tolerance: float | None = None) -> None:
        text = mismatches(list(results), list(expected), tolerance or self.tolerance)
        if text:
            raise Failure(f"{what}: {text}")

    def same_number(self, what: str, a: float, b: float, tolerance: float) -> None:
        self.same(what, [np.asarray(a)], [np.asarray(b)], tolerance)


def check_jvp(get: Callable[..., Call]) -> None:
    """The forward derivative equals central differences and has the types of the results."""
    s = _Setup(get)
    outs, dots = jit(lambda xs, ts: jvp(s.fun, xs, ts))(s.primals, s.tangents)
    s.same("the value computed with the derivative", outs, s.outs, _ROUNDING)
    for out, dot in zip(outs, dots):
        if typeof(dot).shape != typeof(out).shape or typeof(dot).dtype != typeof(out).dtype:
            raise Failure(f"a result of type {typeof(out)} has a tangent of type {typeof(dot)}")
    s.same("against central differences", dots, numerical_jvp(s.fun, s.primals, s.tangents))


def check_transpose(get: Callable[..., Call]) -> None:
    """``⟨J v, w⟩ = ⟨v, Jᵀ w⟩``."""
    s = _Setup(get)
    forward = "jvp" not in s.call.sample.without

    @jit
    def both(xs, ts, cts):
        outs, pullback = vjp(s.fun, *xs)
        return jvp(s.fun, xs, ts)[1] if forward else None, outs, pullback(cts)

    dots, outs, cts = both(s.primals, s.tangents, s.cts)
    if not forward:
        dots = numerical_jvp(s.fun, s.primals, s.tangents)
    precision = 1e-10 if forward else s.tolerance
    s.same("the value computed with the pullback", outs, s.outs, _ROUNDING)
    for x, ct in zip(s.primals, cts):
        if typeof(ct).shape != typeof(x).shape or typeof(ct).dtype != typeof(x).dtype:
            raise Failure(f"an operand of type {typeof(x)} has a cotangent of type {typeof(ct)}")
    left, right = inner_product(s.cts, dots), inner_product(cts, s.tangents)
    size = sum(float(np.abs(to_float64(d)).sum()) for d in dots if np.asarray(d).size)
    s.same_number("⟨v, Jᵀ w⟩ against ⟨J v, w⟩", right, left, precision * max(1.0, size))


def check_second_order(get: Callable[..., Call]) -> None:
    """Second derivatives: forward of forward against differences, and reverse against it."""
    s = _Setup(get)

    def derivative(*xs):
        return jvp(s.fun, xs, s.tangents)[1]

    def pulled(*xs):
        return vjp(s.fun, *xs)[1](s.cts)

    reverse = "transpose" not in s.call.sample.without

    @jit
    def seconds(xs, directions):
        forward = jvp(derivative, xs, directions)[1]
        if not reverse:
            return forward, None, None
        return forward, vjp(derivative, *xs)[1](s.cts), jvp(pulled, xs, directions)[1]

    directions = s.random(s.primals)
    second, cotangents, pulled_tangents = seconds(s.primals, directions)
    loose = max(2e-5, s.tolerance)
    numeric = numerical_jvp(jit(derivative), s.primals, directions)
    s.same("forward of forward against differences", second, numeric, loose)
    if not reverse:
        return
    left = inner_product(s.cts, second)
    scale = 1e-9 * max(1.0, sum(float(np.abs(to_float64(d)).sum()) for d in second))
    right = inner_product(list(cotangents), list(directions))
    s.same_number("reverse of forward against forward of forward", right, left, scale)
    right = inner_product(list(pulled_tangents), list(s.tangents))
    s.same_number("forward of reverse against forward of forward", right, left, scale)


def check_zeros(get: Callable[..., Call]) -> None:
    """Symbolic zero tangents and cotangents are equivalent to arrays of zeros."""
    s = _Setup(get)
    if len(s.indices) == 1 and len(s.outs) == 1:
        raise NotApplicable("there is one operand and one result")
    reverse = "transpose" not in s.call.sample.without
    results = range(len(s.outs)) if reverse and len(s.outs) > 1 else ()

    @jit
    def all_pairs(xs, tangents, cts):
        whole = vjp(s.fun, *xs)[1] if reverse else None
        pairs = []
        for k, index in enumerate(s.indices):
            alone = s.call.of([index])
            filled = _others_zero(tangents, k)
            pairs.append((jvp(alone, [xs[k]], [tangents[k]])[1], jvp(s.fun, xs, filled)[1]))
            if whole is not None:
                pairs.append((vjp(alone, xs[k])[1](cts), [whole(cts)[k]]))
        for k in results:
            one = s.call.of(s.indices, lambda outs, k=k: [outs[k]])
            pairs.append((vjp(one, *xs)[1]([cts[k]]), whole(list(_others_zero(cts, k)))))
        return pairs

    named = []
    for index in s.indices:
        named.append(f"tangent of operand {index} alone")
        if reverse:
            named.append(f"cotangent of operand {index} alone")
    named.extend(f"cotangents of result {k} alone" for k in results)
    for what, (actual, expected) in zip(
        named, all_pairs(s.primals, s.tangents, s.cts), strict=True
    ):
        s.same(what, actual, expected, _ROUNDING)


def _others_zero(values: Sequence, k: int) -> tuple:
    """All values but one replaced by zeros that are not symbolic."""
    return tuple(v if i == k else mul(v, full_like(v, 0)) for i, v in enumerate(values))
