"""Programs and operations on references, now: what the references hold is passed to an executable,
which overwrites it where nobody else can see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from .._base.config import state
from .._ir.jaxpr import DebugInfo, Jaxpr
from .._ir.primitive import Primitive, discharge as discharge_kind
from .._ir.ref_types import is_ref
from .._runtime import dispatch
from .._runtime.array import ArrayImpl, copy_array
from .._trace.core import Tracer, set_trace, typeof
from .._trace.donation import notify_donation
from .._trace.refs import Ref, check_not_ended
from .._trace.staging import eval_jaxpr, stage
from .discharge import Discharged, Refs, discharged, distinct


class Plan:
    """How a program is run on references.

    Attributes:
      jaxpr: takes arrays; gives first what the written references hold afterwards.
      refs: the numbers of the references among the program's arguments.
      donated: where the written ones stand among the arguments of ``jaxpr``.
    """

    __slots__ = ("jaxpr", "refs", "donated")

    def __init__(self, found: Discharged, refs: Refs, n_outs: int):
        jaxpr = found.jaxpr
        new, outs = jaxpr.outvars[n_outs:], jaxpr.outvars[:n_outs]
        # In the order of the arguments: what is donated is used for the first result that fits.
        numbers = distinct(refs, refs)
        order = sorted(range(len(new)), key=lambda i: numbers.index(found.written[i]))
        self.jaxpr: Jaxpr = jaxpr.replace(outvars=[*(new[i] for i in order), *outs])
        self.refs: Refs = refs
        self.donated: tuple[int, ...] = tuple(numbers.index(found.written[i]) for i in order)

    def places(self, donated: Sequence[int]) -> tuple[int, ...]:
        """Where arguments of the program that are no references stand among those of ``jaxpr``."""
        kept = distinct(self.refs, list(range(len(self.refs))))
        return tuple([kept.index(i) for i in donated if self.refs[i] is None])

    def execute(self, args: Sequence[Any], find: Callable[[Sequence[Any]], Any]) -> list[Any]:
        """Run on arguments of the program; ``find`` gives the executable for arrays of specs."""
        given = distinct(self.refs, args)
        held: list[Ref] = [a for a in given if type(a) is Ref]
        with ExitStack() as locks:
            for ref in sorted(held, key=id):
                locks.enter_context(ref._lock)
            arrays = [_held(a) if type(a) is Ref else dispatch.as_operand(a) for a in given]
            exe = find([a._spec for a in arrays])
            for i in self.donated:
                if given[i]._shared:
                    arrays[i] = copy_array(arrays[i])
            try:
                outs = exe(arrays)
            except BaseException:
                for i in exe.donated:
                    # It may be deleted, or changed in part.
                    if type(given[i]) is Ref and arrays[i] is given[i]._value:
                        given[i]._ended = "a call that failed while it was changing it"
                raise
            n = len(self.donated)
            for i, value in zip(self.donated, outs[:n]):
                given[i]._value, given[i]._shared = value, False
        return outs[n:]


def plan_of(jaxpr: Jaxpr, args: Sequence[Any]) -> Plan:
    """How a program is run on arguments some of which are references (or their types)."""
    numbers: dict[int, int] = {}
    refs = tuple(
        numbers.setdefault(i if is_ref(a) else id(a), len(numbers))
        if type(a) is Ref or is_ref(a)
        else None
        for i, a in enumerate(args)
    )
    key = ("refs", state.trace_key, refs, discharge_kind.version)
    plan = jaxpr.cache.get(key)
    if plan is None:
        plan = jaxpr.cache[key] = Plan(discharged(jaxpr, refs), refs, len(jaxpr.outvars))
    return plan


def run(
    jaxpr: Jaxpr, args: Sequence[Any], name: str | None = None, donated: Sequence[int] = (),
    compiler_options: tuple[Any, ...] = (),
) -> list[Any]:  # fmt: skip
    """Run a program some of whose arguments are references.

    Args:
      donated: arguments that are no references, whose buffers results may take over.
    """
    escaped = [a for a in args if isinstance(a, Tracer)]
    if escaped:
        trace = max((t._trace for t in escaped), key=_depth)
        with set_trace(trace):
            return trace.call(jaxpr, list(args), name)
    for i in donated:
        notify_donation(args[i])  # now, since no lock is held yet
    plan = plan_of(jaxpr, args)
    also = plan.places(donated) if donated else ()
    cache = plan.jaxpr.cache

    def find(specs):
        key = (state.key, also, compiler_options, *specs)
        exe = cache.get(key)
        if exe is None:
            called = name or jaxpr.debug_info.name
            dispatch.check_may_run(called)
            # What a program with NaNs was given stays as it was.
            kept = state.debug_nans or state.debug_infs
            exe = cache[key] = dispatch.compile_jaxpr(
                plan.jaxpr, specs, name=called, compiler_options=compiler_options,
                donated=() if kept else tuple(sorted((*plan.donated, *also))),
            )  # fmt: skip
        return exe

    return plan.execute(args, find)


def _held(ref: Ref) -> ArrayImpl:
    check_not_ended(ref)
    value: ArrayImpl = ref._value
    value._check_alive()
    return value


def _depth(trace: Any) -> int:
    n = 0
    while trace is not None:
        trace, n = trace.parent, n + 1
    return n


def run_eagerly(jaxpr: Jaxpr, args: Sequence[Any]) -> list[Any]:
    """Run a program that no user compiled: step by step, if Python does some of its operations."""
    if any(dispatch.impl in eqn.primitive.rules for eqn in jaxpr.eqns):
        with set_trace(None):
            return [dispatch.as_operand(x) for x in eval_jaxpr(jaxpr, args)]
    return run(jaxpr, args)


def evaluate(
    prim: Primitive, args: Sequence[Any], params: dict[str, Any], wanted: bool = True
) -> Any:
    """One operation some of whose operands are references, now.

    Args:
      wanted: whether the results are.
    """
    avals = [typeof(a) for a in args]
    cache = prim.executables if prim.cache_on is None else prim.cache_on(params)
    key = ("refs", state.trace_key, wanted, tuple(params.items()), *avals)
    jaxpr = cache.get(key)
    if jaxpr is None:

        def operation(*values):
            out = prim.bind(*values, **params)
            return [] if not wanted else out if prim.multiple_results else [out]

        jaxpr = cache[key] = stage(operation, avals, DebugInfo("eager", prim.name))
    outs = run(jaxpr, args, params.get("name") or prim.name, (), params.get("compiler_options", ()))
    return outs if prim.multiple_results or not wanted else outs[0]
