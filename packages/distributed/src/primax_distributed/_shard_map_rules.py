"""Transformations of `shard_map`: derivatives, batches, and the policies of `checkpoint`.

The body is transformed in its region. Values that a derivative keeps from the forward pass leave
the region along a leading axis over all mesh axes along which they vary. If the types say nothing
of that (`check_vma=False`), these are all axes of the region.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from primax_core import lax
from primax_core.extend import (
    Axis,
    Jaxpr,
    Var,
    Zero,
    batch,
    batch_jaxpr,
    discharge,
    discharge_jaxpr,
    eval_jaxpr,
    extended_body,
    is_linear,
    jvp,
    jvp_jaxpr,
    linearize,
    linearize_jaxpr,
    move_axis,
    partial_eval,
    stage,
    transpose,
    transpose_jaxpr,
    typeof,
)
from primax_core.extend.placements import is_placed, placed_like
from primax_core.extend.traces import derive_from_jaxpr

from ._axis_casts import first_only, ordered, reduced_vary_cast_p, unreduced_psum_p
from ._collectives import psum_invariant_p
from ._manual_inference import cast_to_varying, reduced_of, unreduced_of, varying_of
from ._manual_region import Region, spec_with_axis
from ._shard_map_p import bind, region_of, shard_map_p
from ._spec import PartitionSpec, entry_of

# Forward mode


@shard_map_p.rule(jvp)
def _jvp(primals, tangents, *, jaxpr, in_specs, out_specs, **like):  # type: ignore[no-untyped-def]
    mask = tuple([type(t) is not Zero for t in tangents])
    with region_of(like).entered():
        forward, out_mask = jvp_jaxpr(jaxpr, mask)
    nonzero = [t for t in tangents if type(t) is not Zero]
    ins = [*in_specs, *_marked(in_specs, mask)]
    outs = [*out_specs, *_marked(out_specs, out_mask)]
    results = bind([*primals, *nonzero], forward, ins, outs, like)
    n = len(out_specs)
    rest = iter(results[n:])
    return results[:n], [next(rest) if m else Zero.like(o) for m, o in zip(out_mask, results)]


def _marked(values: Sequence[Any], mask: Sequence[bool]) -> list[Any]:
    return [v for v, m in zip(values, mask) if m]


# Values that leave a region along a leading axis


class _Leaving(NamedTuple):
    """The way of a value from one region into another.

    Attributes:
      aval: its type in the regions.
      names: the axes along which it is joined.
      is_scalar: it leaves the region with an axis of size 1.
    """

    aval: Any
    names: tuple[Hashable, ...]
    is_scalar: bool

    @classmethod
    def of(cls, aval: Any, region: Region) -> _Leaving:
        names = ordered(varying_of(aval) & region.manual, region.mesh)
        return cls(aval, names if region.checked else region.names, not aval.shape)

    @property
    def spec(self) -> PartitionSpec:
        return PartitionSpec(entry_of(self.names)) if self.names else PartitionSpec()

    @property
    def outside(self) -> Any:
        """Its type where it enters a region."""
        aval = self.aval
        if is_placed(aval):
            empty: frozenset[Hashable] = frozenset()
            placement = aval.placement.update(unreduced=empty, reduced=empty, unreduced_kind=None)
            aval = aval.update(placement=placement)
        return aval.with_axis(0, 1) if self.is_scalar and self.names else aval

    def leave(self, x: Any) -> Any:
        """The value as a result of the region."""
        x = _invarying(x, self.aval)
        return lax.expand_dims(x, (0,)) if self.is_scalar and self.names else x

    def enter(self, x: Any) -> Any:
        """The value from an operand of the region."""
        x = lax.squeeze(x, (0,)) if self.is_scalar and self.names else x
        return placed_like(x, self.aval) if is_placed(self.aval) else x


def _invarying(x: Any, aval: Any) -> Any:
    """A value that is neither reduced nor unreduced along manual axes."""
    if not is_placed(aval):
        return x
    manual = aval.placement.manual
    mesh = aval.placement.mesh
    if unreduced := manual(unreduced_of(aval)):
        x = unreduced_psum_p.bind(x, axes=ordered(unreduced, mesh))
    if reduced := ordered(manual(reduced_of(aval)), mesh):
        x = first_only(reduced_vary_cast_p.bind(x, axes=reduced), reduced)
        x = psum_invariant_p.bind(x, axes=reduced)
    return x


def _leaving_results(jaxpr: Jaxpr, n: int, region: Region) -> tuple[Jaxpr, list[_Leaving]]:
    """The body with results from the `n`-th that leave the region along leading axes."""

    def make() -> tuple[Jaxpr, list[_Leaving]]:
        ways = [_Leaving.of(v.aval, region) for v in jaxpr.outvars[n:]]

        def run(*args: Any) -> list[Any]:
            results = eval_jaxpr(jaxpr, args)
            return [*results[:n], *(w.leave(x) for w, x in zip(ways, results[n:]))]

        return stage(run, jaxpr.in_avals, debug_info=jaxpr.debug_info, parent=None), ways

    key = (n, region)
    result: tuple[Jaxpr, list[_Leaving]] = derive_from_jaxpr(jaxpr, "leaving", key, make)
    return result


def _entering(jaxpr: Jaxpr, ways: Sequence[_Leaving | None]) -> Jaxpr:
    """The body with arguments that enter the region along leading axes; `None` for others."""

    def make() -> Jaxpr:
        def run(*args: Any) -> list[Any]:
            return eval_jaxpr(jaxpr, [x if w is None else w.enter(x) for w, x in zip(ways, args)])

        avals = [v.aval if w is None else w.outside for v, w in zip(jaxpr.invars, ways)]
        return stage(run, avals, debug_info=jaxpr.debug_info, parent=None)

    if all(w is None for w in ways):
        return jaxpr
    result: Jaxpr = derive_from_jaxpr(jaxpr, "entering", tuple(ways), make)
    return result


# Reverse mode


@shard_map_p.rule(linearize)
def _linearize(primals, mask, *, jaxpr, in_specs, out_specs, **like):  # type: ignore[no-untyped-def]
    region = region_of(like)
    with region.entered():
        linearized = linearize_jaxpr(jaxpr, mask)
        n = linearized.n_outs
        forward, ways = _leaving_results(linearized.forward, n, region)
    specs = [w.spec for w in ways]
    results = bind(primals, forward, in_specs, [*out_specs, *specs], like)
    tangent_avals = [typeof(p).tangent_aval() for p in _marked(primals, mask)]
    if linearized.linear is None:
        return results[:n], stage(lambda *_: [], tangent_avals), linearized.out_mask
    sources = {"in": in_specs, "out": out_specs, "extra": specs}
    residual_specs = [sources[origin][i] for origin, i in linearized.residuals]
    entering = [ways[i] if origin == "extra" else None for origin, i in linearized.residuals]
    residuals = linearized.residual_values(primals, results)
    with region.entered():
        linear = _entering(linearized.linear, [*entering, *[None] * sum(mask)])
    ins = [*residual_specs, *_marked(in_specs, mask)]
    outs = _marked(out_specs, linearized.out_mask)

    def run(*tangents: Any) -> list[Any]:
        return bind([*residuals, *tangents], linear, ins, outs, like)

    return results[:n], stage(run, tangent_avals), linearized.out_mask


@shard_map_p.rule(transpose)
def _transpose(cts, *args, jaxpr, in_specs, out_specs, **like):  # type: ignore[no-untyped-def]
    region = region_of(like)
    linear = tuple([is_linear(a) for a in args])
    ct_mask = tuple([type(c) is not Zero for c in cts])
    with region.entered():
        backward, out_mask = transpose_jaxpr(jaxpr, linear, ct_mask)
        ct_in_specs = [s.to_ct_spec() for s in _marked(in_specs, out_mask)]
        if not region.checked:
            backward = _summed(backward, ct_in_specs, region)
    known = [a for a, is_lin in zip(args, linear) if not is_lin]
    known_specs = [s for s, is_lin in zip(in_specs, linear) if not is_lin]
    nonzero = [
        c if region.checked else _divided(c, region.size(region.unmentioned(s)))
        for c, s in zip(_marked(cts, ct_mask), _marked(out_specs, ct_mask))
    ]
    ct_out_specs = [s.to_ct_spec() for s in _marked(out_specs, ct_mask)]
    results = iter(
        bind([*known, *nonzero], backward, [*known_specs, *ct_out_specs], ct_in_specs, like)
    )
    return [next(results) if m else None for m in out_mask]


def _divided(ct: Any, n: int) -> Any:
    """One of `n` equal parts of a cotangent: all positions have the same result."""
    return ct if n == 1 else lax.div(ct, np.asarray(n, typeof(ct).dtype)[()])


def _summed(jaxpr: Jaxpr, specs: Sequence[PartitionSpec], region: Region) -> Jaxpr:
    """The body with results summed over the axes along which its operands were equal."""

    def make() -> Jaxpr:
        def run(*args: Any) -> list[Any]:
            return [
                lax.psum_p.bind(x, axes=names, axis_index_groups=None)
                if (names := region.unmentioned(spec))
                else x
                for x, spec in zip(eval_jaxpr(jaxpr, args), specs)
            ]

        return stage(run, jaxpr.in_avals, debug_info=jaxpr.debug_info, parent=None)

    result: Jaxpr = derive_from_jaxpr(jaxpr, "summed", (tuple(specs), region), make)
    return result


# Batches


@shard_map_p.rule(batch)
def _batch(axis, args, dims, *, jaxpr, in_specs, out_specs, **like):  # type: ignore[no-untyped-def]
    region = region_of(like)
    spmd = axis.spmd_name
    names = () if spmd is None else spmd if isinstance(spmd, tuple) else (spmd,)
    manual = tuple([n for n in names if n in region.manual])
    if manual:
        return _divided_batch(axis, args, dims, jaxpr, in_specs, out_specs, like, manual)
    with region.entered():
        batched, out_dims = batch_jaxpr(jaxpr, tuple(dims), axis)
    ins = [s if d is None else spec_with_axis(s, d) for s, d in zip(in_specs, dims)]
    outs = [s if d is None else spec_with_axis(s, d) for s, d in zip(out_specs, out_dims)]
    return bind(args, batched, ins, outs, like), list(out_dims)


def _divided_batch(  # type: ignore[no-untyped-def]
    axis, args, dims, jaxpr, in_specs, out_specs, like, names
):
    """A batch whose mapped axis is divided along mesh axes, which specs must not contain.

    Operands without the mapped axis enter as one copy for each position along these axes, so that
    their cotangents are summed outside.
    """
    region = region_of(like)
    for spec in (*in_specs, *out_specs):
        if used := {*names} & {*spec.names}:
            raise ValueError(
                f"vmap(..., spmd_axis_name={axis.spmd_name!r}) of a shard_map whose specs divide "
                f"along {ordered(used, region.mesh)} already ({spec}): use another mesh axis"
            )
    size = region.size(names)
    if axis.size % size:
        raise ValueError(
            f"vmap(..., spmd_axis_name={axis.spmd_name!r}) of a shard_map maps an axis of size "
            f"{axis.size}, which is not divisible by {size}, the size of the mesh axes {names}"
        )
    args = [
        lax.broadcast_in_dim(x, (size, *typeof(x).shape), range(1, typeof(x).ndim + 1))
        if d is None
        else move_axis(x, d, 0, axis.size)
        for x, d in zip(args, dims)
    ]
    local = Axis(axis.size // size, axis.name, None)
    in_dims = [None if d is None else 0 for d in dims]
    with region.entered():
        batched, _ = batch_jaxpr(jaxpr, in_dims, local, (0,) * len(out_specs))

        def make() -> Jaxpr:
            def run(*xs: Any) -> list[Any]:
                xs = tuple(lax.squeeze(x, (0,)) if d is None else x for x, d in zip(xs, dims))
                return eval_jaxpr(batched, xs)

            avals = [a.with_axis(0, 1) if d is None else a for a, d in zip(batched.in_avals, dims)]
            return stage(run, avals, debug_info=jaxpr.debug_info, parent=None)

        body = derive_from_jaxpr(batched, "divided batch", tuple(dims), make)
    ins = [spec_with_axis(s, 0, names) for s in in_specs]
    outs = [spec_with_axis(s, 0, names) for s in out_specs]
    return bind(args, body, ins, outs, like), [0] * len(out_specs)


# References


@shard_map_p.rule(discharge)
def _discharge(refs, args, *, jaxpr, in_specs, out_specs, **like):  # type: ignore[no-untyped-def]
    mask = [r is not None for r in refs]
    numbers = [r for r in refs if r is not None]
    if len({*numbers}) < len(numbers):
        raise ValueError(
            "a function under shard_map got the same reference several times, as an argument or as "
            "a value that it closes over: pass it once"
        )
    with region_of(like).entered():
        body = discharge_jaxpr(jaxpr, mask)
    outs = bind(args, body, in_specs, [*out_specs, *_marked(in_specs, mask)], like)
    contents = iter(outs[len(out_specs) :])
    return outs[: len(out_specs)], [next(contents) if m else None for m in mask]


# Further results of the body


@shard_map_p.rule(extended_body)
def _extended_body(change, args, *, jaxpr, in_specs, out_specs, **like):  # type: ignore[no-untyped-def]
    region, n = region_of(like), len(out_specs)
    with region.entered():
        changed = change(jaxpr)

        def make() -> Jaxpr:
            def run(*xs: Any) -> list[Any]:
                outs = eval_jaxpr(changed, xs)
                return [*outs[:n], *(_as_row(x, region) for x in outs[n:])]

            return stage(run, changed.in_avals, debug_info=changed.debug_info, parent=None)

        body = derive_from_jaxpr(changed, "rows", (n, region), make)
    rows = [PartitionSpec(entry_of(region.names))] * (len(changed.outvars) - n)
    outs = bind(args, body, in_specs, [*out_specs, *rows], like)
    return outs[:n], outs[n:]


def _as_row(x: Any, region: Region) -> Any:
    """A value of one position as a row of those of all positions."""
    x = lax.expand_dims(_invarying(x, typeof(x)), (0,))
    cast = cast_to_varying(typeof(x), region.manual, region.inner) if region.checked else None
    return x if cast is None else cast(x)


# Policies of `checkpoint`


@shard_map_p.rule(partial_eval)
def _partial_eval(split, eqn):  # type: ignore[no-untyped-def]
    params, region = eqn.params, region_of(eqn.params)
    jaxpr = params["jaxpr"]
    with region.entered():
        forward, again, n_saved = split(jaxpr)
        if not n_saved:
            return None
        forward, ways = _leaving_results(forward, len(jaxpr.outvars), region)
        again = _entering(again, [*[None] * len(jaxpr.invars), *ways])
    specs = [w.spec for w in ways]
    avals = [v.aval for v in forward.outvars[len(jaxpr.outvars) :]]
    saved = [Var(region.global_aval(a, s)) for a, s in zip(avals, specs)]
    first = {**params, "jaxpr": forward, "out_specs": (*params["out_specs"], *specs)}
    second = {**params, "jaxpr": again, "in_specs": (*params["in_specs"], *specs)}
    return (
        eqn.replace(outvars=[*eqn.outvars, *saved], params=first),
        eqn.replace(invars=[*eqn.invars, *saved], params=second),
        saved,
    )
