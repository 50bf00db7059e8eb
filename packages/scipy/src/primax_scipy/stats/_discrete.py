"""Discrete distributions, declared by the logarithm of the probability and a tail."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.extend import typeof

from .._custom_rules import with_derivatives_of
from .._double_precision import in_double
from .._elementary import choose
from ..special._operands import if_any
from ._arguments import declared, together, with_signature
from ._continuous import Functions, documentation, with_empty
from ._domains import Domain
from ._logarithms import log_complement, log_of
from ._samples import Sampler, from_integer_quantiles, sampler
from ._sums import log_sum

Kernel = Callable[..., Any]


@dataclass(frozen=True, kw_only=True)
class Discrete:
    """Kernels of a distribution on integers with ``loc = 0``.

    Kernels are functions of integers within the support, in floats, and of the parameters.

    Attributes:
      name, title, shapes, valid, sample: those of ``Continuous``.
      support: both ends, or a function of the parameters that returns them.
      whole: False if probabilities of numbers between integers are those of the kernel too.
      cdf, sf, logcdf, logsf: tails; without any of them, probabilities are added.
      pmf_at_ends: the probability as a product of powers, for derivatives with respect to the last
        parameter where this is 0 or 1.
      ratio: the probability of ``k + 1`` divided by that of ``k``, for the addition.
      double: True if tails of ``float32`` numbers are computed in ``float64``.
    """

    name: str
    title: str
    shapes: Mapping[str, Domain] = field(default_factory=lambda: MappingProxyType({}))
    support: Any = (0.0, math.inf)
    whole: bool = True
    logpmf: Kernel
    pmf_at_ends: Kernel | None = None
    cdf: Kernel | None = None
    sf: Kernel | None = None
    logcdf: Kernel | None = None
    logsf: Kernel | None = None
    ratio: Kernel | None = None
    double: bool = False
    ppf: Kernel | None = None
    isf: Kernel | None = None
    mean: Kernel
    var: Kernel
    entropy: Kernel | None = None
    sample: Sampler | None = None
    valid: Kernel | None = None

    def ends(self, like: Any, *shapes: Any) -> tuple[Any, Any]:
        """Both ends of the support, as arrays."""
        low, high = self.support(*shapes) if callable(self.support) else self.support
        low, high = (lax.full_like(like, e) if isinstance(e, float) else e for e in (low, high))
        return low, high

    def tails(self) -> dict[str, Kernel]:
        """Both tails and their logarithms."""
        names = ("cdf", "sf", "logcdf", "logsf")
        tails = {n: getattr(self, n) for n in names if getattr(self, n) is not None}
        if not tails:
            tails = dict(zip(("logcdf", "logsf"), _added(self), strict=True))
        for one, other in (("cdf", "sf"), ("sf", "cdf")):
            if one not in tails:
                log = tails.get(f"log{one}")
                tails[one] = (
                    (lambda k, *s, _log=log: lax.exp(_log(k, *s))) if log
                    else (lambda k, *s, _log=tails[f"log{other}"]: -lax.expm1(_log(k, *s)))
                )  # fmt: skip
        for one, other in (("cdf", "sf"), ("sf", "cdf")):
            if f"log{one}" not in tails:
                pair = tails[one], tails[other]
                tails[f"log{one}"] = lambda k, *s, _pair=pair: log_of(
                    _pair[0](k, *s), _pair[1](k, *s)
                )
        return {n: in_double(tail) for n, tail in tails.items()} if self.double else tails


def _added(of: Discrete) -> tuple[Kernel, Kernel]:
    """Logarithms of both tails as sums of probabilities; the smaller tail is added."""

    def both(k: Any, *shapes: Any) -> tuple[Any, Any]:
        low, high = of.ends(k, *shapes)
        left = k < of.mean(*shapes)
        begin = choose(left, k, k + 1)
        last = begin > high  # the upper tail is empty
        begin = choose(last, high, begin)
        ends = choose(left, low, begin), choose(left, k, high)
        log = log_sum(of.logpmf, begin, *ends, *shapes, ratio=of.ratio)
        log = choose(last, -math.inf, choose(log < 0, log, 0.0))
        other = log_complement(choose(last, -1.0, log))
        return choose(left, log, choose(last, 0.0, other)), choose(left, other, log)

    return lambda k, *s: both(k, *s)[0], lambda k, *s: both(k, *s)[1]


def _first_integer(of: Discrete, reached: Kernel, like: Any, shapes: Any) -> Any:
    """The smallest integer of the support that satisfies an increasing condition.

    From the mean on, steps are doubled until they enclose the integer; then the interval is
    bisected. Each iteration evaluates the condition once.
    """
    low_end, high_end = of.ends(like, *shapes)
    mean, deviation = of.mean(*shapes), lax.sqrt(of.var(*shapes))
    known = (lax.abs(mean) < math.inf) & (deviation < math.inf)
    centre = lax.round(choose(known, mean, 1.0))
    step = lax.ceil(choose(known & (deviation > 1), deviation, 1.0))

    def narrow(state: Any) -> Any:
        i, low, high, below, above, step, _ = state
        outside = choose(below, low + step, choose(above, high - step, centre))
        probe = choose(below & above, lax.floor(0.5 * low + 0.5 * high), outside)
        probe = lax.clamp(low_end, probe, high_end)
        hit = reached(probe) | (probe >= high_end)
        high, low = choose(hit, probe, high), choose(hit, low, probe)
        least = hit & (probe <= low_end)
        low = choose(least, probe - 1, low)
        below, above = below | ~hit | least, above | hit
        step = choose(below & above, step, 2 * step)
        middle = lax.floor(0.5 * low + 0.5 * high)
        finished = below & above & ((high - low <= 1) | (middle <= low) | (middle >= high))
        return i + 1, low, high, below, above, step, ~finished

    def going(state: Any) -> Any:
        return (state[0] < 3000) & lax.reduce_or(state[6], tuple(range(typeof(like).ndim)))

    no, yes = (lax.full_like(like, v, np.bool_) for v in (False, True))
    start = (0, centre, centre, no, no, step, yes)
    return lax.while_loop(going, narrow, start)[2]


def _integer_quantile(of: Discrete, tail: Kernel, upper: bool) -> Kernel:
    def quantile(q: Any, *shapes: Any) -> Any:
        q, *shapes = map(lax.stop_gradient, (q, *shapes))

        def reached(k: Any) -> Any:
            value = tail(k, *shapes)
            return (value <= q) if upper else (value >= q)

        return _first_integer(of, reached, q, shapes)

    return quantile


def _entropy(of: Discrete) -> Kernel:
    """Entropy by adding ``-p log(p)``, in both directions from the mean."""

    def entropy(*shapes: Any) -> Any:
        low, high = of.ends(shapes[0], *shapes)
        start = lax.clamp(low, lax.floor(of.mean(*shapes)), high)

        def term(k: Any, *s: Any) -> Any:
            log = of.logpmf(k, *s)
            some = (log < 0) & (log > -1e30)
            at = choose(some, log, -1.0)
            return choose(some, at + lax.log(-at), -math.inf)

        total = lax.exp(log_sum(term, start, low, high, *shapes))
        return choose(of.var(*shapes) > 0, total, 0.0)

    return entropy


_SENTENCES: Final = {
    "logpmf": "Log-probability of the {}: ``-inf`` outside of the support.",
    "pmf": "Probability of the {}: 0 outside of the support.",
    "cdf": "CDF of the {}: probability of a value up to ``x``.",
    "logcdf": "Logarithm of the CDF of the {}, accurate in the lower tail.",
    "sf": "Survival function of the {}: probability of a value greater than ``x``.",
    "logsf": "Logarithm of the survival function of the {}, accurate in the upper tail.",
    "ppf": "Quantile function of the {}: the smallest value whose CDF is at least ``x``, and NaN "
    "for\n``x`` outside of [0, 1].",
    "isf": "Inverse of the survival function of the {}: the smallest value whose survival\n"
    "function is at most ``x``, and NaN for ``x`` outside of [0, 1].",
    "mean": "Mean of the {}.",
    "var": "Variance of the {}.",
    "std": "Standard deviation of the {}.",
    "entropy": "Entropy of the {}, in nats.",
    "median": "Median of the {}.",
}
_OUTSIDE: Final = {
    "cdf": (0.0, 1.0), "sf": (1.0, 0.0), "logcdf": (-math.inf, 0.0), "logsf": (0.0, -math.inf),
}  # fmt: skip
_LOC: Final = (("loc", 0),)


def _accepted(of: Discrete, shapes: Any, loc: Any) -> Any:
    condition = loc == loc
    for domain, value in zip(of.shapes.values(), shapes, strict=True):
        condition = condition & domain.contains(value)
    return condition if of.valid is None else condition & of.valid(*shapes)


def _nan_unless(accepted: Any, value: Any) -> Any:
    return lax.select(accepted, value, lax.full_like(value, np.nan))


def _probability(of: Discrete, name: str) -> Kernel:
    def logpmf(k: Any, *rest: Any) -> Any:
        k, *shapes, loc = together(name, k, *rest)
        x = k - loc
        low, high = of.ends(x, *shapes)
        within = (x >= low) & (x <= high) & (lax.abs(x) < math.inf)
        if of.whole:
            within = within & (lax.floor(x) == x)
        value = choose(within, of.logpmf(choose(within, x, low), *shapes), -math.inf)
        return _nan_unless(_accepted(of, shapes, loc) & (x == x), value)

    return logpmf


def _with_ends(of: Discrete, log: Kernel, name: str) -> Kernel:
    """The probability, with derivatives at the ends that are not those of its logarithm."""

    def derived(k: Any, *rest: Any) -> Any:
        *shapes, loc = rest
        *others, p = shapes
        x = k - loc
        low, high = of.ends(x, *shapes)
        at_end = ((p == 0) | (p == 1)) & _accepted(of, shapes, loc) & (x == x)
        within = at_end & (x >= low) & (x <= high) & (lax.floor(x) == x)
        usual = lax.exp(log(k, *others, choose(at_end, 0.5, p), loc))

        def ends(x: Any, *shapes: Any) -> tuple[Any]:
            return (of.pmf_at_ends(x, *shapes),)  # type: ignore[misc]

        (value,) = if_any(within, 1, ends, choose(within, x, low), *shapes)
        return choose(within, value, choose(at_end, 0.0, usual))

    probability = with_derivatives_of(derived)(lambda *operands: lax.exp(log(*operands)))
    return lambda *args: probability(*together(name, *args))


def _tail(of: Discrete, kernel: Kernel, name: str, outside: tuple[float, float]) -> Kernel:
    def tail(k: Any, *rest: Any) -> Any:
        k, *shapes, loc = together(name, k, *rest)
        x = lax.floor(k - loc)
        low, high = of.ends(x, *shapes)
        accepted = _accepted(of, shapes, loc) & (x == x)
        within = (x >= low) & (x < high) & (x > -math.inf) & accepted
        value = kernel(choose(within, x, low), *shapes)
        below_value, above_value = (lax.full_like(value, v) for v in outside)
        value = lax.select(within, value, lax.select(x >= high, above_value, below_value))
        return _nan_unless(accepted, value)

    return tail


def _quantile(of: Discrete, kernel: Kernel, name: str) -> Kernel:
    def inverse(q: Any, *rest: Any) -> Any:
        q, *shapes, loc = together(name, q, *rest)
        accepted = _accepted(of, shapes, loc) & (q >= 0) & (q <= 1)
        within = (q > 0) & (q < 1) & accepted
        value = kernel(choose(within, q, 0.5), *shapes)
        low, high = of.ends(value, *shapes)
        # As in SciPy, except for the Bernoulli distribution, as in the reference.
        least = low - 1 if of.whole else low
        first, last = (least, high) if name.endswith("ppf") else (high, least)
        value = lax.select(within, value, lax.select(q > 0.5, last, first))
        return _nan_unless(accepted, value + loc)

    return inverse


def _moment(of: Discrete, kernel: Kernel, name: str, kind: str) -> Kernel:
    def moment(*rest: Any) -> Any:
        *shapes, loc = together(name, *rest)
        value = kernel(*shapes)
        value = loc + value if kind == "mean" else lax.sqrt(value) if kind == "std" else value
        return _nan_unless(_accepted(of, shapes, loc), value)

    return moment


def _public(of: Discrete, name: str, kernel: Kernel, argument: str) -> Any:
    meaning = "probabilities" if argument == "q" else "numbers"
    last = "loc: the number that is added to values of the distribution."
    doc = documentation(name, of, _SENTENCES, argument, meaning, last)
    parameters = [*with_empty(argument, of.shapes), *_LOC]
    module = f"primax_scipy.stats.{of.name}"
    return declared(f"{of.name}.{name}", with_signature(kernel, name, module, doc, parameters))


def functions(of: Discrete) -> Functions:
    """The public functions of a distribution, with ``loc``."""
    name = of.name
    log = _probability(of, f"{name}.logpmf")
    pairs: dict[str, Kernel] = {"logpmf": log, "pmf": lambda *args: lax.exp(log(*args))}
    if of.pmf_at_ends is not None:
        pairs["pmf"] = _with_ends(of, log, f"{name}.pmf")
    tails = of.tails()
    for kind, outside in _OUTSIDE.items():
        pairs[kind] = _tail(of, tails[kind], f"{name}.{kind}", outside)
    quantiles = {
        "ppf": of.ppf or _integer_quantile(of, tails["cdf"], False),
        "isf": of.isf or _integer_quantile(of, tails["sf"], True),
    }
    out = {kind: _public(of, kind, fun, "k") for kind, fun in pairs.items()}
    for kind, kernel in quantiles.items():
        pairs[kind] = _quantile(of, kernel, f"{name}.{kind}")
        out[kind] = _public(of, kind, pairs[kind], "q")

    def median(*rest: Any) -> Any:
        half, *rest = together(f"{name}.median", 0.5, *rest)
        return pairs["ppf"](half, *rest)

    moments = {"mean": of.mean, "var": of.var, "std": of.var, "entropy": of.entropy or _entropy(of)}
    for kind, kernel in moments.items():
        out[kind] = _public(of, kind, _moment(of, kernel, f"{name}.{kind}", kind), "")
    out["median"] = _public(of, "median", median, "")
    out["rvs"] = sampler(of, of.sample or from_integer_quantiles(quantiles["ppf"]), _LOC, True)
    return Functions(**out)
