"""A primitive that applies a function to the parts of each position of a 2 by 2 mesh."""

from __future__ import annotations

import math

from primax_core.extend import Primitive, ShapedArray, abstract, effects, lower, stage
from primax_core.extend.traces import AxisOwner, named_axes

MESH = {"x": 2, "y": 2}


class Owner(AxisOwner):
    """Binds collectives as they are, and records them."""

    def __init__(self):
        self.bound = []

    def bind(self, prim, args, params, to="varying"):
        self.bound.append((prim.name, params.get("axes", params.get("axis_name")), to))
        return prim.bind(*args, **params)

    def cast(self, x, names, to):
        self.bound.append(("pcast", names, to))
        return x


def sharding_text(spec, sizes=MESH):
    mesh = ", ".join(f'"{n}"={s}' for n, s in sizes.items())
    return f"#sdy.sharding<mesh<[{mesh}]>, [{', '.join(spec)}]>"


region_p = Primitive("region", multiple_results=True, cache_on=lambda params: params["jaxpr"].cache)


@region_p.rule(abstract)
def _abstract(*avals, out_avals, **_):
    return list(out_avals)


@region_p.rule(effects)
def _effects(*avals, **_):
    return frozenset()


@region_p.rule(lower)
def _lower(ctx, *values, jaxpr, out_avals, names, ins, outs):
    ins, outs = [[sharding_text(s) for s in specs] for specs in (ins, outs)]
    return ctx.manual(jaxpr, values, MESH, names, ins, outs)


def spec_of(names, ndim, free):
    """The first axis divided along all of ``names``."""
    inner = ", ".join([f'"{n}"' for n in names] + ["?"] * free)
    return (f"{{{inner}}}", *["{?}" if free else "{}"] * (ndim - 1))


def over_mesh(f, *avals, names=("x", "y"), owner=None, around=()):
    """``f`` on the parts of each position along ``names``, whose results are concatenated.

    ``around`` names the axes of an enclosing region.
    """
    parts = math.prod(MESH[n] for n in names)
    free = len(names) + len(around) < len(MESH)
    local = [ShapedArray((a.shape[0] // parts, *a.shape[1:]), a.dtype) for a in avals]
    with named_axes({n: MESH[n] for n in (*around, *names)}, owner or Owner()):
        jaxpr = stage(lambda *xs: [f(*xs)], local)
    outs = [ShapedArray((a.shape[0] * parts, *a.shape[1:]), a.dtype) for a in jaxpr.out_avals]

    def whole(*xs):
        return region_p.bind(
            *xs, jaxpr=jaxpr, out_avals=tuple(outs), names=names,
            ins=tuple(spec_of(names, a.ndim, free) for a in local),
            outs=tuple(spec_of(names, a.ndim, free) for a in outs),
        )[0]  # fmt: skip

    return whole
