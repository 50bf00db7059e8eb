"""References under transformations.

While a function is differentiated or mapped, the contents of a reference that it creates are a
value of the transformation. A reference from outside is read and written under the parent trace,
and only with values that the transformation does not track; other values raise an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._ir.jaxpr import Jaxpr
from .._ir.primitive import Primitive
from .._trace.core import Tracer, bind_on, set_trace
from .._trace.refs import (
    Ref,
    RefCell,
    RefOperations,
    RefTracer,
    new_ref_p,
    read_whole,
    write_whole,
)
from .._transform import batching, jvp
from .._transform.zeros import Zero, instantiate
from . import discharge as d


def belongs(trace: Any, x: Any) -> bool:
    """Return True if a trace tracks a value."""
    if not isinstance(x, Tracer):
        return False
    owner: Any = x._trace
    return getattr(owner, "root", owner) is getattr(trace, "root", trace)


def _load(trace: Any, ref: Any) -> Any:
    if isinstance(ref, RefCell) and ref._trace is trace:
        return ref.value
    if isinstance(ref, (RefBatch, RefPair)) and belongs(trace, ref):
        return ref._load()
    return read_whole(trace.parent, ref)


def _store(trace: Any, ref: Any, value: Any, what: str) -> None:
    if isinstance(ref, RefCell) and ref._trace is trace:
        ref.value = value
    elif isinstance(ref, (RefBatch, RefPair)) and belongs(trace, ref):
        ref._store(value)
    elif belongs(trace, value):
        raise ValueError(
            f"performing {what} with {_TRACKED.get(type(trace).__name__, 'a transformed')} value "
            f"on {_OUTSIDE.get(type(trace).__name__, 'an outer')} array reference of type "
            f"{ref.aval}. Move the array reference to be an argument of the transformed function, "
            "or create it inside; or write a value that does not depend on the arguments."
        )
    else:
        write_whole(trace.parent, ref, value)


_TRACKED = {"BatchTrace": "a vmapped"} | dict.fromkeys(
    ("JVPTrace", "LinearizeTrace"), "a differentiated"
)
_OUTSIDE = {"BatchTrace": "an unbatched"} | dict.fromkeys(
    ("JVPTrace", "LinearizeTrace"), "a non-differentiated"
)
_WHAT = {"swap": "a set/swap operation", "addupdate": "an addupdate operation"}


def _numbered(args: Sequence[Any], which: Callable[[Any], bool]) -> d.Refs:
    numbers: dict[int, int] = {}
    return tuple(
        numbers.setdefault(id(a), len(numbers))
        if isinstance(a, RefOperations) and which(a)
        else None
        for a in args
    )


def process_discharged(
    trace: Any, prim: Primitive, args: Sequence[Any], params: dict[str, Any], every: bool = False
) -> Any:
    """Apply an operation on references under a transformation, to their contents.

    Args:
      every: also discharge references from outside.
    """
    refs = _numbered(args, lambda a: every or belongs(trace, a))
    values = [a if r is None else _load(trace, a) for a, r in zip(args, refs)]
    with set_trace(trace):
        outs, new = d.apply_rule(prim, refs, values, params)
    for a, value in zip(args, new):
        if value is not None:
            _store(trace, a, value, _WHAT.get(prim.name, f"writes in {prim.name}"))
    return outs if prim.multiple_results else outs[0]


def call_discharged(trace: Any, jaxpr: Jaxpr, args: Sequence[Any], name: Any = None) -> list[Any]:
    """Call a jaxpr under a transformation that created some of its reference arguments."""
    refs = _numbered(args, lambda a: belongs(trace, a))
    result = d.discharged(jaxpr, refs)
    values = [a if r is None else _load(trace, a) for a, r in zip(args, refs)]
    outs = trace.call(result.jaxpr, d.distinct(refs, values), name)
    n = len(jaxpr.outvars)
    for a, value in zip(args, d.placed(refs, result.written, outs[n:])):
        if value is not None:
            _store(trace, a, value, f"writes in {name}")
    return outs[:n]


def access(trace: Any, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Read or write a reference under a transformation."""
    if not any(belongs(trace, a) for a in args):
        out = bind_on(trace.parent, prim, args, params)
        return out if prim.multiple_results else out[0]
    return process_discharged(trace, prim, args, params, every=True)


def lend(trace: Any, args: Sequence[Any], run: Callable[[Sequence[Any]], list[Any]]) -> list[Any]:
    """Call a function with a custom rule on references created under the transformation.

    During the call each is replaced by a reference of the parent trace, which the rule can use.
    """
    lent: dict[int, tuple[RefCell, Any]] = {}
    operands = []
    for a in args:
        if type(a) is RefCell and a._trace is trace:
            if id(a) not in lent:
                lent[id(a)] = a, _outside(trace, a)
            operands.append(lent[id(a)][1])
        else:
            operands.append(a)
    outs = run(operands)
    for cell, ref in lent.values():
        cell.value = _load(trace, ref)
    return outs


def _outside(trace: Any, cell: RefCell) -> Any:
    params = {"memory_space": cell.aval.memory_space, "kind": cell.aval.kind, "pin": False}
    if isinstance(trace, batching.BatchTrace):
        value, dim = trace.split(cell.value)
        with set_trace(trace.parent):
            value = batching.at_front(value, dim, trace.axis.size)
        return RefBatch(trace, bind_on(trace.parent, new_ref_p, (value,), params)[0], 0)
    if belongs(trace, cell.value):
        raise ValueError(
            f"a function with a custom rule was passed a Ref of type {cell.aval} whose contents "
            "depend on arguments of the transformed function, which the rule would not see. Pass "
            "what it holds, `ref[...]`, as an argument instead."
        )
    return bind_on(trace.parent, new_ref_p, (cell.value,), params)[0]


def holds_cells(trace: Any, args: Sequence[Any]) -> bool:
    """Return True if an operand is a reference created under this transformation."""
    return any(type(a) is RefCell and a._trace is trace for a in args)


# References from outside that a transformation tracks


class RefBatch(RefOperations, batching.VmapTracer):
    """One example of a batch of references, stored in one reference of the parent trace."""

    __slots__ = ("_ended",)

    def __init__(self, trace: Any, value: Any, dim: int):
        super().__init__(trace, value, dim)
        self._ended: str | None = None

    def _split(self) -> tuple[Any, int | None]:
        return self.value, self.dim

    def _load(self) -> Any:
        whole = read_whole(self._trace.parent, self.value)
        return batching.VmapTracer(self._trace, whole, self.dim)

    def _store(self, x: Any) -> None:
        trace: Any = self._trace
        value, dim = trace.split(x)
        with set_trace(trace.parent):
            value = batching.move_axis(value, dim, self.dim, trace.axis.size)
        write_whole(trace.parent, self.value, value)


class RefPair(RefOperations, jvp.JVPTracer):
    """A reference and a reference to its tangent."""

    __slots__ = ("_ended",)

    def __init__(self, trace: Any, primal: Any, tangent: Any):
        super().__init__(trace, primal, tangent)
        self._ended: str | None = None

    def _split(self) -> tuple[Any, Any]:
        return self.primal, self.extra

    def _load(self) -> Any:
        parent = self._trace.parent
        return jvp.JVPTracer(
            self._trace, read_whole(parent, self.primal), read_whole(parent, self.extra)
        )

    def _store(self, x: Any) -> None:
        trace: Any = self._trace
        primal, tangent = trace.split(x)
        write_whole(trace.parent, self.primal, primal)
        if tangent is None:
            with set_trace(trace.parent):
                tangent = instantiate(Zero.like(primal))
        write_whole(trace.parent, self.extra, tangent)


for _kind in (Ref, RefTracer, RefCell, RefBatch, RefPair):
    batching.tracers[_kind] = RefBatch
    jvp.tracers[_kind] = RefPair
