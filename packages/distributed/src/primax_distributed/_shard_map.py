"""`shard_map`: a function of the parts of arrays that one device has."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any, NamedTuple

from primax_core import jit, tree_util
from primax_core.extend import AbstractRef, Jaxpr, close_over, eval_jaxpr, run_jaxprs, stage, typeof
from primax_core.extend.placements import is_placed
from primax_core.extend.runtime import api_boundary_of, bounded_cache, default_placement, state
from primax_core.extend.traces import (
    axes_in_scope,
    current_trace,
    owner_of,
    set_trace,
    trace_function,
)
from primax_core.typing import PyTree

from . import _shard_map_rules as _shard_map_rules
from ._abstract_mesh import AbstractMesh
from ._current import concrete_mesh, entered_mesh, get_abstract_mesh
from ._manual_inference import cast_to_varying
from ._manual_region import Region, same_placement
from ._mesh import Mesh
from ._mesh_axes import AxisType
from ._named import NamedSharding
from ._shard_map_p import shard_map_p
from ._shard_map_specs import (
    Infer,
    InferFromArgs,
    check_axis_names,
    check_inputs,
    check_results,
    flat_specs,
    inferred_specs,
    line_of_result,
)
from ._spec import PartitionSpec


def shard_map(
    f: Callable[..., Any] | None = None,
    /,
    *,
    out_specs: PyTree,
    in_specs: PyTree = Infer,
    mesh: Mesh | AbstractMesh | None = None,
    axis_names: Collection[Hashable] = frozenset(),
    check_vma: bool = True,
) -> Any:
    """Apply a function to the parts of arrays on each device of a mesh.

    The function gets the part of one position of the mesh, and communicates with the others by
    collectives such as `lax.psum`. Its results are joined along the axes that `out_specs` names.

    Called directly, the whole is one executable, which is kept; under a transformation it is one
    operation. Called directly with the option `disable_jit`, the operations run one by one: each at
    all positions in the order of the mesh, so that prints are in order. Python sees the values.

    Args:
      f: the function. Without it, a decorator is returned.
      out_specs: partition specs of the results: a prefix of their tree. A mesh axis that a spec
        does not name is one along which the results are equal.
      in_specs: partition specs of the arguments, a prefix of the tuple of arguments. By default
        those in their types, along axes of the type `Explicit`.
      mesh: the mesh, by default that of `set_mesh` or of an enclosing `shard_map`.
      axis_names: the axes that the function is written for; by default all. Along the others the
        compiler divides the operations.
      check_vma: check that results which `out_specs` says to be equal are equal. The types of
        values contain the axes along which they may vary: `f32[4]{V:x}`.

    Returns:
      A function of the whole arrays.

    Raises:
      TypeError: if an argument has the wrong type.
      ValueError: if a size is not divisible, a spec names an axis that is not manual or has more
        entries than the array axes, or results may vary along an axis that their spec does not
        name.

    >>> import numpy as np
    >>> from primax_core import lax
    >>> from primax_distributed import P, make_mesh
    >>> mesh = make_mesh((1,), ("i",))
    >>> @shard_map(mesh=mesh, in_specs=P("i"), out_specs=P())
    ... def total(x):
    ...     return lax.psum(lax.reduce_sum(x, (0,)), "i")
    >>> float(total(np.arange(4.0)))
    6.0
    """
    if f is None:
        return functools.partial(
            shard_map, out_specs=out_specs, in_specs=in_specs, mesh=mesh, axis_names=axis_names,
            check_vma=check_vma,
        )  # fmt: skip
    if not callable(f):
        raise TypeError(
            f"shard_map requires a callable as its first argument, got {f!r} of type "
            f"{type(f).__name__}"
        )
    names = check_axis_names(axis_names)
    if mesh is not None and not isinstance(mesh, (Mesh, AbstractMesh)):
        raise TypeError(
            f"shard_map requires a Mesh or an AbstractMesh as `mesh`, got {mesh!r} of type "
            f"{type(mesh).__name__}"
        )
    return _ShardMap(f, mesh, names, in_specs, out_specs, bool(check_vma)).as_function()


class _ShardMap:
    """The arguments of `shard_map`, and the jaxprs of the function."""

    def __init__(
        self, fun: Callable[..., Any], mesh: Mesh | AbstractMesh | None,
        axis_names: frozenset[Hashable], in_specs: Any, out_specs: Any, check_vma: bool,
    ) -> None:  # fmt: skip
        self.fun = fun
        self.mesh = mesh
        self.axis_names = axis_names
        self.in_specs, self.out_specs = in_specs, out_specs
        self.check_vma = check_vma
        self.name: str = getattr(fun, "__name__", type(fun).__name__)

    def as_function(self) -> Callable[..., Any]:
        """The function that users call."""
        traced: dict[Any, Any] = bounded_cache()

        def bound(*args: Any) -> Any:
            return self.bind(args, traced)

        bound.__name__ = self.name
        whole = jit(bound, out_shardings=self.result_shardings())

        @api_boundary_of(self.fun, "{} over the devices of a mesh.")
        def call(*args: Any, **kwargs: Any) -> Any:
            if kwargs:
                raise TypeError(
                    f"shard_map of {self.name} takes positional arguments only, because in_specs "
                    f"refers to positions; got the keywords {', '.join(kwargs)}. Pass a function "
                    "without them: functools.partial, or a lambda"
                )
            if current_trace() is not None:
                return bound(*args)
            if isinstance(self.mesh, AbstractMesh):
                self.check_devices(args)
            return whole(*args)

        return call

    def result_shardings(self) -> Any:
        """Shardings of the results, with the specs as the user wrote them.

        ``None`` if they depend on the context, or on axes that are not manual.
        """
        mesh = self.mesh
        if not isinstance(mesh, Mesh) or self.axis_names not in (frozenset(), {*mesh.axis_names}):
            return None
        return tree_util.tree_map(
            lambda spec: NamedSharding(mesh, spec) if isinstance(spec, PartitionSpec) else None,
            self.out_specs,
            is_leaf=lambda spec: isinstance(spec, PartitionSpec),
        )

    def region(self) -> tuple[Mesh | AbstractMesh, Region]:
        """The mesh of the operation, and its region, in the current context.

        Raises:
          ValueError: if there is no mesh, it is not that of the context, or it does not have an
            axis.
        """
        mesh, context = self.mesh, get_abstract_mesh()
        if mesh is None:
            mesh = context if not context.empty else entered_mesh()
            if mesh.empty:
                raise ValueError(
                    "shard_map without a mesh uses that of the context, and there is none: pass "
                    "mesh=..., or use `with set_mesh(mesh):`"
                )
        elif not context.empty:
            _check_same_mesh(mesh, context)
            if context.manual_axes:
                mesh = context
        abstract, outer = mesh.abstract_mesh, {*mesh.manual_axes}
        if unknown := self.axis_names - {*abstract.axis_names}:
            raise ValueError(
                f"axis_names of shard_map contains {_listed(unknown)}, which the mesh does not "
                f"have: its axes are {abstract.axis_names}"
            )
        if doubled := self.axis_names & outer:
            raise ValueError(
                f"axis_names of shard_map contains {_listed(doubled)}, which an enclosing "
                "shard_map has made manual already: leave them out"
            )
        manual = self.axis_names or frozenset(abstract.axis_names) - outer
        if not manual:
            raise ValueError(
                f"all axes of {abstract} are manual already in the enclosing shard_map: call the "
                "function without another one"
            )
        return mesh, Region(abstract, manual, self.check_vma)

    def check_devices(self, args: tuple[Any, ...]) -> None:
        """Raise ``ValueError`` unless arguments, or the context, say which devices are used."""
        mesh = self.mesh
        assert mesh is not None
        for x in tree_util.tree_leaves(args):
            if getattr(getattr(x, "sharding", None), "num_devices", 1) == mesh.size:
                return
        if concrete_mesh().size != mesh.size:
            raise ValueError(
                f"shard_map of {self.name} has {mesh}, which has no devices, and no argument is on "
                f"{mesh.size} devices: pass a Mesh, arrays with a NamedSharding, or use `with "
                "set_mesh(mesh):`"
            )

    def bind(self, args: tuple[Any, ...], traced: dict[Any, Any]) -> Any:
        """Trace the function unless it was traced for these types, and bind the operation."""
        mesh, region = self.region()
        leaves, tree = tree_util.tree_flatten(args)
        avals = tuple([typeof(x) for x in leaves])
        if isinstance(self.in_specs, InferFromArgs):
            specs = inferred_specs(avals, region)
        else:
            specs = flat_specs("in_specs", self.in_specs, args, region)
        if state.disable_jit and current_trace() is None:
            devices = _evaluable_mesh(mesh, avals)
            if devices is not None:
                check_inputs(self.fun, args, avals, specs, region)
                return self.by_position(devices, region, leaves, tree, avals, specs)
        scope = tuple([(n, s, owner_of((n,))) for n, s in axes_in_scope().items()])
        key = (state.trace_key, scope, region, tree, specs, avals)
        body = traced.get(key)
        if body is None:
            check_inputs(self.fun, args, avals, specs, region)
            body = self.trace(tree, avals, specs, region)
            if not body.consts:
                traced[key] = body
        results = shard_map_p.bind(
            *body.consts, *leaves, jaxpr=body.jaxpr, mesh=mesh,
            in_specs=(*body.const_specs, *specs), out_specs=body.out_specs,
            newly_manual_axes=region.manual, check_vma=self.check_vma,
        )  # fmt: skip
        return tree_util.tree_unflatten(body.out_tree, results)

    def by_position(
        self, mesh: Mesh, region: Region, leaves: Sequence[Any], tree: Any, avals: Sequence[Any],
        specs: Sequence[PartitionSpec],
    ) -> Any:  # fmt: skip
        """The results, computed operation by operation."""
        from ._positions import PositionsTrace

        with region.entered(), default_placement(None):
            trace = PositionsTrace(mesh, region)
            parts = [
                trace.divided(x, region.local_aval(a, s), s)
                for x, a, s in zip(leaves, avals, specs)
            ]
            try:
                with set_trace(trace):
                    out = self.fun(*tree_util.tree_unflatten(tree, parts))
                    outs, out_tree = tree_util.tree_flatten(out)
                    outs = [trace.lift(x) for x in outs]
                    out_specs = flat_specs("out_specs", self.out_specs, out, region)
                    types = [x.aval for x in outs]
                    check_results(self.fun, types, out_tree, out_specs, region, lambda i: "")
                    outs = [trace.joined(x, s) for x, s in zip(outs, out_specs)]
            finally:
                trace.live = False
        return tree_util.tree_unflatten(out_tree, outs)

    def trace(
        self, tree: Any, avals: Sequence[Any], specs: Sequence[PartitionSpec], region: Region
    ) -> _Body:
        """The body of the region for arguments of some types."""
        local = [region.local_aval(a, s) for a, s in zip(avals, specs)]
        with region.entered():
            args = tree_util.tree_unflatten(tree, [_Typed(a) for a in local])
            traced = trace_function(self.fun, args, {}, "shard_map")
            jaxpr, consts = _with_operands(traced.jaxpr, traced.consts)
            results = tree_util.tree_unflatten(traced.out_tree, jaxpr.out_avals)
            out_specs = flat_specs("out_specs", self.out_specs, results, region)
            line = functools.partial(line_of_result, jaxpr)
            check_results(self.fun, jaxpr.out_avals, traced.out_tree, out_specs, region, line)
            jaxpr = _placed(jaxpr, len(consts), out_specs, region)
        return _Body(jaxpr, consts, traced.out_tree, out_specs)


class _Typed:
    """An example argument, of which only the type counts: that of an array or a reference."""

    __slots__ = ("aval",)

    def __init__(self, aval: Any) -> None:
        self.aval: Any = aval


class _Body(NamedTuple):
    """The body of a region.

    Attributes:
      jaxpr: takes `consts` and the leaves of the arguments.
      consts: values that the function closes over.
      out_tree: the structure of the results.
      out_specs: their specs.
    """

    jaxpr: Jaxpr
    consts: Sequence[Any]
    out_tree: Any
    out_specs: tuple[PartitionSpec, ...]

    @property
    def const_specs(self) -> list[PartitionSpec]:
        return [PartitionSpec()] * len(self.consts)


def _with_operands(jaxpr: Jaxpr, consts: Sequence[Any]) -> tuple[Jaxpr, list[Any]]:
    """The body, with values that it closes over as operands if they are divided or placed."""
    operands = list(consts)
    if any(is_placed(typeof(c)) or _is_divided(c) for c in jaxpr.consts):
        jaxpr, others = close_over(jaxpr)
        operands = [*others, *operands]
    return jaxpr, operands


def _is_divided(x: Any) -> bool:
    sharding = getattr(x, "sharding", None)
    return sharding is not None and sharding.num_devices > 1


def _placed(
    jaxpr: Jaxpr, n_consts: int, out_specs: Sequence[PartitionSpec], region: Region
) -> Jaxpr:
    """The body, with operands of types over the region's mesh, and results cast to their specs."""
    avals = [
        _inside(v.aval, region) if i < n_consts else v.aval for i, v in enumerate(jaxpr.invars)
    ]
    casts = [
        cast_to_varying(v.aval, frozenset(s.names), region.inner) if region.checked else None
        for v, s in zip(jaxpr.outvars, out_specs)
    ]
    if not any(casts) and all(a is v.aval for a, v in zip(avals, jaxpr.invars)):
        return jaxpr

    def run(*args: Any) -> list[Any]:
        return [x if cast is None else cast(x) for cast, x in zip(casts, eval_jaxpr(jaxpr, args))]

    return stage(run, avals, debug_info=jaxpr.debug_info)


def _inside(aval: Any, region: Region) -> Any:
    """The type in the region of a value that the function closes over.

    Raises:
      ValueError: if it is divided along an axis that is manual in the region.
    """
    if is_placed(aval):
        names = {n for axes in aval.placement.spec for n in axes} & region.manual
        if names:
            raise ValueError(
                f"a function under shard_map closes over a value of type {aval}, which is divided "
                f"along {_listed(names)}: pass it as an argument"
            )
    return same_placement(aval, region.inner)


def _evaluable_mesh(mesh: Mesh | AbstractMesh, avals: Sequence[Any]) -> Mesh | None:
    """The devices on which this process can evaluate a region step by step, or `None`."""
    devices = mesh if isinstance(mesh, Mesh) else concrete_mesh()
    arrays = not any(isinstance(a, AbstractRef) for a in avals)
    of_region = devices.abstract_mesh is mesh.abstract_mesh and not devices.is_multi_process
    return devices if arrays and of_region else None


@shard_map_p.rule(run_jaxprs)
def _run_jaxprs(run, args, *, jaxpr, mesh, in_specs, out_specs, newly_manual_axes, check_vma):  # type: ignore[no-untyped-def]
    avals = [typeof(x) for x in args]
    devices = _evaluable_mesh(mesh, avals)
    if devices is None:
        return None
    from ._positions import PositionsTrace

    region = Region(mesh.abstract_mesh, newly_manual_axes, check_vma)
    with region.entered(), default_placement(None):
        trace = PositionsTrace(devices, region, run)
        rows = zip(args, avals, in_specs)
        parts = [trace.divided(x, region.local_aval(a, s), s) for x, a, s in rows]
        try:
            outs = trace.call(jaxpr, parts)
            with set_trace(trace):
                return [trace.joined(x, s) for x, s in zip(outs, out_specs)]
        finally:
            trace.live = False


def _check_same_mesh(mesh: Mesh | AbstractMesh, context: AbstractMesh) -> None:
    types = zip(mesh.axis_types, context.axis_types)
    if mesh._sizes != context._sizes or any(
        t is not c and c is not AxisType.Manual for t, c in types
    ):
        raise ValueError(
            f"the mesh of shard_map, {mesh}, is not that of the context, {context}: pass the mesh "
            "of the context, or leave it out"
        )


def _listed(names: Collection[Hashable]) -> str:
    return ", ".join(sorted(map(repr, names)))
