"""References under transformations.

While a function is differentiated or mapped, a reference that it makes holds a value of the
transformation's. One from outside is read and written outside, with values that the transformation
does not follow; others are refused.
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
    """Whether a trace follows a value."""
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
            f"performing {what} with {_FOLLOWED.get(type(trace).__name__, 'a transformed')} value "
            f"on {_OUTSIDE.get(type(trace).__name__, 'an outer')} array reference of type "
            f"{ref.aval}. Move the array reference to be an argument of the transformed function, "
            "or make it inside; or write a value that does not depend on the function's arguments."
        )
    else:
        write_whole(trace.parent, ref, value)


_FOLLOWED = {"BatchTrace": "a vmapped"} | dict.fromkeys(
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
    """An operation on references under a transformation, by way of what they hold.

    Args:
      every: discharge references from outside too.
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
    """A program under a transformation, some of whose arguments are references made there."""
    refs = _numbered(args, lambda a: belongs(trace, a))
    found = d.discharged(jaxpr, refs)
    values = [a if r is None else _load(trace, a) for a, r in zip(args, refs)]
    outs = trace.call(found.jaxpr, d.distinct(refs, values), name)
    n = len(jaxpr.outvars)
    for a, value in zip(args, d.placed(refs, found.written, outs[n:])):
        if value is not None:
            _store(trace, a, value, f"writes in {name}")
    return outs[:n]


def access(trace: Any, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Reading or writing a reference under a transformation."""
    if not any(belongs(trace, a) for a in args):
        out = bind_on(trace.parent, prim, args, params)
        return out if prim.multiple_results else out[0]
    return process_discharged(trace, prim, args, params, every=True)


def lend(trace: Any, args: Sequence[Any], run: Callable[[Sequence[Any]], list[Any]]) -> list[Any]:
    """Call a function with a custom rule, some of whose arguments are references that the
    transformation made: meanwhile they stand outside, where the rule can use them."""
    lent: dict[int, tuple[RefCell, Any]] = {}
    given = []
    for a in args:
        if type(a) is RefCell and a._trace is trace:
            if id(a) not in lent:
                lent[id(a)] = a, _outside(trace, a)
            given.append(lent[id(a)][1])
        else:
            given.append(a)
    outs = run(given)
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
    """Whether some operand is a reference that a transformation made."""
    return any(type(a) is RefCell and a._trace is trace for a in args)


# References from outside that a transformation follows


class RefBatch(RefOperations, batching.VmapTracer):
    """One example of a batch of references, which is one reference outside."""

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
    """A reference with one to its tangent."""

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
