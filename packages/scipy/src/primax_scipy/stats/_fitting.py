"""Parameters of distributions by maximum likelihood."""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from inspect import Parameter, Signature
from types import MappingProxyType, ModuleType
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import Array
from primax_core.typing import ArrayLike
from primax_numpy.declaring import check_arrays

from .._functions import floats
from ..optimize import minimize
from ._alternatives import check_size

Start = Callable[[Any], Any]


class FitResult(NamedTuple):
    """Result of :func:`fit`.

    Attributes:
      params: a named tuple of all parameters, such as ``FitParams(a, loc, scale)``.
      success: whether the maximization converged; true for closed formulas.
      loglikelihood: the sum of log-densities at the parameters.
    """

    params: Any
    success: Array
    loglikelihood: Array

    def nllf(self) -> Array:
        """The negative logarithm of the likelihood."""
        return -self.loglikelihood


@dataclass(frozen=True)
class _Family:
    """Free parameters of a distribution, their initial values, and closed formulas.

    Attributes:
      free: the names of parameters that are estimated unless they are fixed, in the order of those
        of the distribution, each with its transformation: ``"positive"``, ``"real"`` or
        ``"fraction"``.
      start: from the data, initial values of all free parameters.
      constants: parameters that have a value unless another one is passed.
      required: parameters that must be passed, because data do not determine them.
      closed: closed formulas, from the data and the fixed parameters to all free ones.
      discrete: whether the distribution has a mass function.
    """

    free: Mapping[str, str]
    start: Callable[..., dict[str, Any]]
    constants: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    required: tuple[str, ...] = ()
    closed: Callable[..., dict[str, Any]] | None = None
    discrete: bool = False


# Initial values and closed formulas; x are the data less a fixed location


def _normal(x: Any, fixed: Mapping[str, Any]) -> dict[str, Any]:
    loc = fixed.get("loc", pnp.mean(x))
    return {"loc": loc, "scale": pnp.sqrt(pnp.mean(lax.square(x - loc)))}


def _laplace(x: Any, fixed: Mapping[str, Any]) -> dict[str, Any]:
    loc = fixed.get("loc", pnp.median(x))
    return {"loc": loc, "scale": pnp.mean(lax.abs(x - loc))}


def _logistic(x: Any, _: Mapping[str, Any]) -> dict[str, Any]:
    return {"loc": pnp.mean(x), "scale": pnp.std(x) * (math.sqrt(3) / math.pi)}


def _gumbel(sign: int) -> Callable[..., dict[str, Any]]:
    def start(x: Any, _: Mapping[str, Any]) -> dict[str, Any]:
        scale = pnp.std(x) * (math.sqrt(6) / math.pi)
        return {"loc": pnp.mean(x) - sign * float(np.euler_gamma) * scale, "scale": scale}

    return start


def _cauchy(x: Any, _: Mapping[str, Any]) -> dict[str, Any]:
    low, middle, high = (pnp.quantile(x, q) for q in (0.25, 0.5, 0.75))
    return {"loc": middle, "scale": 0.5 * (high - low)}


def _student(x: Any, _: Mapping[str, Any]) -> dict[str, Any]:
    return {"df": pnp.full_like(x[0], 5.0), "loc": pnp.median(x), "scale": 0.8 * pnp.std(x)}


def _exponential(x: Any, _: Mapping[str, Any]) -> dict[str, Any]:
    return {"scale": pnp.mean(x)}


def _lognormal(x: Any, fixed: Mapping[str, Any]) -> dict[str, Any]:
    logs = pnp.log(x)
    middle = pnp.log(fixed["scale"]) if "scale" in fixed else pnp.mean(logs)
    return {"s": pnp.sqrt(pnp.mean(lax.square(logs - middle))), "scale": pnp.exp(middle)}


def _rayleigh(x: Any, _: Mapping[str, Any]) -> dict[str, Any]:
    return {"scale": pnp.sqrt(0.5 * pnp.mean(lax.square(x)))}


def _half_normal(x: Any, _: Mapping[str, Any]) -> dict[str, Any]:
    return {"scale": pnp.sqrt(pnp.mean(lax.square(x)))}


def _gamma(x: Any, _: Mapping[str, Any]) -> dict[str, Any]:
    """Thom's approximation (1958), of an error below 1.5 %."""
    mean = pnp.mean(x)
    s = pnp.log(mean) - pnp.mean(pnp.log(x))
    a = (3 - s + pnp.sqrt(lax.square(s - 3) + 24 * s)) / (12 * s)
    return {"a": a, "scale": mean / a}


def _inverse_gamma(x: Any, _: Mapping[str, Any]) -> dict[str, Any]:
    inner = _gamma(1 / x, _)
    return {"a": inner["a"], "scale": 1 / inner["scale"]}


def _beta(x: Any, _: Mapping[str, Any]) -> dict[str, Any]:
    """The method of moments."""
    mean, variance = pnp.mean(x), pnp.var(x)
    size = pnp.maximum(mean * (1 - mean) / variance - 1, pnp.full_like(mean, 0.2))
    return {"a": mean * size, "b": (1 - mean) * size}


def _weibull(x: Any, _: Mapping[str, Any]) -> dict[str, Any]:
    """From the deviation and mean of logarithms."""
    logs = pnp.log(x)
    c = (math.pi / math.sqrt(6)) / pnp.std(logs)
    return {"c": c, "scale": pnp.exp(pnp.mean(logs) + float(np.euler_gamma) / c)}


def _pareto(x: Any, fixed: Mapping[str, Any]) -> dict[str, Any]:
    scale = fixed.get("scale", pnp.min(x))
    return {"b": 1 / pnp.mean(pnp.log(x / scale)), "scale": scale}


def _uniform(x: Any, fixed: Mapping[str, Any]) -> dict[str, Any]:
    if "scale" in fixed:
        raise ValueError(
            "fit: the likelihood of uniform with fscale is largest for many locations: fix loc, or "
            "nothing."
        )
    loc = fixed.get("loc", pnp.min(x))
    return {"loc": loc, "scale": pnp.max(x) - loc}


def _poisson(x: Any, _: Mapping[str, Any]) -> dict[str, Any]:
    return {"mu": pnp.mean(x)}


def _bernoulli(x: Any, _: Mapping[str, Any]) -> dict[str, Any]:
    return {"p": pnp.mean(x)}


def _geometric(x: Any, _: Mapping[str, Any]) -> dict[str, Any]:
    return {"p": 1 / pnp.mean(x)}


def _binomial(x: Any, fixed: Mapping[str, Any]) -> dict[str, Any]:
    return {"p": pnp.mean(x) / fixed["n"]}


def _negative_binomial(x: Any, fixed: Mapping[str, Any]) -> dict[str, Any]:
    return {"p": fixed["n"] / (fixed["n"] + pnp.mean(x))}


_PLACE: Final = {"loc": "real", "scale": "positive"}
_SIZE: Final = {"scale": "positive"}
_AT_ZERO: Final = {"loc": 0.0}
_P: Final = {"p": "fraction"}

_FAMILIES: Final = {
    "norm": _Family(_PLACE, _normal, closed=_normal),
    "laplace": _Family(_PLACE, _laplace, closed=_laplace),
    "uniform": _Family(_PLACE, _uniform, closed=_uniform),
    "logistic": _Family(_PLACE, _logistic),
    "gumbel_r": _Family(_PLACE, _gumbel(1)),
    "gumbel_l": _Family(_PLACE, _gumbel(-1)),
    "cauchy": _Family(_PLACE, _cauchy),
    "t": _Family({"df": "positive", **_PLACE}, _student),
    "expon": _Family(_SIZE, _exponential, _AT_ZERO, closed=_exponential),
    "rayleigh": _Family(_SIZE, _rayleigh, _AT_ZERO, closed=_rayleigh),
    "halfnorm": _Family(_SIZE, _half_normal, _AT_ZERO, closed=_half_normal),
    "lognorm": _Family({"s": "positive", **_SIZE}, _lognormal, _AT_ZERO, closed=_lognormal),
    "pareto": _Family({"b": "positive", **_SIZE}, _pareto, _AT_ZERO, closed=_pareto),
    "gamma": _Family({"a": "positive", **_SIZE}, _gamma, _AT_ZERO),
    "invgamma": _Family({"a": "positive", **_SIZE}, _inverse_gamma, _AT_ZERO),
    "weibull_min": _Family({"c": "positive", **_SIZE}, _weibull, _AT_ZERO),
    "beta": _Family({"a": "positive", "b": "positive"}, _beta, {"loc": 0.0, "scale": 1.0}),
    "poisson": _Family({"mu": "positive"}, _poisson, _AT_ZERO, closed=_poisson, discrete=True),
    "bernoulli": _Family(_P, _bernoulli, _AT_ZERO, closed=_bernoulli, discrete=True),
    "geom": _Family(_P, _geometric, _AT_ZERO, closed=_geometric, discrete=True),
    "binom": _Family(_P, _binomial, _AT_ZERO, ("n",), _binomial, True),
    "nbinom": _Family(_P, _negative_binomial, _AT_ZERO, ("n",), _negative_binomial, True),
}
_ORDER: Final = ("n", "df", "s", "a", "b", "c", "mu", "p", "loc", "scale")


@cache
def _params_type(names: tuple[str, ...]) -> Any:
    return namedtuple("FitParams", names)


def _unbounded(kind: str, value: Any) -> Any:
    if kind == "positive":
        return pnp.log(value)
    return value if kind == "real" else pnp.log(value / (1 - value))


def _bounded(kind: str, value: Any) -> Any:
    if kind == "positive":
        return pnp.exp(value)
    return value if kind == "real" else lax.logistic(value)


def _family(dist: Any) -> tuple[str, _Family]:
    name = getattr(dist, "__name__", type(dist).__name__).rpartition(".")[2]
    if name not in _FAMILIES:
        names = ", ".join(sorted(_FAMILIES))
        raise ValueError(f"fit: {name!r} is not a distribution that can be fitted: pass {names}.")
    return name, _FAMILIES[name]


def _fixed_values(name: str, family: _Family, passed: Mapping[str, Any]) -> dict[str, Any]:
    """The values of parameters that are not estimated."""
    known = (*family.required, *family.free, *family.constants)
    for key in passed:
        if key[:1] != "f" or key[1:] not in known:
            names = ", ".join(f"f{n}" for n in sorted(known, key=_ORDER.index))
            raise TypeError(f"fit: {key!r} is no parameter of {name} to fix: pass one of {names}.")
    for key in family.required:
        if f"f{key}" not in passed:
            raise TypeError(f"fit: {name} needs f{key}=..., which data do not determine.")
    values = {n: float(v) for n, v in family.constants.items()}
    values.update({key[1:]: value for key, value in passed.items()})
    if not set(family.free) - set(values):
        raise ValueError(f"fit: all parameters of {name} are fixed: leave one to be estimated.")
    return values


def _loglikelihood(dist: Any, family: _Family, x: Any, params: Mapping[str, Any]) -> Any:
    if family.discrete:
        return pnp.sum(dist.logpmf(x, **params))
    return pnp.sum(dist.logpdf(x, **params))


def _maximized(
    dist: Any, family: _Family, x: Any, values: Mapping[str, Any], start: Mapping[str, Any]
) -> tuple[dict[str, Any], Any]:
    """Free parameters at the maximum of the likelihood, and whether it converged.

    Parameters are positive or fractions, as their domains, by transformations. The variables are
    multiples of the likelihood's own steps: locations are relative to the initial scale.
    """
    free = {n: kind for n, kind in family.free.items() if n not in values}
    unit = lax.stop_gradient(start.get("scale", pnp.ones_like(x[0])))
    middle = lax.stop_gradient(start.get("loc", pnp.zeros_like(x[0])))

    def params(theta: Any) -> dict[str, Any]:
        out = {}
        for i, (name, kind) in enumerate(free.items()):
            out[name] = middle + unit * theta[i] if name == "loc" else _bounded(kind, theta[i])
        return out

    def objective(theta: Any) -> Any:
        return -_loglikelihood(dist, family, x, {**values, **params(theta)}) / x.shape[0]

    first = []
    for name, kind in free.items():
        value = lax.stop_gradient(start[name])
        first.append(pnp.zeros_like(x[0]) if name == "loc" else _unbounded(kind, value))
    tolerance = 30 * float(np.finfo(x.dtype).eps)
    result = minimize(
        objective, pnp.stack(first), method="trust-ncg",
        options={"gtol": tolerance, "maxiter": 100},
    )  # fmt: skip
    settled = pnp.max(lax.abs(result.jac)) <= math.sqrt(float(np.finfo(x.dtype).eps))
    return params(result.x), settled


def fit(dist: ModuleType, data: ArrayLike, **fixed: Any) -> FitResult:
    """Estimate the parameters of a distribution by maximum likelihood.

    Normal, Laplace, uniform, exponential, Rayleigh, half-normal, log-normal, Pareto, Poisson,
    Bernoulli, geometric, binomial and negative binomial distributions have closed formulas. The
    likelihood of others (logistic, Gumbel, Cauchy, t, gamma, inverse gamma, Weibull, beta) is
    maximized by Newton's method in a trust region, from
    estimates by moments or quantiles.

    Args:
      dist: a module of this one: ``norm``, ``laplace``, ``uniform``, ``logistic``, ``gumbel_r``,
        ``gumbel_l``, ``cauchy``, ``t``, ``expon``, ``rayleigh``, ``halfnorm``, ``lognorm``,
        ``pareto``, ``gamma``, ``invgamma``, ``weibull_min``, ``beta``, ``poisson``, ``bernoulli``,
        ``geom``, ``binom`` or ``nbinom``.
      data: real numbers, all elements of one sample.
      fixed: parameters that are not estimated, under their names with ``f`` before, such as
        ``fscale=1.0``. Unless it is passed, the location of distributions with a finite end is 0,
        and the scale of ``beta`` is 1. ``binom`` and ``nbinom`` need ``fn``.

    Returns:
      A :class:`FitResult`, a pytree. Parameters and likelihood are differentiable in the data and
      in fixed parameters, by the implicit function theorem at the maximum. Outside of the support
      the likelihood is ``-inf``, and ``success`` false.

    Raises:
      ValueError: for another distribution, an empty sample, if all parameters are fixed, or for
        ``uniform`` with a fixed scale, whose location is not unique.
      TypeError: for an unknown parameter, or without a required one.

    >>> import numpy as np
    >>> from primax_scipy.stats import norm
    >>> result = fit(norm, np.float32([1, 2, 3, 4]))
    >>> round(float(result.params.loc), 4), round(float(result.params.scale), 4)
    (2.5, 1.118)
    """
    name, family = _family(dist)
    values = _fixed_values(name, family, fixed)
    check_arrays("fit", data, *values.values())
    (x,) = floats("fit", pnp.asarray(data))
    x = pnp.ravel(x)
    x = lax.convert_element_type(x, x.dtype)
    check_size("fit", x.shape[0], 1)
    values = {n: pnp.asarray(v).astype(x.dtype) for n, v in values.items()}
    # A fixed location, and a fixed scale of a distribution with a finite end, change the data.
    shift = values.get("loc") if "loc" not in family.free else None
    standard = x if shift is None else x - shift
    if "scale" in family.constants:
        standard = standard / values["scale"]
    if family.closed is not None:
        estimates, success = family.closed(standard, values), pnp.full((), True)
    else:
        estimates, success = _maximized(dist, family, x, values, family.start(standard, values))
    complete = {**estimates, **values}
    total = _loglikelihood(dist, family, x, complete)
    names = tuple(sorted(complete, key=_ORDER.index))
    params = _params_type(names)(*(complete[n] for n in names))
    return FitResult(params, success & (lax.abs(total) < math.inf), total)


class FitMethod(Protocol):
    """``fit`` of a distribution: keywords are fixed parameters, such as ``fscale``."""

    def __call__(self, data: ArrayLike, **fixed: ArrayLike | None) -> Any:
        """Return the parameters."""


def fit_method(name: str) -> FitMethod:
    """The function ``fit(data, **fixed)`` of the module of a distribution."""
    family = _FAMILIES[name]
    known = sorted({*family.required, *family.free, *family.constants}, key=_ORDER.index)
    fixed = [
        Parameter(
            f"f{n}", Parameter.KEYWORD_ONLY, annotation="ArrayLike",
            default=Parameter.empty if n in family.required else None,
        )
        for n in known
    ]  # fmt: skip

    def method(data: ArrayLike, **values: Any) -> Any:
        passed = {key: value for key, value in values.items() if value is not None}
        return fit(import_module(f"{__package__}.{name}"), data, **passed).params

    data = Parameter("data", Parameter.POSITIONAL_OR_KEYWORD, annotation="ArrayLike")
    method.__signature__ = Signature([data, *fixed])  # type: ignore[attr-defined]
    method.__name__ = method.__qualname__ = "fit"
    method.__module__ = f"{__package__}.{name}"
    constants = [f"  {n} is {v:g} unless f{n} is passed." for n, v in family.constants.items()]
    method.__doc__ = "\n".join([
        "Parameters of this distribution by maximum likelihood.",
        "",
        "Args:",
        "  data: real numbers, all elements of one sample.",
        f"  {', '.join(p.name for p in fixed)}: values of parameters that are not estimated.",
        "",
        "Returns:",
        f"  A named tuple ({', '.join(known)}), differentiable in data and fixed parameters.",
        *constants,
        "  For the success of the maximization and the likelihood, call :func:`fit` of stats.",
        "",
        "Raises:",
        "  ValueError: for an empty sample, or if all parameters are fixed.",
        "  TypeError: for an unknown parameter, or without a required one.",
        "",
    ])  # fmt: skip
    return method
