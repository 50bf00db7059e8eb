"""Batching: vectorization of a jaxpr over a mapped axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from .._base import caches, source
from .._base.config import state
from .._ir import rules as rule_kinds
from .._ir.jaxpr import DebugInfo, Jaxpr
from .._ir.primitive import Primitive
from .._trace import structural
from .._trace.axes import extend_axis_env, named_axes_of
from .._trace.core import (
    RefTypeError,
    Trace,
    Tracer,
    bind_on,
    call_on,
    check_leaks,
    check_live,
    made_by,
    placed_like,
    set_trace,
    typeof,
)
from .._trace.interpret import apply_equation, interpret
from .._trace.reference_ops import references
from .._trace.staging import stage_with_aux
from .derived import derive, derive_from_jaxpr

A = TypeVar("A")


class DividedSize(int):
    """The size of a mapped axis that is divided along mesh axes that appear in types."""

    division: Any


class Axis:
    """A mapped axis.

    Attributes:
      size: its size.
      name: its name, or ``None``.
      spmd_name: the mesh axes that shard it, or ``None``.
      division: the placement of a vector that is divided as the axis; ``None`` if it is not divided
        along mesh axes that appear in types.
    """

    __slots__ = ("size", "name", "spmd_name", "division")

    def __init__(self, size: int, name: Any = None, spmd_name: Any = None, division: Any = None):
        self.size: int = size
        self.name: Any = name
        self.spmd_name: Any = spmd_name
        self.division: Any = division
        if division is not None:
            self.size = DividedSize(size)
            self.size.division = division

    @property
    def mesh_axes(self) -> Any:
        """The entry of the axis in a partition spec: `spmd_name`, or that of `division`."""
        if self.spmd_name is not None or self.division is None:
            return self.spmd_name
        return self.division.sharding.spec[0]

    @property
    def key(self) -> tuple[Any, ...]:
        """Cache key that distinguishes batched jaxprs of different axes."""
        return (self.size, self.name, self.spmd_name, self.division)

    def __repr__(self) -> str:
        return f"Axis(size={self.size}, name={self.name!r})"


# Avals of one example, by the aval of the batch and the mapped axis.
_examples: dict[tuple, Any] = caches.bounded_cache()


class VmapTracer(Tracer):
    """One example of a batch."""

    __slots__ = ("value", "dim")

    def __init__(self, trace, value, dim: int):
        aval = typeof(value)
        example = _examples.get((aval, dim))
        if example is None:
            example = _examples[aval, dim] = aval.without_axis(dim)
        self._trace = trace
        self.aval = example
        self.value = value
        self.dim = dim

    def __repr__(self):
        return f"VmapTracer(aval={self.aval}, batched={typeof(self.value)})"

    def _origin(self):
        return made_by("vmap", self._trace.of, self.value)


# Tracer classes of batches other than arrays, by the class of the batch.
tracers: dict[type, type[VmapTracer]] = {}


class BatchTrace(Trace):
    """Applies operations to whole batches.

    ``root`` is the trace that this one resumes, or the trace itself. A custom rule runs after the
    call of its function, and the examples that it closes over belong to the same batch.
    """

    __slots__ = ("axis", "of", "root")

    def __init__(
        self,
        parent: Trace | None,
        axis: Axis,
        of: Callable[..., Any] | None = None,
        resumes: BatchTrace | None = None,
    ):
        super().__init__(parent)
        self.axis: Axis = axis
        self.of: Callable[..., Any] | None = of
        self.root: BatchTrace = self if resumes is None else resumes.root

    def split(self, x: Any) -> tuple[Any, int | None]:
        """The batch and its mapped axis; ``None`` for an unbatched value."""
        if type(x) is VmapTracer and x._trace.root is self.root:
            return x.value, x.dim
        if isinstance(x, Tracer):
            check_live(x)
            if x._trace is self:
                return x._split()
        return x, None

    def process(self, prim: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Apply an operation to batches; without batched operands, bind it on the parent."""
        rule = prim.rules.get(rule_kinds.trace_rule)
        if rule is not None:
            return rule(self, args, **params)
        values, dims = [], []
        mapped = False
        try:
            for a in args:
                if type(a) is VmapTracer and a._trace is self:
                    values.append(a.value)
                    dims.append(a.dim)
                    mapped = True
                else:
                    value, dim = self.split(a)
                    values.append(value)
                    dims.append(dim)
                    mapped = mapped or dim is not None
        except RefTypeError:
            return references.ops.process(self, prim, args, params)
        if not mapped and not self.names_axis(prim, params):
            out = bind_on(self.parent, prim, values, params)
            return out if prim.multiple_results else out[0]
        jaxpr, out_dims = batch_primitive(
            prim, params, [typeof(v) for v in values], tuple(dims), self.axis
        )
        outs = self.wrap(call_on(self.parent, jaxpr, values), out_dims)
        return outs if prim.multiple_results else outs[0]

    def names_axis(self, prim: Primitive, params: dict[str, Any]) -> bool:
        """Return True if an operation uses the axis of this trace by name."""
        return self.axis.name is not None and self.axis.name in named_axes_of(prim, params)

    def call(self, jaxpr: Jaxpr, args: Sequence[Any], name: str | None = None) -> list[Any]:
        """Apply a jaxpr to batches; without batched arguments, call it on the parent."""
        try:
            pairs = [self.split(a) for a in args]
        except RefTypeError:
            return references.ops.call(self, jaxpr, args, name)
        dims = tuple(d for _, d in pairs)
        values = [v for v, _ in pairs]
        if self.axis.division is not None:
            values = [v if d is None else divided(v, d, self.axis) for v, d in pairs]
        if not any(d is not None for d in dims) and not (
            self.axis.name is not None and self.axis.name in _axis_names(jaxpr)
        ):
            return call_on(self.parent, jaxpr, values, name)
        derived, out_dims = batch_jaxpr(jaxpr, dims, self.axis)
        return self.wrap(call_on(self.parent, derived, values, name), out_dims)

    def wrap(self, outs: Sequence[Any], out_dims: Sequence[int | None]) -> list[Any]:
        """Tracers of batched results."""
        return [o if d is None else VmapTracer(self, o, d) for o, d in zip(outs, out_dims)]


def _axis_names(jaxpr: Jaxpr) -> set:
    return {getattr(e, "name", None) for e in jaxpr.effects}


def batch_primitive(
    prim: Primitive,
    params: dict[str, Any],
    avals: list[Any],
    dims: tuple[int | None, ...],
    axis: Axis,
) -> tuple[Jaxpr, Any]:
    """The batched jaxpr of one operation.

    Args:
      prim: the primitive.
      params: the parameters.
      avals: types of the operands, whole batches.
      dims: the mapped axis of each operand, ``None`` for operands without one.
      axis: the mapped axis.

    Returns:
      The jaxpr, and the mapped axis of each of its results.

    Raises:
      MissingRule: if the primitive has no batching rule.

    The rule runs once for each signature; the jaxpr is stored on the primitive.

    >>> import numpy as np
    >>> from primax_core import lax, typeof
    >>> from primax_core.extend import Axis
    >>> from primax_core.extend.traces import batch_primitive
    >>> avals = [typeof(np.zeros(3, np.float32))]
    >>> batch_primitive(lax.sin_p, {"accuracy": None}, avals, (0,), Axis(3))[1]
    (0,)
    """

    def make():
        from .rule_results import batched_results  # loaded with the first rule

        rule = prim.require(rule_kinds.batch, "vmap")

        def run(*args):
            result = rule(axis, list(args), list(dims), **params)
            return batched_results(prim, rule, result, params, avals, dims, axis.size)

        with extend_axis_env(axis.name, axis.size):
            return stage_with_aux(run, avals, DebugInfo("vmap", prim.name))

    return derive("batch", prim, params, (tuple(avals), dims, axis.key), make)


def batch_jaxpr(
    jaxpr: Jaxpr,
    dims: tuple[int | None, ...],
    axis: Axis,
    out_dims: Sequence[int | None] | None = None,
) -> tuple[Jaxpr, tuple[int | None, ...]]:
    """The batched jaxpr of a jaxpr, and the mapped axes of its results.

    Args:
      out_dims: the required mapped axis of each result; ``None`` accepts any axis.
    """
    required = None if out_dims is None else tuple(out_dims)

    def make():
        def run(*args):
            # Few frames: they limit the depth of nested calls that can be batched.
            outs, out_ds, _ = batch_with_aux(
                lambda *a: (interpret(jaxpr, a, apply_equation), None), args, dims, axis
            )
            if required is not None:
                pairs = [
                    (o, d) if w is None else (move_axis(o, d, w, axis.size), w)
                    for o, d, w in zip(outs, out_ds, required)
                ]
                outs, out_ds = [o for o, _ in pairs], [d for _, d in pairs]
            return outs, tuple(out_ds)

        in_avals = [batched_aval(v.aval, d, axis.size) for v, d in zip(jaxpr.invars, dims)]
        return stage_with_aux(run, in_avals, jaxpr.debug_info)

    return derive_from_jaxpr(jaxpr, "batch", (dims, axis.key, required), make)


def batched_aval(aval, dim: int | None, size: int):
    """The aval of a batch."""
    if dim is None:
        return aval
    if type(size) is DividedSize:
        return aval.with_axis(dim, int(size), size.division)
    return aval.with_axis(dim, size)


def divided(x: Any, dim: int, axis: Axis) -> Any:
    """The batch with its mapped axis divided as the axis."""
    aval = typeof(x)
    return placed_like(x, batched_aval(aval.without_axis(dim), dim, axis.size))


def batch_of(
    fun: Callable[..., Any],
    values: Sequence[Any],
    dims: Sequence[int | None],
    axis: Axis,
    of: Callable[..., Any] | None = None,
    resumes: BatchTrace | None = None,
) -> tuple[list[Any], list[int | None]]:
    """Apply a function of flat values to batches.

    Args:
      fun: a function of arrays that returns a list of arrays.
      values: the arguments: batches and unmapped values.
      dims: the mapped axis of each argument, ``None`` for arguments without one.
      axis: size and name of the mapped axis, an ``Axis``.
      of: the user's function, named in error messages.
      resumes: a batch trace whose examples ``fun`` may close over.

    Returns:
      The results, and their mapped axes (``None`` for results that do not depend on mapped
      arguments).

    The function is interpreted under a new trace, for interpreters that call functions of users.

    >>> import numpy as np
    >>> from primax_core import lax
    >>> from primax_core.extend import Axis
    >>> from primax_core.extend.traces import batch_of
    >>> x = np.array([1.0, 2.0], np.float32)
    >>> (y,), dims = batch_of(lambda a, b: [lax.mul(a, b)], [x, 3.0], [0, None], Axis(2, "i"))
    >>> y.tolist(), dims
    ([3.0, 6.0], [0])
    """
    outs, out_dims, _ = batch_with_aux(lambda *a: (fun(*a), None), values, dims, axis, of, resumes)
    return outs, out_dims


def batch_with_aux(
    fun: Callable[..., tuple[Any, A]],
    values: Sequence[Any],
    dims: Sequence[int | None],
    axis: Axis,
    of: Callable[..., Any] | None = None,
    resumes: BatchTrace | None = None,
) -> tuple[list[Any], list[int | None], A]:
    """:func:`batch_of` for a function that returns its results and an auxiliary value."""
    trace = BatchTrace(state.trace, axis, of, resumes)
    args = [
        v if d is None else tracers.get(type(v), VmapTracer)(trace, v, d)
        for v, d in zip(values, dims)
    ]
    scopes = state.name_stack
    if of is not None and trace.parent is not None:
        state.name_stack = (*scopes, "vmap()")
    try:
        with set_trace(trace), extend_axis_env(axis.name, axis.size):
            outs, aux = fun(*args)
        split = [trace.split(o) for o in outs]
    finally:
        trace.live = False
        state.name_stack = scopes
    if state.check_tracer_leaks:
        del args, outs
        check_leaks(trace, f"of vmap of {source.summarize_function(of or fun)}")
    return [v for v, _ in split], [d for _, d in split], aux


# Moving mapped axes


def sum_axis(x: Any, axis: int) -> Any:
    """Sum over one axis."""
    return structural.sum_axes(x, (axis,))


def move_axis(x: Any, dim: int | None, target: int, size: int) -> Any:
    """The batch with its mapped axis at a position; an unmapped value is broadcast.

    Args:
      x: an array.
      dim: its mapped axis, or ``None``.
      target: the axis of the result that is mapped.
      size: the number of examples.

    Returns:
      An array whose axis ``target`` is the mapped axis.

    Batching rules use it to align operands.

    >>> import numpy as np
    >>> from primax_core.extend import move_axis
    >>> move_axis(np.zeros((2, 3)), 1, 0, 3).shape
    (3, 2)
    >>> move_axis(np.zeros(2), None, 0, 3).shape
    (3, 2)
    """
    if dim is None and type(size) is DividedSize:
        repeated = structural.insert_axis(x, int(size), target)
        return placed_like(repeated, batched_aval(typeof(x), target, size))
    if dim is None:
        return structural.insert_axis(x, size, target)
    return x if dim == target else structural.move_axis(x, dim, target)


def at_front(x: Any, dim: int | None, size: int) -> Any:
    """The batch with its mapped axis first."""
    return move_axis(x, dim, 0, size)
