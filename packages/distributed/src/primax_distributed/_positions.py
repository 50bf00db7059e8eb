"""`shard_map` with the option `disable_jit`: operation by operation, position by position.

A value of the region is kept once for each position along the axes along which it may vary.
Collectives, and nested regions, are computed over all devices together.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from primax_core import device_put, effects_barrier, lax
from primax_core.extend import (
    Jaxpr,
    Literal,
    Primitive,
    eval_jaxpr,
    expand,
    expanded,
    jaxprs_in,
    run_jaxprs,
    stage,
    trace_rule,
    typeof,
    walk,
)
from primax_core.extend.placements import is_placed, placed_like
from primax_core.extend.runtime import bounded_cache
from primax_core.extend.traces import Trace, Tracer, infer, set_trace

from ._arrays import make_array_from_single_device_arrays
from ._axis_casts import (
    first_only,
    ordered,
    preduced_p,
    pvary_p,
    reduced_vary_cast_p,
    unreduced_psum_p,
    vary_unreduced_cast_p,
)
from ._manual_inference import reduced_of, unreduced_of, varying_of
from ._manual_region import Region
from ._mesh import Mesh
from ._named import NamedSharding
from ._reshard import mesh_cast_p, reshard_p
from ._shard_map_p import shard_map_p
from ._spec import PartitionSpec, entry_of

Names = tuple[Hashable, ...]
Key = tuple[int, ...]

_SAME_VALUES: Final = (
    pvary_p, preduced_p, reduced_vary_cast_p, vary_unreduced_cast_p, reshard_p, mesh_cast_p,
    lax.sharding_constraint_p,
)  # fmt: skip
"""Operations that change only the type of a value, or its division along other axes."""

_together: Final = bounded_cache()


class PositionTracer(Tracer):
    """A value in a region, with the values of the positions.

    Attributes:
      names: the axes along which the values may differ, in the order of the mesh.
      values: the values, by the coordinates along these axes.
    """

    __slots__ = ("names", "values")

    _trace: PositionsTrace

    def __init__(self, trace: PositionsTrace, aval: Any, names: Names, values: dict[Key, Any]):
        super().__init__(trace, aval)
        self.names = names
        self.values = values

    def __repr__(self) -> str:
        if not self.names:
            return repr(self.values[()])
        lines = [f"{self.aval}, whose values are"]
        for key, value in self.values.items():
            where = ", ".join(f"{n}={i}" for n, i in zip(self.names, key))
            lines.append(f"  {where}: {_text(value)}")
        return "\n".join(lines)

    __str__ = __repr__

    def _concrete(self) -> Any:
        return None if self.names else self.values[()]

    def _concrete_values(self) -> Sequence[Any]:
        return [*self.values.values()]

    def _origin(self) -> str:
        axes = ", ".join(map(repr, self.names))
        return (
            f"Its values at the positions along the mesh axis {axes} of a shard_map may differ. "
            "Use lax.cond or jnp.where, or reduce it first, for example with lax.pmax."
        )


def _text(value: Any) -> str:
    return str(value).replace("\n", "\n    ")


class PositionsTrace(Trace):
    """Evaluates operations at each position of a region, in the order of the mesh.

    Args:
      mesh: the mesh, whose devices are all of this process.
      region: the region, which is entered.
      run: evaluates a jaxpr with tracers of this trace, by default as :func:`eval_jaxpr`.
    """

    __slots__ = ("devices", "mesh", "region", "run")

    kind = "shard_map"

    def __init__(
        self, mesh: Mesh, region: Region,
        run: Callable[[Jaxpr, Sequence[Any]], list[Any]] = eval_jaxpr,
    ) -> None:  # fmt: skip
        super().__init__(None)
        self.run = run
        self.mesh = mesh
        self.region = region
        names = mesh.axis_names
        manual = [names.index(n) for n in region.names]
        free = [i for i in range(len(names)) if i not in manual]
        grid = np.transpose(mesh.devices, [*manual, *free])
        shape = [mesh.axis_sizes[i] for i in manual]
        grid = grid.reshape(*shape, -1)
        self.devices: dict[Key, list[Any]] = {
            key: [*grid[key]] for key in itertools.product(*map(range, shape))
        }

    # Values

    def keys(self, names: Names) -> Iterator[tuple[Key, Any]]:
        """The coordinates along some axes, and the first device that has them."""
        indices = [self.region.names.index(n) for n in names]
        seen = set()
        for position, devices in self.devices.items():
            key = tuple([position[i] for i in indices])
            if key not in seen:
                seen.add(key)
                yield key, devices[0]

    def names_of(self, aval: Any) -> Names:
        """The axes along which values of a type may differ; all if types do not contain them."""
        if not self.region.checked:
            return self.region.names
        names = (varying_of(aval) | unreduced_of(aval)) & self.region.manual
        return ordered(names, self.region.mesh)

    def tracer(self, aval: Any, names: Names, values: dict[Key, Any]) -> PositionTracer:
        """A tracer of values that differ along some axes at most."""
        typed = self.names_of(aval) if self.region.checked else names
        if typed != names:
            indices = [typed.index(n) for n in names]
            values = {k: values[tuple([k[i] for i in indices])] for k, _ in self.keys(typed)}
        return PositionTracer(self, aval, typed, values)

    def lift(self, x: Any) -> PositionTracer:
        """A tracer of this trace for any value, which is equal at all positions."""
        if isinstance(x, PositionTracer) and x._trace is self:
            return x
        aval = x.aval if type(x) is Literal else typeof(x)
        value = x.scalar if type(x) is Literal else x
        if getattr(getattr(value, "sharding", None), "num_devices", 0):
            value = _moved(value, next(iter(self.devices.values()))[0])
        return PositionTracer(self, aval, (), {(): value})

    def part(self, x: PositionTracer, key: Key, names: Names, device: Any) -> Any:
        """The value at coordinates along some axes, on a device."""
        value = x.values[tuple([key[names.index(n)] for n in x.names])]
        if getattr(value, "sharding", None) is None or value.devices() == {device}:
            return value
        return _moved(value, device)

    def divided(self, x: Any, aval: Any, spec: PartitionSpec) -> PositionTracer:
        """The parts of an argument; ``aval`` is the type of a part."""
        whole = _moved(x, NamedSharding(self.mesh, PartitionSpec(*spec)))
        parts = {s.device: s.data for s in whole.addressable_shards}
        names = ordered({*spec.names}, self.region.mesh)
        values = {key: parts[device] for key, device in self.keys(names)}
        if spec.unreduced:  # the first position has the value, the others have zeros
            names = ordered({*names, *spec.unreduced}, self.region.mesh)
            first = [names.index(n) for n in names if n in spec.unreduced]
            values = {
                key: lax.full_like(parts[device], 0)
                if any(key[i] for i in first)
                else parts[device]
                for key, device in self.keys(names)
            }
        return self.tracer(aval, names, values)

    def joined(self, x: Any, spec: PartitionSpec) -> Any:
        """The array whose parts are the values of a result."""
        tracer = self.lift(x)
        if spec.unreduced:
            tracer = self.lift(unreduced_psum_p.bind(tracer, axes=tuple(spec.unreduced)))
        aval = self.region.global_aval(tracer.aval, spec)
        sharding = NamedSharding(self.mesh, PartitionSpec(*spec))
        out = self.assembled(tracer, aval.shape, sharding)
        if is_placed(aval) and any(aval.placement.spec):
            entries = [entry_of(names) for names in aval.placement.spec]
            out = _moved(out, NamedSharding(self.mesh, PartitionSpec(*entries)))
        return out

    def assembled(
        self, x: PositionTracer, shape: Sequence[int], sharding: NamedSharding,
        change: Callable[[Any], Any] = lambda part: part,
    ) -> Any:  # fmt: skip
        """An array over all devices, of the changed values of the positions."""
        parts = []
        with set_trace(None):
            for position, devices in self.devices.items():
                for device in devices:
                    part = change(self.part(x, position, self.region.names, device))
                    parts.append(device_put(part, device))
        return make_array_from_single_device_arrays(shape, sharding, parts)

    # Operations

    def process(self, prim: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Compute an operation at each position."""
        rule = prim.rules.get(trace_rule)
        if rule is not None:
            return rule(self, args, **params)
        tracers = [self.lift(a) for a in args]
        avals, effects, casts = infer(prim, [t.aval for t in tracers], params)
        if casts is not None:
            tracers = [t if c is None else self.lift(c(t)) for t, c in zip(tracers, casts)]
        outs = self.evaluate(prim, tracers, params, avals, effects)
        return outs if prim.multiple_results else outs[0]

    def evaluate(
        self, prim: Primitive, args: Sequence[PositionTracer], params: dict[str, Any],
        avals: Sequence[Any], effects: Any,
    ) -> list[Any]:  # fmt: skip
        """The results of an operation, of these types."""
        if prim in _SAME_VALUES:
            return [self.tracer(avals[0], args[0].names, args[0].values)]
        outs = self.in_steps(prim, args, params)
        if outs is not None:
            return outs
        if self.communicates(prim, params):
            return self.together(prim, args, params, avals)
        names = ordered({n for a in args for n in a.names}, self.region.mesh)
        params = {k: None if isinstance(v, NamedSharding) else v for k, v in params.items()}
        shows = any(getattr(e, "name", None) not in self.region.manual for e in effects)
        values: list[dict[Key, Any]] = [{} for _ in avals]
        with set_trace(None):
            for key, device in self.keys(names):
                out = prim.bind(*[self.part(a, key, names, device) for a in args], **params)
                for of, value in zip(values, out if prim.multiple_results else [out]):
                    of[key] = device_put(value, device)
                if shows:
                    effects_barrier()
        return [self.tracer(a, names, v) for a, v in zip(avals, values)]

    def in_steps(
        self, prim: Primitive, args: Sequence[PositionTracer], params: dict[str, Any]
    ) -> list[Any] | None:
        """The results of an operation that applies jaxprs, step by step; ``None`` for others."""
        if prim is lax.while_p:
            return self.in_while_steps(args, **params)
        if prim is lax.cond_p:
            index = args[0]._concrete()
            if index is None:
                return None
            branches = params["branches"]
            return self.call(branches[min(max(int(index), 0), len(branches) - 1)], args[1:])
        rule = prim.rules.get(run_jaxprs)
        if rule is not None and prim is not shard_map_p:
            outs: list[Any] | None = rule(self.call, args, **params)
            return outs
        if expand in prim.rules and self.communicates(prim, params):
            jaxpr = expanded(prim, [a.aval for a in args], params)
            assert jaxpr is not None
            return self.call(jaxpr, args)
        return None

    def in_while_steps(
        self, args: Sequence[Any], *, cond_jaxpr: Jaxpr, body_jaxpr: Jaxpr, cond_nconsts: int,
        body_nconsts: int,
    ) -> list[Any] | None:  # fmt: skip
        """The results of a loop whose condition is equal at all positions, or ``None``."""
        n = cond_nconsts + body_nconsts
        cond_consts, body_consts, carry = args[:cond_nconsts], args[cond_nconsts:n], args[n:]
        (aval,) = cond_jaxpr.out_avals
        if aval.shape or not self.region.checked or self.names_of(aval):
            return None
        while bool(self.call(cond_jaxpr, [*cond_consts, *carry])[0]):
            carry = self.call(body_jaxpr, [*body_consts, *carry])
        return [*carry]

    def call(self, jaxpr: Jaxpr, args: Sequence[Any], name: str | None = None) -> list[Any]:
        """Evaluate a jaxpr."""
        with set_trace(self):
            return [self.lift(x) for x in self.run(jaxpr, args)]

    # Collectives

    def communicates(self, prim: Primitive, params: dict[str, Any]) -> bool:
        """Return True if the positions of the region must compute an operation together."""
        if prim is shard_map_p or self.names_in(params):
            return True
        return any(
            e.primitive is shard_map_p or self.names_in(e.params)
            for jaxpr in jaxprs_in(params)
            for e in walk(jaxpr)
        )

    def names_in(self, params: dict[str, Any]) -> bool:
        names = params.get("axis_name", params.get("axes", ()))
        names = names if isinstance(names, tuple) else (names,)
        return any(not isinstance(n, int) and n in self.region.manual for n in names)

    def together(
        self, prim: Primitive, args: Sequence[PositionTracer], params: dict[str, Any],
        avals: Sequence[Any],
    ) -> list[Any]:  # fmt: skip
        """The results of an operation that is compiled for all devices."""
        key = (prim, tuple(params.items()), tuple([a.aval for a in args]), self.region, self.mesh)
        jaxpr = _together.get(key)
        if jaxpr is None:
            jaxpr = _together[key] = self.one_operation(prim, params, [a.aval for a in args])
        in_names = [self.names_of(a.aval) for a in args]
        out_names = [self.names_outside(a) for a in avals]
        arrays = []
        for x, names in zip(args, in_names):
            x = self.tracer(x.aval, x.names, x.values)
            shape = (self.region.size(names), *x.aval.shape)
            sharding = NamedSharding(self.mesh, _leading(names))
            arrays.append(self.assembled(x, shape, sharding, _stacked))
        with set_trace(None):
            outs = shard_map_p.bind(
                *arrays, jaxpr=jaxpr, mesh=self.mesh, in_specs=tuple(map(_leading, in_names)),
                out_specs=tuple(map(_leading, out_names)), newly_manual_axes=self.region.manual,
                check_vma=self.region.checked,
            )  # fmt: skip
            results = []
            for out, aval, names in zip(outs, avals, out_names):
                out = device_put(out, NamedSharding(self.mesh, _leading(names)))
                parts = {s.device: s.data for s in out.addressable_shards}
                differing = names if not reduced_of(aval) else self.names_of(aval)
                values = {k: lax.squeeze(parts[d], (0,)) for k, d in self.keys(differing)}
                results.append(self.tracer(aval, differing, values))
        return results

    def names_outside(self, aval: Any) -> Names:
        """The axes along which a result of the compiled operation is divided."""
        names = {*self.names_of(aval), *(reduced_of(aval) & self.region.manual)}
        return ordered(names, self.region.mesh)

    def one_operation(self, prim: Primitive, params: dict[str, Any], avals: Sequence[Any]) -> Jaxpr:
        """The body of a region with one operation; values have a leading axis of size 1."""
        names = [self.names_of(a) for a in avals]

        def run(*args: Any) -> list[Any]:
            values = [placed_like(lax.squeeze(x, (0,)), a) for x, a in zip(args, avals)]
            outs = prim.bind(*values, **params)
            return [self.leaving(x) for x in (outs if prim.multiple_results else [outs])]

        def outside(aval: Any, names: Names) -> Any:
            aval = aval.strip_weak_type()
            if is_placed(aval):
                placement = aval.placement.update(
                    varying=frozenset(names) | varying_of(aval), unreduced=frozenset(),
                    reduced=frozenset(), unreduced_kind=None,
                )  # fmt: skip
                aval = aval.update(placement=placement)
            return aval.with_axis(0, 1)

        with set_trace(None):
            return stage(run, [outside(a, n) for a, n in zip(avals, names)])

    def leaving(self, x: Any) -> Any:
        """A result with a leading axis, neither reduced nor unreduced along manual axes."""
        aval, mesh = typeof(x), self.region.mesh
        if names := ordered(unreduced_of(aval) & self.region.manual, mesh):
            x = first_only(unreduced_psum_p.bind(x, axes=names), names)
        if names := ordered(reduced_of(aval) & self.region.manual, mesh):
            x = reduced_vary_cast_p.bind(x, axes=names)
        return lax.expand_dims(x, (0,))


def _zeros(part: Any) -> Any:
    with set_trace(None):
        return lax.full_like(part, 0)


def _moved(value: Any, target: Any) -> Any:
    with set_trace(None):
        return device_put(value, target)


def _leading(names: Names) -> PartitionSpec:
    return PartitionSpec(entry_of(names)) if names else PartitionSpec()


def _stacked(part: Any) -> Any:
    return lax.expand_dims(part, (0,))
