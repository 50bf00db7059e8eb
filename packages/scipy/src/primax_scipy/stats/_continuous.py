"""Continuous distributions, declared by the kernels of their standard form.

A declaration contains the logarithm of the density and at least one of the tails. The other
functions are derived: complements and logarithms by formulas that keep the digits of small results,
quantiles by inversion, samples from quantiles.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import Parameter
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.extend import typeof

from .._custom_rules import with_derivatives_of
from .._elementary import choose
from ..special._operands import if_any
from ._arguments import declared, together, with_signature
from ._domains import Domain
from ._inversion import quantile
from ._logarithms import log_complement, log_of
from ._quadrature import entropy_of_density
from ._samples import Sampler, from_quantiles, sampler
from ._series_inversion import Curve

Kernel = Callable[..., Any]
_INFINITE: Final = (-math.inf, math.inf)


@dataclass(frozen=True, kw_only=True)
class Continuous:
    """Kernels of a distribution with ``loc = 0`` and ``scale = 1``.

    Kernels are functions of one real array and of arrays of parameters with its shape and dtype.
    They are called with arguments inside of the support.

    Attributes:
      name: the module.
      title: the distribution in sentences, such as ``"normal distribution"``.
      shapes: the domain of each parameter.
      support: both ends, or a function of the parameters that returns them.
      closed: True if the density at finite ends is that of the kernel; otherwise it is 0.
      periodic: True if the density is periodic, and the support is one period of it.
      symmetric: True if the upper tail mirrors the lower one.
      quantile_of_log: the argument at which the logarithm of the tail has a value; of the tail for
        which a logarithm is declared.
      guess: a first value for the inversion of the tails, as in `_first_quantiles`.
      curve: the distribution on the real line, if `_series_inversion` inverts the tails.
      sample: a function of a key, a shape, a dtype and the parameters.
      pdf_at_ends: the density as a product of powers, for its derivatives at finite ends.
      valid: a condition on all parameters, besides their domains.
      first: the names of the first parameter where the reference has others.
    """

    name: str
    title: str
    shapes: Mapping[str, Domain] = field(default_factory=lambda: MappingProxyType({}))
    support: Any = _INFINITE
    closed: bool = True
    periodic: bool = False
    symmetric: bool = False
    logpdf: Kernel
    pdf_at_ends: Kernel | None = None
    cdf: Kernel | None = None
    sf: Kernel | None = None
    logcdf: Kernel | None = None
    logsf: Kernel | None = None
    ppf: Kernel | None = None
    isf: Kernel | None = None
    quantile_of_log: Kernel | None = None
    guess: Kernel | None = None
    curve: Callable[..., Curve] | None = None
    mean: Kernel
    var: Kernel
    entropy: Kernel | None = None
    sample: Sampler | None = None
    valid: Kernel | None = None
    first: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def ends(self, *shapes: Any) -> tuple[Any, Any]:
        """Both ends of the support, numbers or arrays."""
        ends: tuple[Any, Any] = self.support(*shapes) if callable(self.support) else self.support
        return ends

    def declared_kernels(self) -> dict[str, Kernel]:
        """All kernels of one argument: those declared, and those derived from them."""
        kernels = {n: getattr(self, n) for n in _KERNELS if getattr(self, n) is not None}
        if self.symmetric:
            kernels.update(_mirrored(kernels))
        tails = _tails(kernels)
        return {"logpdf": self.logpdf, **tails, **_quantiles(self, kernels, tails)}


_KERNELS: Final = ("cdf", "sf", "logcdf", "logsf", "ppf", "isf")


def _mirrored(kernels: Mapping[str, Kernel]) -> dict[str, Kernel]:
    out: dict[str, Kernel] = {}
    for one, other in (("cdf", "sf"), ("logcdf", "logsf")):
        if one in kernels:
            out[other] = lambda z, *s, _fun=kernels[one]: _fun(-z, *s)
    if "ppf" in kernels:
        out["isf"] = lambda q, *s: -kernels["ppf"](q, *s)
    return out


def _tails(kernels: Mapping[str, Kernel]) -> dict[str, Kernel]:
    """Both tails and their logarithms."""
    tails = {n: kernels[n] for n in _KERNELS[:4] if n in kernels}
    for name, other in (("cdf", "sf"), ("sf", "cdf")):
        log, log_other = tails.get(f"log{name}"), tails.get(f"log{other}")
        if name in tails:
            continue
        if log is not None:
            tails[name] = lambda z, *s, _log=log: lax.exp(_log(z, *s))
        elif log_other is not None:
            tails[name] = lambda z, *s, _log=log_other: -lax.expm1(_log(z, *s))
    for name, other in (("cdf", "sf"), ("sf", "cdf")):
        if f"log{name}" in tails:
            continue
        if f"log{other}" in kernels and name not in kernels:
            log = kernels[f"log{other}"]
            tails[f"log{name}"] = lambda z, *s, _log=log: log_complement(_log(z, *s))
        else:
            pair = tails[name], tails[other]
            tails[f"log{name}"] = lambda z, *s, _pair=pair: log_of(_pair[0](z, *s), _pair[1](z, *s))
    return tails


def _quantiles(
    of: Continuous, kernels: Mapping[str, Kernel], tails: Mapping[str, Kernel]
) -> dict[str, Kernel]:
    """Quantile functions on (0, 1)."""
    out = {n: kernels[n] for n in ("ppf", "isf") if n in kernels}
    inverse = of.quantile_of_log
    if inverse is not None:
        direct, other = ("isf", "ppf") if "logsf" in kernels else ("ppf", "isf")
        out.setdefault(direct, lambda q, *s: inverse(lax.log(q), *s))
        out.setdefault(other, lambda q, *s: inverse(lax.log1p(-q), *s))
    for name in ("ppf", "isf"):
        if name not in out:
            pair = tails["cdf"], tails["sf"]
            out[name] = quantile(
                *pair, of.logpdf, of.ends, of.symmetric, name == "isf", of.guess, of.curve
            )
    return out


# What each function returns, and its values below and above the support

_FIRST: Final = {"ppf": "q", "isf": "q"}
_SENTENCES: Final = {
    "logpdf": "Log-density of the {}: ``-inf`` outside of the support.",
    "pdf": "Density of the {}: 0 outside of the support.",
    "cdf": "CDF of the {}: probability of a value up to ``x``.",
    "logcdf": "Logarithm of the CDF of the {}, accurate in the lower tail.",
    "sf": "Survival function of the {}: probability of a value greater than ``x``.",
    "logsf": "Logarithm of the survival function of the {}, accurate in the upper tail.",
    "ppf": "Quantile function of the {}, the inverse of the CDF; NaN outside of [0, 1].",
    "isf": "Inverse of the survival function of the {}; NaN outside of [0, 1].",
    "mean": "Mean of the {}.",
    "var": "Variance of the {}.",
    "std": "Standard deviation of the {}.",
    "entropy": "Differential entropy of the {}, in nats.",
    "median": "Median of the {}.",
}
_OUTSIDE: Final = {
    "cdf": (0.0, 1.0), "sf": (1.0, 0.0), "logcdf": (-math.inf, 0.0), "logsf": (0.0, -math.inf),
}  # fmt: skip


def documentation(
    name: str, of: Any, sentences: Mapping[str, str], first: str, meaning: str, last: str
) -> str:
    """The docstring of a function of a distribution."""
    lines = [sentences[name].format(of.title).replace("``x``", f"``{first or 'x'}``"), "", "Args:"]
    if first:
        lines.append(f"  {first}: {meaning}.")
    lines += [f"  {n}: a parameter, {d.text}." for n, d in of.shapes.items()]
    lines += [
        f"  {last}",
        "",
        "Returns:",
        "  Floats of the shape to which the arguments broadcast; NaN where a parameter is outside",
        "  of its domain.",
    ]
    return "\n".join(lines) + "\n"


def _accepted(of: Continuous, shapes: Any, scale: Any) -> Any:
    condition = scale > 0
    for domain, value in zip(of.shapes.values(), shapes, strict=True):
        condition = condition & domain.contains(value)
    return condition if of.valid is None else condition & of.valid(*shapes)


def _interior(ends: tuple[Any, Any], z: Any) -> Any:
    """A point inside of the support, where kernels have finite values and derivatives."""
    if ends is _INFINITE:
        return lax.full_like(z, 0)
    low, high = (lax.full_like(z, e) if isinstance(e, (int, float)) else e for e in ends)
    finite_low, finite_high = lax.abs(low) < math.inf, lax.abs(high) < math.inf
    one_sided = choose(finite_low, low + 1, choose(finite_high, high - 1, lax.full_like(z, 0)))
    both = finite_low & finite_high
    return choose(both, choose(both, low, 0.0) * 0.5 + choose(both, high, 0.0) * 0.5, one_sided)


def _masked(of: Continuous, z: Any, shapes: Any, closed: bool) -> tuple[Any, Any, Any]:
    """A condition, arguments inside of the support, and the condition of being above it."""
    ends = _INFINITE if closed and of.periodic else of.ends(*shapes)
    low, high = ends
    if ends is _INFINITE:
        # One comparison: XLA computes a conjunction with two uses in a loop of its own.
        within = lax.abs(z) < math.inf
    elif closed:
        within = (z >= low) & (z <= high) & (lax.abs(z) < math.inf)
    else:
        within = (z > low) & (z < high)
    above = z >= high
    middle = _interior(ends, z)
    return within, choose(within, z, middle), above


def _nan_unless(accepted: Any, value: Any) -> Any:
    return lax.select(accepted, value, lax.full_like(value, np.nan))


def _density(of: Continuous, kernel: Kernel, name: str) -> Kernel:
    def logpdf(x: Any, *rest: Any) -> Any:
        x, *shapes, loc, scale = together(name, x, *rest)
        z = (x - loc) / scale
        within, at, _ = _masked(of, z, shapes, of.closed)
        value = kernel(at, *shapes) - lax.log(scale)
        value = choose(within, value, -math.inf)
        return _nan_unless(_accepted(of, shapes, scale) & (z == z), value)

    return logpdf


def _with_ends(of: Continuous, log: Kernel, name: str) -> Kernel:
    """The density, whose derivatives at the ends are not those of its logarithm."""

    def derived(x: Any, *rest: Any) -> Any:
        *shapes, loc, scale = rest
        z = (x - loc) / scale
        low, high = of.ends(*shapes)
        at_end = ((z == low) | (z == high)) & (lax.abs(z) < math.inf)
        interior = _interior((low, high), z)
        usual = lax.exp(log(choose(at_end, loc + scale * interior, x), *shapes, loc, scale))

        def ends(z: Any, scale: Any, *shapes: Any) -> tuple[Any]:
            return (of.pdf_at_ends(z, *shapes) / scale,)  # type: ignore[misc]

        (value,) = if_any(at_end, 1, ends, choose(at_end, z, interior), scale, *shapes)
        return choose(at_end & _accepted(of, shapes, scale), value, usual)

    density = with_derivatives_of(derived)(lambda *operands: lax.exp(log(*operands)))
    return lambda *args: density(*together(name, *args))


def _tail(of: Continuous, kernel: Kernel, name: str, outside: tuple[float, float]) -> Kernel:
    def tail(x: Any, *rest: Any) -> Any:
        x, *shapes, loc, scale = together(name, x, *rest)
        z = (x - loc) / scale
        within, at, above = _masked(of, z, shapes, False)
        value = kernel(at, *shapes)
        # The constants are of the dtype and weak type of the value.
        below_value, above_value = (lax.full_like(value, v) for v in outside)
        value = lax.select(within, value, lax.select(above, above_value, below_value))
        return _nan_unless(_accepted(of, shapes, scale) & (z == z), value)

    return tail


def _quantile(of: Continuous, kernel: Kernel, name: str) -> Kernel:
    def inverse(q: Any, *rest: Any) -> Any:
        q, *shapes, loc, scale = together(name, q, *rest)
        within = (q > 0) & (q < 1)
        value = kernel(choose(within, q, 0.5), *shapes)
        ends = [
            lax.full_like(value, e) if isinstance(e, (int, float)) else lax.convert_element_type(
                e, typeof(value).dtype
            )
            for e in of.ends(*shapes)
        ]  # fmt: skip
        first, last = ends if name.endswith("ppf") else ends[::-1]
        value = lax.select(within, value, lax.select(q > 0.5, last, first))
        accepted = _accepted(of, shapes, scale) & (q >= 0) & (q <= 1)
        return _nan_unless(accepted, value * scale + loc)

    return inverse


def _moment(of: Continuous, kernel: Kernel, name: str, kind: str) -> Kernel:
    def moment(*rest: Any) -> Any:
        *shapes, loc, scale = together(name, *rest)
        like = lax.full_like(scale, 1)
        value = kernel(*shapes) if shapes else kernel(like)
        value = lax.full_like(scale, value) if isinstance(value, (int, float)) else value
        if kind == "mean":
            out = loc + scale * value
        elif kind == "entropy":
            out = value + lax.log(scale)
        else:
            out = lax.square(scale) * value if kind == "var" else scale * lax.sqrt(value)
        return _nan_unless(_accepted(of, shapes, scale), out)

    return moment


class Functions:
    """The public functions of a distribution.

    Attributes:
      pdf, logpdf: of continuous distributions.
      pmf, logpmf: of discrete distributions.
    """

    logpdf: Any
    pdf: Any
    cdf: Any
    logcdf: Any
    sf: Any
    logsf: Any
    ppf: Any
    isf: Any
    logpmf: Any
    pmf: Any
    mean: Any
    var: Any
    std: Any
    median: Any
    entropy: Any
    rvs: Any

    def __init__(self, **functions: Any) -> None:
        self.__dict__.update(functions)


_AFFINE: Final = (("loc", 0), ("scale", 1))


def _public(of: Continuous, name: str, kernel: Kernel, first: bool) -> Any:
    argument = of.first.get(name, _FIRST.get(name, "x")) if first else ""
    meaning = "probabilities" if name in _FIRST else "real numbers"
    last = "loc, scale: location and positive scale; ``(x - loc) / scale`` has the standard form."
    doc = documentation(name, of, _SENTENCES, argument, meaning, last)
    empty = with_empty(argument, of.shapes)
    module = f"primax_scipy.stats.{of.name}"
    front = with_signature(kernel, name, module, doc, [*empty, *_AFFINE])
    return declared(f"{of.name}.{name}", front)


def with_empty(argument: str, shapes: Mapping[str, Domain]) -> list[tuple[str, Any]]:
    """Parameters without defaults: the argument, if there is one, and the shape parameters."""
    names = [argument, *shapes] if argument else [*shapes]
    return [(n, Parameter.empty) for n in names]


def functions(of: Continuous) -> Functions:
    """The public functions of a distribution, with ``loc`` and ``scale``."""
    kernels = of.declared_kernels()
    name = of.name
    log = _density(of, kernels["logpdf"], f"{name}.logpdf")
    pairs: dict[str, Kernel] = {"logpdf": log, "pdf": lambda *args: lax.exp(log(*args))}
    if of.pdf_at_ends is not None:
        pairs["pdf"] = _with_ends(of, log, f"{name}.pdf")
    for kind, outside in _OUTSIDE.items():
        pairs[kind] = _tail(of, kernels[kind], f"{name}.{kind}", outside)
    for kind in ("ppf", "isf"):
        pairs[kind] = _quantile(of, kernels[kind], f"{name}.{kind}")
    out = {kind: _public(of, kind, fun, True) for kind, fun in pairs.items()}

    def median(*rest: Any) -> Any:
        (half, *rest) = together(f"{name}.median", 0.5, *rest)
        return pairs["ppf"](half, *rest)

    entropy = of.entropy or entropy_of_density(of.logpdf, kernels["ppf"], kernels["isf"])
    moments = {"mean": of.mean, "var": of.var, "std": of.var, "entropy": entropy}
    for kind, kernel in moments.items():
        out[kind] = _public(of, kind, _moment(of, kernel, f"{name}.{kind}", kind), False)
    out["median"] = _public(of, "median", median, False)
    out["rvs"] = sampler(of, of.sample or from_quantiles(kernels["ppf"], kernels["isf"]), _AFFINE)
    return Functions(**out)
