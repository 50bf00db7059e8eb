"""Handlers: interpreters that give the sites of a model values, and collect them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from primax_core import lax
from primax_core.extend import (
    Eqn,
    ShapedArray,
    expanded,
    interpret,
    jaxprs_in,
    register_internal_path,
    stage,
    typeof,
    walk,
)
from primax_core.tree_util import tree_flatten, tree_unflatten

from .families import Family
from .sites import OBSERVED, REPLAYED, log_density_of, site_p

register_internal_path(__file__)


class Site(NamedTuple):
    """A sample site that a handler meets.

    Attributes:
      name: unique in the model.
      family: the family of distributions.
      source: the key, or the value if ``kind`` is not ``"drawn"``.
      parameters: those of the family.
      kind: ``"drawn"``, ``"replayed"`` or ``"observed"``.
      aval: the type of the value.
    """

    name: str
    family: Family
    source: Any
    parameters: Sequence[Any]
    kind: str
    aval: ShapedArray

    def bind(self) -> Any:
        """Apply the primitive; the result is the value."""
        return site_p.bind(
            self.source, *self.parameters, name=self.name, family=self.family, kind=self.kind
        )


class Traced(NamedTuple):
    """What :func:`trace` records of a site."""

    value: Any
    log_density: Any
    observed: bool


def handle(model: Callable[..., Any], args: Sequence[Any], on_site: Callable[[Site], Any]) -> Any:
    """Evaluate a model; the value of each site is the result of ``on_site``.

    Raises:
      ValueError: if two sites have one name.
      NotImplementedError: for sites in loops and branches.
    """
    leaves, tree = tree_flatten(args)
    out_trees: list[Any] = []

    def flat(*values: Any) -> list[Any]:
        outs, out_tree = tree_flatten(model(*tree_unflatten(tree, values)))
        out_trees.append(out_tree)
        return outs

    names: set[str] = set()

    def step(eqn: Eqn, values: list[Any]) -> Sequence[Any]:
        prim = eqn.primitive
        if prim is site_p:
            name = eqn.params["name"]
            if name in names:
                raise ValueError(f"two sites of the model are named {name!r}")
            names.add(name)
            source, *parameters = values
            aval = eqn.outvars[0].aval
            return [on_site(Site(source=source, parameters=parameters, aval=aval, **eqn.params))]
        if not any(e.primitive is site_p for j in jaxprs_in(eqn.params) for e in walk(j)):
            out = prim.bind(*values, **eqn.params)
            return list(out) if prim.multiple_results else [out]
        # A call, such as that of a compiled function: its equations are those of the model.
        inner = expanded(prim, [typeof(v) for v in values], eqn.params)
        if inner is None:
            raise NotImplementedError(
                f"a site in {prim.name}: handlers evaluate sites in calls, not in loops and "
                "branches; use vmap, or draw the values outside"
            )
        return interpret(inner, values, step, constant=None)

    jaxpr = stage(flat, [typeof(x) for x in leaves], getattr(model, "__name__", "model"))
    return tree_unflatten(out_trees[0], interpret(jaxpr, leaves, step, constant=None))


def _with_values(
    model: Callable[..., Any], values: Mapping[str, Any], kind: str
) -> Callable[..., Any]:
    """The model with values in place of draws; names that it does not have raise an error."""

    def handled(*args: Any) -> Any:
        missing = dict(values)

        def on_site(site: Site) -> Any:
            if site.name not in missing:
                return site.bind()
            value = missing.pop(site.name)
            actual, expected = typeof(value).shape, site.aval.shape
            if actual != expected:
                raise ValueError(
                    f"the value of site {site.name!r} has shape {actual}, but the site has shape "
                    f"{expected}"
                )
            value = lax.convert_element_type(value, site.aval.dtype)
            return site._replace(source=value, kind=kind).bind()

        out = handle(model, args, on_site)
        if missing:
            raise ValueError(f"the model has no site named {', '.join(map(repr, missing))}")
        return out

    return handled


def condition(model: Callable[..., Any], values: Mapping[str, Any]) -> Callable[..., Any]:
    """The model with some sites observed.

    Args:
      values: the value of each observed site, by name.
    """
    return _with_values(model, values, OBSERVED)


def replay(model: Callable[..., Any], values: Mapping[str, Any]) -> Callable[..., Any]:
    """The model with values in place of draws; the sites are not observed."""
    return _with_values(model, values, REPLAYED)


def trace(model: Callable[..., Any]) -> Callable[..., tuple[Any, dict[str, Traced]]]:
    """The model as a function that also returns the value and log-density of each site."""

    def traced(*args: Any) -> tuple[Any, dict[str, Traced]]:
        sites: dict[str, Traced] = {}

        def on_site(site: Site) -> Any:
            value = site.bind()
            density = log_density_of(site.family, value, site.parameters)
            sites[site.name] = Traced(value, density, site.kind == OBSERVED)
            return value

        return handle(model, args, on_site), sites

    return traced


def log_density(model: Callable[..., Any]) -> Callable[..., Any]:
    """The joint log-density as a function ``(values, *args) -> scalar``.

    ``values`` has a value for each site that is not observed.

    Raises:
      ValueError: if one is missing.
    """

    def density(values: Mapping[str, Any], *args: Any) -> Any:
        _, sites = trace(_complete(replay(model, values)))(*args)
        total: Any = 0.0
        for site in sites.values():
            total = total + site.log_density
        return total

    return density


def _complete(model: Callable[..., Any]) -> Callable[..., Any]:
    """The model, in which every site must have a value."""

    def checked(*args: Any) -> Any:
        def on_site(site: Site) -> Any:
            if site.kind not in (OBSERVED, REPLAYED):
                raise ValueError(f"log_density needs a value of site {site.name!r}")
            return site.bind()

        return handle(model, args, on_site)

    return checked
