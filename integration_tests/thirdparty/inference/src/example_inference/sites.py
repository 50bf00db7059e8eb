"""Sample sites: a primitive that names the random values of a model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import Any, Final

from primax_core import jvp as jvp_of_function, lax, vmap
from primax_core.extend import (
    NamedEffect,
    Primitive,
    Sample,
    batch,
    effects,
    expand,
    f32,
    instantiate,
    jvp,
    move_axis,
    register_internal_path,
    samples,
    typeof,
)
from primax_numpy import random

from .families import Family, normal

register_internal_path(__file__)

DRAWN: Final = "drawn"
REPLAYED: Final = "replayed"
OBSERVED: Final = "observed"

site_p: Final = Primitive("site")
"""A random value. Operands: a source, which is a key or, if ``kind`` is not ``"drawn"``, the value;
and the parameters of the family."""


class SampleEffect(NamedEffect):
    """A site counts for the log-density of a model even if its value is not used."""

    name = "Sample"


SAMPLE: Final = SampleEffect()


def sample(name: str, key: Any, family: Family, *parameters: Any) -> Any:
    """A random value from a distribution, with a name for handlers.

    Args:
      name: unique in the model.
      key: a random key.
      parameters: those of the family, floats; they broadcast.

    >>> from primax_numpy import random
    >>> from example_inference import normal
    >>> sample("x", random.key(0), normal, 0.0, 1.0).shape
    ()
    """
    # Python numbers are weakly typed; a value has the type of its parameters.
    strong = [lax.convert_element_type(p, typeof(p).dtype) for p in parameters]
    return site_p.bind(key, *strong, name=name, family=family, kind=DRAWN)


def log_density_of(family: Family, value: Any, parameters: Sequence[Any]) -> Any:
    """The log-density of a value, a scalar."""
    density = family.log_density(value, *parameters)
    return lax.reduce_sum(density, tuple(range(typeof(density).ndim)))


@site_p.rule(expand)
def _expand(source, *parameters, name, family, kind):
    return family.draw(source, *parameters) if kind == DRAWN else source


@site_p.rule(effects)
def _effects(*avals, name, family, kind):
    return frozenset({SAMPLE})


@site_p.rule(jvp)
def _jvp(primals, tangents, *, name, family, kind):
    out = site_p.bind(*primals, name=name, family=family, kind=kind)
    if kind != DRAWN:
        return out, tangents[0]
    nonzero = [instantiate(t) for t in tangents[1:]]
    _, tangent = jvp_of_function(partial(family.path, out), list(primals[1:]), nonzero)
    return out, tangent


@site_p.rule(batch)
def _batch(axis, args, dims, *, name, family, kind):
    """A site of a batch is a site of the family of batches."""
    source, *parameters = args
    d, *parameter_dims = dims
    if kind != DRAWN:
        source, d = move_axis(source, d, 0, axis.size), 0
    batches = _batches(family, d, tuple(parameter_dims))
    return site_p.bind(source, *parameters, name=name, family=batches, kind=kind), 0


@cache
def _batches(family: Family, source_dim: int | None, dims: tuple[int | None, ...]) -> Family:
    """The family of batches. Parameters of primitives compare by value, so it is made once."""
    return Family(
        family.name,
        vmap(family.draw, (source_dim, *dims)),
        vmap(family.path, (0, *dims)),
        vmap(family.log_density, (0, *dims)),
    )


@site_p.rule(samples)
def _samples():
    scale: dict[str, float] = {"low": 0.5, "high": 2.0}
    drawn = lambda mean, scale: sample("x", random.key(0), normal, mean, scale)
    yield Sample(f32(), f32(2, **scale)).set(call=drawn)

    def observed(value: Any, mean: Any, scale: Any) -> Any:
        return site_p.bind(value, mean, scale, name="x", family=normal, kind=OBSERVED)

    yield Sample(f32(3), f32(3), f32(3, **scale)).set(call=observed)
